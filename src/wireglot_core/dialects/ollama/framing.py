"""Streams of JSON lines: each event is one line, with nothing between them.

Internally every stream consists of server-sent events: the framer converts it for clients, the unframer
converts the streams of servers.
"""

from __future__ import annotations

from typing import Final

from wireglot_core.dialects.answer_reader import before_first_byte, first_byte
from wireglot_core.wire.event_stream import BadFrame
from wireglot_core.wire.sse import FrameTooLarge, SseDecoder

CONTENT_TYPE: Final = "application/x-ndjson"

_PING: Final = b" "
"""Written in place of a comment: JSON may begin with blanks. An empty line would be an error: the Python SDK
(0.6.3) decodes every line, and so does the Go client."""


class LineFramer:
    """Implements `Framer`."""

    def __init__(self, max_event: int) -> None:
        self._events = SseDecoder(max_event)

    def feed(self, data: bytes) -> bytes:
        return b"".join([self._line(block) for block in self._events.cut(data)])

    def close(self) -> bytes:
        return b"".join([event.data + b"\n" for event in self._events.close()])

    def _line(self, block: bytes) -> bytes:
        event = self._events.frame(block)
        return _PING if event is None else event.data + b"\n"


class LineUnframer:
    """Implements `Unframer`."""

    def __init__(self, max_event: int) -> None:
        self._max_event = max_event
        self._pending = bytearray()
        self.fault: BadFrame | None = None

    def feed(self, data: bytes) -> bytes:
        if self.fault is not None:
            raise self.fault
        start = data.rfind(b"\n") + 1
        if not start:
            self._hold(data)
            return b""
        lines = bytes(self._pending) + data[:start]
        self._pending.clear()
        events: list[bytes] = []
        for line in lines.split(b"\n"):
            if len(line) > self._max_event:
                self.fault = BadFrame(f"a line is longer than {self._max_event} bytes")
                return _or_raise(events, self.fault)
            if line := line.strip():
                events.append(b"data: %b\n\n" % line.replace(b"\r", b" "))
        self._hold(data[start:])
        return b"".join(events)

    def _hold(self, data: bytes) -> None:
        self._pending += data
        if len(self._pending) > self._max_event:
            self._pending.clear()
            self.fault = BadFrame(f"a line is longer than {self._max_event} bytes")

    def close(self) -> bytes:
        return self.feed(b"\n")


def _or_raise(events: list[bytes], fault: BadFrame) -> bytes:
    if not events:
        raise fault
    return b"".join(events)


class AsEvents:
    """A stream in either framing, as server-sent events: the first byte determines the framing."""

    __slots__ = ("_max_event", "_opening", "_unframer")

    def __init__(self, max_event: int) -> None:
        self._max_event = max_event
        self._opening: bytes | None = b""
        self._unframer: LineUnframer | None = None

    def feed(self, data: bytes) -> bytes:
        """Raises FrameTooLarge."""
        if self._opening is not None:
            data = self._opening + data
            first = first_byte(data)
            self._opening = None if first else before_first_byte(data)
            if not first:
                return b""
            if first == b"{":
                self._unframer = LineUnframer(self._max_event)
                data = data[data.index(b"{") :]
        if self._unframer is None:
            return data
        try:
            return self._unframer.feed(data)
        except BadFrame as fault:
            raise FrameTooLarge(str(fault)) from None

    def close(self) -> bytes:
        """The last line, if it has no line end."""
        return self.feed(b"\n") if self._unframer is not None else b""
