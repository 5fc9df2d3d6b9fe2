"""Parses tools and the choice among them."""

from __future__ import annotations

from typing import Any, Final, Literal

from wireglot_core.dialects.fields import Fields, object_in, text_in
from wireglot_core.dialects.gemini_interactions.names import OWN, UNKNOWN
from wireglot_core.dialects.google_shared import server_token
from wireglot_core.dialects.hosted_options import hosted_tool
from wireglot_core.ir.content import Extra, Foreign
from wireglot_core.ir.loss import is_blank
from wireglot_core.ir.request import AnyTool, HostedTool, McpServer, Tool, ToolChoice

KINDS: Final = {
    "google_search": "web_search",
    "url_context": "web_fetch",
    "code_execution": "code_execution",
    "file_search": "file_search",
    "computer_use": "computer",
    "mcp_server": "mcp",
}
"""Tools that Google runs -> the neutral kind. Others are of their own kind."""

_FUNCTION: Final = frozenset({"type", "name", "description", "parameters"})
_SERVER: Final = frozenset({"type", "name", "url", "headers", "allowed_tools"})
MODES: Final[dict[str, Literal["auto", "none", "required"]]] = {
    "auto": "auto",
    "any": "required",
    "none": "none",
    "validated": "auto",
}
VALIDATED: Final = "validated"
"""`auto` with checked arguments, and the way to narrow `auto`."""


def parse_tools(listed: list[Any]) -> tuple[AnyTool, ...]:
    return tuple(_parse_tool(Fields(item, f"$.tools[{index}]")) for index, item in enumerate(listed))


def _parse_tool(tool: Fields) -> AnyTool:
    kind = tool.text("type")
    if kind == "function":
        return Tool(
            tool.text("name"),
            tool.text_or_none("description"),
            tool.dict_or_none("parameters"),
            extra=UNKNOWN.keep(tool.value, _FUNCTION),
        )
    native = Foreign(OWN, kind, tool.value)
    if kind == "mcp_server":
        return HostedTool("mcp", native, _parse_server(tool))
    excluded = tool.value.get("exclude_domains")
    options = {"blocked_domains": excluded}
    return hosted_tool(KINDS.get(kind, kind), native, options, tool.value, ("type", "exclude_domains"))


def _parse_server(tool: Fields) -> McpServer:
    value = tool.value
    rest = [key for key, item in value.items() if key not in _SERVER and not is_blank(item)]
    headers = object_in(value.get("headers"))
    token = server_token(headers)
    if token is None:
        rest.append("headers")
    names: list[str] = []
    for entry in tool.array_or_empty("allowed_tools"):
        stated = object_in(entry)
        listed, mode = stated.get("tools"), text_in(stated.get("mode"))
        if mode not in ("", "auto"):
            rest.append("allowed_tools.mode")
            if mode == "none":
                continue
        names += filter(None, map(text_in, listed if type(listed) is list else [entry]))
    return McpServer(
        tool.text("name"),
        tool.text("url"),
        token or "",
        allowed=tuple(names) if names else None,
        rest=tuple(rest),
    )


def parse_choice(config: Fields) -> ToolChoice | None:
    """`tool_choice` of the generation config: a mode, or some functions with a mode."""
    given = config.value.get("tool_choice")
    if given is None:
        return None
    if type(given) is str:
        mode = MODES.get(given)
        if mode is None:
            raise config.wrong("tool_choice", "auto, any, none or validated")
        fields = {"mode": given} if given == VALIDATED else {}
        return ToolChoice(mode, extra=Extra(OWN, fields) if fields else None)
    choice = config.object("tool_choice")
    allowed = choice.object("allowed_tools")
    stated = allowed.text_or("mode")
    mode = MODES.get(stated or "auto")
    if mode is None:
        raise allowed.wrong("mode", "auto, any, none or validated")
    form = {"shape": "allowed_tools", "mode": stated}
    return ToolChoice(mode, allowed.texts("tools"), Extra(OWN, form=form))
