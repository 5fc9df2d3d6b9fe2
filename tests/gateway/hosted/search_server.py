"""A search server in a thread, for gateways that run in other processes or end."""

from __future__ import annotations

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.gateway.hosted.hosted_kit import OTHER, TOWER
from wireglot_core.wire.json import encode


class SearchServer(ThreadingHTTPServer):
    """Answers as SearXNG does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked = threading.Semaphore(0)
        self.gate = threading.Event()
        """Waited for before an answer."""
        self.gate.set()

    def __enter__(self) -> SearchServer:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gate.set()
        self.shutdown()
        self.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: SearchServer

    def do_GET(self) -> None:
        self.server.asked.release()
        self.server.gate.wait()
        results = [{"url": hit.url, "title": hit.title, "content": hit.text} for hit in (TOWER, OTHER)]
        body = encode({"results": results})
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *arguments: Any) -> None: ...
