"""Servers of tools that OpenAI connects to itself: the `mcp` tool.

Source: the types of openai-python 3.49.0, read 2026-11-15. Calls need a person's approval unless it says that
they do not. A call that was made is one item with its result; to everybody else it is a call and its result.
"""

from __future__ import annotations

from typing import Any

from wireglot.dialects.fields import Fields, own_form, text_in
from wireglot.dialects.hosted_options import server_of
from wireglot.dialects.openai_responses.client_calls import VERBATIM
from wireglot.dialects.openai_responses.spelling import NAME
from wireglot.ir.content import Extra, Text, ToolCall, ToolResult
from wireglot.ir.loss import Loss, is_blank
from wireglot.ir.request import HostedTool, McpServer
from wireglot.wire.json import encode_text

_SAID = frozenset(
    {
        "type",
        "server_label",
        "server_url",
        "authorization",
        "headers",
        "allowed_tools",
        "require_approval",
        "defer_loading",
    }
)
_BEARER = "Bearer "


def parse_server(tool: Fields) -> McpServer | None:
    """None where the server is not named by its URL (a connector, a tunnel)."""
    value = tool.value
    label, url = value.get("server_label"), value.get("server_url")
    if type(label) is not str or type(url) is not str:
        return None
    rest = [key for key, item in value.items() if key not in _SAID and not is_blank(item)]
    token, headers = value.get("authorization"), value.get("headers")
    if type(headers) is dict and headers:
        bearer = headers.get("Authorization")
        if token is None and len(headers) == 1 and type(bearer) is str and bearer.startswith(_BEARER):
            token = bearer.removeprefix(_BEARER)
        else:
            rest.append("headers")
    allowed = value.get("allowed_tools")
    if type(allowed) is dict:
        if allowed.get("read_only") is not None:
            rest.append("allowed_tools")
        allowed = allowed.get("tool_names")
    return McpServer(
        label,
        url,
        text_in(token),
        allowed=tuple(name for name in allowed if type(name) is str) if type(allowed) is list else None,
        deferred=value.get("defer_loading") is True,
        approval=value.get("require_approval") != "never",
        rest=tuple(rest),
    )


def render_server(tool: HostedTool, path: str, losses: list[Loss]) -> dict[str, Any] | None:
    server = server_of(tool, path, "as an mcp tool", losses)
    if server is None:
        return None
    value: dict[str, Any] = {
        "type": "mcp",
        "server_label": server.name,
        "server_url": server.url,
        "require_approval": "always" if server.approval else "never",
    }
    if server.token:
        value["authorization"] = server.token
    if server.allowed is not None:
        value["allowed_tools"] = list(server.allowed)
    if server.deferred:
        value["defer_loading"] = True
    return value


# --- calls in history

_CALL_KEYS = frozenset({"type", "id", "status", "name", "server_label", "arguments", "output", "error"})
_NAMED = ("id", "name", "server_label")
_WITHIN = "within"
"""Form key: the result stands in the item of its call."""


def is_made(value: dict[str, Any]) -> bool:
    """Whether an item tells a call and what came of it: two messages, in one place of the client's input."""
    if value.get("type") != "mcp_call" or any(type(value.get(key)) is not str for key in _NAMED):
        return False
    return type(value.get("output")) is str or value.get("error") is not None


def parse_made_call(item: Fields) -> tuple[ToolCall, ToolResult] | None:
    """The call of an item and what came of it; None where it was not made, or only its vendor knows."""
    value = item.value
    if not is_made(value):
        return None
    identifier, name, label = (value[key] for key in _NAMED)
    output, error = value.get("output"), value.get("error")
    fields = {key: kept for key, kept in value.items() if key not in _CALL_KEYS and kept is not None}
    call = ToolCall(
        identifier,
        name,
        text_in(value.get("arguments")),
        namespace=label,
        extra=Extra(NAME, fields, {VERBATIM: value}),
    )
    reported = output if type(output) is str else error if type(error) is str else encode_text(error)
    failed = error is not None
    return call, ToolResult(
        identifier, (Text(reported),), is_error=failed, extra=Extra(NAME, form={_WITHIN: True})
    )


def is_within(result: ToolResult) -> bool:
    return _WITHIN in own_form(result.extra, NAME)
