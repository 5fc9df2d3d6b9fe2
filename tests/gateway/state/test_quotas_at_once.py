"""Budgets of requests that run at the same time: an agent's parallel requests are answered, and a budget that
is nearly spent is exceeded by no more than what runs."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, Final

import pytest

from tests.gateway.kit import exchange
from tests.gateway.state.quotas_kit import DOLLAR, NOON, Desk, run, used
from tests.stores.conftest import MEMORY, REDIS, SQLITE, open_counters
from wireglot.gateway.errors import RequestError
from wireglot.gateway.state.quotas.budgets import MAX_UNRESERVED_REQUESTS
from wireglot.gateway.state.quotas.quotas import Quotas
from wireglot.gateway.state.quotas.reservation import MAX_USUAL_ROUTES, Reservation, UsualOutput
from wireglot.gateway.targets.routing import route
from wireglot_core.ir.outcome import Usage

BUDGET = "budget:me:cost:2026-11-15"
DEAR: Final[dict[str, Any]] = {"model": "dear/any", "max_tokens": 64_000}
"""6.40 USD at most."""


BY_RESERVATION: Final[dict[str, Quotas]] = {}
"""The process that admitted a request."""


async def at_once(
    desk: Desk, count: int, *processes: Quotas, **body: Any
) -> tuple[list[Reservation], list[RequestError]]:
    """The admitted and the refused of so many requests at the same moment, spread over the processes."""
    processes = processes or (desk.limiter,)

    async def one(number: int) -> Reservation:
        job = desk.job(**body)
        target = route(desk.settings, job.job.model, job.job.dialect)[0]
        found = await processes[number % len(processes)].admit(job, target)
        assert found is not None
        BY_RESERVATION[found.holder] = processes[number % len(processes)]
        return found

    found = await asyncio.gather(*map(one, range(count)), return_exceptions=True)
    refused = [each for each in found if isinstance(each, RequestError)]
    admitted = [each for each in found if isinstance(each, Reservation)]
    assert len(refused) + len(admitted) == count, found
    return admitted, refused


async def settled(desk: Desk, claims: list[Reservation], usage: Usage) -> None:
    """Each by the process that admitted it."""
    for claim in claims:
        desk.limiter = BY_RESERVATION.pop(claim.holder)
        await desk.settle(claim, usage, route="dear/any")


@pytest.mark.parametrize("percent", [0, 50, 95, 99.9])
def test_twenty_requests_at_once_are_answered_while_a_budget_is_not_spent(percent: float) -> None:
    async def work() -> None:
        desk = Desk(cost_per_day=DOLLAR)
        await desk.ledger.apply([used("a", NOON, cost=int(DOLLAR * percent / 100))])
        admitted, refused = await at_once(desk, 20, **DEAR)
        assert (len(admitted), refused) == (20, [])
        assert desk.spent(BUDGET) == int(DOLLAR * percent / 100), "nothing was used yet"

    run(work())


def test_two_at_the_same_moment_never_make_a_budget_spent() -> None:
    """Claude Code requests a title beside each turn."""

    async def work() -> None:
        desk = Desk(tokens_per_day=1000)
        for _ in range(9):
            admitted, refused = await at_once(desk, 2, max_tokens=100_000)
            assert not refused
            await settled(desk, admitted, Usage(input=25, output=25))
        assert desk.spent("budget:me:tokens:2026-11-15") == 900
        await settled(desk, (await at_once(desk, 2))[0], Usage(input=25, output=25))
        refused = (await at_once(desk, 2))[1]
        assert [fault.error.code for fault in refused] == ["insufficient_quota"] * 2

    run(work())


def test_the_last_cent_is_exceeded_by_no_more_than_what_runs() -> None:
    async def work() -> None:
        desk = Desk(cost_per_day=DOLLAR)
        await desk.ledger.apply([used("a", NOON, cost=DOLLAR - 10_000)])
        admitted, refused = await at_once(desk, 90, **DEAR)
        assert len(admitted) == MAX_UNRESERVED_REQUESTS
        assert {(fault.error.code, fault.final) for fault in refused} == {("rate_limit_exceeded", False)}
        assert "running requests may use the rest" in refused[0].error.message
        await settled(desk, admitted, Usage(output=1000))  # 0.10 USD
        assert desk.spent(BUDGET) == DOLLAR - 10_000 + MAX_UNRESERVED_REQUESTS * 100_000
        assert not desk.limiter.budgets._held
        assert not desk.limiter.budgets._reserved
        assert {fault.error.code for fault in (await at_once(desk, 90, **DEAR))[1]} == {"insufficient_quota"}

    run(work())


def test_what_all_processes_reserve_keeps_many_from_exceeding_a_budget() -> None:
    async def work() -> None:
        desk = Desk(cost_per_day=100 * DOLLAR)
        await desk.ledger.apply([used("a", NOON, cost=50 * DOLLAR)])
        alone, _ = await at_once(desk, 1000, **DEAR)
        shared, _ = await at_once(desk, 1000, desk.another(peers=4), **DEAR)
        assert len(alone) == -(-50 * DOLLAR // alone[0].likely_cost)
        assert len(shared) == -(-len(alone) // 4)

    run(work())


def test_what_is_reserved_is_what_the_route_usually_uses() -> None:
    async def work() -> None:
        desk = Desk(cost_per_day=100 * DOLLAR)
        costs = []
        for output in (20_000,) * 20 + (200,) * 40:
            claim = await desk.admit(**DEAR)
            costs.append(claim.likely_cost)
            await desk.settle(claim, Usage(output=output), route="dear/any")
            desk.counters._budgets.clear()
        assert costs[0] == 1024 * 100, "nothing is known of the route yet"
        assert costs[20] == pytest.approx(20_000 * 100, rel=0.05)
        assert costs[-1] == pytest.approx(200 * 100, rel=0.1)
        assert (await desk.admit(model="dear/any", max_tokens=5)).likely_cost == 5 * 100, (
            "never more than asked"
        )
        assert (await desk.admit(model="dear/other", max_tokens=64_000)).likely_cost == 1024 * 100

    run(work())


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "?"}]}),
        ("/v1/embeddings", {"input": "?"}),
        ("/v1/chat/completions", {"n": 100}),
    ],
    ids=["a count", "an embedding", "several answers, of which an upstream may give one"],
)
def test_what_is_no_single_answer_teaches_nothing_of_the_usual_one(path: str, body: dict[str, Any]) -> None:
    async def work() -> None:
        desk = Desk(cost_per_day=100 * DOLLAR, requests_per_minute=1000)
        for _ in range(30):
            job = exchange(
                desk.settings, {"model": "dear/any", **body}, path=path, caller=desk.caller(), id="req"
            )
            await desk.settle(await desk.admit(job), Usage(input=9), route="dear/any")
        assert (await desk.admit(**DEAR)).likely_cost == 1024 * 100

    run(work())


def test_the_usual_output_of_no_more_routes_than_the_bound_is_kept() -> None:
    usual = UsualOutput()
    usual.learn("oldest", 9)
    for number in range(MAX_USUAL_ROUTES):
        usual.learn(f"route {number}", 1000)
        usual.learn("used", 5)
    assert len(usual._tokens) == MAX_USUAL_ROUTES
    assert usual.of("oldest") == usual.of("unknown") > usual.of("used")


@pytest.mark.parametrize("kind", [MEMORY, SQLITE, REDIS])
def test_processes_exceed_a_shared_budget_by_no_more_than_what_runs(kind: str, tmp_path: Path) -> None:
    async def work() -> None:
        counters = await open_counters(kind, tmp_path)
        desk = Desk(tokens_per_month=10_000)
        await desk.ledger.apply([used("a", time.time(), input=5000)])

        def process() -> Quotas:
            return Quotas(counters, desk.ledger, "here", lambda *_, **__: None, peers=lambda: 3)

        processes = [process() for _ in range(3)]
        try:
            admitted, refused = await at_once(desk, 20, *processes, max_tokens=8000)
            assert (len(admitted), refused) == (20, [])
            (name,) = admitted[0].budgets
            await settled(desk, admitted, Usage(output=249))
            assert await counters.known([name]) == {name: 9980}
            admitted, refused = await at_once(desk, 150, *processes, max_tokens=8000)
            assert len(admitted) == 3 * MAX_UNRESERVED_REQUESTS
            assert {fault.error.code for fault in refused} == {"rate_limit_exceeded"}
            await settled(desk, admitted, Usage(output=10))
            assert await counters.known([name]) == {name: 9980 + 10 * len(admitted)}
            _, refused = await at_once(desk, 3, *processes)
            assert {fault.error.code for fault in refused} == {"insufficient_quota"}
        finally:
            for each in processes:
                await each.close()
            await counters.close()

    run(work())
