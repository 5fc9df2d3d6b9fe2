"""OpenAI's own tools that the client runs: functions to everybody else, items of their own to the client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from openai.types.responses import Response, ResponseOutputItem, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

import wireglot_core
from tests.tiers import rows
from wireglot_core.dialects.registry import DialectName

UPSTREAMS = ("anthropic", "openai-chat", "gemini")
SEARCH: dict[str, Any] = {
    "type": "tool_search",
    "execution": "client",
    "description": "Searches over deferred tool metadata.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}
TOOLS: list[dict[str, Any]] = [
    {"type": "shell", "environment": {"type": "local"}},
    {"type": "local_shell"},
    {"type": "apply_patch"},
    {"type": "computer"},
    SEARCH,
]
CALLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "shell": (
        {"commands": ["ls", "pwd"], "timeout_ms": 1000},
        {"type": "shell_call", "action": {"commands": ["ls", "pwd"], "timeout_ms": 1000}},
    ),
    "local_shell": (
        {"command": ["ls", "-l"]},
        {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls", "-l"], "env": {}}},
    ),
    "apply_patch": (
        {"type": "create_file", "path": "a.txt", "diff": "+hi"},
        {"type": "apply_patch_call", "operation": {"type": "create_file", "path": "a.txt", "diff": "+hi"}},
    ),
    "computer": (
        {"actions": [{"type": "click", "x": 1, "y": 2, "button": "left"}]},
        {"type": "computer_call", "actions": [{"type": "click", "x": 1, "y": 2, "button": "left"}]},
    ),
    "tool_search": (
        {"query": "issues"},
        {"type": "tool_search_call", "execution": "client", "arguments": {"query": "issues"}},
    ),
}
"""Name of the function -> its arguments, and the item that the client knows."""
OUTPUTS: list[dict[str, Any]] = [
    {
        "type": "shell_call_output",
        "call_id": "call_shell",
        "output": [
            {"stdout": "a.txt\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
            {"stdout": "", "stderr": "slow", "outcome": {"type": "timeout"}},
        ],
    },
    {"type": "local_shell_call_output", "id": "call_local_shell", "output": '{"output":"total 0"}'},
    {
        "type": "apply_patch_call_output",
        "call_id": "call_apply_patch",
        "status": "failed",
        "output": "no file",
    },
    {
        "type": "computer_call_output",
        "call_id": "call_computer",
        "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,aGk="},
    },
    {
        "type": "tool_search_output",
        "call_id": "call_tool_search",
        "execution": "client",
        "status": "completed",
        "tools": [
            {
                "type": "namespace",
                "name": "mcp__github",
                "description": "GitHub.",
                "tools": [
                    {
                        "type": "function",
                        "name": "create_issue",
                        "description": "Open an issue.",
                        "parameters": {"type": "object", "properties": {"title": {"type": "string"}}},
                        "defer_loading": True,
                    }
                ],
            }
        ],
    },
]


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """To make one of fifty classes takes 50 ms."""
    return TypeAdapter(kind)


def ask(*items: dict[str, Any], tools: list[dict[str, Any]] = TOOLS) -> dict[str, Any]:
    start = {"type": "message", "role": "user", "content": "Look around."}
    return {"model": "gpt-5.5", "input": [start, *items], "tools": tools, "store": False}


def history() -> list[dict[str, Any]]:
    items = []
    for (name, (_, item)), output in zip(CALLS.items(), OUTPUTS, strict=True):
        items += [{**item, "call_id": f"call_{name}", "id": f"id_{name}", "status": "completed"}, output]
    return items


def functions(body: dict[str, Any], target: str) -> dict[str, Any]:
    """Name -> schema of the functions that a translated request declares."""
    if target == "anthropic":
        return {tool["name"]: tool["input_schema"] for tool in body["tools"]}
    if target == "openai-chat":
        return {tool["function"]["name"]: tool["function"]["parameters"] for tool in body["tools"]}
    declared = [one for group in body["tools"] for one in group["functionDeclarations"]]
    return {one["name"]: one.get("parametersJsonSchema") or one.get("parameters") for one in declared}


def unknown(value: Any, path: str = "$") -> Iterator[str]:
    """Fields that the SDK's types do not have."""
    if isinstance(value, BaseModel):
        yield from (f"{path}.{name}" for name in value.model_extra or {})
        for name in type(value).model_fields:
            yield from unknown(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from unknown(item, f"{path}[{number}]")


def chat_answer(name: str, arguments: str) -> dict[str, Any]:
    call = {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "kimi-k3",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, "tool_calls": [call]},
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def chat_stream(name: str, arguments: str) -> bytes:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        body = {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "kimi-k3",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
        return b"data: " + json.dumps(body).encode() + b"\n\n"

    head = {"index": 0, "id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": ""}}
    pieces = [arguments[:5], arguments[5:]]
    return b"".join(
        [
            chunk({"role": "assistant", "tool_calls": [head]}),
            *(chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}) for piece in pieces),
            chunk({}, "tool_calls"),
            b"data: [DONE]\n\n",
        ]
    )


