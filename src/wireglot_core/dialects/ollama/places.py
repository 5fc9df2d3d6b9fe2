"""Paths of turns, parts and tools in the documents of this dialect's clients."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.ollama.settings import OPTION_FIELDS, REQUEST_FIELDS
from wireglot_core.dialects.places import Node, Places, Turn, numbered_nodes, numbered_turns


def _turns(body: dict[str, Any]) -> list[Turn]:
    messages = body.get("messages")
    return numbered_turns("messages", messages) if type(messages) is list else []


def _parts(turn: Turn) -> list[Node]:
    message = turn.value
    if type(message) is not dict:
        return []
    if str(message.get("role")).lower() == "tool":
        return [Node(turn.path, "ToolResult", message)]
    return _message(message, turn.path, "content")


def _message(message: dict[str, Any], path: str, text: str) -> list[Node]:
    nodes: list[Node] = []
    if message.get("thinking"):
        nodes.append(Node(f"{path}.thinking", "Reasoning"))
    if message.get(text):
        nodes.append(Node(f"{path}.{text}", "Text"))
    nodes += numbered_nodes(f"{path}.images", message.get("images"), lambda _: "Media")
    nodes += numbered_nodes(f"{path}.tool_calls", message.get("tool_calls"), lambda _: "ToolCall")
    return nodes


def _tools(body: dict[str, Any]) -> list[Node]:
    return numbered_nodes("$.tools", body.get("tools"), _name)


def _name(tool: Any) -> str:
    function = tool.get("function") if type(tool) is dict else None
    return str(function.get("name") or "") if type(function) is dict else ""


def _answer_parts(body: dict[str, Any]) -> list[Node]:
    message = body.get("message")
    return _message(message, "$.message", "content") if type(message) is dict else []


_ANSWER: Final = {"stop": ("done_reason",), "stop.sequence": ("done_reason",), "usage": ("eval_count",)}
_SETTINGS: Final = {
    **REQUEST_FIELDS.places,
    **OPTION_FIELDS.places,
    "thinking": ("think",),
    "thinking.mode": ("think",),
    "thinking.effort": ("think",),
    "thinking.budget": ("think",),
    "thinking.display": ("think",),
    "output": ("format",),
    "output.schema": ("format",),
    "output.strict": ("format",),
    "output.name": ("format",),
    "output.description": ("format",),
}

PLACES: Final = Places(
    turns=_turns,
    parts=_parts,
    tools=_tools,
    settings={**_SETTINGS, "history": ("messages",)},
    fields={
        "arguments": ("function.arguments",),
        "name": ("function.name", "tool_name"),
        "call_id": ("tool_call_id",),
        "schema": ("function.parameters",),
        "description": ("function.description",),
    },
    answer_parts=_answer_parts,
    answer={"content": ("message",), **_ANSWER},
)


# /api/generate


def _prompt_turns(body: dict[str, Any]) -> list[Turn]:
    turns = [Turn("$.system", body["system"])] if body.get("system") else []
    return [*turns, Turn("$", body)]


def _prompt_parts(turn: Turn) -> list[Node]:
    if type(turn.value) is not dict:
        return [Node(turn.path, "Text")]
    nodes = [Node("$.prompt", "Text")] if turn.value.get("prompt") else []
    return nodes + numbered_nodes("$.images", turn.value.get("images"), lambda _: "Media")


GENERATE_PLACES: Final = Places(
    turns=_prompt_turns,
    parts=_prompt_parts,
    settings={**_SETTINGS, "history": ("prompt",)},
    answer_parts=lambda body: _message(body, "$", "response"),
    answer={"content": ("response",), **_ANSWER},
)
