"""Syncs that the kernel does by itself (asynchronous I/O of Linux): the event loop hands them over, and a
descriptor tells it when they are done.

A thread that has synced must have the interpreter before it can tell anybody, and a busy loop gives that up
only once in a while. The kernel needs nobody's turn.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Sequence
from typing import Final

_IO_SETUP, _IO_DESTROY, _IO_GETEVENTS, _IO_SUBMIT = range(4)
_NUMBERS: Final = {  # <asm/unistd.h>
    "x86_64": (206, 207, 208, 209),
    "aarch64": (0, 1, 4, 2),
    "riscv64": (0, 1, 4, 2),
}
_FDSYNC: Final = 3
_TELLS: Final = 1
"""IOCB_FLAG_RESFD: the descriptor is told."""
_REQUEST: Final = struct.Struct("<QIiHhIQQqQII")
"""struct iocb of <linux/aio_abi.h>: data, key, flags, operation, priority, file, buffer, bytes, offset,
reserved, how it tells, whom."""
_EVENT: Final = struct.Struct("<QQqq")
"""struct io_event: data, request, result, second result."""
FILES_MOST: Final = 32
"""Of one sync: more than a journal begins between two of them."""


class KernelSync:
    """One at a time: `submit`, then `collect` when `descriptor` can be read. Raises OSError."""

    def __init__(self, numbers: Sequence[int]) -> None:
        # None of these calls waits: to give the interpreter up for one is the wait that this is to save.
        self._syscall = ctypes.PyDLL(None, use_errno=True).syscall
        self._syscall.restype = ctypes.c_long
        self._numbers = [ctypes.c_long(number) for number in numbers]
        self._context = ctypes.c_ulong(0)
        self._requests = ctypes.create_string_buffer(FILES_MOST * _REQUEST.size)
        self._events = ctypes.create_string_buffer(FILES_MOST * _EVENT.size)
        first = ctypes.addressof(self._requests)
        self._list = (ctypes.c_void_p * FILES_MOST)(
            *(first + number * _REQUEST.size for number in range(FILES_MOST))
        )
        self._under_way = 0
        self._problem = 0
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        try:
            self._call(_IO_SETUP, ctypes.c_long(FILES_MOST), ctypes.byref(self._context))
        except OSError:
            os.close(self.descriptor)
            raise

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
        if len(files) > FILES_MOST:
            raise OSError("too many files for one sync")
        for number, fd in enumerate(files):
            _REQUEST.pack_into(
                self._requests,
                number * _REQUEST.size,
                *(0, 0, 0, _FDSYNC, 0, fd, 0, 0, 0, 0, _TELLS, self.descriptor),
            )
        # It may take some and refuse the next: those that it took are waited for, the rest has failed.
        taken = self._call(_IO_SUBMIT, self._context, ctypes.c_long(len(files)), self._list)
        self._under_way = taken
        self._problem = 0 if taken == len(files) else -1

    def collect(self) -> int | None:
        """0 where all were synced, else the number of an error; None where some are still under way."""
        try:
            os.eventfd_read(self.descriptor)
        except BlockingIOError:
            return None
        done = self._call(
            _IO_GETEVENTS, self._context, ctypes.c_long(0), ctypes.c_long(FILES_MOST), self._events, None
        )
        for number in range(done):
            _, _, result, _ = _EVENT.unpack_from(self._events, number * _EVENT.size)
            if result < 0:
                self._problem = -result
        self._under_way -= done
        return None if self._under_way else self._problem

    def close(self) -> None:
        """When nothing is under way."""
        self._call(_IO_DESTROY, self._context)
        os.close(self.descriptor)

    def _call(self, which: int, *given: object) -> int:
        result: int = self._syscall(self._numbers[which], *given)
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result
