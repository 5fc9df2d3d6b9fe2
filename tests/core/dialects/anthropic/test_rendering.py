"""Conversations of other dialects as Messages requests: what is said, and what is declared."""

from tests.core.dialects.anthropic.support import CONTEXT, features
from tests.tiers import rows
from wireglot_core.dialects.anthropic import DIALECT
from wireglot_core.ir.content import (
    CacheMark,
    Citation,
    Extra,
    Foreign,
    Media,
    Message,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.request import (
    Grammar,
    HostedTool,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)

HELLO = Message("user", (Text("hello"),))


def render(*messages: Message, **settings):
    request = Request("m", messages or (HELLO,), **{"max_tokens": 5, **settings})
    rendered = DIALECT.render_request(request, CONTEXT)
    return rendered.value, features(rendered.losses)


def test_a_missing_limit_is_invented_and_said():
    """C15"""
    body, losses = render(max_tokens=None)
    assert body["max_tokens"] == 32000
    assert losses == [("$.max_tokens", "max_tokens", "invented")]


def test_several_system_messages_become_several_blocks():
    """R-H-01, R-H-06, R-A-10"""
    system = (
        Message("system", (Text("a"),)),
        Message("system", (Text("b"), Text("c", cache=CacheMark("long")))),
    )
    body, losses = render(*system, HELLO)
    assert body["system"] == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
        {"type": "text", "text": "c", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
    ]
    assert body["messages"] == [{"role": "user", "content": "hello"}]
    assert losses == []


def test_system_text_in_the_middle_stays_there():
    body, _ = render(HELLO, Message("system", (Text("now"),)), Message("assistant", (Text("ok"),)))
    assert [message["role"] for message in body["messages"]] == ["user", "system", "assistant"]


def test_neighbours_of_one_role_are_merged_and_all_results_stand_in_one_turn():
    """R-DB-04, R-A-11"""
    calls = (ToolCall("a", "f", "{}"), ToolCall("b", "g", ""))
    body, losses = render(
        HELLO,
        Message("assistant", calls),
        Message("user", (ToolResult("a", (Text("1"),)),)),
        Message("user", (ToolResult("b", (Text("2"), Text("3")), is_error=True),)),
        Message("user", (Text("go on"),)),
    )
    assert body["messages"][1]["content"] == [
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
        {"type": "tool_use", "id": "b", "name": "g", "input": {}},
    ]
    assert body["messages"][2:] == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                {
                    "type": "tool_result",
                    "tool_use_id": "b",
                    "content": [{"type": "text", "text": "2"}, {"type": "text", "text": "3"}],
                    "is_error": True,
                },
                {"type": "text", "text": "go on"},
            ],
        }
    ]
    assert losses == []


def test_results_stand_before_the_words_of_their_turn():
    body, losses = render(
        HELLO, Message("assistant", (ToolCall("a", "f", ""),)), Message("user", (Text("x"), ToolResult("a")))
    )
    assert [block["type"] for block in body["messages"][2]["content"]] == ["tool_result", "text"]
    assert ("$.messages", "content.position", "approximated") in losses


def test_the_user_speaks_first():
    body, losses = render(Message("assistant", (Text("hello"),)))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant"]
    assert losses == [("$.messages", "content.position", "invented")]
    body, losses = render(Message("system", (Text("only this"),)))
    assert len(body["messages"]) == 1
    assert losses == [("$.messages", "content.position", "invented")]


def test_blank_text_never_leaves_us():
    """C39; claude-code/issues/88536: an empty block is refused on every later turn."""
    body, losses = render(HELLO, Message("assistant", (Text(""), Text(" \n"), ToolCall("a", "f", ""))))
    assert [block["type"] for block in body["messages"][1]["content"]] == ["tool_use"]
    assert losses == [("$.messages[1].content[1]", "content.empty", "dropped")]


def test_invalid_arguments_are_wrapped_and_never_throw():
    """C10, R-F-04"""
    body, losses = render(HELLO, Message("assistant", (ToolCall("a", "f", '{"x": '),)))
    value = body["messages"][1]["content"][0]["input"]
    assert value["_raw"] == '{"x": '
    assert "_parse_error" in value
    assert losses == [("$.messages[1].content[0].arguments", "tool_call.arguments", "emulated")]


