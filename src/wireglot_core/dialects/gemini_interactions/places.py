"""Paths of turns, parts and tools in the documents of this dialect's clients."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.gemini_interactions.content import is_content
from wireglot_core.dialects.gemini_interactions.settings import GENERATION, GENERATION_FIELDS, REQUEST_FIELDS
from wireglot_core.dialects.places import Node, Places, Turn, kind_by_type, numbered_nodes

_kind: Final = kind_by_type(
    {"text": "Text", "image": "Media", "audio": "Media", "document": "Media", "video": "Media"}
)
_step_kind: Final = kind_by_type(
    {"thought": "Reasoning", "function_call": "ToolCall", "function_result": "ToolResult"}
)


def _turns(body: dict[str, Any]) -> list[Turn]:
    system = body.get("system_instruction")
    turns = [] if system is None else [Turn("$.system_instruction", system)]
    given = body.get("input")
    if type(given) is list and not (given and is_content(given[0])):
        turns += [Turn(f"$.input[{number}]", item) for number, item in enumerate(given)]
    elif given is not None:
        turns.append(Turn("$.input", given))
    return turns


def _parts(turn: Turn) -> list[Node]:
    value = turn.value
    if type(value) is list:
        return numbered_nodes(turn.path, value, _kind)
    if is_content(value):
        return [Node(turn.path, _kind(value), value)]
    return _step(value, turn.path)


def _step(step: Any, path: str) -> list[Node]:
    if type(step) is str:
        return [Node(path, "Text")]
    if type(step) is not dict:
        return []
    if step.get("type") in ("user_input", "model_output"):
        content = step.get("content")
        if type(content) is str:
            return [Node(f"{path}.content", "Text")]
        return numbered_nodes(f"{path}.content", content, _kind)
    return [Node(path, _step_kind(step), step)]


def _tools(body: dict[str, Any]) -> list[Node]:
    return numbered_nodes("$.tools", body.get("tools"), _name)


def _name(tool: Any) -> str:
    if type(tool) is not dict:
        return ""
    kind = tool.get("type")
    return str(tool.get("name") or "") if kind == "function" else str(kind or "")


def _answer_parts(body: dict[str, Any]) -> list[Node]:
    steps = body.get("steps")
    return [
        node
        for number, step in enumerate(steps if type(steps) is list else ())
        for node in _step(step, f"$.steps[{number}]")
    ]


_LEVEL: Final = (f"{GENERATION}.thinking_level", GENERATION)

PLACES: Final = Places(
    turns=_turns,
    parts=_parts,
    tools=_tools,
    settings={
        **REQUEST_FIELDS.places,
        **GENERATION_FIELDS.places,
        "thinking": (GENERATION,),
        "thinking.mode": _LEVEL,
        "thinking.budget": _LEVEL,
        "thinking.effort": _LEVEL,
        "thinking.display": (f"{GENERATION}.thinking_summaries", GENERATION),
        "output": ("response_format", "response_mime_type"),
        "tool_choice": (f"{GENERATION}.tool_choice",),
        "tool_choice.only": (f"{GENERATION}.tool_choice.allowed_tools.tools", f"{GENERATION}.tool_choice"),
        "metadata": ("labels",),
        "messages": ("input", "system_instruction"),
        "history": ("previous_interaction_id", "input"),
    },
    fields={
        "arguments": ("arguments",),
        "text": ("text", "summary"),
        "content": ("result", "content"),
        "schema": ("parameters",),
        "citations": ("annotations",),
        "mime": ("mime_type",),
        "url": ("uri",),
        "detail": ("resolution",),
    },
    answer_parts=_answer_parts,
    answer={"content": ("steps",), "stop": ("errors", "status"), "usage": ("usage",)},
)
