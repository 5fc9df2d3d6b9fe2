"""Queries and reports of usage, for the HTTP API and `wireglot usage`."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from wireglot.stores.base import Ledger
from wireglot.stores.records import MICRO, Grouping, UsageQuery, UsageTotal, added
from wireglot_core.ir.usage import KINDS

GROUPS: Final[dict[str, Grouping]] = {
    "key": "caller",
    "group": "caller_group",
    "model": "model",
    "provider": "provider",
    "day": "day",
    "session": "session",
    "outcome": "outcome",
    "operation": "operation",
    "purpose": "purpose",
    "agent": "agent",
    "client": "client",
}
PARAMETERS: Final = (
    "group_by", "start", "end", "key", "group", "model", "provider", "client", "agent", "session",
)  # fmt: skip
DEFAULT_GROUPS: Final = "day,model"
DEFAULT_START: Final = "30d"
# Rows of a usage report.
ROWS_MAX: Final = 10_000
_RELATIVE: Final = re.compile(r"([0-9]{1,6})([mhdw])")
_UNITS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_TIME: Final = "unix seconds, YYYY-MM-DD or a time ago like 12h, 7d, 4w"


class BadParameter(ValueError):
    def __init__(self, name: str, expected: str) -> None:
        super().__init__(f"{name}: expected {expected}")
        self.name = name


def query_of(given: Mapping[str, str], now: float | None = None) -> UsageQuery:
    """Parse query parameters. Raises BadParameter, which names the invalid one."""
    for name in given:
        if name not in PARAMETERS:
            raise BadParameter(name, f"one of the parameters {', '.join(PARAMETERS)}")
    now = time.time() if now is None else now
    since = moment("start", given.get("start") or DEFAULT_START, now)
    until = moment("end", given["end"], now) if given.get("end") else 0
    if until and until <= since:
        raise BadParameter("end", "a time after start")
    return UsageQuery(
        groups=_groups(given.get("group_by") or DEFAULT_GROUPS),
        since=since,
        until=until,
        caller=given.get("key") or None,
        model=given.get("model", ""),
        provider=given.get("provider", ""),
        session=given.get("session", ""),
        group=given.get("group", ""),
        client=given.get("client", ""),
        agent=given.get("agent", ""),
    )


async def report(ledger: Ledger, query: UsageQuery, currency: str) -> dict[str, Any]:
    totals = await ledger.totals(query)
    whole = added(totals)
    names = [next(name for name, group in GROUPS.items() if group == each) for each in query.groups]
    document: dict[str, Any] = {
        "object": "usage.list",
        "currency": currency,
        "start": query.since // 1000,
        "end": query.until // 1000 or None,
        "group_by": names,
        "data": [
            {**dict(zip(names, total.group, strict=True)), **_reported(total)} for total in totals[:ROWS_MAX]
        ],
        "total": _reported(whole),
        "durations": "measured" if whole.took.is_exact else "within_5_percent",
    }
    if len(totals) > ROWS_MAX:
        document["has_more"] = True
    return document


def money(amount: int) -> str:
    """Millionths as an exact decimal number."""
    sign, amount = ("-", -amount) if amount < 0 else ("", amount)
    return f"{sign}{amount // MICRO}.{amount % MICRO:06d}"


def _reported(total: UsageTotal) -> dict[str, Any]:
    """Kinds of tokens that do not overlap, and totals that include them."""
    ended = total.requests - total.open
    known = total.cost > 0 or not total.unpriced
    tokens = total.tokens
    taken = sum(tokens[kind] for kind, about in KINDS.items() if about.side == "input")
    given = sum(tokens[kind] for kind, about in KINDS.items() if about.side == "output")
    return {
        "requests": total.requests,
        "succeeded": ended - total.failed,
        "failed": total.failed,
        "open": total.open,
        **{f"{kind}_tokens": tokens[kind] for kind in KINDS},
        "total_input_tokens": taken,
        "total_output_tokens": given,
        "total_tokens": taken + given,
        # an unknown price does not mean free
        "cost_micros": total.cost if known else None,
        "cost": money(total.cost) if known else None,
        "unpriced_requests": total.unpriced,
        "mean_ms": round(total.milliseconds / ended) if ended else 0,
        "p50_ms": total.took.percentile(50) or 0,
        "first": total.first // 1000,
        "last": total.last // 1000,
    }


def _groups(text: str) -> tuple[Grouping, ...]:
    found: list[Grouping] = []
    for name in filter(None, (piece.strip() for piece in text.split(","))):
        group = GROUPS.get(name)
        if group is None:
            raise BadParameter("group_by", f"one or more of {', '.join(GROUPS)}, separated by commas")
        if group not in found:
            found.append(group)
    return tuple(found)


def moment(name: str, text: str, now: float) -> int:
    """Unix milliseconds. A day as the end of a period means the end of that day."""
    relative = _RELATIVE.fullmatch(text)
    if relative is not None:
        return max(0, int((now - int(relative[1]) * _UNITS[relative[2]]) * 1000))
    if text.isascii() and text.isdigit() and len(text) <= 11:
        return int(text) * 1000
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
        if name == "end":
            day += timedelta(days=1)
    except (ValueError, OverflowError):
        raise BadParameter(name, _TIME) from None
    return max(0, int(day.timestamp()) * 1000)
