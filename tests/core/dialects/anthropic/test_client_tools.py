"""Anthropic's own tools that the client runs are functions to everybody else, and themselves to Anthropic."""

from __future__ import annotations

import json
from typing import Any

import anthropic.types as anthropic_types
import anthropic.types.beta as beta_types
import pytest
from anthropic.types.beta import beta_memory_tool_20250818_command as memory_command
from pydantic import TypeAdapter

import wireglot_core
from wireglot_core.dialects.registry import DialectName

UPSTREAMS = ("openai-chat", "openai-responses", "gemini")
TOOLS: list[dict[str, Any]] = [
    {"type": "bash_20250124", "name": "bash"},
    {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 9000},
    {"type": "memory_20250818", "name": "memory"},
    {
        "type": "computer_20251124",
        "name": "computer",
        "display_width_px": 1024,
        "display_height_px": 768,
        "enable_zoom": True,
    },
]


def ask(tools: list[dict[str, Any]], *more: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Look around."}, *more]
    return {"model": "claude-opus-4-6", "max_tokens": 100, "messages": messages, "tools": tools}


def functions(body: dict[str, Any], target: str) -> dict[str, dict[str, Any]]:
    """Name -> schema of the functions that a translated request declares."""
    if target == "openai-chat":
        return {tool["function"]["name"]: tool["function"]["parameters"] for tool in body["tools"]}
    if target == "openai-responses":
        assert {tool["type"] for tool in body["tools"]} == {"function"}
        return {tool["name"]: tool["parameters"] for tool in body["tools"]}
    declared = [one for group in body["tools"] for one in group["functionDeclarations"]]
    return {one["name"]: one.get("parametersJsonSchema") or one.get("parameters") for one in declared}


@pytest.mark.parametrize("target", UPSTREAMS)
def test_they_are_functions_with_their_published_schemas(target: DialectName) -> None:
    """[X16] They were dropped as if the provider ran them."""
    out = wireglot_core.translate_request(ask(TOOLS), source="anthropic", target=target, model="m")
    found = functions(out.value, target)
    assert list(found) == ["bash", "str_replace_based_edit_tool", "memory", "computer"]
    assert set(found["bash"]["properties"]) == {"command", "restart"}
    assert found["str_replace_based_edit_tool"]["properties"]["command"]["enum"] == [
        "view",
        "create",
        "str_replace",
        "insert",
    ]
    assert "rename" in found["memory"]["properties"]["command"]["enum"]
    assert {"left_click", "zoom", "hold_key"} <= set(found["computer"]["properties"]["action"]["enum"])
    assert [loss.feature for loss in out.losses if loss.path.startswith("$.tools")] == ["tool.native"] * 4
    assert "1024 x 768" in json.dumps(out.value)


def test_each_version_of_the_editor_has_its_own_commands() -> None:
    """[X16] `undo_edit` ended with 20250429, `insert_text` began with 20250728."""
    tools = [
        {"type": "text_editor_20250124", "name": "str_replace_editor"},
        {"type": "text_editor_20250429", "name": "str_replace_based_edit_tool"},
    ]
    out = wireglot_core.translate_request(ask(tools), source="anthropic", target="openai-chat", model="m")
    old, new = (
        functions(out.value, "openai-chat")[name]["properties"]
        for name in ("str_replace_editor", "str_replace_based_edit_tool")
    )
    assert "undo_edit" in old["command"]["enum"]
    assert "undo_edit" not in new["command"]["enum"]
    assert "insert_text" not in old
    assert "insert_text" not in new


def test_the_memory_schema_is_that_of_the_sdk() -> None:
    """[X16] Whatever fits the SDK's commands has its fields in ours."""
    out = wireglot_core.translate_request(ask(TOOLS), source="anthropic", target="openai-chat", model="m")
    ours = functions(out.value, "openai-chat")["memory"]["properties"]
    commands = TypeAdapter(memory_command.BetaMemoryTool20250818Command).json_schema()["$defs"].values()
    for command in commands:
        assert set(command["properties"]) <= set(ours)
        assert command["properties"]["command"]["const"] in ours["command"]["enum"]


@pytest.mark.parametrize("target", UPSTREAMS)
def test_calls_and_results_of_them_are_ordinary_ones(target: DialectName) -> None:
    """[X16] In history, and in the answer: the client knows them by their name."""
    history: tuple[dict[str, Any], ...] = (
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a b"}]},
    )
    asked = ask(TOOLS, *history)
    out = wireglot_core.translate_request(asked, source="anthropic", target=target, model="m")
    sent = json.dumps(out.value)
    assert "a b" in sent
    assert not [loss for loss in out.losses if loss.action == "dropped" and loss.feature != "cache_marker"]
    answer: dict[str, Any] = {
        "id": "c1",
        "model": "m",
        "object": "chat.completion",
        "created": 1,
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "x",
                            "type": "function",
                            "function": {"name": "computer", "arguments": '{"action": "screenshot"}'},
                        }
                    ],
                },
            }
        ],
    }
    back = wireglot_core.translate_response(
        answer, source="openai-chat", target="anthropic", request=asked
    ).value
    message = anthropic_types.Message.model_validate(back)
    call = message.content[0]
    assert isinstance(call, anthropic_types.ToolUseBlock)
    assert (call.name, call.input) == ("computer", {"action": "screenshot"})
    assert message.stop_reason == "tool_use"


