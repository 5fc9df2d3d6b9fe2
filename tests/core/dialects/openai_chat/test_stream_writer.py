"""Streams for Chat clients, judged by eye and by OpenAI's own SDK."""

from typing import Any

import httpx2
import openai
import pytest

from tests.core.dialects.openai_chat.support import CONTEXT, asked, chunks, folded, parsed, written
from wireglot_core.dialects.openai_chat import DIALECT
from wireglot_core.ir.content import (
    Citation,
    Extra,
    Foreign,
    Media,
    Origin,
    Reasoning,
    Signature,
    Text,
    TokenLogprob,
    ToolCall,
)
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Failure,
    Finish,
    ForeignEvent,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
    unfold,
)
from wireglot_core.wire.json import encode

USER = {"role": "user", "content": "x"}
USAGE = Usage(input=3, output=2)
START = Start("r1", "m")


def stream(*content, stop="end", usage=USAGE):
    return list(unfold(Response("r1", "m", content, Stop(stop), usage)))


def deltas(data):
    return [body["choices"][0]["delta"] for body in chunks(data) if body != "[DONE]" and body.get("choices")]


def accumulated(data: bytes, **settings: Any):
    """What OpenAI's stream helper makes of it."""
    answer = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=data)
    http = httpx2.Client(transport=httpx2.MockTransport(lambda request: answer))
    client = openai.OpenAI(api_key="k", http_client=http, max_retries=0)
    with client.chat.completions.stream(
        model="m", messages=[{"role": "user", "content": "x"}], **settings
    ) as events:
        for _ in events:
            pass
        return events.get_final_completion()


def test_the_terminal_sequence():
    """R-AE-01 to R-AE-07, R-AE-10, R-AE-11, R-AE-13, R-AE-14, R-DC-14"""
    data, losses = written(stream(Text("Hi")))
    first, text, finish, usage, done = chunks(data)
    assert losses == []
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert text["choices"] == [
        {"index": 0, "delta": {"content": "Hi"}, "logprobs": None, "finish_reason": None}
    ]
    assert (finish["choices"][0]["delta"], finish["choices"][0]["finish_reason"]) == ({}, "stop")
    assert (usage["choices"], usage["usage"]["total_tokens"], text["usage"]) == ([], 5, None)
    assert done == "[DONE]"
    heads = {
        (body["id"], body["object"], body["created"], body["model"]) for body in (first, text, finish, usage)
    }
    assert heads == {("chatcmpl-r1", "chat.completion.chunk", 1700000000, "m")}


def test_usage_is_reported_only_to_those_who_ask():
    """R-AC-07, R-AE-13"""
    quiet, _ = written(stream(Text("Hi")), asked(USER, stream=True))
    asking, _ = written(stream(Text("Hi")), asked(USER, stream=True, stream_options={"include_usage": True}))
    assert b"usage" not in quiet
    assert b'"total_tokens":5' in asking


def test_a_usage_report_serves_if_the_end_has_none():
    data, _ = written([START, UsageReport(USAGE), Finish(Stop("end"))])
    assert chunks(data)[-2]["usage"]["prompt_tokens"] == 3


