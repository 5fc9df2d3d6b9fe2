"""Limits and agreements between the processes of one machine, in a separate small file.

Nothing in it has to survive a power failure, so it is not flushed at every step, and the ledger's commits do
not wait for it.

Its times are the machine's clock, the only one that processes share. When that clock is set back, everything
moves back with it: no limit, place, cool-down or lock lasts longer because of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import apsw

from wireglot.stores.base import Counters
from wireglot.stores.claims import Weighed, filled
from wireglot.stores.records import Budget, Denied, Rate
from wireglot.stores.sqlite.file import BUSY_SECONDS, Format
from wireglot.stores.sqlite.schema import COUNTERS_ID, COUNTERS_STEPS
from wireglot.stores.sqlite.worker_threads import Clock, Database

T = TypeVar("T")

COUNTERS: Final = Format("a file of wireglot's counters", COUNTERS_ID, COUNTERS_STEPS, "NORMAL")

SET_BACK_MS: Final = 1000
"""If the clock is earlier by this much than before, it was set back; less is a race of two processes."""

TIDY_EVERY_MS: Final = 60_000


class SqliteCounters(Counters):
    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    async def open(cls, path: str, *, clock: Clock = time.time, busy: float = BUSY_SECONDS) -> SqliteCounters:
        return cls(await Database.open(path, COUNTERS, clock=clock, busy=busy))

    async def take(self, claims: Sequence[Rate | Budget]) -> Denied | None:
        def write(connection: apsw.Connection, now: float) -> Denied | None:
            weighed = Weighed(
                claims,
                lambda name: _empty_at(connection, name),
                lambda name: _spent(connection, name, now) or 0,
                now=now,
                wall=now,
            )
            if weighed.denied is None:
                for name, level in weighed.rates.items():
                    _fill(connection, name, level)
                for name, (value, until) in weighed.budgets.items():
                    _spend(connection, name, value, until)
            return weighed.denied

        return await self._write(write)

    async def settle(self, claims: Sequence[Rate | Budget]) -> None:
        def write(connection: apsw.Connection, now: float) -> None:
            for claim in claims:
                if isinstance(claim, Rate):
                    _fill(connection, claim.name, filled(claim, _empty_at(connection, claim.name), now))
                elif (value := _spent(connection, claim.name, now)) is not None:
                    # One that has not begun (its file was lost) stays so: it will be seeded from the ledger.
                    _spend(connection, claim.name, max(0, value + claim.amount), claim.until)

        await self._write(write)

    async def known(self, names: Sequence[str]) -> dict[str, int]:
        now = self._database.now_exactly()

        def read(connection: apsw.Connection) -> dict[str, int]:
            found = ((name, _spent(connection, name, now)) for name in names)
            return {name: spent for name, spent in found if spent is not None}

        return await self._database.read(read)

    async def seed(self, name: str, value: int, until: int) -> None:
        def write(connection: apsw.Connection, now: float) -> None:
            if _spent(connection, name, now) is None:
                _spend(connection, name, value, until)

        await self._write(write)

    async def enter(self, name: str, holder: str, limit: int, seconds: float) -> bool:
        def write(connection: apsw.Connection, now: float) -> bool:
            connection.execute("DELETE FROM places WHERE name = ? AND until <= ?", (name, now))
            others: int = connection.execute(
                "SELECT count(*) FROM places WHERE name = ? AND holder != ?", (name, holder)
            ).get
            held = connection.execute(
                "SELECT 1 FROM places WHERE name = ? AND holder = ?", (name, holder)
            ).get
            if held is None and others >= limit:
                return False
            connection.execute(
                "INSERT INTO places (name, holder, until) VALUES (?, ?, ?)"
                " ON CONFLICT (name, holder) DO UPDATE SET until = excluded.until",
                (name, holder, now + seconds * 1000),
            )
            return True

        return await self._write(write)

    async def leave(self, name: str, holder: str) -> None:
        def write(connection: apsw.Connection, now: float) -> None:
            connection.execute("DELETE FROM places WHERE name = ? AND holder = ?", (name, holder))

        await self._write(write)

    async def cool(self, entries: Mapping[str, float]) -> None:
        def write(connection: apsw.Connection, now: float) -> None:
            connection.executemany(
                "INSERT INTO cooling (name, until) VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET until = max(until, excluded.until)",
                [(name, now + seconds * 1000) for name, seconds in entries.items()],
            )

        await self._write(write)

    async def cooling(self) -> dict[str, float]:
        def look(connection: apsw.Connection) -> bool:
            return self._database.now_exactly() < _last(connection) - SET_BACK_MS

        if await self._database.read(look):
            await self._write(lambda connection, now: None)
        now = self._database.now_exactly()

        def read(connection: apsw.Connection) -> dict[str, float]:
            rows = connection.execute("SELECT name, until FROM cooling WHERE until > ?", (now,))
            return {name: (until - now) / 1000 for name, until in rows}

        return await self._database.read(read)

    async def lock(self, name: str, holder: str, seconds: float) -> bool:
        def write(connection: apsw.Connection, now: float) -> bool:
            connection.execute(
                "INSERT INTO locks (name, holder, until) VALUES (:name, :holder, :until)"
                " ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until"
                " WHERE locks.holder = excluded.holder OR locks.until <= :now",
                {"name": name, "holder": holder, "until": now + seconds * 1000, "now": now},
            )
            return connection.changes() > 0

        return await self._write(write)

    async def unlock(self, name: str, holder: str) -> None:
        def write(connection: apsw.Connection, now: float) -> None:
            connection.execute("DELETE FROM locks WHERE name = ? AND holder = ?", (name, holder))

        await self._write(write)

    async def check(self) -> None:
        await self._write(lambda connection, now: None)

    async def close(self) -> None:
        await self._database.close()

    async def _write(self, work: Callable[[apsw.Connection, float], T]) -> T:
        """The time is read under the lock, so that it never decreases."""

        def write(connection: apsw.Connection) -> T:
            now = self._database.now_exactly()
            _follow_clock(connection, now)
            return work(connection, now)

        return await self._database.write(write)


def _last(connection: apsw.Connection) -> float:
    last: float = connection.execute("SELECT last FROM clock").get
    return last


def _follow_clock(connection: apsw.Connection, now: float) -> None:
    last, tidied = connection.execute("SELECT last, tidied FROM clock").get
    if now < last - SET_BACK_MS:
        back = last - now
        connection.execute("UPDATE rates SET empty_at = empty_at - ?", (back,))
        connection.execute("UPDATE places SET until = until - ?", (back,))
        connection.execute("UPDATE cooling SET until = until - ?", (back,))
        connection.execute("UPDATE locks SET until = until - ?", (back,))
        connection.execute("UPDATE clock SET last = ?, tidied = ?", (now, now))
    elif now > tidied + TIDY_EVERY_MS:
        connection.execute("DELETE FROM rates WHERE empty_at <= ?", (now,))
        connection.execute("DELETE FROM budgets WHERE until <= ?", (now,))
        connection.execute("DELETE FROM places WHERE until <= ?", (now,))
        connection.execute("DELETE FROM cooling WHERE until <= ?", (now,))
        connection.execute("DELETE FROM locks WHERE until <= ?", (now,))
        connection.execute("UPDATE clock SET last = ?, tidied = ?", (now, now))
    elif now > last + SET_BACK_MS / 10:
        connection.execute("UPDATE clock SET last = ?", (now,))


def _empty_at(connection: apsw.Connection, name: str) -> float:
    level: float | None = connection.execute("SELECT empty_at FROM rates WHERE name = ?", (name,)).get
    return level or 0.0


def _fill(connection: apsw.Connection, name: str, level: float) -> None:
    connection.execute(
        "INSERT INTO rates (name, empty_at) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET empty_at = excluded.empty_at",
        (name, level),
    )


def _spent(connection: apsw.Connection, name: str, now: float) -> int | None:
    """None: it has not begun, or has expired."""
    value: int | None = connection.execute(
        "SELECT value FROM budgets WHERE name = ? AND until > ?", (name, now)
    ).get
    return value


def _spend(connection: apsw.Connection, name: str, value: int, until: int) -> None:
    connection.execute(
        "INSERT INTO budgets (name, value, until) VALUES (?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value, until = excluded.until",
        (name, value, until),
    )
