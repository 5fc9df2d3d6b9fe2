"""Ends a process whose event loop has stopped responding, and prints where it hangs.

The loop shows every half second that it is alive. Three parts watch it, since each can do what the others
cannot:

- a thread, if the loop runs Python code that does not end, or waits for something;
- a timer of processor time, which the thread winds, if a call into C holds the interpreter: no Python code
  runs then, in no thread;
- an alarm that SIGTERM sets, also then: no handler written in Python would run.

The thread counts its own steps and the timer counts processor time: while a machine is suspended, a container
frozen or a process stopped, neither goes on. The supervisor of several workers counts in the same way.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import faulthandler
import mmap
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

TICK_SECONDS: Final = 0.5
_SPARE_SECONDS: Final = 10.0
"""A worker leaves this much time to its supervisor, which names it in the log."""
_STACK: Final = b"(most recent call first)"
"""Once in each stack that faulthandler writes."""
_IS_UNIX: Final = hasattr(signal, "setitimer")


class Pulses:
    """Memory shared with the workers: each counts there, and says how long it may be silent."""

    _ONE: Final = struct.Struct("=Qd")

    def __init__(self, workers: int) -> None:
        self._memory = mmap.mmap(-1, workers * self._ONE.size)

    def beat(self, index: int, seconds: float) -> None:
        count, _ = self.read(index)
        self._ONE.pack_into(self._memory, index * self._ONE.size, count + 1, seconds)

    def read(self, index: int) -> tuple[int, float]:
        """How often a worker has beaten, 0 if it is not serving; and after how many seconds without a
        beat it hangs, 0 for never."""
        count, seconds = self._ONE.unpack_from(self._memory, index * self._ONE.size)
        return int(count), float(seconds)

    def forget(self, index: int) -> None:
        self._ONE.pack_into(self._memory, index * self._ONE.size, 0, 0.0)


class Silence:
    """How long a counter has not changed, in time that the observer itself was running."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._count = -1
        self._looked = now()
        self.seconds = 0.0

    def look(self, count: int) -> float:
        now = self._now()
        # A longer step means that this process was not running either.
        step, self._looked = min(now - self._looked, 2 * TICK_SECONDS), now
        self.seconds = self.seconds + step if count == self._count else 0.0
        self._count = count
        return self.seconds


class Watchdog:
    """Watches the loop that starts it. `limit`: seconds without a sign of life after which the process is
    ended; 0: never. `fd`: of the log."""

    def __init__(
        self,
        limit: Callable[[], float],
        fd: int,
        terminate: Callable[[], None],
        *,
        pulses: Pulses | None = None,
        index: int = 0,
    ) -> None:
        """`terminate` is called in the loop for each SIGTERM. `pulses`, `index`: of a worker."""
        self._limit = limit
        self._fd = fd
        self._terminate = terminate
        self._pulses = pulses
        self._index = index
        self._beats = 0
        self._ended = threading.Event()
        self._pipe: tuple[int, int] | None = None
        self._unread = b""
        """The end of what was read of the pipe: `_STACK` may have begun there."""
        self._heard = False
        """A SIGTERM has been counted whose alarm has not been taken back yet."""
        self._before: int | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        if not faulthandler.is_enabled():
            faulthandler.enable(self._fd)  # a supervisor has the stacks printed by SIGABRT
        if _IS_UNIX and threading.current_thread() is threading.main_thread():
            faulthandler.register(signal.SIGPROF, self._fd, chain=True)
            faulthandler.register(signal.SIGALRM, self._fd, chain=True)
            self._take_terminations()
        self._wind()
        self._beat()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        self._ended.set()
        self._timer.cancel()
        if self._pulses is not None:
            self._pulses.forget(self._index)
        if _IS_UNIX:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self._give_terminations_back()
            faulthandler.unregister(signal.SIGPROF)
            faulthandler.unregister(signal.SIGALRM)

    # In the loop.

    def _beat(self) -> None:
        self._beats += 1
        if self._pulses is not None:
            self._pulses.beat(self._index, self._limit())
        if self._pipe is not None and signal.alarm(0):
            while self._terminated():
                pass
            if not self._heard:  # it arrived in a thread that runs no Python, which has no stack
                self._terminate()
            self._heard = False
        self._timer = self._loop.call_later(TICK_SECONDS, self._beat)

    # In the thread.

    def _watch(self) -> None:
        silence = Silence()
        while not self._ended.wait(TICK_SECONDS):
            limit = self._wind()
            if silence.look(self._beats) >= limit > 0:
                self._end(limit)

    def _wind(self) -> float:
        """Begin the time of the processor again. Returns the limit."""
        limit = self._limit()
        if limit and self._pulses is not None:
            limit += _SPARE_SECONDS
        if _IS_UNIX and not self._ended.is_set():
            signal.setitimer(signal.ITIMER_PROF, limit)
        return limit

    def _end(self, limit: float) -> None:
        text = (
            f"wireglot: the event loop has not responded for {limit:g} s (limits.hang), ending. It hangs:\n"
        )
        with contextlib.suppress(OSError):
            os.write(self._fd, text.encode())
        faulthandler.dump_traceback(self._fd, all_threads=True)
        os._exit(1)

    # SIGTERM

    def _take_terminations(self) -> None:
        """Have SIGTERM handled without Python: faulthandler writes the stack into a pipe, which wakes the
        loop, then calls the handler before it. That one is `alarm` of the C library. Its argument is the
        number of the signal, 15: so many seconds later SIGALRM prints the stacks and ends the process, unless
        the loop responds (`_beat`). A thread that runs no Python has no stack: then only the alarm shows that
        there was a signal."""
        libc = _libc()
        if libc is None:
            return
        reading, writing = self._pipe = os.pipe()
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)
        alarm = ctypes.cast(libc.alarm, ctypes.c_void_p)
        self._before = libc.signal(signal.SIGTERM, alarm)
        faulthandler.register(signal.SIGTERM, writing, all_threads=False, chain=True)
        self._loop.add_reader(reading, self._terminated)

    def _terminated(self) -> bool:
        """Count the signals whose stacks have arrived. Returns whether there may be more.

        A stack that another thread writes may arrive in pieces; it is one signal all the same.
        """
        assert self._pipe is not None
        try:
            self._unread += os.read(self._pipe[0], 1 << 16)
        except BlockingIOError:
            return False
        signals = self._unread.count(_STACK)
        self._unread = self._unread[-len(_STACK) + 1 :]
        for _ in range(signals):
            self._heard = True
            self._terminate()
        return True

    def _give_terminations_back(self) -> None:
        libc = _libc()
        if self._pipe is None or libc is None:
            return
        self._loop.remove_reader(self._pipe[0])
        faulthandler.unregister(signal.SIGTERM)
        libc.signal(signal.SIGTERM, self._before)
        signal.alarm(0)
        for descriptor in self._pipe:
            os.close(descriptor)
        self._pipe = None


def _libc() -> ctypes.CDLL | None:
    if sys.platform == "win32":
        return None
    try:
        libc = ctypes.CDLL(None)
        libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
        libc.signal.restype = ctypes.c_void_p
        libc.alarm  # noqa: B018 - whether it is there
    except (OSError, AttributeError):
        return None
    return libc
