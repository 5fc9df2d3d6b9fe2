"""Usage added up, by PostgreSQL."""

from __future__ import annotations

from typing import Any, Final

from wireglot.stores.records import Grouping, Session, UsageQuery, UsageTotal
from wireglot.stores.text import from_text, to_text

TOKENS: Final = "(input + cache_read + cache_write + cache_write_long + tool_prompt + output + reasoning)"
_MODEL: Final = "CASE WHEN upstream_model <> '' THEN upstream_model ELSE model END"
_GROUPS: Final[dict[Grouping, str]] = {
    "caller": "caller",
    "model": _MODEL,
    "provider": "provider",
    "day": "to_char(to_timestamp(started / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
    "session": "session",
    "outcome": "outcome",
}
_SUMS: Final = f"""
    count(*) AS requests,
    count(*) FILTER (WHERE outcome NOT IN ('', 'ok')) AS failed,
    count(*) FILTER (WHERE outcome = '') AS open,
    coalesce(sum(input::numeric + tool_prompt), 0) AS input,
    coalesce(sum(cache_read), 0) AS cache_read,
    coalesce(sum(cache_write::numeric + cache_write_long), 0) AS cache_write,
    coalesce(sum(output), 0) AS output,
    coalesce(sum(reasoning), 0) AS reasoning,
    coalesce(sum(cost), 0) AS cost,
    count(*) FILTER (
        WHERE outcome <> '' AND cost IS NULL AND ({TOKENS} > 0 OR outcome = 'ok' AND source = 'none')
    ) AS unpriced,
    coalesce(sum(finished - started) FILTER (WHERE outcome <> ''), 0) AS milliseconds,
    coalesce(percentile_disc(0.5) WITHIN GROUP (ORDER BY finished - started)
        FILTER (WHERE outcome <> ''), 0) AS p50,
    coalesce(min(started), 0) AS first,
    coalesce(max(started), 0) AS last
"""
_SUM_NAMES: Final = tuple(name for name in UsageTotal.__struct_fields__ if name != "group")


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
    groups = [f"{_GROUPS[group]} AS group_{at}" for at, group in enumerate(query.groups)]
    by = "GROUP BY " + ", ".join(str(at) for at in range(1, len(groups) + 1)) if groups else ""
    return f"SELECT {', '.join([*groups, _SUMS])} FROM usage {where} {by}", values


def total(record: Any, groups: tuple[Grouping, ...]) -> UsageTotal:
    return UsageTotal(
        group=tuple(from_text(record[f"group_{at}"]) for at in range(len(groups))),
        **{name: int(record[name]) for name in _SUM_NAMES},
    )


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