@rows(
    ("media", "source", "lost"),
    [
        (
            Media("image", "image/png", "AA=="),
            {"type": "base64", "media_type": "image/png", "data": "AA=="},
            [],
        ),
        (Media("image", url="https://e.org/a"), {"type": "url", "url": "https://e.org/a"}, []),
        (Media("image", file_id="f"), {"type": "file", "file_id": "f"}, []),
        (
            Media("image", "image/jpg", "AA=="),
            {"type": "base64", "media_type": "image/jpeg", "data": "AA=="},
            ["approximated"],
        ),
        (Media("image", "image/heic", "AA=="), None, ["dropped"]),
        (Media("image", "image/png", url="u"), {"type": "url", "url": "u"}, ["approximated"]),
        (
            Media("document", "application/pdf", "AA=="),
            {"type": "base64", "media_type": "application/pdf", "data": "AA=="},
            [],
        ),
        (
            Media("document", "text/plain", text="t"),
            {"type": "text", "media_type": "text/plain", "data": "t"},
            [],
        ),
        (
            Media("document", "text/csv", "YSxi"),
            {"type": "text", "media_type": "text/plain", "data": "a,b"},
            ["approximated"],
        ),
        (Media("document", "application/msword", "AA=="), None, ["dropped"]),
        (Media("audio", "audio/wav", "AA=="), None, ["dropped"]),
        (Media("video", "video/mp4", "AA=="), None, ["dropped"]),
    ],
)
def test_media_are_sent_in_the_forms_the_wire_has(media, source, lost):
    body, losses = render(Message("user", (Text("look"), media)))
    content = body["messages"][0]["content"]
    note = {"type": "text", "text": f"[{media.kind} left out: this model cannot take it]"}
    assert content[1].get("source", content[1]) == (source or note)
    assert [action for _, _, action in losses] == lost


def test_what_only_another_dialect_knows_is_declared():
    parts = (
        Text("x", extra=Extra("gemini", {"new": 1, "blank": None})),
        Foreign("openai-responses", "item_reference", {}),
        Text("y", citations=(Citation("https://e.org"),)),
    )
    body, losses = render(
        HELLO, Message("assistant", parts, name="bob"), extra=Extra("gemini", {"safety": [1]})
    )
    assert body["messages"][1]["content"] == [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]
    assert losses == [
        ("$.messages[1].content[0].new", "unknown_field", "dropped"),
        ("$.messages[1].content[1]", "foreign_part", "dropped"),
        ("$.messages[1].content[2].citations[0]", "citations", "dropped"),
        ("$.messages[1].name", "message.name", "dropped"),
        ("$.safety", "unknown_field", "dropped"),
    ]


def test_tools_that_the_wire_has_no_word_for_are_declared():
    """R-DB-17"""
    tools = (
        Tool("f", "d", {"type": "object", "properties": {"a": {"enum": ["x"]}}}, strict=True, deferred=True),
        Tool("g"),
        Tool("h", kind="custom", grammar=Grammar("lark", "start: x")),
        Tool("i", namespace="ns", schema={"properties": {}}),
        HostedTool("web_search", Foreign("gemini", "googleSearch", {})),
        HostedTool("image_generation", Foreign("openai-responses", "image_generation", {})),
        HostedTool("tool_search", Foreign("openai-responses", "tool_search", {})),
    )
    body, losses = render(tools=tools)
    assert body["tools"] == [
        {
            "name": "f",
            "description": "d",
            "input_schema": tools[0].schema,
            "strict": True,
            "defer_loading": True,
        },
        {"name": "g", "input_schema": {"type": "object", "properties": {}}},
        {"name": "i", "input_schema": {"type": "object", "properties": {}}},
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    ]
    assert losses == [
        ("$.tools[2]", "tool.custom", "dropped"),
        ("$.tools[3].schema.type", "tool.schema", "approximated"),
        ("$.tools[3].namespace", "tool.namespace", "dropped"),
        ("$.tools[4]", "hosted_tool", "approximated"),
        ("$.tools[5]", "hosted_tool", "dropped"),
        ("$.tools[6]", "hosted_tool", "approximated"),
    ]


@rows(
    ("choice", "parallel", "written"),
    [
        (ToolChoice("auto"), None, {"type": "auto"}),
        (ToolChoice("none"), None, {"type": "none"}),
        (ToolChoice("required"), False, {"type": "any", "disable_parallel_tool_use": True}),
        (ToolChoice("required", ("f",)), True, {"type": "tool", "name": "f"}),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        (None, True, None),
    ],
)
def test_tool_choices_have_a_word_each(choice, parallel, written):
    """R-DB-07"""
    body, losses = render(tools=(Tool("f"), Tool("g")), tool_choice=choice, parallel_tools=parallel)
    assert body.get("tool_choice") == written
    assert losses == []


