"""Determines which upstream events each event of the client's stream was made from.

The recorded upstream stream is translated again, event by event: what a codec writes depends neither on how a
stream was split nor on how many events are written at once (laws of every dialect), so each piece that comes
out belongs to the event that went in. The result is then compared with what the client got. Nothing is
recorded for this while a request is answered, so it works for older recordings as well.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Failure,
    Finish,
    OtherAnswer,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
)
from wireglot_core.traces.again import UNREPORTED, USAGE, RequestAgain, StreamAgain, are_made_up
from wireglot_core.traces.target import TraceTarget
from wireglot_core.traces.trace import TraceFrame, TraceMessage
from wireglot_core.wire.json import BadJson, decode
from wireglot_core.wire.sse import FrameTooLarge

_GAP: Final = re.compile(r"\r\n\r\n|\n\n|\r\r")
_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[{}]', re.DOTALL)
_PING: Final = "event: ping"
_UNREPORTED: Final = UNREPORTED | USAGE | {"item_id", "obfuscation"}


class Unit(msgspec.Struct, frozen=True):
    text: str
    first: int
    """Number of the frame in which the event begins."""
    frame: int
    """Number of the frame with its last byte."""
    end: int
    """Its end offset in the whole stream."""


def units_of(pieces: Iterable[str]) -> list[Unit]:
    """The events of a stream that arrived in these pieces."""
    texts = list(pieces)
    ends = list(accumulate(map(len, texts)))
    whole = "".join(texts)
    return [
        Unit(whole[begin:end], bisect_right(ends, begin), bisect_left(ends, end), end)
        for begin, end in (_elements(whole) if whole.lstrip()[:1] in ("[", "{") else _events(whole))
    ]


def _events(whole: str) -> Iterable[tuple[int, int]]:
    begin = 0
    for gap in _GAP.finditer(whole):
        yield begin, gap.end()
        begin = gap.end()
    if begin < len(whole):
        yield begin, len(whole)


def _elements(whole: str) -> Iterable[tuple[int, int]]:
    depth = begin = 0
    for token in _TOKEN.finditer(whole):
        if token[0] == "{":
            begin = begin if depth else token.start()
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if not depth:
                yield begin, token.end()


def is_keep_alive(text: str) -> bool:
    """Whether it carries no content: empty lines, comments, a ping."""
    lines = text.split("\n", 2) if text.startswith(_PING) else text.splitlines()
    return lines[:1] == [_PING] or all(not line or line.isspace() or line.startswith(":") for line in lines)


def same_unit(one: str, other: str) -> bool:
    """Whether two events are equal, ignoring ids made by Wireglot, times and counts."""
    if one == other:
        return True
    (kind, said), (other_kind, other_said) = _read(one), _read(other)
    if kind != other_kind:
        return False
    try:
        return _agree(decode(said), decode(other_said))
    except BadJson:
        return said == other_said


def _read(text: str) -> tuple[str, str]:
    kind, data = "", []
    if text.lstrip()[:1] in ("{", "["):
        return kind, text
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "event":
            kind = value.strip()
        elif name == "data":
            data.append(value.strip())
    return kind, "\n".join(data)


def _agree(one: Any, other: Any) -> bool:
    stack = [(one, other)]
    while stack:
        left, right = stack.pop()
        if type(left) is dict and type(right) is dict:
            names = left.keys() - _UNREPORTED
            if names != right.keys() - _UNREPORTED:
                return False
            stack += [(left[name], right[name]) for name in names]
        elif type(left) is list and type(right) is list:
            if len(left) != len(right):
                return False
            stack += zip(left, right, strict=True)
        elif type(left) is str and type(right) is str:
            if left != right and not are_made_up(left, right):
                return False
        elif not (_is_number(left) and _is_number(right)) and left != right:
            return False
    return True


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


_LOOKED_AHEAD: Final = 8
"""Number of events that may differ before both streams agree again."""


class MadeEvent(NamedTuple):
    """An event that the client should have received."""

    text: str
    causes: list[int]
    """The numbers of the upstream's frames that caused it."""
    is_failure: bool = False
    """An error that ends the stream: a gateway reports it in its own words."""


def with_causes(
    answer: TraceMessage,
    came: TraceMessage,
    client: str,
    target: TraceTarget,
    asked: RequestAgain | None,
) -> TraceMessage:
    """The client's stream, each frame with the numbers of the upstream's frames that caused it."""
    if answer.caused_by or not answer.frames or not came.frames:
        return answer
    if target.passthrough:
        made = _passed(came.frames)
    elif asked is not None:
        made = _Translated(client, target, asked).made(came)
    else:
        return answer
    reported = units_of(frame.data for frame in answer.frames)
    causes, known = _aligned(reported, made)
    if known < len(reported):
        _by_times(causes, reported[known:], answer.frames, came.frames)
    frames = [
        replace(frame, causes=sorted(causes.get(number, ()))) for number, frame in enumerate(answer.frames)
    ]
    return replace(answer, frames=frames, caused_by="events" if known == len(reported) else "times")


def _passed(frames: Sequence[TraceFrame]) -> list[MadeEvent]:
    units = units_of(frame.data for frame in frames)
    return [MadeEvent(unit.text, list(range(unit.first, unit.frame + 1))) for unit in units]


