"""A small server with the demo model behind it that breaks one rule, and keeps all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from wireglot.demo.service import refused, serve, target_of
from wireglot.probe.run import WIRES
from wireglot.testing.scripted_upstream import Behaviour
from wireglot.testing.scripted_upstream.behaviour import Recorded
from wireglot_core.dialects.faults import kind_of_status
from wireglot_core.ir.errors import ApiError
from wireglot_core.wire.json import BadJson, decode, encode

KEY: Final = "the-key-of-the-double-0123456789"
MODEL: Final = "demo"


@dataclass(frozen=True)
class Served:
    """An answer on its way out, and the request that it is for."""

    status: int
    headers: dict[str, str]
    body: bytes
    asked: bytes
    path: str
    dialect: str

    @property
    def streams(self) -> bool:
        return self.headers.get("content-type", "").startswith(WIRES[self.dialect].stream_type)

    @property
    def _between(self) -> str:
        return "\n" if self.dialect == "ollama" else "\n\n"

    @property
    def frames(self) -> list[str]:
        return [frame for frame in self.body.decode().split(self._between) if frame]

    def with_frames(self, frames: list[str]) -> Served:
        return replace(self, body="".join(frame + self._between for frame in frames).encode())

    def error(self, status: int, message: str = "The double was asked to refuse this.") -> Served:
        made = refused(self.dialect, ApiError(kind_of_status(status), message, status))
        return replace(self, status=status, headers=dict(made.headers), body=made.body)


Change = Callable[[Served], Served]


@dataclass(frozen=True)
class Breakage:
    """`request`: what the model is given instead of what was asked. `answer`: what is sent instead of its
    answer. Both see everything; they leave alone what is not theirs to break."""

    request: Callable[[bytes], bytes] = bytes
    answer: Change = lambda served: served


PREVIOUS: Final = {
    "openai-responses": "previous_response_id",
    "gemini-interactions": "previous_interaction_id",
}


class Shelf:
    """The answers that a server keeps, with what each was asked."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kept: dict[str, tuple[dict[str, Any], list[Any]]] = {}
        self._count = 0

    def page(self, request: Recorded, empty: Served) -> Served | None:
        """The answer to a request about one of them."""
        _, mark, rest = request.path.partition(f"/{self._name.rpartition('-')[2]}/")
        id, _, verb = rest.partition("/")
        if self._name not in PREVIOUS or not mark or (request.method == "POST" and verb != "cancel"):
            return None
        if id not in self._kept:
            return empty.error(404, f"There is no answer {id}.")
        body, _ = self._kept[id]
        if request.method == "DELETE":
            del self._kept[id]
            body = {"id": id, "deleted": True}
        return replace(empty, headers={"content-type": "application/json"}, body=encode(body))

    def with_past(self, request: Recorded, empty: Served) -> Recorded | Served:
        """The request with the turns that it goes on from."""
        try:
            body = decode(request.body) if self._name in PREVIOUS and request.body else {}
        except BadJson:
            return request
        previous = body.get(PREVIOUS[self._name]) if isinstance(body, dict) and body else None
        if previous is None:
            return request
        if previous not in self._kept:
            return empty.error(404, f"There is no answer {previous}.")
        whole = {**body, "input": [*self._kept[previous][1], *body["input"]]}
        return msgspec.structs.replace(request, body=encode(whole))

    def keep(self, request: Recorded, served: Served) -> Served:
        body = (
            decode(request.body) if served.status == 200 and self._name in PREVIOUS and request.body else {}
        )
        if body.get("store") is not True or served.streams:
            return served
        self._count += 1
        id = f"kept_{self._count}"
        answer = decode(served.body) | {"id": id}
        self._kept[id] = answer, body["input"]
        return replace(served, body=encode(answer))


def server(name: str, breakage: Breakage) -> Callable[[Recorded], Behaviour]:
    """What decides for a ScriptedUpstream."""
    shelf = Shelf(name)

    def decide(request: Recorded) -> Behaviour:
        good = _good(name, request, breakage, shelf)
        made = breakage.answer(good)
        return Behaviour(status=made.status, headers=tuple(made.headers.items()), body=made.body)

    return decide


def _good(name: str, request: Recorded, breakage: Breakage, shelf: Shelf) -> Served:
    target = target_of(request.path, request.query, request.headers)
    empty = Served(200, {}, b"", request.body, request.path, name)
    if KEY not in " ".join(request.headers.values()):
        status = 400 if name == "gemini" else 401
        made = refused(name, ApiError("auth", "That is not a key of the double.", status))
        return replace(empty, status=status, headers=dict(made.headers), body=made.body)
    if (page := shelf.page(request, empty)) is not None:
        return page
    if target is None or (target.operation != "models" and request.method != "POST"):
        return empty.error(404, f"There is nothing at {request.path}.")
    if _model(request) not in ("", MODEL):
        return empty.error(404, f"There is no model {_model(request)}.")
    changed = msgspec.structs.replace(request, body=breakage.request(request.body))
    whole = shelf.with_past(changed, empty)
    if isinstance(whole, Served):
        return whole
    made = serve(target, whole.body)
    served = replace(empty, status=made.status, headers=dict(made.headers), body=made.body)
    return shelf.keep(changed, served)


def _model(request: Recorded) -> str:
    """That the path or the body names."""
    if "/models/" in request.path:
        return request.path.partition("/models/")[2].partition(":")[0]
    try:
        document = decode(request.body) if request.body else {}
    except BadJson:
        return ""
    return str(document.get("model", "")) if isinstance(document, dict) else ""
