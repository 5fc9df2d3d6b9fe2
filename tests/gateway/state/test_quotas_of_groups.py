"""Limits that the keys of a group share, on top of their own."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from tests.gateway.state.quotas_kit import DOLLAR, NOON, Desk, run, used
from tests.stores.conftest import MEMORY, REDIS, SQLITE, open_counters
from tests.waiting import DEADLINE_SECONDS
from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.metrics import Metrics
from wireglot.gateway.state.quotas.budgets import MAX_UNRESERVED_REQUESTS
from wireglot.gateway.state.quotas.quotas import Quotas
from wireglot.gateway.state.quotas.reservation import Reservation
from wireglot.gateway.targets.routing import route
from wireglot_core.ir.outcome import Usage

DAY = "2026-11-15"


def test_a_shared_budget_is_used_up_by_all_keys_together() -> None:
    async def work() -> None:
        desk = Desk()
        desk.join("research", tokens_per_day=1000)
        await desk.settle(await desk.admit(max_tokens=10), Usage(input=600))
        desk.name = "you"
        await desk.settle(await desk.admit(max_tokens=10), Usage(input=600))
        assert desk.spent(f"budget:group:research:tokens:{DAY}") == 1200
        for desk.name in ("me", "you", "third"):
            fault = await desk.refused()
            assert fault.error.code == "insufficient_quota"
            assert fault.error.message == (
                "group research has used its budget of 1000 tokens a day; it resets at 2026-11-16T00:00:00Z, "
                "or ask the operator of this gateway to raise it"
            )
        desk.group = "sales"
        desk.limits = desk.limits.__class__(tokens_per_day=5)
        await desk.admit(max_tokens=1)

    run(work())


def test_a_request_is_charged_to_its_key_and_to_its_group() -> None:
    async def work() -> None:
        desk = Desk(tokens_per_day=100)
        desk.join("research", cost_per_month=10 * DOLLAR)
        claim = await desk.admit(max_tokens=10)
        assert claim.held == {
            f"budget:me:tokens:{DAY}": claim.expected.total,
            "budget:group:research:cost:2026-11": claim.likely_cost,
        }
        assert desk.spent(f"budget:me:tokens:{DAY}") == 0, "nothing was used yet"
        await desk.settle(claim, Usage(input=20, output=40))
        assert desk.spent(f"budget:me:tokens:{DAY}") == 60
        assert desk.spent("budget:group:research:cost:2026-11") == 20 + 400
        await desk.settle(await desk.admit(max_tokens=10), Usage(input=50))
        fault = await desk.refused()
        assert fault.error.message.startswith("this key has used its budget of 100 tokens a day")
        desk.name = "you"
        await desk.admit(max_tokens=10)

    run(work())


def test_what_is_refused_for_the_group_is_not_charged_to_the_key() -> None:
    async def work() -> None:
        desk = Desk(tokens_per_day=1000, concurrent=1)
        desk.join("research", tokens_per_day=1)
        await desk.ledger.apply([used("a", NOON, "you", input=5, caller_group="research")])
        await desk.refused()
        assert f"budget:me:tokens:{DAY}" in desk.counters._budgets
        assert desk.spent(f"budget:me:tokens:{DAY}") == 0
        assert not desk.counters._places

    run(work())


def test_a_shared_budget_goes_on_after_a_restart_from_what_the_ledger_says() -> None:
    async def work() -> None:
        desk = Desk()
        desk.join("research", tokens_per_day=1000)
        rows = [
            used("a", NOON, "me", input=400, caller_group="research"),
            used("b", NOON, "you", input=500, caller_group="research"),
            used("c", NOON, "me", input=5000, caller_group="sales"),
            used("d", NOON, "research", input=5000),
        ]
        await desk.ledger.apply(rows)
        await desk.settle(await desk.admit(max_tokens=10), Usage(input=50))
        assert desk.spent(f"budget:group:research:tokens:{DAY}") == 950
        await desk.settle(await desk.admit(max_tokens=10), Usage(input=50))
        await desk.refused()

    run(work())


def test_a_key_named_like_a_group_has_a_budget_of_its_own() -> None:
    async def work() -> None:
        desk = Desk(tokens_per_day=1000)
        desk.name = "research"
        desk.join("research", tokens_per_day=1000)
        await desk.settle(await desk.admit(max_tokens=10), Usage(input=7))
        assert set(desk.counters._budgets) == {
            f"budget:research:tokens:{DAY}",
            f"budget:group:research:tokens:{DAY}",
        }

    run(work())


def test_rates_and_places_are_shared_too() -> None:
    async def work() -> None:
        desk = Desk(concurrent=5)
        desk.join("research", concurrent=1, requests_per_minute=2, tokens_per_minute=10_000)
        claim = await desk.admit(max_tokens=10)
        desk.name = "you"
        fault = await desk.refused()
        assert fault.error.message == (
            "group research has reached its maximum of concurrent requests (1): "
            "try again when one of them has ended"
        )
        await desk.settle(claim, Usage(input=5))
        assert not desk.counters._places, "the place of the key that was refused is free as well"
        await desk.settle(await desk.admit(max_tokens=10), Usage(input=5))
        fault = await desk.refused()
        assert fault.error.message == "group research may use 2 requests a minute: try again in 30 s"

    run(work())


def test_a_long_request_keeps_both_places() -> None:
    async def work() -> None:
        desk = Desk(concurrent=1)
        desk.join("research", concurrent=1)
        desk.limiter.leases.renewed_seconds = 0.001
        claim = await desk.admit(max_tokens=10)
        before = {name: dict(places) for name, places in desk.counters._places.items()}
        assert set(before) == {"places:me", "places:group:research"}
        desk.clock += 50
        async with asyncio.timeout(DEADLINE_SECONDS):
            while any(desk.counters._places[name] == before[name] for name in before):
                await asyncio.sleep(0)
        await desk.settle(claim, Usage(input=5))
        assert not desk.counters._places

    run(work())


def test_requests_of_all_keys_at_once_are_bounded_together() -> None:
    async def work() -> None:
        desk = Desk()
        desk.join("research", tokens_per_day=1000)

        async def one(number: int) -> bool:
            desk.name = f"key-{number}"
            job = desk.job(max_tokens=600)
            try:
                await desk.admit(job)
            except Exception:
                return False
            return True

        admitted = sum(await asyncio.gather(*map(one, range(50))))
        assert admitted == MAX_UNRESERVED_REQUESTS, "the reservations of the others count, too"

    run(work())


def test_counters_that_are_down_refuse_the_group_as_they_refuse_a_key() -> None:
    async def work() -> None:
        desk = Desk()
        desk.join("research", tokens_per_day=1000)
        desk.counters.down = True
        fault = await desk.refused()
        assert fault.error.message == "the budget of this key cannot be checked at the moment"
        desk.join("research", requests_per_minute=5)
        desk.clock += 1
        await desk.admit()

    run(work())


def test_the_metrics_have_the_group_beside_its_keys() -> None:
    async def work() -> None:
        desk = Desk(tokens_per_day=1000)
        desk.join("research", tokens_per_day=2000)
        await desk.settle(await desk.admit(max_tokens=10), Usage(input=500))
        await desk.limiter.watch.look()
        metrics = Metrics()
        desk.limiter.watch.publish(metrics)
        assert dict(metrics._all[-1]._read()) == {  # type: ignore[union-attr]  # a reading
            ("me", "tokens", "day"): 0.5,
            ("group:research", "tokens", "day"): 0.25,
        }

    run(work())


def test_a_key_in_a_group_without_shared_limits_asks_no_counter() -> None:
    async def work() -> None:
        desk = Desk()
        desk.join("research")
        desk.counters.down = True
        assert desk.limiter.reserve(desk.job()) is None

    run(work())


@pytest.mark.parametrize("kind", [MEMORY, SQLITE, REDIS])
def test_processes_share_the_budget_over_every_kind_of_counters(kind: str, tmp_path: Path) -> None:
    """Two processes, two keys, real clocks; what a restart forgets comes back from the ledger."""

    async def work() -> None:
        counters = await open_counters(kind, tmp_path)
        desk = Desk()
        desk.join("research", tokens_per_month=1000, concurrent=2, requests_per_minute=100)
        now = time.time()
        await desk.ledger.apply([used("a", now, "you", input=400, caller_group="research")])

        def process() -> Quotas:
            return Quotas(counters, desk.ledger, "here", lambda *_, **__: None, peers=lambda: 2)

        async def one(quotas: Quotas, name: str) -> Reservation | None:
            desk.name, desk.limiter = name, quotas
            job = desk.job(max_tokens=700)
            return await quotas.admit(job, route(desk.settings, job.job.model, job.job.dialect)[0])

        try:
            first, second = process(), process()
            claim = await one(first, "me")
            assert claim is not None
            (name,) = claim.budgets
            assert (await counters.known([name]))[name] == 400
            desk.limiter = first
            await desk.settle(claim, Usage(input=100))
            assert await counters.known([name]) == {name: 500}
            await desk.ledger.apply([used("b", now, "me", input=100, caller_group="research")])
            claim = await one(second, "you")
            assert claim is not None
            await desk.settle(claim, Usage(input=600))
            await desk.ledger.apply([used("c", now, "you", input=600, caller_group="research")])
            with pytest.raises(RequestError, match="group research has used its budget of 1000 tokens"):
                await one(first, "me")
            await first.close()
            await second.close()
        finally:
            await counters.close()

    run(work())
