"""Requests: begun once, completed once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from wireglot.stores.postgres.documents import NOW
from wireglot.stores.postgres.pool import LONG_SECONDS, PostgresPool
from wireglot.stores.postgres.rows import INSERT, columns, usage_row
from wireglot.stores.postgres.totals import SESSIONS, conditions, session, totals_query
from wireglot.stores.records import Session, UsageQuery, UsageRow, UsageTotal, gives_way
from wireglot.stores.sql import TOKENS, USAGE_COLUMNS, USAGE_NAMES, from_text, to_text, usage_total

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
