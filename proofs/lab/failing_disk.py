"""A disk whose n-th operation fails: below SQLite (a VFS) and below the journal, with one count for both."""

from __future__ import annotations

import errno
import os
import threading
from collections import Counter
from typing import Any, Final, Literal, cast

import apsw

from wireglot.stores.journal.disk import Disk

Way = Literal["error once", "error from then on", "torn once", "full from then on"]
WAYS: Final[tuple[Way, ...]] = ("error once", "error from then on", "torn once", "full from then on")
_GROWS: Final = frozenset({"write", "truncate", "open", "reserve"})
"""What a full disk refuses."""
_BROKEN: Final = {
    "read": apsw.SQLITE_IOERR_READ,
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "size": apsw.SQLITE_IOERR_FSTAT,
    "delete": apsw.SQLITE_IOERR_DELETE,
    "open": apsw.SQLITE_CANTOPEN,
}


class Trouble:
    """Counts operations, and says which fail. Before `arm` and after `repair` none does."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._at = 0
        self._way: Way | None = None
        self._count = 0

    def arm(self, at: int, way: Way) -> None:
        with self._lock:
            self._at, self._way, self._count = at, way, 0

    def repair(self) -> None:
        with self._lock:
            self._way = None

    @property
    def struck(self) -> int:
        return self.failed.total()

    def fails(self, operation: str) -> Way | None:
        """How this operation fails, None where it does not."""
        with self._lock:
            way = self._way
            if way is None:
                return None
            self.seen[operation] += 1
            self._count += 1
            hit = self._count == self._at if way.endswith("once") else self._count >= self._at
            if not hit or (way.startswith("full") and operation not in _GROWS):
                return None
            self.failed[operation] += 1
            return way


class FailingVfs(apsw.VFS):
    """The default one while it is open."""

    def __init__(self, trouble: Trouble) -> None:
        self.trouble = trouble
        self.below = apsw.vfs_names()[0]
        super().__init__("a disk that fails", self.below, makedefault=True)

    def close(self) -> None:
        self.unregister()
        apsw.set_default_vfs(self.below)

    def xOpen(self, name: Any, flags: Any) -> Any:
        if way := self.trouble.fails("open"):
            raise _refused("open", way)
        return _File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        if way := self.trouble.fails("delete"):
            raise _refused("delete", way)
        super().xDelete(filename, syncdir)


class _File(apsw.VFSFile):
    def __init__(self, disk: FailingVfs, name: Any, flags: Any) -> None:
        super().__init__(disk.below, name, flags)
        self._trouble = disk.trouble

    def xRead(self, amount: int, offset: int) -> bytes:
        if way := self._trouble.fails("read"):
            raise _refused("read", way)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        if way := self._trouble.fails("write"):
            if way == "torn once":
                super().xWrite(bytes(data)[: len(data) // 2], offset)
            raise _refused("write", way)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        if way := self._trouble.fails("sync"):
            raise _refused("sync", way)
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:
        if way := self._trouble.fails("truncate"):
            raise _refused("truncate", way)
        super().xTruncate(newsize)

    def xFileSize(self) -> int:
        if way := self._trouble.fails("size"):
            raise _refused("size", way)
        return super().xFileSize()


def _refused(operation: str, way: Way) -> apsw.Error:
    if operation == "open":
        return apsw.CantOpenError("a disk that fails, for the trial")
    if way.startswith("full"):
        return apsw.FullError("a disk that is full, for the trial")
    problem: Any = apsw.IOError("a disk that fails, for the trial")
    problem.extendedresult = _BROKEN[operation]  # which is what SQLite is given
    return cast(apsw.Error, problem)


class FailingDisk(Disk):
    """The same for a journal."""

    def __init__(self, trouble: Trouble) -> None:
        self._trouble = trouble

    def reserve(self, fd: int, size: int) -> None:
        self._check("reserve")
        super().reserve(fd, size)

    def write(self, fd: int, data: bytes | bytearray, at: int) -> None:
        if way := self._trouble.fails("write"):
            if way == "torn once":
                super().write(fd, data[: len(data) // 2], at)
            raise _no(way)
        super().write(fd, data, at)

    def read(self, fd: int, amount: int, at: int) -> bytes:
        self._check("read")
        return super().read(fd, amount, at)

    def sync(self, fd: int) -> None:
        self._check("sync")
        super().sync(fd)

    def _check(self, operation: str) -> None:
        if way := self._trouble.fails(operation):
            raise _no(way)


def _no(way: Way) -> OSError:
    number = errno.ENOSPC if way.startswith("full") else errno.EIO
    return OSError(number, os.strerror(number))
