"""Short ways through the public functions: a question or an answer of one dialect, as another gets it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import wireglot
from wireglot_core.dialects.registry import DialectName

MAIN = ("anthropic", "openai-chat", "openai-responses", "gemini")

TODO: dict[str, Any] = {
    "type": "object",
    "properties": {
        "todos": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "content": {"type": "string"},
                    "status": {"enum": ["pending", "in_progress", "completed"]},
                },
                "required": ["content", "status"],
            },
        }
    },
    "required": ["todos"],
}
"""A nested schema, with a property that says its values and no type."""

TODOS = {"todos": [{"content": "Write it", "status": "pending"}, {"content": "Try it", "status": "pending"}]}


def messages(*turns: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """A Messages request with the reference tool."""
    tools = [{"name": "TodoWrite", "description": "Keeps a list.", "input_schema": TODO}]
    turns = turns or ({"role": "user", "content": "Plan it."},)
    return {"model": "m", "max_tokens": 100, "tools": tools, "messages": list(turns), **settings}


def chat(**settings: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}], **settings}


def responses(**settings: Any) -> dict[str, Any]:
    return {"model": "m", "input": "hi", **settings}


def gemini(**settings: Any) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], **settings}


ASKS: dict[str, dict[str, Any]] = {
    "anthropic": {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]},
    "openai-chat": chat(),
    "openai-responses": responses(),
    "gemini": gemini(),
}


def asked(body: dict[str, Any], source: DialectName, target: DialectName, **more: Any) -> dict[str, Any]:
    """The request that reaches the upstream."""
    return wireglot.translate_request(body, source=source, target=target, **more).value


def reported(body: dict[str, Any], source: DialectName, target: DialectName, **more: Any) -> dict[str, Any]:
    """The answer that reaches the client."""
    return wireglot.translate_response(body, source=source, target=target, **more).value


def streamed(data: bytes, source: DialectName, target: DialectName, **more: Any) -> bytes:
    translator = wireglot.StreamTranslator(source=source, target=target, **more)
    return translator.feed(data) + translator.close()


def sse(*bodies: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(body).encode() + b"\n\n" for body in bodies)


def events(*bodies: dict[str, Any]) -> bytes:
    """Frames with an event line, as Anthropic and Responses write them."""
    return b"".join(f"event: {body['type']}\ndata: {json.dumps(body)}\n\n".encode() for body in bodies)


def frames(data: bytes) -> list[dict[str, Any]]:
    """What the frames of a stream hold; a sentinel is none."""
    lines = [line[6:] for line in data.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


# Answers of upstreams


def candidate(*parts: dict[str, Any], finish: str | None = "STOP", **more: Any) -> dict[str, Any]:
    """A whole answer of Gemini, or a chunk of one."""
    only: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        only["finishReason"] = finish
    return {"candidates": [only], "responseId": "r1", "modelVersion": "gemini-3-pro", **more}


def completion(message: dict[str, Any], finish: str = "stop", **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **more,
    }


def message(*blocks: dict[str, Any], stop: str = "end_turn", **more: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": list(blocks),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 7},
        **more,
    }


def blocks_of(wire: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The content blocks of an Anthropic stream, put together; the lifecycle must be the strict one."""
    found: list[dict[str, Any]] = []
    is_open = False
    for event in wire:
        match event["type"]:
            case "content_block_start":
                assert not is_open
                assert event["index"] == len(found)
                found.append({**event["content_block"], "deltas": []})
                is_open = True
            case "content_block_delta":
                assert is_open
                assert event["index"] == len(found) - 1
                found[-1]["deltas"].append(event["delta"])
            case "content_block_stop":
                assert is_open
                assert event["index"] == len(found) - 1
                is_open = False
    assert not is_open
    return found