def test_a_call_is_named_once_and_its_arguments_follow():
    """R-AE-09"""
    call = ToolCall("c1", "f", "")
    events: list[Event] = [
        START,
        PartStart(0, call),
        Delta(0, '{"a"'),
        Delta(0, ":1}"),
        PartEnd(0),
        Finish(Stop("tool_calls")),
    ]
    reported = deltas(written(events)[0])[1:-1]
    assert reported == [
        {
            "tool_calls": [
                {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]},
    ]


def test_interleaved_calls_keep_their_indices():
    """PAINS A5"""
    events: list[Event] = [
        START,
        PartStart(0, Text("")),
        Delta(0, "Hi"),
        PartEnd(0),
        PartStart(1, ToolCall("a", "f", "")),
        PartStart(2, ToolCall("b", "g", "")),
        Delta(2, "{}"),
        Delta(1, '{"x":1}'),
        PartEnd(2),
        PartEnd(1),
        Finish(Stop("tool_calls")),
    ]
    data, losses = written(events)
    assert losses == []
    calls = accumulated(data).choices[0].message.tool_calls
    assert [(call.id, call.function.arguments) for call in calls] == [("a", '{"x":1}'), ("b", "{}")]


def test_a_call_without_arguments_is_still_an_object():
    data, _ = written(stream(ToolCall("c1", "f", ""), stop="tool_calls"))
    assert accumulated(data).choices[0].message.tool_calls[0].function.arguments == "{}"


def test_a_custom_call_is_one_whole_entry_for_a_client_that_has_the_tool():
    events: list[Event] = [
        START,
        PartStart(0, ToolCall("c1", "patch", "", "custom")),
        Delta(0, "a"),
        Delta(0, "b"),
    ]
    events += [PartEnd(0), Finish(Stop("tool_calls"))]
    request = asked(USER, tools=[{"type": "custom", "custom": {"name": "patch"}}])
    data, losses = written(events, request)
    entry = {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "patch", "input": "ab"}}
    assert deltas(data)[1:-1] == [{"tool_calls": [entry]}]
    assert losses == []


def test_a_custom_call_never_breaks_the_stream_helper():
    """Trap 4 of the mapping: the helper fails on any custom call."""
    data, losses = written(stream(ToolCall("c1", "patch", "*** x", "custom"), stop="tool_calls"))
    function = accumulated(data).choices[0].message.tool_calls[0].function
    assert (function.name, function.arguments) == ("patch", '{"input":"*** x"}')
    assert [(loss.feature, loss.action) for loss in losses] == [("tool.custom", "emulated")]


def test_reasoning_is_streamed_beside_the_content():
    """R-AE-08"""
    data, losses = written(stream(Reasoning("hm"), Text("Hi")))
    assert deltas(data)[1:-1] == [{"reasoning_content": "hm"}, {"content": "Hi"}]
    assert losses == []
    message = accumulated(data).choices[0].message
    assert (message.content, message.reasoning_content) == ("Hi", "hm")


def test_parts_that_a_reader_would_join_are_declared():
    data, losses = written(stream(Text("a"), Text("b")))
    assert folded(data).content == (Text("ab"),)
    assert [(loss.path, loss.feature) for loss in losses] == [("$.content[1]", "content.position")]


def test_thoughts_without_words_leave_no_blank_lines():
    signature = Signature("s", Origin("anthropic"))
    data, _ = written(stream(Reasoning("", signature), Reasoning("", signature), Text("Hi")))
    assert all(not delta.get("reasoning_content") for delta in deltas(data))


def test_signatures_travel_beside_their_parts_and_come_back():
    """R-DA-04"""
    content = (
        Reasoning("hm", Signature("s1", Origin("anthropic"))),
        Text("Hi", signature=Signature("s2", Origin("gemini"))),
        ToolCall("c1", "f", "{}", signature=Signature("s3", Origin("gemini"))),
        ToolCall("c2", "f", "{}", signature=Signature("s4", Origin("openai-responses"), "rs_1")),
    )
    data, losses = written(stream(*content, stop="tool_calls"))
    assert losses == []
    assert folded(data).content[:2] == content[:2]
    assert [part.signature for part in folded(data).content if isinstance(part, ToolCall)] == [
        Signature("s3", CONTEXT.origin("gemini")),
        Signature("s4", Origin("openai-responses"), "rs_1"),
    ]
    assert accumulated(data).choices[0].message.content == "Hi"


def test_opaque_details_are_reported_with_the_text_and_only_once():
    details = '[{"index":0,"signature":"s","text":"hm","type":"reasoning.text"}]'
    form = {"field": "reasoning", "detail": {"index": 0, "type": "reasoning.text"}}
    thought = Reasoning(
        "hm", Signature(details, CONTEXT.origin("openai-chat")), extra=Extra("openai-chat", {}, form)
    )
    data, losses = written(stream(thought, Text("Hi")))
    assert losses == []
    assert folded(data).content[0] == thought
    message = accumulated(data).choices[0].message
    assert (message.reasoning, message.reasoning_details[0]["text"]) == ("hm", "hm")