def test_to_anthropic_they_stay_what_they_are() -> None:
    """[X16] Byte for byte, also where the request is fitted to a provider that has them."""
    toolset = {"type": "computer_toolset_20260801", "configs": {"zoom": {"enabled": False}}}
    call = {"type": "tool_use", "id": "t1", "name": "left_click", "toolset_name": "computer", "input": {}}
    asked = ask(
        [*TOOLS, toolset],
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
    )
    out = wireglot_core.translate_request(asked, source="anthropic", target="anthropic")
    assert out.value == asked
    fitted = wireglot_core.translate_request(
        asked, source="anthropic", target="anthropic", provider="anthropic"
    )
    assert fitted.value["tools"] == asked["tools"]
    assert fitted.value["messages"][1]["content"] == [call]


def test_a_provider_that_only_speaks_the_dialect_gets_functions() -> None:
    """[X16] Kimi's Messages endpoint knows no types of Anthropic's."""
    out = wireglot_core.translate_request(
        ask(TOOLS), source="anthropic", target="anthropic", model="kimi-k3", provider="kimi-anthropic"
    )
    assert [tool["name"] for tool in out.value["tools"]] == [tool["name"] for tool in TOOLS]
    assert all(
        "input_schema" in tool and tool.get("type", "custom") == "custom" for tool in out.value["tools"]
    )


def test_a_toolset_is_one_function_for_each_member_and_its_calls_say_so_again() -> None:
    """[X16] One declaration without a name stands for a family of tools."""
    toolset = {"type": "computer_toolset_20260801", "configs": {"zoom": {"enabled": False}}}
    asked = ask([toolset])
    sent = wireglot_core.translate_request(asked, source="anthropic", target="openai-chat", model="m").value
    found = functions(sent, "openai-chat")
    names = list(found)
    drag = found["computer__left_click_drag"]
    assert list(drag["properties"]) == ["start_coordinate", "coordinate", "text"]
    assert drag["required"] == ["start_coordinate", "coordinate"]
    assert all(set(each.get("required", ())) <= each["properties"].keys() for each in found.values())
    assert "computer__left_click" in names
    assert "computer__zoom" not in names
    assert len(names) == 16
    delta = {
        "tool_calls": [
            {
                "index": 0,
                "id": "x",
                "type": "function",
                "function": {"name": "computer__scroll", "arguments": '{"scroll_direction":"up"}'},
            }
        ]
    }
    chunk = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}],
    }
    stream = wireglot_core.StreamTranslator(source="openai-chat", target="anthropic", request=asked)
    frames = b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n"
    text = (stream.feed(frames) + stream.close()).decode()
    assert '"name":"scroll"' in text
    assert '"toolset_name":"computer"' in text


