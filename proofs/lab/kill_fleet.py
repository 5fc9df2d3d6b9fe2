"""Kill machines of a loaded fleet on PostgreSQL and Redis, and look whether anything acknowledged is gone.

    python -m proofs.lab.kill_fleet [--kills 50] [--machines 3] [--callers 6] [--seed 1]

Callers use all machines by chance: stored responses, sessions, plain questions, idempotent ones. One machine
after the other dies by SIGKILL at a random moment and is started again on its own folder, while the others
serve. In the end every acknowledged response and turn must be there, and every acknowledged request exactly
once in the books.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from proofs.lab.result import Run, add_options
from proofs.lab.rolling import Trial
from proofs.lab.rolling_fleet import RollingFleet
from proofs.lab.rolling_traffic import Acknowledged, Caller
from proofs.served import HERE

_VERSION: Final = "this"
_DEMANDED_SECONDS: Final = 2.0


class KillTrial(Trial):
    """What `rolling` looks at in the end, after kills in place of an upgrade."""

    def __init__(self, fleet: RollingFleet, options: argparse.Namespace) -> None:
        super().__init__(fleet, options)
        self.starts: list[float] = []

    @property
    def report(self) -> Acknowledged:
        return self._reported

    async def run(self) -> None:
        chance = random.Random(self._options.seed)
        fleet = self._fleet
        for number in range(self._options.machines):
            await fleet.start(f"machine-{number}", _VERSION)
        keys = [(await fleet.new_key(fleet.of(_VERSION)))[1] for _ in range(self._options.callers)]
        callers = [
            Caller(fleet, key, random.Random(f"{self._options.seed} {number}"), self._reported)
            for number, key in enumerate(keys)
        ]
        tasks = [asyncio.create_task(caller.run(self._stopped)) for caller in callers]
        try:
            for number in range(self._options.kills):
                await asyncio.sleep(chance.uniform(0.1, 1.0))
                machine = chance.choice(fleet.serving())
                await fleet.kill(machine)
                began = time.monotonic()
                await fleet.start(machine.name, _VERSION)
                self.starts.append(time.monotonic() - began)
                if (number + 1) % 10 == 0:
                    self._say(f"{number + 1} kills")
        finally:
            self._stopped.set()
            await asyncio.gather(*tasks)
        await self._look_at_all()
        await self._look_at_the_books()


async def trial(options: argparse.Namespace, folder: Path) -> KillTrial:
    fleet = RollingFleet(folder, {_VERSION: HERE})
    try:
        await asyncio.to_thread(fleet.open)
        running = KillTrial(fleet, options)
        await running.run()
        return running
    finally:
        await asyncio.to_thread(fleet.close)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.lab.kill_fleet", description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--machines", type=int, default=3)
    parser.add_argument("--callers", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    add_options(parser)
    options = parser.parse_args()
    run = Run(
        "kill_fleet",
        f"{options.kills} x kill -9 of a machine of a fleet, PostgreSQL and Redis",
        seed=options.seed,
    )
    with tempfile.TemporaryDirectory(prefix="kill-fleet-") as folder:
        done = asyncio.run(trial(options, Path(folder)))
    run.tell(done.problems)
    run.counts["kills"] = len(done.starts)
    run.counts["acknowledged requests"] = len(done.report.requests)
    run.counts["acknowledged responses"] = len(done.report.responses)
    run.counts["acknowledged turns"] = sum(map(len, done.report.sessions.values()))
    run.counts["answers cut off"] = done.report.broken
    doubled = sum("twice" in problem for problem in done.problems)
    lost = len(done.problems) - doubled
    run.figure("acknowledged and lost, or wrong", demanded="0", measured=lost, holds=lost == 0)
    run.figure("doubled", demanded="0", measured=doubled, holds=doubled == 0)
    worst = round(max(done.starts, default=0.0), 2)
    run.figure(
        "seconds until a killed machine answers again (worst)",
        demanded="at most 2",
        measured=worst,
        holds=worst <= _DEMANDED_SECONDS,
    )
    return run.write(options.out)


if __name__ == "__main__":
    sys.exit(main())
