"""Hours of everything at once on a fleet: does memory stay flat, does anyone wait, does anything stay behind?

    python -m proofs.lab.fleet_soak [--minutes 90] [--machines 2] [--callers 50] [--streams 60] [--seed 1]

Machines on one PostgreSQL and one Redis. The callers of `crosstalk` use all of them by chance: all pairs of
dialects, whole and streamed, clients that leave, providers that fail, chained responses, sessions, tool calls
whose reasoning is kept, questions for what is another's. Beside them streams that say a word every half
second, and now and then a large body and a reload at every machine, whose waits are distinguished. Memory is
compared after a warm-up: what is kept for a while is filled first, then a tenth of the time passes. In the
end, with all clients gone, no request may be in flight and no task or file be there that was not before.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import signal
import sys
import tempfile
import time
from collections import Counter
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

from proofs.bench import processes
from proofs.lab import monsters, paced_upstream, streams
from proofs.lab.crosstalk import Caller, World, config
from proofs.lab.filling import fill
from proofs.lab.gauges import LEFTOVERS, gauges
from proofs.lab.link import Link
from proofs.lab.marking_upstream import SPEAKERS, MarkingUpstream, mark
from proofs.lab.others import Others, Waits
from proofs.lab.questions import CLIENTS
from proofs.lab.result import Run, add_options
from proofs.served import Served
from proofs.servers import PostgresServer, RedisServer
from wireglot.cli.process_setup import run_loop

_METRICS_KEY: Final = "the-key-of-the-metrics"
_SAMPLE_SECONDS: Final = 15.0
_LARGE_EVERY: Final = 8
"""Samples for one large body and one reload at every machine."""
_LARGE_BYTES: Final = 2_000_000
_GAP_SECONDS: Final = 0.01
_STALL_SECONDS: Final = 0.1
_LARGE_STALL_SECONDS: Final = 0.25
_QUIET_SECONDS: Final = 75.0
"""Longer than idle connections to providers are kept."""
_STREAM_WORDS: Final = 120
_PAUSE_MS: Final = 500
_ENDLESS: Final = sys.maxsize
_FILES_MORE: Final = 8 + 32
"""What the pools of PostgreSQL and Redis may keep open. A leak of one in a thousand requests is more."""
_EVERYBODY: Final = 9999
"""Who asks what is nobody's exchange, in marks."""


Left = dict[str, float]
"""What is there while nobody asks anything, by name."""


class Machine:
    def __init__(self, served: Served) -> None:
        self.served = served
        self.memory: list[float] = []
        self.waits: list[Waits] = []
        self.large_waits: list[Waits] = []

    def start(self) -> None:
        self.served.start()
        self._others = Others(self.served.port, self.served.pid, gap_seconds=_GAP_SECONDS)

    def stop(self) -> None:
        self._others.close()
        self.served.stop()

    def waited(self) -> Waits:
        return self._others.waited()

    def left(self) -> Left:
        seen = gauges(self.served.port, {"authorization": f"Bearer {_METRICS_KEY}"})
        files = processes.open_files([self.served.pid])
        return {**{name.removeprefix("wireglot_"): seen[name] for name in LEFTOVERS}, "files": files}


