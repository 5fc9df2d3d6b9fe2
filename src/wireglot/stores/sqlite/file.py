"""Opens a file safely: a foreign, damaged or newer file is reported and not changed."""

from __future__ import annotations

import os
import secrets
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import apsw
import msgspec

from wireglot.stores.base import StoreDown, StoreUnusable

OLDEST_VERSION: Final = (3, 51, 3)
"""Older ones may lose a commit when the WAL is reset while two connections write (FAULTS 99)."""

_TEMPORARY: Final = threading.Lock()
BUSY_SECONDS: Final = 5.0
CHECKED_BYTES: Final = 32 << 20
"""A larger file is not checked at every start; damage is noticed when it is used."""


class Format(msgspec.Struct, frozen=True):
    """A kind of file of ours."""

    what: str
    application_id: int
    steps: Sequence[str]
    synchronous: Literal["FULL", "NORMAL"] = "FULL"
    columns: Mapping[str, Mapping[str, str]] = {}
    """By table and name, the definitions of columns to add if a table lacks them."""
    indexes: Sequence[str] = ()
    """Indexes of these columns, created if they are missing."""
    derived: Sequence[str] = ()
    """Tables and triggers that are derived from the others, `TABLE {exists} name ...`."""
    checked_bytes: int = CHECKED_BYTES


def open_file(
    path: Path, form: Format, *, busy: float = BUSY_SECONDS, create: bool = True
) -> apsw.Connection:
    """A connection for writing, the file's tables brought up to date. Blocks: never on the event loop."""
    require_version()
    if create:
        _create(path, form)
    deadline = time.monotonic() + busy
    while True:
        # Switching to WAL needs exclusive access and does not wait for it, so two processes that start at the
        # same time retry here.
        try:
            return _open(path, form, busy, create)
        except (apsw.BusyError, apsw.LockedError) as error:
            if time.monotonic() > deadline:
                raise StoreDown(explain(error, path)) from error
            time.sleep(0.02)
        except apsw.Error as error:
            raise StoreUnusable(explain(error, path)) from error


