"""What writers write the short way, because nearly everything is like it, they write the same the long way."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.gemini.render_parts import PartRenderer
from wireglot_core.dialects.gemini.render_request import render_request as render_gemini
from wireglot_core.dialects.openai_chat import render_messages
from wireglot_core.dialects.openai_chat.render_request import render_request as render_chat
from wireglot_core.ir.content import (
    CacheMark,
    Extra,
    Foreign,
    Media,
    Message,
    Origin,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.request import Request, Tool

_extras = st.sampled_from(
    [
        None,
        Extra("anthropic", form={"content": "string"}),
        Extra("anthropic", fields={"new": 1}),
        Extra("openai-chat", form={"content": "parts"}),
        Extra("gemini", fields={"new": 1}, form={"role": "absent"}),
    ]
)
_caches = st.sampled_from([None, None, CacheMark(), CacheMark("long"), CacheMark(extra=Extra("anthropic"))])
_signatures = st.sampled_from([None, None, Signature("s", Origin("gemini")), Signature("s", Origin("else"))])
_texts = st.builds(
    Text,
    text=st.sampled_from(["a", "b", ""]),
    refusal=st.sampled_from([False, False, True]),
    signature=_signatures,
    cache=_caches,
    extra=_extras,
)
_kinds = st.sampled_from(["function", "function", "custom"])
_ids = st.sampled_from(["c", "d", "", Context(seed="s").new_id("call", "x")])
_calls = st.builds(
    ToolCall,
    id=_ids,
    name=st.sampled_from(["f", "g"]),
    arguments=st.sampled_from(['{"a":1}', "{}", "", " ", "[1]"]),
    kind=_kinds,
    namespace=st.sampled_from(["", "", "n"]),
    signature=_signatures,
    cache=_caches,
    extra=_extras,
)
_results = st.builds(
    ToolResult,
    call_id=_ids,
    content=st.lists(
        st.one_of(_texts, st.just(Media("image", "image/png", "AA==")), st.just(Foreign("else", "x", {}))),
        max_size=2,
    ).map(tuple),
    is_error=st.booleans(),
    name=st.sampled_from(["", "f"]),
    kind=_kinds,
    cache=_caches,
    extra=_extras,
)
_parts = st.one_of(
    _texts, _calls, _results, st.just(Reasoning("r")), st.just(Text("a")), st.just(ToolCall("c", "f", "{}"))
)
_messages = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "assistant", "system"]),
    content=st.lists(_parts, max_size=3).map(tuple),
    name=st.sampled_from(["", "", "n"]),
    extra=_extras,
)
_tools = st.builds(
    Tool,
    name=st.just("f"),
    description=st.sampled_from([None, "", "d"]),
    schema=st.sampled_from(
        [None, {}, {"type": "object"}, {"type": "OBJECT", "required": []}, {"type": "array"}]
    ),
    strict=st.sampled_from([None, False, True]),
    kind=_kinds,
    namespace=st.sampled_from(["", "n"]),
    deferred=st.booleans(),
    cache=_caches,
    extra=_extras,
)
_requests = st.builds(
    Request,
    model=st.just("m"),
    messages=st.lists(_messages, max_size=4).map(tuple),
    tools=st.lists(_tools, max_size=2).map(tuple),
    extra=st.sampled_from(
        [None, Extra("anthropic"), Extra("openai-chat"), Extra("openai-chat", form={"joined": ["tool"]})]
    ),
)


def _written(render: Any, request: Request) -> tuple[dict[str, Any], Any]:
    rendered = render(request, Context(seed="s", provider="p", model="m"))
    return rendered.value, rendered.losses


@given(_requests)
def test_chat_is_written_the_same_both_ways(request_):
    shortly = _written(render_chat, request_)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render_messages._Messages, "_plain", lambda self, message: None)
        patch.setattr(Tool, "is_plain", lambda self: False)
        assert _written(render_chat, request_) == shortly


@given(_requests)
def test_gemini_is_written_the_same_both_ways(request_):
    shortly = _written(render_gemini, request_)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartRenderer, "result", PartRenderer._other_result)
        patch.setattr(Tool, "is_plain", lambda self: False)
        assert _written(render_gemini, request_) == shortly


def test_a_step_of_an_agent_goes_the_short_way():
    asked = Message("assistant", (Text("a"), ToolCall("c", "f", "{}"), ToolCall("d", "g", "{}")))
    answered = Message("user", (ToolResult("c", (Text("x"),)), ToolResult("d", (Text("y"),))))
    request = Request(
        "m", (Message("user", (Text("q"),)), asked, answered), (Tool("f", "d", {"type": "array"}),)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(render_messages._Messages, "_written")
        patch.delattr(PartRenderer, "_other_result")
        assert [each["role"] for each in _written(render_chat, request)[0]["messages"]] == [
            "user",
            "assistant",
            "tool",
            "tool",
        ]
        assert len(_written(render_gemini, request)[0]["contents"]) == 3
