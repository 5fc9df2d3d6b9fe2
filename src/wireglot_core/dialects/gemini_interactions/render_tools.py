"""Renders tools and the choice among them."""

from __future__ import annotations

from typing import Any, Final, assert_never

from wireglot_core.dialects.client_tools import declare_native
from wireglot_core.dialects.common_losses import NO_APPROVAL
from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.gemini_interactions.lost_fields import LOST
from wireglot_core.dialects.gemini_interactions.names import OWN, put_back
from wireglot_core.dialects.gemini_interactions.tools import MODES, VALIDATED
from wireglot_core.dialects.google_shared import (
    ALL_LOADED,
    NO_CHOICE_ANYWAY,
    NO_FREEFORM,
    server_headers,
    unchosen,
)
from wireglot_core.dialects.hosted_options import lose_options, not_run, server_of
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import AnyTool, HostedTool, Tool, ToolChoice

_OWN_TOOLS: Final = {
    "web_search": "google_search",
    "web_fetch": "url_context",
    "code_execution": "code_execution",
}


def render_tools(tools: tuple[AnyTool, ...], losses: list[Loss]) -> list[dict[str, Any]]:
    rendered = []
    for index, tool in enumerate(tools):
        path = f"$.tools[{index}]"
        value = (
            _render_function(tool, path, losses) if type(tool) is Tool else _render_hosted(tool, path, losses)
        )
        if value is not None:
            rendered.append(value)
    return rendered


def _render_function(tool: Tool, path: str, losses: list[Loss]) -> dict[str, Any] | None:
    if tool.kind == "custom":
        losses.append(NO_FREEFORM.at(path))
        return None
    declare_native(tool, path, losses)
    LOST.of(tool, path, losses)
    function: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.schema is not None:
        function["parameters"] = tool.schema
    return put_back(function, tool.extra)


def _render_hosted(tool: HostedTool, path: str, losses: list[Loss]) -> dict[str, Any] | None:
    if tool.native.dialect == OWN:
        return tool.native.value
    if tool.kind == "mcp":
        return _render_server(tool, path, losses)
    kind = _OWN_TOOLS.get(tool.kind)
    if kind is None:
        losses.append(not_run(tool, path, f"{tool.native.type} of {tool.native.dialect}"))
        return None
    losses.append(Loss(path, "hosted_tool", "approximated", f"Google's own {kind}"))
    lose_options(tool, (), path, losses)
    return {"type": kind}


def _render_server(tool: HostedTool, path: str, losses: list[Loss]) -> dict[str, Any] | None:
    if tool.server is not None and tool.server.approval:
        losses.append(NO_APPROVAL.at(path))
        return None
    server = server_of(tool, path, "as an mcp_server", losses)
    if server is None:
        return None
    if server.deferred:
        losses.append(ALL_LOADED.at(f"{path}.deferred"))
    value: dict[str, Any] = {"type": "mcp_server", "name": server.name, "url": server.url}
    value |= server_headers(server.token)
    if server.allowed is not None:
        value["allowed_tools"] = [{"mode": "auto", "tools": list(server.allowed)}]
    return value


def render_choice(choice: ToolChoice, tools: tuple[AnyTool, ...], losses: list[Loss]) -> Any:
    """`tool_choice`; None if there is no function for it to apply to."""
    path = "$.tool_choice"
    LOST.of(choice, path, losses)
    form = own_form(choice.extra, OWN)
    if form.get("shape") == "allowed_tools" and MODES.get(form.get("mode") or "auto") == choice.mode:
        stated = {"mode": form["mode"]} if form["mode"] else {}
        return {"allowed_tools": {**stated, **({"tools": list(choice.only)} if choice.only else {})}}
    if choice.hosted and choice.mode != "none":
        losses.append(unchosen(choice, path))
        if choice.only:
            return _allowed(VALIDATED, choice)
        # Refers to functions only: tools that Google runs are not affected.
        return "none" if any(type(tool) is Tool for tool in tools) else None
    match choice.mode:
        case "required":
            return _allowed("any", choice) if choice.only else "any"
        case "none":
            if choice.only:
                losses.append(NO_CHOICE_ANYWAY.at(f"{path}.only"))
            return "none"
        case "auto":
            if choice.only:
                return _allowed(VALIDATED, choice)
            return VALIDATED if own_fields(choice.extra, OWN).get("mode") == VALIDATED else "auto"
        case _ as never:
            assert_never(never)


def _allowed(mode: str, choice: ToolChoice) -> dict[str, Any]:
    return {"allowed_tools": {"mode": mode, "tools": list(choice.only)}}
