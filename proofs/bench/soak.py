"""Does it leak? Mixed traffic against one worker for a while, then a look at what stayed behind: `make soak`.

Memory, open files and requests in flight are sampled throughout. At the end all clients are gone: no request
may be in flight, no file open that was not before, memory not have grown beyond a bound, no answer have been
wrong on the way. Exit status 1 otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.request import Request, urlopen

from proofs.bench import processes, targets, toolbox
from proofs.bench.traffic import Client

_GAUGE = re.compile(r"^(wireglot_\w+)(?:\{.*\})? ([\d.e+-]+)$", re.MULTILINE)
_QUIET = 20.0
"""Seconds without traffic before what stayed behind is counted: longer than idle connections are kept."""


class Sample(NamedTuple):
    at: float
    rss: float
    files: int
    in_flight: float
    tasks: float


class Soak:
    def __init__(self, arguments: argparse.Namespace, directory: Path) -> None:
        self.arguments = arguments
        self.tally: Counter[str] = Counter()
        self.odd: list[str] = []
        self.samples: list[Sample] = []
        self.began = time.monotonic()
        upstream = processes.free_port()
        self._upstream = processes.start([*toolbox.own().upstream, str(upstream)], directory / "upstream.log")
        processes.answers(upstream, 10)
        self.target = targets.wireglot(arguments.command, upstream, directory, _faulty_providers(upstream))

    def close(self) -> None:
        self.target.stop()
        processes.stop(self._upstream)

    async def run(self) -> tuple[Sample, Sample]:
        """A warm-up, a look while all is quiet, the long run, and the same look again."""
        await self._traffic(self.arguments.warm)
        before = await self._quiet()
        self.samples.clear()
        await self._traffic(self.arguments.minutes * 60)
        return before, await self._quiet()

    async def _traffic(self, seconds: float) -> None:
        stopped = asyncio.Event()
        seed, count = self.arguments.seed, self.arguments.clients
        chances = [random.Random(f"{seed} {number}") for number in range(count)]
        clients = [Client(self.target.port, chance, self.tally, self.odd) for chance in chances]
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.run(stopped))
            await self._watch(seconds)
            stopped.set()

    async def _watch(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        reload = time.monotonic() + seconds / 4
        while (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(self.arguments.every, left))
            await self._sample()
            if time.monotonic() > reload:
                reload += seconds / 4
                os.kill(self.target.pid, signal.SIGHUP)

    async def _quiet(self) -> Sample:
        await asyncio.sleep(_QUIET)
        return await self._sample()

    async def _sample(self) -> Sample:
        pids = processes.family(self.target.pid)
        gauges = await asyncio.to_thread(self._gauges)
        sample = Sample(
            time.monotonic() - self.began,
            processes.memory(pids).rss,
            processes.open_files(pids),
            gauges.get("wireglot_requests_in_flight", 0),
            gauges.get("wireglot_tasks", 0),
        )
        self.samples.append(sample)
        print(
            f"{sample.at:7.0f} s  {sample.rss:6.1f} MiB  {sample.files:5d} files  {sample.in_flight:4.0f} "
            f"in flight  {self.tally['requests']:8d} requests  {self.tally['left']} left  "
            f"{self.tally['wrong']} wrong",
            flush=True,
        )
        return sample

    def _gauges(self) -> dict[str, float]:
        request = Request(f"http://127.0.0.1:{self.target.port}/metrics")
        name, _, value = targets.HEADERS[0].partition(": ")
        request.add_header(name, value)
        request.add_header("connection", "close")
        with urlopen(request, timeout=10) as answer:
            text = answer.read().decode()
        return {name: float(number) for name, number in _GAUGE.findall(text)}


def verdict(soak: Soak, before: Sample, after: Sample) -> list[str]:
    """What is wrong, nothing if all is well."""
    arguments = soak.arguments
    found = [f"wrong answer: {line}" for line in soak.odd]
    if after.in_flight:
        found.append(f"{after.in_flight:.0f} requests are still in flight")
    if after.files > before.files + arguments.files:
        found.append(f"open files grew from {before.files} to {after.files}")
    if after.tasks > before.tasks:
        found.append(f"tasks grew from {before.tasks:.0f} to {after.tasks:.0f}")
    # Under load, and so against one another: the first and the last fifth of the long run.
    fifth = max(len(soak.samples) // 5, 1)
    first, last = (
        median(sample.rss for sample in part) for part in (soak.samples[:fifth], soak.samples[-fifth:])
    )
    bound = max(first * arguments.growth / 100, arguments.slack)
    print(f"memory: {first:.1f} MiB in the first fifth, {last:.1f} MiB in the last; bound +{bound:.1f} MiB")
    if last > first + bound:
        found.append(f"memory grew from {first:.1f} to {last:.1f} MiB")
    return found


def _faulty_providers(upstream: int) -> str:
    # Failures go to providers of their own, whose breakers do not open: every one shall reach its code.
    policy = "retry = { retries = 1, base = 0.01 }\nbreaker = { consecutive = 1000000000, ratio = 1.0 }\n"
    tables = (targets.provider(name, upstream, f"bad-{name}").rstrip() for name in targets.PROVIDERS)
    return "\n".join(f"{table}\n{policy}" for table in tables)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Look for leaks under mixed traffic.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--warm", type=float, default=30.0, help="seconds of traffic before the first look")
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between samples")
    parser.add_argument("--growth", type=float, default=5.0, help="percent that memory may grow")
    parser.add_argument("--slack", type=float, default=4.0, help="MiB that memory may grow in any case")
    parser.add_argument("--files", type=int, default=2, help="open files that may stay")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--command", help="how wireglot is run, instead of the one beside this Python")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="where configurations and logs stay behind")
    reported = parser.parse_args()
    reported.command = (
        reported.command.split() if reported.command else [str(Path(sys.executable).with_name("wireglot"))]
    )
    return reported


def main() -> None:
    arguments = _options()
    with tempfile.TemporaryDirectory(prefix="wireglot-soak-") as temporary:
        directory = arguments.keep or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        soak = Soak(arguments, directory.resolve())
        try:
            soak.target.start(None)
            before, after = asyncio.run(soak.run())
        finally:
            soak.close()
    print(", ".join(f"{name}: {count}" for name, count in sorted(soak.tally.items())))
    problems = verdict(soak, before, after)
    print("\n".join(problems) if problems else "nothing leaked, no answer was wrong")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
