"""Tools that the client runs, through the whole gateway: Codex finds a deferred tool of its own and calls it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

ONCE = {"retry": "{retries = 0}", "breaker": "{consecutive = 1000000, minimum = 1000000}"}
TOOLS: list[Any] = [
    {
        "type": "tool_search",
        "execution": "client",
        "description": "Searches over deferred tool metadata.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
    },
    {"type": "shell", "environment": {"type": "local"}},
]
FOUND: Any = {
    "type": "namespace",
    "name": "mcp__tracker",
    "description": "Issues.",
    "tools": [
        {
            "type": "function",
            "name": "close_issue",
            "description": "Close an issue.",
            "parameters": {"type": "object", "properties": {"id": {"type": "string"}}},
            "strict": False,
            "defer_loading": True,
        }
    ],
}


@pytest.fixture(scope="module")
def stage() -> Iterator[tuple[ScriptedUpstream, LiveGateway]]:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "openai-chat", **ONCE) as gateway:
        yield upstream, gateway


def calling(name: str, arguments: dict[str, Any], call_id: str) -> tuple[bytes, ...]:
    """A Chat stream of one call."""
    call = {
        "index": 0,
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    chunk: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m1"}
    chunks = (
        {"index": 0, "delta": {"role": "assistant", "tool_calls": [call]}, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "tool_calls"},
    )
    frames = [b"data: " + json.dumps({**chunk, "choices": [choice]}).encode() + b"\n\n" for choice in chunks]
    return (*frames, b"data: [DONE]\n\n")


def asks(upstream: ScriptedUpstream, name: str, arguments: dict[str, Any], call_id: str) -> None:
    upstream.next(
        Behaviour(pieces=calling(name, arguments, call_id), headers=(("content-type", "text/event-stream"),))
    )


def answered(gateway: LiveGateway, items: Any, **more: Any) -> Any:
    gpt = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="wg", max_retries=0)
    with gpt.responses.stream(model="m1", input=items, tools=TOOLS, **more) as stream:
        return stream.get_final_response()


def echoed(response: Any) -> list[Any]:
    return [item.to_dict(exclude_none=True) for item in response.output]


def test_a_deferred_tool_is_found_and_called(stage: tuple[ScriptedUpstream, LiveGateway]) -> None:
    """[L5] The user's MCP tools were out of reach on every foreign provider."""
    upstream, gateway = stage
    talk: list[Any] = [{"role": "user", "content": "Close issue 7."}]
    asks(upstream, "tool_search", {"query": "close issue"}, "call_1")
    first = answered(gateway, talk, store=False)
    (search,) = first.output
    assert (search.type, search.execution, search.call_id) == ("tool_search_call", "client", "call_1")
    assert search.arguments == {"query": "close issue"}
    output = {
        "type": "tool_search_output",
        "call_id": "call_1",
        "status": "completed",
        "execution": "client",
        "tools": [FOUND],
    }
    talk += [*echoed(first), output]
    asks(upstream, "mcp__tracker__close_issue", {"id": "7"}, "call_2")
    second = answered(gateway, talk, store=False)
    names = [tool["function"]["name"] for tool in upstream.requests[-1].json["tools"]]
    assert names == ["tool_search", "shell", "mcp__tracker__close_issue"]
    (call,) = second.output
    assert (call.type, call.namespace, call.name) == ("function_call", "mcp__tracker", "close_issue")
    reported = upstream.requests[-1].json["messages"]
    assert [message["role"] for message in reported] == ["user", "assistant", "tool"]
    assert reported[1]["tool_calls"][0]["function"]["name"] == "tool_search"
    assert "mcp__tracker__close_issue" in reported[2]["content"]


def test_a_shell_call_is_answered_in_a_chain(stage: tuple[ScriptedUpstream, LiveGateway]) -> None:
    """[X16] The call is in the stored response, its output alone in the next request."""
    upstream, gateway = stage
    asks(upstream, "shell", {"commands": ["ls"]}, "call_9")
    first = answered(gateway, "What is here?")
    (call,) = first.output
    assert (call.type, call.action.commands) == ("shell_call", ["ls"])
    output = {
        "type": "shell_call_output",
        "call_id": "call_9",
        "output": [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
    }
    second = answered(gateway, [output], previous_response_id=first.id)
    assert second.status == "completed"
    reported = upstream.requests[-1].json["messages"]
    assert [message["role"] for message in reported] == ["user", "assistant", "tool"]
    assert json.loads(reported[1]["tool_calls"][0]["function"]["arguments"]) == {"commands": ["ls"]}
    assert reported[2]["content"] == "a.txt\n[exit code 0]"
