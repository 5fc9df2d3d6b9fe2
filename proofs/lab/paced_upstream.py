"""An upstream that takes its time: the model's name says how many words it has and how long it waits between.

It speaks Chat. Each word is its own number, so that a reader sees whether one is missing or came twice.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final

_ASKED: Final = re.compile(rb"paced-(\d+)-(\d+)")
_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
_CHUNK: Final = (
    b'data: {"id":"chatcmpl-paced","object":"chat.completion.chunk","created":1760000000,"model":"paced",'
    b'"choices":[{"index":0,"delta":%b,"finish_reason":%b}]}\n\n'
)
_USAGE: Final = (
    b'data: {"id":"chatcmpl-paced","object":"chat.completion.chunk","created":1760000000,"model":"paced",'
    b'"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":%d,"total_tokens":%d}}\n\ndata: [DONE]\n\n'
)


def model(words: int, pause_ms: int) -> str:
    return f"paced-{words}-{pause_ms}"


def text(words: int) -> str:
    """What a whole answer says."""
    return "".join(f"{number} " for number in range(words))


def config(port: int) -> str:
    """The provider's table, under the name `paced`."""
    return (
        f'[providers.paced]\ndialect = "openai-chat"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
        'api_key = "not-a-secret"\n'
    )


class PacedUpstream:
    def __init__(self) -> None:
        self.open = 0
        """Answers that are being given."""
        self.asked = 0
        self.left = 0
        """Answers whose reader went away before the end."""
        self.goes_on = asyncio.Event()
        """Cleared: everybody waits after the first word."""
        self.goes_on.set()

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 22, backlog=4096)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
                body = await reader.readexactly(int(length[1])) if length else b""
                asked = _ASKED.search(body)
                if asked is None:
                    raise ValueError(f"how many words? {head[:200]!r} {body[:200]!r}")
                self.asked += 1
                self.open += 1
                try:
                    await self._answer(writer, int(asked[1]), int(asked[2]) / 1000)
                except (ConnectionError, asyncio.CancelledError):
                    self.left += 1
                    raise
                finally:
                    self.open -= 1
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            return
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, words: int, pause: float) -> None:
        writer.write(head())
        for number in range(words):
            writer.write(chunk(number))
            await writer.drain()
            await self.goes_on.wait()
            await asyncio.sleep(pause)
            if writer.transport.is_closing():
                raise ConnectionResetError("the reader has gone")
        writer.write(end(words))
        await writer.drain()


def head(*, close: bool = False) -> bytes:
    return _HEAD + (b"connection: close\r\n\r\n" if close else b"\r\n")


def chunk(number: int) -> bytes:
    """One word."""
    return _framed(_CHUNK % (b'{"content":"%d "}' % number, b"null"))


def end(words: int) -> bytes:
    return _framed(_CHUNK % (b"{}", b'"stop"') + _USAGE % (words, words + 3)) + b"0\r\n\r\n"


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
