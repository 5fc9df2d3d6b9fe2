"""Many callers at once, each with values that only it may ever see: does one reach another?

    python -m proofs.lab.crosstalk [--exchanges 1000000] [--callers 200] [--workers 1] [--seed 1]

Every caller has its own key, and every exchange a mark of its own, which the provider repeats in its answer,
in its headers and in its errors. All pairs of dialects, whole and streamed, over connections that are used
again; a fifth of the clients leave midway, a tenth of the providers fail, in six ways. In between callers
chain responses, hold sessions under the same names as everybody else, call tools whose reasoning is kept for
them, and ask for what is another's by its id, which must be a 404. Every byte of every answer, head and error
is searched for any other mark than its own. Resumable: so many exchanges are a piece.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from proofs.lab.link import Link, Reply
from proofs.lab.marking_upstream import FAILURES, MARK, SPEAKERS, MarkingUpstream, mark, provider_table
from proofs.lab.progress import Progress
from proofs.lab.questions import CLIENTS, question, whole
from proofs.lab.result import Run, add_options
from proofs.served import Served, keys_table
from wireglot.cli.process_setup import run_loop
from wireglot_core.dialects.registry import DialectName

_PIECE: Final = 20_000
_LEAVE: Final = 0.2
_FAIL: Final = 0.1
_STATEFUL: Final = 0.1
"""Of the exchanges that are none of these."""
_MAX_CHAIN: Final = 12
_MAX_IDS: Final = 500
_PATIENCE_SECONDS: Final = 60.0
_PAIRS: Final = tuple(product(CLIENTS, SPEAKERS, (True, False)))


class World:
    """What all callers share: the account of the trial, and whose is what."""

    def __init__(
        self, counts: Counter[str], problems: list[str], exchanges: int, pause_seconds: float = 0.0
    ) -> None:
        self.counts = counts
        self.problems = problems
        self.pause_seconds = pause_seconds
        """Of a caller between two exchanges, about."""
        self.ids: deque[tuple[int, str]] = deque(maxlen=_MAX_IDS)
        """Who owns which path."""
        self._left = exchanges

    def takes_one(self) -> bool:
        self._left -= 1
        return self._left >= 0

    def end(self) -> None:
        """Nobody begins another exchange."""
        self._left = 0


class Caller:
    """`ports`: of all machines that it may ask, by chance."""

    def __init__(self, ports: Sequence[int], number: int, key: str, world: World, chance: Random) -> None:
        self._links = [Link(port, key) for port in ports]
        self._link = self._links[0]
        self._number = number
        self._world = world
        self._chance = chance
        self._said = chance.randrange(10_000_000)
        self._chain: list[str] = []
        self._doing = ""

    async def run(self) -> None:
        stateful = (self._stored, self._session, self._vault, self._foreign)
        while self._world.takes_one():
            if self._world.pause_seconds:
                await asyncio.sleep(self._chance.expovariate(1 / self._world.pause_seconds))
            self._link = self._chance.choice(self._links)
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    if self._chance.random() < _STATEFUL:
                        await self._chance.choice(stateful)()
                    else:
                        await self._pair(*self._chance.choice(_PAIRS))
            except TimeoutError:
                self._problem(f"no answer to {self._doing}")
                self._link.close()
            except OSError as fault:
                self._world.counts["connections that broke"] += 1
                self._problem(f"the connection broke: {fault!r}")
        for link in self._links:
            link.close()

    # One question and its answer: nothing of any other exchange, not even of the same caller.

    async def _pair(self, client: DialectName, speaker: DialectName, streamed: bool) -> None:
        draw = self._chance.random()
        way = self._chance.choice(FAILURES) if draw < _FAIL else "well"
        own = self._next(way)
        path, body = question(client, f"{speaker}/any", f"Say {own}")
        if not streamed:
            path, body = whole(path, body)
        self._world.counts[f"{client} to {speaker}"] += 1
        self._doing = f"{path}, {own}"
        if _FAIL <= draw < _FAIL + _LEAVE:
            self._world.counts["clients that left"] += 1
            pieces = self._chance.choice((0, 1, 1))
            self._doing += ", left"
            self._search(await self._link.leave("POST", path, body, pieces=pieces), own, path)
            return
        reply = await self._ask("POST", path, body, own=own)
        if way != "well":
            self._world.counts[f"providers that failed: {way}"] += 1
        elif reply.status != 200:
            self._problem(f"{path}: {reply.status} {reply.body[:300]!r}")
        elif own.encode() not in reply.body:
            self._problem(f"{path}: its own mark is missing: {reply.body[:300]!r}")

    # What is remembered for a caller: marks of its own of before, and of nobody else.

    async def _stored(self) -> None:
        body: dict[str, Any] = {"model": self._model(), "input": f"Say {self._next()}", "store": True}
        if self._chain:
            body["previous_response_id"] = self._chain[-1]
        reply = await self._ask("POST", "/v1/responses", body)
        if self._is_well(reply):
            self._chain.append(reply.json()["id"])
            self._world.ids.append((self._number, f"/v1/responses/{self._chain[-1]}"))
            if len(self._chain) > _MAX_CHAIN:
                self._chain.clear()
            else:
                self._is_well(await self._ask("GET", f"/v1/responses/{self._chain[-1]}/input_items"))

    async def _session(self) -> None:
        """Everybody's sessions have the same names."""
        name = f"shared-name-{self._chance.randrange(5)}"
        path, body = question(self._chance.choice(CLIENTS), self._model(), f"Say {self._next()}")
        self._is_well(await self._ask("POST", path, body, {"x-wireglot-session": name}))
        if self._chance.random() < 0.3:
            await self._ask("GET", self._chance.choice((f"/v1/sessions/{name}", "/v1/sessions", "/v1/usage")))
        if self._chance.random() < 0.3:
            await self._ask("DELETE", f"/v1/sessions/{name}")

    async def _vault(self) -> None:
        """A tool call of a Chat client that echoes no reasoning, with everybody's names and arguments."""
        tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
        say = {"role": "user", "content": "[[demo:think]] [[demo:tool look {}]]"}
        body: dict[str, Any] = {"model": "demo/demo-gemini", "messages": [say], "tools": [tool]}
        reply = await self._ask("POST", "/v1/chat/completions", body)
        if reply.status != 200:
            self._problem(f"{reply.status} {reply.body[:300]!r}")
            return
        calls = reply.json()["choices"][0]["message"].get("tool_calls") or []
        found = f"{self._next()} [[demo:echo]]"
        result = [{"role": "tool", "tool_call_id": call["id"], "content": found} for call in calls]
        turn = {"role": "assistant", "content": None, "tool_calls": calls}
        body["messages"] = [say, turn, *result, {"role": "user", "content": found}]
        self._is_well(await self._ask("POST", "/v1/chat/completions", body))

    async def _foreign(self) -> None:
        others = [path for owner, path in self._world.ids if owner != self._number]
        if not others:
            return
        path = self._chance.choice(others)
        self._world.counts["requests for another caller's data"] += 1
        reply = await self._ask(self._chance.choice(("GET", "DELETE")), path)
        if reply.status != 404:
            self._problem(f"got {reply.status} for {path} of another")
        id = path.rpartition("/")[2]
        body = {"model": self._model(), "input": f"Say {self._next()}", "previous_response_id": id}
        reply = await self._ask("POST", "/v1/responses", body)
        if reply.status not in (400, 404):
            self._problem(f"chained {path} of another: {reply.status}")

    def _model(self) -> str:
        return f"{self._chance.choice(SPEAKERS)}/any"

    def _next(self, way: str = "well") -> str:
        self._said = (self._said + 1) % 100_000_000
        return mark(self._number, self._said, way)

    async def _ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        *,
        own: str = "",
    ) -> Reply:
        self._doing = f"{method} {path}, {own}"
        reply = await self._link.ask(method, path, body, headers)
        self._world.counts[f"status {reply.status}"] += 1
        head = "\n".join(f"{name}: {value}" for name, value in reply.headers.items())
        self._search(head.encode("latin-1", "replace") + b"\n" + reply.body, own, path)
        return reply

    def _search(self, seen: bytes, own: str, path: str) -> None:
        """`own`: the one mark that may be there; "": any of this caller."""
        self._world.counts["bytes searched"] += len(seen)
        allowed = own.encode()
        for caller, exchange, way in set(MARK.findall(seen)):
            found = b"mark%bx%b%b" % (caller, exchange, way)
            if int(caller) != self._number or (own and not found.startswith(allowed)):
                self._world.counts["foreign marks"] += 1
                self._problem(f"{path}: saw {found!r} for {own!r}")

    def _is_well(self, reply: Reply) -> bool:
        if reply.status != 200 or b"mark%04dx" % self._number not in reply.body:
            self._problem(f"{reply.status} without its own mark: {reply.body[:300]!r}")
            return False
        return True

    def _problem(self, said: str) -> None:
        self._world.problems.append(f"caller {self._number}: {said}")


