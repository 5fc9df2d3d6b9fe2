"""Every route, asked without its key: with none, with a wrong one, with a right one in the wrong place."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from proofs.lab.doors.knocking import Book, Said, asked, at_once
from proofs.lab.doors.routes import METHODS, Route, body, every_route, is_public, target
from proofs.lab.doors.stage import ADMIN, ANN, BOB, KEYS, METRICS, Stage, staged
from proofs.lab.marking_upstream import mark
from proofs.served import keys_table

_KEY: Final = KEYS[ANN]
_DIGEST: Final = hashlib.sha256(_KEY.encode()).hexdigest()
_PLACES: Final = (("authorization", "Bearer "), ("x-api-key", ""), ("x-goog-api-key", ""))


class _Knock(NamedTuple):
    name: str
    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""


def _wrong() -> Iterator[tuple[str, dict[str, str]]]:
    """Headers that hold no client's key where a key is looked for."""
    yield "no key", {}
    for what, text in {
        "empty": "", "a space": " ", "another": "wg-another-key", "cut": _KEY[:-1], "longer": _KEY + "x",
        "upper case": _KEY.upper(), "its digest": _DIGEST, "its entry": f"sha256:{_DIGEST}", "its owner": ANN,
        "in base64": base64.b64encode(_KEY.encode()).decode(), "quoted": f'"{_KEY}"', "null": "null",
        "*": "*",
        "two by a comma": f"x, {_KEY}", "SQL": "' OR '1'='1", "a path": "../../etc/passwd",
        "long": "k" * 5000,
        "the admin's": ADMIN, "the metrics'": METRICS, "unprintable": "\xff\xfe",
        "with a fragment": f"{_KEY}#",
        "half of each": _KEY[:12] + KEYS[BOB][12:], "twice": _KEY * 2, "its first letters": _KEY[:6],
        "true": "true",
    }.items():  # fmt: skip
        for name, prefix in _PLACES:
            yield f"{what} in {name}", {name: prefix + text}
    for name, value in {
        "authorization": f"Basic {base64.b64encode(f'{ANN}:{_KEY}'.encode()).decode()}",
        "Authorization": f"Basic {_KEY}", "authorizatioN": f"Digest {_KEY}", "AUTHORIZATION": f"Token {_KEY}",
        "authorizatIon": _KEY, "authorizaTion": f"Bearer:{_KEY}", "authorizAtion": f"Bearer{_KEY}",
        "cookie": f"key={_KEY}; authorization=Bearer {_KEY}", "proxy-authorization": f"Bearer {_KEY}",
        "x-authorization": f"Bearer {_KEY}", "api-key": _KEY, "x-key": _KEY,
        "x-forwarded-authorization": f"Bearer {_KEY}",
        "x-auth-token": _KEY, "x-wireglot-key": _KEY, "www-authenticate": f"Bearer {_KEY}", "referer": f"http://{_KEY}@x/",
        "user-agent": _KEY, "x-forwarded-for": "127.0.0.1", "forwarded": "for=127.0.0.1",
        "x-real-ip": "127.0.0.1",
        "x-original-url": "/healthz", "x-rewrite-url": "/healthz", "x-http-method-override": "GET",
        "x-forwarded-user": ANN,
        "x-wireglot-caller": ANN, "x-remote-user": ANN, "sec-websocket-protocol": _KEY,
    }.items():  # fmt: skip
        yield f"{name}: {value[:8]}", {name: value}


def _tricks(path: str) -> Iterator[str]:
    """Other spellings of a path, and open paths that might turn into it."""
    yield from (
        path + "/",
        path + "//",
        path + "/.",
        path + "?",
        path + "%20",
        path + "%00",
        path + ";x",
        path + ".json",
    )
    yield from (
        path + "/..;/healthz",
        path + "%2f",
        path + "#",
        path + "%3fx",
        path + "/healthz",
        path + ":x",
        path + "\\",
    )
    yield from (
        f"/{path}",
        f"/.{path}",
        f"/%2e{path}",
        f"/healthz/..{path}",
        f"/healthz/%2e%2e{path}",
        f"/x/../{path}",
    )
    yield from (
        f"/healthz;{path}",
        f"/healthz%2f..{path}",
        f"/healthz?{path}",
        f"/healthz%3f{path}",
        f"/;{path}",
    )
    yield from (
        f"/openai{path}",
        f"/anthropic{path}",
        f"/v1beta/openai{path}",
        f"/api/hello{path}",
        f"/api{path}",
    )
    yield from (
        path.upper(),
        path.title(),
        path.swapcase(),
        path.replace("/", "//"),
        path.replace("/", "/./"),
    )
    yield from (
        path.replace("/", "\\"),
        "/" + path[1:].replace("/", "%2F"),
        "/" + path[1:].replace("/", "%252F"),
    )
    yield "/" + "".join(f"%{ord(letter):02x}" for letter in path[1:])
    yield "/" + quote(quote(path[1:], safe=""), safe="")
    yield from (
        f"http://127.0.0.1{path}",
        f"http://127.0.0.1/healthz/..{path}",
        path.replace("v1", "v1%2e"),
        path + "%0a",
    )