def events(data: bytes) -> list[dict[str, Any]]:
    return [
        json.loads(line.removeprefix("data: ")) for line in data.decode().splitlines() if line[:6] == "data: "
    ]


@pytest.mark.parametrize("target", UPSTREAMS)
def test_they_are_functions_with_the_arguments_of_their_calls(target: DialectName) -> None:
    """[X16] [L5] They were dropped as if the provider ran them, and so was Codex's way to its MCP tools."""
    out = wireglot_core.translate_request(ask(), source="openai-responses", target=target, model="m")
    found = functions(out.value, target)
    assert list(found) == list(CALLS)
    for name, (arguments, _) in CALLS.items():
        assert set(arguments) <= set(found[name]["properties"])
    assert found["tool_search"]["properties"] == SEARCH["parameters"]["properties"]
    assert [loss.feature for loss in out.losses if loss.path.startswith("$.tools[")] == ["tool.native"] * 5


@rows("name", CALLS)
def test_a_call_comes_back_as_the_item_that_the_client_knows(name: str) -> None:
    """[X16] [L5] Whole, and as the SDK's own types have it."""
    arguments, item = CALLS[name]
    answer = chat_answer(name, json.dumps(arguments))
    out = wireglot_core.translate_response(
        answer, source="openai-chat", target="openai-responses", request=ask()
    )
    response = Response.model_validate(out.value)
    (shown,) = response.output
    assert shown.type == item["type"]
    assert list(unknown(shown)) == []
    said = shown.model_dump(
        exclude_none=True, exclude={"id", "status", "environment", "pending_safety_checks"}
    )
    assert said == {**item, "call_id": f"call_{name}"}
    adapter(ResponseOutputItem).validate_python(out.value["output"][0], strict=False)


@rows("name", CALLS)
def test_a_streamed_call_has_the_events_of_its_item(name: str) -> None:
    """[X16] [L5] Announced, reported, ended, under one id; the last response has the same item."""
    arguments, item = CALLS[name]
    stream = wireglot_core.StreamTranslator(source="openai-chat", target="openai-responses", request=ask())
    written = events(stream.feed(chat_stream(name, json.dumps(arguments))) + stream.close())
    for event in written:
        read = adapter(ResponseStreamEvent).validate_python(event)
        assert [path for path in unknown(read) if not path.startswith("$.response.")] == []
    kinds = [event["type"] for event in written]
    assert "response.function_call_arguments.delta" not in kinds
    added = written[kinds.index("response.output_item.added")]["item"]
    done = written[kinds.index("response.output_item.done")]["item"]
    assert (added["type"], added["id"], added["status"]) == (item["type"], done["id"], "in_progress")
    assert done["status"] == "completed"
    assert written[-1]["response"]["output"] == [done]
    assert {key: done[key] for key in item if key != "action"} == {
        key: value for key, value in item.items() if key != "action"
    }
    if name == "shell":
        assert done["action"]["commands"] == ["ls", "pwd"]
        reported = [event.get("command", event.get("delta")) for event in written if "command_index" in event]
        assert reported == ["", "ls", "ls", "", "pwd", "pwd"]


def test_a_call_that_does_not_say_what_to_run_is_no_shell_call() -> None:
    """[X16] Half of it is not run: the client is given the function call as the model wrote it."""
    for arguments in ('{"commands": "rm"}', '{"commands": []}'):
        answer = chat_answer("shell", arguments)
        out = wireglot_core.translate_response(
            answer, source="openai-chat", target="openai-responses", request=ask()
        )
        assert [item["type"] for item in out.value["output"]] == ["function_call"]
        stream = wireglot_core.StreamTranslator(
            source="openai-chat", target="openai-responses", request=ask()
        )
        written = events(stream.feed(chat_stream("shell", '{"commands": "rm"}')) + stream.close())
        assert written[-1]["response"]["output"][0]["type"] == "function_call"


