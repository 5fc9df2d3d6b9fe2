"""What a balancer is told of a process, and what is measured of its queue."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from tests.gateway.kit import head
from tests.tiers import rows
from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.pages.health import Condition, HealthPages
from wireglot.gateway.request.collected_reply import CollectedReply
from wireglot_core.dialects.surface import Probe
from wireglot_core.wire.json import decode


def answered(
    operation: Literal["health", "ready", "stub"],
    condition: Condition | None = None,
    probe: Probe | None = None,
) -> tuple[int, Any]:
    async def scrape() -> bytes:
        return b"{}"

    pages = HealthPages(lambda: condition or Condition(), scrape, lambda *_: probe)
    reply = CollectedReply(1000)
    asyncio.run(pages.answer(head("GET", "/"), Asked("", operation), reply))
    return reply.status, decode(bytes(reply.body))


@rows(
    ("condition", "status", "told"),
    [
        (Condition(), 200, {"status": "ready"}),
        (Condition(trouble="disk"), 200, {"status": "degraded", "store": "down"}),
        (Condition(draining=True), 503, {"status": "draining"}),
        (Condition(draining=True, trouble="disk"), 503, {"status": "draining", "store": "down"}),
        (Condition(ledger_full=True), 503, {"status": "ready"}),
        (Condition(config_refused=True), 200, {"status": "ready", "config": "refused"}),
    ],
)
def test_a_process_is_ready_until_it_drains_or_cannot_record(
    condition: Condition, status: int, told: dict[str, str]
) -> None:
    assert answered("ready", condition) == (status, told)
    assert answered("health", condition) == (200, {"status": "ok"})


def test_a_probe_of_a_client_is_answered_with_what_it_expects() -> None:
    assert answered("stub", probe=Probe(("GET",), {"a": 1})) == (200, {"a": 1})
    assert answered("stub") == (200, {})
