"""MCP servers that Anthropic connects to itself: `mcp_servers`, and a toolset for each server's tools.

Source: the types of anthropic-sdk-python 2.8.0 (beta `mcp-client-2025-11-20`), read 2026-11-15.
"""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.capabilities import McpForm
from wireglot_core.dialects.common_losses import NO_APPROVAL
from wireglot_core.dialects.fields import Fields, object_in, text_in
from wireglot_core.dialects.hosted_options import server_of
from wireglot_core.ir.content import Foreign
from wireglot_core.ir.hosted import HostedCall, HostedResult, ListedTool, RanCall
from wireglot_core.ir.loss import Loss, is_blank
from wireglot_core.ir.request import AnyTool, HostedTool, McpServer

TOOLSET = "mcp_toolset"
SERVERS = "mcp_servers"

_SAID = frozenset({"type", "mcp_server_name", "default_config", "configs"})


def servers_of(body: Fields) -> dict[str, dict[str, Any]]:
    """The servers of a request, by name."""
    declared = body.value.get(SERVERS)
    if type(declared) is not list:
        return {}
    return {
        server["name"]: server
        for server in declared
        if type(server) is dict and type(server.get("name")) is str
    }


def parse_server(toolset: dict[str, Any], servers: dict[str, dict[str, Any]]) -> McpServer | None:
    """The server of a toolset; None if the request does not contain its URL."""
    name = toolset.get("mcp_server_name")
    server = servers.get(name) if type(name) is str else None
    if server is None or type(server.get("url")) is not str:
        return None
    default, configs = object_in(toolset.get("default_config")), object_in(toolset.get("configs"))
    rest = [key for key, value in toolset.items() if key not in _SAID and not is_blank(value)]
    allowed: tuple[str, ...] | None = None
    if default.get("enabled") is False:
        allowed = tuple(tool for tool in configs if object_in(configs.get(tool)).get("enabled") is True)
    elif any(object_in(configs.get(tool)).get("enabled") is False for tool in configs):
        rest.append("configs")
    listed = object_in(server.get("tool_configuration")).get("allowed_tools")
    if allowed is None and type(listed) is list:
        allowed = tuple(tool for tool in listed if type(tool) is str)
    deferred = default.get("defer_loading") is True
    if any(object_in(configs.get(tool)).get("defer_loading", deferred) is not deferred for tool in configs):
        rest.append("configs")
    return McpServer(
        str(name),
        server["url"],
        text_in(server.get("authorization_token")),
        allowed=allowed,
        deferred=deferred,
        rest=tuple(dict.fromkeys(rest)),
    )


def are_carried(servers: dict[str, dict[str, Any]], tools: tuple[AnyTool, ...], declared: Any) -> bool:
    """Whether the tools contain everything that the request declares about the servers."""
    reported = {
        tool.server.name for tool in tools if isinstance(tool, HostedTool) and tool.server is not None
    }
    return bool(servers) and len(declared) == len(servers) and servers.keys() <= reported


def render_toolset(tool: HostedTool, path: str, losses: list[Loss]) -> dict[str, Any] | None:
    if tool.server is not None and tool.server.approval:
        losses.append(NO_APPROVAL.at(path))
        return None
    server = server_of(tool, path, "as an mcp_toolset and its server", losses)
    if server is None:
        return None
    toolset: dict[str, Any] = {"type": TOOLSET, "mcp_server_name": server.name}
    default: dict[str, Any] = {}
    if server.allowed is not None:
        default["enabled"] = False
        toolset["configs"] = {name: {"enabled": True} for name in server.allowed}
    if server.deferred:
        default["defer_loading"] = True
    if default:
        toolset["default_config"] = default
    return toolset


def render_servers(tools: tuple[AnyTool, ...], rendered: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The `mcp_servers` entries of the toolsets among the rendered tools."""
    named = {tool.get("mcp_server_name") for tool in rendered if tool.get("type") == TOOLSET}
    servers: dict[str, dict[str, Any]] = {}
    for tool in tools:
        if isinstance(tool, HostedTool) and tool.server is not None and tool.server.name in named:
            server = {"type": "url", "name": tool.server.name, "url": tool.server.url}
            if tool.server.token:
                server["authorization_token"] = tool.server.token
            servers.setdefault(tool.server.name, server)
    return list(servers.values())


# Servers that the gateway connects to in the provider's place.

KIND: Final = "mcp"
CALL: Final = "mcp_tool_use"
RESULT: Final = "mcp_tool_result"
_PREFIX: Final = "mcptoolu_"


def _allows(tool: HostedTool, listed: ListedTool) -> bool:
    server, value = tool.server, tool.native.value
    if server is not None and server.allowed is not None:
        return listed.name in server.allowed
    return object_in(object_in(value.get("configs")).get(listed.name)).get("enabled") is not False


def _is_deferred(tool: HostedTool, listed: ListedTool) -> bool:
    stated = object_in(object_in(tool.native.value.get("configs")).get(listed.name)).get("defer_loading")
    return stated if type(stated) is bool else tool.server is not None and tool.server.deferred


MCP: Final = McpForm(allows=_allows, is_deferred=_is_deferred)


def render_call(call: HostedCall) -> dict[str, Any]:
    id = _PREFIX + call.id
    return {"type": CALL, "id": id, "name": call.name, "server_name": call.server, "input": call.input}


def render_result(call: HostedCall, result: HostedResult) -> dict[str, Any]:
    content = [{"type": "text", "text": result.text, "citations": []}]
    return {
        "type": RESULT,
        "tool_use_id": _PREFIX + call.id,
        "is_error": bool(result.error),
        "content": content,
    }


def read_call(part: Foreign) -> RanCall | None:
    """Parses a call of an earlier turn, or its result."""
    value = part.value
    if part.type == CALL:
        id, name, server, given = (value.get(key) for key in ("id", "name", "server_name", "input"))
        if type(id) is not str or type(name) is not str or type(server) is not str or type(given) is not dict:
            return None
        id = id.removeprefix(_PREFIX)
        return RanCall(id, HostedCall(KIND, id, name, given, server))
    id, content = value.get("tool_use_id"), value.get("content")
    if type(id) is not str:
        return None
    blocks = content if type(content) is list else []
    texts = [text_in(block.get("text")) for block in blocks if type(block) is dict]
    text = content if type(content) is str else "\n".join(texts)
    error = value.get("is_error") is True
    return RanCall(
        id.removeprefix(_PREFIX),
        result=HostedResult(text or "The tool returned nothing.", "tool_failed" if error else ""),
    )
