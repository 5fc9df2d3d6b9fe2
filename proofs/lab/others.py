"""Everybody else: a process of its own asks a gateway for its health, again and again.

Who keeps the gateway's loop keeps it waiting. So does a machine that has no processor for one of the two, and
a host that takes the processor away from the machine; Linux counts both, and what it counted during a wait is
taken off, the larger of the two: they are the same time where they fall together.
"""

from __future__ import annotations

import http.client
import multiprocessing
import os
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import msgspec

_GAP_SECONDS: Final = 0.002
_STOLEN: Final = 8
"""The field of a processor's line in /proc/stat, in ticks, that tells what its host took."""


class Waits(msgspec.Struct, frozen=True):
    """Since this was last asked."""

    longest: float = 0.0
    """In seconds, without what the machine itself took of it."""
    with_machine: float = 0.0
    count: int = 0

    def __str__(self) -> str:
        return f"{1000 * self.longest:3.0f} of {1000 * self.with_machine:3.0f} ms"


class MachineDelay:
    """What the machine took of the time since `restart`, in seconds. Nothing where it is not reported."""

    def __init__(self, pid: int, proc: Path = Path("/proc")) -> None:
        self._stat = proc / "stat"
        self._queued = (proc / str(pid) / "schedstat", proc / "self" / "schedstat")
        self._tick = 1 / os.sysconf("SC_CLK_TCK")
        self.restart()

    def restart(self) -> None:
        self._stolen_before, self._queued_before = self._stolen(), self._waited_for_a_processor()

    def seconds(self) -> float:
        pairs = zip(self._stolen(), self._stolen_before, strict=True)
        stolen = max((now - before for now, before in pairs), default=0) * self._tick
        queued = (self._waited_for_a_processor() - self._queued_before) / 1e9
        return max(stolen, queued)

    def _stolen(self) -> list[int]:
        """Of each processor."""
        try:
            lines = self._stat.read_text().splitlines()
        except OSError:
            return []
        return [int(line.split()[_STOLEN]) for line in lines if line.startswith("cpu") and line[3] != " "]

    def _waited_for_a_processor(self) -> int:
        try:
            return sum(int(path.read_text().split()[1]) for path in self._queued)
        except OSError:
            return 0


def _ask_again_and_again(port: int, pid: int, reported: Connection, gap_seconds: float) -> None:
    link = http.client.HTTPConnection("127.0.0.1", port)
    waits = Waits()
    machine = MachineDelay(pid)
    while True:
        if reported.poll():
            if not reported.recv():
                return
            reported.send(waits)
            waits = Waits()
        machine.restart()
        took = _ask(link)
        own = took if took <= waits.longest else max(took - machine.seconds(), 0.0)
        waits = Waits(max(waits.longest, own), max(waits.with_machine, took), waits.count + 1)
        time.sleep(gap_seconds)


def _ask(link: http.client.HTTPConnection) -> float:
    began = time.perf_counter()
    link.request("GET", "/healthz")
    link.getresponse().read()
    return time.perf_counter() - began


class Others:
    def __init__(self, port: int, pid: int, *, gap_seconds: float = _GAP_SECONDS) -> None:
        fresh = multiprocessing.get_context("spawn")
        self._link, theirs = fresh.Pipe()
        self._process = fresh.Process(
            target=_ask_again_and_again, args=(port, pid, theirs, gap_seconds), daemon=True
        )
        self._process.start()
        self.waited()

    def waited(self) -> Waits:
        self._link.send(True)
        found: Waits = self._link.recv()
        return found

    def close(self) -> None:
        self._link.send(False)
        self._process.join(10)
