"""Wire streams to read, and what every provider demands of a conversation."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from wireglot.history import Assistant
from wireglot_core.wire.json import encode

FIXTURES = Path(__file__).parents[1] / "fixtures"
DIALECTS = ("anthropic", "openai-chat", "openai-responses", "gemini", "code-assist")
MODELS = {
    "anthropic": "claude-opus-5",
    "openai-chat": "gpt-5.1",
    "openai-responses": "gpt-5.1",
    "gemini": "gemini-3-pro",
    "code-assist": "gemini-3-pro",
}

READ: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
    },
}
"""A tool in OpenAI's form."""


def stream(*documents: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + encode(document) + b"\n\n" for document in documents)


def gemini_chunk(*parts: dict[str, Any], finish: str = "STOP", **more: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"index": 0, "content": content, "finishReason": finish}], **more}


def heard(dialect: str, data: bytes, provider: str = "", model: str = "") -> Assistant:
    """The answer in a stream that arrives at once."""
    answer = Assistant.of(dialect, provider=provider, model=model)
    list(answer.steps([data]))
    return answer


def anthropic_events(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def anthropic_call(
    shape: dict[str, Any], reason: str = "tool_use", identifier: str = "Read_0"
) -> list[dict[str, Any]]:
    """A stream with one call, whose input arrives in the given shape (`start`, `deltas`)."""
    block: dict[str, Any] = {"type": "tool_use", "id": identifier, "name": "Read"}
    if "start" in shape:
        block["input"] = shape["start"]
    usage = {"input_tokens": 5, "output_tokens": 1}
    message: dict[str, Any] = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "kimi-k3", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    deltas = [
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": piece},
        }
        for piece in shape["deltas"]
    ]
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *deltas,
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop"},
    ]


# What every provider demands: nothing empty, no call without its result right behind, no result without a call.


def assert_presentable(dialect: str, body: dict[str, Any]) -> None:
    match dialect:
        case "anthropic":
            turns = list(_anthropic(body))
        case "openai-chat":
            turns = list(_chat(body))
        case "openai-responses":
            turns = list(_responses(body))
        case "gemini":
            turns = list(_gemini(body))
        case "code-assist":
            turns = list(_gemini(body["request"]))
        case _:
            raise AssertionError(dialect)
    assert turns, "nothing is asked"
    waiting: list[Any] = []
    for kind, key in turns:
        if kind == "call":
            waiting.append(key)
        elif kind == "result":
            assert key in waiting, f"result {key!r} answers no open call: {turns}"
            waiting.remove(key)
        else:
            assert not waiting, f"{waiting} not answered before {kind}: {turns}"
    assert not waiting, f"{waiting} never answered: {turns}"


Turn = tuple[str, Any]


def _anthropic(body: dict[str, Any]) -> Iterator[Turn]:
    for message in body["messages"]:
        content = message["content"]
        assert content, message
        if isinstance(content, str):
            assert content.strip(), message
            yield message["role"], None
            continue
        calls, other = [], 0
        for block in content:
            assert block, message
            if block["type"] == "text":
                assert block["text"].strip(), message
            if block["type"] == "tool_use":
                calls.append(block["id"])
            elif block["type"] == "tool_result":
                assert not other, f"results stand first: {message}"
                yield "result", block["tool_use_id"]
            else:
                other += 1
                if message["role"] == "user":
                    yield "user", None
        if message["role"] == "assistant":
            yield "assistant", None
        for identifier in calls:
            yield "call", identifier


def _chat(body: dict[str, Any]) -> Iterator[Turn]:
    for message in body["messages"]:
        content, calls = message.get("content"), message.get("tool_calls")
        assert content or calls or message["role"] == "tool" or message.get("refusal"), message
        if isinstance(content, list):
            assert all(part.get("text", "full") for part in content), message
        if message["role"] == "tool":
            yield "result", message["tool_call_id"]
            continue
        yield message["role"], None
        assert calls is None or calls, message
        for call in calls or ():
            yield "call", call["id"]


def _responses(body: dict[str, Any]) -> Iterator[Turn]:
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind in ("function_call", "custom_tool_call"):
            yield "call", item["call_id"]
        elif kind in ("function_call_output", "custom_tool_call_output"):
            yield "result", item["call_id"]
        elif kind == "message":
            assert item["content"], item
            if isinstance(item["content"], list):
                assert all(part.get("text", "full") for part in item["content"]), item
            if item["role"] != "assistant":  # prose behind a call is the same turn
                yield item["role"], None


def _gemini(body: dict[str, Any]) -> Iterator[Turn]:
    """Ids may be left out: then names, in order, tell."""
    roles = [content["role"] for content in body["contents"]]
    assert roles[0] == "user"
    for content in body["contents"]:
        assert content["parts"], "empty parts"
        for part in content["parts"]:
            assert part, content
            assert part.get("text") != "" or part.get("thoughtSignature"), content
            if "functionResponse" in part:
                yield "result", part["functionResponse"]["name"]
            elif "functionCall" in part:
                pass
            elif content["role"] == "user":
                yield "user", None
        for part in content["parts"]:
            if "functionCall" in part:
                yield "call", part["functionCall"]["name"]


def texts(parts: Iterable[dict[str, Any]]) -> list[str]:
    return [part["text"] for part in parts if "text" in part]
