"""Bytes of a Gemini stream -> the JSON documents in it.

Three framings come under one name: SSE, one JSON array that grows (no `alt=sse`), and one plain object (an
error, or an answer that was not streamed after all). The first byte that is no space tells them apart.
"""

from __future__ import annotations

from typing import Literal

from wireglot.ir.errors import UpstreamFault
from wireglot.wire.json_array import ArrayDecoder
from wireglot.wire.sse import MAX_FRAME, SseDecoder

MAX_OBJECT = 64 * 1024 * 1024

_SPACE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


class Framing:
    """`kind` is known with the first byte that is no space. Any cutting gives the same documents."""

    __slots__ = ("_array", "_pending", "_skipped", "_sse", "cut", "kind")

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self.kind: Literal["unknown", "sse", "array", "object"] = "unknown"
        self.cut = False  # after `close`: the bytes ended inside a frame or inside the array
        self._sse = SseDecoder(max_frame)
        self._array = ArrayDecoder(max_frame)
        self._skipped = 0  # spaces and such before the first document
        self._pending = bytearray()  # the object so far, or what may be the start of a byte-order mark

    def feed(self, data: bytes) -> list[bytes]:
        """The documents that `data` completes."""
        if self.kind == "unknown":
            data = self._sniff(data)
        if self.kind == "sse":
            return [frame.data for frame in self._sse.feed(data)]
        if self.kind == "array":
            return self._array.feed(data)
        if self.kind == "object":
            self._pending += data
            if len(self._pending) > MAX_OBJECT:
                raise UpstreamFault(f"a body larger than {MAX_OBJECT} bytes")
        return []

    @property
    def settled(self) -> int:
        """How many bytes of an array, from its start on, are whole elements (or all of it)."""
        return self._skipped + self._array.settled

    @property
    def whole(self) -> bool:
        """Whether an array has been closed."""
        return self._array.complete

    def close(self) -> list[bytes]:
        """What the end of the bytes completes: a frame without its blank line, or the whole object."""
        if self.kind == "sse":
            lines = self._sse.pending.split(b"\n")
            last = [frame.data for frame in self._sse.close()]
            # A frame began if anything but a comment did; "dat" and "data: " are frames without their data.
            self.cut = not any(last) and any(line and not line.startswith(b":") for line in lines)
            return last
        self.cut = self.kind == "array" and not self._array.complete
        return [bytes(self._pending)] if self.kind == "object" else []

    def _sniff(self, data: bytes) -> bytes:
        data = bytes(self._pending) + data
        self._pending.clear()
        start = data.removeprefix(_BOM).lstrip(_SPACE)
        if not start or _BOM.startswith(start):
            self._skipped += len(data) - len(start)
            self._pending += start
        elif start:
            self._skipped += len(data) - len(start)
            self.kind = "array" if start[:1] == b"[" else "object" if start[:1] == b"{" else "sse"
        return start