def test_citations_images_refusals_and_logprobs_are_reported():
    """R-AE-12, R-AD-11"""
    text = Text("Hi", citations=(Citation("u", "t", start=0, end=2),), logprobs=(TokenLogprob("Hi", -0.5),))
    data, losses = written(
        stream(text, Media("image", "image/png", "iVBO"), Text("No.", refusal=True), stop="refused")
    )
    # Put together, the refusal stands before the picture.
    assert [(loss.path, loss.feature) for loss in losses] == [("$.content[2]", "content.position")]
    assert folded(data).content[1:] == (Media("image", "image/png", "iVBO"), Text("No.", refusal=True))
    first = folded(data).content[0]
    assert isinstance(first, Text)
    assert first.logprobs == text.logprobs
    assert (first.citations[0].url, first.citations[0].end) == ("u", 2)


def test_entries_of_lists_always_have_an_index():
    """Trap 3 of the mapping"""
    citations = (Citation("u", "t"), Citation("v", "w"))
    content = (Text("a", citations=citations), ToolCall("c", "f", "{}"), Text("b", citations=citations))
    data, _ = written(stream(*content, stop="tool_calls"))
    notes = [note for delta in deltas(data) for note in delta.get("annotations", ())]
    assert [note["index"] for note in notes] == [0, 1, 2, 3]
    accumulated(data)


@pytest.mark.parametrize("begun", [True, False])
def test_a_failure_is_one_error_and_no_done(begun):
    """R-DC-07"""
    events: list[Event] = [START, PartStart(0, Text("")), Delta(0, "Hi")] if begun else []
    data, _ = written([*events, Failure(ApiError("overloaded", "busy"))])
    assert chunks(data)[-1] == {
        "error": {"message": "busy", "type": "server_error", "param": None, "code": "server_is_overloaded"}
    }
    with pytest.raises(openai.APIError, match="busy"):
        accumulated(data)


def test_a_flat_error_of_this_dialect_is_wrapped_so_that_clients_see_it():
    error = DIALECT.parse_error({"object": "error", "message": "bad", "type": "invalid_request_error"}, 400)
    assert error is not None
    data, _ = written([Failure(error)])
    assert chunks(data)[-1]["error"]["message"] == "bad"


def test_a_malformed_call_ends_in_an_error():
    """Part 3"""
    assert "error" in chunks(written([START, Finish(Stop("malformed_call"))])[0])[-1]


def test_nothing_follows_the_end():
    writer = DIALECT.stream_writer(CONTEXT)
    writer.write([START, Finish(Stop("end"))])
    assert writer.write([PartStart(0, Text("late"))]) == b""


def test_foreign_things_are_declared_and_own_ones_survive():
    part = Foreign("anthropic", "server_tool_use", {"type": "server_tool_use"})
    own = {"type": "x_new", "n": 1}
    events: list[Event] = [
        START,
        PartStart(0, part),
        PartEnd(0),
        ForeignEvent("anthropic", "x_progress", {}),
        ForeignEvent("openai-chat", "x_new", own),
        Finish(Stop("end")),
    ]
    data, losses = written(events)
    assert [loss.feature for loss in losses] == ["foreign_part", "foreign_event"]
    assert encode(own) in data


def test_what_an_end_repeats_is_declared_once():
    extra = Extra("openai-responses", {"format": "x"})
    events: list[Event] = [
        START,
        PartStart(0, Text("", extra=extra)),
        Delta(0, "Hi"),
        PartEnd(0, extra=extra),
    ]
    _, losses = written([*events, Finish(Stop("end"))])
    assert [loss.path for loss in losses] == ["$.content[0].format"]


def test_events_one_by_one_give_the_same_bytes():
    events = stream(Reasoning("hm"), Text("Hi"), ToolCall("c1", "f", "{}"), stop="tool_calls")
    writer = DIALECT.stream_writer(CONTEXT)
    assert b"".join(writer.write([event]) for event in events) == written(events)[0]


def test_a_client_that_sent_a_plain_request_still_gets_its_stream():
    data, _ = written(
        stream(Text("Hi")), parsed({"model": "m", "messages": [{"role": "user", "content": "?"}]})
    )
    assert accumulated(data).choices[0].message.content == "Hi"
