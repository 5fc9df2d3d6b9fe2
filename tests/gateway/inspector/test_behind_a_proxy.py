"""Behind a real proxy on the same machine, as docs/inspector.md has it set up."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.gateway.inspector.inspector_kit import ADMIN, Visitor, configured
from wireglot.testing.live_gateway import LiveGateway

NAME = "llm.example.com"


class Proxy(BaseHTTPRequestHandler):
    """Passes on what comes, with the headers that nginx is asked to set."""

    upstream: LiveGateway
    adds: dict[str, str]

    def pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        connection = http.client.HTTPConnection("127.0.0.1", self.upstream.port, timeout=60)
        passed = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
        connection.request(self.command, self.path, body or None, {**passed, **self.adds})
        answer = connection.getresponse()
        data = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "connection", "date", "server"):
                self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        connection.close()

    do_GET = do_POST = do_DELETE = pass_on

    def log_message(self, format: str, *args: object) -> None: ...


class At:
    def __init__(self, port: int) -> None:
        self.port = port


@contextmanager
def proxied(gateway: LiveGateway, **adds: str) -> Iterator[Visitor]:
    named = {name.replace("_", "-"): value for name, value in adds.items()}
    handler = type("Handler", (Proxy,), {"upstream": gateway, "adds": named})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        visitor = Visitor(At(server.server_port)).browse()
        visitor.headers |= {"host": NAME}
        yield visitor
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_visitor_through_a_proxy_must_sign_in_and_can():
    with (
        configured(f'admin_secret = "{ADMIN}"\nhosts = ["{NAME}"]') as gateway,
        proxied(gateway, X_Forwarded_For="203.0.113.9", X_Forwarded_Proto="https") as visitor,
    ):
        assert visitor.look()["access"] == "none"
        assert visitor.get("/inspector/api/setup").status == 401
        signed_in = visitor.sign_in(ADMIN, origin=f"https://{NAME}")
        assert signed_in.status == 200
        assert "; Secure" in signed_in.headers["set-cookie"]
        assert visitor.get("/inspector/api/setup").json()["base_url"] == f"https://{NAME}"
        assert visitor.post("/inspector/api/ask", {}, origin=f"https://{NAME}").json()["status"] == 200
        assert visitor.post("/inspector/api/ask", {}, origin="https://evil.example.com").status == 403


def test_a_proxy_that_says_nothing_but_its_name_is_known_by_it():
    with configured(f'hosts = ["{NAME}"]') as gateway, proxied(gateway) as visitor:
        assert visitor.look()["access"] == "none"
    with configured() as gateway, proxied(gateway) as visitor:
        assert visitor.get("/inspector/api/setup").status == 403, "a name that nobody gave it"


def test_a_proxy_that_hides_the_name_is_known_by_what_it_adds():
    with configured() as gateway:
        local = f"127.0.0.1:{gateway.port}"
        with proxied(gateway, Host=local, X_Forwarded_For="203.0.113.9") as visitor:
            del visitor.headers["host"]
            assert visitor.get("/inspector/api/setup").status == 401