def config(port: int, keys: list[str], server: str = 'log = "off"\n') -> str:
    """Nobody rests, however many fail: every exchange is one with a provider. A store that a loaded machine
    keeps waiting is waited for. `server`: the lines of that table."""
    tables = [
        f"[server]\n{server}[limits]\nrequests_per_key = 0\n[store]\ntimeout = 60\n",
        "[providers]\ndiscover = false\n[providers.demo]\n",
    ]
    tables += (provider_table(name, name, f"http://127.0.0.1:{port}") for name in SPEAKERS)
    tables.append(keys_table({f"caller{number}": key for number, key in enumerate(keys)}))
    return "".join(tables)


async def _trial(arguments: argparse.Namespace, folder: Path, progress: Progress) -> None:
    upstream = MarkingUpstream()
    keys = [f"key-{secrets.token_hex(16)}" for _ in range(arguments.callers)]
    served = Served(folder, config(await upstream.start(), keys), workers=arguments.workers)
    await asyncio.to_thread(served.start)
    try:
        pieces = {
            str(begin): min(_PIECE, arguments.exchanges - begin)
            for begin in range(0, arguments.exchanges, _PIECE)
        }
        for piece in progress.left(pieces):
            world = World(progress.counts, progress.problems, pieces[piece])
            async with asyncio.TaskGroup() as group:
                for number, key in enumerate(keys):
                    chance = Random(f"{arguments.seed} {piece} {number}")
                    group.create_task(Caller([served.port], number, key, world, chance).run())
            progress.counts["exchanges"] += pieces[piece]
            print(
                f"{progress.counts['exchanges']:,} exchanges, {len(progress.problems)} problems", flush=True
            )
        usage = Link(served.port, keys[0])
        mine = (await usage.ask("GET", "/v1/usage?group_by=key")).json()
        if len(mine["data"]) > 1:
            progress.problems.append(
                f"a caller sees the usage of others: {msgspec.json.encode(mine)[:200]!r}"
            )
        usage.close()
    finally:
        await asyncio.to_thread(served.stop)
        await upstream.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.lab.crosstalk", description=__doc__)
    parser.add_argument("--exchanges", type=int, default=1_000_000)
    parser.add_argument("--callers", type=int, default=200, help="at once")
    parser.add_argument("--workers", type=int, default=1, help="processes of the gateway")
    parser.add_argument("--seed", type=int, default=1)
    add_options(parser)
    arguments = parser.parse_args()
    run = Run(
        "crosstalk", f"{arguments.exchanges:,} exchanges of {arguments.callers} callers", seed=arguments.seed
    )
    options = f"{arguments.exchanges} {arguments.callers} {arguments.workers} {arguments.seed}"
    progress = Progress("crosstalk", options, arguments.out)
    with tempfile.TemporaryDirectory(prefix="crosstalk-") as work:
        run_loop(_trial(arguments, Path(work), progress))
    run.tell(progress.problems)
    run.counts.update(sorted(progress.counts.items()))
    done, foreign = progress.counts["exchanges"], progress.counts["foreign marks"]
    run.figure(
        "exchanges", demanded=f"{arguments.exchanges}", measured=done, holds=done >= arguments.exchanges
    )
    run.figure("values of another exchange or caller", demanded="0", measured=foreign, holds=foreign == 0)
    others = len(progress.problems) - foreign
    run.figure(
        "answers that are lost, lack their own value or show another caller's data",
        demanded="0",
        measured=others,
        holds=others == 0,
    )
    progress.end()
    return run.write(arguments.out, seconds=progress.seconds)


if __name__ == "__main__":
    sys.exit(main())
