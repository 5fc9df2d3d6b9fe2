"""The Anthropic API behind both gateways: it answers what a case sets and keeps what it received."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple, Self

API_KEY: Final = "sk-ant-upstream-0123456789"


class UpstreamAnswer(NamedTuple):
    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


def document(value: Any, status: int = 200, /, **headers: str) -> UpstreamAnswer:
    """A JSON answer; underscores of header names are hyphens."""
    named = tuple((name.replace("_", "-"), text) for name, text in headers.items())
    return UpstreamAnswer(json.dumps(value).encode(), status, (("content-type", "application/json"), *named))


def error(status: int, kind: str, message: str, **headers: str) -> UpstreamAnswer:
    envelope = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_upstream"}
    return document(envelope, status, **headers)


def events(*values: dict[str, Any]) -> UpstreamAnswer:
    """The values as server-sent events."""
    text = "".join(f"event: {value['type']}\ndata: {json.dumps(value)}\n\n" for value in values)
    return UpstreamAnswer(text.encode(), headers=(("content-type", "text/event-stream; charset=utf-8"),))


class ScriptedAnthropic:
    def __init__(self) -> None:
        self.answer = document({})
        self.received: list[Received] = []
        owner = self

        class Handler(_Handler):
            upstream = owner

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A gateway may close a connection that it keeps: nothing to report."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: ScriptedAnthropic

    def log_message(self, *_: object) -> None: ...

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.upstream.received.append(Received(self.path, headers, body))
        answer = self.upstream.answer
        self.send_response(answer.status)
        for name, value in (*answer.headers, ("content-length", str(len(answer.body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)
