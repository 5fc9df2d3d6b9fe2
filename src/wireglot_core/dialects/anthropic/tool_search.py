"""Results of a search for tools, as blocks.

Source: the types of anthropic-sdk-python 2.8.0, read 2026-11-15.
"""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.ir.hosted import HostedError, HostedResult
from wireglot_core.ir.request import HostedTool, Tool

KIND: Final = "tool_search"
REFERENCE: Final = "tool_reference"
_ERROR: Final = "tool_search_tool_result_error"
_FOUND: Final = "tool_search_tool_search_result"
_CODES: Final[dict[str, HostedError]] = {
    "invalid_tool_input": "invalid_tool_input",
    "too_many_requests": "too_many_requests",
    "max_uses_exceeded": "too_many_requests",
    "execution_time_exceeded": "execution_time_exceeded",
}
"""Neutral codes that exist in this dialect; any other is `unavailable`."""


def searches_by_pattern(tool: HostedTool) -> bool:
    return tool.native.type.startswith("tool_search_tool_regex")


def render_found(result: HostedResult) -> dict[str, Any]:
    if result.error:
        code = _CODES.get(result.error, "unavailable")
        return {"type": _ERROR, "error_code": code, "error_message": result.message or None}
    references = [{"type": REFERENCE, "tool_name": tool.name} for tool in result.tools]
    return {"type": _FOUND, "tool_references": references}


def parse_found(content: Any) -> HostedResult:
    if type(content) is not dict or content.get("type") != _FOUND:
        said = content.get("error_message") if type(content) is dict else None
        code = content.get("error_code") if type(content) is dict else None
        known = _CODES.get(code, "unavailable") if type(code) is str else "unavailable"
        return HostedResult(error=known, message=said if type(said) is str else "")
    listed = content.get("tool_references")
    found = (reference(item) for item in listed) if type(listed) is list else ()
    return HostedResult(tools=tuple(tool for tool in found if tool is not None))


def reference(block: Any) -> Tool | None:
    """The tool that a reference names."""
    name = block.get("tool_name") if type(block) is dict else None
    return Tool(name) if type(name) is str else None
