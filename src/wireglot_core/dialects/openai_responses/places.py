"""Paths of turns, parts and tools in the documents of this dialect's clients."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.openai_responses.mcp import is_made
from wireglot_core.dialects.openai_responses.settings import REQUEST_FIELDS
from wireglot_core.dialects.places import Node, Places, Turn, kind_by_type, numbered_nodes

_item_kind: Final = kind_by_type(
    {
        "function_call": "ToolCall",
        "custom_tool_call": "ToolCall",
        "function_call_output": "ToolResult",
        "custom_tool_call_output": "ToolResult",
        "reasoning": "Reasoning",
        "image_generation_call": "Media",
    }
)
_kind: Final = kind_by_type(
    {
        "input_text": "Text",
        "output_text": "Text",
        "text": "Text",
        "refusal": "Text",
        "input_image": "Media",
        "input_file": "Media",
        "input_audio": "Media",
    },
    untyped="Text",
)
_CARRIERS: Final = ("additional_tools", "tool_search_output")
_MEMBERS: Final = ("function", "custom")


def _turns(body: dict[str, Any]) -> list[Turn]:
    turns = [] if body.get("instructions") is None else [Turn("$.instructions", body["instructions"])]
    given = body.get("input")
    if type(given) is list:
        for number, item in enumerate(given):
            turn = Turn(f"$.input[{number}]", item)
            turns += (turn, turn) if type(item) is dict and is_made(item) else (turn,)
    elif given is not None:
        turns.append(Turn("$.input", given))
    return turns


def _parts(turn: Turn) -> list[Node]:
    return _item(turn.value, turn.path)


def _item(item: Any, path: str) -> list[Node]:
    if type(item) is str:
        return [Node(path, "Text")]
    if type(item) is not dict:
        return []
    kind = item.get("type")
    if kind == "message" or (kind is None and "role" in item):
        content = item.get("content")
        if type(content) is str:
            return [Node(f"{path}.content", "Text")]
        return numbered_nodes(f"{path}.content", content, _kind)
    return [Node(path, _item_kind(item), item)]


def _tools(body: dict[str, Any]) -> list[Node]:
    nodes = _declared(body.get("tools"), "$.tools")
    names = {node.kind for node in nodes}
    given = body.get("input")
    for number, item in enumerate(given if type(given) is list else ()):
        if type(item) is dict and item.get("type") in _CARRIERS:
            for node in _declared(item.get("tools"), f"$.input[{number}].tools"):
                if node.kind not in names:
                    names.add(node.kind)
                    nodes.append(node)
    return nodes


def _declared(tools: Any, path: str) -> list[Node]:
    nodes: list[Node] = []
    for number, tool in enumerate(tools if type(tools) is list else ()):
        place = f"{path}[{number}]"
        members = tool.get("tools") if type(tool) is dict and tool.get("type") == "namespace" else None
        if type(members) is list and members and all(map(_is_member, members)):
            nodes += numbered_nodes(f"{place}.tools", members, _name)
        else:
            nodes.append(Node(place, _name(tool), tool))
    return nodes


def _is_member(tool: Any) -> bool:
    return type(tool) is dict and tool.get("type") in _MEMBERS


def _name(tool: Any) -> str:
    if type(tool) is not dict:
        return ""
    kind = tool.get("type") or "function"
    if kind not in _MEMBERS:
        return str(kind)
    inner = tool.get(kind)  # Chat's nesting, which clients send here too
    return str((inner if type(inner) is dict else tool).get("name") or "")


def _answer_parts(body: dict[str, Any]) -> list[Node]:
    output = body.get("output")
    return [
        node
        for number, item in enumerate(output if type(output) is list else ())
        for node in _item(item, f"$.output[{number}]")
    ]


_REASONING: Final = ("reasoning.effort", "reasoning")

PLACES: Final = Places(
    turns=_turns,
    parts=_parts,
    tools=_tools,
    settings={
        **REQUEST_FIELDS.places,
        "sampling.logprobs": ("include", "top_logprobs"),
        "thinking": ("reasoning",),
        "thinking.mode": _REASONING,
        "thinking.budget": _REASONING,
        "thinking.effort": _REASONING,
        "thinking.display": ("reasoning.summary", "reasoning.generate_summary", "reasoning"),
        "output": ("text.format", "text"),
        "verbosity": ("text.verbosity",),
        "tool_choice.only": ("tool_choice.tools", "tool_choice.name", "tool_choice"),
        "user": ("safety_identifier", "user"),
        "cache": ("prompt_cache_options", "prompt_cache_retention"),
        "messages": ("input", "instructions"),
        "history": ("previous_response_id", "conversation", "input"),
    },
    fields={
        "cache": ("prompt_cache_breakpoint",),
        "signature": ("encrypted_content",),
        "arguments": ("arguments", "input"),
        "text": ("text", "summary", "content"),
        "content": ("output", "content"),
        "schema": ("parameters", "function.parameters"),
        "deferred": ("defer_loading",),
        "grammar": ("format",),
        "citations": ("annotations",),
        "mime": ("image_url", "file_data", "filename"),
        "data": ("image_url", "file_data"),
        "name": ("name", "filename", "function.name"),
    },
    answer_parts=_answer_parts,
    answer={
        "content": ("output",),
        "stop": ("incomplete_details", "status"),
        "usage": ("usage",),
    },
)
