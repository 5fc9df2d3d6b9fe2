"""Hosted tools that both Anthropic and OpenAI have a place for: servers of tools, and searches for tools."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types import ToolUnionParam
from anthropic.types.beta import BetaMCPToolsetParam, BetaRequestMCPServerURLDefinitionParam
from openai.types.responses import ToolParam
from pydantic import TypeAdapter

import wireglot_core

SERVER: dict[str, Any] = {
    "type": "url",
    "name": "github",
    "url": "https://mcp.example.com/sse",
    "authorization_token": "token-0123456789",
}
MCP: dict[str, Any] = {
    "type": "mcp",
    "server_label": "github",
    "server_url": "https://mcp.example.com/sse",
    "require_approval": "never",
    "authorization": "token-0123456789",
}


def claude(tools: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Look around."}]
    return {"model": "claude-opus-4-6", "max_tokens": 10, "messages": messages, "tools": tools, **more}


def gpt(tools: list[dict[str, Any]]) -> dict[str, Any]:
    return {"model": "gpt-5.5", "input": "Look around.", "tools": tools, "store": False}


def to_gpt(body: dict[str, Any]) -> Any:
    return wireglot_core.translate_request(
        body, source="anthropic", target="openai-responses", model="gpt-5.5"
    )


def to_claude(body: dict[str, Any]) -> Any:
    return wireglot_core.translate_request(
        body, source="openai-responses", target="anthropic", model="claude-opus-4-6"
    )


@pytest.mark.parametrize(
    ("toolset", "said"),
    [
        ({}, {}),
        (
            {"default_config": {"enabled": False}, "configs": {"create_issue": {"enabled": True}}},
            {"allowed_tools": ["create_issue"]},
        ),
        ({"default_config": {"defer_loading": True}}, {"defer_loading": True}),
    ],
)
def test_a_server_of_tools_crosses_both_ways(toolset: dict[str, Any], said: dict[str, Any]) -> None:
    """[X17] Where it is, its token, which of its tools, and whether they wait for a search."""
    asked = claude([{"type": "mcp_toolset", "mcp_server_name": "github", **toolset}], mcp_servers=[SERVER])
    out = to_gpt(asked)
    assert out.value["tools"] == [{**MCP, **said}]
    TypeAdapter(ToolParam).validate_python(out.value["tools"][0])
    assert "mcp_servers" not in out.value
    tools_lost = [(loss.feature, loss.action) for loss in out.losses if loss.feature != "max_tokens"]
    assert tools_lost == [("hosted_tool", "emulated")]

    back = to_claude(gpt(out.value["tools"])).value
    assert back["tools"] == asked["tools"]
    assert back["mcp_servers"] == asked["mcp_servers"]
    TypeAdapter(BetaMCPToolsetParam).validate_python(back["tools"][0])
    TypeAdapter(BetaRequestMCPServerURLDefinitionParam).validate_python(back["mcp_servers"][0])


def test_to_its_own_vendor_a_server_goes_as_it_came() -> None:
    """[X17] Servers that no toolset names, too."""
    toolset = {"type": "mcp_toolset", "mcp_server_name": "github", "configs": {"a": {"enabled": False}}}
    other = {"type": "url", "name": "old", "url": "https://old.example.com"}
    for servers in ([SERVER], [SERVER, other]):
        asked = claude([toolset], mcp_servers=servers)
        assert wireglot_core.translate_request(asked, source="anthropic", target="anthropic").value == asked
    asked = gpt([{**MCP, "require_approval": {"never": {"tool_names": ["a"]}}}])
    assert (
        wireglot_core.translate_request(asked, source="openai-responses", target="openai-responses").value
        == asked
    )


def test_calls_that_need_approval_are_not_made_without_it() -> None:
    """[X17] OpenAI asks before each call unless asked not to; Anthropic cannot ask, so it does not get the tool."""
    for asks in ({}, {"require_approval": "always"}):
        tool = {key: value for key, value in MCP.items() if key != "require_approval"}
        out = to_claude(gpt([{**tool, **asks}]))
        assert "mcp_servers" not in out.value
        assert ("hosted_tool", "dropped") in [(loss.feature, loss.action) for loss in out.losses]


def test_what_the_other_cannot_say_of_a_server_is_reported() -> None:
    """[X17] No option vanishes."""
    toolset = {"type": "mcp_toolset", "mcp_server_name": "github", "configs": {"drop": {"enabled": False}}}
    (loss,) = [
        loss for loss in to_gpt(claude([toolset], mcp_servers=[SERVER])).losses if "tool" in loss.feature
    ]
    assert (loss.action, "configs" in loss.detail) == ("approximated", True)
    headed = {**MCP, "authorization": None, "headers": {"X-Team": "a"}, "server_description": "Issues."}
    (loss,) = [loss for loss in to_claude(gpt([headed])).losses if "tool" in loss.feature]
    assert loss.action == "approximated"
    assert "headers" in loss.detail
    assert "server_description" in loss.detail
    connector = {
        "type": "mcp",
        "server_label": "d",
        "connector_id": "connector_dropbox",
        "require_approval": "never",
    }
    assert [loss.action for loss in to_claude(gpt([connector])).losses if "tool" in loss.feature] == [
        "dropped"
    ]


def test_a_search_for_tools_crosses_with_the_tools_it_searches() -> None:
    """[X17] Deferred here, deferred there, while the provider itself searches."""
    schema = {"type": "object", "properties": {}}
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    later = {"name": "archive", "description": "Archive.", "input_schema": schema, "defer_loading": True}
    sent = to_gpt(claude([search, later])).value["tools"]
    assert sent[0] == {"type": "tool_search"}
    assert (sent[1]["name"], sent[1]["defer_loading"]) == ("archive", True)
    back = to_claude(gpt(sent)).value["tools"]
    assert back == [search, later]
    TypeAdapter(ToolUnionParam).validate_python(back[0])


@pytest.mark.parametrize("crossing", [to_gpt, to_claude])
def test_a_tool_that_nothing_searches_for_is_loaded(crossing: Any) -> None:
    """[X17] A deferred tool without a search would never be seen; the loss says that it is there at once."""
    schema = {"type": "object", "properties": {}}
    body = (
        claude([{"name": "archive", "description": "A.", "input_schema": schema, "defer_loading": True}])
        if crossing is to_gpt
        else gpt([{"type": "function", "name": "archive", "parameters": schema, "defer_loading": True}])
    )
    out = crossing(body)
    assert "defer_loading" not in out.value["tools"][0]
    assert "tool.deferred" in {loss.feature for loss in out.losses}


def test_a_deferred_tool_that_the_clients_search_found_is_loaded() -> None:
    """[L5] Declared as deferred, then found: from then on an ordinary tool, at its own place."""
    schema = {"type": "object", "properties": {}}
    tool = {"type": "function", "name": "archive", "parameters": schema, "defer_loading": True}
    search = {"type": "tool_search", "execution": "client", "parameters": schema}
    call = {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {}}
    output = {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": [tool]}
    asked = {**gpt([search, tool]), "input": [{"role": "user", "content": "Hi"}, call, output]}
    sent = to_claude(asked).value["tools"]
    assert [one["name"] for one in sent] == ["tool_search", "archive"]
    assert "defer_loading" not in sent[1]
    same = wireglot_core.translate_request(asked, source="openai-responses", target="openai-responses").value
    assert same == asked


@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "gemini"])
def test_calls_that_openai_made_are_known_to_the_next_model(target: Any) -> None:
    """[X17] What a server of tools answered was left out of the conversation."""
    made = {
        "type": "mcp_call",
        "id": "mcp_1",
        "server_label": "github",
        "name": "list_issues",
        "arguments": '{"state":"open"}',
        "output": "three are open",
        "status": "completed",
    }
    failed = {**made, "id": "mcp_2", "output": None, "error": {"type": "http_error", "code": 500}}
    listed = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "github", "tools": []}
    words = {"type": "message", "role": "assistant", "content": "Three."}
    more = {"type": "message", "role": "user", "content": "Which?"}
    start = {"type": "message", "role": "user", "content": "How many?"}
    asked = {**gpt([MCP]), "input": [start, listed, made, failed, words, more]}
    out = wireglot_core.translate_request(asked, source="openai-responses", target=target, model="m")
    sent = json.dumps(out.value)
    assert "three are open" in sent
    assert "http_error" in sent
    assert "github__list_issues" in sent
    assert "tool_result.pairing" not in {loss.feature for loss in out.losses}
    same = wireglot_core.translate_request(asked, source="openai-responses", target="openai-responses").value
    assert same == asked


SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


def _claude_code(*results: str) -> dict[str, Any]:
    """Claude Code's search for tools: a function of its own, whose results are references."""
    tools: list[dict[str, Any]] = [
        {"name": "ToolSearch", "description": "Finds tools.", "input_schema": SCHEMA}
    ]
    for name in ("weather", "mail", "clock"):
        tools.append({"name": name, "description": name, "input_schema": SCHEMA, "defer_loading": True})
    body = claude(tools)
    if results:
        call = {"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {}}
        found = [{"type": "tool_reference", "tool_name": name} for name in results]
        answer = {"type": "tool_result", "tool_use_id": "toolu_1", "content": found}
        body["messages"] += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    return body


def _codex(*results: str) -> dict[str, Any]:
    """A search for tools in the Responses API that the client runs."""
    search = {
        "type": "tool_search",
        "execution": "client",
        "description": "Finds tools.",
        "parameters": SCHEMA,
    }
    listed = [
        {"type": "function", "name": name, "parameters": SCHEMA, "strict": False, "defer_loading": True}
        for name in ("weather", "mail", "clock")
    ]
    call = {"type": "tool_search_call", "call_id": "call_1", "execution": "client", "arguments": {}}
    found = [tool for tool in listed if tool["name"] in results]
    answer = {"type": "tool_search_output", "call_id": "call_1", "execution": "client", "tools": found}
    items = [{"role": "user", "content": "Look around."}, *([call, answer] if results else [])]
    return {**gpt([search, *listed]), "input": items}


def _names(value: dict[str, Any]) -> list[str]:
    if "contents" in value:
        return [each["name"] for tool in value["tools"] for each in tool["functionDeclarations"]]
    return [tool.get("name") or tool["function"]["name"] for tool in value["tools"]]


@pytest.mark.parametrize("found", [(), ("mail",), ("weather", "clock")])
@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("anthropic", "openai-chat"),
        ("anthropic", "openai-responses"),
        ("anthropic", "gemini"),
        ("openai-responses", "openai-chat"),
        ("openai-responses", "anthropic"),
        ("openai-responses", "gemini"),
    ],
)
def test_tools_that_the_client_searches_for_are_sent_once_they_are_found(
    source: Any, target: Any, found: tuple[str, ...]
) -> None:
    body = _claude_code(*found) if source == "anthropic" else _codex(*found)
    out = wireglot_core.translate_request(body, source=source, target=target)
    search = "ToolSearch" if source == "anthropic" else "tool_search"
    assert sorted(_names(out.value)) == sorted([search, *found])
    held = [loss for loss in out.losses if (loss.feature, loss.action) == ("tool.deferred", "emulated")]
    assert len([loss for loss in held if "before" in loss.detail]) == 3 - len(found)
    assert not any((loss.feature, loss.action) == ("tool.deferred", "dropped") for loss in out.losses)


def test_its_own_vendor_gets_all_deferred_tools() -> None:
    out = wireglot_core.translate_request(_claude_code("mail"), source="anthropic", target="anthropic")
    assert _names(out.value) == ["ToolSearch", "weather", "mail", "clock"]


def test_a_deferred_tool_that_is_called_or_forced_is_sent() -> None:
    body = _claude_code("mail")
    call = {"type": "tool_use", "id": "toolu_2", "name": "clock", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_2", "content": "noon"}
    body["messages"] += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    body["tool_choice"] = {"type": "tool", "name": "weather"}
    out = wireglot_core.translate_request(body, source="anthropic", target="openai-chat")
    assert _names(out.value) == ["ToolSearch", "weather", "mail", "clock"]
