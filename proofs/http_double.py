"""A real HTTP server for tests on a free port, in threads of its own, gone when it is closed.

class Clock(HttpDouble):
    class Handler(DoubleHandler):
        owner: Clock

        def answer(self, headers: dict[str, str], body: bytes) -> None:
            self.send(200, b"12:00", ("content-type", "text/plain"))

with Clock() as clock:
    ... clock.url ...
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class DoubleHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    owner: Any
    """The double that it answers for."""

    def answer(self, headers: dict[str, str], body: bytes) -> None:
        """Answer a request; names of `headers` are in lower case."""
        raise NotImplementedError

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.answer(headers, self.rfile.read(int(headers.get("content-length", 0))))

    do_POST = do_GET

    def send(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        """A whole answer."""
        self.send_response(status)
        for name, value in (*headers, ("content-length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def send_chunks(self, kind: str, chunks: Iterable[bytes]) -> None:
        """A stream of a content type."""
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        """Tests report what they saw themselves."""


class HttpDouble:
    Handler: type[DoubleHandler]

    def __init__(self, port: int = 0) -> None:
        self._server = _Server(("127.0.0.1", port), type("Handler", (self.Handler,), {"owner": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client may leave a connection that it keeps: nothing to report."""
