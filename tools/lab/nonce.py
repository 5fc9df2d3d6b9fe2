"""Many callers at once, each with values that only it may ever see: does one reach another?

    python -m tools.lab.nonce [--callers 50] [--requests 1000] [--workers 1]

Every caller has its own key, its own sessions under the same names as everybody else's, and its own chain of
responses. Every answer is searched for the mark of any other caller. Now and then a caller asks for another's
response, conversation or session by its id: that must be a 404. Exit status 1 otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import random
import re
import secrets
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from tools.lab.link import Link, Reply
from tools.lab.served import Served

_MODELS = ("demo-gemini", "demo-anthropic", "demo-openai-chat", "demo-openai-responses")
_MARK = re.compile(rb"mark(\d{4})x")


class World:
    def __init__(self) -> None:
        self.problems: list[str] = []
        self.tally: Counter[str] = Counter()
        self.ids: list[tuple[int, str]] = []
        """Who owns which path."""


class Caller:
    def __init__(self, port: int, number: int, key: str, world: World, requests: int) -> None:
        self._link = Link(port, key)
        self._number = number
        self._world = world
        self._left = requests
        self._chance = random.Random(number)
        self._last = ""
        self._said = 0

    async def run(self) -> None:
        while self._left > 0:
            await self._chance.choice(
                (self._stored, self._session, self._plain, self._vault, self._foreign)
            )()
        self._link.close()

    async def _ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        self._left -= 1
        reply = await self._link.ask(method, path, body, headers)
        self._world.tally["requests"] += 1
        self._world.tally[f"status {reply.status}"] += 1
        for mark in _MARK.findall(reply.body):
            if int(mark) != self._number:
                self._world.problems.append(f"caller {self._number} saw a value of {int(mark)}: {path}")
        if reply.status >= 500:
            self._world.problems.append(f"{method} {path}: {reply.status} {reply.body[:200]!r}")
        return reply

    def _nonce(self) -> str:
        self._said += 1
        return f"mark{self._number:04d}x{self._said} [[demo:echo]]"

    async def _stored(self) -> None:
        body: dict[str, Any] = {"model": self._chance.choice(_MODELS), "input": self._nonce()}
        if self._last:
            body["previous_response_id"] = self._last
        if self._said % 40 == 0:
            del body["previous_response_id"]  # a chain that never ends is not the point
        reply = await self._ask("POST", "/v1/responses", body)
        if reply.status == 200:
            self._last = reply.json()["id"]
            self._world.ids.append((self._number, f"/v1/responses/{self._last}"))
            self._mine(reply)

    async def _session(self) -> None:
        """Everybody's sessions have the same names."""
        name = f"shared-name-{self._said // 30}"
        body = {
            "model": self._chance.choice(_MODELS),
            "messages": [{"role": "user", "content": self._nonce()}],
            "stream": self._chance.random() < 0.5,
        }
        reply = await self._ask("POST", "/v1/chat/completions", body, {"x-wireglot-session": name})
        self._mine(reply)
        if self._chance.random() < 0.2:
            await self._ask("GET", f"/v1/sessions/{name}")
        if self._chance.random() < 0.1:
            await self._ask("GET", "/v1/sessions")

    async def _plain(self) -> None:
        body = {
            "model": self._chance.choice(_MODELS),
            "messages": [{"role": "user", "content": self._nonce()}],
            "max_tokens": 200,
            "stream": self._chance.random() < 0.5,
        }
        self._mine(await self._ask("POST", "/v1/messages", body, {"anthropic-version": "2023-06-01"}))

    async def _vault(self) -> None:
        """A tool call of a Chat client that echoes no reasoning, with everybody's names and arguments."""
        tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
        say = {"role": "user", "content": "[[demo:think]] [[demo:tool look {}]]"}
        body: dict[str, Any] = {"model": self._chance.choice(_MODELS), "messages": [say], "tools": [tool]}
        reply = await self._ask("POST", "/v1/chat/completions", body)
        if reply.status != 200:
            return
        calls = reply.json()["choices"][0]["message"].get("tool_calls") or []
        result = [
            {"role": "tool", "tool_call_id": call["id"], "content": f"{self._nonce()} found"}
            for call in calls
        ]
        turn = {"role": "assistant", "content": None, "tool_calls": calls}
        body["messages"] = [say, turn, *result, {"role": "user", "content": self._nonce()}]
        self._mine(await self._ask("POST", "/v1/chat/completions", body))

    async def _foreign(self) -> None:
        others = [path for owner, path in self._world.ids[-200:] if owner != self._number]
        if not others:
            return
        path = self._chance.choice(others)
        reply = await self._ask("GET", path)
        if reply.status != 404:
            self._world.problems.append(f"caller {self._number} got {reply.status} for {path}")
        body = {
            "model": "demo-gemini",
            "input": self._nonce(),
            "previous_response_id": path.rpartition("/")[2],
        }
        reply = await self._ask("POST", "/v1/responses", body)
        if reply.status not in (400, 404):
            self._world.problems.append(f"caller {self._number} chained {path}: {reply.status}")

    def _mine(self, reply: Reply) -> None:
        if reply.status == 200 and f"mark{self._number:04d}x".encode() not in reply.body:
            self._world.problems.append(f"caller {self._number} misses its own value: {reply.body[:200]!r}")


async def trial(told: argparse.Namespace, folder: Path) -> World:
    keys = [f"key-{secrets.token_hex(16)}" for _ in range(told.callers)]
    lines = [
        f'caller{number} = "sha256:{hashlib.sha256(key.encode()).hexdigest()}"'
        for number, key in enumerate(keys)
    ]
    gateway = Served(folder, "[providers.demo]\n[keys]\n" + "\n".join(lines) + "\n", workers=told.workers)
    await asyncio.to_thread(gateway.start)
    world = World()
    began = time.monotonic()
    callers = [Caller(gateway.port, number, key, world, told.requests) for number, key in enumerate(keys)]
    try:
        await asyncio.gather(*(caller.run() for caller in callers))
        usage = Link(gateway.port, keys[0])
        mine = (await usage.ask("GET", "/v1/usage?group_by=key")).json()
        if len(mine["data"]) != 1:
            world.problems.append(f"caller 0 sees the usage of others: {msgspec.json.encode(mine)[:200]!r}")
        usage.close()
    finally:
        await asyncio.to_thread(gateway.stop)
    print(f"{told.callers} callers, {dict(world.tally)}, {time.monotonic() - began:.0f} s")
    return world


def main() -> None:
    parser = argparse.ArgumentParser(description="Look for values of one caller in the answers of another.")
    parser.add_argument("--callers", type=int, default=50)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wireglot-nonce-") as temporary:
        world = asyncio.run(trial(told, Path(temporary)))
    for problem in world.problems[:30]:
        print(problem)
    print(f"{len(world.problems)} problems" if world.problems else "no caller saw a value of another")
    sys.exit(1 if world.problems else 0)


if __name__ == "__main__":
    main()
