"""The scripted upstream's reaction to a request, good or bad, and its record of it."""

from __future__ import annotations

import gzip
import threading
import time
from typing import Any, Final, Literal, get_args

import msgspec

from wireglot.demo.script import Ending
from wireglot.demo.service import DemoTarget, Served, pieces_of, refused, serve, target_of
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.faults import kind_of_status
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.stream import Failure
from wireglot_core.wire.json import decode, encode

Fault = Literal[
    "",
    # before the head of an answer
    "close",
    "reset",
    "stall",
    "garbage",
    "interim-flood",
    "huge-headers",
    # another answer than the one expected
    "redirect",
    "html",
    "empty",
    "wrong-type",
    "truncated-json",
    "json-for-stream",
    "gzip",
    # at the level of bytes
    "byte-chunks",
    "unframed",
    "short-body",
    # in the middle, after `after` pieces (none given: half way)
    "close-midstream",
    "reset-midstream",
    "stall-midstream",
    "no-terminal",
    "half-event",
    "bad-json",
    "error-first",
    "error-midstream",
    "endless-line",
]
"""
close, reset: the connection ends with FIN or RST before a byte of the answer, after the request was read.
stall: no byte until the peer leaves. garbage: no HTTP. interim-flood: `size` times `100 Continue`.
huge-headers: a header of `size` bytes. redirect: 307 to `location`. html: 200 with a page.
empty: 200 without body. wrong-type: the answer under `text/plain`. truncated-json: half the document, framed
as if it were whole. json-for-stream: the whole document although a stream was asked for. gzip: the answer
compressed, unasked. byte-chunks: each byte in a chunk and a write of its own. unframed: no length, the close
ends it. short-body: fewer bytes than the length says. no-terminal: the stream ends properly, but for its last
event. half-event: it ends inside an event. bad-json: one event is no JSON. error-first, error-midstream: the
dialect's own error event. endless-line: `size` bytes of an event that never ends.
"""

FAULTS: tuple[Fault, ...] = get_args(Fault)

_ENDLESS = 40 * 1024 * 1024
_USUAL_SIZES: dict[Fault, int] = {"interim-flood": 1_000, "huge-headers": 64 * 1024, "endless-line": _ENDLESS}


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """By default the demo model's answer in the dialect of the path, as a provider would send it.

    `error` answers with that status in the dialect. `pieces` is the test's own body, sent chunked, one write
    each; `body` one with a length; both under `status` and `headers`. `delay` (seconds) comes before the
    head, `gap` between two pieces. `gate` is waited for: before the head, or with `after` (and no fault) once
    this many pieces are sent. `frames` are raw bytes over a WebSocket in place of messages.
    """

    fault: Fault = ""
    error: int = 0
    retry_after: float | None = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    pieces: tuple[bytes, ...] | None = None
    frames: tuple[bytes, ...] | None = None
    delay: float = 0.0
    gap: float | None = None
    gate: threading.Event | None = None
    after: int | None = None
    size: int = 0
    location: str = ""
    close: bool = False
    """End the connection after a good answer."""

    @property
    def amount(self) -> int:
        return self.size or _USUAL_SIZES.get(self.fault, 0)


class Recorded(msgspec.Struct, eq=False):
    """A request as it arrived. Header names are in lower case; a repeated header is joined with ", "."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    connection: int
    """The number of its connection, counted from 1: the same number means the connection was kept."""
    raw: bytes = b""
    """The raw head, with the case and order of its headers."""
    message: bytes = b""
    """The message over a WebSocket; `body` is the same with the input that it continues."""
    done: threading.Event = msgspec.field(default_factory=threading.Event)
    """Set when its answer has been sent, or abandoned."""
    abandoned: threading.Event = msgspec.field(default_factory=threading.Event)
    """Set when the peer left before the answer was complete."""

    @property
    def json(self) -> Any:
        return decode(self.body)


_JSON: Final = [("content-type", "application/json")]
_ENDINGS: Final[dict[Fault, Ending]] = {"no-terminal": "cut", "error-midstream": "fail"}
_TIER: Final = {"id": "standard-tier", "name": "Demo", "isDefault": True}
_STREAMS_BY_DEFAULT: Final = ("/api/chat",)
_CODE_ASSIST: Final[dict[str, dict[str, Any]]] = {
    "loadCodeAssist": {"currentTier": _TIER, "allowedTiers": [_TIER], "cloudaicompanionProject": "demo"},
    "onboardUser": {"done": True, "response": {"cloudaicompanionProject": {"id": "demo", "name": "demo"}}},
    "retrieveUserQuota": {"buckets": []},
    "listExperiments": {"experimentIds": [], "flags": []},
}
"""Gemini CLI's requests before its first turn."""
_PROXY_PAGE: Final = (
    b"<!doctype html><html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
)
"""The response of a proxy in front of a provider."""


