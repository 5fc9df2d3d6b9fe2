"""MCP servers that OpenAI connects to itself: the `mcp` tool.

Source: the types of openai-python 3.49.0, read 2026-11-15. Calls need a person's approval unless the tool
sets otherwise. A finished call is one item with its result; in other dialects it is a call and its result.
"""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.capabilities import McpForm
from wireglot_core.dialects.fields import Fields, object_in, own_form, text_in
from wireglot_core.dialects.hosted_options import server_of
from wireglot_core.dialects.openai_responses.client_calls import VERBATIM
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.ir.content import Extra, Foreign, Text, ToolCall, ToolResult
from wireglot_core.ir.hosted import Approval, HostedCall, HostedResult, ListedTool, ToolListing
from wireglot_core.ir.loss import Loss, is_blank
from wireglot_core.ir.request import HostedTool, McpServer
from wireglot_core.ir.stream import Event, ForeignEvent, PartEnd, PartStart
from wireglot_core.wire.json import BadJson, decode, encode_text

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
    """Returns None if the server is not named by its URL (a connector, a tunnel)."""
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
"""Form key: the result is inside the item of its call."""


def is_made(value: dict[str, Any]) -> bool:
    """Whether an item contains a call and its result: two messages, in one place of the client's input."""
    if value.get("type") != "mcp_call" or any(type(value.get(key)) is not str for key in _NAMED):
        return False
    return type(value.get("output")) is str or value.get("error") is not None


def parse_made_call(item: Fields) -> tuple[ToolCall, ToolResult] | None:
    """The call of an item and its result; None if it was not made, or only its vendor knows the result."""
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


# --- servers that the gateway connects to in the provider's place

KIND: Final = "mcp"
_CALL: Final = "mcp_call"
_LIST: Final = "mcp_list_tools"
_ASK: Final = "mcp_approval_request"
_ANSWER: Final = "mcp_approval_response"
_CALL_PREFIX: Final = "mcp_"
_LIST_PREFIX: Final = "mcpl_"
_ASK_PREFIX: Final = "mcpr_"


def announce(call: HostedCall) -> list[Event]:
    if call.pending:
        return []
    id = _CALL_PREFIX + call.id
    arguments = encode_text(call.input)
    return [
        _event(
            "response.output_item.added", item={**_call_item(call), "arguments": "", "status": "in_progress"}
        ),
        _event(f"response.{_CALL}.in_progress", item_id=id),
        _event(f"response.{_CALL}_arguments.delta", item_id=id, delta=arguments),
        _event(f"response.{_CALL}_arguments.done", item_id=id, arguments=arguments),
    ]


def report(call: HostedCall, result: HostedResult, index: int) -> list[Event]:
    if call.pending:
        asked = {
            "type": _ASK,
            "id": _ASK_PREFIX + call.id,
            "arguments": encode_text(call.input),
            "name": call.name,
            "server_label": call.server,
        }
        return _whole(_ASK, asked, index)
    status = "failed" if result.error else "completed"
    item: dict[str, Any] = {**_call_item(call), "status": status}
    if result.error == "tool_failed":
        content = [{"type": "text", "text": result.text}]
        item["error"] = {"type": "mcp_tool_execution_error", "content": content}
    elif result.error:
        item["error"] = {"type": "mcp_protocol_error", "code": -32603, "message": result.message}
    else:
        item["output"] = result.text
    return [_event(f"response.{_CALL}.{status}", item_id=item["id"]), *_whole(_CALL, item, index)]


def _call_item(call: HostedCall) -> dict[str, Any]:
    return {
        "type": _CALL,
        "id": _CALL_PREFIX + call.id,
        "approval_request_id": _ASK_PREFIX + call.approval if call.approval else None,
        "arguments": encode_text(call.input),
        "error": None,
        "name": call.name,
        "output": None,
        "server_label": call.server,
    }


def _list_tools(listing: ToolListing, index: int) -> list[Event]:
    tools = [
        {
            "name": tool.name,
            "description": tool.description or None,
            "input_schema": tool.schema,
            "annotations": tool.annotations or None,
        }
        for tool in listing.tools
    ]
    id = _LIST_PREFIX + listing.id
    item = {"type": _LIST, "id": id, "server_label": listing.server, "tools": tools}
    return [
        _event("response.output_item.added", item={**item, "tools": []}),
        _event(f"response.{_LIST}.in_progress", item_id=id),
        _event(f"response.{_LIST}.completed", item_id=id),
        *_whole(_LIST, item, index),
    ]


def _event(kind: str, **value: Any) -> ForeignEvent:
    return ForeignEvent(NAME, kind, {"type": kind, **value})


def _whole(kind: str, item: dict[str, Any], index: int) -> list[Event]:
    return [PartStart(index, Foreign(NAME, kind, item)), PartEnd(index)]


def _listed(part: Foreign) -> str:
    return text_in(part.value.get("server_label")) if part.type == _LIST else ""


def _is_named(tools: Any, listed: ListedTool) -> bool:
    """Whether a filter of tools matches this one."""
    filtered = object_in(tools)
    names, read_only = filtered.get("tool_names"), filtered.get("read_only")
    if type(names) is list and listed.name not in names:
        return False
    return (type(names) is list or read_only is not None) and (
        read_only is None or read_only is listed.read_only
    )


def _allows(tool: HostedTool, listed: ListedTool) -> bool:
    allowed = tool.native.value.get("allowed_tools")
    if type(allowed) is list:
        return listed.name in allowed
    return type(allowed) is not dict or not allowed or _is_named(allowed, listed)


def _needs_approval(tool: HostedTool, listed: ListedTool) -> bool:
    stated = tool.native.value.get("require_approval")
    if type(stated) is not dict:
        return stated != "never"
    if _is_named(stated.get("always"), listed):
        return True
    if _is_named(stated.get("never"), listed):
        return False
    return "always" not in stated


def _headers(tool: HostedTool) -> dict[str, str]:
    headers = object_in(tool.native.value.get("headers"))
    return {name: value for name, value in headers.items() if type(value) is str}


def _approval(part: Foreign) -> Approval | None:
    value = part.value
    if part.type == _ASK:
        id, name, label = (value.get(key) for key in ("id", "name", "server_label"))
        if type(id) is not str or type(name) is not str or type(label) is not str:
            return None
        try:
            given = decode(text_in(value.get("arguments")) or "{}")
        except BadJson:
            return None
        id = id.removeprefix(_ASK_PREFIX)
        call = HostedCall(KIND, id, name, given if type(given) is dict else {}, label, approval=id)
        return Approval(id, call)
    if part.type != _ANSWER or type(value.get("approval_request_id")) is not str:
        return None
    id = value["approval_request_id"].removeprefix(_ASK_PREFIX)
    return Approval(id, approved=value.get("approve") is True, reason=text_in(value.get("reason")))


MCP: Final = McpForm(
    list_tools=_list_tools,
    listed=_listed,
    allows=_allows,
    needs_approval=_needs_approval,
    headers=_headers,
    approval=_approval,
)
