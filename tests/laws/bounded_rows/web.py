"""Domain rules, pages and answers of search engines."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.laws.bounded import Row
from tests.laws.entry_points import PAGE, hosted
from wireglot.gateway.relay.web_tools import _cited
from wireglot.web.backends import HttpSearch, SearchAccount
from wireglot.web.contract import Query
from wireglot.web.domains import MAX_RULES, domain_filter, parse_rule
from wireglot.web.page_text import read_page
from wireglot_core.ir.content import Citation, Text
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.wire.json import encode

ROWS = [
    Row(
        "a path rule with many stars",
        lambda n: "http://example.com/" + "a" * n,
        lambda url: domain_filter(["example.com/" + "*a" * 12 + "b"], []).admits(url),
        n=150,
    ),
    Row(
        "a long host",
        lambda n: f"http://{'a.' * n}com/",
        lambda url: domain_filter(["example.com/api"], []).admits(url),
    ),
    Row("a long rule", lambda n: "a-" * n, parse_rule),
    Row(
        "many rules",
        lambda n: [f"{number}.of-{n}.example/x" for number in range(n)],
        lambda rules: domain_filter([], rules).admits("https://a.example/y"),
    ),
]


def page(html: str) -> tuple[str, str]:
    return read_page(html.encode(), "text/html", "", "http://example.com/", 10_000)


class Engine:
    """Implements `Transport` and `Answer`: a search engine that answers with a document."""

    status = 200

    def __init__(self, document: object) -> None:
        self._body = encode(document)

    async def send(self, outbound: object, timeouts: object) -> Engine:
        return self

    async def read(self, most: int) -> bytes:
        return self._body


def searched(document: object) -> object:
    search: Any = HttpSearch("tavily", SearchAccount(key="k"), {"https": Engine(document)})  # type: ignore[dict-item]  # a fake transport
    rules = tuple(f"{number}.example/a*b" for number in range(MAX_RULES))
    return asyncio.run(search.search(Query("tower", blocked_domains=rules)))


def results(n: int) -> dict[str, object]:
    return {"results": [{"url": f"https://{x}.net/a", "title": "t", "content": "c"} for x in range(n)]}


def quoting(n: int) -> Response:
    text = "word " * n
    noted = tuple(Citation("https://a.net/", "t", start=0, end=len(text)) for _ in range(n))
    return Response("r", "m", (Text(text, citations=noted),), Stop("end", ""))


ROWS += [
    Row("results of a search engine", results, searched, entry=hosted("web_search")),
    Row("citations that quote the whole answer", quoting, _cited),
    Row("nested elements", lambda n: "<div>" * n + "x", page, entry=PAGE),
    Row("open links", lambda n: "<a href=/x>" * n + "x", page),
    Row("open titles", lambda n: "<title>x" * n, page),
    Row("tables in tables", lambda n: "<table><tr><td>" * n + "x", page),
    Row("elements that close others", lambda n: "<b><p>x" * n, page),
    Row("attributes", lambda n: "<p " + "".join(f"a{x}=1 " for x in range(n)) + ">x", page),
    Row("an attribute", lambda n: "<p style='" + "display " * n + "'>x", page),
    Row("entities", lambda n: "<p>" + "&amp;" * n, page),
    Row("open comments", lambda n: "<p>x" + "<!--" * n, page),
    Row("blanks", lambda n: "<p>" + " \n" * n + "x", page),
    Row("lines", lambda n: "<pre>" + "\n" * n + "x", page),
    Row("line breaks", lambda n: "<br>" * n + "x", page),
    Row("statements of a charset", lambda n: "<meta " * n + "charset =   ", page),
    Row("text that is no page", lambda n: "<" * n, page),
]
