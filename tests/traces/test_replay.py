"""A recorded exchange, translated again."""

from __future__ import annotations

import json

from msgspec.structs import replace

from tests.core.traces.conversations import PAIRS, conversation
from tests.tiers import rows
from tests.traces.recorded import recorded
from wireglot_core.traces.replay import replay
from wireglot_core.traces.target import RecordedTarget
from wireglot_core.traces.trace import Trace

ASKED = ("And in Lima?", "[[demo:tool get_weather]]", "[[demo:think]]", "[[demo:tools 2]]")


@rows("last", ASKED)
@rows("stream", [False, True])
@rows(("source", "target"), PAIRS)
def test_what_was_just_recorded_is_the_same_again(source: str, target: str, stream: bool, last: str) -> None:
    """R-DE-09"""
    again = replay(recorded(source, target, conversation(source, last), stream=stream))
    assert again.report() == ""
    assert again.notes == []
    assert again.compared == ["request", "answer"]
    assert again.is_same


def changed(trace: Trace, before: str, after: str, *, upstream: bool) -> Trace:
    attempt = trace.attempts[0]
    assert attempt.request is not None
    if not upstream:
        assert before in trace.answer.body
        return replace(trace, answer=replace(trace.answer, body=trace.answer.body.replace(before, after)))
    assert before in attempt.request.body
    sent = replace(attempt.request, body=attempt.request.body.replace(before, after))
    return replace(trace, attempts=[replace(attempt, request=sent)])


def test_a_request_that_went_otherwise_is_a_difference_at_its_place() -> None:
    trace = recorded("anthropic", "openai-chat", conversation("anthropic"))
    again = replay(changed(trace, "snow", "rain", upstream=True))
    assert not again.is_same
    assert [(each.before, each.after) for each in again.request] == [('"rain"', '"snow"')]
    assert again.request[0].pointer == "/messages/3/content"
    assert again.answer == []
    assert again.report().startswith("upstream request /messages/3/content: ")


def test_an_answer_that_was_reported_otherwise_is_a_difference_at_its_place() -> None:
    trace = recorded("anthropic", "gemini", conversation("anthropic"))
    again = replay(changed(trace, "end_turn", "max_tokens", upstream=False))
    assert [str(each) for each in again.answer] == ['/stop_reason: "max_tokens" -> "end_turn"']


def test_spelling_is_no_difference() -> None:
    trace = recorded("anthropic", "openai-chat", conversation("anthropic"))
    again = replay(
        changed(trace, '"content":"snow"', '"content":[{"type":"text","text":"snow"}]', upstream=True)
    )
    assert again.is_same
    assert again.notes == ["the upstream request is spelled differently now, and says the same"]


def test_what_the_gateway_puts_in_is_no_difference_and_a_note_names_it() -> None:
    trace = recorded("anthropic", "openai-chat", conversation("anthropic"))
    attempt = trace.attempts[0]
    assert attempt.request is not None
    body = {**json.loads(attempt.request.body), "stream_options": {"include_usage": True}}
    attempt = replace(attempt, request=replace(attempt.request, body=json.dumps(body)))
    again = replay(replace(trace, attempts=[attempt]))
    assert again.is_same
    assert again.notes == ["taken as set by the gateway itself: stream_options"]
    reported = RecordedTarget(
        limits=None, stream=False, fields={"stream_options": {"include_usage": True}}
    ).written()
    again = replay(replace(trace, attempts=[replace(attempt, limits=reported)]))
    assert again.is_same
    assert again.notes == []


def test_half_a_body_is_not_compared_and_a_note_says_so() -> None:
    trace = recorded("anthropic", "openai-chat", conversation("anthropic"))
    again = replay(replace(trace, request=replace(trace.request, truncated=True)))
    assert not again.is_same
    assert again.compared == []
    assert again.notes[0] == (
        "the request was not compared: the client's request: only the beginning of it was recorded"
    )


def test_a_passed_through_body_is_the_client_s_but_for_its_model() -> None:
    trace = recorded("anthropic", "openai-chat", conversation("anthropic"))
    body = json.loads(trace.request.body)
    attempt = replace(
        trace.attempts[0],
        dialect="anthropic",
        model="other",
        passthrough=True,
        request=replace(trace.request, body=json.dumps({**body, "model": "other"})),
        answer=trace.answer,
    )
    assert replay(replace(trace, attempts=[attempt])).is_same
