"""What a journal asks of the operating system: to reserve, write, read, sync and lock files."""

from __future__ import annotations

import errno
import os
import sys
from typing import Final

from wireglot.stores.journal.kernel_sync import KernelSync

if sys.platform == "win32":
    import msvcrt

    def lock_file(fd: int, *, wait: bool = False) -> bool:
        try:
            msvcrt.locking(fd, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _pwrite(fd: int, data: bytes | bytearray, at: int) -> int:
        os.lseek(fd, at, os.SEEK_SET)
        return os.write(fd, data)

    def _pread(fd: int, amount: int, at: int) -> bytes:
        os.lseek(fd, at, os.SEEK_SET)
        return os.read(fd, amount)

else:
    import fcntl

    _pwrite, _pread = os.pwrite, os.pread

    def lock_file(fd: int, *, wait: bool = False) -> bool:
        """Be the one holder of a file, until it is closed or the process ends, however it ends."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


# Neither exists everywhere. Where room cannot be reserved, a full disk shows when a row is written.
_fallocate = getattr(os, "posix_fallocate", None)
_fdatasync = getattr(os, "fdatasync", os.fsync)


class Disk:
    """All raise OSError."""

    def reserve(self, fd: int, size: int) -> None:
        if _fallocate is not None:
            _fallocate(fd, 0, size)

    def write(self, fd: int, data: bytes | bytearray, at: int) -> None:
        """All of it."""
        if _pwrite(fd, data, at) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def read(self, fd: int, amount: int, at: int) -> bytes:
        return _pread(fd, amount, at)

    def sync(self, fd: int) -> None:
        _fdatasync(fd)

    def kernel_sync(self) -> KernelSync | None:
        """What syncs without a thread, where there is such a thing. It passes `sync` by."""
        return None


class LocalDisk(Disk):
    def kernel_sync(self) -> KernelSync | None:
        return KernelSync.open()


DISK: Final = LocalDisk()
