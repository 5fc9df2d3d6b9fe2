"""Budgets as Claude Code reads them: headers of answers and the document of `/usage`."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.tiers import rows
from wireglot_core.dialects.anthropic.budgets import BUDGETS
from wireglot_core.dialects.surface import BudgetStanding, Spending

PREFIX = "anthropic-ratelimit-unified-"
MONEY = BudgetStanding("cost", "month", 0, 20_000_000, 1_796_083_200, "2026-12-01T00:00:00Z")


def used(share: float, **more: Any) -> BudgetStanding:
    return msgspec.structs.replace(MONEY, used=round(share * MONEY.limit), **more)


def told(headers: tuple[tuple[str, str], ...]) -> dict[str, str]:
    assert all(name.startswith(PREFIX) for name, _ in headers)
    return {name.removeprefix(PREFIX): value for name, value in headers}


@rows(
    ("share", "status", "shown", "threshold"),
    [
        (0.0, "allowed", "0", None),
        (0.75, "allowed", "0.75", None),
        (0.76, "allowed_warning", "0.76", "0.75"),
        (0.95, "allowed_warning", "0.95", "0.75"),
        (0.96, "allowed_warning", "0.96", "0.95"),
        (0.999, "allowed_warning", "0.99", "0.95"),
        (1.5, "allowed_warning", "0.99", "0.95"),
    ],
)
def test_while_requests_are_allowed_the_client_warns_past_a_threshold(
    share: float, status: str, shown: str, threshold: str | None
) -> None:
    headers = told(BUDGETS.allowed(used(share)))
    assert headers.pop("overage-surpassed-threshold", None) == threshold
    assert headers == {
        "status": status,
        "overage-status": status,
        "reset": "1796083200",
        "overage-reset": "1796083200",
        "overage-utilization": shown,
        "representative-claim": "overage",
    }


@rows(("period", "word"), [("day", "daily"), ("month", "monthly")])
def test_a_refusal_says_which_budget_is_spent_and_lets_the_error_speak(period: str, word: str) -> None:
    headers = told(BUDGETS.refused(used(1.0, period=period)))
    assert headers == {
        "status": "rejected",
        "reset": "1796083200",
        "overage-reset": "1796083200",
        "overage-utilization": "1",
        "overage-surpassed-threshold": "1",
        "overage-period": word,
        "overage-disabled-reason": "org_spend_cap_reached",
    }
    shared = told(BUDGETS.refused(used(1.0, period=period, shared=True)))
    assert shared == {**headers, "overage-scope": "group_pool"}


def test_a_refusal_for_which_nobody_knows_the_budget_says_so() -> None:
    assert told(BUDGETS.refused(None)) == {"overage-disabled-reason": "fetch_error"}


def test_the_page_is_about_the_fullest_budget_in_money() -> None:
    tokens = BudgetStanding("tokens", "day", 90, 100, 1_795_910_400, "2026-11-29T00:00:00Z")
    less, more = used(0.2), used(0.8, period="day", resets=1_795_910_400, resets_at="2026-11-29T00:00:00Z")
    page = BUDGETS.page([less, tokens, more], Spending(1, 2, 3), "EUR")
    assert page["extra_usage"] == {
        "is_enabled": True,
        "monthly_limit": 2000,
        "used_credits": 1600,
        "utilization": 80,
        "currency": "EUR",
    }
    assert page["limits"] == [
        {"kind": "spend", "group": "daily", "percent": 90, "resets_at": "2026-11-29T00:00:00.000Z",
         "severity": "warning", "is_active": False},
        {"kind": "spend", "group": "daily", "percent": 80, "resets_at": "2026-11-29T00:00:00.000Z",
         "severity": "warning", "is_active": True},
        {"kind": "spend", "group": "monthly", "percent": 20, "resets_at": "2026-12-01T00:00:00.000Z",
         "severity": "normal", "is_active": False},
    ]  # fmt: skip
    (critical,) = BUDGETS.page([used(0.96)], Spending(1, 2, 3), "EUR")["limits"]
    assert critical["severity"] == "critical"


def test_without_a_budget_in_money_the_page_tells_what_was_spent() -> None:
    usage = BUDGETS.page([], Spending(10_000, 29_999, 4_000_000), "USD")["extra_usage"]
    assert usage == {
        "is_enabled": True,
        "monthly_limit": None,
        "utilization": None,
        "used_credits": 400,
        "currency": "USD",
        "daily": {"limit": None, "used_credits": 1, "utilization": None},
        "weekly": {"limit": None, "used_credits": 2, "utilization": None},
    }
