"""An upstream that breaks off: the model's name says which stream, after how many bytes, and in which way."""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from typing import Final, Literal, get_args

Way = Literal["open", "reset", "proper"]
"""The end of the connection without the last chunk, a reset, or a last chunk as if all were said."""
WAYS: Final[tuple[Way, ...]] = get_args(Way)

_ASKED: Final = re.compile(rb"cut-(\d+)-(\d+)-(open|reset|proper)")
_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)


def model(stream: int, at: int, way: Way) -> str:
    return f"cut-{stream}-{at}-{way}"


class CuttingUpstream:
    def __init__(self, streams: list[bytes]) -> None:
        self._streams = streams
        self.asked = 0

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, limit=1 << 22, backlog=1024)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
                body = await reader.readexactly(int(length[1])) if length else b""
                asked = _ASKED.search(head) or _ASKED.search(body)
                if asked is None:
                    raise ValueError(f"which cut? {head[:200]!r}")
                self.asked += 1
                data = self._streams[int(asked[1])][: int(asked[2])]
                writer.write(_HEAD + (b"%x\r\n%b\r\n" % (len(data), data) if data else b""))
                if asked[3] == b"proper":
                    writer.write(b"0\r\n\r\n")
                    continue
                await writer.drain()
                if asked[3] == b"reset":
                    # What was written must have left, or the reset takes it along.
                    await asyncio.sleep(0.005)
                    raw = writer.get_extra_info("socket")
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()
