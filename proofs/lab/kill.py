"""Kill a loaded gateway again and again, and look whether anything it had acknowledged is gone.

    python -m proofs.lab.kill [--kills 500] [--clients 16] [--workers 1] [--sync each] [--seed 1]
        [--keep DIR]

Clients store responses and chain them, hold sessions and ask plain questions, whole and streamed. After every
kill (SIGKILL to the whole process group, at a random moment) the gateway is started again on the same data,
with the next of the orders in which a record reaches the disk (`[store] sync`). In the end every acknowledged
response must be there with its text, every session have all its acknowledged turns, and every acknowledged
request exactly one row of usage that says ok, with the numbers the client was sent; no row may be open,
and the database be sound. Exit status 1 otherwise, or where it took longer than two seconds to come back.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import secrets
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from proofs.lab.link import Link, Reply
from proofs.lab.result import Run, add_options
from proofs.served import Served
from wireglot.gateway.settings import SyncOrder
from wireglot.stores import open_engine
from wireglot.stores.records import UsageQuery, UsageRow

_CONFIG = '[providers.demo]\n[server]\nlog = "json"\n[limits]\ndrain = 1.0\n[store]\nsync = "{}"\n'
_ORDERS: Final[tuple[str, ...]] = get_args(SyncOrder)
_MODELS = ("demo-gemini", "demo-anthropic", "demo-openai-chat", "demo-openai-responses")
_GET = 40
_DEMANDED_SECONDS: Final = 2.0


class Acknowledged:
    """What the gateway has said it has done: it answered, and the answer came whole."""

    def __init__(self) -> None:
        self.responses: dict[str, str] = {}
        self.sessions: dict[str, list[str]] = {}
        self.requests: dict[str, tuple[int, int]] = {}
        self.broken = 0
        self.unstored = 0
        """Answers that say themselves that they could not be kept."""
        self.refused: dict[str, int] = {}


class Client:
    """One after the other: a stored response (perhaps chained), a turn of a session, a plain question."""

    def __init__(self, port: int, number: int, chance: random.Random, reported: Acknowledged) -> None:
        self._link = Link(port)
        self._chance = chance
        self._reported = reported
        self._last = ""
        self._session = f"session-{number}"
        self._doubtful = False

    async def run(self, stopped: asyncio.Event) -> None:
        while not stopped.is_set():
            try:
                await self._once()
            except (OSError, asyncio.IncompleteReadError):
                self._reported.broken += 1
                self._doubtful = True
                await asyncio.sleep(0.02)
        self._link.close()

    async def _once(self) -> None:
        nonce = f"nonce-{secrets.token_hex(8)}"
        model = self._chance.choice(_MODELS)
        stream = self._chance.random() < 0.5
        kind = self._chance.choice((self._stored, self._turn, self._plain))
        await kind(nonce, model, stream)

    async def _stored(self, nonce: str, model: str, stream: bool) -> None:
        body: dict[str, Any] = {"model": model, "input": f"[[demo:echo]] {nonce}", "stream": stream}
        if self._last and self._chance.random() < 0.5:
            body["previous_response_id"] = self._last
        reply = await self._link.ask("POST", "/v1/responses", body)
        if not self._ok(reply):
            return
        response = _completed(reply.body) if stream else reply.json()
        if response is None or nonce not in msgspec.json.encode(response["output"]).decode():
            raise AssertionError(f"a wrong answer: {reply.body[-300:]!r}")
        usage = response["usage"]
        self._account(reply, usage["input_tokens"], usage["output_tokens"])
        if not response["store"]:
            self._reported.unstored += 1
            return
        self._reported.responses[response["id"]] = nonce
        self._last = response["id"]

    async def _turn(self, nonce: str, model: str, stream: bool) -> None:
        message = {"role": "user", "content": f"[[demo:echo]] {nonce}"}
        body = {"model": model, "messages": [message], "max_tokens": 500}
        reply = await self._link.ask(
            "POST",
            "/v1/messages",
            body,
            {"x-wireglot-session": self._session, "anthropic-version": "2023-06-01"},
        )
        if not self._ok(reply):
            return
        usage = reply.json()["usage"]
        cached = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
        self._account(reply, usage["input_tokens"] + sum(cached), usage["output_tokens"])
        if "storage" in reply.headers.get("x-wireglot-losses", ""):
            self._reported.unstored += 1
        else:
            self._reported.sessions.setdefault(self._session, []).append(nonce)

    async def _plain(self, nonce: str, model: str, stream: bool) -> None:
        message = {"role": "user", "content": f"[[demo:echo]] {nonce}"}
        body: dict[str, Any] = {"model": model, "messages": [message], "stream": stream}
        if stream:
            body["stream_options"] = {"include_usage": True}
        reply = await self._link.ask("POST", "/v1/chat/completions", body)
        if not self._ok(reply):
            return
        if stream:
            if not reply.body.rstrip().endswith(b"[DONE]"):
                return  # it says itself that it broke off
            usage = next(
                chunk["usage"] for line in reversed(reply.body.splitlines())
                if line.startswith(b"data: {") and (chunk := msgspec.json.decode(line[6:])).get("usage")
            )  # fmt: skip
        else:
            usage = reply.json()["usage"]
        self._account(reply, usage["prompt_tokens"], usage["completion_tokens"])

    def _ok(self, reply: Reply) -> bool:
        if reply.status == 200:
            return True
        self._reported.refused[f"{reply.status} {reply.body[:120]!r}"] = (
            self._reported.refused.get(f"{reply.status} {reply.body[:120]!r}", 0) + 1
        )
        return False

    def _account(self, reply: Reply, tokens_in: int, tokens_out: int) -> None:
        self._reported.requests[reply.headers["x-wireglot-request-id"]] = (tokens_in, tokens_out)


def _completed(stream: bytes) -> Any:
    for line in stream.splitlines():
        if line.startswith(b"data: ") and b'"response.completed"' in line[:60]:
            return msgspec.json.decode(line[6:])["response"]
    return None


async def trial(arguments: argparse.Namespace, folder: Path, run: Run) -> list[str]:
    chance = random.Random(arguments.seed)
    orders = _ORDERS if arguments.sync == "each" else (arguments.sync,)
    gateway = Served(folder, _CONFIG.format(orders[0]), workers=arguments.workers)
    acknowledged = Acknowledged()
    starts = [gateway.start()]
    stopped = asyncio.Event()
    clients = [
        Client(gateway.port, number, random.Random(f"{arguments.seed} {number}"), acknowledged)
        for number in range(arguments.clients)
    ]
    tasks = [asyncio.create_task(client.run(stopped)) for client in clients]
    began = time.monotonic()
    for number in range(arguments.kills):
        await asyncio.sleep(chance.uniform(0.05, 0.8))
        await asyncio.to_thread(gateway.kill)
        gateway.configure(_CONFIG.format(orders[(number + 1) % len(orders)]))
        starts.append(await asyncio.to_thread(gateway.start))
        _raise_first(tasks)
        if (number + 1) % 20 == 0:
            print(
                f"{number + 1:4d} kills  {len(acknowledged.requests):7,} requests acknowledged  "
                f"{acknowledged.broken:,} broken off  {time.monotonic() - began:.0f} s",
                flush=True,
            )
    stopped.set()
    await asyncio.gather(*tasks)
    problems = await look(gateway, acknowledged)
    await asyncio.to_thread(gateway.stop)
    problems += await _look_inside(folder, acknowledged)
    print(
        f"{arguments.kills} kills: {len(acknowledged.requests):,} requests, "
        f"{len(acknowledged.responses):,} stored responses and "
        f"{sum(map(len, acknowledged.sessions.values())):,} turns of {len(acknowledged.sessions)} sessions "
        f"acknowledged; {acknowledged.broken:,} answers cut off; started again in "
        f"{sorted(starts)[len(starts) // 2]:.2f} s (median), {max(starts):.2f} s (worst)"
    )
    for what, times in acknowledged.refused.items():
        print(f"refused {times} times: {what}")
    run.counts |= {
        "kills": arguments.kills,
        "acknowledged requests": len(acknowledged.requests),
        "acknowledged responses": len(acknowledged.responses),
        "acknowledged turns": sum(map(len, acknowledged.sessions.values())),
        "answers cut off": acknowledged.broken,
        "answers refused": sum(acknowledged.refused.values()),
        "answers that say they were not stored": acknowledged.unstored,
    }
    worst = round(max(starts[1:], default=0.0), 2)
    run.figure(
        "seconds until it answers again (worst)",
        demanded="at most 2",
        measured=worst,
        holds=worst <= _DEMANDED_SECONDS,
    )
    return problems


def _raise_first(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done() and task.exception() is not None:
            task.result()


async def look(gateway: Served, reported: Acknowledged) -> list[str]:
    """Ask for everything back."""
    problems: list[str] = []
    links = [Link(gateway.port) for _ in range(_GET)]
    ids = list(reported.responses)

    async def look(link: Link, mine: list[str]) -> None:
        for identifier in mine:
            reply = await link.ask("GET", f"/v1/responses/{identifier}")
            if reply.status != 200 or reported.responses[identifier].encode() not in reply.body:
                problems.append(f"response {identifier}: {reply.status} {reply.body[:120]!r}")

    await asyncio.gather(*(look(link, ids[number::_GET]) for number, link in enumerate(links)))
    for session, nonces in reported.sessions.items():
        reply = await links[0].ask("GET", f"/v1/sessions/{session}?limit=100000")
        missing = [nonce for nonce in nonces if nonce.encode() not in reply.body]
        problems += [f"session {session}: {nonce} is not there ({reply.status})" for nonce in missing]
    return problems


async def _look_inside(folder: Path, reported: Acknowledged) -> list[str]:
    """The books, and whether the file is sound."""
    import apsw

    path = folder / "wireglot" / "wireglot.db"
    engine = await open_engine(f"sqlite://{path}")
    rows = await engine.ledger.rows(UsageQuery(), limit=10_000_000)
    await engine.close()
    problems = look_at_rows(rows, reported)
    with apsw.Connection(str(path)) as database:
        sound = database.execute("PRAGMA integrity_check").fetchall()
    if sound != [("ok",)]:
        problems.append(f"integrity_check: {sound[:3]}")
    return problems


def look_at_rows(rows: list[UsageRow], reported: Acknowledged) -> list[str]:
    """Every acknowledged request once, with the numbers that its client was sent, and none open."""
    problems: list[str] = []
    by_id: dict[str, UsageRow] = {}
    outcomes: dict[str, int] = {}
    for row in rows:
        if row.id in by_id:
            problems.append(f"usage {row.id} is there twice")
        by_id[row.id] = row
        outcomes[row.outcome or "open"] = outcomes.get(row.outcome or "open", 0) + 1
    for identifier, (tokens_in, tokens_out) in reported.requests.items():
        mine = by_id.get(identifier)
        if mine is None:
            problems.append(f"usage {identifier} is lost")
        elif mine.outcome != "ok":
            problems.append(f"usage {identifier} says {mine.outcome or 'open'}")
        elif (mine.total, mine.total_output) != (tokens_in + tokens_out, tokens_out):
            problems.append(
                f"usage {identifier}: {mine.total} tokens, the client was sent {tokens_in + tokens_out}"
            )
    if outcomes.get("open"):
        problems.append(f"{outcomes['open']} rows are still open")
    print(f"the ledger: {len(rows):,} rows, {outcomes}")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill a loaded gateway, and look for what is lost.")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--sync", choices=("each", *_ORDERS), default="each", help="each: in turn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where the data stays behind")
    add_options(parser)
    arguments = parser.parse_args()
    run = Run("kill", f"{arguments.kills} x kill -9 under load, SQLite", seed=arguments.seed)
    with tempfile.TemporaryDirectory(prefix="wireglot-kill-") as temporary:
        problems = asyncio.run(trial(arguments, (arguments.keep or Path(temporary)).resolve(), run))
    run.tell(problems)
    doubled = sum("twice" in problem for problem in problems)
    lost = len(problems) - doubled
    run.figure("acknowledged and lost, or wrong", demanded="0", measured=lost, holds=lost == 0)
    run.figure("doubled", demanded="0", measured=doubled, holds=doubled == 0)
    return run.write(arguments.out)


if __name__ == "__main__":
    sys.exit(main())
