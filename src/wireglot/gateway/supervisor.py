"""Several workers on one port: the parent starts them, replaces those that die, and passes signals on."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable
from types import FrameType

import msgspec

from wireglot.gateway.observe.workers import shared_directory
from wireglot.gateway.run import Place
from wireglot.gateway.settings import Settings

_LIVED = 10.0
"""Seconds after which a worker's death is no longer taken for a failure to start."""
_PAUSE_MAX = 2.0
_FAILED_STARTS = 5


class Supervisor:
    """`work(settings, place)` is what each worker process runs, to its exit status."""

    def __init__(self, settings: Settings, work: Callable[[Settings, Place], int]) -> None:
        self._settings = settings
        self._work = work
        self._workers: dict[int, tuple[int, float]] = {}
        self._stopping = 0
        self._failed_starts = 0

    def run(self) -> int:
        if not hasattr(os, "fork") or not hasattr(socket, "SO_REUSEPORT"):
            _say("--workers needs a system with fork and SO_REUSEPORT")
            return 2
        reserved, self._settings = _reserve(self._settings)
        self._directory = shared_directory()
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, self._pass_on)
        try:
            for index in range(self._settings.server.workers):
                self._start(index)
            return self._watch()
        finally:
            reserved.close()
            shutil.rmtree(self._directory, ignore_errors=True)

    def _start(self, index: int) -> None:
        child = os.fork()
        if child:
            self._workers[child] = (index, time.monotonic())
            return
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, signal.SIG_DFL)
        status = 1
        try:
            status = self._work(self._settings, Place(index, self._directory))
        finally:
            # Neither the parent's cleanup nor its exit handlers are this child's to run.
            sys.stderr.flush()
            os._exit(status)

    def _watch(self) -> int:
        worst = 0
        while self._workers:
            try:
                child, status = os.wait()
            except InterruptedError:
                continue
            index, started = self._workers.pop(child, (-1, 0.0))
            if index < 0:
                continue
            if self._stopping:
                worst = max(worst, os.waitstatus_to_exitcode(status))
                continue
            lived = time.monotonic() - started
            self._failed_starts = 0 if lived > _LIVED else self._failed_starts + 1
            if self._failed_starts >= _FAILED_STARTS * self._settings.server.workers:
                _say("the workers do not stay up")
                self._pass_on(signal.SIGTERM, None)
                worst = 1
                continue
            time.sleep(min(_PAUSE_MAX, 0.1 * 2**self._failed_starts) if lived < _LIVED else 0)
            self._start(index)
        return worst

    def _pass_on(self, name: int, frame: FrameType | None) -> None:
        if name != signal.SIGHUP:
            self._stopping += 1
        for child in tuple(self._workers):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, name)


def _reserve(settings: Settings) -> tuple[socket.socket, Settings]:
    """Hold the port, so that it is the same for all workers and nobody else's while one is replaced."""
    server = settings.server
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    reserved = socket.socket(family, socket.SOCK_STREAM)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind((server.host, server.port))
    port = int(reserved.getsockname()[1])
    return reserved, msgspec.structs.replace(settings, server=msgspec.structs.replace(server, port=port))


def _say(message: str) -> None:
    sys.stderr.write(f"wireglot: {message}\n")
