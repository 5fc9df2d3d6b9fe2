"""Limits of client keys: what is reserved on top for a held history, and what stays when counters go away."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from tests.gateway.state.quotas_kit import SETTINGS, Desk, run
from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.state.quotas.budgets import MAX_UNRESERVED_REQUESTS
from wireglot.gateway.state.quotas.reservation import Reservation
from wireglot.gateway.targets.routing import route
from wireglot.stores.base import StoreDown
from wireglot.stores.records import Denied
from wireglot_core.ir.content import Message, Text
from wireglot_core.ir.outcome import Usage

NOW = "budget:me:tokens:2026-11-15"


def with_history(desk: Desk, words: int = 1000, **body: Any) -> Exchange:
    """A request that has had a held conversation put before it."""
    job = desk.job(messages=[{"role": "user", "content": "hi"}], max_tokens=10, **body)
    request = job.request()
    before = Message("user", (Text("word " * words),))
    job.rewrite(msgspec.structs.replace(request, messages=(before, *request.messages)))
    return job


async def grow(desk: Desk, claim: Reservation, job: Exchange) -> None:
    await desk.limiter.grow(claim, job, route(SETTINGS, job.job.model, job.job.dialect)[0])


def test_a_history_is_reserved_on_top_and_refuses_nothing() -> None:
    """THREATS T20: a conversation that we store counts for those that come later."""

    async def work() -> None:
        desk = Desk(tokens_per_day=20_000)
        jobs = [with_history(desk) for _ in range(MAX_UNRESERVED_REQUESTS)]
        claims = [await desk.admit(job) for job in jobs]
        assert desk.limiter.budgets._reserved[NOW] < 2000
        for claim, job in zip(claims, jobs, strict=True):
            await grow(desk, claim, job)
        assert desk.limiter.budgets._reserved[NOW] > 20_000
        with pytest.raises(RequestError, match="running requests"):
            await desk.admit(with_history(desk))
        for claim in claims:
            await desk.settle(claim, None, RequestError("internal", "x"), attempts=0)
        assert not desk.limiter.budgets._reserved
        assert desk.spent(NOW) == 0
        await desk.limiter.close()

    run(work())


def test_a_client_that_leaves_while_its_history_is_charged_leaves_nothing_charged() -> None:
    async def work() -> None:
        desk = Desk(tokens_per_day=100_000, tokens_per_minute=100_000)
        job = with_history(desk)
        claim = await desk.admit(job)
        gate, taken, settle = asyncio.Event(), asyncio.Event(), desk.counters.settle

        async def slow(claims: Any) -> None:
            await settle(claims)
            taken.set()
            await gate.wait()

        desk.counters.settle = slow  # type: ignore[method-assign]  # a slow network
        waiting = asyncio.create_task(grow(desk, claim, job))
        await taken.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError) as left:
            await waiting
        desk.limiter.settle(claim, ExchangeRecord("req", 0.0), left.value)
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*desk.limiter.settlements.work)
        assert not desk.limiter.budgets._reserved
        assert desk.spent(NOW) == 0
        assert desk.counters._rates["rate:me:tpm"] == desk.clock * 1000, "the rate is given back as well"

    run(work())


def test_counters_that_go_away_while_a_history_is_charged_keep_none_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        desk = Desk(tokens_per_day=100_000, tokens_per_minute=100_000)
        job = with_history(desk)
        claim = await desk.admit(job)

        async def fail(claims: Any) -> None:
            raise StoreDown("gone")

        with monkeypatch.context() as patch:
            patch.setattr(desk.counters, "settle", fail)
            await grow(desk, claim, job)
        await desk.settle(claim, None, RequestError("internal", "x"), attempts=0)
        assert not desk.limiter.budgets._reserved
        assert desk.counters._rates["rate:me:tpm"] == desk.clock * 1000

    run(work())


def test_a_ledger_that_is_down_is_not_reported_as_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        desk = Desk(tokens_per_day=100)

        async def fail(*values: Any) -> tuple[int, int]:
            raise StoreDown("gone")

        monkeypatch.setattr(desk.ledger, "spent", fail)
        assert "cannot be checked" in (await desk.refused()).error.message
        assert desk.notes == []

    run(work())


def test_a_place_that_cannot_be_left_keeps_no_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        desk = Desk(concurrent=1, tokens_per_day=1000)
        claim = await desk.admit(max_tokens=500)

        async def fail(*values: Any) -> None:
            raise StoreDown("gone")

        monkeypatch.setattr(desk.counters, "leave", fail)
        await desk.settle(claim, Usage(input=3, output=4))
        assert desk.spent(NOW) == 7

    run(work())


@pytest.mark.parametrize("took_effect", [False, True])
def test_what_was_used_is_charged_once_when_the_counters_are_back(
    took_effect: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """THREATS T20: neither nothing nor twice, if the counters only answered late."""

    async def work() -> None:
        desk = Desk(tokens_per_day=1000)
        desk.limiter.settlements.again_seconds = (0.0, 0.0)
        real, left = desk.counters.settle, [1]

        async def once(claims: Any) -> None:
            if left[0]:
                left[0] -= 1
                down = StoreDown("gone")
                if took_effect:
                    down.late = asyncio.ensure_future(real(claims))
                raise down
            await real(claims)

        monkeypatch.setattr(desk.counters, "settle", once)
        claim = await desk.admit(max_tokens=10)
        await desk.settle(claim, Usage(input=100, output=100))
        assert desk.spent(NOW) == 200

    run(work())


def test_counters_that_hang_are_not_waited_for_by_every_request() -> None:
    """FAULTS 100"""

    async def work() -> None:
        desk = Desk(requests_per_minute=600)
        asked = [0]

        async def hang(claims: Any) -> Denied | None:
            asked[0] += 1
            desk.clock += 0.2
            raise StoreDown("it does not answer")

        desk.counters.take = hang  # type: ignore[method-assign]  # a locked file
        for _ in range(20):
            await desk.admit()
        assert asked == [1]
        desk.clock += 1
        await desk.admit()
        assert asked == [2]

    run(work())
