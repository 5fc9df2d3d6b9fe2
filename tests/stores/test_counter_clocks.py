"""Counters while time goes by, stands still or is set: with clocks that are handed in."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireglot.stores.claims import Weighed
from wireglot.stores.memory import MemoryCounters
from wireglot.stores.records import Budget, Rate
from wireglot.stores.sqlite import SqliteCounters

NOON = 1_800_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
def counters(request, run, clock, tmp_path):
    if request.param == "memory":
        opened = MemoryCounters(clock=clock, wall=clock)
    else:
        opened = run(SqliteCounters.open(str(tmp_path / "c.db"), clock=clock))
    yield opened
    run(opened.close())


@pytest.fixture
def shared(run, clock, tmp_path):
    opened = run(SqliteCounters.open(str(tmp_path / "c.db"), clock=clock))
    yield opened
    run(opened.close())


MINUTE = Rate("r", 1, 60, 60.0)


@pytest.mark.parametrize("amount", [1, 7, 60, 200])
def test_the_reported_wait_is_true(run, counters, clock, amount):
    """R-Z: a moment before it the claim is denied, after it it passes."""
    run(counters.take([Rate("r", 60, 60, 60.0)]))
    claim = Rate("r", amount, 60, 60.0)
    denied = run(counters.take([claim]))
    assert denied.wait == pytest.approx(min(amount, 60))
    clock.now += denied.wait - 0.01
    assert run(counters.take([claim])) is not None
    clock.now += 0.02
    assert run(counters.take([claim])) is None


def test_a_bucket_gives_back_evenly(run, counters, clock):
    run(counters.take([Rate("r", 60, 60, 60.0)]))
    passed = 0
    for _ in range(40):
        clock.now += 0.5
        passed += run(counters.take([MINUTE])) is None
    assert passed in (19, 20)


def test_a_debt_is_paid_back_up_to_two_windows(run, counters, clock):
    run(counters.take([Rate("r", 600, 60, 60.0)]))
    assert run(counters.take([MINUTE])).wait == pytest.approx(61)
    clock.now += 60
    assert run(counters.take([MINUTE])) is not None
    clock.now += 1.01
    assert run(counters.take([MINUTE])) is None


def test_a_budget_ends_at_its_date(run, counters, clock):
    until = int((NOON + 100) * 1000)
    run(counters.take([Budget("b", 10, 10, until)]))
    assert run(counters.take([Budget("b", 1, 10, until)])).wait == pytest.approx(100)
    clock.now += 100
    assert run(counters.known(["b"])) == {}
    assert run(counters.take([Budget("b", 1, 10, until + 100_000)])) is None


def test_a_budget_nobody_has_begun_is_not_begun_by_settling(run, counters):
    """Else it would not be seeded with what the ledger knows."""
    run(counters.settle([Budget("b", 5, 10, int((NOON + 100) * 1000))]))
    assert run(counters.known(["b"])) == {}


def test_what_is_over_is_forgotten(run, counters, clock):
    for n in range(50):
        run(counters.take([Rate(f"r{n}", 1, 60, 60.0), Budget(f"b{n}", 1, 9, int((NOON + 1) * 1000))]))
    clock.now += 3600
    for name in ("n", "m"):
        assert run(counters.enter(name, "x", 1, 1.0))
    assert run(counters.cooling()) == {}


def test_places_cool_downs_and_locks_end_on_time(run, counters, clock):
    run(counters.enter("n", "a", 1, 10.0))
    run(counters.lock("l", "a", 10.0))
    run(counters.cool({"c": 10.0}))
    clock.now += 9.9
    assert run(counters.enter("n", "b", 1, 10.0)) is False
    assert run(counters.lock("l", "b", 10.0)) is False
    assert run(counters.cooling())["c"] == pytest.approx(0.1, abs=0.01)
    clock.now += 0.2
    assert run(counters.enter("n", "b", 1, 10.0)) is True
    assert run(counters.lock("l", "b", 10.0)) is True
    assert run(counters.cooling()) == {}


def test_a_place_that_is_renewed_stays(run, counters, clock):
    for _ in range(5):
        assert run(counters.enter("n", "a", 1, 10.0)) is True
        clock.now += 8
        assert run(counters.enter("n", "b", 1, 10.0)) is False


@pytest.mark.parametrize("back", [5.0, 3600.0, 86_400.0 * 365])
def test_a_clock_that_is_set_back_keeps_nobody_waiting(run, shared, clock, back):
    """T20: windows are safe from the clock."""
    run(shared.take([Rate("r", 60, 60, 60.0)]))
    run(shared.enter("n", "a", 1, 10.0))
    run(shared.lock("l", "a", 10.0))
    run(shared.cool({"c": 10.0}))
    clock.now -= back
    assert run(shared.cooling())["c"] <= 10.01
    assert run(shared.take([MINUTE])).wait <= 1.01
    assert run(shared.take([Rate("r", 60, 60, 60.0)])).wait <= 60.01
    clock.now += 10.1
    assert run(shared.enter("n", "b", 1, 10.0)) is True
    assert run(shared.lock("l", "b", 10.0)) is True
    assert run(shared.cooling()) == {}


def test_a_clock_that_was_wrong_for_a_while_leaves_nothing_behind(run, shared, clock):
    clock.now += 86_400 * 365
    run(shared.take([Rate("r", 60, 60, 60.0)]))
    run(shared.cool({"c": 10.0}))
    clock.now -= 86_400 * 365
    assert run(shared.take([MINUTE])).wait <= 1.01
    assert run(shared.cooling())["c"] <= 10.01


def test_two_clocks_that_differ_a_little_do_not_move_the_others(run, shared, clock):
    run(shared.lock("l", "a", 10.0))
    for _ in range(100):
        clock.now += 0.4
        run(shared.check())
        clock.now -= 0.4
        run(shared.check())
    assert run(shared.lock("l", "b", 10.0)) is False
    clock.now += 10.1
    assert run(shared.lock("l", "b", 10.0)) is True


@given(
    st.lists(st.tuples(st.floats(0, 20), st.integers(1, 30)), min_size=1, max_size=60),
    st.integers(1, 50),
    st.floats(1, 100),
)
def test_no_window_passes_more_than_twice_its_limit(asked, limit, seconds):
    """What a leaky bucket promises: a full bucket and what leaks out of it meanwhile."""
    level, now, passed = 0.0, 1_000_000.0, []
    for pause, amount in asked:
        now += pause * 1000
        claim = Rate("r", min(amount, limit), limit, seconds)
        weighed = Weighed([claim], lambda _: level, lambda _: 0, now=now, wall=now)  # noqa: B023  # used at once
        if weighed.denied is None:
            level = weighed.rates["r"]
            passed.append((now, claim.amount))
        else:
            assert math.isfinite(weighed.denied.wait)
            assert 0 < weighed.denied.wait <= seconds + 1e-6
    for start, _ in passed:
        within = sum(amount for at, amount in passed if start <= at < start + seconds * 1000)
        assert within <= 2 * limit + 1e-6
