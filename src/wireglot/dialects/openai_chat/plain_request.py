"""Calls and tools of a request as nearly all are, with no field too many, read the short way. Everything else
is left to `tools`, which would give the same for these.
"""

from __future__ import annotations

from typing import Any, Final

from wireglot.ir.content import ToolCall
from wireglot.ir.request import Tool

_FUNCTION: Final = frozenset({"name", "description", "parameters"})


def plain_calls(calls: Any) -> list[ToolCall]:
    """None if anything about one of them takes a closer look."""
    plain: list[ToolCall] = []
    for call in calls if type(calls) is list else ():
        if type(call) is not dict or len(call) != 3 or call.get("type") != "function":
            return []
        identifier, inner = call.get("id"), call.get("function")
        if type(identifier) is not str or not identifier or type(inner) is not dict or len(inner) != 2:
            return []
        name, arguments = inner.get("name"), inner.get("arguments")
        if type(name) is not str or not name or type(arguments) is not str or not arguments:
            return []
        plain.append(ToolCall(identifier, name, arguments))
    return plain


def plain_tool(value: dict[str, Any]) -> Tool | None:
    inner = value.get("function")
    if value.get("type") != "function" or len(value) != 2 or type(inner) is not dict:
        return None
    if inner.keys() == _FUNCTION:
        name, description, schema = inner["name"], inner["description"], inner["parameters"]
        if type(name) is str and type(description) is str and type(schema) is dict:
            return Tool(name, description, schema)
    return None
