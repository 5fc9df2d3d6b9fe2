"""The ledger in a table. The database does the sums; only these are passed to Python."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

import apsw
import msgspec

from wireglot.stores.records import Session, Spender, UsageQuery, UsageRow, UsageTotal
from wireglot.stores.sql import (
    APPLY_OVER,
    SPENT,
    TOKENS,
    USAGE,
    USAGE_COLUMNS,
    USAGE_NAMES,
    UsageSql,
    from_text,
    is_plain,
    to_text,
)
from wireglot.stores.sqlite.worker_threads import Database
from wireglot.stores.usage_sums import COLUMNS, MARKS, SUMS, Steps, SumsSql, kept, steps_run

T = TypeVar("T")

_ROW: Final = f"({', '.join('?' * len(USAGE))})"

WRITE: Final = f"INSERT INTO usage ({USAGE_COLUMNS}) VALUES {_ROW}"

# Every step of a statement releases Python's lock and must get it back, against the loop that answers
# requests: many rows in a step are much cheaper than one. A few sizes, so that few statements are compiled.
_SIZES: Final = (64, 16, 4, 1)


_APPLY: Final = {
    count: f"INSERT INTO usage ({USAGE_COLUMNS}) VALUES {', '.join([_ROW] * count)} {APPLY_OVER}"
    for count in _SIZES
}
_SQL: Final = UsageSql(day="date(started / 1000, 'unixepoch')", session="session = {}")
_SUMS: Final = SumsSql(_SQL, nothing="")
_MARK: Final = (
    f"INSERT INTO {MARKS} (span, at, token, ready) VALUES (?, ?, ?, 0)"
    " ON CONFLICT DO UPDATE SET token = excluded.token WHERE ready = 0"
)
_KEEP: Final = f"INSERT INTO {SUMS} ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"

_TEXTS: Final = tuple(place for place, column in enumerate(USAGE) if column.sort == "text")
_FLAGS: Final = tuple(place for place, column in enumerate(USAGE) if column.sort == "flag")
_LISTS: Final = tuple(place for place, column in enumerate(USAGE) if column.sort == "list")
_texts_of: Final = operator.itemgetter(*_TEXTS)
_NAMES: Final = msgspec.json.Decoder(tuple[str, ...])


def values(row: UsageRow) -> list[Any]:
    found: list[Any] = list(msgspec.structs.astuple(row))
    if not is_plain("".join(_texts_of(found))):
        for place in _TEXTS:
            found[place] = to_text(found[place])
    for place in _FLAGS:
        found[place] = int(found[place])
    for place in _LISTS:
        found[place] = _names(found[place])
    return found


def usage_row(found: Sequence[Any]) -> UsageRow:
    row = list(found)
    for place in _TEXTS:
        row[place] = from_text(row[place])
    for place in _FLAGS:
        row[place] = bool(row[place])
    for place in _LISTS:
        row[place] = _NAMES.decode(row[place]) if row[place] else ()
    return UsageRow(**dict(zip(USAGE_NAMES, row, strict=True)))


def _names(names: tuple[str, ...]) -> str:
    return msgspec.json.encode(names).decode() if names else ""


class SqliteLedger:
    def __init__(self, database: Database) -> None:
        self._database = database

    def apply(self, rows: Sequence[UsageRow]) -> Coroutine[Any, Any, None]:
        def write(connection: apsw.Connection) -> None:
            at = 0
            for count in _SIZES:
                while len(rows) - at >= count:
                    bound = [value for row in rows[at : at + count] for value in values(row)]
                    connection.execute(_APPLY[count], bound)
                    at += count

        return self._database.write(write)

    async def totals(self, query: UsageQuery) -> list[UsageTotal]:
        return await self._at_one_moment(lambda: _SUMS.totals(query))

    async def losses(self, query: UsageQuery) -> dict[str, int]:
        return await self._at_one_moment(lambda: _SUMS.losses(query))

    async def sum_up(self, until: int) -> bool:
        work = await self._at_one_moment(lambda: _SUMS.next_work(until))
        if work is None:
            return False
        token = secrets.token_hex(8)
        marks = [(work.span, at, token) for at in work.cells]
        # Sums lost in a power failure are computed again.
        await self._database.write(
            lambda connection: connection.executemany(_MARK, marks).fetchall(), synced=False
        )
        statement, values = _SUMS.added_up(work)
        rows = await self._database.report(
            lambda connection: kept(work, connection.execute(statement, values))
        )
        await self._keep(rows, token)
        return True

    async def _keep(self, rows: list[tuple[Any, ...]], token: str) -> None:
        def write(connection: apsw.Connection) -> None:
            # Only cells that are still marked: a row that came meanwhile is not in these sums.
            marked = set(
                connection.execute(f"SELECT span, at FROM {MARKS} WHERE token = ? AND ready = 0", (token,))
            )
            connection.executemany(_KEEP, [row for row in rows if row[:2] in marked])
            connection.execute(f"UPDATE {MARKS} SET ready = 1 WHERE token = ? AND ready = 0", (token,))

        await self._database.write(write, synced=False)

    async def _at_one_moment(self, steps: Callable[[], Steps[T]]) -> T:
        def read(connection: apsw.Connection) -> T:
            connection.execute("BEGIN")
            try:
                return steps_run(steps(), lambda text, values: connection.execute(text, values).fetchall())
            finally:
                connection.execute("ROLLBACK")

        return await self._database.report(read)

    async def rows(self, query: UsageQuery, *, limit: int, newest_first: bool = True) -> list[UsageRow]:
        statement, values = _SQL.rows(query, limit=limit, newest_first=newest_first)

        def read(connection: apsw.Connection) -> list[UsageRow]:
            return [usage_row(row) for row in connection.execute(statement, values)]

        return await self._database.report(read)

    async def spent(self, name: str, since: int, by: Spender = "caller") -> tuple[int, int]:
        ((tokens, cost),) = await self._found(SPENT[by], [to_text(name), since])
        return tokens, cost

    async def _found(self, statement: str, values: Sequence[str | int]) -> list[Any]:
        return await self._database.report(
            lambda connection: connection.execute(statement, values).fetchall()
        )

    async def sessions(self, caller: str, *, limit: int, before: int = 0, beyond: str = "") -> list[Session]:
        def read(connection: apsw.Connection) -> list[Session]:
            # The page is found in the index alone; rows are read only for the sessions on it.
            page: list[Any] = connection.execute(
                "SELECT session FROM usage WHERE caller = :caller AND session != '' GROUP BY session"
                " HAVING :before = 0 OR (max(started), session) < (:before, :beyond)"
                " ORDER BY max(started) DESC, session DESC LIMIT :limit",
                {"caller": to_text(caller), "before": before, "beyond": to_text(beyond), "limit": limit},
            ).fetchall()
            return [_session(connection, to_text(caller), session) for (session,) in page]

        return await self._database.report(read)

    async def forget_session(self, caller: str, session: str) -> int:
        def write(connection: apsw.Connection) -> int:
            connection.execute(
                "UPDATE usage SET session = '' WHERE caller = ? AND session = ? AND session != ''",
                (to_text(caller), to_text(session)),
            )
            return connection.changes()

        return await self._database.write(write)

    async def beat(self, instance: str) -> None:
        def write(connection: apsw.Connection) -> None:
            connection.execute(
                "INSERT INTO instances (instance, beat) VALUES (?, ?)"
                " ON CONFLICT (instance) DO UPDATE SET beat = max(beat, excluded.beat)",
                (to_text(instance), self._database.now()),
            )

        await self._database.write(write)

    async def close_open(self, instances: Sequence[str], now: int) -> int:
        def write(connection: apsw.Connection) -> int:
            return sum(crash(connection, to_text(instance), now) for instance in instances)

        return await self._database.write(write)


def crash(connection: apsw.Connection, instance: str, now: int) -> int:
    connection.execute(
        "UPDATE usage SET outcome = 'crash', finished = ? WHERE outcome = '' AND instance = ?",
        (now, instance),
    )
    return connection.changes()


def _session(connection: apsw.Connection, caller: str, session: str) -> Session:
    place = {"caller": caller, "session": session}
    where = "caller = :caller AND session = :session AND session != ''"
    requests, tokens, cost, first, last = connection.execute(
        f"SELECT count(*), sum({TOKENS}), coalesce(sum(cost), 0), min(started), max(started)"
        f" FROM usage WHERE {where}",
        place,
    ).get
    model: str = connection.execute(
        f"SELECT model FROM usage WHERE {where} ORDER BY started DESC, id DESC LIMIT 1", place
    ).get
    dialects: list[Any] = connection.execute(
        f"SELECT DISTINCT dialect FROM usage WHERE {where} AND dialect != '' ORDER BY dialect", place
    ).fetchall()
    return Session(
        id=from_text(session),
        caller=from_text(caller),
        requests=requests,
        tokens=tokens,
        cost=cost,
        model=from_text(model),
        dialects=tuple(from_text(name) for (name,) in dialects),
        first=first,
        last=last,
    )
