"""Removes records in small steps: each is a short separate transaction, so that no writer waits for long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import apsw

from wireglot.stores.records import KindLimits, Swept
from wireglot.stores.sql import from_text, to_text
from wireglot.stores.sqlite.ledger import crash
from wireglot.stores.sqlite.worker_threads import Database

STEP_ROWS: Final = 500
STEP_DOCUMENTS: Final = 100
"""Fewer: documents may be large, and each page of one has to be freed."""

FREE_PAGES: Final = 1000
"""Returned to the file system in one step."""


async def sweep(
    database: Database, now: int, *, usage_before: int, dead_before: int, kinds: Mapping[str, KindLimits]
) -> Swept:
    expired: Counter[str] = Counter()
    while gone := await database.write(lambda connection: _expired_documents(connection, now)):
        expired.update(gone)
    while count := await database.write(lambda connection: _expired_vault(connection, now)):
        expired["vault"] += count

    evicted = {
        kind: count
        for kind, limits in kinds.items()
        if limits.bytes and (count := await _evict(database, kind, limits.bytes))
    }

    crashed = await database.write(lambda connection: _crashed(connection, dead_before, now))

    usage = 0
    while count := await database.write(lambda connection: _old_usage(connection, usage_before)):
        usage += count

    while await database.write(_shrink):
        pass
    return Swept(expired=dict(expired), evicted=evicted, usage=usage, crashed=crashed)


async def wipe(database: Database, caller: str) -> dict[str, int]:
    gone: Counter[str] = Counter()
    while found := await database.write(lambda connection: _documents_of(connection, caller)):
        gone.update(found)
    steps: dict[str, Callable[[apsw.Connection], int]] = {
        "vault": lambda connection: _vault_of(connection, caller),
        "sessions": lambda connection: _unname(connection, caller),
    }
    for name, step in steps.items():
        while count := await database.write(step):
            gone[name] += count
    return dict(gone)


def _expired_documents(connection: apsw.Connection, now: int) -> list[str]:
    rows = connection.execute(
        "DELETE FROM documents WHERE rowid IN"
        " (SELECT rowid FROM documents WHERE expires > 0 AND expires <= ? LIMIT ?) RETURNING kind",
        (now, STEP_DOCUMENTS),
    )
    return [from_text(kind) for (kind,) in rows]


def _expired_vault(connection: apsw.Connection, now: int) -> int:
    connection.execute(
        "DELETE FROM vault WHERE rowid IN (SELECT rowid FROM vault WHERE expires <= ? LIMIT ?)",
        (now, STEP_ROWS),
    )
    return connection.changes()


async def _evict(database: Database, kind: str, limit: int) -> int:
    def measure(connection: apsw.Connection) -> int:
        size: int = connection.execute(
            "SELECT coalesce(sum(size), 0) FROM documents WHERE kind = ?", (to_text(kind),)
        ).get
        return size

    excess = await database.report(measure) - limit
    evicted = 0

    def step(connection: apsw.Connection) -> tuple[int, int]:
        oldest: list[Any] = connection.execute(
            "SELECT rowid, size FROM documents WHERE kind = ? ORDER BY created LIMIT ?",
            (to_text(kind), STEP_DOCUMENTS),
        ).fetchall()
        freed, count = 0, 0
        for rowid, size in oldest:
            if freed >= excess:
                break
            connection.execute("DELETE FROM documents WHERE rowid = ?", (rowid,))
            freed += size
            count += 1
        return freed, count

    while excess > 0:
        freed, count = await database.write(step)
        if not count:
            break
        excess -= freed
        evicted += count
    return evicted


def _crashed(connection: apsw.Connection, dead_before: int, now: int) -> int:
    """A process that never reported is treated as if it had done so when its request began."""
    open_instances: list[Any] = connection.execute(
        "SELECT DISTINCT instance FROM usage WHERE outcome = ''"
    ).fetchall()
    count = 0
    for (instance,) in open_instances:
        beat = connection.execute("SELECT beat FROM instances WHERE instance = ?", (instance,)).get
        if beat is None:
            connection.execute(
                "UPDATE usage SET outcome = 'crash', finished = ?"
                " WHERE outcome = '' AND instance = ? AND started < ?",
                (now, instance, dead_before),
            )
            count += connection.changes()
        elif beat < dead_before:
            count += crash(connection, instance, now)
    connection.execute("DELETE FROM instances WHERE beat < ?", (dead_before,))
    return count


def _old_usage(connection: apsw.Connection, before: int) -> int:
    connection.execute(
        "DELETE FROM usage WHERE rowid IN (SELECT rowid FROM usage WHERE started < ? LIMIT ?)",
        (before, STEP_ROWS),
    )
    return connection.changes()


def _shrink(connection: apsw.Connection) -> bool:
    """Returns free pages beyond a tenth of the file to the file system: the rest will be needed again
    soon."""
    free, pages = connection.pragma("freelist_count"), connection.pragma("page_count")
    if free <= max(FREE_PAGES, pages // 10):
        return False
    connection.execute(f"PRAGMA incremental_vacuum({FREE_PAGES})").fetchall()
    return bool(connection.pragma("freelist_count") < free)


def _documents_of(connection: apsw.Connection, caller: str) -> list[str]:
    rows = connection.execute(
        "DELETE FROM documents WHERE rowid IN (SELECT rowid FROM documents WHERE tenant = ? LIMIT ?)"
        " RETURNING kind",
        (to_text(caller), STEP_DOCUMENTS),
    )
    return [from_text(kind) for (kind,) in rows]


def _vault_of(connection: apsw.Connection, caller: str) -> int:
    connection.execute(
        "DELETE FROM vault WHERE rowid IN (SELECT rowid FROM vault WHERE tenant = ? LIMIT ?)",
        (to_text(caller), STEP_ROWS),
    )
    return connection.changes()


def _unname(connection: apsw.Connection, caller: str) -> int:
    connection.execute(
        "UPDATE usage SET session = '' WHERE rowid IN"
        " (SELECT rowid FROM usage WHERE caller = ? AND session != '' LIMIT ?)",
        (to_text(caller), STEP_ROWS),
    )
    return connection.changes()