@pytest.mark.parametrize("target", UPSTREAMS)
def test_calls_and_results_in_history_are_ordinary_ones(target: DialectName) -> None:
    """[X16] Nothing of them is dropped; a search's tools join the others, under the same names in each turn."""
    out = wireglot_core.translate_request(
        ask(*history()), source="openai-responses", target=target, model="m"
    )
    sent = json.dumps(out.value)
    for expected in ("a.txt\\n[exit code 0]", "slow\\n[timed out]", "total 0", "no file", "aGk="):
        assert expected in sent
    assert "These tools can be called now: mcp__github__create_issue." in sent
    assert [loss for loss in out.losses if loss.feature in ("foreign_part", "tool_result.pairing")] == []
    found = functions(out.value, target)
    assert list(found) == [*CALLS, "mcp__github__create_issue"]
    assert "title" in found["mcp__github__create_issue"]["properties"]


def test_a_tool_that_was_found_is_called_by_its_own_name() -> None:
    """[L5] Codex knows it by namespace and name."""
    answer = chat_answer("mcp__github__create_issue", "{}")
    asked = ask(*history())
    out = wireglot_core.translate_response(
        answer, source="openai-chat", target="openai-responses", request=asked
    )
    (call,) = out.value["output"]
    assert (call["type"], call["namespace"], call["name"]) == ("function_call", "mcp__github", "create_issue")


def test_tools_that_are_found_later_stand_behind_those_of_before() -> None:
    """[L5] What an upstream was sent of tools stays the beginning of what it is sent: its cache is money."""
    before = ask(*history())
    more = {
        "type": "tool_search_output",
        "call_id": "call_2",
        "execution": "client",
        "status": "completed",
        "tools": [
            *OUTPUTS[-1]["tools"],
            {
                "type": "function",
                "name": "archive",
                "description": "Archive.",
                "parameters": {"type": "object"},
            },
        ],
    }
    again = {**CALLS["tool_search"][1], "call_id": "call_2", "status": "completed"}
    after = ask(*history(), again, more)
    sent = [
        wireglot_core.translate_request(body, source="openai-responses", target="anthropic", model="m").value
        for body in (before, after)
    ]
    assert sent[1]["tools"][: len(sent[0]["tools"])] == sent[0]["tools"]
    assert [tool["name"] for tool in sent[1]["tools"][len(sent[0]["tools"]) :]] == ["archive"]
    assert sent[1]["messages"][: len(sent[0]["messages"])] == sent[0]["messages"]


def test_to_openai_they_stay_what_they_are() -> None:
    """[X16] Byte for byte, also where the request is fitted to it."""
    asked = ask(*history())
    assert (
        wireglot_core.translate_request(asked, source="openai-responses", target="openai-responses").value
        == asked
    )
    fitted = wireglot_core.translate_request(
        asked, source="openai-responses", target="openai-responses", provider="openai", model="gpt-5.5"
    )
    assert fitted.value["input"] == asked["input"]
    assert fitted.value["tools"] == asked["tools"]


