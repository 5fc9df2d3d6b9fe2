"""A page in a browser on the same machine: no key is asked for there, and none of it may get in."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from proofs.lab.doors.knocking import Book, Said, asked, at_once, knock
from proofs.lab.doors.routes import Route, body, every_route, is_public, target
from proofs.lab.doors.smuggling_vectors import chunk
from proofs.lab.doors.stage import ADMIN, Stage, staged
from proofs.lab.marking_upstream import mark

_NAMED: Final = "https://app.example.org"
_HOSTS: Final = (
    "evil.test", "evil.test:{port}", "localhost.evil.test", "127.0.0.1.evil.test", "127.0.0.1.nip.io:{port}",
    "localhost.", "localhost.localdomain", "xlocalhost", "localhost-x", "127.1", "2130706433", "0x7f000001",
    "0177.0.0.1", "127.0.0.1.", "0", "0.0.0.0", "0.0.0.0:{port}", "[::]", "[::]:{port}", "192.168.0.5",
    "10.0.0.1:{port}",
    "[fe80::1]", "169.254.169.254", "example.org", "127.0.0.1x", "1.127.0.0.1", "host.docker.internal",
    "a.localhost",
)  # fmt: skip
_ORIGINS: Final = (
    "null", "https://evil.test", "http://evil.test:{port}", "http://localhost:3000", "http://127.0.0.1:3000",
    "http://localhost.evil.test:{port}", "http://127.0.0.1:{port}.evil.test", "file://", "chrome-extension://abc",
    "http://127.0.0.1:{port}@evil.test", "https://app.example.org.evil.test", "http://app.example.org",
    "https://APP.example.org", "https://app.example.org:8443", "https://app.example.org/", "*", "",
    "http://localhost:{port}", "https://evil.test, https://app.example.org", "about:blank", "data:", "http://[::1]:{port}",
    "HTTP://127.0.0.1:{port}", "http://127.0.0.1", "http://127.0.0.1:{port}/",
)  # fmt: skip
"""None of them is the gateway's own, as it is asked here, or the one that was named."""
_SIMPLE: Final = (
    "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
    "text/plain; application/json",
    "application/jsonx", "text/json", "", "application/json, text/plain", "application/json; charset=utf-16",
    "*/*",
)  # fmt: skip
"""What a page may send without asking first, and what looks like more."""


class _Knock(NamedTuple):
    name: str
    route: Route
    headers: dict[str, str]
    host: str
    method: str = ""
    chunked: bool = False


async def trial(book: Book, folder: Path) -> None:
    # With an admin's secret, so that its pages are there. They ask for it; nothing else asks for a key.
    server = f'origins = ["{_NAMED}"]\nadmin_secret = "{ADMIN}"\n'
    async with staged(folder, server=server) as stage:
        await _right(book, stage)
        numbers = count(1)

        async def one(vector: _Knock) -> None:
            own = mark(1, next(numbers))
            said = await _sent(stage, vector, own)
            book.counts[f"status {said.status}"] += 1
            book.knocked(vector.name, _admitted(stage, said, own))

        await at_once(book.some(_vectors(f"127.0.0.1:{stage.port}", str(stage.port))), one)


def _vectors(own: str, port: str) -> Iterator[_Knock]:
    for route in every_route():
        said = f"{route.method} {route.path}"
        for host in _HOSTS:
            named = host.replace("{port}", port)
            yield _Knock(f"{said}, Host {named}", route, {}, named)
            page = {"origin": f"http://{named}", "sec-fetch-site": "same-origin"}
            yield _Knock(f"{said}, rebound from {named}", route, page, named)
        for text in _ORIGINS:
            origin = text.replace("{port}", port)
            for fetched in ("", "cross-site", "same-site", "same-origin", "none"):
                headers = {"origin": origin} | ({"sec-fetch-site": fetched} if fetched else {})
                yield _Knock(f"{said}, Origin {origin!r} {fetched}", route, headers, own)
            wanted = {
                "access-control-request-method": route.method,
                "access-control-request-headers": "x-api-key",
            }
            yield _Knock(
                f"{said}, preflight of {origin!r}", route, {"origin": origin, **wanted}, own, method="OPTIONS"
            )
            private = {"origin": origin, **wanted, "access-control-request-private-network": "true"}
            yield _Knock(f"{said}, private preflight of {origin!r}", route, private, own, method="OPTIONS")
        for mode in ("no-cors", "navigate", "cors", "websocket"):
            headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": mode}
            yield _Knock(f"{said}, cross-site {mode}", route, headers, own)
        if route.method not in ("GET", "HEAD", "DELETE") and not is_public(*route):
            for kind in _SIMPLE:
                for chunked in (False, True):
                    name = f"{said}, a body of {kind!r}{' in chunks' if chunked else ''}"
                    yield _Knock(name, route, {"content-type": kind}, own, chunked=chunked)


async def _sent(stage: Stage, vector: _Knock, own: str) -> Said:
    method = vector.method or vector.route.method
    data = body(vector.route, f"Say {own}")
    path = target(vector.route)
    if not vector.chunked:
        return await asked(stage.port, method, path, data, vector.headers, host=vector.host)
    lines = {"host": vector.host, **vector.headers, "transfer-encoding": "chunked", "connection": "close"}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    said = await knock(stage.port, [f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + chunk(data)])
    return said[-1] if said else Said(0, b"", b"")


def _admitted(stage: Stage, said: Said, own: str) -> str:
    if stage.saw(own):
        return "the provider was asked"
    if said.let_in:
        return f"status {said.status}"
    if said.status in (404, 405):
        return f"it was looked at: {said.status}"
    return "it may be read" if b"access-control-" in said.head.lower() else ""


async def _right(book: Book, stage: Stage) -> None:
    own = f"127.0.0.1:{stage.port}"
    for host in (own, f"localhost:{stage.port}", "localhost", f"[::1]:{stage.port}", "127.8.8.8"):
        book.right(f"Host {host}", (await asked(stage.port, "GET", "/v1/models", host=host)).status == 200)
    for origin in (_NAMED, f"http://{own}"):
        page = {"origin": origin}
        said = await asked(stage.port, "GET", "/v1/models", headers=page, host=own)
        book.right(f"Origin {origin}", said.status == 200, said)
    wanted = {"origin": _NAMED, "access-control-request-method": "POST", "sec-fetch-site": "cross-site"}
    said = await asked(stage.port, "OPTIONS", "/v1/messages", headers=wanted, host=own)
    reported = said.header("access-control-allow-origin")
    book.right("preflight", said.status == 204 and reported == _NAMED, said)
    for route in every_route():
        if route.path.endswith(("/completions", "/messages", "/v1/responses", "*:generateContent")):
            number = mark(2, book.opened)
            await asked(stage.port, "POST", target(route), body(route, f"Say {number}"), host=own)
            book.right(f"{route.method} {route.path}", bool(stage.saw(number)))
