"""Conversations of other dialects, as Chat requests."""

import json

import pytest

from tests.core.dialects.openai_chat.support import CONTEXT, foreign, losses_of, sent
from tests.tiers import rows
from wireglot_core.dialects.context import Context
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
from wireglot_core.ir.request import (
    Grammar,
    HostedTool,
    OutputFormat,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)

HELLO = Message("user", (Text("Hello"),))
CALLS = Message("assistant", (ToolCall("c1", "look", "{}"), ToolCall("c2", "look", "{}")))
IMAGE = Media("image", "image/png", "iVBO")


def messages(*conversation: Message):
    return sent(foreign(*conversation))["messages"]


OPAQUE = {"type": "reasoning.encrypted", "data": "c2VjcmV0"}
SEALED = Signature(json.dumps([OPAQUE]), Origin("openai-chat"))


@rows(
    ("parts", "expected"),
    [
        ((), {"content": ""}),
        ((Text(""),), {"content": ""}),
        ((Reasoning("Hm."),), {"content": "", "reasoning_content": "Hm."}),
        ((Reasoning("Hm."), ToolCall("c", "f", "{}")), {"content": None, "reasoning_content": "Hm."}),
        ((Text("No.", refusal=True),), {"content": None, "refusal": "No."}),
        ((Reasoning("", SEALED),), {"content": "", "reasoning_content": "", "reasoning_details": [OPAQUE]}),
    ],
    ids=["nothing", "an empty text", "reasoning", "reasoning and a call", "a refusal", "sealed reasoning"],
)
def test_a_turn_without_words_has_the_content_that_servers_want(parts, expected):
    """A call alone has null; an answer of nothing but reasoning, or of nothing, still needs a string."""
    said = [one for one in messages(HELLO, Message("assistant", parts), HELLO) if one["role"] == "assistant"]
    for one in said:
        one.pop("tool_calls", None)
    assert said == [{"role": "assistant", **expected}]


def test_system_text_is_a_system_message_and_never_a_field():
    """R-H-04"""
    body = sent(foreign(Message("system", (Text("Be brief."),)), HELLO))
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert "system" not in body


def test_system_blocks_stay_apart():
    """R-H-01"""
    (system,) = messages(Message("system", (Text("a"), Text("b"))))
    assert system["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


def test_each_result_is_a_message_of_its_own_directly_behind_the_calls():
    """R-DB-04"""
    results = (ToolResult("c1", (Text("a"),)), ToolResult("c2", (Text("b"), Text("c"))))
    assert messages(CALLS, Message("user", (*results, Text("and now?"))))[1:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "a"},
        {"role": "tool", "tool_call_id": "c2", "content": "b\n\nc"},
        {"role": "user", "content": "and now?"},
    ]


def test_calls_cut_into_several_messages_are_one_turn_again():
    """Responses has one item per call; Chat refuses a call without its answer directly behind."""
    one, two = (Message("assistant", (part,)) for part in CALLS.content)
    answers = (Message("user", (ToolResult("c1"),)), Message("user", (Text("hm"), ToolResult("c2"))))
    rendered = messages(one, two, *answers)
    assert [message["role"] for message in rendered] == ["assistant", "tool", "tool", "user"]
    assert len(rendered[0]["tool_calls"]) == 2
    assert losses_of(foreign(one, two, *answers)) == [("$.messages[3].content[1]", "content.position")]


def test_a_call_alone_has_null_content_and_never_an_empty_text():
    (message,) = messages(Message("assistant", (Text(""), ToolCall("c1", "look", ""))))
    assert message["content"] is None
    assert message["tool_calls"][0]["function"] == {"name": "look", "arguments": "{}"}


def test_valid_arguments_are_never_rewritten():
    (message,) = messages(Message("assistant", (ToolCall("c1", "look", '{ "a":1.0 }'),)))
    assert message["tool_calls"][0]["function"]["arguments"] == '{ "a":1.0 }'


def test_an_image_in_a_result_is_shown_in_a_user_message_behind_all_results():
    """R-DB-14"""
    turn = Message(
        "user", (ToolResult("c1", (Text("a"), IMAGE)), ToolResult("c2", (Text("b"),)), Text("well?"))
    )
    first, second, shown, said = messages(CALLS, turn)[1:]
    assert first["content"] == "a\n\n[image: see next message]"
    assert second["content"] == "b"
    assert shown["role"] == "user"
    assert shown["content"][1]["image_url"]["url"] == "data:image/png;base64,iVBO"
    assert said == {"role": "user", "content": "well?"}
    assert losses_of(foreign(CALLS, turn)) == [("$.messages[1].content[0].content[1]", "tool_result.media")]


