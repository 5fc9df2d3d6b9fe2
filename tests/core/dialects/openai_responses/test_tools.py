"""Tools and tool choice."""

import pytest

from tests.core.dialects.openai_responses.wire import comes_back, losses, parse, render
from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Foreign, Message, Text
from wireglot_core.ir.request import Grammar, HostedTool, Request, Tool, ToolChoice
from wireglot_core.translate import translate_request

USER = Message("user", (Text("hi"),))
FLAT = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}


def asked(**settings):
    return {"model": "m", "input": "hi", **settings}


@rows(
    "tool",
    [
        FLAT,
        {"type": "function", "name": "f"},
        {"type": "function", "name": "f", "parameters": None, "strict": None, "description": None},
        {"type": "function", "name": "f", "parameters": {}, "strict": False},
        {"type": "function", "name": "f", "parameters": {}, "defer_loading": True, "allowed_callers": ["direct"]},
        {"type": "function", "name": "f", "parameters": {}, "defer_loading": False, "output_schema": {"type": "string"}},
        {"name": "f", "parameters": {"type": "object"}},
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": True}},
        {"type": "function", "name": "f", "function": {"name": "f"}},
        {"type": "custom", "name": "c"},
        {"type": "custom", "name": "c", "format": {"type": "text"}},
        {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark", "definition": "start: /a/"}},
        {"type": "custom", "custom": {"name": "c", "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a"}}}},
        {"type": "namespace", "name": "n", "description": "N", "tools": [FLAT, {"type": "custom", "name": "c"}]},
        {"type": "namespace", "name": "n", "tools": []},
        {"type": "web_search", "search_context_size": "low"},
        {"type": "tool_search", "execution": "client"},
        {"type": "x_of_next_year", "y": 1},
    ],
)  # fmt: skip
def test_a_tool_comes_back_as_it_was(tool):
    """R-Z-05, C22"""
    comes_back(asked(tools=[tool]))


def test_neighbouring_namespaces_stay_apart():
    namespace = {"type": "namespace", "name": "n", "description": "one", "tools": [FLAT]}
    comes_back(asked(tools=[namespace, {**namespace, "description": "two"}, FLAT]))


def test_every_member_of_a_namespace_is_a_tool():
    request = parse(asked(tools=[{"type": "namespace", "name": "n", "description": "N", "tools": [FLAT]}]))
    tool = request.tools[0]
    assert isinstance(tool, Tool)
    assert (tool.namespace, tool.name, tool.strict) == ("n", "f", True)


def test_tools_that_an_input_item_brings_are_tools_for_everyone_else():
    """Codex's newest models have no `tools` field at all."""
    item = {
        "type": "additional_tools",
        "role": "developer",
        "tools": [FLAT, {"type": "custom", "name": "exec"}],
    }
    body = {"model": "m", "input": [item, {"role": "user", "content": "hi"}]}
    request = comes_back(body)
    assert [tool.name for tool in request.tools if isinstance(tool, Tool)] == ["f", "exec"]


@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "gemini"])
def test_an_item_that_brings_tools_is_a_harmless_loss_as_its_tools_are_reported(target):
    item = {"type": "additional_tools", "role": "developer", "tools": [FLAT]}
    body = {"model": "m", "input": [item, {"role": "user", "content": "hi"}]}
    result = translate_request(body, source="openai-responses", target=target)
    reported = dialect(target).parse_request(result.value, Context())
    assert [tool.name for tool in reported.tools if isinstance(tool, Tool)] == ["f"]
    assert [loss.grade for loss in result.losses if loss.feature == "foreign_part"] == ["harmless"]


def test_both_spellings_mean_the_same():
    """C22"""
    nested = {"type": "function", "function": {key: FLAT[key] for key in FLAT if key != "type"}}
    one, other = (parse(asked(tools=[tool])).tools[0] for tool in (FLAT, nested))
    assert isinstance(one, Tool)
    assert isinstance(other, Tool)
    assert (one.name, one.schema, one.strict) == (other.name, other.schema, other.strict)


