"""Legal requests and answers that are much work for their size, or simply large, in each dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Body = dict[str, Any]

DIALECTS: Final = ("anthropic", "openai-chat", "openai-responses", "gemini")
MODEL: Final = "m1"
_WORDS: Final = "the quick brown fox jumps over lazy dogs and reads files again "
_SCHEMA: Final[Body] = {"type": "object", "properties": {"path": {"type": "string"}}}


def request(dialect: str, turns: list[tuple[str, list[Body]]], schema: Body = _SCHEMA) -> Body:
    """`turns`: who speaks, and parts: {"text"}, {"call"} or {"result"}, the latter with an id."""
    messages = [entry for who, parts in turns for entry in _MESSAGES[dialect](who, parts)]
    tool = {"name": "read", "description": "reads"}
    if dialect == "anthropic":
        tools: Any = [{**tool, "input_schema": schema}]
        return {"model": MODEL, "max_tokens": 100, "messages": messages, "tools": tools}
    if dialect == "openai-chat":
        tools = [{"type": "function", "function": {**tool, "parameters": schema}}]
        return {"model": MODEL, "messages": messages, "tools": tools}
    if dialect == "openai-responses":
        tools = [{"type": "function", **tool, "parameters": schema, "strict": False}]
        return {"model": MODEL, "input": messages, "tools": tools, "store": False}
    return {"contents": messages, "tools": [{"functionDeclarations": [{**tool, "parameters": schema}]}]}


def _anthropic(who: str, parts: list[Body]) -> list[Body]:
    made: list[Body] = []
    for part in parts:
        if "text" in part:
            made.append({"type": "text", "text": part["text"]})
        elif "call" in part:
            made.append({"type": "tool_use", "id": part["call"], "name": "read", "input": {"path": "/a/b"}})
        else:
            made.append({"type": "tool_result", "tool_use_id": part["result"], "content": "ok"})
    return [{"role": who, "content": made}]


def _chat(who: str, parts: list[Body]) -> list[Body]:
    results = [{"role": "tool", "tool_call_id": p["result"], "content": "ok"} for p in parts if "result" in p]
    texts = [{"type": "text", "text": part["text"]} for part in parts if "text" in part]
    calls = [
        {"id": part["call"], "type": "function", "function": {"name": "read", "arguments": '{"path":"/a/b"}'}}
        for part in parts
        if "call" in part
    ]
    if not texts and not calls:
        return results
    message: Body = {"role": who, "content": texts or None}
    if calls:
        message["tool_calls"] = calls
    return [*results, message]


def _responses(who: str, parts: list[Body]) -> list[Body]:
    made: list[Body] = []
    texts = [part["text"] for part in parts if "text" in part]
    if texts:
        kind = "input_text" if who == "user" else "output_text"
        made.append({"role": who, "content": [{"type": kind, "text": text} for text in texts]})
    for part in parts:
        if "call" in part:
            call = {"type": "function_call", "call_id": part["call"], "name": "read"}
            made.append({**call, "arguments": '{"path":"/a/b"}'})
        elif "result" in part:
            made.append({"type": "function_call_output", "call_id": part["result"], "output": "ok"})
    return made


def _gemini(who: str, parts: list[Body]) -> list[Body]:
    made: list[Body] = []
    for part in parts:
        if "text" in part:
            made.append({"text": part["text"]})
        elif "call" in part:
            made.append({"functionCall": {"id": part["call"], "name": "read", "args": {"path": "/a/b"}}})
        else:
            answer = {"id": part["result"], "name": "read", "response": {"output": "ok"}}
            made.append({"functionResponse": answer})
    return [{"role": "user" if who == "user" else "model", "parts": made}]


_MESSAGES: Final[dict[str, Callable[[str, list[Body]], list[Body]]]] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}


def text(size: int) -> str:
    return _WORDS * (size // len(_WORDS) + 1)


def said(*texts: str) -> list[tuple[str, list[Body]]]:
    return [("user", [{"text": each} for each in texts])]


def tool_turns(count: int) -> list[tuple[str, list[Body]]]:
    turns = said("go on")
    for number in range(count):
        turns.append(("assistant", [{"call": f"call_{number}"}]))
        turns.append(("user", [{"result": f"call_{number}"}]))
    return turns


def properties(count: int) -> Body:
    return {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(count)}}


def nested(levels: int) -> Body:
    schema: Body = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def history(size: int) -> list[tuple[str, list[Body]]]:
    turns = said("go on")
    for number in range(size // 2000):
        turns.append(("assistant", [{"text": text(900)}, {"call": f"call_{number}"}]))
        turns.append(("user", [{"result": f"call_{number}"}, {"text": text(900)}]))
    return turns


MONSTERS: Final[dict[str, Callable[[str], Body]]] = {
    "20,000 tool turns": lambda dialect: request(dialect, tool_turns(20_000)),
    "60,000 properties": lambda dialect: request(dialect, said("hi"), properties(60_000)),
    "1 MB of history": lambda dialect: request(dialect, history(1_000_000)),
    "10 MB of text": lambda dialect: request(dialect, said(text(10_000_000))),
    "10 MB beyond ASCII": lambda dialect: request(dialect, said("Größe 漢字 " * 550_000)),
    "30 MB of text": lambda dialect: request(dialect, said(text(30_000_000))),
    "100,000 small parts": lambda dialect: request(dialect, said(*(["x"] * 100_000))),
    "a schema of 120 levels": lambda dialect: request(dialect, said(text(200_000)), nested(57)),
}


def answer(dialect: str, words: str) -> Body:
    head: Body
    if dialect == "anthropic":
        usage = {"input_tokens": 1, "output_tokens": 1}
        content = [{"type": "text", "text": words}]
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL}
        return {**head, "content": content, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
    if dialect == "openai-chat":
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": words}}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        head = {"id": "c_1", "object": "chat.completion", "created": 1, "model": MODEL}
        return {**head, "choices": [choice], "usage": usage}
    if dialect == "openai-responses":
        said: Body = {"type": "output_text", "text": words, "annotations": []}
        item = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [said],
        }
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        head = {"id": "resp_1", "object": "response", "created_at": 1, "model": MODEL, "status": "completed"}
        return {**head, "output": [item], "usage": usage}
    candidate = {"content": {"role": "model", "parts": [{"text": words}]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL}


PATHS: Final = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
}


def path(dialect: str, model: str) -> str:
    return PATHS.get(dialect) or f"/v1beta/models/{model}:generateContent"
