"""Paths of turns, parts and tools in the documents of this dialect's clients."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.openai_chat.reasoning import DETAILS, FIELDS
from wireglot_core.dialects.openai_chat.settings import REQUEST_FIELDS
from wireglot_core.dialects.openai_chat.tools import WEB_SEARCH
from wireglot_core.dialects.places import Node, Places, Turn, kind_by_type, numbered_nodes, numbered_turns

_MEDIA: Final = ("image_url", "input_audio", "file", "video_url", "audio_url")
_kind: Final = kind_by_type(
    {"text": "Text", "refusal": "Text", "thinking": "Reasoning", **dict.fromkeys(_MEDIA, "Media")},
    untyped="Text",
)


def _turns(body: dict[str, Any]) -> list[Turn]:
    messages = body.get("messages")
    return numbered_turns("messages", messages) if type(messages) is list else []


def _parts(turn: Turn) -> list[Node]:
    message = turn.value
    if type(message) is not dict:
        return []
    if message.get("role") in ("tool", "function"):
        return [Node(turn.path, "ToolResult", message)]
    return _message(message, turn.path)


def _message(message: dict[str, Any], path: str) -> list[Node]:
    nodes = _reasoning(message, path) + _content(message.get("content"), f"{path}.content")
    if message.get("refusal"):
        nodes.append(Node(f"{path}.refusal", "Text"))
    for key in ("audio", "tools"):
        if message.get(key):
            nodes.append(Node(f"{path}.{key}", "Foreign", message[key]))
    nodes += numbered_nodes(f"{path}.tool_calls", message.get("tool_calls"), lambda _: "ToolCall")
    if message.get("function_call"):
        nodes.append(Node(f"{path}.function_call", "ToolCall", message["function_call"]))
    return nodes


def _reasoning(message: dict[str, Any], path: str) -> list[Node]:
    if message.get("role") not in ("assistant", None):
        return []
    stated = [key for key in FIELDS if type(message.get(key)) is str]
    filled = [key for key in stated if message[key]]
    if not filled and message.get(DETAILS):
        filled = [DETAILS]
    return [Node(f"{path}.{key}", "Reasoning") for key in (filled or stated)[:1]]


def _content(content: Any, path: str) -> list[Node]:
    if type(content) is str:
        return [Node(path, "Text")] if content else []
    return numbered_nodes(path, content, _kind)


def _tools(body: dict[str, Any]) -> list[Node]:
    nodes = []
    for key in ("tools", "functions"):
        nodes += numbered_nodes(f"$.{key}", body.get(key), _name)
    for turn in _turns(body):  # Kimi: tools declared in the middle of a conversation
        if type(turn.value) is dict:
            nodes += numbered_nodes(f"{turn.path}.tools", turn.value.get("tools"), _name)
    if type(body.get(WEB_SEARCH)) is dict:
        nodes.append(Node(f"$.{WEB_SEARCH}", WEB_SEARCH, body[WEB_SEARCH]))
    return nodes


def _name(tool: Any) -> str:
    if type(tool) is not dict:
        return ""
    kind = tool.get("type") or "function"
    if kind not in ("function", "custom"):
        return str(kind)
    inner = tool.get(kind)
    return str((inner if type(inner) is dict else tool).get("name") or "")


def _answer_parts(body: dict[str, Any]) -> list[Node]:
    choices = body.get("choices")
    first = choices[0] if type(choices) is list and choices else None
    message = first.get("message") if type(first) is dict else None
    return _message(message, "$.choices[0].message") if type(message) is dict else []


_TEMPLATE: Final = ("chat_template_kwargs", "enable_thinking")
_EFFORT: Final = ("reasoning_effort", "reasoning.effort", "thinking", "reasoning", *_TEMPLATE)
_SWITCH: Final = ("thinking.type", "reasoning.enabled", *_EFFORT)

PLACES: Final = Places(
    turns=_turns,
    parts=_parts,
    tools=_tools,
    settings={
        **REQUEST_FIELDS.places,
        "max_tokens": ("max_completion_tokens", "max_tokens"),
        "thinking": _EFFORT,
        "thinking.mode": _SWITCH,
        "thinking.budget": ("thinking.budget_tokens", "reasoning.max_tokens", *_EFFORT),
        "thinking.effort": _EFFORT,
        "thinking.display": ("reasoning.exclude", *_EFFORT),
        "output": ("response_format",),
        "output.schema": ("response_format.json_schema.schema", "response_format"),
        "output.strict": ("response_format.json_schema.strict", "response_format.json_schema"),
        "output.name": ("response_format.json_schema.name", "response_format.json_schema"),
        "output.description": ("response_format.json_schema.description", "response_format"),
        "tool_choice": ("tool_choice", "function_call"),
        "tool_choice.only": (
            "tool_choice.allowed_tools.tools",
            "tool_choice.function.name",
            "tool_choice.custom.name",
            "function_call.name",
            "tool_choice",
            "function_call",
        ),
        "user": ("safety_identifier", "user"),
        "cache": ("prompt_cache_options",),
        "history": ("messages",),
    },
    fields={
        "cache": ("cache_control", "prompt_cache_breakpoint"),
        "signature": ("extra_content",),
        "arguments": ("function.arguments", "custom.input", "arguments"),
        "name": ("function.name", "custom.name", "file.filename", "name"),
        "call_id": ("tool_call_id",),
        "schema": ("function.parameters", "parameters"),
        "strict": ("function.strict", "strict"),
        "description": ("function.description", "custom.description", "description"),
        "grammar": ("custom.format",),
        "detail": ("image_url.detail",),
        "mime": ("image_url", "input_audio.format", "file"),
        "data": ("image_url", "input_audio.data", "file.file_data"),
    },
    answer_parts=_answer_parts,
    answer={
        "content": ("choices[0].message",),
        "others": ("choices",),
        "stop": ("choices[0].finish_reason",),
        "usage": ("usage",),
    },
)
