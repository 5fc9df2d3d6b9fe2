"""What a journal asks of the operating system: to reserve, write, read, sync and lock files."""

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
        """Be the one holder of a file, until it is closed or the process ends, however it ends."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


# Neither exists everywhere. Where room cannot be reserved, a full disk shows when a row is written.
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
"""IOCB_FLAG_RESFD: the descriptor is notified."""
_REQUEST: Final = struct.Struct("<QIiHhIQQqQII")
"""struct iocb of <linux/aio_abi.h>: data, key, flags, operation, priority, file, buffer, bytes, offset,
reserved, how it tells, whom."""
_EVENT: Final = struct.Struct("<QQqq")
"""struct io_event: data, request, result, second result."""
MAX_FILES: Final = 32
"""Of one sync: more than a journal begins between two of them."""


class KernelSync:
    """Syncs that the kernel does by itself (asynchronous I/O of Linux), one at a time: `submit`, then
    `collect` when `descriptor` can be read. Raises OSError.

    A thread that has synced must have the interpreter before it can tell anybody, and a busy loop gives that
    up only once in a while. The kernel does not need the interpreter.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        # None of these calls waits: to give the interpreter up for one is the wait that this is to save.
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
        """None where there is none, or it is not allowed."""
        numbers = _NUMBERS.get(platform.machine())
        if sys.platform != "linux" or numbers is None or struct.calcsize("P") != 8:
            return None
        try:
            return cls(numbers)
        except (OSError, AttributeError):
            return None

    def submit(self, files: Sequence[int]) -> None:
        """Begin to sync these. Which a kernel or a file system may refuse: then nothing has begun."""
        count = len(files)
        if count > MAX_FILES:
            raise OSError("too many files for one sync")
        for number, fd in enumerate(files):
            _REQUEST.pack_into(
                self._requests,
                number * _REQUEST.size,
                *(0, 0, 0, _FDSYNC, 0, fd, 0, 0, 0, 0, _TELLS, self.descriptor),
            )
        # It may take some and refuse the next: those that it took are waited for, the rest has failed.
        taken = self._syscall(self._numbers[_IO_SUBMIT], self._context, ctypes.c_long(count), self._list)
        if taken < 0:
            raise _last_error()
        self._under_way = taken
        self._problem = 0 if taken == count else -1

    def collect(self) -> int | None:
        """0 where all were synced, else the number of an error; None where some are still under way."""
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
        """When nothing is under way. In a thread, because the kernel takes tens of milliseconds for it."""
        try:
            threading.Thread(target=self._destroy, name="wireglot-journal-close", daemon=True).start()
        except RuntimeError:  # no thread can be started
            self._destroy()

    def _destroy(self) -> None:
        syscall = ctypes.CDLL(None, use_errno=True).syscall  # one that lets others run meanwhile
        if syscall(self._numbers[_IO_DESTROY], self._context) < 0:
            raise _last_error()
        os.close(self.descriptor)


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


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
