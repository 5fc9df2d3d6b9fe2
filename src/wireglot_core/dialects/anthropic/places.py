"""Paths of turns, parts and tools in the documents of this dialect's clients."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.anthropic.settings import REQUEST_FIELDS
from wireglot_core.dialects.places import Node, Places, Turn, kind_by_type, numbered_nodes, numbered_turns

_kind: Final = kind_by_type(
    {
        "text": "Text",
        "thinking": "Reasoning",
        "redacted_thinking": "Reasoning",
        "tool_use": "ToolCall",
        "tool_result": "ToolResult",
        "image": "Media",
        "document": "Media",
    }
)


def _turns(body: dict[str, Any]) -> list[Turn]:
    turns = [] if body.get("system") is None else [Turn("$.system", body["system"])]
    messages = body.get("messages")
    return turns + numbered_turns("messages", messages) if type(messages) is list else turns


def _parts(turn: Turn) -> list[Node]:
    if type(turn.value) is dict:
        return _blocks(turn.value.get("content"), f"{turn.path}.content")
    return _blocks(turn.value, turn.path)


def _blocks(content: Any, path: str) -> list[Node]:
    return [Node(path, "Text")] if type(content) is str else numbered_nodes(path, content, _kind)


def _tools(body: dict[str, Any]) -> list[Node]:
    return numbered_nodes("$.tools", body.get("tools"), _name)


def _name(tool: Any) -> str:
    if type(tool) is not dict:
        return ""
    kind = tool.get("type")
    return str((tool.get("name") if kind in (None, "custom") else kind) or "")


def _answer_parts(body: dict[str, Any]) -> list[Node]:
    return _blocks(body.get("content"), "$.content")


_THINKING: Final = ("thinking", "output_config.effort")

PLACES: Final = Places(
    turns=_turns,
    parts=_parts,
    tools=_tools,
    settings={
        **REQUEST_FIELDS.places,
        "thinking": _THINKING,
        "thinking.mode": ("thinking.type", *_THINKING),
        "thinking.budget": ("thinking.budget_tokens", *_THINKING),
        "thinking.effort": ("output_config.effort", "thinking"),
        "thinking.display": ("thinking.display", *_THINKING),
        "output": ("output_config.format", "output_format"),
        "tool_choice.only": ("tool_choice.name", "tool_choice"),
        "parallel_tools": ("tool_choice.disable_parallel_tool_use",),
        "user": ("metadata.user_id",),
        "service_tier": ("service_tier", "speed"),
        "cache": ("cache_control",),
        "history": ("messages",),
    },
    fields={
        "cache": ("cache_control",),
        "signature": ("signature", "data"),
        "arguments": ("input",),
        "call_id": ("tool_use_id",),
        "schema": ("input_schema",),
        "deferred": ("defer_loading",),
        "mime": ("source.media_type", "source"),
        "data": ("source.data", "source"),
        "name": ("name", "title"),
    },
    answer_parts=_answer_parts,
    answer={
        "content": ("content",),
        "stop": ("stop_reason",),
        "stop.sequence": ("stop_sequence",),
        "usage": ("usage",),
        "service_tier": ("usage.service_tier", "usage"),
    },
)
