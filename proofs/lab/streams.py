"""Many streams for a long time: does memory stay flat, does anyone wait, is a word lost?

    python -m proofs.lab.streams [--streams 1000] [--minutes 30] [--pause-ms 500] [--each-minutes 3]

So many clients of every dialect read streams that say one word every half second, one after the other;
the first of each ends at another time, so that at any time some begin and some end. (What is said in a stream
is held until it ends, since it is kept then: streams without an end would hold more and more.) Each word is a
number, so that one that is missing or came twice is seen. Memory of the gateway is taken every quarter of a
minute; what it holds once what it remembers is full, and every client has had its first stream, is compared
with what it holds at the end. Others ask for the gateway's health all the time (proofs/lab/others.py).
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from proofs.bench import processes
from proofs.lab.filling import fill
from proofs.lab.others import Others, Waits
from proofs.lab.paced_upstream import PacedUpstream, config, model
from proofs.lab.questions import CLIENTS, question
from proofs.lab.result import Run, add_options
from proofs.served import Served

_WORD: Final = re.compile(rb'"(?:text|content|delta)": ?"(\d+) "')
_SAMPLE_SECONDS: Final = 15.0
_OPENED_AT_ONCE: Final = 50
_STAGGERED: Final = 359
"""Times at which the first streams end: no multiple of the number of dialects."""
_STALL_SECONDS: Final = 0.1
_GROWTH_PERCENT: Final = 3.0


class Held:
    def __init__(self) -> None:
        self.tally: Counter[str] = Counter()
        self.problems: list[str] = []
        self.memory: list[float] = []
        self.waits: list[Waits] = []


async def read(port: int, number: int, words: int, pause_ms: int, held: Held, *, key: str = "") -> None:
    client = CLIENTS[number % len(CLIENTS)]
    path, body = question(client, f"paced/{model(words, pause_ms)}")
    raw = msgspec.json.encode(body)
    allowed = f"authorization: Bearer {key}\r\n" if key else ""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
        f"connection: close\r\n{allowed}content-length: {len(raw)}\r\n\r\n".encode()
        + raw
    )
    due, rest, head = 0, b"", True
    while data := await reader.read(65536):
        if head:
            head = False
            if not data.startswith(b"HTTP/1.1 200"):
                held.problems.append(f"stream {number} ({client}): {data[:300]!r}")
                break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            # A whole text repeats the words at the end of a Responses stream; only single ones count.
            if found := _WORD.search(line):
                if int(found[1]) != due:
                    held.problems.append(f"stream {number} ({client}): word {found[1]!r}, expected {due}")
                due = int(found[1]) + 1
                held.tally["words"] += 1
    if due != words:
        held.problems.append(f"stream {number} ({client}): ended after {due} of {words} words")
    held.tally["streams"] += 1
    writer.close()


async def read_on(
    port: int, number: int, words: tuple[int, int], end: float, arguments: argparse.Namespace, held: Held
) -> None:
    """One stream behind the other. `words`: of the first, and of those behind it."""
    next_words, each = words
    while (left := int((end - time.monotonic()) * 1000 / arguments.pause_ms)) > 0:
        await read(port, number, min(next_words, left), arguments.pause_ms, held)
        next_words = each


async def trial(arguments: argparse.Namespace, folder: Path, held: Held) -> None:
    upstream = PacedUpstream()
    port = await upstream.start()
    limits = "[limits]\nrequests_per_key = 0\n"
    served = Served(folder, f'[server]\nlog = "json"\n{limits}{config(port)}')
    await asyncio.to_thread(served.start)
    held.tally["requests that filled the caches first"] = await fill(served.port)
    others = Others(served.port, served.pid)
    each = int(min(arguments.each_minutes, arguments.minutes) * 60_000 / arguments.pause_ms)
    asked_before = upstream.asked
    end = time.monotonic() + arguments.minutes * 60
    tasks = []
    for number in range(arguments.streams):
        # One of a single word would end in a whole text that looks like that word.
        first = max(each * (number % _STAGGERED + 1) // _STAGGERED, 2)
        tasks.append(asyncio.create_task(read_on(served.port, number, (first, each), end, arguments, held)))
        if number % _OPENED_AT_ONCE == 0:
            await asyncio.sleep(0.1)
    while upstream.asked < asked_before + arguments.streams:
        await asyncio.sleep(0.1)
    print(f"{upstream.open} streams are open", flush=True)
    others.waited()
    began = time.monotonic()
    warm = began + each * arguments.pause_ms / 1000
    try:
        while time.monotonic() + _SAMPLE_SECONDS < end:
            await asyncio.sleep(_SAMPLE_SECONDS)
            rss = processes.memory([served.pid]).rss
            if time.monotonic() > warm:
                held.memory.append(rss)
            waits = await asyncio.to_thread(others.waited)
            held.waits.append(waits)
            held.tally["health checks"] += waits.count
            print(
                f"{time.monotonic() - began:6.0f} s  {rss:7.1f} MiB  {upstream.open:,} open  {waits}  "
                f"{held.tally['words']:,} words",
                flush=True,
            )
        await asyncio.gather(*tasks)
    finally:
        others.close()
        await asyncio.to_thread(served.stop)
        await upstream.stop()


def judge_memory(run: Run, samples: list[float], whose: str = "") -> None:
    """The first tenth of the samples beside the last, in MiB."""
    tenth = max(len(samples) // 10, 1)
    first, last = median(samples[:tenth] or [0]), median(samples[-tenth:] or [0])
    growth = round(100 * (last - first) / max(first, 1), 2)
    run.figure(
        f"growth of memory{whose}, in % of {first:.0f} MiB",
        demanded=f"within {_GROWTH_PERCENT:g}",
        measured=growth,
        holds=abs(growth) <= _GROWTH_PERCENT,
    )


def judge_waits(run: Run, waits: list[Waits], most: float, when: str = "") -> None:
    longest = max((wait.longest for wait in waits), default=0.0)
    run.figure(
        f"longest wait of another request{when}, in seconds",
        demanded=f"at most {most:g}",
        measured=round(longest, 3),
        holds=longest <= most,
    )
    with_machine = max((wait.with_machine for wait in waits), default=0.0)
    run.counts[f"longest wait of another request{when}, in ms, with pauses of the machine"] = round(
        1000 * with_machine
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.lab.streams", description=__doc__)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--pause-ms", type=int, default=500)
    parser.add_argument("--each-minutes", type=float, default=3.0, help="that a stream takes")
    add_options(parser)
    arguments = parser.parse_args()
    run = Run("streams", f"{arguments.streams:,} streams x 2 events a second, {arguments.minutes:g} minutes")
    held = Held()
    with tempfile.TemporaryDirectory(prefix="streams-") as work:
        asyncio.run(trial(arguments, Path(work), held))
    run.tell(held.problems)
    run.counts.update(held.tally)
    run.figure(
        "words lost, doubled or out of order",
        demanded="0",
        measured=len(held.problems),
        holds=not held.problems,
    )
    judge_memory(run, held.memory)
    judge_waits(run, held.waits, _STALL_SECONDS)
    return run.write(arguments.out)


if __name__ == "__main__":
    sys.exit(main())