def test_an_allowed_subset_is_declared_alone():
    """PAINS A28"""
    body, losses = render(
        tools=(Tool("f"), Tool("g"), Tool("h")), tool_choice=ToolChoice("required", ("f", "h"))
    )
    assert [tool["name"] for tool in body["tools"]] == ["f", "h"]
    assert body["tool_choice"] == {"type": "any"}
    assert losses == [("$.tool_choice.only", "tool_choice", "approximated")]


def test_a_tool_choice_without_tools_is_not_sent():
    """C18"""
    body, losses = render(tool_choice=ToolChoice("required"), parallel_tools=False)
    assert "tool_choice" not in body
    assert losses == [
        ("$.tool_choice", "tool_choice", "dropped"),
        ("$.parallel_tools", "parallel_tools", "dropped"),
    ]


@rows(
    ("thinking", "written", "effort", "lost"),
    [
        (Thinking("auto"), {"type": "adaptive"}, None, []),
        (
            Thinking("auto", "high", display="summary"),
            {"type": "adaptive", "display": "summarized"},
            "high",
            [],
        ),
        (Thinking("on", budget=2048), {"type": "enabled", "budget_tokens": 2048}, None, []),
        (Thinking("off"), {"type": "disabled"}, None, []),
        (Thinking(effort="low"), None, "low", []),
        (Thinking(effort="minimal"), None, "low", ["thinking.effort"]),
        (Thinking(effort="none"), {"type": "disabled"}, None, ["thinking.effort"]),
        (Thinking(budget=2048), {"type": "enabled", "budget_tokens": 2048}, None, ["thinking.mode"]),
        (Thinking("auto", budget=2048), {"type": "adaptive"}, None, ["thinking.budget"]),
        (Thinking(display="summary"), None, None, ["thinking.display"]),
        (
            Thinking(effort="high", display="summary"),
            {"type": "adaptive", "display": "summarized"},
            "high",
            ["thinking.mode"],
        ),
    ],
)
def test_thinking_is_said_as_far_as_the_wire_goes(thinking, written, effort, lost):
    """R-DA-14, R-DA-16"""
    body, losses = render(thinking=thinking)
    assert body.get("thinking") == written
    assert body.get("output_config", {}).get("effort") == effort
    assert [feature for _, feature, _ in losses] == lost


def test_settings_without_a_place_are_declared_one_by_one():
    """C38, PAINS A24"""
    _, losses = render(
        sampling=Sampling(2, 0.5, 3, 0.1, 0.2, 7, 2, True, 4),
        verbosity="low",
        metadata={"a": "b"},
        cache_key="k",
        service_tier="flex",
        output=OutputFormat("json"),
    )
    assert [(path, feature) for path, feature, _ in losses] == [
        ("$.sampling.temperature", "sampling.temperature"),
        ("$.sampling.frequency_penalty", "sampling.frequency_penalty"),
        ("$.sampling.presence_penalty", "sampling.presence_penalty"),
        ("$.sampling.seed", "sampling.seed"),
        ("$.sampling.candidates", "candidates"),
        ("$.sampling.logprobs", "logprobs"),
        ("$.sampling.top_logprobs", "logprobs"),
        ("$.output", "output_format"),
        ("$.service_tier", "service_tier"),
        ("$.metadata.a", "metadata"),
        ("$.cache_key", "cache_key"),
        ("$.verbosity", "verbosity"),
    ]


def test_a_schema_becomes_the_output_format():
    """PAINS A21"""
    body, losses = render(output=OutputFormat("schema", {"type": "object"}, "answer", strict=True))
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    assert losses == [("$.output.name", "output_format", "approximated")]
    _, losses = render(output=OutputFormat("schema", {"type": "object"}))
    assert losses == [("$.output.strict", "output_format.strict", "approximated")]


def test_the_namespace_of_a_call_is_declared():
    call = Message("assistant", (ToolCall("c1", "look", "{}", namespace="ns"),))
    _, losses = render(HELLO, call, Message("user", (ToolResult("c1", (Text("1"),)),)))
    assert losses == [("$.messages[1].content[0].namespace", "tool.namespace", "dropped")]
