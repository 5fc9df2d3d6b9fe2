"""What stands around the turns of a body: the members before them and behind them, as they were read once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from wireglot.wire.scan import Span

SPACE: Final = re.compile(rb"[ \t\n\r]*")
SPACES: Final = b" \t\n\r"

_WORDS_BYTES: Final = 64
_MAX_MET: Final = 64
"""Conversations that have begun lately, and of which nothing else is known."""


class Piece(NamedTuple):
    """Bytes of a frame; None: the known text of this number and this length."""

    text: bytes | None
    number: int
    length: int


class BodyFrame:
    """Its head ends where the first turn begins, its tail begins where the last one ends."""

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
        """`spans`: of all members, none of which stands there twice, in their order. `known`: members whose
        text is, by number and length. The member `turns` is an array with something in it."""
        start, end = spans[turns]
        opening = SPACE.match(body, start + 1)
        assert opening is not None
        tail_starts = end - 1
        while body[tail_starts - 1] in SPACES:
            tail_starts -= 1
        self.turns: Final = turns
        self.start: Final = start
        """Of the array."""
        self.before: Final = {key: span for key, span in spans.items() if span[0] < start}
        self.after: Final = {
            key: (span[0] - tail_starts, span[1] - tail_starts)
            for key, span in spans.items()
            if span[0] > start
        }
        """Counted from the start of the tail."""
        self.head: Final = _pieces(body, 0, opening.end(), spans, known)
        self.tail: Final = _pieces(body, tail_starts, len(body), spans, known)
        self.tail_bytes: Final = len(body) - tail_starts
        self.openings: Final[list[int]] = []
        """The numbers of the turns that conversations in this frame have begun with, the latest first."""
        self._met: Final[dict[int, None]] = {}
        self.size: Final = sum([len(piece.text) for piece in (*self.head, *self.tail) if piece.text])

    def has_met(self, turn: msgspec.Raw) -> bool:
        """Whether a conversation in this frame has begun with this turn before. From now on one has. Called
        under the memory's lock."""
        key = hash(bytes(turn))
        if key in self._met:
            return True
        self._met[key] = None
        if len(self._met) > _MAX_MET:
            del self._met[next(iter(self._met))]
        return False


class KnownRun:
    """A body that came, as far as it is sure to come again: up to the end of a turn, a few before its last.
    One comparison tells that another body begins with all of that."""

    __slots__ = ("beginning", "body", "end", "frame", "members", "numbers", "words")

    def __init__(
        self, body: bytes, end: int, frame: BodyFrame, members: dict[int, int], numbers: tuple[int, ...]
    ) -> None:
        """`members`: the numbers of texts in its head, by where they start. `numbers`: those of its turns."""
        self.body: Final = body
        self.end: Final = end
        self.beginning: Final = memoryview(body)[:end]
        self.words: Final = body[max(0, end - _WORDS_BYTES) : end]
        """Its last ones: many begin with the same system text and tools."""
        self.frame: Final = frame
        self.members: Final = members
        self.numbers: Final = numbers

    def may_begin(self, body: bytes) -> bool:
        """Whether it seems so, by a few bytes."""
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
