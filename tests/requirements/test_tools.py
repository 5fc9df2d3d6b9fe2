"""Groups Y, Z, AC and AI, about tools: definitions in, the choice, calls out, results in."""

import json
import re
from typing import Any

import pytest

from tests.requirements.wire import (
    ASKS,
    MAIN,
    asked,
    candidate,
    chat,
    frames,
    gemini,
    message,
    reported,
    responses,
    sse,
    streamed,
)
from tests.tiers import rows
from wireglot import translate_request
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, dialect, dialect_name
from wireglot_core.ir.request import Tool

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NESTED = {"type": "function", "function": {"name": "look", "description": "d", "parameters": SCHEMA}}
FLAT = {"type": "function", "name": "look", "description": "d", "parameters": SCHEMA}
DECLARED = {"functionDeclarations": [{"name": "look", "description": "d", "parametersJsonSchema": SCHEMA}]}
TOOLS: dict[str, dict[str, Any]] = {
    "anthropic": {"tools": [{"name": "look", "description": "d", "input_schema": SCHEMA}]},
    "openai-chat": {"tools": [NESTED]},
    "openai-responses": {"tools": [FLAT]},
    "gemini": {"tools": [DECLARED]},
}


@pytest.mark.parametrize("source", MAIN)
def test_tools_of_every_client_are_geminis_declarations(source):
    """R-Y-25, R-Z-05, R-AC-08, R-AI-06, R-S-08: one converter for all."""
    body = asked({**ASKS[source], **TOOLS[source]}, source, "gemini")
    assert body["tools"] == [DECLARED]


@rows("source", MAIN)
@rows("target", MAIN)
def test_tools_reach_every_upstream_in_its_own_form(source, target):
    """R-Y-25, C22: nested for Chat, flat for Responses."""
    sent = asked({**ASKS[source], **TOOLS[source]}, source, target, model="m")["tools"]
    expected = TOOLS[target]["tools"]
    if target == "openai-responses" and source != target:
        sent = [{key: value for key, value in tool.items() if key != "strict"} for tool in sent]
    assert sent == expected


def test_geminis_own_declarations_are_not_converted():
    """R-M-03, R-AI-07, R-AF-03: neither the field nor the spelling of the types."""
    native = {
        "functionDeclarations": [
            {
                "name": "f",
                "description": "d",
                "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
            }
        ]
    }
    assert asked(gemini(tools=[native]), "gemini", "gemini")["tools"] == [native]


CHOICES = [
    # Anthropic, Chat, Responses, Gemini
    ({"type": "auto"}, "auto", "auto", {"mode": "AUTO"}),
    ({"type": "none"}, "none", "none", {"mode": "NONE"}),
    ({"type": "any"}, "required", "required", {"mode": "ANY"}),
    (
        {"type": "tool", "name": "look"},
        {"type": "function", "function": {"name": "look"}},
        {"type": "function", "name": "look"},
        {"mode": "ANY", "allowedFunctionNames": ["look"]},
    ),
]


@rows("choice", CHOICES, ids=["auto", "none", "required", "one tool"])
@rows("source", MAIN)
def test_the_choice_has_one_meaning_in_every_dialect(source, choice):
    """R-Y-26, R-Z-06, R-AC-09, R-AF-04, C3, C22, R-DB-07"""
    said = choice[MAIN.index(source)]
    setting = {"toolConfig": {"functionCallingConfig": said}} if source == "gemini" else {"tool_choice": said}
    body = {**ASKS[source], **TOOLS[source], **setting}
    for target, expected in zip(MAIN, choice, strict=True):
        sent = asked(body, source, dialect_name(target), model="m")
        place = sent["toolConfig"]["functionCallingConfig"] if target == "gemini" else sent["tool_choice"]
        assert place == expected


def test_no_choice_is_made_for_the_client():
    """R-S-05, C3: an upstream that must call can never finish."""
    assert "toolConfig" not in asked(chat(tools=[NESTED]), "openai-chat", "gemini")


CALLED = message({"type": "tool_use", "id": "t1", "name": "look", "input": {"city": "Ulm"}}, stop="tool_use")


def test_a_call_is_reported_in_each_clients_own_shape():
    """R-Y-28, R-AD-09, R-AG-04, R-AA-11, R-T-05"""
    chat_call = reported(CALLED, "anthropic", "openai-chat")["choices"][0]["message"]["tool_calls"][0]
    assert chat_call["function"] == {"name": "look", "arguments": '{"city":"Ulm"}'}
    (item,) = reported(CALLED, "anthropic", "openai-responses")["output"]
    assert (item["type"], item["name"], item["arguments"]) == ("function_call", "look", '{"city":"Ulm"}')
    (part,) = reported(CALLED, "anthropic", "gemini")["candidates"][0]["content"]["parts"]
    assert part["functionCall"]["args"] == {"city": "Ulm"}


