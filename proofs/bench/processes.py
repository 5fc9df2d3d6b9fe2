"""Processes under measurement: started on one core, watched through /proc, ended with all they started."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class Memory(NamedTuple):
    """MiB: resident, and the share of it that is its own when shared pages are divided."""

    rss: float
    pss: float


def family(root: int) -> list[int]:
    """The process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir(_PROC):
        if entry.isdigit():
            with suppress(OSError, ValueError):
                children.setdefault(int(_stat(int(entry))[1]), []).append(int(entry))
    found = [root]
    for pid in found:
        found.extend(children.get(pid, []))
    return found


def cpu_seconds(pid: int) -> float | None:
    """User and system time of all its threads so far, those that have ended included; None if it is gone.

    The kernel counts it in nanoseconds (`clock_getcpuclockid`). The ticks in /proc are of 10 ms, which on a
    short run is more than what is measured.
    """
    try:
        return time.clock_gettime_ns(_cpu_clock(pid)) / 1e9
    except OSError:
        return None


def _cpu_clock(pid: int) -> int:
    """The id of a process's own clock, as the C library makes it."""
    return (~pid << 3) | 2


class Meter:
    """Processor time of a process and its descendants from here on."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._before = self._read()

    def spent(self) -> float:
        """Seconds. Who was started meanwhile counts from its start; who has ended counts no more."""
        return sum(seconds - self._before.get(pid, 0.0) for pid, seconds in self._read().items())

    def _read(self) -> dict[int, float]:
        clocks = {pid: cpu_seconds(pid) for pid in family(self._root)}
        return {pid: seconds for pid, seconds in clocks.items() if seconds is not None}


def memory(pids: list[int]) -> Memory:
    sums = {"Rss:": 0, "Pss:": 0}
    for pid in pids:
        with suppress(OSError):
            for line in (_PROC / str(pid) / "smaps_rollup").read_text().splitlines():
                name, _, rest = line.partition(" ")
                if name in sums:
                    sums[name] += int(rest.split()[0])
    return Memory(sums["Rss:"] / 1024, sums["Pss:"] / 1024)


def open_files(pids: list[int]) -> int:
    total = 0
    for pid in pids:
        with suppress(OSError):
            total += len(os.listdir(_PROC / str(pid) / "fd"))
    return total


def _stat(pid: int) -> list[str]:
    """The fields behind the name, which may hold spaces: state, parent, ..."""
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def pinned(argv: list[str], core: int | None) -> list[str]:
    """The command on one core, where the machine can do that and has two."""
    taskset = shutil.which("taskset")
    return argv if core is None or taskset is None else [taskset, "-c", str(core), *argv]


def cores() -> tuple[int | None, int | None]:
    """A core for the tools and one for the server. Neither, where there is one core only."""
    usable = sorted(os.sched_getaffinity(0))
    return (usable[0], usable[1]) if len(usable) > 1 and shutil.which("taskset") else (None, None)


def start(argv: list[str], log: Path, core: int | None = None) -> subprocess.Popen[bytes]:
    """Both outputs go to the file: what is measured writes its log lines somewhere."""
    with log.open("ab") as sink:
        return subprocess.Popen(
            pinned(argv, core), stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True
        )


def stop(process: subprocess.Popen[bytes], patience: float = 3.0) -> None:
    """End it and its descendants, first kindly."""
    pids = family(process.pid)
    for sent in (signal.SIGTERM, signal.SIGKILL):
        for pid in reversed(pids):
            with suppress(OSError):
                os.kill(pid, sent)
        end = time.monotonic() + patience
        while time.monotonic() < end:
            process.poll()
            # A master may be gone before its worker.
            pids = [pid for pid in pids if lives(pid)]
            if not pids:
                return
            time.sleep(0.01)


def lives(pid: int) -> bool:
    try:
        return _stat(pid)[0] not in ("Z", "X")
    except OSError:
        return False


def answers(port: int, within: float) -> bool:
    """Wait until something listens on the port."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        time.sleep(0.005)
    return False
