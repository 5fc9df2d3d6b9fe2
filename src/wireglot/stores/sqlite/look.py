"""A store's file as it is, read through and left alone: for people who ask what is wrong."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import apsw
import msgspec

from wireglot.stores.base import StoreDown, StoreUnusable
from wireglot.stores.sqlite.engine import STORE
from wireglot.stores.sqlite.file import explain, recognise, require_version

_BUSY_SECONDS: Final = 2.0
_READ_SECONDS: Final = 10.0
_STEPS: Final = 20_000
"""Of SQLite's machine, between two looks at the time."""


class FileLook(msgspec.Struct, frozen=True):
    version: int
    """Of its schema."""
    known: int
    """The newest that this program knows."""
    size: int
    is_read_through: bool
    """Or the time for it was over before anything was found."""
    keys: int
    """Of clients."""


def look_at_file(path: Path) -> FileLook:
    """Raises StoreUnusable or StoreDown, in the words in which a start would. Blocks."""
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
        # Another's file is not changed, not even by the end of its WAL.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.set_busy_timeout(round(_BUSY_SECONDS * 1000))
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
    """Whether all of it was read; raises CorruptError where something is wrong."""
    deadline = time.monotonic() + _READ_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    try:
        found = connection.pragma("quick_check", 1)
    except apsw.InterruptError:
        return False
    if found != "ok":
        raise apsw.CorruptError(str(found))
    return True
