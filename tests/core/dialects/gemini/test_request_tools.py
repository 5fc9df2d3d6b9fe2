"""Tools of a request: declarations, hosted tools, the choice."""

import pytest

from tests.core.dialects.gemini.requests import HELLO, asked, comes_back, features, parse, render
from tests.tiers import rows
from wireglot_core.ir.content import (
    CacheMark,
    Foreign,
)
from wireglot_core.ir.request import (
    HostedTool,
    Request,
    Tool,
    ToolChoice,
)


def test_a_schema_message_is_read_as_the_json_schema_it_means_and_comes_back():
    parameters = {
        "type": "OBJECT",
        "properties": {
            "when": {"type": "STRING", "nullable": True, "enum": ["now", "later"]},
            "tags": {"type": "ARRAY", "items": {"type": "STRING"}, "minItems": "1"},
        },
        "required": ["tags"],
    }
    body = asked(
        tools=[{"functionDeclarations": [{"name": "f", "description": "d", "parameters": parameters}]}]
    )
    (tool,) = parse(body).tools
    assert isinstance(tool, Tool)
    assert tool.schema == {
        "type": "object",
        "properties": {
            "when": {"type": ["string", "null"], "enum": ["now", "later", None]},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        },
        "required": ["tags"],
    }
    comes_back(body)


def test_json_schema_is_sent_in_the_field_that_takes_it():
    """R-D-01, R-A-13, PAINS A14: no keyword is lost on the way to Gemini."""
    schema = {
        "type": "object",
        "properties": {"status": {"enum": ["a", "b"]}},
        "$defs": {"x": {"const": 1}},
        "required": ["status"],
    }
    body = render(Request("m", HELLO, (Tool("TodoWrite", "Writes.", schema),))).value
    assert body["tools"] == [
        {
            "functionDeclarations": [
                {"name": "TodoWrite", "description": "Writes.", "parametersJsonSchema": schema}
            ]
        }
    ]


@pytest.mark.parametrize("schema", [None, {}, {"type": "object", "properties": {}}])
def test_a_function_without_arguments_states_no_parameters(schema):
    """R-DB-09: empty object parameters are omitted."""
    body = render(Request("m", HELLO, (Tool("f", "d", schema),))).value
    assert body["tools"] == [{"functionDeclarations": [{"name": "f", "description": "d"}]}]


def test_no_tools_means_no_tools_field():
    """C18"""
    assert "tools" not in render(Request("m", HELLO)).value


@rows(
    "tools",
    [
        [
            {"functionDeclarations": [{"name": "f", "description": "d"}]},
            {"functionDeclarations": [{"name": "g"}]},
        ],
        [{"functionDeclarations": [{"name": "f"}], "googleSearch": {}}],
        [{"googleSearch": {}}, {"functionDeclarations": [{"name": "f"}]}, {"urlContext": {}}],
        [{"functionDeclarations": [{"name": "f", "behavior": "BLOCKING", "response": {"type": "STRING"}}]}],
        [{"functionDeclarations": [{"name": "f"}], "codeExecution": None}],
        [{"x_future_tool": {"a": 1}}],
        [{"functionDeclarations": []}],
        [],
    ],
)
def test_the_grouping_of_tools_comes_back(tools):
    comes_back(asked(tools=tools))


def test_googles_hosted_tools_have_their_shared_names():
    tools = parse(
        asked(tools=[{"googleSearch": {}}, {"codeExecution": {}}, {"urlContext": {}}, {"googleMaps": {}}])
    ).tools
    assert [tool.kind for tool in tools if isinstance(tool, HostedTool)] == [
        "web_search",
        "code_execution",
        "web_fetch",
        "googleMaps",
    ]


def test_another_providers_hosted_tool_becomes_googles_own_or_is_dropped_but_never_a_function():
    """R-DB-17"""
    search = HostedTool(
        "web_search", Foreign("anthropic", "web_search_20250305", {"type": "web_search_20250305"})
    )
    files = HostedTool("file_search", Foreign("openai-responses", "file_search", {"type": "file_search"}))
    rendered = render(Request("m", HELLO, (search, files)))
    assert rendered.value["tools"] == [{"googleSearch": {}}]
    assert features(rendered) == [
        ("$.tools[0]", "hosted_tool", "approximated"),
        ("$.tools[1]", "hosted_tool", "dropped"),
    ]


def test_what_a_function_cannot_say_here_is_declared():
    tool = Tool("f", None, None, strict=True, namespace="ns", deferred=True, cache=CacheMark("short"))
    rendered = render(Request("m", HELLO, (tool, Tool("p", kind="custom"))))
    assert [loss.feature for loss in rendered.losses] == [
        "tool.strict",
        "tool.namespace",
        "tool.deferred",
        "cache_marker",
        "tool.custom",
    ]


@rows(
    ("choice", "config"),
    [
        (ToolChoice("auto"), {"mode": "AUTO"}),
        (ToolChoice("none"), {"mode": "NONE"}),
        (ToolChoice("required"), {"mode": "ANY"}),
        (ToolChoice("required", ("f",)), {"mode": "ANY", "allowedFunctionNames": ["f"]}),
        (ToolChoice("auto", ("f", "g")), {"mode": "VALIDATED", "allowedFunctionNames": ["f", "g"]}),
    ],
)
def test_the_tool_choice_matrix(choice, config):
    """C3, R-DB-07, PAINS A28"""
    rendered = render(Request("m", HELLO, (Tool("f"), Tool("g")), choice))
    assert rendered.value["toolConfig"] == {"functionCallingConfig": config}
    assert rendered.losses == ()
    again = parse(asked(toolConfig={"functionCallingConfig": config})).tool_choice
    assert again is not None
    assert (again.mode, again.only) == (choice.mode, choice.only)


@rows(
    "config",
    [
        {"functionCallingConfig": {"mode": "VALIDATED"}},
        {
            "functionCallingConfig": {"mode": "AUTO", "streamFunctionCallArguments": True},
            "includeServerSideToolInvocations": True,
        },
        {"functionCallingConfig": {"mode": "NONE", "allowedFunctionNames": ["f"]}},
        {"functionCallingConfig": {"allowedFunctionNames": ["f"]}},
        {"functionCallingConfig": {"mode": "any"}},
        {"functionCallingConfig": {}},
        {"retrievalConfig": {"languageCode": "de"}},
        {},
    ],
)
def test_a_tool_config_comes_back(config):
    comes_back(asked(toolConfig=config))


def test_no_forced_mode_is_ever_made_up():
    """C3, R-S-05"""
    assert "toolConfig" not in render(Request("m", HELLO, (Tool("f"),))).value