def _vectors() -> Iterator[_Knock]:
    routes = every_route()
    for route in routes:
        path = target(route)
        for method in METHODS:
            sent = body(route, "MARK") if method not in ("GET", "HEAD", "OPTIONS", "TRACE") else b""
            yield _Knock(f"{method} {path}, no key", method, path, {}, sent)
            for query in (
                f"?api_key={_KEY}",
                f"?access_token={_KEY}",
                f"?Key={_KEY}",
                "?key=",
                f"?key=x&key={_KEY}",
            ):
                yield _Knock(f"{method} {path}{query[:9]}", method, path + query, {}, sent)
        for name, headers in _wrong():
            if _opens(name, path):
                continue
            yield _Knock(f"{route.method} {path}, {name}", route.method, path, headers, body(route, "MARK"))
    for path in dict.fromkeys(target(route) for route in routes):
        for trick in dict.fromkeys(_tricks(path)):
            for method in ("GET", "POST", "DELETE"):
                sent = body(Route("POST", path), "MARK") if method == "POST" else b""
                yield _Knock(f"{method} {trick}", method, trick, {}, sent)


def _opens(name: str, path: str) -> bool:
    """The gateway's own secrets, where they authorize."""
    is_metrics = path == "/metrics"
    if name.startswith("the admin's"):
        return is_metrics or _is_admins(path)
    return is_metrics and name.startswith("the metrics'")


def _is_admins(path: str) -> bool:
    return "/admin/" in path or path.startswith("/inspector/")


def _above() -> Iterator[_Knock]:
    """A client's right key at what is the admin's, and at the metrics."""
    for route in every_route():
        path = target(route)
        if "/admin/" in path or path == "/metrics":
            for name, prefix in _PLACES:
                headers = {name: prefix + _KEY}
                for trick in (path, *_tricks(path)):
                    sent = body(route, "MARK")
                    yield _Knock(f"{route.method} {trick}, a client's", route.method, trick, headers, sent)
                both = {**headers, "x-wireglot-admin": _KEY}
                yield _Knock(f"{route.method} {path}, twice", route.method, path, both, body(route, "MARK"))


async def trial(book: Book, folder: Path) -> None:
    server = f'admin_secret = "{ADMIN}"\nmetrics_key = "{METRICS}"\n'
    async with staged(folder, server=server, tables=keys_table(KEYS)) as stage:
        numbers = count(1)
        book.counts["routes"] = len(every_route())
        book.counts["routes declared public"] = sum(is_public(*route) for route in every_route())

        async def one(vector: _Knock) -> None:
            own = mark(1, next(numbers))
            sent = vector.body.replace(b"MARK", own.encode())
            said = await asked(stage.port, vector.method, vector.target, sent, vector.headers)
            book.counts[f"status {said.status}"] += 1
            book.knocked(vector.name, _admitted(stage, vector, said, own))

        await at_once(book.some(_vectors()), one)
        await at_once(book.some(_above()), one)
        await _right(book, stage)


def _admitted(stage: Stage, vector: _Knock, said: Said, own: str) -> str:
    if stage.saw(own):
        return "the provider was asked"
    path = vector.target.partition("?")[0].removeprefix("http://127.0.0.1")
    if said.let_in and not is_public(vector.method, path):
        return f"status {said.status}: {said.body[:80]!r}"
    if any(name.encode() in said.head + said.body for name in (ANN, BOB, _DIGEST[:12])):
        return f"it tells of callers: {said.body[:80]!r}"
    return ""


async def _right(book: Book, stage: Stage) -> None:
    for name, prefix in _PLACES:
        said = await asked(stage.port, "GET", "/v1/models", headers={name: prefix + _KEY})
        book.right(f"a key in {name}", said.status == 200, said)
        said = await asked(stage.port, "GET", "/v1/admin/keys", headers={name: prefix + ADMIN})
        book.right(f"the admin's in {name}", said.status == 200, said)
        said = await asked(stage.port, "GET", "/metrics", headers={name: prefix + METRICS})
        book.right(f"the metrics' in {name}", said.status == 200, said)
    said = await asked(stage.port, "GET", f"/v1beta/models?key={_KEY}")
    book.right("a key in a Gemini query", said.status == 200, said)
    for route in every_route():
        path = target(route)
        if path == "/inspector/api/live":
            continue  # with a key its answer does not end
        if is_public(*route):
            said = await asked(stage.port, route.method, path, body(route, "x"))
            book.right(f"{route.method} {path}, public", said.let_in, said)
        elif "/admin/" not in path and path != "/metrics":
            key = ADMIN if _is_admins(path) else _KEY
            said = await asked(stage.port, route.method, path, body(route, "x"), {"x-api-key": key})
            book.right(f"{route.method} {path} with a key", said.status not in (0, 401, 403, 429), said)
