"""What the gateway's own tools are given: sources, pages, descriptions of tools, and a server's list."""

from __future__ import annotations

from typing import Any

from tests.laws.bounded import Row
from tests.laws.entry_points import hosted
from wireglot.dialects.base import McpForm
from wireglot.gateway.hosted.mcp import McpSession
from wireglot.gateway.hosted.ranking import rank_by_words
from wireglot.gateway.hosted.tool_search import MAX_QUERY_CHARACTERS
from wireglot.gateway.hosted.web import _occurs, found_text, page_text
from wireglot.ir.content import Foreign, Message, Text
from wireglot.ir.hosted import ListedTool, WebPage, WebSource
from wireglot.ir.request import HostedTool, McpServer, Request, Tool


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


ROWS = [
    Row("sources that were found", sources, found_text, entry=hosted("web_search")),
    Row("a page after many turns", conversation, fetched, entry=hosted("web_fetch")),
    Row("tools that are searched", found_tools, many_words, n=100, entry=hosted("tool_search")),
    Row("tools of a server", listing, offered, n=200, entry=hosted("mcp")),
]
