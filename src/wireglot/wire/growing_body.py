"""Bodies that were there before, but for a few turns at their end: what is known is compared, not read.

A client sends one conversation again and again in one frame: the same members before its turns (the head) and
behind them (the tail). Where a body begins with a head that was read before, goes on with turns that were and
ends with the tail, only what stands between the last of those and the tail is looked at, as the items of an
array. That is as good as reading all of it: each of these texts begins where the one before it has left off,
and a text that was read there before is read there in the same way again.

A turn is looked for where it stood last time: behind the one before it. Its bytes are compared, so whatever
is tried there can only be found or not.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from wireglot.wire.body_frame import SPACE, SPACES, BodyFrame, Piece, Span
from wireglot.wire.memory import KnownText, Memory

_items: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_COMMA: Final = re.compile(rb"[ \t\n\r]*,[ \t\n\r]*")


class Grown(NamedTuple):
    """A body of which all but `rest` is known."""

    frame: BodyFrame
    spans: dict[str, Span]
    texts: dict[int, KnownText]
    """Members that are known as a whole, by where they start."""
    turns: list[KnownText]
    """Those at the beginning that are known."""
    rest: list[msgspec.Raw]
    """The others."""
    fresh: int
    """How many bytes those have."""


def compare(body: bytes, memory: Memory, turns: str, fresh_most: int | None = None) -> Grown | None:
    """None where it is in no frame that is known; then it may be no JSON at all. Also where more than
    `fresh_most` bytes of it would be to read."""
    for frame in memory.frames:
        tail_starts = len(body) - frame.tail_bytes
        texts: dict[int, KnownText] = {}
        head_ends = _match(body, 0, frame.head, memory, texts) if frame.turns == turns else 0
        if not 0 < head_ends < tail_starts or not _match(body, tail_starts, frame.tail, memory, texts):
            continue
        found: list[KnownText] = []
        at = _follow(body, head_ends, tail_starts, frame, memory, found)
        rest: list[msgspec.Raw] = []
        if fresh_most is not None and tail_starts - at > fresh_most:
            return None
        if at < tail_starts:
            try:
                rest = _items(b"[%b]" % body[at:tail_starts])
            except (ValueError, RecursionError):
                return None
        if at > tail_starts or not (rest or at == tail_starts):
            return None
        memory.use(frame)
        closing = SPACE.match(body, tail_starts)
        assert closing is not None
        spans = dict(frame.before)
        spans[turns] = (frame.start, closing.end() + 1)
        for key, (start, end) in frame.after.items():
            spans[key] = (start + tail_starts, end + tail_starts)
        return Grown(frame, spans, texts, turns=found, rest=rest, fresh=tail_starts - at)
    return None


def _match(
    body: bytes, at: int, pieces: tuple[Piece, ...], memory: Memory, texts: dict[int, KnownText]
) -> int:
    """Where they end; 0 where something else stands there."""
    for text, number, length in pieces:
        if text is None:
            known = memory.text(number)
            if known is None or len(known.stated) != length:
                return 0
            text = known.stated
            texts[at] = known
        if not body.startswith(text, at):
            return 0
        at += length
    return at


def _follow(body: bytes, at: int, end: int, frame: BodyFrame, memory: Memory, found: list[KnownText]) -> int:
    """Where known turns leave off: at `end`, before it where another one begins, behind it where the text
    cannot go on so."""
    numbers = frame.openings
    text_of = memory.text
    starts = body.startswith
    used: set[int] = set()  # two turns of the same words are two
    comma = b","
    while True:
        for number in numbers:
            known = text_of(number)
            if known is not None and starts(known.stated, at) and number not in used:
                break
        else:
            return at if at < end else end + 1
        ends = at + len(known.stated)
        if ends > end:
            return end + 1
        found.append(known)
        used.add(number)
        if ends == end:
            return end
        if not starts(comma, ends) or body[ends + len(comma)] in SPACES:
            between = _COMMA.match(body, ends)
            if between is None:
                return end + 1
            comma = between[0]
        at = ends + len(comma)
        numbers = known.behind
