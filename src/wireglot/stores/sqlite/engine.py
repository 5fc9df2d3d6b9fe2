"""A whole store in one file, and a read-only look at such a file."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw
import msgspec

from wireglot.stores.base import Documents, Keys, Ledger, StoreDown, StoreUnusable, Vault
from wireglot.stores.records import (
    Document,
    KeyRow,
    KindLimits,
    KindStats,
    Record,
    Stats,
    Swept,
    UsageRow,
    VaultEntry,
)
from wireglot.stores.sql import USAGE_COLUMNS, from_text, to_text
from wireglot.stores.sqlite import documents, ledger
from wireglot.stores.sqlite.file import BUSY_SECONDS, Format, explain, recognise, require_version
from wireglot.stores.sqlite.schema import STORE_COLUMNS, STORE_DERIVED, STORE_ID, STORE_INDEXES, STORE_STEPS
from wireglot.stores.sqlite.sweep import sweep, wipe
from wireglot.stores.sqlite.vault import SqliteVault
from wireglot.stores.sqlite.worker_threads import Clock, Database

T = TypeVar("T")

STORE: Final = Format(
    "a store of wireglot",
    STORE_ID,
    STORE_STEPS,
    columns=STORE_COLUMNS,
    indexes=STORE_INDEXES,
    derived=STORE_DERIVED,
)

PAGE_BYTES: Final = 4 << 20
PAGE_ROWS: Final = 1000


_STATS: Final = """
SELECT kind, count(*), sum(size), min(created), max(created) FROM documents GROUP BY kind
UNION ALL SELECT 'vault', count(*), coalesce(sum(length(body)), 0), 0, 0 FROM vault
UNION ALL SELECT 'usage', count(*),
    iif(count(*), (SELECT sum(pgsize - unused) FROM dbstat WHERE name = 'usage' AND aggregate = TRUE), 0),
    coalesce(min(started), 0), coalesce(max(started), 0) FROM usage