@pytest.mark.parametrize("target", UPSTREAMS)
def test_what_a_clients_own_tool_search_found_is_reported_in_words(target: DialectName) -> None:
    """[X17] A result of nothing but references arrived empty."""
    found = {"type": "tool_reference", "tool_name": "create_issue"}
    asked = ask(
        [
            {"name": "ToolSearch", "description": "Find tools.", "input_schema": {"type": "object"}},
            {
                "name": "create_issue",
                "description": "Open an issue.",
                "input_schema": {"type": "object"},
                "defer_loading": True,
            },
        ],
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "ToolSearch", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [found]}]},
    )
    out = wireglot_core.translate_request(asked, source="anthropic", target=target, model="m")
    assert "The tool create_issue can be called now." in json.dumps(out.value)
    assert ("foreign_part", "dropped") not in {(loss.feature, loss.action) for loss in out.losses}
    assert wireglot_core.translate_request(asked, source="anthropic", target="anthropic").value == asked


OFF = {"file_upload", "javascript_exec", "read_console", "read_network"}


def inputs_of_the_sdk() -> dict[str, dict[str, Any]]:
    """Member -> the schema of its input in the SDK."""
    found: dict[str, dict[str, Any]] = {}
    for name in beta_types.beta_browser_member_name.BETA_BROWSER_MEMBER_NAME_VALUES:
        model = f"BetaBrowser{''.join(word.capitalize() for word in name.split('_'))}Input"
        found[name] = getattr(beta_types, model).model_json_schema(by_alias=True)
    return found


def test_a_browser_is_a_function_for_each_member_that_is_on() -> None:
    """Four are off unless they are switched on (anthropic-sdk-python 2.9.0)."""
    published = inputs_of_the_sdk()
    configs = {name: {"enabled": True} for name in OFF}
    for toolset, names in (
        ({"type": "browser_toolset_20260801"}, set(published) - OFF),
        ({"type": "browser_toolset_20260801", "configs": configs}, set(published)),
        (
            {"type": "browser_toolset_20260801", "configs": {"zoom": {"enabled": False}}},
            set(published) - OFF - {"zoom"},
        ),
    ):
        out = wireglot_core.translate_request(
            ask([toolset]), source="anthropic", target="openai-chat", model="m"
        )
        found = functions(out.value, "openai-chat")
        assert set(found) == {f"browser__{name}" for name in names}
        for name in names:
            schema = found[f"browser__{name}"]
            assert set(schema["properties"]) == set(published[name].get("properties", {}))
            assert set(schema.get("required", ())) == set(published[name].get("required", ()))


@pytest.mark.parametrize("target", UPSTREAMS)
def test_calls_of_a_browser_and_what_became_of_them_cross(target: DialectName) -> None:
    tabs = [{"tab_id": "tab_9", "title": "News", "url": "https://news.example", "active": True}]
    call = {"type": "tool_use", "id": "t1", "name": "new_tab", "toolset_name": "browser", "input": {}}
    result = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "toolset_name": "browser",
        "content": [{"type": "browser_state", "tabs": tabs}],
    }
    asked = ask(
        [{"type": "browser_toolset_20260801"}],
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    )
    out = wireglot_core.translate_request(asked, source="anthropic", target=target, model="m")
    sent = json.dumps(out.value)
    assert "new_tab" in sent
    assert "tab_9 (active): News https://news.example" in sent
    assert not [loss for loss in out.losses if loss.grade == "serious" or loss.feature == "unknown_field"]
    assert wireglot_core.translate_request(asked, source="anthropic", target="anthropic").value == asked
