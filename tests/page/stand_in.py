"""A stand-in for the gateway behind the page: its files under the page's own policy, and documents that a test gives.

Real gateways are what the flows are tried on (`test_flows.py`). This one is for what they cannot be made to say:
ten thousand rows at once, an answer of a megabyte, and hostile words in every field.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

ASSETS = Path(__file__).parents[2] / "src/wireglot/gateway/inspector/assets"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; "
    "font-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types wireglot"
)
TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}

Answer = Callable[[dict[str, str], Any], Any]


class StandIn:
    """What it answers: documents by method and path, or functions of the query and the body."""

    def __init__(self) -> None:
        self.documents: dict[tuple[str, str], Any] = {
            ("GET", "/session"): {
                "access": "open",
                "key": "",
                "csrf": "token",
                "version": "0.1.0",
                "workers": 1,
                "admin": False,
            },
            ("GET", "/exchanges"): self.page_of_rows,
            ("GET", "/recording"): {"mode": "off", "until": None, "dropped": 0, "kept_bytes": 0},
            ("GET", "/conversations"): {"conversations": []},
            ("GET", "/losses"): {"pairs": []},
            ("GET", "/fields"): {
                "fields": [
                    {"name": "client", "about": "program", "values": []},
                    {"name": "cost", "about": "amount", "values": []},
                    {"name": "status", "about": "number or state", "values": ["4xx", ">=400"]},
                ],
                "sorts": ["time", "cost"],
            },
        }
        self.rows: list[dict[str, Any]] = []
        self.traces: dict[str, dict[str, Any]] = {}
        self.caches: dict[str, list[dict[str, Any]]] = {}
        """By an exchange: the turns of its conversation, it the last, as the gateway tells them."""
        self.asked: list[tuple[str, str, Any]] = []
        self.queries: list[dict[str, str]] = []
        """Of the list."""
        self.origin = ""
        self._reported: list[tuple[str, Any]] = []
        self.following = 0
        """Connections to the stream of rows."""
        self.most_following = 0
        self._changed = threading.Condition()
        self._ended = False

    def page_of_rows(self, query: dict[str, str], _: Any) -> Any:
        self.queries.append(query)
        rows = sorted(self.rows, key=lambda row: (-row["at"], row["id"]))
        for name, field in (
            ("client", "client"),
            ("provider", "provider"),
            ("key", "key"),
            ("session", "session"),
            ("purpose", "purpose"),
            ("agent", "agent_name"),
        ):
            if name in query:
                rows = [row for row in rows if row.get(field) == query[name]]
        if "ids" in query:
            ids = query["ids"].split(",")
            rows = [row for row in rows if row["id"] in ids]
        if "q" in query:
            rows = [row for row in rows if query["q"].lower() in json.dumps(row).lower()]
        if "count" in query:
            return {"count": len(rows), "more": False}
        start = next((at + 1 for at, row in enumerate(rows) if row["id"] == query.get("before")), 0)
        limit = int(query.get("limit", "100"))
        page = rows[start : start + limit]
        return {"rows": page, "next": page[-1]["id"] if start + limit < len(rows) else None}

    def tell(self, event: str, document: Any) -> None:
        with self._changed:
            self._reported.append((event, document))
            self._changed.notify_all()

    def follow(self, by: int) -> None:
        with self._changed:
            self.following += by
            self.most_following = max(self.following, self.most_following)

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def events_after(self, seen: int) -> list[tuple[str, Any]] | None:
        """The next ones; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._reported) > seen or self._ended, timeout=5)
            return None if self._ended else self._reported[seen:]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stand_in: StandIn

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/inspector/api/live":
            self._live()
        elif url.path.startswith("/inspector/api/"):
            self._api("GET")
        elif url.path.startswith("/inspector/assets/"):
            place = ASSETS / url.path.rpartition("/")[2]
            self._send(200, TYPES[place.suffix], place.read_bytes()) if place.is_file() else self._send(
                404, "text/plain", b""
            )
        elif url.path.startswith("/inspector"):
            self._send(200, "text/html; charset=utf-8", (ASSETS / "index.html").read_bytes())
        else:
            self._send(404, "text/plain", b"")

    def do_POST(self) -> None:
        self._api("POST")

    def do_PATCH(self) -> None:
        self._api("PATCH")

    def do_DELETE(self) -> None:
        self._api("DELETE")

    def _api(self, method: str) -> None:
        url = urlsplit(self.path)
        path = unquote(url.path.removeprefix("/inspector/api"))
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.stand_in.asked.append((method, path, body))
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        if method != "GET" and self.headers.get("x-wireglot-csrf") != "token":
            self._json(403, {"error": {"message": "no token of the session"}})
            return
        if path.startswith("/exchanges/") and path.endswith("/cache"):
            id = path.removeprefix("/exchanges/").removesuffix("/cache")
            turns = self.stand_in.caches.get(id, [])
            self._json(200, {"turns": turns if "all" in query else turns[-1:]})
            return
        if path.startswith("/exchanges/") and path.endswith("/image"):
            self._send(404, "text/plain", b"")
            return
        if path.startswith("/exchanges/") and path.removeprefix("/exchanges/") in self.stand_in.traces:
            self._json(200, self.stand_in.traces[path.removeprefix("/exchanges/")])
            return
        found = self.stand_in.documents.get((method, path))
        if found is None:
            self._json(404, {"error": {"message": f"nothing at {path}"}})
            return
        self._json(200, found(query, body) if callable(found) else found)

    def _json(self, status: int, document: Any) -> None:
        self._send(status, "application/json", json.dumps(document).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in (
            ("content-type", kind),
            ("content-length", str(len(body))),
            ("content-security-policy", POLICY),
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _live(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        seen = 0
        self.stand_in.follow(1)
        try:
            self.wfile.write(b"event: hello\ndata: {}\n\n")
            while (events := self.stand_in.events_after(seen)) is not None:
                seen += len(events)
                written = "".join(
                    f"event: {name}\ndata: {json.dumps(document)}\n\n" for name, document in events
                )
                self.wfile.write((written or ": still here\n\n").encode())
                self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            self.stand_in.follow(-1)


@contextmanager
def standing_in():
    stand_in = StandIn()
    handler = type("Handler", (_Handler,), {"stand_in": stand_in})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    stand_in.origin = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield stand_in
    finally:
        stand_in.end()
        server.shutdown()
        server.server_close()


def now() -> float:
    return time.time()