def test_a_streamed_call_is_reported_in_each_clients_own_shape():
    """R-Y-27, R-AE-09, R-AB-12, R-AB-13"""
    data = sse(candidate({"functionCall": {"name": "look", "args": {"city": "Ulm"}}}))
    deltas = [
        choice["delta"]
        for chunk in frames(streamed(data, "gemini", "openai-chat"))
        for choice in chunk["choices"]
    ]
    calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert (calls[0]["function"]["name"], calls[0]["index"]) == ("look", 0)
    assert json.loads("".join(call["function"]["arguments"] for call in calls)) == {"city": "Ulm"}
    wire = frames(streamed(data, "gemini", "openai-responses"))
    said = "".join(event["delta"] for event in wire if event["type"].endswith("arguments.delta"))
    (done,) = (event["arguments"] for event in wire if event["type"].endswith("arguments.done"))
    assert said == done == '{"city":"Ulm"}'
    (part,) = frames(streamed(data, "gemini", "gemini"))[0]["candidates"][0]["content"]["parts"]
    assert part["functionCall"]["args"] == {"city": "Ulm"}


RESULTS = {
    "openai-chat": chat(
        messages=[
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
        ]
    ),  # R-AC-04, R-AC-05
    "openai-responses": responses(
        input=[
            {"role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
        ]
    ),
    "gemini": gemini(
        contents=[
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "look", "args": {}}}]},
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "c1", "name": "look", "response": {"output": "sunny"}}}
                ],
            },
        ]
    ),
}


@pytest.mark.parametrize("source", list(RESULTS))
def test_a_result_of_every_client_is_a_result(source):
    """R-Y-29, R-Z-02, R-AC-04, R-AC-05"""
    _, call, result = asked(RESULTS[source], source, "anthropic", model="m")["messages"]
    (used,) = call["content"]
    assert (used["id"], used["name"], used["input"]) == ("c1", "look", {})
    (block,) = result["content"]
    assert (block["tool_use_id"], block["content"]) == ("c1", "sunny")


def test_only_the_clients_tools_are_offered():
    """R-Y-30: none of a back end's own are added."""
    for target in MAIN[1:]:
        assert "tools" not in asked(ASKS["anthropic"], "anthropic", dialect_name(target))
        assert (
            len(
                asked({**ASKS["anthropic"], **TOOLS["anthropic"]}, "anthropic", dialect_name(target))["tools"]
            )
            == 1
        )


@pytest.mark.parametrize("target", MAIN[1:])
def test_no_tools_means_no_tools_and_no_choice(target):
    """C18"""
    body = asked({**ASKS["anthropic"], "tools": [], "tool_choice": {"type": "any"}}, "anthropic", target)
    assert not {"tools", "tool_choice", "toolConfig"} & set(body)


LEGAL = {
    "anthropic": r"[a-zA-Z0-9_-]{1,128}",
    "openai-chat": r"[a-zA-Z0-9_-]{1,64}",
    "openai-responses": r"[a-zA-Z0-9_-]{1,64}",
    "gemini": r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}",
}
VENDORS = {
    "anthropic": "anthropic",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "gemini": "gemini",
}
ODD = ["mcp__files__read", "mcp__" + "long" * 30, "9lives", "dotted.name", "a b", "ümlaut", "a_b", "a.b"]


@pytest.mark.parametrize("target", sorted(LEGAL))
def test_every_target_gets_names_that_it_takes_and_the_client_its_own(target: DialectName) -> None:
    """[D] R-DB-12: by the catalog's own rules, reversible, without collisions; names of MCP stay as they are."""
    source: DialectName = "gemini" if target != "gemini" else "openai-chat"
    schema = {"type": "object", "properties": {}}
    body: dict[str, Any]
    if source == "gemini":
        declared = [
            {"functionDeclarations": [{"name": name, "parametersJsonSchema": schema} for name in ODD]}
        ]
        body = {"contents": [{"role": "user", "parts": [{"text": "go"}]}], "tools": declared}
    else:
        functions = [{"type": "function", "function": {"name": name, "parameters": schema}} for name in ODD]
        body = {"model": "m", "messages": [{"role": "user", "content": "go"}], "tools": functions}
    sent = translate_request(body, source=source, target=target, model="m", provider=VENDORS[target])
    tools = dialect(target).parse_request(sent.value, Context()).tools
    names = [tool.name for tool in tools if isinstance(tool, Tool)]
    assert len(set(names)) == len(ODD)
    assert [name for name in names if not re.fullmatch(LEGAL[target], name)] == []
    assert names[0] == ODD[0]