def test_a_failed_result_says_so_in_its_text():
    """R-DB-15"""
    turn = Message(
        "user", (ToolResult("c1", (Text("no such file"),), is_error=True), ToolResult("c2", is_error=True))
    )
    assert [message["content"] for message in messages(CALLS, turn)[1:]] == [
        "Error: no such file",
        "Error: the tool failed",
    ]
    assert [feature for _, feature in losses_of(foreign(CALLS, turn))] == ["tool_result.error"] * 2


def test_text_behind_a_call_is_moved_and_said():
    turn = Message("assistant", (Text("a"), ToolCall("c1", "look", "{}"), Text("b")))
    (message,) = messages(turn)
    assert [part["text"] for part in message["content"]] == ["a", "b"]
    assert losses_of(foreign(turn)) == [("$.messages[0].content[2]", "content.position")]


def test_reasoning_is_given_as_reasoning_content():
    """R-DA-11"""
    (message,) = messages(Message("assistant", (Reasoning(""), ToolCall("c1", "look", "{}"))))
    assert message["reasoning_content"] == ""


def test_a_signature_goes_back_to_its_minter_and_to_no_one_else():
    """R-DA-09"""
    details = '[{"data":"x","type":"reasoning.encrypted"}]'
    ours = Reasoning("hm", Signature(details, Origin("openai-chat", "acme", "m")))
    theirs = Reasoning("hm", Signature("sig", Origin("anthropic")))
    (message,) = messages(Message("assistant", (ours, Text("a"))))
    assert message["reasoning_details"] == [{"data": "x", "type": "reasoning.encrypted"}]
    for stranger in (foreign(Message("assistant", (theirs, Text("a")))),):
        assert "reasoning_details" not in sent(stranger)["messages"][0]
        assert losses_of(stranger) == [("$.messages[0].content[0].signature", "reasoning.signature")]
    elsewhere = sent(foreign(Message("assistant", (ours, Text("a")))), Context(provider="other"))
    assert "reasoning_details" not in elsewhere["messages"][0]


def test_redacted_reasoning_stays_with_its_provider():
    turn = Message(
        "assistant", (Reasoning("", Signature("x", Origin("anthropic")), redacted=True), Text("a"))
    )
    assert messages(turn) == [{"role": "assistant", "content": "a"}]
    assert losses_of(foreign(turn)) == [("$.messages[0].content[0]", "reasoning.redacted")]


def test_foreign_parts_are_dropped_and_an_empty_message_is_not_sent():
    part = Foreign("anthropic", "container_upload", {"type": "container_upload"})
    assert messages(Message("user", (part,)), HELLO) == [{"role": "user", "content": "Hello"}]


@rows(
    ("media", "part", "features"),
    [
        (IMAGE, {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}, []),
        (
            Media("audio", "audio/wav", "UklG"),
            {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
            [],
        ),
        (
            Media("document", "application/pdf", "JVBE", name="a.pdf"),
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE", "filename": "a.pdf"}},
            [],
        ),
        (Media("document", file_id="f1"), {"type": "file", "file": {"file_id": "f1"}}, []),
        (Media("image", file_id="f1"), {"type": "file", "file": {"file_id": "f1"}}, ["file_reference"]),
        (Media("document", "text/plain", text="t"), {"type": "text", "text": "t"}, ["document"]),
        (
            Media("document", url="https://e.com/a.pdf"),
            {"type": "text", "text": "https://e.com/a.pdf"},
            ["document"],
        ),
        (
            Media("audio", url="https://e.com/a.wav"),
            {"type": "text", "text": "[audio left out: this model cannot take it]"},
            ["audio"],
        ),
    ],
)
def test_media_find_their_place_or_are_declared(media, part, features):
    request = foreign(Message("user", (Text("see"), media)))
    content = sent(request)["messages"][0]["content"]
    assert content[1:] == [part]
    assert [feature for _, feature in losses_of(request)] == features


def test_cache_marks_become_breakpoints():
    marked = Text("a", cache=CacheMark("long"))
    (message,) = messages(Message("user", (marked,)))
    assert message["content"][0]["prompt_cache_breakpoint"] == {"mode": "explicit", "ttl": "12h"}


def test_the_limit_has_its_newer_name():
    """R-AC-14"""
    assert sent(foreign(HELLO, max_tokens=9))["max_completion_tokens"] == 9


def test_a_stream_asks_for_its_usage():
    assert sent(foreign(HELLO, stream=True))["stream_options"] == {"include_usage": True}
    assert "stream_options" not in sent(foreign(HELLO, stream=False))


def test_a_choice_without_tools_is_not_sent():
    """C18"""
    request = foreign(HELLO, tool_choice=ToolChoice("required"), parallel_tools=False)
    assert set(sent(request)) == {"model", "messages"}
    assert [feature for _, feature in losses_of(request)] == ["tool_choice", "parallel_tools"]


@pytest.mark.parametrize(
    ("choice", "value"),
    [
        (ToolChoice("required", ("f",)), {"type": "function", "function": {"name": "f"}}),
        (ToolChoice("required", ("c",)), {"type": "custom", "custom": {"name": "c"}}),
        (
            ToolChoice("auto", ("f",)),
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
            },
        ),
    ],
)
def test_choices_are_reported_in_chats_own_shape(choice, value):
    """R-DB-07"""
    tools = (Tool("f"), Tool("c", kind="custom"))
    assert sent(foreign(HELLO, tools=tools, tool_choice=choice))["tool_choice"] == value