def test_strict_is_said_aloud_where_another_dialect_was_silent():
    """Left out, this API tries strict by itself."""
    search = HostedTool("tool_search", Foreign("anthropic", "tool_search_tool_bm25", {}))
    tools = (Tool("f", schema={"type": "object"}), Tool("g", strict=True), Tool("h", deferred=True), search)
    rendered = render(Request("m", (USER,), tools))["tools"][:-1]
    assert [tool["strict"] for tool in rendered] == [False, True, False]
    assert rendered[1]["parameters"] == {"type": "object", "properties": {}}
    assert rendered[2]["defer_loading"] is True


def test_freeform_tools_keep_their_grammar():
    tool = Tool("apply_patch", "d", kind="custom", grammar=Grammar("lark", "start: /a/"))
    assert render(Request("m", (USER,), (tool,)))["tools"] == [
        {
            "type": "custom",
            "name": "apply_patch",
            "description": "d",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: /a/"},
        }
    ]


def test_hosted_tools_of_others_are_mapped_or_dropped_aloud():
    """R-DB-17"""
    tools = (
        HostedTool("web_search", Foreign("gemini", "googleSearch", {"googleSearch": {}})),
        HostedTool("code_execution", Foreign("gemini", "codeExecution", {"codeExecution": {}})),
        HostedTool("memory", Foreign("anthropic", "memory_1", {})),
    )
    request = Request("m", (USER,), tools)
    assert [tool["type"] for tool in render(request)["tools"]] == ["web_search", "code_interpreter"]
    assert [action for _, _, action in losses(request)] == ["approximated", "approximated", "dropped"]


@rows(
    ("value", "mode", "only"),
    [
        ("auto", "auto", ()),
        ("none", "none", ()),
        ("required", "required", ()),
        ("any", "required", ()),
        ({"type": "function", "name": "f"}, "required", ("f",)),
        ({"type": "function", "function": {"name": "f"}}, "required", ("f",)),
        ({"type": "custom", "name": "c"}, "required", ("c",)),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]},
            "required",
            ("f",),
        ),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]}},
            "auto",
            ("f",),
        ),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp", "server_label": "s"}]}, "auto", ()),
        ({"type": "file_search"}, "required", ()),
        ({"type": "mcp", "server_label": "s"}, "required", ()),
    ],
)  # fmt: skip
def test_every_form_of_tool_choice(value, mode, only):
    """R-Z-06, C22, R-DB-07"""
    request = comes_back(asked(tools=[FLAT], tool_choice=value))
    assert request.tool_choice is not None
    assert (request.tool_choice.mode, request.tool_choice.only) == (mode, only)


def test_choices_are_rendered_flat():
    tools = (Tool("f"), Tool("c", kind="custom"))
    for choice, expected in (
        (ToolChoice("required", ("f",)), {"type": "function", "name": "f"}),
        (ToolChoice("required", ("c",)), {"type": "custom", "name": "c"}),
        (
            ToolChoice("auto", ("f", "c")),
            {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "c"}],
            },
        ),
    ):
        assert render(Request("m", (USER,), tools, choice))["tool_choice"] == expected


def test_a_choice_without_tools_is_dropped():
    """C18"""
    request = Request("m", (USER,), tool_choice=ToolChoice("required"))
    assert "tool_choice" not in render(request)
    assert losses(request) == [("$.tool_choice", "tool_choice", "dropped")]


def test_a_renamed_tool_is_renamed_in_the_choice():
    request = parse(asked(tools=[FLAT], tool_choice={"type": "function", "function": {"name": "f"}}))
    assert request.tool_choice is not None
    choice = ToolChoice("required", ("g",), request.tool_choice.extra)
    assert render(Request("m", (USER,), (Tool("g"),), choice))["tool_choice"] == {
        "type": "function",
        "name": "g",
    }
