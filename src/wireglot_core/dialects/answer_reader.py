"""The common part of every stream reader: a stream or one document, a byte-order mark, oversized input, an
early end.

Upstreams that were asked for a stream may answer with one JSON document (an error, a whole answer) or with a
web page. No line of an event stream starts with a bracket, so the first non-blank byte decides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from wireglot_core.dialects.faults import TRUNCATED, broken
from wireglot_core.dialects.repeated_chunks import RepeatedChunks
from wireglot_core.ir.errors import ApiError, UpstreamFault
from wireglot_core.ir.stream import Event, Failure
from wireglot_core.wire.json import BadJson, decode
from wireglot_core.wire.sse import Frame, FrameTooLarge, SseDecoder

# Bytes of a whole answer where a stream was expected: it is held until its end.
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
LAST_BLANK_LINE = b"\n\n"
"""Appended at the end of an event stream: several servers leave it out after their last frame."""

_BOM = b"\xef\xbb\xbf"
_FAULTS = (BadJson, FrameTooLarge, UpstreamFault)


def first_byte(opening: bytes) -> bytes:
    """The first non-blank byte; empty if there is none yet or a byte-order mark may still follow."""
    if len(opening) < len(_BOM) and _BOM.startswith(opening):
        return b""
    return opening.removeprefix(_BOM).lstrip()[:1]


def before_first_byte(opening: bytes) -> bytes:
    """What is needed of an opening without a first byte: a byte-order mark, or one of its blanks, after which
    there can be none."""
    return opening if _BOM.startswith(opening) else _BOM if opening.startswith(_BOM) else opening[-1:]


def json_or_text(document: bytes) -> Any:
    """The JSON value of a document, or its text if it is not JSON: a proxy's error page."""
    try:
        return decode(document)
    except BadJson:
        return document.decode("utf-8", "replace")


def named_event(frame: Frame) -> Any:
    """The decoded value of a frame; None for Chat's end mark, which some servers send in other dialects
    too."""
    try:
        return decode(frame.data)
    except BadJson:
        if frame.data.strip() not in (b"[DONE]", b""):
            raise
        return None


class AnswerReader(ABC):
    """Passes the frames of a stream to `_frame`, or a document to `_read_document`. Unreadable input and an
    early end become a Failure; nothing follows it."""

    __slots__ = ("_ended", "_first", "_opening", "_repeated", "_sse", "flaws")

    document_starts = b"{[<"
    """First bytes of a document that is held until it is complete."""

    def __init__(self, sse: SseDecoder, repeated: RepeatedChunks) -> None:
        self._sse = sse
        self._repeated = repeated
        self._ended = False
        self._first = b""
        self._opening: bytearray | None = bytearray()  # or the document; None: a stream has begun
        self.flaws: list[str] = []

    def read(self, data: bytes) -> list[Event]:
        out: list[Event] = []
        if self._ended:
            return out
        delta = self._repeated.alone(data)
        if delta is not None:
            out.append(delta)
            return out
        try:
            if self._opening is not None:
                data = self._sniff(self._opening, data)
            if data:
                self._read_stream(data, out)
        except _FAULTS as problem:
            self._fail(broken(problem), out)
        return out

    def end(self) -> list[Event]:
        out: list[Event] = []
        if self._ended:
            return out
        try:
            if self._opening is None:
                self._read_end(out)
            elif self._first:
                self._read_document(bytes(self._opening), out)
        except _FAULTS as problem:
            self._fail(broken(problem), out)
        if not self._ended:
            self._fail(TRUNCATED, out)
        return out

    def _sniff(self, opening: bytearray, data: bytes) -> bytes:
        """Returns all bytes so far, once they are known to be a stream."""
        opening += data
        if not self._first:
            self._first = first_byte(bytes(opening))
            if not self._first:
                opening[:] = before_first_byte(bytes(opening))
        if self._first in self.document_starts:  # empty input, too: nothing has arrived
            if len(opening) > MAX_DOCUMENT_BYTES:
                opening.clear()
                raise FrameTooLarge("the answer is too large")
            return b""
        self._opening = None
        return bytes(opening)

    def _read_stream(self, data: bytes, out: list[Event]) -> None:
        sse, repeated = self._sse, self._repeated
        blocks = sse.cut(data)
        repeated.is_between = sse.is_between
        at = repeated.read(blocks, 0, out)
        while at < len(blocks):
            block, before = blocks[at], len(out)
            frame = sse.frame(block)
            if frame is not None:
                self._frame(frame, out)
                if self._ended:
                    return
                repeated.learn(block, out[before:])
            at = repeated.read(blocks, at + 1, out)

    @abstractmethod
    def _frame(self, frame: Frame, out: list[Event]) -> None: ...

    @abstractmethod
    def _read_end(self, out: list[Event]) -> None:
        """The end of the stream's bytes. A stream that is not ended by this was cut off."""

    @abstractmethod
    def _read_document(self, document: bytes, out: list[Event]) -> None: ...

    def _flawed(self, flaw: str) -> None:
        if flaw not in self.flaws:
            self.flaws.append(flaw)

    def _fail(self, error: ApiError, out: list[Event]) -> None:
        self._ended = True
        out.append(Failure(error))
