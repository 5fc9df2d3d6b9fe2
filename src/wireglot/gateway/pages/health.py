"""The state of the process: health, readiness, metrics; and fixed responses to paths that clients merely
probe."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from wireglot.gateway.entry.gates import Gates
from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.observe.metrics import CONTENT_TYPE
from wireglot.gateway.observe.observer import Observer
from wireglot.gateway.request.headers import JSON
from wireglot.gateway.targets.health import Health
from wireglot.http.application import Head, Reply
from wireglot_core.dialects.surface import Probe
from wireglot_core.wire.json import encode

_ROUTES_SHOWN: Final = 200
_METRICS: Final = ("content-type", CONTENT_TYPE)
_TEXT: Final = ("content-type", "text/plain; charset=utf-8")


class Condition(msgspec.Struct, frozen=True):
    """The state of a process, for a load balancer."""

    draining: bool = False
    trouble: str = ""
    """Why some state cannot be stored, or "". Reported in the log, but not to strangers."""
    ledger_full: bool = False
    config_refused: bool = False


class HealthPages:
    """Most of these need no key, and none of them is logged."""

    OPERATIONS: Final = frozenset({"health", "ready", "metrics", "stub"})

    def __init__(
        self,
        condition: Callable[[], Condition],
        scrape: Callable[[], Awaitable[bytes]],
        probe: Callable[[str, str], Probe | None],
    ) -> None:
        self._condition = condition
        self._scrape = scrape
        self._probe = probe

    async def answer(self, head: Head, asked: Asked, reply: Reply) -> None:
        match asked.operation:
            case "health":
                reply.send(200, [JSON], encode({"status": "ok"}))
            case "ready":
                self._ready(reply)
            case "metrics":
                reply.send(200, [_METRICS], await self._scrape())
            case _:
                found = self._probe(head.method, head.path)
                if found is not None and found.text:
                    reply.send(200, [_TEXT], found.text.encode())
                else:
                    reply.send(200, [JSON], encode(found.body if found is not None else {}))

    def _ready(self, reply: Reply) -> None:
        now = self._condition()
        status = "draining" if now.draining else "degraded" if now.trouble else "ready"
        reported = {"status": status} | ({"store": "down"} if now.trouble else {})
        if now.config_refused:  # the previous settings still work
            reported["config"] = "refused"
        reply.send(503 if now.draining or now.ledger_full else 200, [JSON], encode(reported))


def publish(observer: Observer, gates: Gates, health: Health, at_providers: Callable[[], int]) -> None:
    """Metrics of the gateway's parts. `at_providers`: requests that wait for a place or a connection
    there."""
    read = observer.metrics.read
    read(
        "queue",
        "Requests waiting in the queue for all requests (limits.queue).",
        lambda: {(): gates.waiting + at_providers()},
    )
    read(
        "breaker_open",
        "1 while the circuit breaker of the route (a provider's model) is open.",
        lambda: {(observer.redactor.text(name)[:128],): 1 for name in health.open_breakers()[:_ROUTES_SHOWN]},
        ("route",),
    )
