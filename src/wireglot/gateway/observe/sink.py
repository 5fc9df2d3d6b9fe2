"""Where log lines leave the process: a bounded queue and a thread, so that a blocked reader stalls nobody.

A thread, because the alternative, a non-blocking descriptor, is a flag of the terminal or pipe itself and
would change it for every process that shares it.
"""

from __future__ import annotations

import atexit
import errno
import os
import select
import stat
import threading
import time
import weakref
from collections import deque
from typing import Final

QUEUE_LINES: Final = 10_000
PAUSE_SECONDS: Final = 0.05
"""Lines gather this long before the next write."""
ATOMIC_BYTES: Final = min(getattr(select, "PIPE_BUF", 512), 4096)
"""A pipe takes this much whole; longer writes of several workers would mix inside a line."""
FILE_BYTES: Final = 64 * 1024
"""A file takes as much as it is given, one write after the other. For each the thread has to win the
interpreter's lock from the loop again."""


class Sink:
    """Takes lines, each with its newline. `dropped`: the queue was full. `failed`: the target refused."""

    def __init__(self, fd: int, *, limit: int = QUEUE_LINES, pause: float = PAUSE_SECONDS) -> None:
        self._fd = fd
        self._limit = limit
        self._pause = pause
        self._begin_anew()
        _SINKS.add(self)

    def _begin_anew(self) -> None:
        self._queue: deque[bytes] = deque()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._starting = threading.Lock()
        self._writer: threading.Thread | None = None
        self._idle = True
        self._closing = False
        self.dropped = 0
        self.failed = 0

    def write(self, line: bytes) -> None:
        if len(self._queue) >= self._limit or self._closing:
            self.dropped += 1
            return
        self._queue.append(line)
        if self._idle:
            self._idle = False
            if self._writer is None:
                self._start()
            self._wake.set()

    def close(self, timeout: float = 1.0) -> None:
        """Write what is queued, as far as the reader takes it in time; later lines are dropped."""
        self._closing = True
        if self._writer is not None:
            self._wake.set()
            self._ended.wait(timeout)

    def _start(self) -> None:
        with self._starting:
            if self._writer is None:
                self._writer = threading.Thread(target=self._run, name="wireglot-log", daemon=True)
                self._writer.start()

    def _run(self) -> None:
        try:
            while True:
                self._flush()
                if self._closing and not self._queue:
                    return
                self._rest()
        finally:
            self._ended.set()

    def _rest(self) -> None:
        # First say that we sleep, then look again: a line queued in between is seen by one of the two sides.
        self._idle = True
        if not self._queue and not self._closing:
            self._wake.wait()
        self._idle = False
        self._wake.clear()
        if not self._closing:
            # A burst leaves in a few writes. `close` need not wait for it: the event is set anew by then.
            self._wake.wait(self._pause)

    def _flush(self) -> None:
        most = _at_once(self._fd) if self._queue else 0
        while self._queue:
            lines = [self._queue.popleft()]
            size = len(lines[0])
            while self._queue and size + len(self._queue[0]) <= most:
                lines.append(self._queue.popleft())
                size += len(lines[-1])
            try:
                self._write_out(b"".join(lines))
            except OSError:
                self.failed += len(lines)

    def _write_out(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:  # whoever shares the descriptor has made it non-blocking
                self._wait_for_reader()
            except OSError as fault:
                if fault.errno != errno.EINTR:
                    raise

    def _wait_for_reader(self) -> None:
        try:
            select.select([], [self._fd], [], 0.2)
        except ValueError:  # a descriptor beyond what select can watch
            time.sleep(0.01)


def _at_once(fd: int) -> int:
    """Bytes that it takes in one piece."""
    try:
        return FILE_BYTES if stat.S_ISREG(os.fstat(fd).st_mode) else ATOMIC_BYTES
    except OSError:  # which the write will tell
        return ATOMIC_BYTES


_SINKS: weakref.WeakSet[Sink] = weakref.WeakSet()


def _close_all() -> None:
    for sink in list(_SINKS):
        sink.close()


def _after_fork() -> None:
    # The thread stayed in the parent, which writes what was queued.
    for sink in list(_SINKS):
        sink._begin_anew()


# Runs after an uncaught exception too, so that the lines before a crash are not lost.
atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
