"""Finds the known part of a body that differs from an earlier one only by a few turns at its end. Known bytes
are compared, not parsed.

A client sends one conversation repeatedly in one frame: the same members before its turns (the head) and
after them (the tail). If a body begins with a known head, continues with known turns and ends with the known
tail, only the bytes between the last of those turns and the tail are parsed, as the items of an array. This
is equivalent to parsing the whole body: each of these texts begins where the one before it ended, and a text
that was parsed at that point before is parsed there in the same way again.

A turn is looked up where it was last time: after the one before it. Its bytes are compared, so a lookup can
only match or fail. In a repeated conversation, all turns but the last few are compared at once with the
previous body (`KnownRun`).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from wireglot_core.cache.body_frame import SPACE, SPACES, BodyFrame, KnownRun, Piece
from wireglot_core.cache.known_row import OPEN_TURNS
from wireglot_core.cache.texts import KnownText, Texts
from wireglot_core.wire.scan import Span

_items: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_LEAST: Final = 8
"""With fewer turns, looking them up one by one is as fast."""
_TURN_BYTES: Final = 200
"""The fixed cost of a turn, in new bytes: short turns cost the most for their size."""
_COMMA: Final = re.compile(rb"[ \t\n\r]*,[ \t\n\r]*")


class Grown(NamedTuple):
    """A body whose beginning and end are known; `rest` is new."""

    frame: BodyFrame
    spans: dict[str, Span]
    texts: dict[int, KnownText]
    """Members that are known as a whole, by start offset."""
    turns: list[KnownText]
    """The known turns at the beginning."""
    rest: list[msgspec.Raw]
    """The other turns."""
    fresh: int
    """Number of bytes of `rest`."""

    @property
    def work(self) -> int:
        return self.fresh + _TURN_BYTES * (len(self.turns) + len(self.rest))


class _Begun(NamedTuple):
    """The known part of a body, from its beginning on."""

    frame: BodyFrame
    texts: dict[int, KnownText]
    """Members of its head, by start offset."""
    turns: list[KnownText]
    at: int
    """Where the last of these turns ends, or where the first turn begins if there are none yet."""
    run: KnownRun | None


def compare(body: bytes, memory: Texts, turns: str, max_fresh: int | None = None) -> Grown | None:
    """Returns None if the body is in no known frame (it may then be invalid JSON), or if more than
    `max_fresh` bytes of it would have to be parsed."""
    for run in memory.runs:
        if run.may_begin(body) and run.frame.turns == turns and body.startswith(run.beginning):
            known, members = memory.texts(run.numbers), memory.texts(tuple(run.members.values()))
            if known is None or members is None:
                memory.drop_run(run)
                continue
            texts = dict(zip(run.members, members, strict=True))
            begun = _Begun(run.frame, texts, known, run.end, run)
            if (members_behind := _behind(body, memory, begun)) is not None:
                return _read_on(body, memory, begun, members_behind, max_fresh)
    for frame in memory.frames:
        texts = {}
        head_ends = _match(body, 0, frame.head, memory, texts) if frame.turns == turns else 0
        if head_ends:
            begun = _Begun(frame, texts, [], head_ends, None)
            if (members_behind := _behind(body, memory, begun)) is not None:
                return _read_on(body, memory, begun, members_behind, max_fresh)
    return None


def _behind(body: bytes, memory: Texts, begun: _Begun) -> dict[int, KnownText] | None:
    """The members of the frame's tail; None if the body ends differently."""
    texts: dict[int, KnownText] = {}
    tail_starts = len(body) - begun.frame.tail_bytes
    is_there = begun.at <= tail_starts and _match(body, tail_starts, begun.frame.tail, memory, texts)
    return texts if is_there else None


def _read_on(
    body: bytes, memory: Texts, begun: _Begun, behind: dict[int, KnownText], max_fresh: int | None
) -> Grown | None:
    frame, found = begun.frame, begun.turns
    tail_starts = len(body) - frame.tail_bytes
    ends: list[int] = []
    at = _follow(body, tail_starts, memory, begun, ends)
    rest: list[msgspec.Raw] = []
    if max_fresh is not None and tail_starts - at > max_fresh:
        return None
    if at < tail_starts:
        try:
            rest = _items(b"[%b]" % body[at:tail_starts])
        except (ValueError, RecursionError):
            return None
    if not rest and at != tail_starts:
        return None
    memory.use(frame)
    _settle(body, memory, begun, ends, len(found) + len(rest) - OPEN_TURNS)
    closing = SPACE.match(body, tail_starts)
    assert closing is not None
    spans = dict(frame.before)
    spans[frame.turns] = (frame.start, closing.end() + 1)
    for key, (start, end) in frame.after.items():
        spans[key] = (start + tail_starts, end + tail_starts)
    return Grown(frame, spans, begun.texts | behind, turns=found, rest=rest, fresh=tail_starts - at)


def _settle(body: bytes, memory: Texts, begun: _Begun, ends: list[int], most: int) -> None:
    """Register the first `most` turns to be compared at once next time. `ends`: the end offsets of the turns
    that were found one by one."""
    run = begun.run
    before = len(begun.turns) - len(ends)
    settled = min(len(begun.turns), most)
    if settled > before and settled >= _LEAST:
        members = {at: text.number for at, text in begun.texts.items()}
        numbers = (
            *(run.numbers if run is not None else ()),
            *[t.number for t in begun.turns[before:settled]],
        )
        memory.use_run(KnownRun(body, ends[settled - before - 1], begun.frame, members, numbers), run)
    elif run is not None:
        memory.use_run(run)


def _match(
    body: bytes, at: int, pieces: tuple[Piece, ...], memory: Texts, texts: dict[int, KnownText]
) -> int:
    """The end offset of the pieces; 0 if the body has other bytes at that position."""
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


def _follow(body: bytes, end: int, memory: Texts, begun: _Begun, ends: list[int]) -> int:
    """The offset at which known turns end: `end` itself, less than `end` if an unknown turn begins there,
    more than `end` if the text cannot continue like this. Adds the turns found to those of `begun`."""
    found, at = begun.turns, begun.at
    numbers = begun.frame.openings
    text_of = memory.text
    starts = body.startswith
    used = {known.number for known in found}  # two turns with the same text are two turns
    comma = b","
    last = found[-1] if found else None
    while True:
        if last is not None:  # a turn ends here
            if at >= end:
                return end if at == end else end + 1
            if not starts(comma, at) or body[at + len(comma)] in SPACES:
                between = _COMMA.match(body, at)
                if between is None:
                    return end + 1
                comma = between[0]
            at += len(comma)
            numbers = last.behind
        for number in numbers:
            known = text_of(number)
            if known is not None and starts(known.stated, at) and number not in used:
                break
        else:
            return at if at < end else end + 1
        last = known
        at += len(known.stated)
        found.append(known)
        ends.append(at)
        used.add(number)
