"""A rolling upgrade under load: two versions on one PostgreSQL and Redis, until the old one has left.

    python -m proofs.lab.rolling --old CHECKOUT [--old-python PYTHON] [--seconds 5] [--callers 6] [--seed 1]

Two machines of the old version serve callers; two of the new one join. Everything that they must agree on is
tried in both directions (rolling_agreements), while callers use all machines by chance (rolling_traffic).
Then the old ones leave: one in good order, one by `kill -9` in the middle of its work, and the new version
takes over their folders, journals included. One machine goes back to the old version, by `kill -9` again, and
forward once more. In the end everything acknowledged must be there, exactly once. Exit status 1 otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from proofs.lab.fleet_forms import postgres_schema
from proofs.lab.rolling_agreements import AGREEMENTS, Agreement, reports
from proofs.lab.rolling_fleet import Machine, RollingFleet, until
from proofs.lab.rolling_traffic import Acknowledged, Caller
from proofs.served import HERE, Tree

_OLD: Final = "old"
_NEW: Final = "new"
_LOOKS: Final = 20
_FAILED_WITHIN_SECONDS: Final = 90.0
"""Anyone who asks must have seen no sign of life for 30 seconds, and for 7.5 more."""
_TOKENS: Final = (
    "input", "cache_read", "cache_write", "cache_write_long", "tool_prompt", "output", "reasoning",
)  # fmt: skip


class Trial:
    def __init__(self, fleet: RollingFleet, options: argparse.Namespace) -> None:
        self._fleet = fleet
        self._options = options
        self._reported = Acknowledged()
        self._stopped = asyncio.Event()
        self._began = time.monotonic()
        self.problems: list[str] = self._reported.problems

    async def run(self) -> None:
        fleet = self._fleet
        for name in ("one", "two"):
            await fleet.start(name, _OLD)
        schema = await postgres_schema(fleet.postgres.url)
        keys = [(await fleet.new_key(fleet.of(_OLD)))[1] for _ in range(self._options.callers)]
        callers = [
            Caller(fleet, key, random.Random(f"{self._options.seed} {number}"), self._reported)
            for number, key in enumerate(keys)
        ]
        tasks = [asyncio.create_task(caller.run(self._stopped)) for caller in callers]
        try:
            await self._for_a_while("old alone")
            for name in ("three", "four"):
                await fleet.start(name, _NEW)
            await self._agree()
            await self._for_a_while("side by side")
            await self._look_at_all()
            await self._roll(keys[0])
        finally:
            self._stopped.set()
            await asyncio.gather(*tasks)
        if await postgres_schema(fleet.postgres.url) != schema:
            self.problems.append("the tables are not what they were")
        await self._look_at_all()
        await self._look_at_the_books()

    async def _for_a_while(self, what: str) -> None:
        await asyncio.sleep(self._options.seconds)
        self._say(what)

    def _say(self, what: str) -> None:
        known = self._reported
        print(
            f"{time.monotonic() - self._began:5.0f} s  {what}: {len(known.requests):,} requests acknowledged "
            f"({dict(known.by_version)}), {known.crossed:,} turns went on at the other version, "
            f"{known.broken} broken off, {len(known.problems)} problems",
            flush=True,
        )

    async def _agree(self) -> None:
        old, new = self._fleet.of(_OLD), self._fleet.of(_NEW)
        for agreement in AGREEMENTS:
            await self._try(agreement, old, new)
            await self._try(agreement, new, old)
        await self._try(reports, old, new)
        self._say(f"{2 * len(AGREEMENTS) + 1} agreements tried")

    async def _try(self, agreement: Agreement, one: Machine, other: Machine) -> None:
        try:
            await agreement(self._fleet, one, other)
        except Exception as problem:
            name = f"{agreement.__name__}, from {one.version} to {other.version}"
            self.problems.append(f"{name}: {type(problem).__name__}: {problem}"[:500])

    async def _roll(self, key: str) -> None:
        """The old ones leave, and the new version has their folders; one goes back and forth."""
        fleet = self._fleet
        one, two, three, _ = fleet.machines
        await fleet.leave(one)
        await fleet.start(one.name, _NEW)
        await self._for_a_while("an old one has left in good order")
        unfinished = await _unfinished(two, key)
        await fleet.kill(two)
        await fleet.start(two.name, _NEW)
        await self._for_a_while("an old one was killed")
        also = await _unfinished(three, key)
        await fleet.kill(three)
        await fleet.start(three.name, _OLD)
        await self._for_a_while("a new one was killed, and an old one has its place")
        # By a machine of the other version than the one that died, at the same time.
        left = ((fleet.of(_NEW), unfinished), (fleet.of(_OLD), also))
        reported = await asyncio.gather(
            *(until(partial(_is_failed, at, key, id), _FAILED_WITHIN_SECONDS) for at, id in left),
            return_exceptions=True,
        )
        self.problems += [f"a background response of a dead process: {each}" for each in reported if each]
        await fleet.kill(three)
        await fleet.start(three.name, _NEW)
        await self._for_a_while("all are new")

    async def _look_at_all(self) -> None:
        """Every acknowledged response and turn, at a machine of each version that serves."""
        machines = {machine.version: machine for machine in self._fleet.serving()}
        responses = list(self._reported.responses.items())
        sessions = [(key, name, list(words)) for (key, name), words in self._reported.sessions.items()]

        async def look(machine: Machine, number: int) -> None:
            for id, (key, word) in responses[number::_LOOKS]:
                reply = await machine.ask(key, "GET", f"/v1/responses/{id}")
                if reply.status != 200 or word not in reply.body.decode():
                    self.problems.append(f"{machine}: {id}: {reply.status} {reply.body[:200]!r}")
            for key, name, words in sessions[number::_LOOKS]:
                items = (await machine.answer(key, "GET", f"/v1/sessions/{name}"))["items"]
                text = msgspec.json.encode(items).decode()
                places = [text.find(word) for word in words]
                if -1 in places or places != sorted(places):
                    self.problems.append(f"{machine}: {name}: turns are missing, or in another order")

        await asyncio.gather(
            *(look(machine, number) for machine in machines.values() for number in range(_LOOKS))
        )
        self._say(
            f"{len(responses):,} responses and {len(sessions)} sessions looked at by {sorted(machines)}"
        )

    async def _look_at_the_books(self) -> None:
        for machine in self._fleet.serving():
            await self._fleet.leave(machine)  # the last rows are in the store then
        served = self._fleet.machines[0].served
        exported = await asyncio.to_thread(served.run, "store", "--config", "wireglot.toml", "export")
        rows = [line["usage"] for line in map(msgspec.json.decode, exported.splitlines()) if "usage" in line]
        by_id: dict[str, Any] = {row["id"]: row for row in rows}
        outcomes = Counter(row.get("outcome", "open") for row in rows)
        if len(by_id) != len(rows):
            self.problems.append(f"{len(rows) - len(by_id)} rows of usage are there twice")
        for id, tokens in self._reported.requests.items():
            row = by_id.get(id)
            if row is None or row.get("outcome") != "ok":
                self.problems.append(f"usage of {id}: {row and row.get('outcome')}")
            elif sum(row.get(kind, 0) for kind in _TOKENS) != tokens:
                self.problems.append(f"usage of {id}: not the {tokens} tokens that its client was sent")
        if outcomes["open"]:
            self.problems.append(f"{outcomes['open']} rows of usage are still open")
        print(f"the ledger: {len(rows):,} rows, {dict(outcomes)}")


async def _unfinished(machine: Machine, key: str) -> str:
    body = {"model": "demo-anthropic", "input": "[[demo:hang]]", "background": True}
    id: str = (await machine.answer(key, "POST", "/v1/responses", body))["id"]
    return id


async def _is_failed(machine: Machine, key: str, id: str) -> bool:
    return bool((await machine.answer(key, "GET", f"/v1/responses/{id}"))["status"] == "failed")


async def trial(options: argparse.Namespace, folder: Path) -> list[str]:
    old = Tree(options.old.resolve(), options.old_python)
    fleet = RollingFleet(folder, {_OLD: old, _NEW: HERE})
    try:
        await asyncio.to_thread(fleet.open)
        running = Trial(fleet, options)
        await running.run()
        return running.problems
    finally:
        await asyncio.to_thread(fleet.close)


def main() -> None:
    parser = argparse.ArgumentParser(description="Upgrade a loaded fleet machine by machine, and back.")
    parser.add_argument("--old", type=Path, required=True, metavar="CHECKOUT", help="the version before")
    parser.add_argument("--old-python", type=Path, default=Path(sys.executable), metavar="PYTHON")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each stage lasts")
    parser.add_argument("--callers", type=int, default=6)
    parser.add_argument("--seed", default="1")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wireglot-rolling-") as temporary:
        problems = asyncio.run(trial(options, Path(temporary)))
    for problem in problems[:50]:
        print(problem)
    print(
        f"{len(problems)} problems"
        if problems
        else "both versions served as one; nothing was lost or doubled"
    )
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
