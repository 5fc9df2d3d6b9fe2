"""All that is reported about recorded exchanges, between every two dialects: links, events, losses, numbers, replays.

`WIREGLOT_UPDATE=1 pytest tests/traces/test_analysis_goldens.py` writes the files again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests.core.laws.test_pair_goldens import UPDATE
from tests.core.traces.conversations import NAMES, conversation
from tests.traces.recorded import recorded
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.traces.analysis import with_analysis
from wireglot_core.traces.causes import units_of
from wireglot_core.traces.diff import sides
from wireglot_core.traces.replay import replay
from wireglot_core.traces.trace import Link, Trace, TraceFrame, TraceMessage
from wireglot_core.wire.json import decode, encode_text

GOLDENS: Final = Path(__file__).with_name("goldens")
HOSTED: Final = {
    "anthropic": {"type": "web_search_20250305", "name": "web_search"},
    "openai-responses": {"type": "web_search"},
    "gemini": {"googleSearch": {}},
}
"""Tools that their vendor runs."""


def rich(name: str) -> dict[str, Any]:
    """More than everybody has: tools of a vendor, a field that nobody knows, calls without a result."""
    body = conversation(name, "[[demo:think]] [[demo:tools 2]]")
    if name in HOSTED:
        body["tools"].append(HOSTED[name])
    return {**body, "x_future": {"a": [1]}}


def at_once(source: str, target: str, words: str) -> Trace:
    return recorded(source, target, conversation(source, words))


def streamed(source: str, target: str, words: str) -> Trace:
    """As a gateway records it: a frame is an event."""
    trace = recorded(source, target, conversation(source, words), stream=True)
    attempt = trace.attempts[0]
    assert attempt.answer is not None
    return replace(trace, answer=_cut(trace.answer), attempts=[replace(attempt, answer=_cut(attempt.answer))])


def _cut(message: TraceMessage) -> TraceMessage:
    units = units_of(frame.data for frame in message.frames)
    return replace(message, frames=[TraceFrame(message.frames[unit.frame].ms, unit.text) for unit in units])


def left(trace: Trace) -> Trace:
    """The client went before its end, and what came from upstream meanwhile is other than it got."""
    frames = trace.answer.frames
    frames = [*frames[: len(frames) // 2], TraceFrame(500.0, ": ping\n\n")]
    return replace(trace, answer=replace(trace.answer, frames=frames))


def strange(trace: Trace) -> Trace:
    """Some of the client's events are none that the upstream's make now."""
    frames = [
        replace(frame, data=frame.data.replace("demo", "other")) if number % 4 == 2 else frame
        for number, frame in enumerate(trace.answer.frames)
    ]
    return replace(trace, answer=replace(trace.answer, frames=frames))


def truncated(trace: Trace) -> Trace:
    return replace(trace, answer=replace(trace.answer, truncated=True))


def without_request(trace: Trace) -> Trace:
    return replace(trace, request=replace(trace.request, body="{"))


def passed(trace: Trace) -> Trace:
    """The same bytes on both sides."""
    (attempt,) = trace.attempts
    assert attempt.answer is not None
    sent = replace(trace.request, url=attempt.request.url if attempt.request is not None else "")
    own = replace(attempt, passthrough=True, dialect=trace.row.dialect, request=sent, answer=trace.answer)
    return replace(trace, attempts=[own])


def refused(trace: Trace) -> Trace:
    """An error of the upstream's, reported in the client's dialect."""
    (attempt,) = trace.attempts
    failed = dialect(attempt.dialect).parse_error({"error": {"message": "Too much at once."}}, 429)
    assert failed is not None
    bodies = [
        TraceMessage(status=429, body=encoded(name, failed)) for name in (attempt.dialect, trace.row.dialect)
    ]
    return replace(trace, answer=bodies[1], attempts=[replace(attempt, answer=bodies[0])])


def encoded(name: str, error: Any) -> str:
    return encode_text(dialect(name).render_error(error, Context()).value)


def exchanges(source: str, target: str) -> Iterator[tuple[str, Trace]]:
    yield "rich", recorded(source, target, rich(source))
    yield "text", at_once(source, target, "[[demo:text 5]]")
    calls = streamed(source, target, "[[demo:think]] [[demo:tools 2]]")
    yield "streamed calls", calls
    yield "streamed calls, left", left(calls)
    yield "streamed calls, strange", strange(calls)
    yield "streamed calls, truncated", truncated(calls)
    yield "streamed calls, passed", passed(calls)
    yield "streamed text", streamed(source, target, "[[demo:text 9]]")
    yield "streamed failure", streamed(source, target, "[[demo:think]] [[demo:fail-midstream]]")
    yield "cut stream", streamed(source, target, "[[demo:cut]]")
    yield "request that cannot be read", without_request(calls)
    yield "error", refused(at_once(source, target, "[[demo:text 5]]"))
    yield "nothing sent", replace(refused(calls), attempts=[])


def reported(trace: Trace) -> Iterator[str]:
    known = with_analysis(trace)
    yield from (f"note {note}" for note in known.notes)
    for attempt in known.attempts:
        yield from _links("request", attempt.links)
        yield from _links("answer", attempt.answer_links)
        yield from (f"count {line.what}: {line.client} {line.upstream}" for line in attempt.summary)
        if attempt.answer is not None and attempt.answer.stops:
            yield f"upstream {attempt.answer.stops}"
        if attempt.links and attempt.request is not None:
            found = sides(
                decode(trace.request.body), decode(attempt.request.body), attempt.links, known.losses
            )
            yield from (f"side {each.fate}: {each.client} {each.upstream} {each.detail}" for each in found)
    for loss in known.losses:
        yield f"loss {loss.feature} {loss.action} {loss.path}: {loss.pointer} {loss.upstream}"
    if known.answer.frames:
        causes = " ".join(",".join(map(str, frame.causes)) or "-" for frame in known.answer.frames)
        yield f"causes by {known.answer.caused_by or 'nothing'}: {causes}"
    if known.answer.stops:
        yield f"client {known.answer.stops}"
    again = replay(trace)
    yield f"replay {again.compared} same: {again.is_same}"
    yield from (f"replay note {note}" for note in again.notes)
    yield from (f"replay {line}" for line in again.report().splitlines())
    yield from (f"replay loss {loss.feature} {loss.pointer}" for loss in again.losses)


def _links(name: str, links: list[Link]) -> Iterator[str]:
    yield from (f"{name} {link.client} {link.upstream}" for link in links)


@pytest.mark.parametrize("source", NAMES)
def test_what_is_reported_about_exchanges_is_as_it_was(source: str) -> None:
    lines: list[str] = []
    for target in NAMES:
        for name, trace in exchanges(source, target):
            lines += ["", f"## {target}: {name}", *reported(trace)]
    text = "\n".join(lines).lstrip() + "\n"
    place = GOLDENS / f"{source}.txt"
    if UPDATE:
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8")
    assert text == place.read_text(encoding="utf-8")
