"""Every path that the gateway answers, from the tables it finds them in itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from wireglot.gateway.entry import routes
from wireglot.gateway.entry.routes import INSPECTOR_ASSETS, INSPECTOR_ROOT, INSPECTOR_ROUTES, LOGIN_ROUTES
from wireglot_core.dialects.gemini import assist
from wireglot_core.dialects.gemini import surface as gemini
from wireglot_core.dialects.gemini_interactions import surface as interactions
from wireglot_core.dialects.google_shared import EMBED_VERBS
from wireglot_core.dialects.registry import surfaces
from wireglot_core.dialects.surface import Surface

_IDS: Final = {
    "responses": "response_id",
    "interactions": "interaction_id",
    "conversations": "conversation_id",
    "items": "item_id",
    "sessions": "session_id",
    "requests": "request_id",
    "keys": "name",
    "providers": "name",
    "callers": "name",
    "exchanges": "request_id",
    "enter": "ticket",
}
"""What an id is called, by the piece of the path before it."""

VERSIONS: Final = tuple(version.strip("/") for version in gemini._VERSIONS)
USUAL_VERSION: Final = "v1beta"
_PROJECT: Final = "projects/{project}/locations/{location}/"
_VERTEX: Final = f"{_PROJECT}publishers/{{publisher}}/"


class Served(msgspec.Struct, frozen=True):
    """One method of one path. `dialect` is that of the clients that ask there; "": the gateway's own page."""

    method: str
    path: str
    dialect: str
    operation: str
    verb: str = ""
    roots: tuple[str, ...] = ("",)
    """Beginnings under which the same is answered."""
    versions: tuple[str, ...] = ()
    """What `{version}` stands for."""
    dialects: tuple[str, ...] = ()
    """In whose shapes it is reported, where the caller decides."""

    def full_paths(self) -> list[str]:
        """Without roots and versions to choose from."""
        paths = [self.path.replace("{version}", version) for version in self.versions or ("",)]
        return [root + path for root in self.roots for path in paths]


def served() -> list[Served]:
    """In the order of a reader: each dialect's, then lists of models, then the gateway's own."""
    found = [*_of_dialects(), *_lists(), *_own()]
    return _with_roots(found)


def _of_dialects() -> Iterator[Served]:
    for surface in surfaces():
        for route in surface.client.routes:
            yield Served(route.method, named(route.path), surface.name, route.operation, route.verb)
        yield from _found_by_rule(surface)
        for path, probe in surface.client.probes.items():
            for method in probe.methods:
                yield Served(method, path, surface.name, "stub", path)


def _found_by_rule(surface: Surface) -> Iterator[Served]:
    """Paths that no table lists: a verb behind a colon. What finds them is asked for them in a test."""
    if surface.name == "gemini":
        others = tuple(version for version in VERSIONS if version != USUAL_VERSION)
        embeds = dict.fromkeys(EMBED_VERBS, "embed")
        for verb, operation in ({verb: each for verb, (each, _) in gemini.VERBS.items()} | embeds).items():
            plain = f"models/{{model}}:{verb}"
            yield Served("POST", f"/{USUAL_VERSION}/{plain}", surface.name, operation, verb)
            yield Served("POST", f"/{{version}}/{plain}", surface.name, operation, verb, versions=others)
            long = f"/{{version}}/{_VERTEX}{plain}"
            yield Served("POST", long, surface.name, operation, verb, versions=VERSIONS)
    if surface.name == "gemini-interactions":
        for route in interactions._PATHS:
            long = f"/{{version}}/{_PROJECT}{named(route.path).lstrip('/')}"
            verb, versions = route.verb, interactions.VERTEX_VERSIONS
            yield Served(route.method, long, surface.name, route.operation, verb, versions=versions)
    if surface.client.cloud is not None and surface.client.find is not None:
        for endpoint in surface.client.endpoints:
            method, path = endpoint.split()
            found = surface.client.find(method, path)
            assert found is not None, endpoint
            yield Served(method, path, surface.name, found.operation, found.verb)
    if surface.assist is not None and surface.client.find is not None:
        for verb, (operation, _) in gemini.VERBS.items():
            yield Served("POST", f"/v1internal:{verb}", surface.name, operation, verb)
        for verb in sorted(assist.VERBS):
            yield Served("POST", f"/v1internal:{verb}", surface.name, "assist", verb)
        for verb in sorted(assist.GET_VERBS):
            yield Served("GET", f"/v1internal:{verb}", surface.name, "assist", verb)
        yield Served("GET", f"/v1internal/{assist.OPERATION}", surface.name, "operation", assist.OPERATION)


def _lists() -> Iterator[Served]:
    """Lists of models: dialects share their paths, and the caller's headers tell in whose shape."""
    telling: dict[str, list[str]] = {}
    for surface in surfaces():
        for path in surface.client.lists:
            telling.setdefault(path, []).append(surface.name)
    for path, names in telling.items():
        for tail, operation in (("", "models"), ("/{model}", "model")):
            yield Served("GET", path + tail, "", operation, dialects=tuple(names))


def _own() -> Iterator[Served]:
    for own in routes.OWN:
        operation = "admin" if own.is_admin else "state"
        for root in ("", routes.SECOND_ROOT):
            yield Served(own.method, root + named(own.path), "", operation, own.verb)
    for path, asked in routes.GET.items():
        yield Served("GET", path, "", asked.operation, path)
    yield Served("GET", INSPECTOR_ROOT, "", "inspector", "page")
    yield Served("GET", f"{INSPECTOR_ASSETS}{{file}}", "", "inspector", "asset")
    for own in INSPECTOR_ROUTES:
        yield Served(own.method, named(own.path), "", "inspector", own.verb)
    for own in LOGIN_ROUTES:
        yield Served(own.method, own.path, "", "login", own.verb)
    for method in ("GET", "HEAD"):
        yield Served(method, "/", "", "stub", "/")


def _with_roots(found: list[Served]) -> list[Served]:
    """Paths that only begin otherwise are one, with several roots."""
    known = {(one.method, one.path): one for one in found}
    roots: dict[tuple[str, str], list[str]] = {}
    for method, path in known:
        for root in ("/openai", "/anthropic"):
            rest = path.removeprefix(root)
            if rest != path and (method, rest) in known:
                roots.setdefault((method, rest), [""]).append(root)
                break
        else:
            roots.setdefault((method, path), [""])
    return [msgspec.structs.replace(known[name], roots=tuple(said)) for name, said in roots.items()]


def named(path: str) -> str:
    """`/v1/responses/*` -> `/v1/responses/{response_id}`."""
    pieces = path.split("/")
    return "/".join(
        f"{{{_IDS[pieces[place - 1]]}}}" if piece == "*" else piece for place, piece in enumerate(pieces)
    )
