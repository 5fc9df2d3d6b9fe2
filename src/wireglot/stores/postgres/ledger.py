"""Requests: begun once, completed once."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from wireglot.ir.usage import COUNTS
from wireglot.stores.postgres.documents import NOW
from wireglot.stores.postgres.pool import LONG_SECONDS, PostgresPool
from wireglot.stores.records import Grouping, Session, UsageQuery, UsageRow, UsageTotal, gives_way
from wireglot.stores.sql import (
    TOKENS,
    USAGE,
    USAGE_COLUMNS,
    USAGE_NAMES,
    Column,
    Sort,
    from_text,
    sums,
    to_text,
    usage_total,
)

_LARGEST: Final = 1 << (63 - len(COUNTS).bit_length())
"""A provider that counts beyond it must not keep the other rows from being written; all token counts of a row
together still are a bigint."""
_ARRAYS: Final[dict[Sort, str]] = {
    "text": "text[]",
    "word": "text[]",
    "number": "bigint[]",
    "flag": "boolean[]",
    "list": "text[]",
}

_UNNEST: Final = ", ".join(f"${at}::{_ARRAYS[column.sort]}" for at, column in enumerate(USAGE, 1))
INSERT: Final = f"INSERT INTO usage ({USAGE_COLUMNS}) SELECT * FROM unnest({_UNNEST}) "


def columns(rows: Iterable[UsageRow]) -> list[list[Any]]:
    """As arrays, by id: two writers that lock the same rows cannot then wait for each other."""
    ordered = sorted(rows, key=lambda row: row.id)
    return [[_to_column(column.sort, getattr(row, column.name)) for row in ordered] for column in USAGE]


def usage_row(record: Any) -> UsageRow:
    return UsageRow(**{column.name: _from_column(column, record[column.name]) for column in USAGE})


def _to_column(sort: Sort, value: Any) -> Any:
    match sort:
        case "number":
            return None if value is None else max(-_LARGEST, min(_LARGEST, value))
        case "text" | "word":
            return to_text(value)
        case "list":
            return msgspec.json.encode(value).decode()
    return value


def _from_column(column: Column, value: Any) -> Any:
    match column.sort:
        case "text":
            return from_text(value)
        case "word":
            # Interned: msgspec leaves out a default only where it is the very same object.
            return sys.intern(from_text(value))
        case "list":
            return msgspec.json.decode(value, type=tuple[str, ...])
    return value


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


_COMPLETE: Final = (
    "ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in USAGE_NAMES if name != "id")
    + " WHERE usage.outcome IN ('', 'crash') AND excluded.outcome NOT IN ('', usage.outcome)"
)


class PostgresLedger:
    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    async def apply(self, rows: Sequence[UsageRow]) -> None:
        if rows:
            await self._pool.execute(INSERT + _COMPLETE, *columns(_each_once(rows)))

    async def totals(self, query: UsageQuery) -> list[UsageTotal]:
        statement, values = totals_query(query)
        records = await self._pool.fetch(statement, *values, seconds=LONG_SECONDS)
        count = len(query.groups)
        totals = [
            usage_total(tuple(map(from_text, found[:count])), found[count:]) for found in map(tuple, records)
        ]
        return sorted(totals, key=lambda total: total.group)

    async def rows(self, query: UsageQuery, *, limit: int, newest_first: bool = True) -> list[UsageRow]:
        where, values = conditions(query)
        order = "DESC" if newest_first else "ASC"
        records = await self._pool.fetch(
            f"SELECT {USAGE_COLUMNS} FROM usage {where} "
            f"ORDER BY started {order}, id {order} LIMIT ${len(values) + 1}",
            *values,
            limit,
            seconds=LONG_SECONDS,
        )
        return [usage_row(record) for record in records]

    async def spent(self, caller: str, since: int) -> tuple[int, int]:
        records = await self._pool.fetch(
            f"SELECT coalesce(sum({TOKENS}), 0), coalesce(sum(cost), 0) FROM usage "
            "WHERE caller = $1 AND started >= $2 AND outcome <> ''",
            to_text(caller),
            since,
        )
        return int(records[0][0]), int(records[0][1])

    async def sessions(self, caller: str, *, limit: int, before: int = 0, beyond: str = "") -> list[Session]:
        records = await self._pool.fetch(
            SESSIONS, to_text(caller), before, to_text(beyond), limit, seconds=LONG_SECONDS
        )
        return [session(record, caller) for record in records]

    async def forget_session(self, caller: str, session: str) -> int:
        return await self._pool.change(
            "UPDATE usage SET session = '' "
            "WHERE caller = $1 AND md5(session) = md5($2) AND session = $2 AND session <> ''",
            to_text(caller),
            to_text(session),
        )

    async def beat(self, instance: str) -> None:
        """By the server's clock: those of the machines may differ by more than a life is worth."""
        await self._pool.execute(
            f"INSERT INTO instances (instance, heard) VALUES ($1, {NOW}) "
            "ON CONFLICT (instance) DO UPDATE SET heard = greatest(instances.heard, excluded.heard)",
            to_text(instance),
        )

    async def close_open(self, instances: Sequence[str], now: int) -> int:
        return await self._pool.change(
            "UPDATE usage SET outcome = 'crash', finished = $2 "
            "WHERE outcome = '' AND instance = ANY($1::text[])",
            [to_text(instance) for instance in instances],
            now,
        )


def _each_once(rows: Sequence[UsageRow]) -> Iterable[UsageRow]:
    """One statement touches a row once."""
    chosen: dict[str, UsageRow] = {}
    for row in rows:
        known = chosen.get(row.id)
        if known is None or gives_way(known, row):
            chosen[row.id] = row
    return chosen.values()
