"""All that can be asked of a gateway, from its own tables: what is added there is knocked at, too."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from proofs.lab.questions import CLIENTS, question, whole
from wireglot.gateway.entry.callers import take_key
from wireglot.gateway.entry.routes import GET, INSPECTOR_ROUTES, OWN, SECOND_ROOT, NoRoute, Routes
from wireglot.gateway.errors import RequestError
from wireglot.http.application import Head
from wireglot_core.dialects.registry import surfaces

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY")
_PUBLIC: Final = frozenset({"health", "ready", "stub"})
_PUBLIC_INSPECTOR: Final = frozenset({"page", "asset", "session.get", "session.end"})
"""The page itself, without data, and its question whether anyone has signed in."""
_MODEL: Final = "openai-chat/any"
_ROUTES: Final = Routes(surfaces())


class Route(NamedTuple):
    method: str
    path: str


def every_route() -> list[Route]:
    found = [Route("GET", path) for path in ("/", *GET)]
    for surface in surfaces():
        client = surface.client
        found += (Route(route.method, route.path) for route in client.routes)
        found += (Route(*endpoint.split(" ", 1)) for endpoint in client.endpoints)
        found += (Route("GET", path + more) for path in client.lists for more in ("", "/*"))
        found += (Route(method, path) for path, probe in client.probes.items() for method in probe.methods)
    found += (Route(own.method, root + own.path) for root in ("", SECOND_ROOT) for own in OWN)
    found += (Route(own.method, own.path) for own in INSPECTOR_ROUTES if not own.verb.startswith("session."))
    named = (Route(each.method, each.path.replace("{model}", "*")) for each in found)
    return list(dict.fromkeys(named))


def target(route: Route, id: str = "some-id") -> str:
    """With something in the place of names and ids."""
    return route.path.replace("*", _MODEL.replace("/", "%2F") if "/models/" in route.path else id)


def body(route: Route, said: str) -> bytes:
    """What the route would take."""
    if route.method == "GET":
        return b""
    for client in CLIENTS:
        path, asking = whole(*question(client, _MODEL, said))
        if route.path.endswith(path.partition(":")[2] or path):
            return msgspec.json.encode(asking)
    return msgspec.json.encode({"model": _MODEL, "name": said, "input": said, "messages": [], "contents": []})


def is_public(method: str, path: str) -> bool:
    """Whether the gateway declares that everybody may ask for it."""
    head = Head(method, path, path.partition("?")[0], "", {"host": "127.0.0.1"}, "127.0.0.1")
    if path.startswith(_ROUTES.key_roots):
        take_key(head, _ROUTES.key_roots)
    try:
        asked = _ROUTES.match(head)
    except (NoRoute, RequestError):
        return False
    return asked.open and (asked.operation in _PUBLIC or asked.verb in _PUBLIC_INSPECTOR)
