"""Traces come from elsewhere: whatever stands in their bodies, looking at them raises nothing."""

from __future__ import annotations

import json
import random
from typing import Any

from msgspec.structs import replace

from tests.core.traces.conversations import NAMES, conversation
from tests.tiers import WHOLE, rows
from tests.traces.recorded import recorded
from wireglot.cli.trace_view import Shown
from wireglot_core.traces.analysis import with_analysis
from wireglot_core.traces.replay import replay
from wireglot_core.traces.trace import Attempt, Trace, TraceMessage

STRANGE: tuple[Any, ...] = (
    None, True, 0, -1, 1e308, "", "x", "\ud800", [], {}, [[]], [None], {"": {}}, {"type": 1},
    {"type": "text"}, [{"type": []}], {"a/b~c.d[0]\"": 1}, "WGMK000001", {"role": "tool"}, {"content": {}},
)  # fmt: skip


class Page:
    def isatty(self) -> bool:
        return False


def spoiled(value: Any, chance: random.Random) -> Any:
    """A document with something strange in one place."""
    places: list[tuple[Any, Any]] = []
    stack = [value]
    while stack:
        each = stack.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each)) if isinstance(each, list) else ()
        for key in keys:
            places.append((each, key))
            stack.append(each[key])
    holder, key = chance.choice(places)
    if isinstance(holder, dict) and chance.random() < 0.2:
        del holder[key]
    else:
        holder[key] = chance.choice(STRANGE)
    return value


def spoil(message: TraceMessage, chance: random.Random) -> TraceMessage:
    if message.frames:
        frames = list(message.frames)
        at = chance.randrange(len(frames))
        frames[at] = replace(frames[at], data=frames[at].data.replace('"', "", 1)[chance.randrange(9) :])
        return replace(message, frames=frames)
    return replace(message, body=json.dumps(spoiled(json.loads(message.body), chance)))


def spoilt(trace: Trace, chance: random.Random) -> Trace:
    attempt: Attempt = trace.attempts[0]
    sent, came = attempt.request, attempt.answer
    assert sent is not None
    assert came is not None
    match chance.randrange(6):
        case 0:
            return replace(trace, request=spoil(trace.request, chance))
        case 1:
            return replace(trace, answer=spoil(trace.answer, chance))
        case 2:
            attempt = replace(attempt, request=spoil(sent, chance))
        case 3:
            attempt = replace(attempt, answer=spoil(came, chance))
        case 4:
            attempt = replace(attempt, limits=spoiled(json.loads(json.dumps(attempt.limits)), chance))
        case _:
            attempt = replace(attempt, dialect=chance.choice(("", "none", *NAMES)), passthrough=True)
    return replace(trace, attempts=[attempt])


@rows("stream", [False, True])
@rows("target", NAMES)
@rows("source", NAMES)
def test_a_strange_trace_is_reported_as_far_as_it_goes(source: str, target: str, stream: bool) -> None:
    trace = recorded(source, target, conversation(source, "[[demo:tools 2]]"), stream=stream)
    for seed in range(12 if WHOLE else 4):
        strange = spoilt(trace, random.Random(f"{source} {target} {stream} {seed}"))
        reported = with_analysis(strange)
        replay(strange)
        lines = Shown(Page(), full=False).trace(reported)  # type: ignore[arg-type]  # all that is asked of a stream
        assert all(len(line) <= 80 for line in lines)
        if reported.attempts[-1].links:
            Shown(Page(), full=True).sides(reported)  # type: ignore[arg-type]  # all that is asked of a stream
