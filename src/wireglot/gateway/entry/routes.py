"""Paths -> operations and dialects: the dialects' own paths, and the gateway's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal
from urllib.parse import parse_qs, unquote

import msgspec

from wireglot import __version__
from wireglot.gateway.errors import RequestError
from wireglot.http.application import Head
from wireglot_core.dialects.paths import Paths, ids_in
from wireglot_core.dialects.registry import COMMON
from wireglot_core.dialects.surface import Operation as DialectOperation
from wireglot_core.dialects.surface import Probe, RouteMatch, Surface


class OwnRoute(msgspec.Struct, frozen=True):
    """A page of the gateway itself; `*` matches an id. Errors of admin pages are reported in the common
    dialect, those of the others in the caller's."""

    method: str
    path: str
    verb: str

    @property
    def is_admin(self) -> bool:
        return self.path.startswith(ADMIN_ROOT)


ADMIN_ROOT: Final = "/v1/admin/"


def root_page(surfaces: Sequence[Surface]) -> Probe:
    """The page at "/": people open it in a browser, and Claude Code sends HEAD before its first request
    (llm-gateway-protocol)."""
    endpoints = {surface.name: list(surface.client.endpoints) for surface in surfaces}
    return Probe(
        ("GET", "HEAD"),
        {
            "name": "wireglot",
            "version": __version__,
            "help": "point a client at this address: `wireglot run CLIENT` does, see docs/clients.md",
            "endpoints": {
                **endpoints,
                "models": ["GET /v1/models", "GET /v1beta/models"],
                "operations": ["GET /healthz", "GET /readyz", "GET /metrics"],
            },
        },
    )


INSPECTOR_ROOT: Final = "/inspector"
INSPECTOR_ASSETS: Final = "/inspector/assets/"
INSPECTOR_API: Final = "/inspector/api/"
INSPECTOR_ENTER: Final = "/inspector/enter/"
_INSPECTOR_QUESTIONS: Final = (INSPECTOR_API, INSPECTOR_ENTER)