UNION ALL SELECT 'keys', count(*), coalesce(sum(length(body)), 0), 0, 0 FROM keys
"""


class SqliteEngine:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.documents: Documents = documents.SqliteDocuments(database)
        self._vault = SqliteVault(database)
        self.vault: Vault = self._vault
        self.lacks, self.kept_mark = self._vault.lacks, self._vault.words.look
        self.ledger: Ledger = ledger.SqliteLedger(database)
        self.keys: Keys = documents.SqliteKeys(database)

    @classmethod
    async def open(cls, path: str, *, clock: Clock = time.time, busy: float = BUSY_SECONDS) -> SqliteEngine:
        return cls(await Database.open(path, STORE, clock=clock, busy=busy))

    async def check(self) -> None:
        """Writes a little: a full disk only fails writes."""

        def write(connection: apsw.Connection) -> None:
            connection.execute("UPDATE revisions SET value = value + 1 WHERE name = 'check'")

        await self._database.write(write)

    async def sweep(
        self, now: int, *, usage_before: int, dead_before: int, kinds: Mapping[str, KindLimits]
    ) -> Swept:
        return await sweep(
            self._database, now, usage_before=usage_before, dead_before=dead_before, kinds=kinds
        )

    async def wipe(self, caller: str) -> dict[str, int]:
        return await wipe(self._database, caller)

    async def stats(self) -> Stats:
        def read(connection: apsw.Connection) -> Stats:
            kinds = {from_text(kind): KindStats(*found) for kind, *found in connection.execute(_STATS)}
            return Stats(
                engine=f"SQLite {apsw.sqlite_lib_version()}, {self._database.path}",
                version=connection.pragma("user_version"),
                kinds=kinds,
                size=_size_on_disk(self._database.path),
            )

        return await self._database.report(read)

    async def export(self) -> AsyncIterator[Record]:
        async for row in self._pages("keys", "body", lambda row: _KEY.decode(row[0])):
            yield row
        async for document in self._pages("documents", documents.COLUMNS, documents.read_document):
            yield document
        async for entry in self._pages("vault", "tenant, name, body, expires", _entry):
            yield entry
        async for usage in self._pages("usage", USAGE_COLUMNS, ledger.usage_row):
            yield usage

    async def _pages(
        self, table: str, columns: str, record: Callable[[Sequence[Any]], T]
    ) -> AsyncIterator[T]:
        """A page at a time by rowid, each of bounded size: no reader keeps the WAL from being emptied."""
        statement = f"SELECT rowid, {columns} FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT ?"
        last = 0

        def read(connection: apsw.Connection) -> list[tuple[Any, ...]]:
            found, size = [], 0
            cursor = connection.execute(statement, (last, PAGE_ROWS))
            for row in cursor:
                found.append(row)
                size += sum(len(value) for value in row if isinstance(value, bytes))
                if size > PAGE_BYTES:
                    break
            cursor.close(True)
            return found

        while page := await self._database.report(read):
            for row in page:
                yield record(row[1:])
            last = page[-1][0]

    async def load(self, records: Sequence[Record]) -> None:
        def write(connection: apsw.Connection) -> None:
            for record in records:
                match record:
                    case Document():
                        connection.execute(f"{documents.WRITE} {_IF_NEW}", documents.values(record))
                    case UsageRow():
                        connection.execute(f"{ledger.WRITE} {_IF_NEW}", ledger.values(record))
                    case VaultEntry():
                        connection.execute(
                            f"INSERT INTO vault (tenant, name, body, expires) VALUES (?, ?, ?, ?) {_IF_NEW}",
                            (to_text(record.caller), to_text(record.name), record.body, record.expires),
                        )
                    case KeyRow():
                        documents.put_key(connection, record, new=True)

        callers = {record.caller for record in records if isinstance(record, VaultEntry)}
        await self._database.write(write, lambda: self._vault.words.change(callers))

    async def close(self) -> None:
        self._vault.words.remove()  # others create another one
        await self._database.close()


_IF_NEW: Final = "ON CONFLICT DO NOTHING"
_KEY: Final = msgspec.json.Decoder(KeyRow)


def _entry(row: Sequence[Any]) -> VaultEntry:
    caller, name, body, expires = row
    return VaultEntry(from_text(caller), from_text(name), body, expires)


def _size_on_disk(path: Path) -> int:
    files = [path, path.with_name(path.name + "-wal")]
    return sum(file.stat().st_size for file in files if file.exists())


_LOOK_BUSY_SECONDS: Final = 2.0
_READ_SECONDS: Final = 10.0
_STEPS: Final = 20_000
"""Steps of SQLite's virtual machine between two checks of the time."""


class FileLook(msgspec.Struct, frozen=True):
    version: int
    """Of its schema."""
    known: int
    """The newest that this program knows."""
    size: int
    is_read_through: bool
    """True also if the time ended before a problem was found."""
    keys: int
    """Of clients."""


def look_at_file(path: Path) -> FileLook:
    """Raises StoreUnusable or StoreDown, with the same messages as a start. Blocks."""
    require_version()
    try:
        size = path.stat().st_size
        if not size:
            raise StoreUnusable(f"{path}: is empty (0 bytes): {STORE.what} was lost or never written there")
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    except OSError as fault:
        raise StoreUnusable(f"{path}: {fault.strerror or 'cannot be read'}") from None
    except apsw.Error as error:
        raise StoreUnusable(explain(error, path)) from None
    try:
        # A foreign file is not changed, not even by the end of its WAL.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.set_busy_timeout(round(_LOOK_BUSY_SECONDS * 1000))
        recognise(connection, path, STORE)
        if connection.readonly("main"):
            raise StoreUnusable(f"{path}: cannot be written (read-only)")
        connection.execute("BEGIN IMMEDIATE; ROLLBACK").fetchall()
        whole = _read_through(connection)
        version = connection.pragma("user_version")
        keys = connection.execute("SELECT count(*) FROM keys").get if version else 0
        return FileLook(version, len(STORE.steps), size, whole, keys)
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreDown(explain(error, path)) from None
    except apsw.Error as error:
        raise StoreUnusable(explain(error, path)) from None
    finally:
        connection.close()


def _read_through(connection: apsw.Connection) -> bool:
    """Whether all of it was read; raises CorruptError if it is damaged."""
    deadline = time.monotonic() + _READ_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    try:
        found = connection.pragma("quick_check", 1)
    except apsw.InterruptError:
        return False
    if found != "ok":
        raise apsw.CorruptError(str(found))
    return True
