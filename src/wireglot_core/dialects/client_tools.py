"""Vendors' own tools that the client runs: code common to their dialects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wireglot_core.ir.loss import Loss, is_blank
from wireglot_core.ir.request import Tool

Schema = dict[str, Any]


def text(description: str, *choices: str) -> Schema:
    schema: Schema = {"type": "string", "description": description}
    return {**schema, "enum": list(choices)} if choices else schema


def number(description: str) -> Schema:
    return {"type": "integer", "description": description}


def numbers(description: str) -> Schema:
    return {"type": "array", "items": {"type": "integer"}, "description": description}


def texts(description: str) -> Schema:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def arguments(properties: Schema, *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


def is_own(tool: Tool, dialect: str) -> bool:
    return tool.native is not None and tool.native.dialect == dialect


def declare_native(tool: Tool, path: str, losses: list[Loss]) -> None:
    """Report that a vendor's own tool is sent as an equivalent function."""
    if tool.native is not None:
        losses.append(Loss(path, "tool.native", "emulated", reported(tool)))


_SAID = frozenset(
    {"type", "name", "description", "parameters", "execution", "cache_control", "defer_loading"}
)


def reported(tool: Tool, said: Iterable[str] = _SAID) -> str:
    assert tool.native is not None
    detail = f"{tool.native.type} is sent as a function"
    left = [key for key, value in tool.native.value.items() if key not in said and not is_blank(value)]
    return f"{detail}, without its {', '.join(left)}" if left else detail
