"""Tools as people have them: neutral ones, or the declarations of any dialect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from wireglot.dialects.base import Context
from wireglot.dialects.registry import dialect
from wireglot.ir.errors import ClientFault
from wireglot.ir.request import AnyTool, HostedTool, Tool

_SAID = [{"role": "user", "content": "-"}]
_BARE: dict[str, dict[str, Any]] = {
    "anthropic": {"model": "", "max_tokens": 1, "messages": _SAID},
    "openai-chat": {"model": "", "messages": _SAID},
    "openai-responses": {"model": "", "input": _SAID},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "-"}]}]},
}
"""The least that is a request: only the tools beside it are read. One in which nothing is said is refused."""


def tools_of(tools: Iterable[AnyTool | Mapping[str, Any]]) -> tuple[AnyTool, ...]:
    """Every tool in the neutral form; one that is written in a dialect is read by that dialect."""
    neutral: list[AnyTool] = []
    for number, tool in enumerate(tools):
        if isinstance(tool, Tool | HostedTool):
            neutral.append(tool)
            continue
        declared = dict(tool)
        name = _dialect_of(declared)
        if name is None:
            raise ClientFault("a tool in no known form: it has a name and a schema", f"$.tools[{number}]")
        neutral += dialect(name).parse_request({**_BARE[name], "tools": [declared]}, Context()).tools
    return tuple(neutral)


def _dialect_of(tool: dict[str, Any]) -> str | None:
    if "function" in tool or "custom" in tool:
        return "openai-chat"
    if "functionDeclarations" in tool or "function_declarations" in tool:
        return "gemini"
    kind = tool.get("type")
    if "input_schema" in tool:
        return "anthropic"
    if kind in ("function", "custom") and "name" in tool:
        return "openai-responses"
    if kind is not None:
        # Anthropic's own tools carry the date of their version, OpenAI's mostly do not but have no name.
        return "anthropic" if "name" in tool else "openai-responses"
    return "gemini" if len(tool) == 1 and isinstance(next(iter(tool.values())), dict) else None
