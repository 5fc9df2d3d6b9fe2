"""Which events of an upstream's stream each event of the client's was made of."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.core.traces.conversations import NAMES, PAIRS, SCHEMA, conversation
from tests.tiers import rows
from tests.traces.recorded import recorded
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Message as Turn
from wireglot_core.ir.content import Text
from wireglot_core.ir.request import Request, Tool
from wireglot_core.traces.analysis import with_analysis
from wireglot_core.traces.causes import is_keep_alive, units_of
from wireglot_core.traces.trace import Trace, TraceFrame, TraceMessage


def words(frame: TraceFrame) -> str:
    """What a model says in one event of any dialect."""
    found: list[str] = []
    for line in frame.data.splitlines():
        if line.startswith("data: {"):
            _words(json.loads(line[6:]), found)
    return "".join(found)


def _words(value: Any, found: list[str]) -> None:
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if name in ("text", "content", "delta", "partial_json", "arguments") and isinstance(inner, str):
            found.append(inner)
        elif isinstance(inner, dict | list):
            _words(inner, found)


def came(trace: Trace) -> list[TraceFrame]:
    answer = trace.attempts[-1].answer
    assert answer is not None
    return answer.frames


def caused(trace: Trace, frame: TraceFrame) -> list[TraceFrame]:
    return [came(trace)[number] for number in frame.causes]


def cut(message: TraceMessage) -> TraceMessage:
    """As a gateway records it: a frame is an event."""
    units = units_of(frame.data for frame in message.frames)
    frames = [TraceFrame(message.frames[unit.frame].ms, unit.text) for unit in units]
    return replace(message, frames=frames)


def question(name: str, words: str) -> dict[str, Any]:
    asked = Request(
        "demo-model",
        (Turn("user", (Text(words),)),),
        tools=(Tool("get_weather", "The weather in a city", SCHEMA),),
        max_tokens=300,
    )
    document: dict[str, Any] = dialect(name).render_request(asked, Context()).value
    return document


def streamed(source: str, target: str, words: str = "[[demo:text 12]]") -> Trace:
    trace = recorded(source, target, question(source, words), stream=True)
    attempt = trace.attempts[0]
    assert attempt.answer is not None
    attempts = [replace(attempt, answer=cut(attempt.answer))]
    return replace(trace, answer=cut(trace.answer), attempts=attempts)


@rows(("source", "target"), PAIRS)
def test_every_word_is_of_the_event_that_brought_it(source: str, target: str) -> None:
    trace = with_analysis(streamed(source, target))
    assert trace.answer.caused_by == "events"
    said = 0
    for frame in trace.answer.frames:
        assert frame.causes, frame.data
        if (
            len(frame.causes) == 1
            and words(frame)
            and words(frame) == "".join(map(words, caused(trace, frame)))
        ):
            said += 1
    assert said > 5


@rows(("source", "target"), PAIRS)
def test_every_event_that_says_something_has_become_one(source: str, target: str) -> None:
    trace = with_analysis(streamed(source, target, "[[demo:think]] [[demo:tools 2]]"))
    assert trace.answer.caused_by == "events"
    known = {number for frame in trace.answer.frames for number in frame.causes}
    for number, frame in enumerate(came(trace)):
        assert number in known or not words(frame) or is_repeated(frame), frame.data


def is_repeated(frame: TraceFrame) -> bool:
    """Whether it says once more, whole, what was said in pieces."""
    return ".done" in frame.data or "response.completed" in frame.data


def test_a_call_that_is_reported_whole_is_of_all_its_pieces() -> None:
    trace = with_analysis(streamed("gemini", "openai-chat", "[[demo:tool get_weather]]"))
    (call,) = (frame for frame in trace.answer.frames if "functionCall" in frame.data)
    pieces = [number for number, frame in enumerate(came(trace)) if '"tool_calls"' in frame.data]
    assert len(pieces) > 1
    assert set(pieces) <= set(call.causes)


@rows(("source", "target"), PAIRS)
def test_keep_alives_are_of_nothing_and_shift_nothing(source: str, target: str) -> None:
    trace = streamed(source, target)
    plain = with_analysis(trace).answer.frames
    ping = TraceFrame(2.5, ": ping\n\n")
    frames = [each for frame in trace.answer.frames for each in (ping, frame)]
    reported = with_analysis(replace(trace, answer=replace(trace.answer, frames=frames))).answer
    assert reported.caused_by == "events"
    assert [frame.causes for frame in reported.frames[0::2]] == [[]] * len(plain)
    assert [frame.causes for frame in reported.frames[1::2]] == [frame.causes for frame in plain]


@pytest.mark.parametrize("name", NAMES)
def test_what_passes_through_is_of_itself(name: str) -> None:
    trace = streamed(name, "gemini" if name != "gemini" else "anthropic")
    attempt = replace(
        trace.attempts[0], dialect=name, passthrough=True, request=trace.request, answer=trace.answer
    )
    reported = with_analysis(replace(trace, attempts=[attempt])).answer
    assert reported.caused_by == "events"
    assert [frame.causes for frame in reported.frames] == [[number] for number in range(len(reported.frames))]


def test_what_was_taken_out_or_repaired_on_the_way_leaves_the_rest_as_it_is() -> None:
    trace = streamed("openai-chat", "anthropic")
    attempt = replace(trace.attempts[0], dialect="openai-chat", passthrough=True, answer=trace.answer)
    frames = list(trace.answer.frames)
    frames[3] = replace(frames[3], data='data: {"mended": true}\n\n')
    del frames[-2]
    reported = with_analysis(
        replace(trace, answer=replace(trace.answer, frames=frames), attempts=[attempt])
    ).answer
    assert reported.caused_by == "events"
    numbers = [*range(len(frames) - 1), len(frames)]
    assert [frame.causes for frame in reported.frames] == [[number] for number in numbers]


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_an_array_in_pieces_is_of_the_pieces_that_its_elements_came_in(size: int) -> None:
    elements = [
        json.dumps({"candidates": [{"content": {"parts": [{"text": f"{number} }}"}]}}]})
        for number in range(5)
    ]
    whole = "[" + ",\r\n".join(elements) + "]"
    pieces = [TraceFrame(float(at), whole[at : at + size]) for at in range(0, len(whole), size)]
    begins = [whole.index(element) for element in elements]
    got = [TraceFrame(9.0, (",\r\n" if at else "[") + element) for at, element in enumerate(elements)]
    trace = streamed("gemini", "anthropic")
    attempt = replace(
        trace.attempts[0], dialect="gemini", passthrough=True, answer=TraceMessage(status=200, frames=pieces)
    )
    answer = TraceMessage(status=200, frames=[*got, TraceFrame(9.5, "]")])
    reported = with_analysis(replace(trace, attempts=[attempt], answer=answer)).answer
    assert reported.caused_by == "events"
    expected = [
        list(range(begin // size, (begin + len(element) - 1) // size + 1))
        for begin, element in zip(begins, elements, strict=True)
    ]
    assert [frame.causes for frame in reported.frames[:-1]] == expected


def test_a_stream_that_broke_off_ends_in_an_event_of_the_gateways_own() -> None:
    trace = streamed("anthropic", "openai-chat")
    attempt = trace.attempts[0]
    assert attempt.answer is not None
    broken = replace(attempt.answer, frames=attempt.answer.frames[:4])
    error = 'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"gone"}}\n\n'
    keeps = with_analysis(trace).answer.frames
    frames = [frame for frame in keeps if frame.causes and max(frame.causes) < 4]
    plain = [replace(frame, causes=[]) for frame in frames]
    answer = replace(trace.answer, frames=[*plain, TraceFrame(9.0, error)])
    reported = with_analysis(replace(trace, answer=answer, attempts=[replace(attempt, answer=broken)])).answer
    assert [frame.causes for frame in reported.frames[:-1]] == [frame.causes for frame in frames]
    assert reported.frames[-1].causes == []


def test_what_is_not_the_same_translation_is_reported_by_its_times() -> None:
    trace = streamed("anthropic", "openai-chat")
    strange = [
        TraceFrame(float(number) + 0.5, f'data: {{"strange": "{number}"}}\n\n') for number in range(12)
    ]
    upstream = [TraceFrame(float(number // 2), frame.data) for number, frame in enumerate(came(trace))]
    attempt = replace(trace.attempts[0], answer=TraceMessage(status=200, frames=upstream))
    reported = with_analysis(
        replace(trace, answer=replace(trace.answer, frames=strange), attempts=[attempt])
    ).answer
    assert reported.caused_by == "times"
    assert [frame.causes for frame in reported.frames[:3]] == [[0, 1], [2, 3], [4, 5]]


def test_a_client_that_left_is_reported_as_far_as_it_got() -> None:
    trace = streamed("openai-responses", "gemini")
    whole = with_analysis(trace).answer.frames
    reported = with_analysis(
        replace(trace, answer=replace(trace.answer, frames=trace.answer.frames[:7]))
    ).answer
    assert reported.caused_by == "events"
    assert reported.frames == whole[:7]


def test_one_document_on_either_side_has_no_events_to_link() -> None:
    trace = streamed("anthropic", "gemini")
    whole = recorded("anthropic", "gemini", conversation("anthropic"))
    for reported in (
        with_analysis(replace(trace, attempts=whole.attempts)),
        with_analysis(replace(trace, answer=whole.answer)),
    ):
        assert reported.answer.caused_by == ""
        assert not any(frame.causes for frame in reported.answer.frames)


@rows(
    ("text", "silent"),
    [
        (": ping\n\n", True),
        ("\n", True),
        ("\r\n\r\n", True),
        ('event: ping\ndata: {"type": "ping"}\n\n', True),
        ("data: [DONE]\n\n", False),
        ("event: pinged\ndata: {}\n\n", False),
        (": note\ndata: {}\n\n", False),
    ],
)
def test_a_keep_alive_is_known(text: str, silent: bool) -> None:
    assert is_keep_alive(text) == silent
