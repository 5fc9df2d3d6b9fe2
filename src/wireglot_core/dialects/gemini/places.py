"""Paths of turns, parts and tools in the documents of this dialect's clients, bare or wrapped, and in the
simple form."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.gemini.generation import REQUEST_FIELDS, SIMPLE_FIELDS
from wireglot_core.dialects.gemini.names import TOOL, listed
from wireglot_core.dialects.json_path import snake_case, written
from wireglot_core.dialects.places import Node, Places, Turn, numbered_nodes, numbered_turns

_KINDS: Final = (
    ("functionCall", "ToolCall"),
    ("functionResponse", "ToolResult"),
    ("inlineData", "Media"),
    ("fileData", "Media"),
)


def _spelled(value: dict[str, Any], name: str) -> str:
    """The spelling of a field name that the object uses."""
    other = snake_case(name)
    return other if name not in value and other in value else name


def _turns(body: dict[str, Any]) -> list[Turn]:
    turns = []
    system = _spelled(body, "systemInstruction")
    if body.get(system) is not None:
        turns.append(Turn(f"$.{system}", body[system]))
    contents = body.get("contents")
    if type(contents) is list:
        turns += numbered_turns("contents", contents)
    elif contents is not None:
        turns.append(Turn("$.contents", contents))
    return turns


def _parts(turn: Turn) -> list[Node]:
    content = turn.value
    if type(content) is str:
        return [Node(turn.path, "Text")]
    if type(content) is not dict:
        return []
    parts = content.get("parts")
    if type(parts) is list:
        return numbered_nodes(f"{turn.path}.parts", parts, _kind)
    if parts is not None:
        return [Node(f"{turn.path}.parts", _kind(parts), parts)]
    return [Node(turn.path, "Text", content)] if "text" in content else []


def _kind(part: Any) -> str:
    if type(part) is not dict:
        return "Text"
    for name, kind in _KINDS:
        if part.get(_spelled(part, name)) is not None:
            return kind
    if part.get("text") is None and part.keys() - {"thought", "thoughtSignature", "thought_signature"}:
        return "Foreign"
    return "Reasoning" if part.get("thought") is True else "Text"


def _tools(body: dict[str, Any]) -> list[Node]:
    nodes = []
    given = body.get("tools")
    for number, group in enumerate(listed(given)):
        place = f"$.tools[{number}]" if type(given) is list else "$.tools"
        if type(group) is not dict:
            continue
        for key, value in group.items():
            if value is None:
                continue
            if key not in ("functionDeclarations", "function_declarations"):
                nodes.append(Node(place + written(key), TOOL.spellings.get(key) or key, value))
                continue
            for index, declaration in enumerate(listed(value)):
                name = declaration.get("name") if type(declaration) is dict else ""
                at = f"[{index}]" if type(value) is list else ""
                nodes.append(Node(f"{place}.{key}{at}", str(name or ""), declaration))
    return nodes


def _answer_parts(body: dict[str, Any]) -> list[Node]:
    candidates = body.get("candidates")
    first = candidates[0] if type(candidates) is list and candidates else None
    content = first.get("content") if type(first) is dict else None
    return _parts(Turn("$.candidates[0].content", content))


_THINKING: Final = "generationConfig.thinkingConfig"
_LEVEL, _BUDGET = f"{_THINKING}.thinkingLevel", f"{_THINKING}.thinkingBudget"
_SCHEMAS: Final = (
    "generationConfig.responseJsonSchema",
    "generationConfig.responseSchema",
    "generationConfig.responseFormat",
    "generationConfig.responseMimeType",
)
_CHOICE: Final = "toolConfig.functionCallingConfig"

PLACES: Final = Places(
    turns=_turns,
    parts=_parts,
    tools=_tools,
    settings={
        **REQUEST_FIELDS.places,
        "thinking": (_THINKING,),
        "thinking.mode": (_BUDGET, _LEVEL, _THINKING),
        "thinking.budget": (_BUDGET, _THINKING),
        "thinking.effort": (_LEVEL, _THINKING),
        "thinking.display": (f"{_THINKING}.includeThoughts", _THINKING),
        "output": (*_SCHEMAS, "generationConfig"),
        "output.schema": _SCHEMAS,
        "tool_choice": (_CHOICE, "toolConfig"),
        "tool_choice.only": (f"{_CHOICE}.allowedFunctionNames", _CHOICE, "toolConfig"),
        "metadata": ("labels",),
        "service_tier": ("serviceTier",),
        "messages": ("contents",),
        "history": ("contents",),
    },
    fields={
        "signature": ("thoughtSignature",),
        "arguments": ("functionCall.args", "functionCall"),
        "id": ("functionCall.id", "functionCall"),
        "call_id": ("functionResponse.id", "functionResponse"),
        "content": ("functionResponse",),
        "is_error": ("functionResponse.response", "functionResponse"),
        "schema": ("parametersJsonSchema", "parameters"),
        "mime": ("inlineData.mimeType", "fileData.mimeType"),
        "data": ("inlineData.data",),
        "detail": ("mediaResolution",),
        "name": (
            "functionCall.name",
            "functionResponse.name",
            "inlineData.displayName",
            "fileData.displayName",
            "name",
        ),
    },
    answer_parts=_answer_parts,
    answer={
        "content": ("candidates[0].content.parts", "candidates[0]", "candidates"),
        "others": ("candidates",),
        "stop": ("candidates[0].finishReason", "promptFeedback"),
        "usage": ("usageMetadata",),
        "service_tier": ("usageMetadata.serviceTier", "usageMetadata"),
    },
    request_envelope="request",
    snake=True,
)


def _simple_turns(body: dict[str, Any]) -> list[Turn]:
    return [Turn("$", body)]


def _simple_parts(turn: Turn) -> list[Node]:
    body: dict[str, Any] = turn.value
    key = _spelled(body, "toolResults")
    given = body.get(key)
    nodes = [
        Node(f"$.{key}[{number}]" if type(given) is list else f"$.{key}", "ToolResult", result)
        for number, result in enumerate(listed(given))
    ]
    if body.get("input") is not None:
        nodes.append(Node("$.input", "Text"))
    return nodes


SIMPLE_PLACES: Final = Places(
    turns=_simple_turns,
    parts=_simple_parts,
    tools=_tools,
    settings={
        **SIMPLE_FIELDS.places,
        "tool_choice": (_CHOICE, "toolConfig"),
        "tool_choice.only": (f"{_CHOICE}.allowedFunctionNames", _CHOICE, "toolConfig"),
        "messages": ("input", "toolResults"),
        "history": ("conversation", "input"),
    },
    fields={
        "content": ("functionResponse.response", "response"),
        "is_error": ("functionResponse.response", "response"),
        "call_id": ("functionResponse.name", "name"),
        "name": ("functionResponse.name", "name"),
        "schema": ("parametersJsonSchema", "parameters"),
    },
    answer_parts=_answer_parts,
    answer=PLACES.answer,
    snake=True,
)
