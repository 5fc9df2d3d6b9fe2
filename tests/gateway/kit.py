"""Settings, heads and small requests for tests that need no server."""

from __future__ import annotations

from typing import Any

from wireglot.gateway.entry.callers import LOCAL, Caller
from wireglot.gateway.entry.routes import Asked, Routes
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.job import Incoming, read
from wireglot.gateway.settings import Credential, Provider, Rule, Secret, Settings
from wireglot.http.account import ByteAccount, MemoryLease
from wireglot.http.application import Head, Headers, Reply
from wireglot.http.redaction import Redactor
from wireglot_core.dialects.registry import surfaces
from wireglot_core.providers.spec import ModelSpec, ProviderSpec, provider
from wireglot_core.wire.json import encode

ROUTES = Routes(surfaces())
match = ROUTES.match


def catalogued(name: str, *keys: str) -> Provider:
    credentials = tuple(Credential(Secret(key), f"account-{key}") for key in keys)
    return Provider(name, provider(name), credentials)


def own(name: str, dialect: str, *models: ModelSpec, **more: Any) -> Provider:
    spec = ProviderSpec(name, name, (dialect,), "http://127.0.0.1:1", models=models, **more)
    return Provider(name, spec)


def settings(*providers: Provider, rules: tuple[Rule, ...] = (), **more: Any) -> Settings:
    return Settings(providers={each.name: each for each in providers}, rules=rules, **more)


def head(method: str, path: str, query: str = "", peer: str = "127.0.0.1", **headers: str) -> Head:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    target = f"{path}?{query}" if query else path
    return Head(method, target, path, query, {"host": "localhost:8484", **named}, peer)


class Nobody:
    """Implements `Reply`: a client that hears nothing."""

    started = False

    def send(self, status: int, headers: Headers, body: bytes) -> None: ...

    def start(self, status: int, headers: Headers) -> None: ...

    def write(self, data: bytes) -> None: ...

    def end(self) -> None: ...

    def abort(self) -> None: ...

    def on_pressure(self, pause: Any, resume: Any) -> None: ...


def exchange(
    now: Settings,
    body: dict[str, Any] | bytes,
    *,
    path: str = "/v1/chat/completions",
    asked: Asked | None = None,
    caller: Caller = LOCAL,
    id: str = "req_1",
    started: float = 0.0,
    reply: Reply | None = None,
    **headers: str,
) -> Exchange:
    """One small request, read as the gateway reads it."""
    made = head("POST", path, **headers)
    asked = asked or match(made)
    job = read(
        Incoming(now, made, asked, caller),
        body if isinstance(body, bytes) else encode(body),
        id=id,
        now=1,
    )
    record = ExchangeRecord(id, started, dialect=asked.dialect, operation=asked.operation, caller=caller.name)
    held = MemoryLease(ByteAccount(now.limits.buffered))
    return Exchange(job, record, reply if reply is not None else Nobody(), Redactor(), held=held)
