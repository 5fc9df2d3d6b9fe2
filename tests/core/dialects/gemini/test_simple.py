"""The simplified form of `POST /v1/gemini`."""

import json

import pytest

from tests.tiers import rows
from wireglot_core import translate_request
from wireglot_core.dialects.context import Context, is_minted
from wireglot_core.dialects.gemini.simple import DIALECT
from wireglot_core.ir.content import (
    Extra,
    Media,
    Message,
    Origin,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import ClientFault
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.request import Request, Sampling, Thinking, Tool, ToolChoice
from wireglot_core.ir.stream import Delta, Event, Finish, PartEnd, PartStart, Start, fold

CONTEXT = Context()
TOOLS = [{"functionDeclarations": [{"name": "f", "description": "d"}]}]


def parse(body):
    return DIALECT.parse_request(body, CONTEXT)


def comes_back(body):
    rendered = DIALECT.render_request(parse(body), CONTEXT)
    assert rendered.losses == ()
    assert rendered.value == body


def test_every_field_of_a_request():
    """R-AF-01..04, R-AF-06..13"""
    body = {
        "model": "gemini-3-pro",
        "input": "Hello",
        "tools": TOOLS,
        "tool_config": {"functionCallingConfig": {"mode": "ANY"}},
        "conversation": "c1",
        "stream": True,
        "timeout": 120,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "max_output_tokens": 100,
        "stop_sequences": ["END"],
    }
    request = parse(body)
    assert request.messages == (Message("user", (Text("Hello"),)),)
    assert request.tools[0] == Tool("f", "d")
    assert request.tool_choice == ToolChoice("required")
    assert (request.model, request.stream, request.max_tokens, request.stop) == (
        "gemini-3-pro",
        True,
        100,
        ("END",),
    )
    assert request.sampling == Sampling(0.5, 0.9, 40)
    assert request.extra is not None
    assert request.extra.fields == {"conversation": "c1", "timeout": 120}
    comes_back(body)


@rows(
    ("snake", "camel", "value"),
    [
        ("top_p", "topP", 0.5),
        ("top_k", "topK", 4),
        ("max_output_tokens", "maxOutputTokens", 9),
        ("stop_sequences", "stopSequences", ["END", "STOP"]),
    ],
)
@rows("target", ["anthropic", "openai-chat", "gemini"])
def test_both_spellings_mean_the_same_to_every_upstream(snake, camel, value, target):
    """R-AF-10..13"""
    sent = [
        translate_request({"input": "x", name: value}, source="gemini-simple", target=target, model="m")
        for name in (snake, camel)
    ]
    assert sent[0].value == sent[1].value
    without = translate_request({"input": "x"}, source="gemini-simple", target=target, model="m")
    if not any(loss.feature.startswith("sampling") for loss in sent[0].losses):
        assert sent[0].value != without.value


def test_both_spellings_are_read_and_come_back():
    """R-AF-10..13"""
    comes_back(
        {
            "input": "x",
            "topP": 1,
            "topK": 1,
            "maxOutputTokens": 1,
            "stopSequences": ["a"],
            "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        }
    )


@pytest.mark.parametrize("wrap", [True, False])
def test_results_continue_a_conversation_and_name_no_call(wrap):
    """R-AF-05: paired by name by the one that keeps the conversation."""
    answer = {"name": "f", "response": {"output": "x"}}
    request = parse(
        {"conversation": "c1", "tool_results": [{"functionResponse": answer} if wrap else answer]}
    )
    (result,) = request.messages[0].content
    assert isinstance(result, ToolResult)
    assert (result.name, result.content, is_minted(result.call_id)) == ("f", (Text("x"),), True)


def test_results_come_back():
    comes_back(
        {
            "conversation": {"id": "c1"},
            "input": "and?",
            "tool_results": [{"functionResponse": {"name": "f", "response": {"a": 1}}}],
        }
    )
    comes_back(
        {"tool_results": [{"functionResponse": {"name": "f", "response": {"error": "x"}}}], "x_future": 1}
    )


@rows(
    "body",
    [{}, {"input": ["x"]}, {"input": 5}, {"input": "x", "stream": "yes"}, {"tool_results": [{"text": "x"}]}],
)
def test_a_wrong_document_is_refused(body):
    with pytest.raises(ClientFault):
        parse(body)


def test_only_the_last_turn_is_sent_and_the_rest_is_declared():
    messages = (
        Message("system", (Text("Be brief."),)),
        Message("user", (Text("Hello"),)),
        Message("assistant", (ToolCall("a", "f", "{}"),)),
        Message("user", (ToolResult("a", (Text("x"),)), Text("and?"), Media("image", "image/png", "AAAA"))),
    )
    rendered = DIALECT.render_request(Request("m", messages, thinking=Thinking(effort="low")), CONTEXT)
    assert rendered.value == {
        "model": "m",
        "input": "and?",
        "tool_results": [{"functionResponse": {"name": "f", "response": {"output": "x"}}}],
    }
    assert [loss.feature for loss in rendered.losses] == ["content.position"] * 3 + [
        "tool_call.id",
        "image",
        "thinking.effort",
    ]


def test_an_answer_has_geminis_shape():
    """R-AG-03, R-AG-06, R-AG-08..12, C24, C26"""
    response = Response(
        "r",
        "m",
        (Reasoning("hm"), Text("x"), ToolCall("toolu_1", "f", "{}")),
        Stop("length"),
        Usage(input=5, cache_read=1, output=2, reasoning=3),
    )
    body = DIALECT.render_response(response, CONTEXT).value
    assert body["candidates"][0]["content"]["parts"][0] == {"text": "hm", "thought": True}
    assert body["candidates"][0]["finishReason"] == "MAX_TOKENS"
    assert body["usageMetadata"] == {
        "promptTokenCount": 6,
        "cachedContentTokenCount": 1,
        "candidatesTokenCount": 2,
        "thoughtsTokenCount": 3,
        "totalTokenCount": 11,
    }
    assert DIALECT.parse_response(body, CONTEXT).stop.reason == "length"


def test_a_stream_ends_with_usage_and_without_a_sentinel():
    """R-AG-13, R-AG-15, R-AG-16, C21, C26: only Chat has one."""
    events: list[Event] = [
        Start("r", "m"),
        PartStart(0, Text("")),
        Delta(0, "a"),
        PartEnd(0),
        Finish(Stop("end"), Usage(input=1, output=2)),
    ]
    data = DIALECT.stream_writer(CONTEXT).write(events)
    frames = data.decode().replace("\r\n", "\n").split("\n\n")[:-1]
    assert "[DONE]" not in frames[-1]
    last = json.loads(frames[-1][6:])
    assert last["candidates"][0]["finishReason"] == "STOP"
    assert last["usageMetadata"]["totalTokenCount"] == 3
    reader = DIALECT.stream_reader(CONTEXT)
    assert fold(reader.read(data) + reader.end()).content == (Text("a"),)


def test_what_stands_beside_a_text_is_declared_because_the_input_is_one_string():
    signature = Signature("U0lH", Origin("gemini"))
    text = Text("hi", signature=signature, extra=Extra("gemini", {"x_future": "new"}))
    rendered = DIALECT.render_request(Request("m", (Message("user", (text,)),)), Context())
    assert rendered.value["input"] == "hi"
    assert [(loss.path, loss.feature) for loss in rendered.losses] == [
        ("$.messages[0].content[0].x_future", "unknown_field"),
        ("$.messages[0].content[0].signature", "reasoning.signature"),
    ]
