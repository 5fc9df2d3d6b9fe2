"""A proxy in front of the gateway for suites that were made for a mock server, at which every id exists."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final
from urllib.parse import urlsplit

_HOP: Final = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})
_READ: Final = 65_536


class RewritingProxy:
    """`rewrite` gets method, path and body of each request and returns the path and body that are sent."""

    def __init__(self, upstream: str, rewrite: Callable[[str, str, bytes], tuple[str, bytes]]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(upstream, rewrite))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> RewritingProxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(
    upstream: str, rewrite: Callable[[str, str, bytes], tuple[str, bytes]]
) -> type[BaseHTTPRequestHandler]:
    address = urlsplit(upstream).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _forward(self) -> None:
            received = self.rfile.read(int(self.headers.get("content-length") or 0))
            path, body = rewrite(self.command, self.path, received)
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            connection = http.client.HTTPConnection(address, timeout=60)
            connection.request(self.command, path, body or None, headers)
            answer = connection.getresponse()
            self.send_response_only(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            try:
                while piece := answer.read1(_READ):
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")
            except ConnectionError:  # the client has read enough
                self.close_connection = True
            finally:
                connection.close()

        do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = _forward

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    return Handler
