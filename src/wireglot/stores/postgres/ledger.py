"""Rows of requests: begun once, completed once."""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from wireglot.stores.postgres.documents import NOW
from wireglot.stores.postgres.pool import LONG_SECONDS, Connection, PostgresPool
from wireglot.stores.postgres.schema import WRITERS_LOCK
from wireglot.stores.records import Session, Spender, UsageQuery, UsageRow, UsageTotal, gives_way
from wireglot.stores.sql import (
    APPLY_OVER,
    SPENT,
    TOKENS,
    USAGE,
    USAGE_COLUMNS,
    Column,
    Sort,
    UsageSql,
    from_text,
    to_text,
)
from wireglot.stores.usage_sums import (
    COLUMNS,
    MARKS,
    SUM_NUMBERS,
    SUMS,
    Statement,
    Steps,
    SumsSql,
    UnsummedCells,
    kept,
)
from wireglot_core.ir.usage import COUNTS

T = TypeVar("T")

_LARGEST: Final = 1 << (63 - len(COUNTS).bit_length())
"""A provider that reports more must not keep the other rows from being written; with this limit the sum of
all token counts of a row is still a bigint."""
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
            # Interned: msgspec omits a default only if it is the very same object.
            return sys.intern(from_text(value))
        case "list":
            return msgspec.json.decode(value, type=tuple[str, ...])
    return value


_SQL: Final = UsageSql(
    day="to_char(to_timestamp(started / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
    session="md5(session) = md5({}) AND session = {}",
    cast="::numeric",  # the sum of a row's counts may exceed a bigint
)
_SUMS: Final = SumsSql(_SQL, nothing="[]")
_MARK: Final = (
    f"INSERT INTO {MARKS} (span, at, token, ready) SELECT $1, at, $2, 0 FROM unnest($3::bigint[]) AS at"
    f" ORDER BY at ON CONFLICT (span, at) DO UPDATE SET token = excluded.token WHERE {MARKS}.ready = 0"
)
_MARKED: Final = f"SELECT span, at FROM {MARKS} WHERE token = $1 AND ready = 0 ORDER BY span, at FOR UPDATE"
_KEEP: Final = (
    f"INSERT INTO {SUMS} ({', '.join(COLUMNS)}) SELECT * FROM unnest("
    + ", ".join(
        f"${place}::{'numeric' if name in SUM_NUMBERS else 'text'}[]" for place, name in enumerate(COLUMNS, 1)
    )
    + ")"
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


class PostgresLedger:
    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    async def apply(self, rows: Sequence[UsageRow]) -> None:
        if rows:
            await self._pool.execute(INSERT + APPLY_OVER, *columns(_each_once(rows)))

    async def totals(self, query: UsageQuery) -> list[UsageTotal]:
        return await self._at_one_moment(_SUMS.totals(query))

    async def losses(self, query: UsageQuery) -> dict[str, int]:
        return await self._at_one_moment(_SUMS.losses(query))

    async def sum_up(self, until: int) -> bool:
        work = await self._at_one_moment(_SUMS.next_work(until))
        if work is None:
            return False
        token = secrets.token_hex(8)
        await self._mark(work, token)
        statement, values = _SUMS.added_up(work)
        found = await self._pool.fetch(statement, *values, seconds=LONG_SECONDS)
        rows = await asyncio.to_thread(lambda: kept(work, found))
        await self._keep(rows, token)
        return True

    async def _mark(self, work: UnsummedCells, token: str) -> None:
        async def mark(connection: Connection, _: int) -> None:
            async with connection.transaction():
                # Waits for writers that have not committed their rows yet: they cannot see the mark, and we
                # could not see their rows.
                await connection.execute(
                    f"SELECT pg_advisory_xact_lock({WRITERS_LOCK})", timeout=LONG_SECONDS
                )
                await connection.execute(_MARK, work.span, token, list(work.cells), timeout=LONG_SECONDS)

        await self._pool.run(mark)

    async def _keep(self, rows: list[tuple[Any, ...]], token: str) -> None:
        async def keep(connection: Connection, _: int) -> None:
            async with connection.transaction():
                # Locked: a writer that changes a row of a cell from now on removes the sums, too.
                found = await connection.fetch(_MARKED, token, timeout=LONG_SECONDS)
                marked = set(map(tuple, found))
                chosen = [row for row in rows if row[:2] in marked]
                arrays = zip(*chosen, strict=True) if chosen else ()
                if chosen:
                    await connection.execute(_KEEP, *map(list, arrays), timeout=LONG_SECONDS)
                await connection.execute(
                    f"UPDATE {MARKS} SET ready = 1 WHERE token = $1 AND ready = 0",
                    token,
                    timeout=LONG_SECONDS,
                )

        await self._pool.run(keep)

    async def _at_one_moment(self, steps: Steps[T]) -> T:
        async with self._pool.reading() as connection:
            statement, values = next(steps)
            while True:
                found = await connection.fetch(statement, *values, timeout=LONG_SECONDS)
                # Large results must not block the loop.
                done, following = await asyncio.to_thread(_next_step, steps, found)
                if done is not None:
                    return done.result
                statement, values = following

    async def rows(self, query: UsageQuery, *, limit: int, newest_first: bool = True) -> list[UsageRow]:
        statement, values = _SQL.rows(query, limit=limit, newest_first=newest_first)
        records = await self._pool.fetch(statement, *values, seconds=LONG_SECONDS)
        return [usage_row(record) for record in records]

    async def spent(self, name: str, since: int, by: Spender = "caller") -> tuple[int, int]:
        ((tokens, cost),) = await self._pool.fetch(SPENT[by], to_text(name), since)
        return int(tokens), int(cost)

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
        """By the server's clock: the machines' clocks may differ too much."""
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


class _Done(NamedTuple, Generic[T]):
    result: T


def _next_step(steps: Steps[T], found: Sequence[Any]) -> tuple[_Done[T] | None, Statement]:
    try:
        return None, steps.send(found)
    except StopIteration as done:  # a thread cannot pass this exception on
        return _Done(done.value), ("", ())


def _each_once(rows: Sequence[UsageRow]) -> Iterable[UsageRow]:
    """One statement must not contain a row twice."""
    chosen: dict[str, UsageRow] = {}
    for row in rows:
        known = chosen.get(row.id)
        if known is None or gives_way(known, row):
            chosen[row.id] = row
    return chosen.values()
