"""Paths of the inspector: its page, the files of the page, and what the page asks for."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from wireglot.dialects.paths import ids_in
from wireglot.dialects.registry import COMMON
from wireglot.gateway.entry.routes import Asked, NoRoute, OwnRoute
from wireglot.http.application import Head

ROOT: Final = "/inspector"
ASSETS: Final = "/inspector/assets/"
API: Final = "/inspector/api/"

INSPECTOR: Final = (
    OwnRoute("GET", "/inspector/api/session", "session.get"),
    OwnRoute("POST", "/inspector/api/session", "session.begin"),
    OwnRoute("DELETE", "/inspector/api/session", "session.end"),
    OwnRoute("POST", "/inspector/api/translate", "translate"),
    OwnRoute("GET", "/inspector/api/setup", "setup"),
    OwnRoute("POST", "/inspector/api/ask", "ask"),
    OwnRoute("GET", "/inspector/api/dashboard", "dashboard"),
    OwnRoute("GET", "/inspector/api/keys", "keys.list"),
    OwnRoute("POST", "/inspector/api/keys", "keys.create"),
    OwnRoute("GET", "/inspector/api/keys/*", "keys.get"),
    OwnRoute("PATCH", "/inspector/api/keys/*", "keys.update"),
    OwnRoute("DELETE", "/inspector/api/keys/*", "keys.revoke"),
    OwnRoute("POST", "/inspector/api/keys/*/rotate", "keys.rotate"),
    OwnRoute("POST", "/inspector/api/keys/*/delete", "keys.delete"),
)
_PIECES: Final = tuple((route, route.path.split("/")) for route in INSPECTOR)


def is_inspector(path: str) -> bool:
    return path.startswith(ROOT) and (len(path) == len(ROOT) or path[len(ROOT)] == "/")


def match_inspector(head: Head) -> Asked:
    """Every path that is neither a file nor a question is a view of the one page."""
    method, path = "GET" if head.method == "HEAD" else head.method, head.path
    if path.startswith(API):
        found = [(route, ids) for route, pieces in _PIECES if (ids := ids_in(path, pieces)) is not None]
        for route, ids in found:
            if route.method == method:
                return _asked(route.verb, tuple(unquote(each) for each in ids))
        raise NoRoute(COMMON, tuple(route.method for route, _ in found))
    if method != "GET":
        raise NoRoute(COMMON, ("GET",))
    if path.startswith(ASSETS):
        return _asked("asset", (path[len(ASSETS) :],))
    return _asked("page")


def _asked(verb: str, ids: tuple[str, ...] = ()) -> Asked:
    return Asked(COMMON, "inspector", verb=verb, ids=ids, open=True)