def test_a_server_that_only_speaks_the_dialect_gets_functions() -> None:
    """[X16] vLLM's Responses endpoint knows functions; calls and results in history are that, too."""
    asked = ask(*history())
    sent = wireglot_core.translate_request(
        asked, source="openai-responses", target="openai-responses", provider="vllm", model="m"
    ).value
    assert {tool["type"] for tool in sent["tools"]} <= {"function", "namespace"}
    kinds = {item["type"] for item in sent["input"]}
    assert kinds <= {"message", "function_call", "function_call_output"}
    assert "create_issue" in json.dumps(sent["tools"])


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_of_openai_itself_crosses_to_other_clients(streamed: bool) -> None:
    """[X16] A shell call is a tool call to an Anthropic client, and the same item to a Responses client."""
    item = {
        "type": "shell_call",
        "id": "sh_1",
        "call_id": "call_1",
        "status": "completed",
        "action": {"commands": ["ls"], "timeout_ms": None, "max_output_length": None},
        "environment": {"type": "local"},
    }
    body: dict[str, Any] = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "gpt-5.5",
        "output": [item],
    }
    if not streamed:
        claude = wireglot_core.translate_response(body, source="openai-responses", target="anthropic").value
        same = wireglot_core.translate_response(
            body, source="openai-responses", target="openai-responses"
        ).value
        assert same["output"] == [item]
        assert claude["content"][0]["input"] == {"commands": ["ls"]}
        assert claude["stop_reason"] == "tool_use"
        return
    frames: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**body, "status": "in_progress", "output": []}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "status": "in_progress", "action": {"commands": []}},
        },
        {"type": "response.shell_call_command.added", "output_index": 0, "command_index": 0, "command": ""},
        {"type": "response.shell_call_command.delta", "output_index": 0, "command_index": 0, "delta": "ls"},
        {"type": "response.shell_call_command.done", "output_index": 0, "command_index": 0, "command": "ls"},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": body},
    ]
    data = b"".join(
        b"data: " + json.dumps({**frame, "sequence_number": number}).encode() + b"\n\n"
        for number, frame in enumerate(frames)
    )
    to_claude = wireglot_core.StreamTranslator(source="openai-responses", target="anthropic")
    text = (to_claude.feed(data) + to_claude.close()).decode()
    assert '"name":"shell"' in text
    assert '"stop_reason":"tool_use"' in text
    to_same = wireglot_core.StreamTranslator(source="openai-responses", target="openai-responses")
    written = events(to_same.feed(data) + to_same.close())
    assert [event["type"] for event in written if event["type"] != "response.in_progress"] == [
        frame["type"] for frame in frames
    ]
    assert written[-1]["response"]["output"] == [item]


@pytest.mark.parametrize("target", UPSTREAMS)
def test_a_shell_in_a_container_is_the_providers(target: DialectName) -> None:
    """[X16] Hosted tools stay hosted: nobody else has that container."""
    hosted = {"type": "shell", "environment": {"type": "container_auto"}}
    call = {
        "type": "shell_call",
        "id": "sh_1",
        "call_id": "call_1",
        "status": "completed",
        "action": {"commands": ["ls"]},
        "environment": {"type": "container_reference", "container_id": "cntr_1"},
    }
    output = {"type": "shell_call_output", "id": "sho_1", "call_id": "call_1", "output": []}
    asked = ask(call, output, tools=[hosted])
    out = wireglot_core.translate_request(asked, source="openai-responses", target=target, model="m")
    assert not out.value.get("tools")
    assert {"hosted_tool", "foreign_part"} <= {loss.feature for loss in out.losses}
    assert (
        wireglot_core.translate_request(asked, source="openai-responses", target="openai-responses").value
        == asked
    )


def test_a_choice_names_such_a_tool_by_its_type() -> None:
    """[X16] `tool_choice: {type: shell}` is the choice of that function elsewhere."""
    asked = {**ask(), "tool_choice": {"type": "apply_patch"}}
    sent = wireglot_core.translate_request(
        asked, source="openai-responses", target="anthropic", model="m"
    ).value
    assert sent["tool_choice"] == {"type": "tool", "name": "apply_patch"}
    same = wireglot_core.translate_request(asked, source="openai-responses", target="openai-responses").value
    assert same["tool_choice"] == {"type": "apply_patch"}


def test_a_function_of_the_same_name_keeps_it() -> None:
    """[X16] The client tells the two apart, so must the upstream."""
    own = {"type": "function", "name": "shell", "parameters": {"type": "object", "properties": {}}}
    asked = ask(tools=[{"type": "shell"}, own])
    sent = wireglot_core.translate_request(
        asked, source="openai-responses", target="openai-chat", model="m"
    ).value
    assert list(functions(sent, "openai-chat")) == ["openai_shell", "shell"]
    plain = wireglot_core.translate_response(
        chat_answer("shell", "{}"), source="openai-chat", target="openai-responses", request=asked
    )
    theirs = wireglot_core.translate_response(
        chat_answer("openai_shell", '{"commands": ["ls"]}'),
        source="openai-chat",
        target="openai-responses",
        request=asked,
    )
    assert plain.value["output"][0]["type"] == "function_call"
    assert theirs.value["output"][0]["type"] == "shell_call"
