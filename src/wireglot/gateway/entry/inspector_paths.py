"""Paths of the inspector: its page, the files of the page, and what the page asks for."""

from __future__ import annotations

from typing import Final

from wireglot.dialects.paths import ids_in
from wireglot.gateway.entry.own_route import OwnRoute

ROOT: Final = "/inspector"
ASSETS: Final = "/inspector/assets/"
API: Final = "/inspector/api/"

INSPECTOR: Final = (
    OwnRoute("GET", "/inspector/api/session", "session.get"),
    OwnRoute("POST", "/inspector/api/session", "session.begin"),
    OwnRoute("DELETE", "/inspector/api/session", "session.end"),
    OwnRoute("GET", "/inspector/api/exchanges", "exchanges.list"),
    OwnRoute("GET", "/inspector/api/exchanges/*", "exchanges.get"),
    OwnRoute("GET", "/inspector/api/exchanges/*/export", "exchanges.export"),
    OwnRoute("GET", "/inspector/api/exchanges/*/image", "exchanges.image"),
    OwnRoute("GET", "/inspector/api/live", "live"),
    OwnRoute("GET", "/inspector/api/conversations", "conversations.list"),
    OwnRoute("GET", "/inspector/api/recording", "recording.get"),
    OwnRoute("POST", "/inspector/api/recording", "recording.set"),
    OwnRoute("POST", "/inspector/api/replay", "replay"),
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


def matched(method: str, path: str) -> tuple[str, tuple[str, ...]] | None:
    """What is asked, and the ids in it. Every path that is neither a file nor a question is a view of the one
    page."""
    if path.startswith(API):
        for route, pieces in _PIECES:
            ids = ids_in(path, pieces) if route.method == method else None
            if ids is not None:
                return route.verb, ids
        return None
    if method != "GET":
        return None
    return ("asset", (path[len(ASSETS) :],)) if path.startswith(ASSETS) else ("page", ())


def allowed(path: str) -> tuple[str, ...]:
    """The methods of a path; none where there is no such path."""
    if not path.startswith(API):
        return ("GET",)
    return tuple(route.method for route, pieces in _PIECES if ids_in(path, pieces) is not None)
