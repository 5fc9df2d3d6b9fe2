"""Limits of client keys: what is reserved, when it is refused, over minutes, days and months."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.state.quotas_kit import DOLLAR, MIDNIGHT, NOON, SETTINGS, Desk, run, used
from tests.tiers import rows
from wireglot.gateway.errors import error_headers
from wireglot.gateway.state.quotas.budgets import MAX_UNRESERVED_REQUESTS
from wireglot.gateway.targets.routing import route
from wireglot.stores.records import Budget, KeyQuotas
from wireglot_core.ir.outcome import Usage


def test_a_key_without_limits_asks_no_counter() -> None:
    async def work() -> None:
        desk = Desk()
        desk.counters.down = True
        assert await desk.limiter.admit(desk.job(), route(SETTINGS, "mine/priced", "openai-chat")[0]) is None

    run(work())


def test_requests_a_minute_are_given_back_evenly() -> None:
    """The seconds until the next one passes are reported."""

    async def work() -> None:
        desk = Desk(requests_per_minute=2)
        for _ in range(2):
            await desk.settle(await desk.admit(), Usage(input=5))
        fault = await desk.refused()
        assert (fault.error.status, fault.error.code, fault.error.retry_after) == (
            429,
            "rate_limit_exceeded",
            30,
        )
        assert fault.error.message == "this key may use 2 requests a minute: try again in 30 s"
        assert ("retry-after", "30") in error_headers(fault.error, fault.error.status, final=fault.final)
        desk.clock += 30
        await desk.admit()
        await desk.refused()

    run(work())


def test_what_a_request_may_say_is_reserved_and_the_rest_given_back() -> None:
    """THREATS T20"""

    async def work() -> None:
        desk = Desk(tokens_per_minute=1000)
        claim = await desk.admit(max_tokens=900)
        fault = await desk.refused(max_tokens=900)
        assert fault.error.message.startswith("this key may use 1000 tokens a minute")
        await desk.settle(claim, Usage(input=10, output=20))
        await desk.admit(max_tokens=900)

    run(work())


@rows(
    ("dialect", "body", "output"),
    [
        ("openai-chat", {}, 1024),
        ("openai-chat", {"max_tokens": 50}, 50),
        ("openai-chat", {"max_completion_tokens": 60, "max_tokens": 50}, 60),
        ("openai-chat", {"max_tokens": 50, "n": 4}, 200),
        ("openai-chat", {"max_tokens": 10**12, "n": 10**12}, 128 * 1024 * 128),
        ("openai-chat", {"max_tokens": "many", "n": -3}, 1024),
        ("openai-responses", {"max_output_tokens": 70}, 70),
        ("anthropic", {"max_tokens": 80}, 80),
        ("gemini", {"generationConfig": {"maxOutputTokens": 90, "candidateCount": 2}}, 180),
        ("gemini", {"generation_config": {"max_output_tokens": 90}}, 90),
        ("gemini", {"generationConfig": [1]}, 1024),
        ("gemini-simple", {"maxOutputTokens": 40}, 40),
    ],
)
def test_every_dialects_own_words_bound_the_reservation(
    dialect: str, body: dict[str, Any], output: int
) -> None:
    """THREATS T20: `n` and `max_tokens`, and never without end."""

    async def work() -> None:
        desk = Desk(tokens_per_day=10**9)
        claim = await desk.admit(desk.job(dialect, **body))
        assert claim.expected.output == output

    run(work())


def test_a_picture_is_not_reserved_by_its_letters() -> None:
    async def work() -> None:
        desk = Desk(tokens_per_day=10**9)
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'A' * 400_000}"}}
        messages = [{"role": "user", "content": [{"type": "text", "text": "what is this?"}, picture]}]
        claim = await desk.admit(messages=messages)
        assert claim.expected.input < 5_000
        text = [{"role": "user", "content": "a word " * 20_000}]
        claim = await desk.admit(messages=text)
        assert claim.expected.input > 20_000

    run(work())


def test_a_budget_of_tokens_ends_with_the_day_and_says_so() -> None:
    """The true time stands in `retry-after`, and nobody should try before it."""

    async def work() -> None:
        desk = Desk(tokens_per_day=1000)
        claim = await desk.admit(max_tokens=10)
        record = used("a", NOON, input=900, output=200)
        await desk.ledger.apply([record])
        await desk.settle(claim, Usage(input=900, output=200))
        fault = await desk.refused()
        assert fault.error.code == "insufficient_quota"
        headers = dict(error_headers(fault.error, fault.error.status, final=fault.final))
        assert headers == {"retry-after": str(12 * 3600), "x-should-retry": "false"}
        assert "1000 tokens a day" in fault.error.message
        assert "2026-11-16T00:00:00Z" in fault.error.message
        desk.wall = MIDNIGHT
        await desk.admit()

    run(work())


@pytest.mark.parametrize(
    ("dialect", "kind"), [("openai-chat", "billing"), ("anthropic", "billing"), ("gemini", "rate_limit")]
)
def test_a_spent_budget_is_reported_in_each_dialects_own_kind(dialect: str, kind: str) -> None:
    async def work() -> None:
        desk = Desk(tokens_per_day=1)
        await desk.ledger.apply([used("a", NOON, input=5)])
        fault = await desk.refused(desk.job(dialect))
        assert (fault.error.status, fault.error.kind) == (429, kind)

    run(work())


def test_budgets_of_money_over_days_and_months() -> None:
    async def work() -> None:
        desk = Desk(cost_per_day=2 * DOLLAR, cost_per_month=3 * DOLLAR)
        for day in (15, 16):
            assert (await desk.admit(max_tokens=10)).likely_cost > 0
            desk.wall = NOON + (day - 15) * 86_400
            claim = await desk.admit(max_tokens=10)
            await desk.ledger.apply([used(str(day), desk.wall, output=150_000, cost=1_500_000)])
            await desk.settle(claim, Usage(output=150_000))
        assert desk.spent("budget:me:cost:2026-11-15") < 2 * DOLLAR
        fault = await desk.refused()
        assert "3.00 USD a month" in fault.error.message
        assert fault.error.retry_after == 14 * 86_400 + 12 * 3600, "until December"
        desk.wall = NOON + 15 * 86_400 + 12 * 3600
        await desk.admit()

    run(work())


@pytest.mark.parametrize(
    ("limit", "words"),
    [(DOLLAR, "1.00"), (2_500_000, "2.50"), (4_000, "0.004"), (1_000_001, "1.000001"), (1, "0.000001")],
)
def test_a_budget_is_named_to_the_last_digit(limit: int, words: str) -> None:
    async def work() -> None:
        desk = Desk(cost_per_day=limit)
        await desk.ledger.apply([used("a", NOON, cost=limit)])
        assert f"its budget of {words} USD a day" in (await desk.refused()).error.message

    run(work())


def test_what_runs_over_midnight_is_charged_to_the_day_on_which_it_began() -> None:
    async def work() -> None:
        desk = Desk(tokens_per_day=1000)
        desk.wall = MIDNIGHT - 1
        before = [await desk.admit(max_tokens=10) for _ in range(3)]
        desk.wall = MIDNIGHT
        after = await desk.admit(max_tokens=10)
        yesterday, today = (f"budget:me:tokens:2026-11-{day}" for day in (15, 16))
        assert desk.limiter.budgets._held == {yesterday: 3, today: 1}
        for claim in (*before, after):
            await desk.settle(claim, Usage(output=400))
        assert await desk.counters.known([yesterday, today]) == {today: 400}, "yesterday is over"
        assert not desk.limiter.budgets._held
        assert not desk.limiter.budgets._reserved
        await desk.admit()

    run(work())


def test_a_limit_that_is_changed_applies_to_the_next_request() -> None:
    async def work() -> None:
        desk = Desk(tokens_per_day=1000)
        running = await desk.admit(max_tokens=10)
        await desk.settle(await desk.admit(max_tokens=10), Usage(output=500))
        for limit, refused in ((400, "insufficient_quota"), (500, "insufficient_quota"), (501, "")):
            desk.limits = KeyQuotas(tokens_per_day=limit)
            if refused:
                fault = await desk.refused()
                assert (fault.error.code, fault.final) == (refused, True)
                assert f"{limit} tokens a day" in fault.error.message
            else:
                await desk.settle(await desk.admit(), Usage(output=1))
        await desk.settle(running, Usage(output=100))
        assert desk.spent("budget:me:tokens:2026-11-15") == 601

    run(work())


def test_money_is_settled_at_the_price_of_the_one_that_answered() -> None:
    async def work() -> None:
        desk = Desk(cost_per_day=100 * DOLLAR)
        claim = await desk.admit(max_tokens=10)
        await desk.settle(claim, Usage(input=1_000_000, output=100_000), route="dear/any")
        assert desk.spent("budget:me:cost:2026-11-15") == 10 * DOLLAR
        claim = await desk.admit(max_tokens=10)
        await desk.settle(claim, Usage(output=5), route="mine/unpriced")
        assert desk.spent("budget:me:cost:2026-11-15") == 10 * DOLLAR + claim.likely_cost

    run(work())


def test_a_model_without_a_price_cannot_be_paid_from_a_budget() -> None:
    async def work() -> None:
        fault = await Desk(cost_per_day=DOLLAR).refused(model="mine/unpriced")
        assert (fault.error.status, fault.error.code) == (403, "price_unknown")
        assert "[prices]" in fault.error.message
        await Desk(tokens_per_day=5).admit(model="mine/unpriced")

    run(work())


def test_a_budget_begins_from_what_the_ledger_says() -> None:
    """A restart of the counters forgets nothing."""

    async def work() -> None:
        desk = Desk(tokens_per_day=100, tokens_per_month=1000)
        yesterday = used("a", NOON - 86_400, input=500)
        today = used("b", NOON, input=70)
        other = used("c", NOON, "other", input=5000)
        await desk.ledger.apply([yesterday, today, other])
        claim = await desk.admit(max_tokens=5)
        await desk.settle(claim, Usage(input=1))
        assert desk.spent("budget:me:tokens:2026-11-15") == 71
        assert desk.spent("budget:me:tokens:2026-11") == 571
        desk.counters._budgets.clear()
        await desk.ledger.apply([used("d", NOON, input=40)])
        fault = await desk.refused()
        assert fault.error.code == "insufficient_quota"

    run(work())


def test_what_others_have_only_reserved_is_worth_waiting_for() -> None:
    async def work() -> None:
        desk = Desk(tokens_per_day=100)
        claims = [await desk.admit(max_tokens=500) for _ in range(MAX_UNRESERVED_REQUESTS)]
        fault = await desk.refused(max_tokens=5)
        assert (fault.error.code, fault.final) == ("rate_limit_exceeded", False)
        assert "running requests" in fault.error.message
        await desk.settle(claims[0], Usage(input=5, output=5))
        await desk.admit(max_tokens=5)

    run(work())


def test_budgets_are_named_by_caller_and_period() -> None:
    async def work() -> None:
        desk = Desk(tokens_per_day=5, tokens_per_month=5, cost_per_day=5, cost_per_month=5)
        claim = await desk.admit()
        budgets = [limit.claim for limit in claim.limits if isinstance(limit.claim, Budget)]
        assert {(budget.name, budget.until // 1000) for budget in budgets} == {
            ("budget:me:tokens:2026-11-15", int(MIDNIGHT)),
            ("budget:me:tokens:2026-11", int(MIDNIGHT) + 15 * 86_400),
            ("budget:me:cost:2026-11-15", int(MIDNIGHT)),
            ("budget:me:cost:2026-11", int(MIDNIGHT) + 15 * 86_400),
        }

    run(work())
