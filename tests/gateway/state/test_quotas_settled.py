"""Limits of client keys: what a request cost in the end, whose place is free, and what holds without counters."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from tests.gateway.kit import exchange
from tests.gateway.state.quotas_kit import SETTINGS, Desk, run
from tests.waiting import until
from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.exchange import Exchange
from wireglot.stores.base import StoreDown
from wireglot.stores.records import Denied, Rate
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.failures import AttemptFailed
from wireglot_core.ir.outcome import Usage


def said(job: Exchange, data: bytes) -> None:
    assert job.ending.listener is not None
    job.ending.listener(data)


def test_a_request_that_we_refused_costs_nothing_and_one_refused_upstream_a_request() -> None:
    async def work() -> None:
        desk = Desk(requests_per_minute=1, tokens_per_day=100)
        claim = await desk.admit(max_tokens=5)
        await desk.settle(claim, None, RequestError("bad", "no such tool"), attempts=0)
        claim = await desk.admit(max_tokens=5)
        await desk.settle(claim, None, AttemptFailed(ApiError("server", "down", status=500), "upstream"))
        assert desk.spent("budget:me:tokens:2026-11-15") == 0
        assert "1 requests a minute" in (await desk.refused()).error.message

    run(work())


def test_anyone_who_leaves_pays_for_what_was_said() -> None:
    """THREATS T20: the disconnect bypass. The ledger gets the same."""

    async def work() -> None:
        desk = Desk(tokens_per_day=10_000)
        job = desk.job(max_tokens=500, messages=[{"role": "user", "content": "x" * 400}])
        claim = await desk.admit(job)
        for _ in range(10):
            said(job, b'data: {"choices":[{"delta":{"content":"' + b"y" * 40 + b'"}}]}\n\n')
        record = await desk.settle(claim, None, asyncio.CancelledError())
        assert record.usage == Usage(input=claim.expected.input, output=100)
        assert record.usage_source == "estimated"
        assert desk.spent("budget:me:tokens:2026-11-15") == claim.expected.input + 100

    run(work())


def test_what_a_provider_reported_before_the_client_left_is_believed() -> None:
    async def work() -> None:
        desk = Desk(tokens_per_day=10_000)
        job = desk.job(max_tokens=500)
        claim = await desk.admit(job)
        said(job, b'data: {"delta":"' + b"y" * 40 + b'"}\n\n')
        record = ExchangeRecord("r", 0.0, attempts=1, provider="mine", usage=Usage(cache_read=700, output=1))
        record.usage_source = "partial"
        desk.limiter.settle(claim, record, asyncio.CancelledError())
        await asyncio.gather(*desk.limiter.settlements.work)
        assert record.usage == Usage(cache_read=700, output=10)

    run(work())


def test_places_are_held_until_the_end_and_then_free() -> None:
    async def work() -> None:
        desk = Desk(concurrent=2)
        claims = [await desk.admit() for _ in range(2)]
        fault = await desk.refused()
        assert "maximum of concurrent requests (2)" in fault.error.message
        assert fault.error.retry_after == 1
        await desk.settle(claims[0], None)
        await desk.admit()
        await desk.limiter.close()

    run(work())


def test_a_request_refused_by_another_limit_leaves_its_place() -> None:
    async def work() -> None:
        desk = Desk(concurrent=1, requests_per_minute=1)
        await desk.settle(await desk.admit(), None)
        await desk.refused()
        desk.clock += 60
        await desk.admit()
        await desk.limiter.close()

    run(work())


def test_the_place_of_a_stream_of_hours_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        desk = Desk(concurrent=1)
        desk.limiter.leases.renewed_seconds = 0.001
        claim = await desk.admit()
        for _ in range(5):
            desk.clock += 50
            before = desk.counters._places["places:me"][claim.holder]
            await until(
                partial(lambda before: desk.counters._places["places:me"][claim.holder] != before, before)
            )
            await desk.refused()
        await desk.settle(claim, None)
        await desk.admit()
        await desk.limiter.close()

    run(work())


def test_the_place_of_a_process_that_died_is_free_after_its_lease() -> None:
    async def work() -> None:
        desk = Desk(concurrent=1)
        await desk.admit()
        await desk.limiter.close()
        desk.limiter = desk.another()
        await desk.refused()
        desk.clock += 61
        await desk.admit()
        await desk.limiter.close()

    run(work())


def test_without_counters_each_process_keeps_its_share_of_the_rates() -> None:
    """FAULTS 100"""

    async def work() -> None:
        desk = Desk(peers=3, requests_per_minute=6, concurrent=100)
        desk.counters.down = True
        for _ in range(2):
            await desk.settle(await desk.admit(), None)
        await desk.refused()
        assert desk.notes == ["counters down"], "said once"
        desk.counters.down = False
        await desk.admit()
        assert desk.notes[-1] == "counters available again"
        await desk.limiter.close()

    run(work())


def test_without_counters_budgets_fail_closed() -> None:
    """FAULTS 100"""

    async def work() -> None:
        desk = Desk(tokens_per_day=100)
        desk.counters.down = True
        fault = await desk.refused()
        assert fault.error.status == 429
        assert "cannot be checked" in fault.error.message
        desk.counters.down = False
        await desk.admit()

    run(work())


def test_counting_tokens_is_a_request_and_uses_none() -> None:
    async def work() -> None:
        desk = Desk(requests_per_minute=1, tokens_per_day=1)
        body = {"model": "mine/priced", "messages": [{"role": "user", "content": "?"}]}
        job = exchange(SETTINGS, body, path="/v1/messages/count_tokens", caller=desk.caller())
        claim = await desk.admit(job)
        assert [type(limit.claim) for limit in claim.limits] == [Rate]
        await desk.settle(claim, Usage(input=500))
        assert not desk.counters._budgets
        await desk.refused(job)

    run(work())


def test_a_client_that_leaves_while_its_place_is_being_taken_takes_nothing() -> None:
    async def work() -> None:
        desk = Desk(concurrent=1, requests_per_minute=5, tokens_per_day=100)
        gate = asyncio.Event()
        taken = asyncio.Event()
        take = desk.counters.take

        async def slow(claims: Any) -> Denied | None:
            found = await take(claims)
            taken.set()
            await gate.wait()
            return found

        desk.counters.take = slow  # type: ignore[method-assign]  # a slow network
        waiting = asyncio.create_task(desk.admit(max_tokens=50))
        await taken.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.set()
        await asyncio.gather(*desk.limiter.settlements.work)
        assert not desk.limiter.budgets._held
        assert not desk.limiter.budgets._reserved
        assert not desk.counters._places

    run(work())


def test_two_processes_share_one_limit() -> None:
    async def work() -> None:
        desk = Desk(requests_per_minute=10, concurrent=3)
        here, there = desk.limiter, desk.another()
        passed = 0
        for turn in range(8):
            desk.limiter = (here, there)[turn % 2]
            try:
                await desk.admit()
                passed += 1
            except RequestError:
                pass
        assert passed == 3
        await here.close()
        await there.close()

    run(work())


def test_a_request_whose_rate_cannot_be_taken_reserves_nothing() -> None:
    async def work() -> None:
        desk = Desk(tokens_per_day=1000, requests_per_minute=5)
        desk.counters.late = asyncio.Event()
        fault = await desk.refused(max_tokens=50)
        assert "cannot be checked" in fault.error.message
        desk.counters.late.set()
        assert not desk.limiter.budgets._held
        assert not desk.limiter.budgets._reserved

    run(work())


@pytest.mark.parametrize("leaves", [False, True], ids=["the store is slow", "the client leaves"])
def test_money_for_a_search_that_is_taken_too_late_is_given_back(leaves: bool) -> None:
    async def work() -> None:
        desk = Desk(cost_per_day=1)
        await desk.settle(await desk.admit(max_tokens=50), Usage())
        claims = desk.limiter.tools.claims(desk.job().job, 5_000)
        (name,) = [claim.name for claim in claims]
        before = desk.spent(name)
        if leaves:
            taking = asyncio.create_task(desk.limiter.tools.take(claims))
            await asyncio.sleep(0)
            taking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await taking
        else:
            desk.counters.late = asyncio.Event()
            with pytest.raises(StoreDown):
                await desk.limiter.tools.take(claims)
            desk.counters.late.set()
        await asyncio.gather(*desk.limiter.settlements.work)
        assert desk.spent(name) == before

    run(work())
