"""What the gateway's own tools are given: sources, pages, descriptions of tools, and a server's list."""

from __future__ import annotations

from typing import Any

from tests.laws.bounded import Row
from tests.laws.entry_points import hosted
from wireglot.gateway.hosted.mcp import McpSession
from wireglot.gateway.hosted.ranking import rank_by_words
from wireglot.gateway.hosted.tool_search import MAX_QUERY_CHARACTERS
from wireglot.gateway.hosted.web import _occurs, found_text, page_text
from wireglot_core.dialects.capabilities import McpForm
from wireglot_core.ir.content import Foreign, Message, Text
from wireglot_core.ir.hosted import ListedTool, WebPage, WebSource
from wireglot_core.ir.request import HostedTool, McpServer, Request, Tool
from wireglot_core.translate import translate_response
from wireglot_core.wire.json import encode


def sources(n: int) -> tuple[WebSource, ...]:
    return tuple(WebSource(f"https://{at}.net/a", "title", "text") for at in range(n))


def found_tools(n: int) -> list[Tool]:
    return [Tool(f"read_file_{at}", "Read a file.", {"properties": {"a": {}}}) for at in range(n)]


def many_words(tools: list[Tool]) -> object:
    return rank_by_words(" ".join(map(str, range(MAX_QUERY_CHARACTERS)))[:MAX_QUERY_CHARACTERS], tools)


def conversation(n: int) -> tuple[Message, ...]:
    return tuple(Message("user", (Text("https://a.net/"),)) for _ in range(n))


def fetched(messages: tuple[Message, ...]) -> object:
    assert not _occurs("https://b.net/", messages)
    return page_text(WebPage("https://b.net/", text="\n".join("a line" for _ in messages)))


def listing(n: int) -> list[ListedTool]:
    return [ListedTool(f"f{at}", "d", {"type": "object"}) for at in range(n)]


def offered(listed: list[ListedTool]) -> object:
    tool = HostedTool("mcp", Foreign("d", "mcp", {}), McpServer("s", "https://mcp.example/"))
    connection: Any = None  # nothing is called
    session = McpSession(tool, connection, listed, McpForm())
    return session.offer(Request("m", conversation(len(listed)), tools=(tool,)))


def one_query(n: int) -> dict[str, Any]:
    call = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"query": "q" * 100 * n},
    }
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    text = {"type": "text", "text": "said"}
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "stop_reason": "end_turn",
        "content": [call, *[result] * n, text],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


SEARCHING = {"model": "m", "input": "go", "tools": [{"type": "web_search"}]}


def shown(body: dict[str, Any]) -> bytes:
    made = translate_response(body, source="anthropic", target="openai-responses", request=SEARCHING)
    return encode(made.value)


ROWS = [
    Row("results of one search of the provider's", one_query, shown, n=100),
    Row("sources that were found", sources, found_text, entry=hosted("web_search")),
    Row("a page after many turns", conversation, fetched, entry=hosted("web_fetch")),
    Row("tools that are searched", found_tools, many_words, n=100, entry=hosted("tool_search")),
    Row("tools of a server", listing, offered, n=200, entry=hosted("mcp")),
]
