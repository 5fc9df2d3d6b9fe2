"""Seeds, one process each: all begin from the same state, and what a run leaves behind goes with it."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from proofs.lab.result import Run, add_options
from proofs.simulation.clock import REAL_CPU, REAL_MONOTONIC
from proofs.simulation.loop import Trace
from proofs.simulation.plants import PLANTS
from proofs.simulation.world import simulate

_WARM_SEED: Final = 0


class Outcome(msgspec.Struct):
    """Of one seed."""

    seed: int
    digest: str
    """Of all events: the same seed has the same one, in every process."""
    events: int
    steps: int
    """Callbacks that the loop ran."""
    counts: dict[str, int]
    found: list[str]
    """The laws that were broken, and how."""
    cpu: float


def run_seed(seed: int, defect: str = "", *, show: bool = False) -> Outcome:
    """In this process, which must do nothing else."""
    began = REAL_CPU()
    trace = Trace(print if show else None)
    world = simulate(seed, trace, defect=PLANTS[defect].put if defect else None)
    counts = dict(world.counts) | {"cuts": world.network.cut, "disk errors": world.disk.struck}
    return Outcome(seed, trace.digest, trace.count, world.loop.steps, counts, world.found, REAL_CPU() - began)


class Runs:
    """Forks of one process that has loaded everything."""

    def __init__(self, jobs: int, *, show: bool = False) -> None:
        self._jobs = jobs
        self._show = show
        simulate(_WARM_SEED, Trace(), calm=True)
        gc.collect()
        gc.freeze()

    def run(self, seeds: range, defect: str = "") -> Iterator[Outcome]:
        left = iter(seeds)
        running: dict[int, tuple[int, int]] = {}
        while True:
            while len(running) < self._jobs and (seed := next(left, None)) is not None:
                pid, end = self._fork(seed, defect)
                running[pid] = (seed, end)
            if not running:
                return
            pid, status = os.wait()
            seed, end = running.pop(pid)
            with os.fdopen(end, "rb") as file:
                data = file.read()
            if data:
                yield msgspec.json.decode(data, type=Outcome)
            else:
                yield Outcome(seed, "", 0, 0, {}, [f"the simulator works: it ended with {status}"], 0.0)

    def _fork(self, seed: int, defect: str) -> tuple[int, int]:
        result, end = os.pipe()
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            os.close(end)
            return pid, result
        gc.disable()
        status = 1
        try:
            outcome = msgspec.json.encode(run_seed(seed, defect, show=self._show))
            sys.stdout.flush()
            os.write(end, outcome)
            status = 0
        finally:
            os._exit(status)  # nothing of the dead may be finalized


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m proofs.simulation",
        description="The whole gateway on a simulated machine, seed by seed.",
    )
    parser.add_argument("--seeds", type=int, default=100, help="how many (default: 100)")
    parser.add_argument("--first", type=int, default=1, help="the first of them (default: 1)")
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--trace", action="store_true", help="print every event")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument(
        "--plant", choices=sorted(PLANTS), default="", help="with a defect that must be found"
    )
    parser.add_argument(
        "--plants", action="store_true", help="look for a seed that finds each planted defect"
    )
    parser.add_argument("--digests", action="store_true", help="print the digest of each seed")
    parser.add_argument("--stop", action="store_true", help="end at the first seed that breaks a law")
    add_options(parser)
    options = parser.parse_args()
    first, count = (options.first, options.seeds) if options.seed is None else (options.seed, 1)
    seeds = range(first, first + count)
    began = REAL_MONOTONIC()
    counts: Counter[str] = Counter()
    failed: list[Outcome] = []
    runs = Runs(options.jobs, show=options.trace)
    if options.plants:
        return _find_all(runs, options.seeds)
    for outcome in runs.run(seeds, options.plant):
        counts.update({"seeds": 1, "events": outcome.events, "steps": outcome.steps})
        counts.update(outcome.counts)
        counts["cpu milliseconds"] += round(outcome.cpu * 1000)
        if options.digests or options.trace:
            print(outcome.seed, outcome.digest, outcome.events, flush=True)
        if outcome.found:
            failed.append(outcome)
            _report(outcome, options.plant)
            if options.stop:
                break
    seconds = REAL_MONOTONIC() - began
    print(", ".join(f"{name}: {count:,}" for name, count in sorted(counts.items())), f"in {seconds:.1f} s")
    if options.out is not None:
        return _write(options.out, counts, failed, seconds)
    return 1 if failed else 0


def _find_all(runs: Runs, count: int) -> int:
    """Every planted defect by the law that is there for it. 1 where one was not found in COUNT seeds."""
    missed = 0
    for name, plant in PLANTS.items():
        for outcome in runs.run(range(plant.seed, plant.seed + count), name):
            if any(line.startswith(f"{plant.law}: ") for line in outcome.found):
                print(f"{name}: {plant.law}, seed {outcome.seed}", flush=True)
                break
        else:
            missed += 1
            print(f"{name}: not found in {count} seeds", flush=True)
    return 1 if missed else 0


def _report(outcome: Outcome, defect: str) -> None:
    planted = f" --plant {defect}" if defect else ""
    again = f"python -m proofs.simulation --seed {outcome.seed} --trace{planted}"
    print(f"seed {outcome.seed} breaks a law. Again: {again}")
    for line in outcome.found[:10]:
        print(f"  {line[:500]}")
    sys.stdout.flush()


def _write(out: str, counts: Counter[str], failed: list[Outcome], seconds: float) -> int:
    run = Run("sim", f"{counts['seeds']:,} seeds of the whole gateway on a simulated machine")
    run.counts.update(counts)
    run.figure("seeds that break a law", demanded="0", measured=len(failed), holds=not failed)
    return run.write(out, seconds=round(seconds, 1))