INSPECTOR_ROUTES: Final = (
    OwnRoute("GET", "/inspector/api/session", "session.get"),
    OwnRoute("POST", "/inspector/api/session", "session.begin"),
    OwnRoute("DELETE", "/inspector/api/session", "session.end"),
    OwnRoute("GET", "/inspector/enter/*", "session.enter"),
    OwnRoute("GET", "/inspector/api/exchanges", "exchanges.list"),
    OwnRoute("GET", "/inspector/api/exchanges/*", "exchanges.get"),
    OwnRoute("GET", "/inspector/api/exchanges/*/cache", "exchanges.cache"),
    OwnRoute("GET", "/inspector/api/exchanges/*/running", "exchanges.running"),
    OwnRoute("GET", "/inspector/api/exchanges/*/export", "exchanges.export"),
    OwnRoute("GET", "/inspector/api/exchanges/*/image", "exchanges.image"),
    OwnRoute("GET", "/inspector/api/fields", "exchanges.fields"),
    OwnRoute("GET", "/inspector/api/export", "exchanges.export_all"),
    OwnRoute("GET", "/inspector/api/losses", "exchanges.losses"),
    OwnRoute("GET", "/inspector/api/live", "live"),
    OwnRoute("GET", "/inspector/api/conversations", "conversations.list"),
    OwnRoute("GET", "/inspector/api/recording", "recording.get"),
    OwnRoute("POST", "/inspector/api/recording", "recording.set"),
    OwnRoute("POST", "/inspector/api/replay", "replay"),
    OwnRoute("POST", "/inspector/api/translate", "translate"),
    OwnRoute("GET", "/inspector/api/targets", "targets"),
    OwnRoute("GET", "/inspector/api/setup", "setup"),
    OwnRoute("GET", "/inspector/api/config", "config.get"),
    OwnRoute("PUT", "/inspector/api/config", "config.write"),
    OwnRoute("POST", "/inspector/api/config/check", "config.check"),
    OwnRoute("POST", "/inspector/api/providers/*/try", "providers.try"),
    OwnRoute("PUT", "/inspector/api/providers/*/key", "providers.keep"),
    OwnRoute("DELETE", "/inspector/api/providers/*/key", "providers.forget"),
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
_INSPECTOR_PIECES: Final = tuple((route, route.path.split("/")) for route in INSPECTOR_ROUTES)


LOGIN_ROUTES: Final = (
    OwnRoute("GET", "/.well-known/oauth-authorization-server", "login.metadata"),
    OwnRoute("POST", "/oauth/device_authorization", "login.device_authorization"),
    OwnRoute("POST", "/oauth/token", "login.token"),
    OwnRoute("POST", "/oauth/revoke", "login.revoke"),
    OwnRoute("GET", "/device", "login.device"),
    OwnRoute("POST", "/device", "login.decide"),
    OwnRoute("GET", "/device/page.css", "login.style"),
    OwnRoute("GET", "/device/sign-in", "login.sign_in"),
    OwnRoute("GET", "/device/callback", "login.callback"),
    OwnRoute("GET", "/login", "login.inspector"),
)
LOGIN_PATHS: Final = frozenset(route.path for route in LOGIN_ROUTES)
"""The paths for signing in, which may be off: then they do not exist."""


def is_inspector(path: str) -> bool:
    return path.startswith(INSPECTOR_ROOT) and (
        len(path) == len(INSPECTOR_ROOT) or path[len(INSPECTOR_ROOT)] == "/"
    )


def inspector_route(method: str, path: str) -> tuple[str, tuple[str, ...]] | None:
    """The inspector's operation at a path, and the ids in it. A path that is neither a file nor an API call
    is a view of the single page."""
    if path.startswith(_INSPECTOR_QUESTIONS):
        for route, pieces in _INSPECTOR_PIECES:
            ids = ids_in(path, pieces) if route.method == method else None
            if ids is not None:
                return route.verb, ids
        return None
    if method != "GET":
        return None
    return ("asset", (path[len(INSPECTOR_ASSETS) :],)) if path.startswith(INSPECTOR_ASSETS) else ("page", ())


def inspector_methods(path: str) -> tuple[str, ...]:
    """The methods of a path; none if it does not exist."""
    if not path.startswith(_INSPECTOR_QUESTIONS):
        return ("GET",)
    return tuple(route.method for route, pieces in _INSPECTOR_PIECES if ids_in(path, pieces) is not None)


Operation = (
    DialectOperation
    | Literal["admin", "health", "ready", "metrics", "stub", "inspector", "login", "websocket"]
)


class Asked(msgspec.Struct, frozen=True):
    """The operation that a request asks for. `model` and `stream` are set if the path contains them; `verb`
    is the rest of a longer path."""

    dialect: str
    operation: Operation
    model: str = ""
    stream: bool | None = None
    verb: str = ""
    open: bool = False
    """Whether it is answered without a client key."""
    ids: tuple[str, ...] = ()
    """Ids of stored objects in the path."""


class NoRoute(Exception):
    """`allowed`: the methods of a path that exists for others. `hint`: what is wrong with the client's base
    URL, if that is recognized."""

    def __init__(self, dialect: str, allowed: tuple[str, ...] = (), hint: str = "") -> None:
        super().__init__(dialect)
        self.dialect = dialect
        self.allowed = allowed
        self.hint = hint


GET: Final[dict[str, Asked]] = {
    "/healthz": Asked(COMMON, "health", open=True),
    "/health": Asked(COMMON, "health", open=True),
    "/readyz": Asked(COMMON, "ready", open=True),
    "/metrics": Asked(COMMON, "metrics"),
}


OWN: Final = (
    OwnRoute("GET", "/v1/sessions", "sessions.list"),
    OwnRoute("GET", "/v1/sessions/*", "sessions.get"),
    OwnRoute("DELETE", "/v1/sessions/*", "sessions.delete"),
    OwnRoute("GET", "/v1/usage", "usage"),
    OwnRoute("GET", "/v1/requests/*/losses", "losses.get"),
    OwnRoute("GET", "/v1/admin/keys", "keys.list"),
    OwnRoute("POST", "/v1/admin/keys", "keys.create"),
    OwnRoute("GET", "/v1/admin/keys/*", "keys.get"),
    OwnRoute("PATCH", "/v1/admin/keys/*", "keys.update"),
    OwnRoute("DELETE", "/v1/admin/keys/*", "keys.revoke"),
    OwnRoute("POST", "/v1/admin/keys/*/rotate", "keys.rotate"),
    OwnRoute("POST", "/v1/admin/keys/*/delete", "keys.delete"),
    OwnRoute("GET", "/v1/admin/usage", "usage"),
    OwnRoute("GET", "/v1/admin/store", "store.stats"),
    OwnRoute("DELETE", "/v1/admin/callers/*/data", "callers.wipe"),
)
_OWN_PIECES: Final = tuple((route, route.path.split("/")) for route in OWN)
SECOND_ROOT: Final = "/openai"
"""Clients whose base URL ends with this reach the gateway's own pages too."""

# Paths whose operation is cached.
_MAX_FIXED: Final = 256
# Pieces of a path that may be tried as a client's base URL.
_MAX_PIECES: Final = 8
_PATHS_ARE_LISTED: Final = "GET / lists the endpoints"
_ENCODED_SLASH: Final = re.compile("%2[Ff]")
"""SDKs write it where a model's name or a session's name has a slash; it is not needed elsewhere."""


class Routes:
    """Maps paths to operations. Built once, from the surfaces of all registered dialects. Raises
    PathTaken."""

    def __init__(self, surfaces: Sequence[Surface]) -> None:
        self._paths = Paths(surfaces)
        self._root = root_page(surfaces)
        self._websockets = {
            path: surface.name
            for surface in surfaces
            if surface.websockets is not None
            for path in surface.websockets.paths
        }
        self._roots = self._paths.roots
        self.key_roots = tuple(filter(None, {surface.client.key_root: None for surface in surfaces}))
        """Beginnings of paths that may be followed by a key."""
        names = "|".join(re.escape(root.strip("/")) for root in self.key_roots)
        self._lost_key = re.compile(rf"((?:/|%2f)(?:{names})(?:/|%2f)+)(?:(?!%2f)[^/])+", re.IGNORECASE)
        """Matches a key after such a beginning, in a path that does not exist."""
        self._fixed: dict[tuple[str, str], Asked] = {}
        """Paths without a name or id: there are few of them, and most requests use one."""

    def match(self, head: Head) -> Asked:
        path = head.path
        fixed = self._fixed.get((head.method, path))
        if fixed is not None:
            return fixed
        if _ENCODED_SLASH.search(path) and not self._may_hold_a_slash(path):
            self._hide_keys(head)
            raise RequestError("bad", "the path holds an encoded slash", code="invalid_target")
        method = "GET" if head.method == "HEAD" else head.method
        if is_inspector(path):
            return _of_inspector(method, path)
        if path in LOGIN_PATHS:
            return _of_login(method, path)
        if method == "GET":
            asked = GET.get(path) or self._listed(head)
            if asked is not None:
                return asked
        found = self._paths.find(method, path)
        if found is not None:
            asked = _asked(found.surface.name, found.match)
            if len(self._fixed) < _MAX_FIXED and not asked.model and not asked.ids and not asked.verb:
                self._fixed[head.method, path] = asked
            return asked
        asked = self._own(head, method)
        if asked is not None:
            return asked
        if method == "GET" and path in self._websockets and "upgrade" in head.headers:
            return Asked(self._websockets[path], "websocket")
        if self.probe(head.method, path) is not None:
            return Asked(COMMON, "stub", open=True)
        raise self._lost(head)

    def dialect_of(self, head: Head, meant: str = "") -> str:
        """The dialect of an error that the caller can read, if the path does not name one. `meant`: the path
        that it would have used with the right base URL."""
        if head.path.removeprefix(SECOND_ROOT).startswith(ADMIN_ROOT):
            return COMMON  # the dialect of its answers: there `key` in the query is a filter
        query = head.query
        speaker = self._paths.speaker(meant or head.path, head.headers, lambda name: query_value(query, name))
        if speaker is None and meant and (found := self._paths.find(head.method, meant)) is not None:
            speaker = found.surface
        return speaker.name if speaker is not None else COMMON

    def probe(self, method: str, path: str) -> Probe | None:
        """The response to paths that clients merely probe, apart from INSPECTOR_API."""
        if path == "/":
            return self._root if method in self._root.methods else None
        return self._paths.probe(method, path)

    def nowhere(self, head: Head, problem: NoRoute) -> RequestError:
        what = self._paths.unserved(head.path)
        if what:
            where = f"{head.method} {head.path}"
            text = f"{what} are not served by this gateway: call the provider directly ({where})"
            return RequestError("not_found", text, code="not_served")
        if problem.allowed:
            allowed = ", ".join(problem.allowed)
            fault = RequestError("bad", f"{head.path} supports {allowed}", code="method_not_allowed")
            return fault.with_status(405)
        text = f"there is no endpoint {head.method} {head.path}: {problem.hint or _PATHS_ARE_LISTED}"
        return RequestError("not_found", text, code="unknown_url")

    def check_behind_key(self, head: Head) -> None:
        """A key in a path authorizes requests of clients. Pages and the admin API have their own sign-in."""
        path = head.path.removeprefix(SECOND_ROOT)
        if is_inspector(path) or path in LOGIN_PATHS or path == "/metrics" or path.startswith(ADMIN_ROOT):
            raise NoRoute(COMMON, hint="it is not available with a key in the path")

    def _hide_keys(self, head: Head) -> None:
        if self.key_roots:
            head.path = self._lost_key.sub(r"\1KEY", head.path)
            head.target = f"{head.path}?{head.query}" if head.query else head.path

    def _lost(self, head: Head) -> NoRoute:
        self._hide_keys(head)
        allowed = self._allowed(head.path)
        meant, hint = ("", "") if allowed else self._meant(head.path)
        return NoRoute(self.dialect_of(head, meant), allowed, hint)

    def _meant(self, path: str) -> tuple[str, str]:
        """The path that a client would have used with the right base URL, and what is wrong with its base
        URL; both empty if that is unknown. Most clients add their own path, with or without /v1."""
        if path.endswith("/") and self._allowed(served := path.rstrip("/")):
            return served, f"{served} is served, without the slash at its end"
        pieces = path.split("/")
        for cut in range(2, min(len(pieces), _MAX_PIECES)):
            served = "/".join(("", *pieces[cut:]))
            if self._allowed(served):
                extra = "/".join(pieces[:cut])
                return served, f"{served} is served; remove {extra} from the end of the client's base URL"
        for cut in range(2, min(len(pieces), _MAX_PIECES)):
            served, rest = "/".join(pieces[:cut]), "/".join(("", *pieces[cut:]))
            if served.endswith(rest) and self._allowed(served):  # an endpoint as the base URL
                return served, f"{served} is served; remove {rest} from the end of the client's base URL"
        for root in self._roots:
            if self._allowed(served := root + path):
                return served, f"{served} is served; add {root} to the end of the client's base URL"
        return "", ""

    def _may_hold_a_slash(self, path: str) -> bool:
        """Whether a path contains the name of a model or of a client's own session."""
        return (
            "/models/" in path
            or ((own := self._paths.find("POST", path)) is not None and bool(own.match.model))
            or path.startswith("/v1/sessions/")
            or ((found := self._paths.listed(path)) is not None and found.operation == "model")
        )

    def _listed(self, head: Head) -> Asked | None:
        found = self._paths.listed(head.path)
        return None if found is None else _asked(self.dialect_of(head), found)

    def _own(self, head: Head, method: str) -> Asked | None:
        path = head.path.removeprefix(SECOND_ROOT)
        for route, pieces in _OWN_PIECES:
            ids = ids_in(path, pieces) if route.method == method else None
            if ids is not None:
                ids = tuple(unquote(each) for each in ids)
                if route.is_admin:
                    return Asked(COMMON, "admin", verb=route.verb, ids=ids, open=True)
                return Asked(self.dialect_of(head), "state", verb=route.verb, ids=ids)
        return None

    def _allowed(self, path: str) -> tuple[str, ...]:
        own = path.removeprefix(SECOND_ROOT)
        known = [route.method for route, pieces in _OWN_PIECES if ids_in(own, pieces) is not None]
        known += self._paths.methods(path)
        if known:
            return tuple(dict.fromkeys(known))
        # A colon begins a verb, and the known verbs have been handled before.
        listed = ":" not in path and self._paths.listed(path) is not None
        return ("GET",) if path in GET or listed else ()


def _of_inspector(method: str, path: str) -> Asked:
    found = inspector_route(method, path)
    if found is None:
        raise NoRoute(COMMON, inspector_methods(path))
    verb, ids = found
    return Asked(COMMON, "inspector", verb=verb, open=True, ids=tuple(map(unquote, ids)))


def _of_login(method: str, path: str) -> Asked:
    routes = {route.method: route for route in LOGIN_ROUTES if route.path == path}
    if method not in routes:
        raise NoRoute(COMMON, tuple(routes))
    return Asked(COMMON, "login", verb=routes[method].verb, open=True)


def _asked(dialect: str, found: RouteMatch) -> Asked:
    model, ids = found.model, found.ids
    return Asked(
        dialect,
        found.operation,
        unquote(model) if "%" in model else model,
        found.stream,
        found.verb,
        ids=tuple(unquote(each) for each in ids) if ids else ids,
    )


def query_value(query: str, name: str) -> str:
    if not query:
        return ""
    return parse_qs(query, keep_blank_values=True).get(name, [""])[0]
