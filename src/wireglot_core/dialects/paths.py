"""The paths of all dialects as one table: which operation a path means, and which dialect's client sent a
request."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Final

import msgspec

from wireglot_core.dialects.surface import Probe, Route, RouteMatch, Surface

STAR: Final = "*"
_OPERATIONS: Final = "/operations/"
_FOUND_BY: Final = ("GET", "DELETE", "POST")
"""Methods of paths that no table lists."""
"""Gemini's long-running operations have paths below the model's; model names contain slashes too."""


class PathTaken(ValueError):
    """Two dialects claim the same path: a request there would be ambiguous."""


class Found(msgspec.Struct, frozen=True):
    surface: Surface
    match: RouteMatch


class Paths:
    """Built once from all surfaces."""

    def __init__(self, surfaces: Iterable[Surface]) -> None:
        self._exact: dict[str, dict[str, Found]] = {}
        self._patterns: list[tuple[Surface, Route, list[str]]] = []
        self._finders: list[tuple[Surface, Callable[[str, str], RouteMatch | None]]] = []
        self._owners: dict[str, Surface] = {}
        self._prefixes: list[tuple[str, Surface]] = []
        self._surfaces = tuple(surfaces)
        self._lists: tuple[str, ...] = ()
        self._probes: dict[str, Probe] = {}
        self._unserved: list[tuple[str, str, Surface]] = []
        for surface in self._surfaces:
            self._add(surface)
        self._prefixes.sort(key=lambda entry: -len(entry[0]))

    def _add(self, surface: Surface) -> None:
        client = surface.client
        for route in client.routes:
            if STAR in route.path:
                self._patterns.append((surface, route, route.path.split("/")))
                continue
            known = self._exact.setdefault(route.method, {})
            if route.path in known:
                owner = known[route.path].surface.name
                raise PathTaken(f"{route.method} {route.path} of {surface.name} is a path of {owner} already")
            stream = False if route.operation == "embed" else None
            known[route.path] = Found(surface, RouteMatch(route.operation, stream=stream, verb=route.verb))
            self._owners.setdefault(route.path, surface)
        if client.find is not None:
            self._finders.append((surface, client.find))
        self._lists = tuple(dict.fromkeys((*self._lists, *client.lists)))
        self._prefixes += ((prefix, surface) for prefix in client.prefixes)
        for path, probe in client.probes.items():
            self._probes.setdefault(path, probe)
        self._unserved += ((end, what, surface) for end, what in client.unserved.items())

    def find(self, method: str, path: str) -> Found | None:
        """The operation of a path. Lists of models are separate (see `listed`): dialects share their
        paths."""
        exact = self._exact.get(method)
        found = exact.get(path) if exact is not None else None
        if found is not None:
            return found
        for surface, find in self._finders:
            match = find(method, path)
            if match is not None:
                return Found(surface, match)
        return self._by_pattern(method, path)

    def listed(self, path: str) -> RouteMatch | None:
        """A list of models, or one of them. The caller's headers determine the dialect of the answer."""
        for root in self._lists:
            if path == root:
                return RouteMatch("models")
            if path.startswith(root + "/") and _OPERATIONS not in path:
                return RouteMatch("model", path[len(root) + 1 :])
        return None

    @property
    def roots(self) -> tuple[str, ...]:
        """The part before the last segment of each path that lists models: where clients' base URLs may
        end."""
        return tuple(dict.fromkeys(path.rpartition("/")[0] for path in self._lists))

    def probe(self, method: str, path: str) -> Probe | None:
        found = self._probes.get(path)
        return found if found is not None and method in found.methods else None

    def unserved(self, path: str) -> str:
        """The purpose of a path that SDKs know and no dialect serves; "" for any other path."""
        return next((what for end, what, _ in self._unserved if path.endswith(end)), "")

    def methods(self, path: str) -> tuple[str, ...]:
        """The methods for which the path is known, except lists of models. The paths of routes contain no
        ids."""
        found = [method for method, known in self._exact.items() if path in known]
        if not found:
            found = [route.method for _, route, pieces in self._patterns if ids_in(path, pieces) is not None]
        for method in _FOUND_BY:
            if any(find(method, path) is not None for _, find in self._finders):
                found.append(method)
        return tuple(dict.fromkeys(found))

    def speaker(self, path: str, headers: Container[str], query: Callable[[str], str]) -> Surface | None:
        """The dialect whose errors the caller can read; None if it is unknown. `query` returns the value of a
        query parameter, "" if it is missing."""
        owner = self._owners.get(path)
        if owner is not None:
            return owner
        for surface, find in self._finders:
            if any(find(method, path) is not None for method in _FOUND_BY):
                return surface
        for surface in self._surfaces:
            if any(name in headers for name in surface.client.headers):
                return surface
        for prefix, surface in self._prefixes:
            if path.startswith(prefix):
                return surface
        for end, _, surface in self._unserved:
            if path.endswith(end):
                return surface
        for surface in self._surfaces:
            if any(name in headers for name in surface.client.vendor_headers):
                return surface
        for surface in self._surfaces:
            if surface.client.key_query and query(surface.client.key_query):
                return surface
        return None

    def _by_pattern(self, method: str, path: str) -> Found | None:
        for surface, route, pieces in self._patterns:
            ids = ids_in(path, pieces) if route.method == method else None
            if ids is not None:
                return Found(surface, RouteMatch(route.operation, verb=route.verb, ids=ids))
        return None


def ids_in(path: str, pattern: list[str]) -> tuple[str, ...] | None:
    """The segments of a path at the stars of a pattern, which is split at its slashes; None if they do not
    match."""
    given = path.split("/")
    if len(given) != len(pattern):
        return None
    ids = []
    for piece, expected in zip(given, pattern, strict=True):
        if expected == STAR and piece:
            ids.append(piece)
        elif piece != expected:
            return None
    return tuple(ids)
