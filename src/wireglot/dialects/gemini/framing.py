"""Bytes of a Gemini stream -> the JSON documents in it.

Three framings come under one name: SSE, one JSON array that grows (no `alt=sse`), and one plain object (an
error, or an answer that was not streamed after all). The first byte that is no space tells them apart.
"""

from __future__ import annotations

from typing import Literal

from wireglot.dialects.answer_reader import MAX_DOCUMENT_BYTES, first_byte
from wireglot.wire.json import BadJson
from wireglot.wire.json_array import ArrayDecoder
from wireglot.wire.sse import MAX_FRAME, FrameTooLarge, SseDecoder


class Framing:
    """`kind` is known with the first byte that is no space. Any cutting gives the same documents."""

    __slots__ = ("_array", "_pending", "cut", "kind", "sse")

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self.kind: Literal["unknown", "sse", "array", "object"] = "unknown"
        self.cut = False  # after `close`: the bytes ended inside a frame or inside the array
        self.sse = SseDecoder(max_frame)
        self._array = ArrayDecoder(max_frame)
        self._pending = bytearray()  # the object so far, or the blanks before anything

    def feed(self, data: bytes) -> list[bytes]:
        """The documents that `data` completes."""
        if self.kind == "unknown":
            data = self._sniff(data)
        if self.kind == "sse":
            return [frame.data for frame in self.sse.feed(data)]
        if self.kind == "array":
            return self._array.feed(data)
        if self.kind == "object":
            self._pending += data
            if len(self._pending) > MAX_DOCUMENT_BYTES:
                raise FrameTooLarge("the answer is too large")
        return []

    @property
    def fault(self) -> BadJson | None:
        """What no further bytes came to tell: garbage that arrived together with the last good element."""
        return self._array.fault

    @property
    def settled(self) -> int:
        """How many bytes of an array, from its start on, are whole elements (or all of it)."""
        return self._array.settled

    def close(self) -> list[bytes]:
        """What the end of the bytes completes: a frame without its blank line, or the whole object."""
        if self.kind == "sse":
            pending = self.sse.pending
            last = [frame.data for frame in self.sse.close()]
            if pending and not any(last):
                # A frame began if anything but a comment did: "dat" and "data: " are some without their data.
                self.cut = any(line and not line.startswith(b":") for line in pending.split(b"\n"))
            return last
        self.cut = self.kind == "array" and not self._array.complete
        return [bytes(self._pending)] if self.kind == "object" else []

    def _sniff(self, data: bytes) -> bytes:
        self._pending += data
        data = bytes(self._pending)
        first = first_byte(data)
        if not first:
            return b""
        self._pending.clear()
        self.kind = "array" if first == b"[" else "object" if first == b"{" else "sse"
        return data[data.index(first) :] if self.kind == "sse" else data
