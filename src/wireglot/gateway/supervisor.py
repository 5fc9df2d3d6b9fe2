"""Several workers on one port: the parent starts them, replaces those that die, and passes signals on."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable
from types import FrameType

import msgspec

from wireglot.gateway.config.watch import HandedDown
from wireglot.gateway.observe.workers import shared_directory
from wireglot.gateway.run import WorkerPlace, ignore_reloads
from wireglot.gateway.settings import ServerSettings, Settings
from wireglot.gateway.watchdog import TICK_SECONDS, Pulses, Silence

_LIVED = 10.0
"""A worker that lived longer than this many seconds has not failed to start."""
# Seconds until a worker that ended is started again.
_PAUSE_MAX = 2.0
_FAILED_STARTS = 5
_LOOK = 0.05
"""Seconds between two checks for a signal during a pause: a handler that returns does not end a sleep."""
_DUMP_SECONDS = 2.0
"""How long a worker that hangs has to print its stacks."""
_LOOKS = getattr(os, "WNOHANG", 0) | getattr(os, "WUNTRACED", 0) | getattr(os, "WCONTINUED", 0)


class Supervisor:
    """Runs the workers. `work(settings, place)` runs in each worker process and returns its exit status."""

    def __init__(self, settings: Settings, work: Callable[[Settings, WorkerPlace], int]) -> None:
        self._settings = settings
        self._work = work
        self._workers: dict[int, tuple[int, float]] = {}
        self._pulses = Pulses(settings.server.workers)
        self._silences: dict[int, Silence] = {}
        """Of the workers that are not stopped by a signal."""
        self._stopping = 0
        self._failed_starts = 0

    def run(self) -> int:
        if not hasattr(os, "fork") or not hasattr(socket, "SO_REUSEPORT"):
            _say("--workers needs a system with fork and SO_REUSEPORT")
            return 2
        self._signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        reserved, self._settings = _reserve(self._settings)
        self._directory = shared_directory()
        self._handed_down = HandedDown()
        # Nothing is ever written to this pipe. Workers see its end, however this process dies.
        self._lifeline, self._life = os.pipe()
        # Every signal writes a byte here: a wait for one ends.
        self._signalled, self._signal = os.pipe()
        for descriptor in (self._signalled, self._signal):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self._signal, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for name in self._signals:
            signal.signal(name, self._pass_on)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})  # delayed until now (`cli/entry.py`)
        try:
            for index in range(self._settings.server.workers):
                self._start(index)
            return self._watch()
        finally:
            ignore_reloads()
            reserved.close()
            signal.set_wakeup_fd(-1)
            for descriptor in (self._lifeline, self._life, self._signalled, self._signal):
                os.close(descriptor)
            self._handed_down.close()
            shutil.rmtree(self._directory, ignore_errors=True)

    def _start(self, index: int, *, again: bool = False) -> None:
        # A signal between the fork and the registration of the child would not reach the child.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        self._pulses.forget(index)
        child = 0 if self._stopping else os.fork()
        if child or self._stopping:
            if child:
                self._workers[child] = (index, time.monotonic())
                self._silences[child] = Silence()
                if self._stopping:  # another thread handled the signal and did not pass it to this child
                    os.kill(child, signal.SIGTERM)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            return
        signal.set_wakeup_fd(-1)
        for descriptor in (self._life, self._signalled, self._signal):
            os.close(descriptor)
        for name in (*self._signals, signal.SIGCHLD):
            signal.signal(name, signal.SIG_DFL)
        # A terminal sends Ctrl-C to the whole process group: the worker would get it twice, since the parent
        # passes it on.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # A reload that is requested before the worker can handle it is delayed until then.
        signal.pthread_sigmask(signal.SIG_SETMASK, {*before, signal.SIGHUP})
        status = 1
        try:
            place = WorkerPlace(
                index,
                self._directory,
                self._lifeline,
                again=again,
                handed_down=self._handed_down,
                pulses=self._pulses,
            )
            status = self._work(self._settings, place)
        finally:
            # The child must not run the parent's cleanup or exit handlers.
            sys.stderr.flush()
            os._exit(status)

    def _watch(self) -> int:
        worst = 0
        while self._workers:
            child, status = os.waitpid(-1, _LOOKS)
            if not child:
                self._look()
                self._wait()
                continue
            if os.WIFSTOPPED(status):
                self._silences.pop(child, None)  # one that is stopped does not hang
                continue
            if os.WIFCONTINUED(status):
                self._silences[child] = Silence()
                continue
            self._silences.pop(child, None)
            index, started = self._workers.pop(child, (-1, 0.0))
            if index < 0:
                continue
            if self._stopping:
                worst = max(worst, _exit_status(status))
                continue
            lived = time.monotonic() - started
            self._failed_starts = 0 if lived > _LIVED else self._failed_starts + 1
            if self._failed_starts >= _FAILED_STARTS * self._settings.server.workers:
                _say("the workers keep exiting")
                self._pass_on(signal.SIGTERM, None)
                worst = 1
                continue
            if lived < _LIVED:
                self._pause(min(_PAUSE_MAX, 0.1 * 2**self._failed_starts))
            self._start(index, again=True)
        return worst

    def _wait(self) -> None:
        """Until a signal comes, or it is time to look at the workers."""
        if select.select([self._signalled], [], [], TICK_SECONDS)[0]:
            os.read(self._signalled, 1 << 16)

    def _look(self) -> None:
        """Kill the workers that have stopped responding."""
        for child, (index, _) in tuple(self._workers.items()):
            silence = self._silences.get(child)
            if silence is not None:
                count, limit = self._pulses.read(index)
                seconds = silence.look(count)
                if count and limit and seconds >= limit:
                    self._kill(child, index, limit)

    def _kill(self, child: int, index: int, limit: float) -> None:
        del self._silences[child]
        _say(f"worker {index} not responding for {limit:g} s (limits.hang), replacing it. It hangs:")
        os.kill(child, signal.SIGABRT)  # it prints its stacks
        until = time.monotonic() + _DUMP_SECONDS
        while time.monotonic() < until and not _has_ended(child):
            time.sleep(_LOOK)
        os.kill(child, signal.SIGKILL)

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stopping and time.monotonic() < until:
            time.sleep(_LOOK)

    def _pass_on(self, name: int, frame: FrameType | None) -> None:
        if name != signal.SIGHUP:
            # Reloads have no effect any more, and many of them would call this handler recursively.
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            self._stopping += 1
            name = signal.SIGTERM  # workers ignore SIGINT
        for child in tuple(self._workers):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, name)
                if name == signal.SIGTERM:
                    os.kill(child, signal.SIGCONT)  # one that is stopped would never end


def _exit_status(status: int) -> int:
    """1 for a worker that was killed, but for one that had not begun to serve when it got SIGTERM."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else int(code != -signal.SIGTERM)


def _has_ended(child: int) -> bool:
    """Whether a child has ended, which it still has to be waited for."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _reserve(settings: Settings) -> tuple[socket.socket, Settings]:
    """Bind the port, so that all workers have the same one and it stays reserved while one is replaced."""
    server = settings.server
    # A process that shares its port with its own workers would also share it with ours, and each would get
    # half of the requests.
    _bound(server, shared=False).close()
    reserved = _bound(server, shared=True)
    port = int(reserved.getsockname()[1])
    return reserved, msgspec.structs.replace(settings, server=msgspec.structs.replace(server, port=port))


def _bound(server: ServerSettings, *, shared: bool) -> socket.socket:
    """A socket at the address of the server; OSError where another process listens there."""
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # as the workers do
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind((server.host, server.port))
    except BaseException:
        sock.close()
        raise
    return sock


def _say(message: str) -> None:
    sys.stderr.write(f"wireglot: {message}\n")