class _Translated:
    """The client's stream, made again from the upstream's."""

    def __init__(self, client: str, target: TraceTarget, asked: RequestAgain) -> None:
        self._reader = dialect(target.dialect).stream_reader(asked.context)
        self._stream = StreamAgain(client, target, asked)
        self._pieces: list[MadeEvent] = []
        self._waiting: list[int] = []
        """Frames for which nothing was written yet."""
        self._of_part: dict[int, list[int]] = {}
        """The same, for frames whose part is known."""
        self._for_end: list[int] = []
        """Frames whose content is only written at the end."""
        self._usage: list[int] = []
        self._last: list[int] = []

    def made(self, came: TraceMessage) -> list[MadeEvent]:
        try:
            for number, frame in enumerate(came.frames):
                if not is_keep_alive(frame.data):
                    self._last = [number]
                read = self._reader.read(frame.data.encode("utf-8", "surrogatepass"))
                if not read and not is_keep_alive(frame.data):
                    self._waiting.append(number)
                self._take(read, [number])
            if not came.truncated:
                self._take(self._reader.end(), [])
        except (WireglotError, BadJson, FrameTooLarge):
            pass  # the rest cannot be read by this version; the output so far was caused by the input so far
        units = units_of(piece.text for piece in self._pieces)
        return [self._pieces[unit.frame]._replace(text=unit.text) for unit in units]

    def _take(self, read: list[Event], now: list[int]) -> None:
        events = self._stream.events(read)
        passed = {id(event) for event in events}
        for event in read:
            if id(event) not in passed and type(event) is Delta:
                self._of_part.setdefault(event.index, []).extend(now)
        before = len(self._pieces)
        for event in events:
            written = self._stream.writer.write([event])
            if written:
                self._wrote(event, written.decode("utf-8", "replace"), now)
            else:
                self._wait(event, now)
        if len(self._pieces) > before:  # frames without output of their own count as causes of all of these
            self._waiting = []

    def _wait(self, event: Event, now: list[int]) -> None:
        match event:
            case Delta() if event.text or event.logprobs:
                self._of_part.setdefault(event.index, []).extend(now)
            case PartStart():
                self._of_part.setdefault(event.index, []).extend(now)
            case PartEnd() if event.index in self._of_part:
                self._of_part[event.index].extend(now)
            case Start():
                self._waiting += now
            case UsageReport():
                self._usage = now
            case OtherAnswer():
                self._for_end += now
            case _:
                pass

    def _wrote(self, event: Event, text: str, now: list[int]) -> None:
        match event:
            case Failure():
                self._pieces.append(MadeEvent(text, now, is_failure=True))
                return
            case Finish():
                parts = [number for numbers in self._of_part.values() for number in numbers]
                causes = {*self._waiting, *parts, *self._for_end, *self._usage, *now}
                self._of_part.clear()
            case Delta() | PartStart() | PartEnd():
                causes = {*self._waiting, *self._of_part.pop(event.index, ()), *now}
            case _:
                causes = {*self._waiting, *now}
        first = sorted(causes) or self._last
        units = units_of([text]) if type(event) is PartEnd and self._of_part else []
        if len(units) < 2:
            self._pieces.append(MadeEvent(text, first))
            return
        # After the end of this part, held events are written: those of parts that arrived at the same time.
        waited = {number for numbers in self._of_part.values() for number in numbers}
        self._of_part.clear()
        cut = units[0].end
        then = sorted({*waited, *now}) or self._last
        self._pieces += [MadeEvent(text[:cut], first), MadeEvent(text[cut:], then)]


def _aligned(reported: list[Unit], made: list[MadeEvent]) -> tuple[dict[int, set[int]], int]:
    """Causes by the number of the client's frame, and the number of its events whose causes are known."""
    causes: dict[int, set[int]] = {}
    here = there = 0
    while here < len(reported):
        if there < len(made) and (
            same_unit(reported[here].text, made[there].text)
            or (made[there].is_failure and len(reported) - here <= len(made) - there)
        ):
            causes.setdefault(reported[here].frame, set()).update(made[there].causes)
            here, there = here + 1, there + 1
        elif is_keep_alive(reported[here].text):
            here += 1
        else:
            found = _agreeing(reported[here:], made[there:])
            if found is None:
                return causes, here
            # One differs from the other, or exists on one side only; after them both are equal.
            others = {number for each in made[there : there + found[1]] for number in each.causes}
            for step in range(found[0]):
                one = made[there + step].causes if found[0] == found[1] else others
                causes.setdefault(reported[here + step].frame, set()).update(one)
            here, there = here + found[0], there + found[1]
    return causes, here


def _agreeing(reported: list[Unit], made: list[MadeEvent]) -> tuple[int, int] | None:
    """How many events to skip on each side until the streams agree again: the nearest match."""
    for far in range(1, 2 * _LOOKED_AHEAD):
        for here in range(max(0, far - _LOOKED_AHEAD), min(far, _LOOKED_AHEAD) + 1):
            there = far - here
            if (
                here < len(reported)
                and there < len(made)
                and same_unit(reported[here].text, made[there].text)
            ):
                return here, there
    return None


def _by_times(
    causes: dict[int, set[int]], units: list[Unit], frames: Sequence[TraceFrame], came: Sequence[TraceFrame]
) -> None:
    """Assigns the frames of the last read before an event was written."""
    times = list(accumulate((frame.ms for frame in came), max))
    for unit in units:
        if is_keep_alive(unit.text):
            continue
        end = bisect_right(times, frames[unit.frame].ms)
        if end:
            begin = bisect_left(times, times[end - 1])
            causes.setdefault(unit.frame, set()).update(range(begin, end))