def answer_for(request: Recorded, behaviour: Behaviour) -> Served:
    """The answer, before the connection damages it."""
    target = target_of(request.path, request.query, request.headers)
    name = target.dialect if target is not None else "openai-chat"
    if behaviour.error:
        message = f"The scripted upstream was instructed to fail with status {behaviour.error}."
        kind = kind_of_status(behaviour.error)
        return _with(
            refused(name, ApiError(kind, message, behaviour.error, retry_after=behaviour.retry_after)),
            behaviour,
        )
    if behaviour.body is not None:
        return Served(behaviour.status, [*(behaviour.headers or _JSON)], (behaviour.body,))
    if behaviour.pieces is not None:
        headers = [*(behaviour.headers or (("content-type", "text/event-stream"),))]
        return Served(behaviour.status, headers, behaviour.pieces, streams=True)
    match behaviour.fault:
        case "html":
            return Served(200, [("content-type", "text/html")], (_PROXY_PAGE,))
        case "empty":
            return Served(200, [*_JSON], ())
        case "redirect":
            return Served(307, [("location", behaviour.location or "http://127.0.0.1:9/")], ())
    if request.headers.get("upgrade", "").lower() == "websocket":
        # Codex switches to HTTP after this status, and at once only after this one.
        return refused(name, ApiError("invalid_request", "There are no WebSockets here.", 426))
    if target is None:
        return _unknown(request)
    return _with(_spoiled(target, request, behaviour), behaviour)


def _with(served: Served, behaviour: Behaviour) -> Served:
    if not behaviour.headers:
        return served
    names = {name.lower() for name, _ in behaviour.headers}
    kept = [(name, value) for name, value in served.headers if name not in names]
    return msgspec.structs.replace(served, headers=[*kept, *behaviour.headers])


def _spoiled(target: DemoTarget, request: Recorded, behaviour: Behaviour) -> Served:
    fault = behaviour.fault
    ending = _ENDINGS.get(fault)
    now = int(time.time())
    served = serve(target, request.body, seed="scripted", now=now, ending=ending)
    match fault:
        case "wrong-type":
            return msgspec.structs.replace(served, headers=[("content-type", "text/plain")])
        case "truncated-json":
            return msgspec.structs.replace(served, pieces=(served.body[: len(served.body) // 2],))
        case "json-for-stream":
            whole = serve(_not_streaming(target), _unary(request), seed="scripted", now=now)
            return Served(200, whole.headers, whole.pieces)
        case "gzip":
            return _compressed(served)
        case "error-first":
            return (
                msgspec.structs.replace(served, pieces=(_error_event(target),)) if served.streams else served
            )
        case "half-event":
            return msgspec.structs.replace(served, pieces=_half_event(served.pieces, behaviour.after))
        case "bad-json":
            return msgspec.structs.replace(served, pieces=_bad_json(served.pieces, behaviour.after))
    return served


def _compressed(served: Served) -> Served:
    headers = [*served.headers, ("content-encoding", "gzip")]
    return Served(served.status, headers, (gzip.compress(served.body),), served.streams)


def _not_streaming(target: DemoTarget) -> DemoTarget:
    return msgspec.structs.replace(
        target, operation="generate" if target.operation == "stream" else target.operation
    )


def _unary(request: Recorded) -> bytes:
    document = request.json
    streams = "stream" in document or request.path.endswith(_STREAMS_BY_DEFAULT)
    return encode({**document, "stream": False}) if streams else request.body


def _error_event(target: DemoTarget) -> bytes:
    error = ApiError("overloaded", "The scripted upstream is overloaded.", status=529)
    context = Context(framing="sse" if target.sse else "json-array")
    return b"".join(pieces_of(dialect(target.dialect), (Failure(error),), context, None))


def _half_event(pieces: tuple[bytes, ...], after: int | None) -> tuple[bytes, ...]:
    at = after if after is not None else len(pieces) // 2
    return (*pieces[:at], *(piece[: len(piece) // 2] for piece in pieces[at : at + 1]))


def _bad_json(pieces: tuple[bytes, ...], after: int | None) -> tuple[bytes, ...]:
    """One event with its last brace gone."""
    at = after if after is not None else len(pieces) // 2
    return (*pieces[:at], *(piece.replace(b"}", b"", 1) for piece in pieces[at : at + 1]), *pieces[at + 1 :])


def _unknown(request: Recorded) -> Served:
    verb = request.path.rpartition(":")[2]
    if verb in _CODE_ASSIST:
        return Served(200, [*_JSON], (encode(_CODE_ASSIST[verb]),))
    error = ApiError("not_found", f"The scripted upstream has nothing at {request.path}", 404)
    return refused("openai-chat", error)
