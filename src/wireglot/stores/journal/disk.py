"""The operating system calls of a journal: to reserve, write, read, sync and lock files."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
import threading
from collections.abc import Sequence
from typing import Final

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
        """Become the only holder of a file, until it is closed or the process ends, however it ends."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


# Not available everywhere. Without them no space can be reserved, and a full disk is noticed when a row is
# written.
_fallocate = getattr(os, "posix_fallocate", None)
_fdatasync = getattr(os, "fdatasync", os.fsync)

_IO_SETUP, _IO_DESTROY, _IO_GETEVENTS, _IO_SUBMIT = range(4)
_NUMBERS: Final = {  # <asm/unistd.h>
    "x86_64": (206, 207, 208, 209),
    "aarch64": (0, 1, 4, 2),
    "riscv64": (0, 1, 4, 2),
}
_FDSYNC: Final = 3
_TELLS: Final = 1
"""IOCB_FLAG_RESFD: notify the descriptor."""
_REQUEST: Final = struct.Struct("<QIiHhIQQqQII")
"""struct iocb of <linux/aio_abi.h>: data, key, flags, operation, priority, file, buffer, bytes, offset,
reserved, flags of the notification, its descriptor."""
_EVENT: Final = struct.Struct("<QQqq")
"""struct io_event: data, request, result, second result."""
MAX_FILES: Final = 32
"""Files of a journal that are written to disk with one call: more than are begun between two calls."""


class KernelSync:
    """Syncs by the kernel itself (asynchronous I/O of Linux), one at a time: `submit`, then `collect` when
    `descriptor` can be read. Raises OSError.

    A thread that has synced needs the interpreter before it can report that, and a busy loop releases it only
    once in a while. The kernel does not need the interpreter.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        # These calls do not block: releasing the interpreter for them would cause the wait that this class
        # avoids.
        self._syscall = ctypes.PyDLL(None, use_errno=True).syscall
        self._syscall.restype = ctypes.c_long
        self._numbers = [ctypes.c_long(number) for number in numbers]
        self._context = ctypes.c_ulong(0)
        self._requests = ctypes.create_string_buffer(MAX_FILES * _REQUEST.size)
        self._events = ctypes.create_string_buffer(MAX_FILES * _EVENT.size)
        first = ctypes.addressof(self._requests)
        self._list = (ctypes.c_void_p * MAX_FILES)(
            *(first + number * _REQUEST.size for number in range(MAX_FILES))
        )
        self._under_way = 0
        self._problem = 0
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        room = ctypes.c_long(MAX_FILES)
        if self._syscall(self._numbers[_IO_SETUP], room, ctypes.byref(self._context)) < 0:
            problem = _last_error()
            os.close(self.descriptor)
            raise problem

    @classmethod
    def open(cls) -> KernelSync | None:
        """None if it does not exist, or is not allowed."""
        numbers = _NUMBERS.get(platform.machine())
        if sys.platform != "linux" or numbers is None or struct.calcsize("P") != 8:
            return None
        try:
            return cls(numbers)
        except (OSError, AttributeError):
            return None

    def submit(self, files: Sequence[int]) -> None:
        """Begin to sync these files. A kernel or a file system may refuse: then nothing has begun."""
        count = len(files)
        if count > MAX_FILES:
            raise OSError("too many files for one sync")
        for number, fd in enumerate(files):
            _REQUEST.pack_into(
                self._requests,
                number * _REQUEST.size,
                *(0, 0, 0, _FDSYNC, 0, fd, 0, 0, 0, 0, _TELLS, self.descriptor),
            )
        # It may accept some and refuse the next: the accepted ones are waited for, the rest has failed.
        taken = self._syscall(self._numbers[_IO_SUBMIT], self._context, ctypes.c_long(count), self._list)
        if taken < 0:
            raise _last_error()
        self._under_way = taken
        self._problem = 0 if taken == count else -1

    def collect(self) -> int | None:
        """0 if all were synced, else the number of an error; None if some are still in progress."""
        try:
            os.eventfd_read(self.descriptor)
        except BlockingIOError:
            return None
        done = self._syscall(
            self._numbers[_IO_GETEVENTS],
            *(self._context, ctypes.c_long(0), ctypes.c_long(MAX_FILES), self._events, None),
        )
        if done < 0:
            raise _last_error()
        for number in range(done):
            _, _, result, _ = _EVENT.unpack_from(self._events, number * _EVENT.size)
            if result < 0:
                self._problem = -result
        self._under_way -= done
        return None if self._under_way else self._problem

    def close(self) -> None:
        """Called when nothing is in progress. In a thread, because it takes the kernel tens of
        milliseconds."""
        try:
            threading.Thread(target=self._destroy, name="wireglot-journal-close", daemon=True).start()
        except RuntimeError:  # no thread can be started
            self._destroy()

    def _destroy(self) -> None:
        syscall = ctypes.CDLL(None, use_errno=True).syscall  # a call that releases the interpreter
        if syscall(self._numbers[_IO_DESTROY], self._context) < 0:
            raise _last_error()
        os.close(self.descriptor)


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


class Disk:
    """All methods raise OSError."""

    def reserve(self, fd: int, size: int) -> None:
        if _fallocate is not None:
            _fallocate(fd, 0, size)

    def write(self, fd: int, data: bytes | bytearray, at: int) -> None:
        """Writes all of it."""
        if _pwrite(fd, data, at) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def read(self, fd: int, amount: int, at: int) -> bytes:
        return _pread(fd, amount, at)

    def sync(self, fd: int) -> None:
        _fdatasync(fd)

    def kernel_sync(self) -> KernelSync | None:
        """A sync without a thread, if the system supports it. It does not use `sync`."""
        return None


class LocalDisk(Disk):
    def kernel_sync(self) -> KernelSync | None:
        return KernelSync.open()


DISK: Final = LocalDisk()
