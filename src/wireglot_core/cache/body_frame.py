"""The frame of a body: the members before and after its turns, as they were parsed the first time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from wireglot_core.wire.scan import Span

SPACE: Final = re.compile(rb"[ \t\n\r]*")
SPACES: Final = b" \t\n\r"

_WORDS_BYTES: Final = 64
_MAX_MET: Final = 64
"""Conversations that began recently and of which nothing else is known yet."""


class Piece(NamedTuple):
    """A piece of a frame. `text` is its bytes; None means the known text with this number and length."""

    text: bytes | None
    number: int
    length: int


class BodyFrame:
    """The head ends where the first turn begins; the tail begins where the last turn ends."""

    __slots__ = (
        "_met",
        "after",
        "before",
        "head",
        "openings",
        "size",
        "start",
        "tail",
        "tail_bytes",
        "turns",
    )

    def __init__(
        self, body: bytes, spans: Mapping[str, Span], known: Mapping[str, tuple[int, int]], turns: str
    ) -> None:
        """`spans`: all members in order, without repeated keys. `known`: the number and length of the text of
        each member that is known. The member `turns` is a non-empty array."""
        start, end = spans[turns]
        opening = SPACE.match(body, start + 1)
        assert opening is not None
        tail_starts = end - 1
        while body[tail_starts - 1] in SPACES:
            tail_starts -= 1
        self.turns: Final = turns
        self.start: Final = start
        """Offset at which the array begins."""
        self.before: Final = {key: span for key, span in spans.items() if span[0] < start}
        self.after: Final = {
            key: (span[0] - tail_starts, span[1] - tail_starts)
            for key, span in spans.items()
            if span[0] > start
        }
        """Spans relative to the start of the tail."""
        self.head: Final = _pieces(body, 0, opening.end(), spans, known)
        self.tail: Final = _pieces(body, tail_starts, len(body), spans, known)
        self.tail_bytes: Final = len(body) - tail_starts
        self.openings: Final[list[int]] = []
        """The numbers of the first turns of conversations in this frame, the latest first."""
        self._met: Final[dict[int, None]] = {}
        self.size: Final = sum([len(piece.text) for piece in (*self.head, *self.tail) if piece.text])

    def has_met(self, turn: msgspec.Raw) -> bool:
        """Whether a conversation in this frame has begun with this turn before. Marks the turn as seen.
        Called under the memory's lock."""
        key = hash(bytes(turn))
        if key in self._met:
            return True
        self._met[key] = None
        if len(self._met) > _MAX_MET:
            del self._met[next(iter(self._met))]
        return False


class KnownRun:
    """The beginning of an earlier body that is expected to be repeated: up to the end of a turn a few before
    the last one. A single comparison shows whether another body begins with all of it."""

    __slots__ = ("beginning", "body", "end", "frame", "members", "numbers", "words")

    def __init__(
        self, body: bytes, end: int, frame: BodyFrame, members: dict[int, int], numbers: tuple[int, ...]
    ) -> None:
        """`members`: start offset -> number of the text, for members of the head. `numbers`: of its turns."""
        self.body: Final = body
        self.end: Final = end
        self.beginning: Final = memoryview(body)[:end]
        self.words: Final = body[max(0, end - _WORDS_BYTES) : end]
        """The last bytes of the beginning: many bodies begin with the same system text and tools."""
        self.frame: Final = frame
        self.members: Final = members
        self.numbers: Final = numbers

    def may_begin(self, body: bytes) -> bool:
        """Whether `body` probably begins with this run, judged by a few bytes."""
        return body.startswith(self.words, self.end - len(self.words))


def _pieces(
    body: bytes, start: int, end: int, spans: Mapping[str, Span], known: Mapping[str, tuple[int, int]]
) -> tuple[Piece, ...]:
    pieces = []
    at = start
    for key, (value_start, value_end) in spans.items():
        if key in known and start <= value_start and value_end <= end:
            pieces.append(Piece(body[at:value_start], 0, value_start - at))
            pieces.append(Piece(None, *known[key]))
            at = value_end
    pieces.append(Piece(body[at:end], 0, end - at))
    return tuple(pieces)
