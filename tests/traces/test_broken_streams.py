"""A stream that stops before its end is reported as what came of it: its text so far, and no error nobody sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.traces.recorded import recorded
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Reasoning, Text, ToolCall
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.stream import Delta, Failure
from wireglot_core.traces.again import amounted
from wireglot_core.traces.analysis import with_analysis
from wireglot_core.traces.bodies import payload
from wireglot_core.traces.replay import replay
from wireglot_core.traces.trace import Trace, TraceFrame, TraceMessage

DIALECTS = ["anthropic", "openai-chat", "openai-responses", "gemini"]
BEFORE_ITS_END = "the stream stops here, before its end"
WITH_AN_ERROR = "the stream stops here, with an error"
WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def streamed(target: str, prompt: str = "[[demo:think 20]] [[demo:text 30]]", **more: Any) -> Trace:
    messages = [{"role": "user", "content": prompt}]
    body = {"model": "m", "max_tokens": 900, "stream": True, "messages": messages, **more}
    return recorded("anthropic", target, body, stream=True)


def cut(message: TraceMessage, frames: int) -> TraceMessage:
    return replace(message, frames=message.frames[:frames])


def said(name: str, document: dict[str, Any]) -> str:
    bare = {key: value for key, value in document.items() if key != "error"}
    content = dialect(name).parse_response(bare, Context()).content
    return "".join(part.text for part in content if isinstance(part, Text | Reasoning))


@pytest.mark.parametrize("name", DIALECTS)
def test_what_the_beginning_of_a_stream_says_is_in_what_it_amounts_to(name: str) -> None:
    answer = streamed(name).attempts[0].answer
    assert answer is not None
    whole = said(name, amounted(name, payload(answer)).document)
    deltas: list[str] = []
    for frames in range(3, len(answer.frames) - 4, 3):
        data = payload(cut(answer, frames))
        deltas = [
            each.text for each in dialect(name).stream_reader(Context()).read(data) if type(each) is Delta
        ]
        for there in (data, data + b'data: {"ty'):
            came = amounted(name, there)
            assert said(name, came.document) == "".join(deltas)
            assert whole.startswith("".join(deltas))
            assert came.stops == BEFORE_ITS_END
            assert not came.document.get("error")
            assert "end_turn" not in json.dumps(came.document)
            assert "completed" not in str(came.document.get("status"))
    assert deltas


@pytest.mark.parametrize("name", DIALECTS)
def test_a_call_that_was_being_made_is_there_as_far_as_it_came(name: str) -> None:
    prompt = '[[demo:tool get_weather {"city": "Rome"}]]'
    answer = streamed(name, prompt, tools=[WEATHER]).attempts[0].answer
    assert answer is not None
    names = set()
    for frames in range(1, len(answer.frames)):
        data = payload(cut(answer, frames))
        if not dialect(name).stream_reader(Context()).read(data):
            continue
        document = amounted(name, data).document
        content = dialect(name).parse_response(document, Context()).content
        names |= {part.name for part in content if type(part) is ToolCall}
    assert names == {"get_weather"}


@pytest.mark.parametrize("name", DIALECTS)
def test_an_error_that_was_sent_stands_beside_the_text_before_it(name: str) -> None:
    answer = streamed(name).attempts[0].answer
    assert answer is not None
    beginning = payload(cut(answer, len(answer.frames) // 2))
    writer = dialect(name).stream_writer(Context())
    events = dialect(name).stream_reader(Context()).read(beginning)
    data = writer.write([*events, Failure(ApiError("overloaded", "too many at once"))])
    came = amounted(name, data)
    assert said(name, came.document) == said(name, amounted(name, beginning).document) != ""
    assert came.document["error"]["message"] == "too many at once"
    assert came.stops == WITH_AN_ERROR


def test_an_error_before_any_text_is_all_there_is() -> None:
    data = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
    came = amounted("anthropic", data)
    assert came.document == {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}


@pytest.mark.parametrize("target", DIALECTS)
def test_a_client_that_left_is_shown_what_it_got_linked_and_replayed(target: str) -> None:
    trace = streamed(target)
    attempt = trace.attempts[0]
    assert attempt.answer is not None
    came = cut(attempt.answer, len(attempt.answer.frames) * 3 // 4)
    left = replace(
        trace,
        row=replace(trace.row, state="left"),
        answer=cut(trace.answer, len(trace.answer.frames) // 2),
        attempts=[replace(attempt, answer=came)],
    )
    reported = with_analysis(left)
    upstream = reported.attempts[0].answer
    assert upstream is not None
    assert reported.answer.stops == upstream.stops == BEFORE_ITS_END
    got, sent = (
        said("anthropic", json.loads(reported.answer.folded)),
        said(target, json.loads(upstream.folded)),
    )
    assert got
    assert sent.startswith(got)
    assert reported.attempts[0].answer_links
    again = replay(left)
    assert again.is_same, again.report()
    assert again.compared == ["request", "answer"]
    frames = [TraceFrame(each.ms, each.data.replace("one ", "no ")) for each in left.answer.frames]
    other = replay(replace(left, answer=replace(left.answer, frames=frames)))
    assert [each.pointer for each in other.answer] == ["/text"]


@pytest.mark.parametrize("target", DIALECTS)
def test_a_stream_that_the_upstream_broke_off_is_replayed(target: str) -> None:
    trace = streamed(target, "[[demo:text 40]] [[demo:cut]]")
    reported = with_analysis(trace)
    upstream = reported.attempts[0].answer
    assert upstream is not None
    assert upstream.stops == BEFORE_ITS_END
    assert "error" not in json.loads(upstream.folded) or json.loads(upstream.folded)["error"] is None
    assert reported.answer.stops == WITH_AN_ERROR  # the gateway tells its client
    got = json.loads(reported.answer.folded)
    assert said("anthropic", got) == said(target, json.loads(upstream.folded)) != ""
    assert "ended before it was complete" in got["error"]["message"]
    assert reported.attempts[0].answer_links
    again = replay(trace)
    assert again.is_same, again.report()
