"""The contract of counters, over every store. Windows are hours, so that no test depends on how long it takes."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.waiting import until
from wireglot.stores.records import Budget, Rate

HOUR = 3600.0


def later() -> int:
    return int((time.time() + HOUR) * 1000)


def rate(amount: int = 1, name: str = "r", limit: int = 10) -> Rate:
    return Rate(name, amount, limit, HOUR)


def test_a_rate_passes_up_to_its_limit_and_then_tells_the_wait(run, counters):
    """R-Z, T20"""
    for _ in range(10):
        assert run(counters.take([rate()])) is None
    denied = run(counters.take([rate()]))
    assert denied is not None
    assert denied.name == "r"
    # A tenth of the window frees one; a little of it has gone by.
    assert HOUR / 10 - 60 < denied.wait <= HOUR / 10
    more = run(counters.take([rate(5)]))
    assert HOUR / 2 - 60 < more.wait <= HOUR / 2


def test_what_is_larger_than_the_limit_passes_an_empty_bucket_and_is_paid_back(run, counters):
    """T20"""
    assert run(counters.take([rate(15)])) is None
    denied = run(counters.take([rate(1)]))
    assert HOUR * 0.6 - 60 < denied.wait <= HOUR * 0.6
    # What is larger than the bucket waits until it is empty.
    assert HOUR * 1.5 - 60 < run(counters.take([rate(15)])).wait <= HOUR * 1.5


def test_rates_are_settled_both_ways(run, counters):
    """T20: a stream that was aborted pays for what it had."""
    assert run(counters.take([rate(10)])) is None
    run(counters.settle([rate(-4)]))
    assert run(counters.take([rate(4)])) is None
    assert run(counters.take([rate(1)])) is not None
    run(counters.settle([rate(10)]))
    assert run(counters.take([rate(1)])).wait > HOUR


def test_no_debt_is_longer_than_two_windows(run, counters):
    """T20: one answer of unforeseen length locks nobody out for long, whatever the store."""
    assert run(counters.take([rate(200)])) is None
    assert 2 * HOUR - 60 < run(counters.take([rate(10)])).wait <= 2 * HOUR
    assert run(counters.take([rate(1, "settled")])) is None
    run(counters.settle([rate(199, "settled")]))
    run(counters.settle([rate(50, "settled")]))
    assert 2 * HOUR - 60 < run(counters.take([rate(10, "settled")])).wait <= 2 * HOUR
    run(counters.settle([rate(-15, "settled")]))
    assert 0.5 * HOUR - 60 < run(counters.take([rate(10, "settled")])).wait <= 0.5 * HOUR


def test_giving_back_more_than_there_was_is_no_credit(run, counters):
    run(counters.settle([rate(-1000)]))
    assert run(counters.take([rate(10)])) is None
    assert run(counters.take([rate(1)])) is not None


def test_a_budget_passes_while_anything_is_left(run, counters):
    until = later()
    assert run(counters.take([Budget("b", 60, 100, until)])) is None
    assert run(counters.take([Budget("b", 60, 100, until)])) is None
    denied = run(counters.take([Budget("b", 1, 100, until)]))
    assert denied.name == "b"
    assert HOUR - 60 < denied.wait <= HOUR
    run(counters.settle([Budget("b", -21, 100, until)]))
    assert run(counters.take([Budget("b", 1, 100, until)])) is None


def test_giving_back_more_than_was_spent_is_no_credit_for_a_budget(run, counters):
    """A budget below zero would let through more than its limit."""
    until_then = later()
    assert run(counters.take([Budget("b", 10, 100, until_then)])) is None
    run(counters.settle([Budget("b", -60, 100, until_then)]))
    assert run(counters.amounts(["b"])) == {"b": 0}
    assert run(counters.take([Budget("b", 100, 100, until_then)])) is None
    assert run(counters.take([Budget("b", 1, 100, until_then)])) is not None


def test_a_budget_that_is_over_begins_again(run, counters):
    over = int(time.time() * 1000) - 1000
    run(counters.seed("b", 1000, over))
    assert run(counters.known(["b"])) == {}
    assert run(counters.take([Budget("b", 1, 10, later())])) is None


def test_a_budget_is_seeded_once(run, counters):
    until = later()
    assert run(counters.known(["a", "b"])) == {}
    run(counters.seed("a", 99, until))
    run(counters.seed("a", 0, until))
    assert run(counters.known(["a", "b"])) == {"a": 99}
    assert run(counters.take([Budget("a", 5, 100, until)])) is None
    assert run(counters.take([Budget("a", 5, 100, until)])) is not None
    run(counters.take([Budget("b", 5, 100, until)]))
    assert run(counters.known(["a", "b"])) == {"a": 104, "b": 5}
    run(counters.seed("b", 100, until))
    assert run(counters.take([Budget("b", 5, 100, until)])) is None


def test_what_is_taken_of_budgets_can_be_reported(run, counters):
    until = later()
    run(counters.seed("a", 99, until))
    run(counters.take([Budget("b", 5, 100, until)]))
    run(counters.settle([Budget("b", -2, 100, until)]))
    run(counters.seed("over", 7, int(time.time() * 1000) - 1000))
    assert run(counters.amounts(["a", "b", "over", "never"])) == {"a": 99, "b": 3}
    assert run(counters.amounts([])) == {}


def test_several_claims_pass_together_or_not_at_all(run, counters):
    until = later()
    run(counters.seed("full", 100, until))
    claims = [rate(4, "x"), rate(4, "y"), Budget("open", 5, 100, until), Budget("full", 1, 100, until)]
    assert run(counters.take(claims)).name == "full"
    assert run(counters.known(["open"])) == {}
    assert run(counters.take([rate(10, "x"), rate(10, "y")])) is None


def test_of_several_denials_the_longest_wait_is_reported(run, counters):
    assert run(counters.take([rate(10, "short"), rate(20, "long")])) is None
    assert run(counters.take([rate(1, "short"), rate(1, "long")])).name == "long"


def test_a_limit_holds_however_many_ask_at_once(run, counters):
    async def race() -> int:
        answers = await asyncio.gather(*(counters.take([rate(1), rate(1, "other", 1000)]) for _ in range(60)))
        return answers.count(None)

    assert run(race()) == 10


def test_nothing_to_take_passes(run, counters):
    assert run(counters.take([])) is None
    run(counters.settle([]))
    run(counters.cool({}))
    assert run(counters.known([])) == {}


def test_no_more_than_the_limit_hold_a_place(run, counters):
    assert [run(counters.enter("n", holder, 2, HOUR)) for holder in "abc"] == [True, True, False]
    assert run(counters.enter("n", "a", 2, HOUR)) is True
    assert run(counters.enter("other", "c", 2, HOUR)) is True
    run(counters.leave("n", "b"))
    run(counters.leave("n", "nobody"))
    assert run(counters.enter("n", "c", 2, HOUR)) is True
    assert run(counters.enter("n", "b", 2, HOUR)) is False


def test_the_place_of_one_that_died_becomes_free(run, counters):
    run(counters.enter("n", "dead", 1, 0.05))
    run(until(lambda: counters.enter("n", "next", 1, HOUR)))
    assert run(counters.enter("n", "dead", 1, HOUR)) is False


def test_cool_downs_are_reported_to_all_and_the_longer_holds(run, counters):
    assert run(counters.cooling()) == {}
    run(counters.cool({"a": 100.0, "b": 500.0}))
    run(counters.cool({"a": 1000.0, "b": 5.0}))
    left = run(counters.cooling())
    assert set(left) == {"a", "b"}
    assert 900 < left["a"] <= 1000
    assert 400 < left["b"] <= 500


def test_cool_downs_end(run, counters):
    run(counters.cool({"a": 0.05, "b": HOUR}))

    async def over() -> bool:
        return set(await counters.cooling()) == {"b"}

    run(until(over))


def test_a_lock_has_one_holder(run, counters):
    assert run(counters.lock("n", "a", HOUR)) is True
    assert run(counters.lock("n", "b", HOUR)) is False
    assert run(counters.lock("n", "a", HOUR)) is True
    assert run(counters.lock("other", "b", HOUR)) is True
    run(counters.unlock("n", "b"))
    assert run(counters.lock("n", "b", HOUR)) is False
    run(counters.unlock("n", "a"))
    run(counters.unlock("n", "a"))
    assert run(counters.lock("n", "b", HOUR)) is True


def test_a_lock_ends_by_itself(run, counters):
    run(counters.lock("n", "dead", 0.05))
    run(until(lambda: counters.lock("n", "next", HOUR)))
    run(counters.unlock("n", "dead"))
    assert run(counters.lock("n", "dead", HOUR)) is False


def test_of_many_that_want_a_lock_one_gets_it(run, counters):
    async def race():
        return await asyncio.gather(*(counters.lock("n", f"h{n}", HOUR) for n in range(30)))

    assert run(race()).count(True) == 1


def test_it_says_that_it_is_there(run, counters):
    run(counters.check())


@pytest.mark.parametrize("name", ["a b", "{x}", "*", "é🙂", "k:1\n2"])
def test_odd_names_are_names(run, counters, name):
    run(counters.take([rate(10, name)]))
    run(counters.cool({name: HOUR}))
    assert run(counters.take([rate(1, name)])) is not None
    assert set(run(counters.cooling())) == {name}
    assert run(counters.enter(name, name, 1, HOUR)) is True
