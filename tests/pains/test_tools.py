"""Recurring complaints about tools in gateways, each as what must hold instead."""

import json
import re
from typing import Any

import pytest

from tests.core.laws.cases import FIXTURES, MAIN
from wireglot import StreamTranslator, translate_request, translate_response
from wireglot_core.dialects.registry import DialectName
from wireglot_core.wire.sse import SseDecoder

IMAGE = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}


def frames(data: bytes) -> list[dict[str, Any]]:
    decoder = SseDecoder()
    found = decoder.feed(data) + decoder.close()
    return [json.loads(frame.data) for frame in found if frame.data != b"[DONE]"]


def stream(source: DialectName, name: str, target: DialectName) -> list[dict[str, Any]]:
    translator = StreamTranslator(source=source, target=target)
    data = (FIXTURES / source / "streams" / name).read_bytes()
    return frames(translator.feed(data) + translator.close())


def chat(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), **more}


def messages(*turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 100, "messages": list(turns), **more}


def use(identifier: str, name: str = "f", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identifier, "name": name, "input": arguments}


def result(identifier: str, content: Any = "21", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identifier, "content": content, **more}


def test_arguments_that_come_only_in_the_done_event_reach_the_stream():
    """A4: `input: {}` because the upstream sent the arguments in `.done` or in one chunk."""
    got: dict[int, str] = {}
    for event in stream("openai-responses", "done_events_only.sse", "anthropic"):
        if event["type"] == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
            got[event["index"]] = got.get(event["index"], "") + event["delta"]["partial_json"]
    assert json.loads(got[min(got)]) == {"city": "Zürich"}


def test_interleaved_parallel_calls_stay_apart():
    """A5: parallel tool calls merged into one block, or with the wrong index."""
    blocks: dict[int, dict[str, Any]] = {}
    opened: list[int] = []
    for event in stream("openai-chat", "tools.sse", "anthropic"):
        if event["type"] == "content_block_start":
            blocks[event["index"]] = {**event["content_block"], "json": ""}
            opened.append(event["index"])
        elif event["type"] == "content_block_delta":
            assert opened == [event["index"]], "one block at a time"
            blocks[event["index"]]["json"] += event["delta"]["partial_json"]
        elif event["type"] == "content_block_stop":
            opened.remove(event["index"])
    assert sorted(blocks) == [0, 1]
    assert [(block["id"], block["name"]) for block in blocks.values()] == [
        ("call_abc123", "get_weather"),
        ("call_def456", "get_time"),
    ]
    assert json.loads(blocks[0]["json"]) == {"city": "Zürich"}


@pytest.mark.parametrize("client", ["anthropic", "openai-chat"])
def test_an_answer_with_calls_says_that_tools_were_called(client):
    """A13: finish reason `stop` although tools were called, and the agent halts."""
    body = {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
                "finishReason": "STOP",
            }
        ]
    }
    answer = translate_response(body, source="gemini", target=client).value
    reason = answer["stop_reason"] if client == "anthropic" else answer["choices"][0]["finish_reason"]
    assert reason == {"anthropic": "tool_use", "openai-chat": "tool_calls"}[client]


SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "who": {"$ref": "#/$defs/Person"},
        "kind": {"const": "a"},
        "age": {"type": "integer", "exclusiveMinimum": 0},
        "note": {"type": ["string", "null"]},
    },
    "required": ["who", "missing"],
    "$defs": {"Person": {"type": "object", "properties": {"name": {"type": "string"}}}},
}


@pytest.mark.parametrize("model", ["gemini-2.5-pro", "gemini-3-pro"])
def test_gemini_gets_a_schema_it_accepts_and_the_caller_is_informed(model):
    """A14: Gemini refuses $ref, const, exclusiveMinimum, type arrays, required of unknown properties."""
    tool = {"name": "f", "description": "F.", "input_schema": SCHEMA}
    rendered = translate_request(
        messages({"role": "user", "content": "?"}, tools=[tool]),
        source="anthropic",
        target="gemini",
        model=model,
    )
    declaration = rendered.value["tools"][0]["functionDeclarations"][0]
    text = json.dumps(declaration)
    for refused in ('"$schema"', '"const"', '"exclusiveMinimum"', '"missing"'):
        assert refused not in text.replace(json.dumps(declaration.get("description", "")), "")
    assert any(loss.feature == "tool.schema" for loss in rendered.losses)


def test_no_other_vendors_schema_is_touched_on_the_way_to_chat():
    """A14: the fix for one vendor must not bend the schema of another."""
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"]}
    tool = {"name": "f", "input_schema": schema}
    rendered = translate_request(
        messages({"role": "user", "content": "?"}, tools=[tool]), source="anthropic", target="openai-chat"
    )
    assert rendered.value["tools"][0]["function"]["parameters"] == schema


def test_gemini_gets_as_many_results_as_calls_in_call_order():
    """A15: "number of function response parts should equal the number of function call parts"."""
    body = messages(
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": [use("t1", "a"), use("t2", "b"), use("t3", "c")]},
        {"role": "user", "content": [result("t3", "three"), result("t1", "one")]},
        {"role": "user", "content": "Go on"},
    )
    rendered = translate_request(body, source="anthropic", target="gemini")
    contents = rendered.value["contents"]
    names = [part["functionResponse"]["name"] for part in contents[2]["parts"] if "functionResponse" in part]
    assert names == ["a", "b", "c"]
    assert any(loss.feature == "tool_result.pairing" for loss in rendered.losses)


