"""The small answers: health, metrics, model lists, Code Assist's questions, what clients merely probe."""

from __future__ import annotations

import traceback
from typing import Any, Final, Protocol

from wireglot.gateway.entry import probes
from wireglot.gateway.entry.guard import Caller
from wireglot.gateway.entry.routes import Asked, NoRoute
from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.metrics import CONTENT_TYPE
from wireglot.gateway.observe.observer import Observer
from wireglot.gateway.observe.record import Record
from wireglot.gateway.pages import code_assist
from wireglot.gateway.pages import models as listing
from wireglot.gateway.pages.models import ListedModel
from wireglot.gateway.request.job import identity
from wireglot.gateway.settings import Settings
from wireglot.gateway.targets.health import Health
from wireglot.http.application import Head, Headers, Refusal, Reply
from wireglot.http.redaction import Redactor
from wireglot.ir.errors import ClientFault
from wireglot.wire.json import BadJson, decode, encode, encode_text

_SHOWN: Final = 200
_JSON: Final = ("content-type", "application/json")
_METRICS: Final = ("content-type", CONTENT_TYPE)


class Inside(Protocol):
    """What of the gateway these answers tell."""

    observer: Observer
    health: Health
    draining: bool

    @property
    def waiting(self) -> int: ...

    @property
    def trouble(self) -> str:
        """Why some things are not remembered, or ""."""
        ...

    @property
    def ledger_full(self) -> bool: ...

    async def scrape(self) -> bytes: ...


def publish(gateway: Inside) -> None:
    """Numbers that live in the gateway's parts, for whoever scrapes them."""
    read = gateway.observer.metrics.read
    read("queue", "Requests waiting for their turn.", lambda: {(): gateway.waiting})
    read(
        "breaker_open",
        "Routes (a provider's model) that are given a rest.",
        lambda: {
            (gateway.observer.redactor.text(name)[:128],): 1
            for name in gateway.health.open_breakers()[:_SHOWN]
        },
        ("route",),
    )


def preflight(head: Head, settings: Settings) -> Refusal | None:
    """A browser's question whether a page may call; only pages that were named are told that they may."""
    origin = head.headers.get("origin")
    if head.method != "OPTIONS" or origin is None or origin not in settings.server.origins:
        return None
    headers: Headers = [
        ("access-control-allow-origin", origin),
        ("access-control-allow-methods", "GET, POST, PATCH, DELETE"),
        ("access-control-allow-headers", head.headers.get("access-control-request-headers", "content-type")),
        ("access-control-max-age", "600"),
        ("vary", "origin"),
    ]
    return Refusal(204, headers, b"")


def nowhere(head: Head, problem: NoRoute) -> RequestError:
    if "upgrade" in head.headers and head.path.startswith("/v1/responses"):
        # Codex then speaks plain HTTP at once; any other status costs it seconds.
        fault = RequestError("bad", "WebSocket is not spoken here: use POST", code="upgrade_required")
        return fault.with_status(426)
    if problem.allowed:
        allowed = ", ".join(problem.allowed)
        return RequestError("bad", f"{head.path} takes {allowed}", code="method_not_allowed").with_status(405)
    return RequestError("not_found", f"there is nothing at {head.method} {head.path}", code="unknown_url")


async def answer(gateway: Inside, head: Head, asked: Asked, reply: Reply) -> None:
    match asked.operation:
        case "health":
            reply.send(200, [_JSON], encode({"status": "ok"}))
        case "ready":
            trouble = gateway.trouble
            status = "draining" if gateway.draining else "degraded" if trouble else "ready"
            ready = not gateway.draining and not gateway.ledger_full
            told = {"status": status} | ({"store": "down"} if trouble else {})  # why is in the log
            reply.send(200 if ready else 503, [_JSON], encode(told))
        case "metrics":
            reply.send(200, [_METRICS], await gateway.scrape())
        case _:
            found = probes.stub(head.method, head.path)
            reply.send(200, [_JSON], encode(found.body if found is not None else {}))


def describe(
    settings: Settings,
    known: tuple[ListedModel, ...],
    caller: Caller,
    head: Head,
    asked: Asked,
    body: bytes,
    reply: Reply,
    record: Record,
) -> None:
    """Models, and what Gemini CLI asks before it begins."""
    models = listing.permitted(known, caller.key)
    document: dict[str, Any] | None
    try:
        match asked.operation:
            case "models":
                document = listing.render_list(asked.dialect, models, head.query)
            case "model":
                record.model = asked.model
                document = listing.render_one(asked.dialect, models, asked.model)
                if document is None:
                    document = _unlisted(settings, caller, asked)
            case "operation":
                document = code_assist.operation(asked.verb)
            case _:
                document = code_assist.answer(asked.verb, _object(body), models)
    except ClientFault as fault:
        raise RequestError("bad", str(fault).removeprefix("$.")) from None
    if document is None:
        raise RequestError("not_found", f"there is nothing at {head.path}", code="unknown_url")
    record.status = 200
    reply.send(200, [_JSON, *identity(record.id, asked.dialect)], encode(document))


def _unlisted(settings: Settings, caller: Caller, asked: Asked) -> dict[str, Any]:
    """A name that only a pattern of [models] or a provider's prefix leads on."""
    found = listing.listed(settings, asked.model.removeprefix("models/"))
    if found is None or not listing.may_ask(caller.key, found.id):
        raise RequestError("not_found", f"model: there is no {asked.model!r} here", param="model")
    return listing.render_model(asked.dialect, found)


def redacted(body: bytes, redactor: Redactor) -> bytes:
    """An upstream's own error, byte for byte unless it repeats a secret, in whatever spelling JSON allows."""
    try:
        text = encode_text(decode(body))
    except BadJson:
        return redactor.data(body)
    told = redactor.text(text)
    return redactor.data(body) if told == text else told.encode()


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = decode(body) if body else {}
    except BadJson as problem:
        raise RequestError("bad", f"the body is not JSON: {problem}", code="invalid_json") from None
    if not isinstance(value, dict):
        raise RequestError("bad", "expected a JSON object", code="invalid_type")
    return value


def place(bug: BaseException) -> str:
    """Where it happened: file and line of our innermost frame; never a value."""
    frames = traceback.extract_tb(bug.__traceback__)
    ours = [frame for frame in frames if "wireglot" in frame.filename] or frames
    return " < ".join(f"{f.filename.rpartition('wireglot/')[2]}:{f.lineno}" for f in ours[-1:-5:-1])
