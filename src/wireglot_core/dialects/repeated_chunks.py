"""Recognizes frames that differ from the one before only in their text: most of a stream.

If all other bytes are equal, such a frame has the meaning of the last one with another text. Only its text is
decoded, which costs a fraction of parsing the whole frame. The text is prose, reasoning, or a piece of a
call's arguments. Padding may differ too, as may numbers of which only the last counts.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Final

import msgspec

from wireglot_core.ir.stream import Delta, Event
from wireglot_core.wire.json import decode
from wireglot_core.wire.shape import Shape

Place = tuple[dict[str, Any], str]
"""A reference to a value: the object that contains it, and its key."""

_DATA: Final = b"data: "
_EVENT: Final = b"event: "
_LINE_END: Final = b"\n"
_GAP: Final = b"\n\n"
_QUOTE, _BACKSLASH, _ZERO = b'"\\0'
_TRIES: Final = 4
"""Number of frames in a row that are learned without success: some servers number or time each one."""

_decode_text = msgspec.json.Decoder(str).decode


class RepeatedChunks(ABC):
    """Keeps the shape of the last frame if a text was all its content: a frame of the same shape repeats
    it."""

    __slots__ = (
        "_end", "_index", "_most", "_place", "_said", "_shape", "_strings", "_tries", "is_between",
        "last",
    )  # fmt: skip

    varying: ClassVar[re.Pattern[bytes]]
    """Matches values that may differ: the group is the inside of a non-empty string, or an integer."""

    def __init__(self, most: int) -> None:
        """`most`: maximum bytes of a frame."""
        self.is_between = False
        """Whether the next bytes begin a frame; set by the reader."""
        self._most = most
        self.last = b""
        self._shape: Shape | None = None
        self._end = b""  # end of such a frame, with the blank line after it
        self._place = 0  # of the text among the values
        self._strings: list[bool] = []  # whether each value is one
        self._index = -1  # the part its text belongs to
        self._said: list[str] | None = None
        self._tries = _TRIES

    @abstractmethod
    def text_place(self, document: dict[str, Any]) -> Place | None:
        """The place of the text in a frame; None if the frame has several texts, or anything else that must
        be accumulated."""

    @abstractmethod
    def beside(self, document: dict[str, Any]) -> Iterable[Place]:
        """Other values that may differ, and have no meaning or replace that of the frame before."""

    def said_of(self, index: int, holder: dict[str, Any]) -> list[str] | None:
        """The list in which the reader collects the texts of the part with this index; None if it does not
        collect them. `holder`: the object with the frame's text."""
        return None

    def last_reported(self) -> dict[str, Any] | None:
        """The last frame that was not parsed in full (`last`), now decoded; None on a second call."""
        last, self.last = self.last, b""
        if not last:
            return None
        block = last.removesuffix(_GAP)
        document: dict[str, Any] = decode(block[_data_start(block) :])
        return document

    def tells_again(self, said: list[str], text: str) -> bool:
        """Whether a collected piece must be parsed in full."""
        return False

    def alone(self, data: bytes) -> Delta | None:
        """The delta if these bytes are exactly one such frame."""
        shape, size = self._shape, len(data)
        if shape is None or not self.is_between or size > self._most:
            return None
        last = self._end
        end = size - len(last)
        if data[: shape.start] != shape.first or data[end:] != last:
            return None
        return self._delta(shape, data, end)

    def read(self, blocks: list[bytes], at: int, out: list[Event]) -> int:
        """Parse the frames from index `at` on that repeat the last one; returns the index of the first that
        does not."""
        shape = self._shape
        if shape is None:
            return at
        first, last, start, cut = shape.first, shape.last, shape.start, len(shape.last)
        for block in blocks[at:] if at else blocks:
            end = len(block) - cut
            if block[:start] != first or block[end:] != last:
                break
            delta = self._delta(shape, block, end)
            if delta is None:
                break
            out.append(delta)
            at += 1
        return at

    def _delta(self, shape: Shape, data: bytes, end: int) -> Delta | None:
        try:
            # With the quotes around it, so that the bytes between them are one string.
            text = _decode_text(
                self._among_others(shape, data[shape.start : end])
                if shape.between
                else data[shape.start - 1 : end + 1]
            )
        except ValueError:  # half a character, or not a string: it is parsed in full
            return None
        if not text:
            return None
        said = self._said
        if said is not None:
            if self.tells_again(said, text):
                return None
            said.append(text)
        self.last = data
        self._tries = _TRIES
        return Delta(self._index, text)

    def _among_others(self, shape: Shape, inside: bytes) -> bytes:
        """The text of a frame with other values; empty if these cannot be verified cheaply."""
        text = b""
        place, strings = self._place, self._strings
        for number, literal in enumerate(shape.between):
            value, found, inside = inside.partition(literal)
            if not found:
                return b""
            if number == place:
                text = value
            elif not _may_stand(value, strings[number]):
                return b""
        if place == len(shape.between):
            text = inside
        elif not _may_stand(inside, strings[-1]):
            return b""
        return b'"%b"' % text

    def learn(self, block: bytes, said: list[Event]) -> None:
        """Remember a frame that was parsed in full and gave the events `said`."""
        self._shape = None
        if len(said) != 1 or not self._tries:
            return
        event = said[0]
        if type(event) is not Delta or event.logprobs or self.varying.search(block) is None:
            return
        self._tries -= 1
        learned = self._learned(block, event.text)
        if learned is not None:
            self._shape, self._place, self._strings, holder = learned
            self._end = self._shape.last + _GAP
            self._index = event.index
            self._said = self.said_of(event.index, holder)

    def _learned(self, block: bytes, text: str) -> tuple[Shape, int, list[bool], dict[str, Any]] | None:
        """The shape of a frame, the index of the text among its values, which values are strings, and the
        object that contains the text."""
        start = _data_start(block)
        document = decode(block[start:]) if start else None
        if type(document) is not dict:
            return None
        place = self.text_place(document)
        if place is None or place[0][place[1]] != text:
            return None
        shape = Shape(block, self.varying)
        # The same key may occur elsewhere in the frame: other values must change this text and the values
        # that may differ, and nothing else.
        strings = [literal[-1] == _QUOTE for literal in (shape.first, *shape.between)]
        probes = [
            b"?%d" % number if is_string else b"90%d" % number for number, is_string in enumerate(strings)
        ]
        changed = decode(shape.filled(probes)[start:])
        found = self.text_place(changed)
        probe = found[0][found[1]].encode() if found is not None else b""
        if probe not in probes:
            return None
        place[0][place[1]] = probe.decode()
        for (holder, key), (other, _) in zip(self.beside(document), self.beside(changed), strict=False):
            holder[key] = other[key]
        return (shape, probes.index(probe), strings, place[0]) if changed == document else None


def _may_stand(value: bytes, is_string: bool) -> bool:
    """Whether the value is certainly a string without escapes, or an integer: invalid JSON is reported by the
    reader that parses the whole frame."""
    if not is_string:
        return value.isdigit() and (len(value) == 1 or value[0] != _ZERO)
    if value.isalnum():  # the case of most padding
        return True
    if _QUOTE in value or _BACKSLASH in value:
        return False
    return value.isascii() and value.decode().isprintable()


def _data_start(block: bytes) -> int:
    """The start of the data in a frame with one data line, with or without an event name; else 0."""
    if block.startswith(_DATA):
        start = len(_DATA)
    elif block.startswith(_EVENT) and (end := block.find(_LINE_END + _DATA)) >= 0:
        start = end + len(_LINE_END + _DATA)
        if block.find(_LINE_END, 0, end) >= 0:
            return 0
    else:
        return 0
    return start if block.find(_LINE_END, start) < 0 else 0
