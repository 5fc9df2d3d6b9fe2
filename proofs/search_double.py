"""A search engine for tests and proofs: one real HTTP server that speaks the forms of all search backends.

python -m proofs.search_double --port 8888

SearXNG, Brave, Tavily, Exa and Google differ by path and key header. Every query is answered with the
same results, which are not filtered: to keep to domains is up to the client. A query with `[[fail 429]]`,
`[[none]]`, `[[malformed]]`, `[[list]]`, `[[huge]]`, `[[silent]]` or `[[cut]]` fails in this way. Pages are
served below /page/.
"""

from __future__ import annotations

import argparse
import json
import re
import threading
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from proofs.http_double import DoubleHandler, HttpDouble

KEY = "search-key-0123456789abcdef"
RESULTS = (
    (
        "https://docs.example.com/guide?x=1",
        "Guide",
        "The guide says that Wireglot 7.3 was released in May.",
        "2026-05-04",
    ),
    ("https://news.example.org/today", "News of today", "Zurich has 443,037 inhabitants.", "2026-11-17"),
    ("http://example.net/", "Example", "An example without a date.", ""),
    ("https://blog.docs.example.com/post", "A post", "A post of the blog.", ""),
    ("https://notexample.com/", "Another domain", "Its name only ends like one of the others.", ""),
    ("ftp://example.com/file", "A file", "No page of the web.", ""),
)
_ORDER = re.compile(r"\[\[(fail (\d+)|none|malformed|huge|silent|cut|list)\]\]")


class SearchDouble(HttpDouble):
    """`requests` are those that came: the backend, the query with all its fields, and the headers."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.requests: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        self.released = threading.Event()
        """Set to let silent answers end."""

    def __exit__(self, *given: object) -> None:
        self.released.set()
        super().__exit__(*given)

    class Handler(DoubleHandler):
        owner: SearchDouble

        def answer(self, headers: dict[str, str], body: bytes) -> None:
            parts = urlsplit(self.path)
            if parts.path.startswith("/page/"):
                self._page(parts.path)
                return
            fields: dict[str, Any] = json.loads(body) if body else dict(parse_qsl(parts.query))
            backend, key = _backend(parts.path, headers)
            self.owner.requests.append((backend, fields, headers))
            if backend != "searxng" and key != KEY:
                self._json(401, {"error": f"the key {key} is unknown"})
                return
            order = _ORDER.search(fields.get("q") or fields.get("query") or "")
            what = order[1].partition(" ")[0] if order is not None else ""
            document = _document(backend, () if what == "none" else RESULTS)
            match what:
                case "fail":
                    assert order is not None
                    self._json(int(order[2]), {"error": f"no, not with {key}"})
                case "malformed":
                    self.send(200, b'{"results": [{"url": "ht', ("content-type", "application/json"))
                case "list":
                    self._json(200, [])
                case "huge":
                    self.send_chunks("application/json", (b" " * 65536 for _ in range(160)))
                case "silent":
                    self.owner.released.wait(60)
                    self.close_connection = True
                case "cut":
                    self.send_response(200)
                    self.send_header("content-length", "1000")
                    self.end_headers()
                    self.wfile.write(b'{"results": [')
                    self.close_connection = True
                case _:
                    self._json(200, document)

        def _json(self, status: int, document: Any) -> None:
            self.send(status, json.dumps(document).encode(), ("content-type", "application/json"))

        def _page(self, path: str) -> None:
            text = f"<title>Page {path}</title><h1>Page</h1><p>The code word of {path} is MARMALADE-42."
            self.send(200, text.encode(), ("content-type", "text/html; charset=utf-8"))


def _backend(path: str, headers: dict[str, str]) -> tuple[str, str]:
    """Who is spoken to, and with which key."""
    if path == "/res/v1/web/search":
        return "brave", headers.get("x-subscription-token", "")
    if path == "/customsearch/v1":
        return "google", headers.get("x-goog-api-key", "")
    assert path == "/search", path
    if "x-api-key" in headers:
        return "exa", headers["x-api-key"]
    kind = "tavily" if headers.get("content-type") == "application/json" else "searxng"
    return kind, headers.get("authorization", "").removeprefix("Bearer ")


def _document(backend: str, results: tuple[tuple[str, str, str, str], ...]) -> dict[str, Any]:
    match backend:
        case "brave":
            found = [
                {
                    "url": url,
                    "title": title,
                    "description": text[:20],
                    "extra_snippets": [text],
                    "page_age": age or None,
                }
                for url, title, text, age in results
            ]
            return {
                "type": "search",
                "query": {},
                **({"web": {"type": "search", "results": found}} if found else {}),
            }
        case "google":
            items = [{"link": url, "title": title, "snippet": text} for url, title, text, _ in results]
            return {"kind": "customsearch#search", **({"items": items} if items else {})}
        case "exa":
            return {
                "requestId": "r",
                "results": [
                    {
                        "id": url,
                        "url": url,
                        "title": title,
                        "highlights": [text],
                        "publishedDate": age or None,
                    }
                    for url, title, text, age in results
                ],
            }
        case "tavily":
            return {
                "query": "q",
                "results": [
                    {
                        "url": url,
                        "title": title,
                        "content": text,
                        "score": 0.9,
                        "raw_content": None,
                        "published_date": age,
                    }
                    for url, title, text, age in results
                ],
            }
        case _:
            return {
                "query": "q",
                "number_of_results": 0,
                "results": [
                    {
                        "url": url,
                        "title": title,
                        "content": text,
                        "publishedDate": age or None,
                        "engine": "double",
                    }
                    for url, title, text, age in results
                ],
                "unresponsive_engines": [],
            }


def main() -> None:
    parser = argparse.ArgumentParser(description="A search engine that always finds the same.")
    parser.add_argument("--port", type=int, default=8888)
    with SearchDouble(parser.parse_args().port) as double:
        print(f"{double.url}, key {KEY}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
