"""The budget of a key in the form Claude Code shows: headers of answers, and the document of `/usage`.

Source: the contract that `claude gateway` prints at `GET /protocol` (2.1.326), "Usage-limit headers".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from wireglot_core.dialects.surface import BudgetReports, BudgetStanding, Spending

_UNIFIED: Final = "anthropic-ratelimit-unified-"
_THRESHOLDS: Final = (0.95, 0.75)
"""Shares above which the client shows a notice."""
_MAX_SHARE: Final = 0.99
"""The share of a used budget that is reported while requests are allowed: 1 is for refused ones."""
_PERIODS: Final = {"day": "daily", "month": "monthly"}
_MICRO_PER_CENT: Final = 10_000


def _allowed(standing: BudgetStanding) -> tuple[tuple[str, str], ...]:
    share, reset = standing.share, str(standing.resets)
    passed = next((threshold for threshold in _THRESHOLDS if share > threshold), None)
    status = "allowed" if passed is None else "allowed_warning"
    headers = [
        ("status", status),
        ("reset", reset),
        ("overage-reset", reset),
        ("overage-utilization", f"{min(_MAX_SHARE, round(share, 2)):g}"),
        # The claim that means no rolling window: the client computes times from the others.
        ("representative-claim", "overage"),
        ("overage-status", status),
    ]
    if passed is not None:
        headers.append(("overage-surpassed-threshold", f"{passed:g}"))
    return tuple((_UNIFIED + name, value) for name, value in headers)


def _refused(spent: BudgetStanding | None) -> tuple[tuple[str, str], ...]:
    """Without `representative-claim` and `overage-status`: with them the client prints its own sentence
    instead of the error's."""
    if spent is None:
        return ((f"{_UNIFIED}overage-disabled-reason", "fetch_error"),)
    reset = str(spent.resets)
    headers = [
        ("status", "rejected"),
        ("reset", reset),
        ("overage-reset", reset),
        ("overage-utilization", "1"),
        ("overage-surpassed-threshold", "1"),
        ("overage-period", _PERIODS[spent.period]),
        ("overage-disabled-reason", "org_spend_cap_reached"),
    ]
    if spent.shared:
        headers.append(("overage-scope", "group_pool"))
    return tuple((_UNIFIED + name, value) for name, value in headers)


def _page(standings: Sequence[BudgetStanding], spending: Spending, currency: str) -> dict[str, Any]:
    """The `/usage` document. `extra_usage` is about money: the fullest budget in money, which is the active
    row."""
    ordered = sorted(standings, key=lambda each: (each.resets, each.period))
    active = max((each for each in ordered if each.unit == "cost"), key=lambda each: each.share, default=None)
    usage: dict[str, Any] = {"is_enabled": True, "monthly_limit": None, "utilization": None}
    usage["used_credits"] = spending.month // _MICRO_PER_CENT
    usage["currency"] = currency
    if active is not None:
        usage["monthly_limit"] = active.limit // _MICRO_PER_CENT
        usage["used_credits"] = active.used // _MICRO_PER_CENT
        usage["utilization"] = _percent(active)
    else:
        usage["daily"] = _unlimited(spending.day)
        usage["weekly"] = _unlimited(spending.week)
    return {"extra_usage": usage, "limits": [_row(each, is_active=each is active) for each in ordered]}


def _unlimited(micros: int) -> dict[str, Any]:
    return {"limit": None, "used_credits": micros // _MICRO_PER_CENT, "utilization": None}


def _row(standing: BudgetStanding, *, is_active: bool) -> dict[str, Any]:
    passed = sum(standing.share > threshold for threshold in _THRESHOLDS)
    return {
        "kind": "spend",
        "group": _PERIODS[standing.period],
        "percent": _percent(standing),
        "resets_at": standing.resets_at.replace("Z", ".000Z"),
        "severity": ("normal", "warning", "critical")[passed],
        "is_active": is_active,
    }


def _percent(standing: BudgetStanding) -> int:
    return standing.used * 100 // standing.limit


BUDGETS: Final = BudgetReports(allowed=_allowed, refused=_refused, page=_page)