def test_tools_keep_their_schema_untouched_and_nest_their_grammar():
    """R-Q-01"""
    schema = {"type": "object", "properties": {"a": {"enum": [1]}}, "$defs": {}}
    tools = (Tool("f", "does", schema, strict=True), Tool("p", kind="custom", grammar=Grammar("regex", "a+")))
    function, custom = sent(foreign(HELLO, tools=tools))["tools"]
    assert function["function"] == {"name": "f", "description": "does", "parameters": schema, "strict": True}
    assert custom["custom"]["format"] == {
        "type": "grammar",
        "grammar": {"syntax": "regex", "definition": "a+"},
    }


def test_what_a_custom_tool_cannot_have_is_declared():
    tool = Tool("p", schema={"type": "object"}, strict=True, kind="custom")
    assert losses_of(foreign(HELLO, tools=(tool,))) == [
        ("$.tools[0].schema", "tool.schema"),
        ("$.tools[0].strict", "tool.strict"),
    ]


def test_hosted_search_is_approximated_and_other_hosted_tools_are_never_functions():
    """R-DB-17"""
    search = HostedTool("web_search", Foreign("anthropic", "web_search_20250305", {"max_uses": 3}))
    code = HostedTool("code_execution", Foreign("gemini", "codeExecution", {}))
    body = sent(foreign(HELLO, tools=(search, code)))
    assert body["web_search_options"] == {}
    assert "tools" not in body


@rows(
    ("thinking", "effort", "features"),
    [
        (Thinking(effort="high"), "high", []),
        (Thinking(mode="off"), "none", []),
        (Thinking(mode="auto", effort="low"), "low", ["thinking.mode"]),
        (Thinking(mode="on", budget=2048), None, ["thinking.mode", "thinking.budget"]),
        (Thinking(display="summary"), None, ["thinking.display"]),
    ],
)
def test_of_thinking_only_the_effort_has_a_place(thinking, effort, features):
    request = foreign(HELLO, thinking=thinking)
    assert sent(request).get("reasoning_effort") == effort
    assert [feature for _, feature in losses_of(request)] == features


def test_a_provider_with_a_thinking_switch_can_be_asked_for_it():
    """Kimi K2.x"""
    control = Extra("openai-chat", {}, {"control": "thinking"})
    assert sent(foreign(HELLO, thinking=Thinking(mode="off", extra=control)))["thinking"] == {
        "type": "disabled"
    }


def test_what_chat_has_no_word_for_is_declared():
    request = foreign(
        HELLO,
        sampling=Sampling(temperature=0.5, top_k=40),
        service_tier="batch",
        output=OutputFormat("schema", {"type": "object"}),
        extra=Extra("anthropic", {"container": "x", "empty": None}),
    )
    body = sent(request)
    assert body["temperature"] == 0.5
    assert body["response_format"]["json_schema"]["name"] == "response"
    assert sorted(losses_of(request)) == [
        ("$.container", "unknown_field"),
        ("$.sampling.top_k", "sampling.top_k"),
        ("$.service_tier", "service_tier"),
    ]


def test_rendering_twice_gives_the_same():
    request = foreign(HELLO, CALLS, Message("user", (ToolResult("c1", (IMAGE,)),)))
    assert sent(request) == sent(request)
    assert CONTEXT.seed == ""


def test_what_only_another_dialect_says_of_a_picture_is_declared():
    picture = Media("image", "image/png", "iVBO", extra=Extra("anthropic", {"x_new": 1}))
    reported = losses_of(foreign(Message("user", (picture,))))
    assert reported == [("$.messages[0].content[0].x_new", "unknown_field")]
