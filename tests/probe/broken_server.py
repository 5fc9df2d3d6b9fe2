"""A small server with the demo model behind it that breaks one rule, and keeps all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from wireglot.demo.service import refused, serve, target_of
from wireglot.dialects.faults import kind_of_status
from wireglot.ir.errors import ApiError
from wireglot.probe.run import WIRES
from wireglot.testing.scripted_upstream import Behaviour
from wireglot.testing.scripted_upstream.behaviour import Recorded
from wireglot.wire.json import BadJson, decode

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


def server(name: str, breakage: Breakage) -> Callable[[Recorded], Behaviour]:
    """What decides for a ScriptedUpstream."""

    def decide(request: Recorded) -> Behaviour:
        good = _good(name, request, breakage)
        made = breakage.answer(good)
        return Behaviour(status=made.status, headers=tuple(made.headers.items()), body=made.body)

    return decide


def _good(name: str, request: Recorded, breakage: Breakage) -> Served:
    target = target_of(request.path, request.query, request.headers)
    empty = Served(200, {}, b"", request.body, request.path, name)
    if KEY not in " ".join(request.headers.values()):
        status = 400 if name == "gemini" else 401
        made = refused(name, ApiError("auth", "That is not a key of the double.", status))
        return replace(empty, status=status, headers=dict(made.headers), body=made.body)
    if target is None or (target.operation != "models" and request.method != "POST"):
        return empty.error(404, f"There is nothing at {request.path}.")
    if _model(request) not in ("", MODEL):
        return empty.error(404, f"There is no model {_model(request)}.")
    served = serve(target, breakage.request(request.body))
    return replace(empty, status=served.status, headers=dict(served.headers), body=served.body)


def _model(request: Recorded) -> str:
    """That the path or the body names."""
    if "/models/" in request.path:
        return request.path.partition("/models/")[2].partition(":")[0]
    try:
        document = decode(request.body) if request.body else {}
    except BadJson:
        return ""
    return str(document.get("model", "")) if isinstance(document, dict) else ""
