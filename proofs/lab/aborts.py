"""Clients that leave: at any time, in any way, from any state of their request.

    python -m proofs.lab.aborts [--aborts 10000] [--clients 150] [--seed 1]

Each asks and goes away at a random moment, with a FIN or a reset: while it is queued (more clients than may
be answered at once), while a refused attempt backs off, before a silent provider, in the middle of a stream,
or from a response in the background, which goes on without it. The provider must be left at once, nothing of
the request stay behind, and the books have one row for every request that was given its id.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import secrets
import socket
import struct
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec

from proofs.bench import processes
from proofs.lab.gauges import LEFTOVERS, gauges
from proofs.lab.link import Link
from proofs.lab.patient_upstream import PatientUpstream
from proofs.lab.questions import CLIENTS, question
from proofs.lab.result import Run, add_options
from proofs.served import Served
from wireglot.stores import open_engine
from wireglot.stores.records import UsageQuery

_KINDS: Final = ("silent", "silent", "refusing", "slow", "slow", "quick", "background")
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)
_RESPONSE: Final = re.compile(rb'"id": ?"(resp_[^"]+)"')
_PATIENCE_SECONDS: Final = 5.0
_QUIET_SECONDS: Final = 20.0
"""Idle connections to the provider are kept for 15."""
_FILES: Final = 3
"""That the store opens when it first needs them."""
_CONFIG: Final = """\
[server]
log = "json"
[limits]
requests = {at_once}
queue = 10000
queue_time = 5
requests_per_key = 0
[providers.patient]
dialect = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"
api_key = "not-a-secret"
[providers.patient.breaker]
consecutive = 1000000000
minimum = 1000000000
"""


class Left:
    def __init__(self) -> None:
        self.tally: Counter[str] = Counter()
        self.seconds: list[float] = []
        """From the client's leaving to the provider's noticing."""
        self.problems: list[str] = []
        self.ids: dict[str, str] = {}
        """What was asked and answered, by the id of the request."""
        self.responses: set[str] = set()
        """In the background: they go on without who asked for them."""


class Client:
    def __init__(self, port: int, upstream: PatientUpstream, chance: random.Random, left: Left) -> None:
        self._port = port
        self._upstream = upstream
        self._chance = chance
        self._left = left

    async def leave(self) -> None:
        kind, nonce = self._chance.choice(_KINDS), secrets.token_hex(8)
        word = "slow" if kind == "background" else kind
        said = f"leave-{word}-{nonce}"
        client = "openai-responses" if kind == "background" else self._chance.choice(CLIENTS)
        path, body = question(client, "patient/any", said)
        if kind == "background":
            body.update(background=True, store=True)
        raw = msgspec.json.encode(body)
        head = (
            f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{self._port}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(raw)}\r\n\r\n"
        )
        seen = b""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(head.encode() + raw)
        try:
            async with asyncio.timeout(self._chance.expovariate(4.0)):
                seen = got = await reader.read(100_000)
                while self._chance.random() < 0.9 and got:
                    seen += (got := await reader.read(100_000))
        except TimeoutError:
            self._left.tally["before an answer"] += not seen
        self._note(seen, kind)
        if self._chance.random() < 0.5:
            raw_socket: socket.socket = writer.get_extra_info("socket")
            raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        writer.close()
        self._left.tally[kind] += 1
        if kind == "background":
            return
        began = time.monotonic()
        busy = nonce in self._upstream.busy
        self._left.tally["while the provider was answering"] += busy
        attempts = self._upstream.asked.get(nonce, 0)
        await self._noticed(kind, nonce, began, attempts)

    async def _noticed(self, kind: str, nonce: str, began: float, attempts: int) -> None:
        end = began + _PATIENCE_SECONDS
        while nonce in self._upstream.busy and time.monotonic() < end:
            await asyncio.sleep(0.01)
        if nonce in self._upstream.busy:
            self._left.problems.append(f"{kind} {nonce}: the provider was not left")
        elif nonce in self._upstream.left:
            self._left.seconds.append(max(self._upstream.left[nonce] - began, 0.0))
        # A question on its way when the client left may still arrive, but then no more.
        if self._upstream.asked.get(nonce, 0) > attempts + 1:
            self._left.problems.append(f"{kind} {nonce}: asked again for nobody")

    def _note(self, got: bytes, kind: str) -> None:
        if kind == "background":
            # Its row is that of the work, which has an id of its own.
            self._left.responses.update(one.decode() for one in _RESPONSE.findall(got))
            return
        _, found, rest = got.partition(b"x-wireglot-request-id: ")
        if found:
            self._left.ids[rest.partition(b"\r\n")[0].decode()] = f"{kind} {got[9:12].decode()}"


async def trial(arguments: argparse.Namespace, folder: Path, left: Left) -> None:
    upstream = PatientUpstream()
    port = await upstream.start()
    served = Served(folder, _CONFIG.format(port=port, at_once=max(arguments.clients // 2, 1)))
    await asyncio.to_thread(served.start)
    path, body = question("openai-chat", "patient/any", f"leave-quick-{secrets.token_hex(8)}")
    await Link(served.port).ask("POST", path, body)
    await asyncio.sleep(_QUIET_SECONDS)
    files = processes.open_files([served.pid])
    before = await asyncio.to_thread(gauges, served.port)
    remaining = iter(range(arguments.aborts))

    async def work(number: int) -> None:
        client = Client(served.port, upstream, random.Random(f"{arguments.seed} {number}"), left)
        for count in remaining:
            await client.leave()
            if count % 1000 == 999:
                print(f"{count + 1:,} left, {len(left.problems)} problems", flush=True)

    async with asyncio.TaskGroup() as group:
        for number in range(arguments.clients):
            group.create_task(work(number))
    while upstream.busy:  # what runs in the background
        await asyncio.sleep(0.1)
    await asyncio.sleep(_QUIET_SECONDS)
    after = await asyncio.to_thread(gauges, served.port)
    for name in LEFTOVERS:
        if after[name] > before[name]:
            left.problems.append(f"{name} is {after[name]:.0f}, before it was {before[name]:.0f}")
    if (now := processes.open_files([served.pid])) > files + _FILES:
        left.problems.append(f"{now} open files, before there were {files}")
    for one in left.responses:
        done = await Link(served.port).ask("GET", f"/v1/responses/{one}")
        if done.status != 200 or done.json()["status"] != "completed":
            left.problems.append(f"{one} did not go on: {done.status} {done.body[:200]!r}")
    left.tally["in the background, completed"] = len(left.responses)
    path, body = question("openai-chat", "patient/any", f"leave-quick-{secrets.token_hex(8)}")
    if (reply := await Link(served.port).ask("POST", path, body)).status != 200:
        left.problems.append(f"afterwards: {reply.status} {reply.body[:200]!r}")
    await asyncio.to_thread(served.stop)
    await upstream.stop()
    await _books(folder, left)


async def _books(folder: Path, left: Left) -> None:
    engine = await open_engine(f"sqlite://{folder / 'wireglot' / 'wireglot.db'}")
    rows = await engine.ledger.rows(UsageQuery(), limit=10_000_000)
    await engine.close()
    seen = Counter(row.id for row in rows)
    left.problems += [f"usage {one} is there {times} times" for one, times in seen.items() if times > 1]
    left.problems += [f"usage {one} ({what}) is lost" for one, what in left.ids.items() if one not in seen]
    for row in rows:
        left.tally[f"ledger: {row.outcome or 'open'}"] += 1
        if not row.outcome:
            left.problems.append(f"usage {row.id} is open")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.lab.aborts", description=__doc__)
    parser.add_argument("--aborts", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=150, help="at once; half of them are queued")
    parser.add_argument("--seed", type=int, default=1)
    add_options(parser)
    arguments = parser.parse_args()
    run = Run("aborts", f"{arguments.aborts:,} clients leave at random points", seed=arguments.seed)
    left = Left()
    with tempfile.TemporaryDirectory(prefix="aborts-") as work:
        asyncio.run(trial(arguments, Path(work), left))
    run.tell(left.problems)
    run.counts.update(sorted(left.tally.items()))
    run.counts["left while it was answering, and closed"] = len(left.seconds)
    share = 100 * sum(each <= 1 for each in left.seconds) / max(len(left.seconds), 1)
    run.figure(
        "provider connections closed within 1 s, in %",
        demanded="99.9",
        measured=round(share, 3),
        holds=share >= 99.9,
    )
    worst = round(max(left.seconds, default=0.0), 2)
    run.figure("the slowest, in seconds", demanded="at most 3", measured=worst, holds=worst <= 3)
    found = len(left.problems)
    run.figure("left behind, lost or doubled", demanded="0", measured=found, holds=found == 0)
    return run.write(arguments.out)


if __name__ == "__main__":
    sys.exit(main())
