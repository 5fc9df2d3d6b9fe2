"""One connection of a client: keep-alive, one question at a time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, NamedTuple

import httptools
import msgspec

_READ = 64 * 1024


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class _Answer:
    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.whole = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode().lower()] = value.decode()

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.whole = True


class Link:
    def __init__(self, port: int, key: str = "", host: str = "127.0.0.1") -> None:
        self._address = (host, port)
        self._key = key
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, method: str, path: str, document: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        """An OSError means that the answer did not come whole: nothing was acknowledged."""
        try:
            return await self._ask(method, path, document, headers or {})
        except BaseException:
            self.close()
            raise

    async def leave(
        self, method: str, path: str, document: Any, headers: dict[str, str] | None = None, *, pieces: int = 0
    ) -> bytes:
        """Ask, and be gone after so many pieces of the answer: what was seen of it."""
        seen = b""
        try:
            reader = await self._send(method, path, document, headers or {})
            for _ in range(pieces):
                seen += await reader.read(_READ)
        finally:
            self.close()
        return seen

    def close(self) -> None:
        if self._streams is not None:
            with suppress(OSError):
                self._streams[1].close()
            self._streams = None

    async def _send(
        self, method: str, path: str, document: Any, headers: dict[str, str]
    ) -> asyncio.StreamReader:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address)
        reader, writer = self._streams
        body = b"" if document is None else msgspec.json.encode(document)
        lines = [f"{method} {path} HTTP/1.1", f"host: {self._address[0]}:{self._address[1]}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if self._key:
            lines.append(f"authorization: Bearer {self._key}")
        if body:
            lines.append("content-type: application/json")
        lines += [f"content-length: {len(body)}", "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        await writer.drain()
        return reader

    async def _ask(self, method: str, path: str, document: Any, headers: dict[str, str]) -> Reply:
        reader = await self._send(method, path, document, headers)
        answer = _Answer()
        while not answer.whole:
            data = await reader.read(_READ)
            if not data:
                raise ConnectionResetError("the answer broke off")
            answer.parser.feed_data(data)
        if not answer.parser.should_keep_alive():
            self.close()
        return Reply(answer.parser.get_status_code(), answer.headers, bytes(answer.body))
