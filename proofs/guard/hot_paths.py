"""What is counted of the core alone: one event, of every pair of dialects. Whole requests: see gateway.py.

`python -m proofs.guard.hot_paths` runs them all under valgrind's callgrind, which is asked to begin a new
count at every call of `getppid`: nothing else here calls it. Each path is run a few times first, so that the
interpreter has specialised its code and all tables are made; what is prepared for a run is not counted.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import permutations
from typing import NamedTuple

from proofs.bench.bodies import body
from proofs.bench.streams import MODELS, stream
from wireglot_core import StreamTranslator
from wireglot_core.dialects.registry import DialectName

MARK = "getppid"
"""The function of the C library whose call begins a new count."""

EVENTS = 50
"""Of one kind in a counted stream."""
_FIRST_EVENTS = 10

_COUNTED_WORD = re.compile(rb"word (\d+) of it")

Run = Callable[[], object]


class HotPath(NamedTuple):
    name: str
    prepare: Callable[[int], Run]
    """The number of the turn -> what is counted."""
    warm: int
    turns: int
    units: int = 1
    """What one run works on: so many events."""


def hot_paths() -> Iterator[HotPath]:
    for source, target in permutations(MODELS, 2):
        pair = f"{source} > {target}"
        yield HotPath(f"core, a text event: {pair}", partial(_events, source, target, "text"), 2, 2, EVENTS)
        # A Gemini call is one event.
        if target != "gemini":
            call = partial(_events, source, target, "call")
            yield HotPath(f"core, an event of a call's arguments: {pair}", call, 2, 2, EVENTS)


def _events(client: DialectName, upstream: DialectName, kind: str, turn: int) -> Run:
    """In the midst of a stream: its first events warm it up."""
    frames = _stream(upstream, kind, _FIRST_EVENTS + EVENTS)
    start = next(index for index, frame in enumerate(frames) if _word(frame) == _FIRST_EVENTS)
    begun, middle = frames[:start], frames[start : start + EVENTS]
    translator = StreamTranslator(
        source=upstream, target=client, request=_asked(client), model=MODELS[upstream]
    )
    for frame in begun:
        translator.feed(frame)

    def run() -> None:
        feed = translator.feed
        for frame in middle:
            feed(frame)

    return run


def _word(frame: bytes) -> int | None:
    found = _COUNTED_WORD.search(frame)
    return int(found[1]) if found else None


@cache
def _asked(name: DialectName) -> bytes:
    return body(name, "2k", MODELS[name], stream=True)


@cache
def _stream(name: DialectName, kind: str, events: int) -> list[bytes]:
    if kind == "text":
        words = [{"type": "text_delta", "text": f" word {number} of it"} for number in range(events)]
        return stream(name, {"type": "text", "text": ""}, words, stop="end_turn", tokens=events * 5)
    call = {"type": "tool_use", "id": "toolu_0000", "name": "tool_0", "input": {}}
    pieces = ['{"path": "', *(f"word {number} of it, " for number in range(events)), '"}']
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return stream(name, call, deltas, stop="tool_use", tokens=events * 5)


def run(paths: Iterator[HotPath]) -> None:
    """One count for everything up to a path's own runs, and one for these."""
    # A collection in the midst of a run would be counted to the one that was there.
    gc.disable()
    for path in paths:
        for turn in range(path.warm):
            path.prepare(turn)()
        runs = [path.prepare(path.warm + turn) for turn in range(path.turns)]
        os.getppid()
        for counted in runs:
            counted()
        os.getppid()
        gc.collect()


def main() -> None:
    wanted = sys.argv[1:]
    run(path for path in hot_paths() if not wanted or any(text in path.name for text in wanted))


if __name__ == "__main__":
    main()
