"""SIGTERM with hundreds of open streams: who is lost?

    python -m proofs.lab.drain [--streams 500] [--deadline 20] [--workers 1] [--seed 1]

Streams of every dialect of a client are open, each with one second up to the deadline still to go, and some
with more. The gateway is asked to end. Those that end before the deadline must be whole, the others get their
dialect's error; who comes again is refused or asked to come back; the process ends by itself; every request
has one row in the books that says how it went.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

from proofs.lab.link import Link
from proofs.lab.paced_upstream import PacedUpstream, config, model, text
from proofs.lab.questions import CLIENTS, answer, question
from proofs.lab.result import Run, add_options
from proofs.served import Served
from wireglot.stores import open_engine
from wireglot.stores.records import UsageQuery

_PAUSE_MS: Final = 250
_MARGIN_SECONDS: Final = 4.0
"""Streams that end this close to the deadline are not asked for: either end is right for them."""
_LATE_SHARE: Final = 0.1


class Drained:
    def __init__(self) -> None:
        self.tally: Counter[str] = Counter()
        self.problems: list[str] = []
        self.requests: list[str] = []


async def trial(arguments: argparse.Namespace, folder: Path, drained: Drained) -> float:
    """The seconds from the signal to the end of the process."""
    upstream = PacedUpstream()
    upstream.goes_on.clear()
    port = await upstream.start()
    limits = f"[limits]\ndrain = {arguments.deadline}\nrequests_per_key = 0\n"
    served = Served(folder, f'[server]\nlog = "json"\n{limits}{config(port)}', workers=arguments.workers)
    await asyncio.to_thread(served.start)
    chance = random.Random(arguments.seed)
    tasks = []
    for number in range(arguments.streams):
        late = chance.random() < _LATE_SHARE
        seconds = (
            arguments.deadline * 3 if late else chance.uniform(1.0, arguments.deadline - _MARGIN_SECONDS)
        )
        tasks.append(asyncio.create_task(_stream(served.port, number, seconds, late, drained)))
    while upstream.open < arguments.streams:
        await asyncio.sleep(0.05)
        if any(task.done() for task in tasks):
            raise RuntimeError(f"a stream ended before it went on: {drained.problems[:1]}")
    print(f"{upstream.open} streams are open", flush=True)
    began = time.monotonic()
    os.kill(served.pid, signal.SIGTERM)
    upstream.goes_on.set()
    newcomers = asyncio.create_task(_newcomers(served.port, drained))
    status = await asyncio.to_thread(_ended, served, arguments.deadline + 30)
    took = time.monotonic() - began
    newcomers.cancel()
    await asyncio.gather(*tasks)
    await upstream.stop()
    if status != 0:
        drained.problems.append(f"it ended with status {status}")
    await _books(folder, arguments.streams, drained)
    return took


async def _stream(port: int, number: int, seconds: float, late: bool, drained: Drained) -> None:
    client = CLIENTS[number % len(CLIENTS)]
    words = int(seconds * 1000 / _PAUSE_MS)
    path, body = question(client, f"paced/{model(words, _PAUSE_MS)}")
    try:
        reply = await Link(port).ask("POST", path, body)
    except OSError as fault:
        drained.problems.append(f"stream {number} ({client}, {seconds:.0f} s): broke off: {fault!r}")
        return
    drained.requests.append(reply.headers.get("x-wireglot-request-id", ""))
    whole, said = answer(client, reply.body) if reply.status == 200 else (False, "")
    if whole and said != text(words):
        drained.problems.append(f"stream {number} ({client}): words are missing or came twice")
    kind = ("late" if late else "in time") + (", whole" if whole else ", reported")
    drained.tally[kind] += 1
    if not late and not whole:
        drained.problems.append(f"stream {number} ({client}, {seconds:.0f} s): lost, {reply.body[-200:]!r}")
    if late and whole:
        drained.problems.append(f"stream {number} ({client}): an end that nobody sent")


async def _newcomers(port: int, drained: Drained) -> None:
    path, body = question("openai-chat", f"paced/{model(1, 1)}")
    while True:
        try:
            reply = await Link(port).ask("POST", path, body)
        except OSError:
            drained.tally["new requests refused"] += 1
        else:
            drained.tally[f"newcomers reported {reply.status}"] += 1
        await asyncio.sleep(0.2)


def _ended(served: Served, patience: float) -> int | None:
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if (status := served.ended()) is not None:
            return status
        time.sleep(0.05)
    served.kill()
    return None


async def _books(folder: Path, streams: int, drained: Drained) -> None:
    engine = await open_engine(f"sqlite://{folder / 'wireglot' / 'wireglot.db'}")
    rows = {row.id: row for row in await engine.ledger.rows(UsageQuery(), limit=1_000_000)}
    await engine.close()
    for request in drained.requests:
        row = rows.get(request)
        if row is None or not row.outcome:
            drained.problems.append(f"usage {request} is {'lost' if row is None else 'open'}")
        else:
            drained.tally[f"ledger: {row.outcome}"] += 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.lab.drain", description=__doc__)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--deadline", type=float, default=20.0, help="limits.drain, in seconds")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    add_options(parser)
    arguments = parser.parse_args()
    run = Run("drain", f"SIGTERM with {arguments.streams} open streams", seed=arguments.seed)
    drained = Drained()
    with tempfile.TemporaryDirectory(prefix="drain-") as work:
        took = asyncio.run(trial(arguments, Path(work), drained))
    run.tell(drained.problems)
    run.counts.update(sorted(drained.tally.items()))
    lost = len(drained.problems)
    run.figure("lost, wrong or missing in the ledger", demanded="0", measured=lost, holds=lost == 0)
    over = round(took - arguments.deadline, 1)
    run.figure("seconds from the deadline to the end", demanded="at most 2", measured=over, holds=over <= 2)
    return run.write(arguments.out)


if __name__ == "__main__":
    sys.exit(main())
