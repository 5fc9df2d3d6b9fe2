"""An upstream that notices who leaves: it answers nothing, slowly, or with refusals, and knows since when it
has been left. What is asked carries `leave-KIND-NONCE`."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Final

from proofs.lab.paced_upstream import chunk, end, head

_ASKED: Final = re.compile(rb"leave-(silent|refusing|slow|quick)-([0-9a-f]{16})")
_REFUSAL: Final = b'{"error":{"message":"overloaded","type":"server_error","param":null,"code":null}}'
_REFUSED: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
)
_WORDS: Final = 400
_PAUSE_SECONDS: Final = 0.05


class PatientUpstream:
    def __init__(self) -> None:
        self.asked: dict[str, int] = {}
        """How often, by nonce."""
        self.busy: set[str] = set()
        """Nonces whose answer is being given."""
        self.left: dict[str, float] = {}
        """When the one who asked was gone (monotonic)."""

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 22, backlog=4096)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                top = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: *(\d+)", top, re.IGNORECASE)
                body = await reader.readexactly(int(length[1])) if length else b""
                found = _ASKED.search(body)
                if found is None:
                    raise ValueError(f"nobody's question: {top[:200]!r} {body[:200]!r}")
                nonce = found[2].decode()
                self.asked[nonce] = self.asked.get(nonce, 0) + 1
                if not await self._answered(reader, writer, found[1], nonce):
                    return
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            return
        finally:
            writer.close()

    async def _answered(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kind: bytes, nonce: str
    ) -> bool:
        """Whether the connection can be used again."""
        if kind == b"refusing":
            writer.write(_REFUSED % len(_REFUSAL) + _REFUSAL)
            return True
        self.busy.add(nonce)
        gone = asyncio.ensure_future(reader.read(1))  # a client of ours does not send the next question early
        speaks = asyncio.ensure_future(self._speak(writer, kind))
        try:
            await asyncio.wait({gone, speaks}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done() and not speaks.done():
                self.left[nonce] = time.monotonic()
                return False
            # The stream reader that waits for the next byte would swallow it.
            return False
        finally:
            self.busy.discard(nonce)
            for task in (gone, speaks):
                task.cancel()

    async def _speak(self, writer: asyncio.StreamWriter, kind: bytes) -> None:
        if kind == b"silent":
            await asyncio.Event().wait()
        writer.write(head(close=True))
        words = _WORDS if kind == b"slow" else 3
        for number in range(words):
            writer.write(chunk(number))
            await asyncio.sleep(_PAUSE_SECONDS)
        writer.write(end(words))
        await writer.drain()
