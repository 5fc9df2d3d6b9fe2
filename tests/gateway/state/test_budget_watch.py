"""[M7] How much of a budget is used shows in the metrics, before it is all of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.state.quotas_kit import DOLLAR, NOON, Desk, run
from wireglot.gateway.observe.metrics import Metrics, Reading
from wireglot.gateway.state.quotas.reservation import MAX_BUDGETS, BudgetWatch, Limit, Reservation
from wireglot.stores.base import StoreDown
from wireglot.stores.records import Budget
from wireglot_core.ir.outcome import Usage


def reported(watch: BudgetWatch) -> dict[tuple[str, ...], float]:
    metrics = Metrics()
    watch.publish(metrics)
    last = metrics._all[-1]
    assert isinstance(last, Reading)
    return dict(last._read())


def test_a_budget_is_reported_as_far_as_it_is_used() -> None:
    async def work() -> None:
        desk = Desk(cost_per_day=10 * DOLLAR, tokens_per_month=1_000_000)
        watch = desk.limiter.watch
        claim = await desk.admit(max_tokens=10)
        assert reported(watch) == {}, "nobody has looked yet"
        await desk.settle(claim, Usage(input=500_000, output=400_000))
        await watch.look()
        assert reported(watch) == {("me", "cost", "day"): 0.45, ("me", "tokens", "month"): 0.9}
        desk.wall = NOON + 86_400
        assert reported(watch) == {("me", "tokens", "month"): 0.9}, "the day is over"

    run(work())


def test_what_cannot_be_looked_up_stays_as_it_was() -> None:
    async def work() -> None:
        desk = Desk(tokens_per_day=100)
        await desk.settle(await desk.admit(max_tokens=10), Usage(input=50))
        watch = desk.limiter.watch
        await watch.look()
        desk.counters.down = True
        with pytest.raises(StoreDown):
            await watch.look()
        assert reported(watch) == {("me", "tokens", "day"): 0.5}

    run(work())


def test_no_more_budgets_are_watched_than_keys_have_labels() -> None:
    desk = Desk()
    watch = BudgetWatch(desk.counters, lambda: NOON)

    def asked(caller: str, until: int, most: int = 5) -> None:
        budget = Limit("tokens", Budget(f"budget:{caller}", 1, most, until), "", 0, "day")
        found: Any = Reservation(caller, "rate", None, [budget], Usage(), 0)  # type: ignore[arg-type]  # as much of a caller as it needs
        watch.watch(found)

    ends = int(NOON * 1000)
    for number in range(MAX_BUDGETS + 10):
        asked(f"early-{number}", ends + 1)
    assert len(watch._watched) == MAX_BUDGETS
    asked("early-1", ends + 1, most=7)
    assert watch._watched["budget:early-1"].limit == 7, "one that is watched is still reported"
    watch._wall = lambda: NOON + 1
    asked("late", ends + 5000)
    assert list(watch._watched) == ["budget:late"]


def test_nobody_watches_a_key_without_budgets() -> None:
    async def work() -> None:
        desk = Desk(requests_per_minute=5)
        await desk.admit()
        assert not desk.limiter.watch._watched

    run(work())


def test_a_key_made_again_under_a_name_is_reported_by_what_it_used_itself() -> None:
    async def work() -> None:
        desk = Desk(tokens_per_day=100)
        watch = desk.limiter.watch
        for created, used in ((int(NOON * 1000), 90), (int(NOON * 1000) + 5, 10)):
            desk.created = created
            await desk.settle(await desk.admit(max_tokens=5), Usage(input=used))
            await watch.look()
            assert reported(watch) == {("me", "tokens", "day"): used / 100}

    run(work())
