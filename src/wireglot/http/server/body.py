"""Request bodies as they arrive: of a known length, or in chunks, which are parsed strictly."""

from __future__ import annotations

import io
import re
from typing import Final

from wireglot.http.server.head import Malformed

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_EXTENSION: Final = rb";" + _TOKEN + rb"(?:=(?:" + _TOKEN + rb'|"[\t !#-\[\]-~]*"))?'
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})(?:" + _EXTENSION + rb")*")
_SIZE_LINE_BYTES: Final = 256
_FREE_CHUNKS: Final = 16_384
_MEAN_CHUNK_BYTES: Final = 128
"""The smallest average chunk of a long body: single bytes would cost us more than their sender."""

_AT_SIZE: Final = 0
_IN_DATA: Final = 1
_AFTER_DATA: Final = 2
_AT_END: Final = 3


class TooLarge(Exception):
    """The body has passed its limit."""


# Both collect in a `BytesIO`, which returns its content without a copy: a list of parts joined at the end
# would for a moment be the body twice. But to grow, it copies all its content.

_JOINED_BYTES: Final = 2 * 1024 * 1024
_JOINED_PARTS: Final = 64
"""Up to this many they are joined: many small parts take more memory than their bytes."""


class SizedBody:
    """A body whose declared length is within its limit."""

    __slots__ = ("_gathered", "_missing", "_parts", "rest")

    def __init__(self, length: int) -> None:
        self._parts: list[bytes | memoryview] = []
        self._gathered = io.BytesIO() if length > _JOINED_BYTES else None
        self._missing = length
        self.rest: bytes | None = None
        """Set when the body is complete: the bytes after it."""

    def body(self) -> bytes:
        return b"".join(self._parts) if self._gathered is None else self._gathered.getvalue()

    def feed(self, data: bytes | memoryview) -> None:
        missing = self._missing
        if len(data) < missing:
            self._add(data)
            self._missing = missing - len(data)
        else:
            self._add(data[:missing])
            self.rest = bytes(data[missing:])

    def _add(self, data: bytes | memoryview) -> None:
        if self._gathered is not None:
            self._gathered.write(data)
            return
        self._parts.append(data)
        if len(self._parts) > _JOINED_PARTS:
            self._gathered = io.BytesIO()
            self._gathered.writelines(self._parts)
            self._parts.clear()


class ChunkedBody:
    """A body of unknown length: bad chunks are `Malformed`, too many bytes `TooLarge`."""

    __slots__ = ("_chunks", "_gathered", "_held", "_left", "_limit", "_place", "_size", "rest")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._gathered = io.BytesIO()
        self._held = b""
        self._place = _AT_SIZE
        self._left = 0
        self._chunks = 0
        self._size = 0
        self.rest: bytes | None = None
        """Set when the body is complete: the bytes after it."""

    def body(self) -> bytes:
        return self._gathered.getvalue()

    def feed(self, data: bytes | memoryview) -> None:
        data = self._held + data if self._held else bytes(data)
        self._held = b""
        at = 0
        while at >= 0:
            place = self._place
            if place == _IN_DATA:
                at = self._take_data(data, at)
            elif place == _AT_SIZE:
                at = self._take_size(data, at)
            else:
                at = self._take_line_end(data, at)

    def _take_size(self, data: bytes, at: int) -> int:
        end = data.find(b"\r\n", at)
        if end < 0:
            held = data[at:]
            # A line end that is not CRLF, or a line without end, cannot become a valid size any more.
            if len(held) > _SIZE_LINE_BYTES or b"\n" in held or b"\r" in held[:-1]:
                raise _malformed("an invalid chunk size")
            self._held = held
            return -1
        match = _SIZE.fullmatch(data, at, end)
        if match is None or end - at > _SIZE_LINE_BYTES:
            raise _malformed("an invalid chunk size")
        size = int(match[1], 16)
        self._chunks += 1
        if self._chunks > _FREE_CHUNKS + self._size // _MEAN_CHUNK_BYTES:
            raise _malformed("too many small chunks")
        # Checked when the chunk announces its size: it need not arrive first.
        if self._size + size > self._limit:
            raise TooLarge
        self._left = size
        self._place = _IN_DATA if size else _AT_END
        return end + 2

    def _take_data(self, data: bytes, at: int) -> int:
        part = data[at : at + self._left] if at or len(data) > self._left else data
        if part:
            self._gathered.write(part)
            self._size += len(part)
            self._left -= len(part)
        if self._left:
            return -1
        self._place = _AFTER_DATA
        return at + len(part)

    def _take_line_end(self, data: bytes, at: int) -> int:
        found = data[at : at + 2]
        if not b"\r\n".startswith(found):
            if self._place == _AT_END:
                raise _malformed("fields after the last chunk are not accepted")
            raise _malformed("a chunk that does not end where it should")
        if len(found) < 2:
            self._held = found
            return -1
        if self._place == _AT_END:
            self.rest = data[at + 2 :]
            return -1
        self._place = _AT_SIZE
        return at + 2


def _malformed(message: str) -> Malformed:
    return Malformed(400, "invalid_chunk", message)