@pytest.mark.parametrize("target", [name for name in MAIN if name != "openai-chat"])
def test_orphaned_calls_and_results_are_repaired_the_same_way_each_time(target):
    """R-DB-05, R-DD-05, A16: one lost result wedges a session for ever."""
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = chat(
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "Never mind"},
        {"role": "tool", "tool_call_id": "call_unknown", "content": "lost"},
        {"role": "user", "content": "Go on"},
    )
    first, second = (translate_request(body, source="openai-chat", target=target) for _ in range(2))
    assert first == second
    assert sum(loss.feature == "tool_result.pairing" for loss in first.losses) >= 2
    assert "call_unknown" not in json.dumps(first.value)


PATCH = {"type": "custom", "name": "apply_patch", "description": "Edit.", "format": {"type": "text"}}


@pytest.mark.parametrize("upstream", ["anthropic", "gemini"])
def test_a_freeform_tool_is_a_function_upstream_and_freeform_again_for_codex(upstream):
    """A17: apply_patch dropped, or returned as a function_call."""
    asked = {"model": "m", "input": "Patch it", "tools": [PATCH]}
    rendered = translate_request(asked, source="openai-responses", target=upstream)
    if upstream == "anthropic":
        assert rendered.value["tools"][0]["name"] == "apply_patch"
        answer: dict[str, Any] = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [use("toolu_1", "apply_patch", input="*** Begin Patch")],
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    else:
        parts = [{"functionCall": {"name": "apply_patch", "args": {"input": "*** Begin Patch"}}}]
        answer = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    back = translate_response(answer, source=upstream, target="openai-responses", request=asked).value
    [item] = [item for item in back["output"] if item["type"] == "custom_tool_call"]
    assert (item["name"], item["input"]) == ("apply_patch", "*** Begin Patch")


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "gemini"])
def test_an_image_in_a_tool_result_reaches_the_model(target):
    """R-DB-14, C8, A19: images in tool results dropped, and the model makes something up."""
    body = messages(
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": [use("t1", "shot")]},
        {"role": "user", "content": [result("t1", [{"type": "image", "source": IMAGE}])]},
    )
    rendered = translate_request(body, source="anthropic", target=target)
    assert "aGVsbG8=" in json.dumps(rendered.value)
    if target == "openai-chat":  # it moves to a user message, and that is said
        assert any(loss.feature == "tool_result.media" for loss in rendered.losses)


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "gemini"])
def test_a_hosted_tool_is_mapped_or_declared_and_never_an_empty_function(target):
    """R-DB-17, A20: server tools break on other back ends."""
    tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    rendered = translate_request(
        messages({"role": "user", "content": "?"}, tools=[tool]), source="anthropic", target=target
    )
    assert any(loss.feature == "hosted_tool" for loss in rendered.losses)
    functions = json.dumps(rendered.value.get("tools", []))
    assert '"function"' not in functions
    assert "functionDeclarations" not in functions


def test_choice_subset_and_parallel_control_go_together():
    """A28: tool_choice, parallel_tool_calls and allowed_tools lost."""
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
        for name in ("a", "b", "c")
    ]
    subset = [{"type": "function", "function": {"name": name}} for name in ("a", "b")]
    body = chat(
        {"role": "user", "content": "?"},
        tools=tools,
        tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": subset}},
        parallel_tool_calls=False,
    )
    gemini = translate_request(body, source="openai-chat", target="gemini")
    config = gemini.value["toolConfig"]["functionCallingConfig"]
    assert config == {"mode": "ANY", "allowedFunctionNames": ["a", "b"]}
    assert any(loss.feature == "parallel_tools" for loss in gemini.losses)
    claude = translate_request(body, source="openai-chat", target="anthropic")
    assert claude.value["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    assert [tool["name"] for tool in claude.value["tools"]] == ["a", "b"]
    assert any(loss.feature == "tool_choice" for loss in claude.losses)


def test_long_and_odd_tool_names_are_renamed_injectively_and_turned_back():
    """A29: names over 64 characters, or with dots, refused."""
    names = ["mcp.files:" + "x" * 80, "mcp.files:" + "x" * 81, "plain"]
    declared = [{"name": name, "description": "F."} for name in names]
    asked = {
        "contents": [{"role": "user", "parts": [{"text": "?"}]}],
        "tools": [{"functionDeclarations": declared}],
    }
    rendered = translate_request(asked, source="gemini", target="anthropic", model="claude-sonnet-4-5")
    sent = [tool["name"] for tool in rendered.value["tools"]]
    assert len(set(sent)) == 3
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in sent)
    answer = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [use(f"toolu_{index}", name) for index, name in enumerate(sent)],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    back = translate_response(
        answer, source="anthropic", target="gemini", request=asked, model="claude-sonnet-4-5"
    ).value
    parts = back["candidates"][0]["content"]["parts"]
    assert [part["functionCall"]["name"] for part in parts if "functionCall" in part] == names


def test_an_anthropic_client_gets_ids_it_can_send_back():
    """A29: ids of the wrong shape (`functions.Bash:0`) poison a later turn."""
    for event in stream("anthropic", "kimi_start_input_and_delta.sse", "anthropic"):
        if event["type"] == "content_block_start":
            assert re.fullmatch(r"[a-zA-Z0-9_-]+", event["content_block"]["id"])