def open_reader(path: Path, *, busy: float = BUSY_SECONDS) -> apsw.Connection:
    """A read-only connection to a file that `open_file` has opened."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    _settle(connection, busy)
    # A reader that checkpoints would do a writer's work while others wait for it.
    connection.wal_autocheckpoint(0)
    connection.execute("PRAGMA query_only = ON")
    return connection


def open_reports(path: Path, *, busy: float = BUSY_SECONDS) -> apsw.Connection:
    """The same for reports, which sort a whole table: data that exceeds the cache is put into an unnamed
    file, so that no report takes memory in proportion to the rows. It is next to the database: other folders
    may be read-only."""
    connection = open_reader(path, busy=busy)
    connection.pragma("temp_store", "FILE")
    with _TEMPORARY:  # one directory for the whole process, which may not change while it is in use
        if not connection.pragma("temp_store_directory"):
            connection.pragma("temp_store_directory", str(path.parent.absolute()))
    return connection


def sqlite_version() -> str:
    return apsw.sqlite_lib_version()


def require_version(found: str = "") -> None:
    version = found or sqlite_version()
    if tuple(int(part) for part in version.split(".")) < OLDEST_VERSION:
        oldest = ".".join(map(str, OLDEST_VERSION))
        raise StoreUnusable(
            f"SQLite {version} may lose writes when several processes share a file:"
            f" {oldest} or newer is needed (pip install -U apsw)"
        )


_JOURNAL_INDEX_BYTES: Final = 64 * 1024
"""The index of the write-ahead log grows by 32 KiB at a time."""
_ODD_FILES: Final = ("no such table", "no such column", "unsupported file format")


def is_damage(error: Exception) -> bool:
    """Whether the file has been damaged since it was opened. Our own SQL is correct: a missing table was
    removed, and invalid text was overwritten."""
    if isinstance(error, apsw.SQLError):
        return str(error).startswith(_ODD_FILES)
    return isinstance(error, apsw.CorruptError | apsw.NotADBError | UnicodeDecodeError)


def _is_full(path: Path) -> bool:
    """SQLite reports a disk without room for the index of its journal as an input/output error."""
    try:
        return shutil.disk_usage(path.parent).free < _JOURNAL_INDEX_BYTES
    except OSError:
        return False


def explain(error: Exception, path: Path) -> str:
    """A message for the user: what is wrong with the file, and what to do about it."""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return f"{path}: another process keeps it locked"
        case apsw.FullError():
            return f"{path}: no space left to write"
        case apsw.ReadOnlyError():
            return f"{path}: cannot be written (read-only)"
        case apsw.CantOpenError():
            return f"{path}: cannot be opened ({error})"
        case apsw.NotADBError():
            return (
                f"{path}: is not a SQLite database; it was not changed. Name another file, or move this one"
            )
        case _ if is_damage(error):
            return (
                f"{path}: is damaged; it was not changed. Stop the gateway and rescue what can be read:"
                f" sqlite3 {path} .recover | sqlite3 recovered.db"
            )
        case apsw.IOError() if _is_full(path):
            return f"{path}: no space left to write"
        case apsw.IOError():
            return f"{path}: input/output error ({error})"
    return f"{path}: {type(error).__name__}: {error}"


def _create(path: Path, form: Format) -> None:
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnusable(f"{path.parent}: cannot be made ({error.strerror})") from error
    try:
        # Closing any other descriptor of a database file would release this process's locks on it, so an
        # existing file is only ever opened by SQLite.
        if not path.exists():
            _make(path, form)
    except OSError as error:
        raise StoreUnusable(f"{path}: cannot be made ({error.strerror})") from error
    except apsw.Error as error:
        raise StoreUnusable(explain(error, path)) from error
    if not path.is_file():
        raise StoreUnusable(f"{path}: is no file that could hold {form.what}")


def _make(path: Path, form: Format) -> None:
    """A new file gets its name once its first page identifies it as ours. So one of 0 bytes was never created
    here: it has lost its content, and taking it for a new store would admit callers without the keys it
    had."""
    unready = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        os.close(os.open(unready, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        connection = apsw.Connection(str(unready), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            # Before WAL, which must not need the file's first page.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.pragma("application_id", form.application_id)
        finally:
            connection.close()
        try:
            os.link(unready, path)
        except FileExistsError:
            return  # another process was faster
        except OSError:  # a file system without links
            if not path.exists():
                os.rename(unready, path)
    finally:
        unready.unlink(missing_ok=True)


def _open(path: Path, form: Format, busy: float, create: bool) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        # Until the file is known to be ours, not even its WAL is touched.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.set_busy_timeout(round(busy * 1000))
        empty = recognise(connection, path, form)
        if empty and not create:
            raise StoreUnusable(f"{path}: is empty, though it held {form.what} before")
        if empty and not path.stat().st_size:
            raise StoreUnusable(
                f"{path}: is empty (0 bytes): {form.what} was lost or never written there. It was not"
                " changed: restore it, or remove the file to start without its keys and records"
            )
        if connection.readonly("main"):
            raise StoreUnusable(f"{path}: cannot be written (read-only)")
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        if empty:
            # Before WAL, so that the file itself identifies its owner from its first page on.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.pragma("application_id", form.application_id)
        _tighten(path)
        if connection.pragma("journal_mode", "WAL") != "wal":
            raise StoreUnusable(f"{path}: this file system cannot share a file between processes (no WAL)")
        connection.pragma("synchronous", form.synchronous)
        _settle(connection, busy)
        _migrate(connection, path, form)
    except BaseException:
        connection.close()
        raise
    return connection


def recognise(connection: apsw.Connection, path: Path, form: Format) -> bool:
    """Whether it is new; raises if it is foreign, from a later version or damaged."""
    # A consistent snapshot: another process may be creating it.
    connection.execute("BEGIN")
    application_id, version = connection.pragma("application_id"), connection.pragma("user_version")
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    connection.execute("COMMIT")
    if application_id == version == tables == 0:
        return True
    if application_id != form.application_id:
        raise StoreUnusable(f"{path}: is not {form.what} but another program's database; it was not changed")
    _refuse_newer(version, path, form)
    if path.stat().st_size <= form.checked_bytes and (found := connection.pragma("quick_check", 1)) != "ok":
        raise apsw.CorruptError(str(found))
    return False


def _refuse_newer(version: int, path: Path, form: Format) -> None:
    if version > len(form.steps):
        raise StoreUnusable(
            f"{path}: was written by a newer wireglot (schema {version}, this one knows {len(form.steps)});"
            " it was not changed. Update wireglot, or name another file"
        )


def _settle(connection: apsw.Connection, busy: float) -> None:
    """The settings of every connection."""
    connection.set_busy_timeout(round(busy * 1000))
    connection.execute(
        "PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
        " PRAGMA temp_store = MEMORY; PRAGMA secure_delete = FAST; PRAGMA journal_size_limit = 67108864;"
        " PRAGMA cache_size = -8192"
    ).fetchall()  # some return rows, and the statement after these waits until they have been read


def _migrate(connection: apsw.Connection, path: Path, form: Format) -> None:
    while connection.pragma("user_version") < len(form.steps):
        connection.execute("BEGIN IMMEDIATE")
        # An error in here closes the connection, which rolls the step back. The version is read again under
        # the lock: another process may have taken the step meanwhile.
        version = connection.pragma("user_version")
        if version < len(form.steps):
            connection.execute(form.steps[version])
            connection.pragma("user_version", version + 1)
        connection.execute("COMMIT")
    _refuse_newer(connection.pragma("user_version"), path, form)
    for table, columns in form.columns.items():
        if _lacking(connection, table, columns):
            connection.execute("BEGIN IMMEDIATE")
            for definition in _lacking(connection, table, columns):
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {definition}")
            connection.execute("COMMIT")
    for index in form.indexes:
        connection.execute(f"CREATE INDEX IF NOT EXISTS {index}")
    for statement in form.derived:
        connection.execute("CREATE " + statement.format(exists="IF NOT EXISTS"))


def _lacking(connection: apsw.Connection, table: str, columns: Mapping[str, str]) -> list[str]:
    there = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}
    return [definition for name, definition in columns.items() if name not in there]


def _tighten(path: Path) -> None:
    """Remove other users' access to files that were created with an open umask; the WAL takes its mode from
    here."""
    if path.stat().st_mode & 0o077:
        try:
            path.chmod(0o600)
        except OSError as error:
            raise StoreUnusable(
                f"{path}: is open to others, and not ours to close ({error.strerror})"
            ) from error
