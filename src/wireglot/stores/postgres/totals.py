"""Usage added up, by PostgreSQL."""

from __future__ import annotations

from typing import Any, Final

from wireglot.stores.records import Grouping, Session, UsageQuery
from wireglot.stores.sql import TOKENS, from_text, sums, to_text

_MODEL: Final = "CASE WHEN upstream_model <> '' THEN upstream_model ELSE model END"
_GROUPS: Final[dict[Grouping, str]] = {
    "caller": "caller",
    "model": _MODEL,
    "provider": "provider",
    "day": "to_char(to_timestamp(started / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
    "session": "session",
    "outcome": "outcome",
    "operation": "operation",
}
_SUMS: Final = sums(
    {
        "requests": "count(*)",
        "failed": "count(*) FILTER (WHERE outcome NOT IN ('', 'ok'))",
        "open": "count(*) FILTER (WHERE outcome = '')",
        "cost": "coalesce(sum(cost), 0)",
        "unpriced": "count(*) FILTER (WHERE outcome <> '' AND cost IS NULL "
        f"AND ({TOKENS} > 0 OR outcome = 'ok' AND source = 'none'))",
        "milliseconds": "coalesce(sum(finished - started) FILTER (WHERE outcome <> ''), 0)",
        "p50": "coalesce(percentile_disc(0.5) WITHIN GROUP (ORDER BY finished - started) "
        "FILTER (WHERE outcome <> ''), 0)",
        "first": "coalesce(min(started), 0)",
        "last": "coalesce(max(started), 0)",
    },
    cast="::numeric",  # a row's counts are bigints that need not be one together
)


def conditions(query: UsageQuery) -> tuple[str, list[object]]:
    """A WHERE and its values."""
    parts = ["started >= $1"]
    values: list[object] = [query.since]

    def add(condition: str, value: object) -> None:
        values.append(value)
        parts.append(condition.replace("?", f"${len(values)}"))

    if query.until:
        add("started < ?", query.until)
    if query.caller is not None:
        add("caller = ?", to_text(query.caller))
    if query.model:
        add(f"{_MODEL} = ?", to_text(query.model))
    if query.provider:
        add("provider = ?", to_text(query.provider))
    if query.session:
        add("md5(session) = md5(?) AND session = ? AND session <> ''", to_text(query.session))
    return "WHERE " + " AND ".join(parts), values


def totals_query(query: UsageQuery) -> tuple[str, list[object]]:
    where, values = conditions(query)
    groups = [_GROUPS[group] for group in query.groups]
    by = "GROUP BY " + ", ".join(str(at) for at in range(1, len(groups) + 1)) if groups else ""
    return f"SELECT {', '.join([*groups, _SUMS])} FROM usage {where} {by}", values


SESSIONS: Final = f"""
SELECT session, count(*) AS requests, sum({TOKENS}) AS tokens, coalesce(sum(cost), 0) AS cost,
    (array_agg(model ORDER BY started DESC, id DESC))[1] AS model,
    array_agg(DISTINCT dialect) FILTER (WHERE dialect <> '') AS dialects,
    min(started) AS first, max(started) AS last
FROM usage WHERE caller = $1 AND session <> ''
GROUP BY session HAVING $2::bigint = 0 OR (max(started), session) < ($2, $3)
ORDER BY last DESC, session DESC LIMIT $4
"""


def session(record: Any, caller: str) -> Session:
    return Session(
        id=from_text(record["session"]),
        caller=caller,
        requests=record["requests"],
        tokens=int(record["tokens"]),
        cost=int(record["cost"]),
        model=from_text(record["model"]),
        dialects=tuple(sorted(from_text(dialect) for dialect in record["dialects"] or ())),
        first=record["first"],
        last=record["last"],
    )
