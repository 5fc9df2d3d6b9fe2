"""The short way for plain turns and tools gives what the thorough way gives, and loses nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireglot.dialects.base import Context
from wireglot.dialects.openai_chat import render_messages as rendering
from wireglot.dialects.openai_chat import tools
from wireglot.dialects.openai_chat.render_request import render_request
from wireglot.ir.content import CacheMark, Extra, Media, Message, Reasoning, Text, ToolCall, ToolResult
from wireglot.ir.request import Request, Tool
from wireglot.testing.strategies import requests

_CONTEXT = Context(provider="p", model="m")
_extras = st.sampled_from(
    [
        None,
        Extra("anthropic", form={"content": "string"}),
        Extra("anthropic", {"new": 1}),
        Extra("openai-chat", form={"content": "parts"}),
        Extra("openai-chat", {"new": 1}),
    ]
)
_texts = st.builds(
    Text,
    st.sampled_from(["", "a", "b"]),
    refusal=st.sampled_from([False, False, False, True]),
    cache=st.sampled_from(
        [None, None, CacheMark("short"), CacheMark(), CacheMark("", Extra("anthropic", {"new": 1}))]
    ),
    extra=st.one_of(st.none(), _extras),
)
_calls = st.builds(
    ToolCall,
    st.sampled_from(["c1", "c2"]),
    st.sampled_from(["f", ""]),
    st.sampled_from(["{}", '{"a":1}', " ", "no JSON"]),
    kind=st.sampled_from(["function", "function", "custom"]),
    extra=st.one_of(st.none(), _extras),
)
_results = st.builds(
    ToolResult,
    st.sampled_from(["c1", "c2", "c3"]),
    st.lists(st.one_of(_texts, st.just(Media("image", url="https://x/y.png"))), max_size=3).map(tuple),
    is_error=st.sampled_from([False, False, True]),
    name=st.sampled_from(["", "f", "g"]),
    kind=st.sampled_from(["function", "function", "custom"]),
    extra=st.one_of(st.none(), _extras),
)
_parts = st.one_of(_texts, _calls, _results, st.just(Reasoning("thought")))
_messages = st.builds(
    Message,
    st.sampled_from(["user", "assistant", "system"]),
    st.lists(_parts, max_size=4).map(tuple),
    name=st.sampled_from(["", "", "", "n"]),
    extra=st.one_of(st.none(), _extras),
)
_tools = st.builds(
    Tool,
    st.sampled_from(["f", "g"]),
    st.sampled_from([None, "", "d"]),
    st.sampled_from([None, {}, {"type": "object"}]),
    st.sampled_from([None, True, False]),
    kind=st.sampled_from(["function", "custom"]),
    namespace=st.sampled_from(["", "n"]),
    deferred=st.booleans(),
    cache=st.sampled_from([None, CacheMark()]),
    extra=_extras,
)
_conversations = st.builds(
    lambda messages, declared, joined: Request(
        "m", tuple(messages), tools=tuple(declared), extra=Extra("openai-chat", {}, {"joined": joined})
    ),
    st.lists(_messages, max_size=5),
    st.lists(_tools, max_size=2),
    st.lists(st.sampled_from(["system", "user", "assistant", "tool"]), max_size=3),
)


@given(st.one_of(_conversations, requests(), requests(plain=True)))
def test_both_ways_render_the_same(request):
    shortly = render_request(request, _CONTEXT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rendering, "plain_turn", lambda message, calls, joined: None)
        patch.setattr(tools, "_is_plain", lambda tool: False)
        thoroughly = render_request(request, _CONTEXT)
    assert shortly == thoroughly
    assert list(shortly.value) == list(thoroughly.value)
    assert [list(message) for message in shortly.value["messages"]] == [
        list(message) for message in thoroughly.value["messages"]
    ]


def test_an_agents_turns_go_the_short_way(monkeypatch):
    monkeypatch.delattr(rendering._Renderer, "_users")
    monkeypatch.delattr(rendering._Renderer, "_assistant")
    monkeypatch.delattr(rendering._Renderer, "_system")
    string = Extra("anthropic", form={"content": "string"})
    messages = (
        Message("system", (Text("be brief"),), extra=string),
        Message("user", (Text("hi"),), extra=string),
        Message("assistant", (Text("let me see"), ToolCall("c1", "f", "{}"))),
        Message("user", (ToolResult("c1", (Text("one"), Text("two")), extra=string), Text("and?"))),
    )
    rendered = render_request(Request("m", messages), _CONTEXT)
    assert rendered.losses == ()
    assert [message["role"] for message in rendered.value["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "user",
    ]
    assert rendered.value["messages"][3]["content"] == "one\n\ntwo"
