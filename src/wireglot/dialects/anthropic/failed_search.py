"""The blocks of a web search that failed: its call, its error (HTTP stays 200), and a word about it."""

from __future__ import annotations

from wireglot.dialects.anthropic.names import NAME
from wireglot.dialects.context import Context
from wireglot.ir.content import Foreign, Part, Text
from wireglot.ir.request import HostedTool, Request
from wireglot.ir.turns import last_words

_ERROR = {"type": "web_search_tool_result_error", "error_code": "unavailable"}


def failed_search(request: Request, why: str, context: Context) -> tuple[Part, ...]:
    asked = last_words(request.messages)
    identifier = context.new_id("srvtoolu", asked)
    fetches = all(isinstance(tool, HostedTool) and tool.kind == "web_fetch" for tool in request.tools)
    name, given = ("web_fetch", "url") if fetches else ("web_search", "query")
    call = {"type": "server_tool_use", "id": identifier, "name": name, "input": {given: asked}}
    result = {
        "type": f"{name}_tool_result",
        "tool_use_id": identifier,
        "content": {**_ERROR, "type": f"{name}_tool_result_error"},
    }
    return (
        Foreign(NAME, "server_tool_use", call),
        Foreign(NAME, f"{name}_tool_result", result),
        Text(f"The web was not searched: {why}."),
    )