class Soak:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.held = streams.Held()
        self.machines: list[Machine] = []
        self.before: list[Left] = []
        self.after: list[Left] = []
        self._keys = [f"key-{secrets.token_hex(16)}" for _ in range(arguments.callers)]
        self._world = World(self.counts, self.problems, _ENDLESS, arguments.pause_seconds)
        self._numbers = count()

    async def run(self, folder: Path) -> None:
        marking, paced = MarkingUpstream(), paced_upstream.PacedUpstream()
        postgres, redis = PostgresServer(durable=True), RedisServer()
        try:
            await asyncio.to_thread(postgres.start)
            await asyncio.to_thread(redis.start)
            server = f'log = "json"\nsecret = "one-for-all-machines-of-it"\nmetrics_key = "{_METRICS_KEY}"\n'
            toml = config(await marking.start(), self._keys, server)
            toml += paced_upstream.config(await paced.start())
            environ = {"WIREGLOT_STORE": postgres.url, "WIREGLOT_SHARED": redis.url}
            for number in range(self.arguments.machines):
                machine = Machine(Served(folder / f"machine-{number}", toml, environ=environ))
                await asyncio.to_thread(machine.start)
                self.machines.append(machine)
            await self._traffic()
        finally:
            for machine in self.machines:
                await asyncio.to_thread(machine.stop)
            await marking.stop()
            await paced.stop()
            redis.close()
            postgres.close()

    async def _traffic(self) -> None:
        for machine in self.machines:
            self.counts["requests that filled the caches first"] += await fill(
                machine.served.port, self._keys[0]
            )
        for number in range(len(CLIENTS) * len(SPEAKERS)):
            await self._large(number)
        self.before = await self._quiet()
        ports = [machine.served.port for machine in self.machines]
        async with asyncio.TaskGroup() as group:
            for number, key in enumerate(self._keys):
                chance = Random(f"{self.arguments.seed} {number}")
                group.create_task(Caller(ports, number, key, self._world, chance).run())
            end = time.monotonic() + self.arguments.minutes * 60
            for number in range(self.arguments.streams):
                group.create_task(self._read_on(ports[number % len(ports)], end))
            await self._watch(end)
            self._world.end()
        self.after = await self._quiet()

    async def _read_on(self, port: int, end: float) -> None:
        """One stream after the other."""
        while time.monotonic() < end:
            number = next(self._numbers)
            key = self._keys[number % len(self._keys)]
            await streams.read(port, number, _STREAM_WORDS, _PAUSE_MS, self.held, key=key)

    async def _watch(self, end: float) -> None:
        began = time.monotonic()
        warm = began + self.arguments.minutes * 6  # a tenth
        for number in count(1):
            await asyncio.sleep(min(_SAMPLE_SECONDS, max(end - time.monotonic(), 0)))
            for machine in self.machines:
                machine.waits.append(await asyncio.to_thread(machine.waited))
                if time.monotonic() > warm:
                    machine.memory.append(processes.memory([machine.served.pid]).rss)
            self._say(time.monotonic() - began)
            if time.monotonic() >= end:
                return
            if number % _LARGE_EVERY == 1:
                await self._large(number // _LARGE_EVERY)

    async def _large(self, number: int) -> None:
        """A long history to every machine, and a reload."""
        source = CLIENTS[number % len(CLIENTS)]
        target = SPEAKERS[number // len(CLIENTS) % len(SPEAKERS)]
        own = mark(_EVERYBODY, number)
        asked = [
            *monsters.history(_LARGE_BYTES),
            ("assistant", [{"text": "ok"}]),
            *monsters.said(f"Say {own}"),
        ]
        body = monsters.request(source, asked)
        model = f"{target}/any"
        if source != "gemini":
            body["model"] = model
        for machine in self.machines:
            link = Link(machine.served.port, self._keys[0])
            reply = await link.ask("POST", monsters.path(source, model), body)
            link.close()
            if reply.status != 200 or own.encode() not in reply.body:
                self.problems.append(
                    f"a large body, {source} to {target}: {reply.status} {reply.body[:300]!r}"
                )
            os.kill(machine.served.pid, signal.SIGHUP)
            await asyncio.sleep(1)
            machine.large_waits.append(await asyncio.to_thread(machine.waited))
            self.counts["large bodies, each with a reload"] += 1

    async def _quiet(self) -> list[Left]:
        await asyncio.sleep(_QUIET_SECONDS)
        return [await asyncio.to_thread(machine.left) for machine in self.machines]

    def _say(self, seconds: float) -> None:
        exchanges = sum(many for what, many in self.counts.items() if what.startswith("status "))
        each = "  ".join(
            f"{processes.memory([machine.served.pid]).rss:6.1f} MiB {machine.waits[-1]}"
            for machine in self.machines
        )
        wrong = len(self.problems) + len(self.held.problems)
        print(f"{seconds:6.0f} s  {each}  {exchanges:,} answers, {wrong} wrong", flush=True)


def _judge(run: Run, soak: Soak) -> None:
    run.counts.update(sorted(soak.counts.items()))
    run.counts.update({f"paced {what}": many for what, many in soak.held.tally.items()})
    wrong = [*soak.problems, *soak.held.problems]
    run.tell(wrong)
    run.figure(
        "answers that are wrong, lost or of another caller",
        demanded="0",
        measured=len(wrong),
        holds=not wrong,
    )
    for number, machine in enumerate(soak.machines, 1):
        streams.judge_memory(run, machine.memory, f" of machine {number}")
    waits = [wait for machine in soak.machines for wait in machine.waits]
    streams.judge_waits(run, waits, _STALL_SECONDS)
    waits = [wait for machine in soak.machines for wait in machine.large_waits]
    streams.judge_waits(run, waits, _LARGE_STALL_SECONDS, " during large bodies and reloads")
    for name in soak.before[0]:
        pairs = zip(soak.before, soak.after, strict=True)
        more = [int(after[name] - before[name]) for before, after in pairs]
        allowed = _FILES_MORE if name == "files" else 0
        run.figure(
            f"{name.replace('_', ' ')} in the end, more than before",
            demanded=f"at most {allowed} at each machine",
            measured=" ".join(map(str, more)),
            holds=max(more) <= allowed,
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.lab.fleet_soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=90.0)
    parser.add_argument("--machines", type=int, default=2)
    parser.add_argument("--callers", type=int, default=50)
    parser.add_argument("--streams", type=int, default=60)
    parser.add_argument("--pause-seconds", type=float, default=2.0, help="of a caller between two exchanges")
    parser.add_argument("--seed", type=int, default=1)
    add_options(parser)
    arguments = parser.parse_args()
    what = (
        f"{arguments.minutes:g} minutes of mixed traffic, {arguments.machines} machines, PostgreSQL and Redis"
    )
    run = Run("fleet_soak", what, seed=arguments.seed)
    soak = Soak(arguments)
    with tempfile.TemporaryDirectory(prefix="fleet-soak-") as work:
        run_loop(soak.run(Path(work)))
    _judge(run, soak)
    return run.write(arguments.out)


if __name__ == "__main__":
    sys.exit(main())
