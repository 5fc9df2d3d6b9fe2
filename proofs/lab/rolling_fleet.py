"""Machines of two versions on one PostgreSQL and one Redis, each with a folder and a port of its own."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from proofs.lab.link import Link, Reply
from proofs.lab.scenario_config import ADMIN, CONFIG, UPSTREAM
from proofs.served import Served, Tree
from proofs.servers import PostgresServer, RedisServer
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

_WITHIN_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.1


class Machine:
    def __init__(self, name: str, served: Served, version: str) -> None:
        self.name = name
        self.version = version
        self.served = served
        self.serves = False

    def __str__(self) -> str:
        return f"{self.name} ({self.version})"

    async def ask(
        self,
        key: str,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        link = Link(self.served.port, key)
        try:
            return await link.ask(method, path, body, headers)
        finally:
            link.close()

    async def answer(
        self, key: str, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Any:
        """What a request that must be answered is answered."""
        reply = await self.ask(key, method, path, body, headers)
        assert reply.status in (200, 201), f"{self}: {method} {path}: {reply.status} {reply.body[:300]!r}"
        return reply.json()


class RollingFleet:
    def __init__(self, folder: Path, trees: dict[str, Tree]) -> None:
        self.machines: list[Machine] = []
        self.exhausted: set[str] = set()
        """Models for which the provider behind the gateways has nothing left."""
        self.postgres = PostgresServer()
        self.redis = RedisServer()
        self.upstream = ScriptedUpstream(decide=self._decide)
        self._folder = folder
        self._trees = trees

    def open(self) -> None:
        self.postgres.start()
        self.redis.start()
        self.upstream.start()

    def close(self) -> None:
        for machine in self.machines:
            if machine.serves:
                machine.served.kill()
        self.upstream.stop()
        self.redis.close()
        self.postgres.close()

    def of(self, version: str) -> Machine:
        """One that serves."""
        return next(each for each in self.machines if each.serves and each.version == version)

    def serving(self) -> list[Machine]:
        return [machine for machine in self.machines if machine.serves]

    async def start(self, name: str, version: str) -> Machine:
        """Also on the folder and the port of one that has left, or was killed."""
        before = next((each for each in self.machines if each.name == name), None)
        served = Served(
            self._folder / name,
            CONFIG.replace(UPSTREAM, self.upstream.url),
            port=before.served.port if before is not None else 0,
            tree=self._trees[version],
            environ={"WIREGLOT_STORE": self.postgres.url, "WIREGLOT_SHARED": self.redis.url},
        )
        machine = before or Machine(name, served, version)
        machine.served, machine.version = served, version
        await asyncio.to_thread(served.start)
        machine.serves = True
        if before is None:
            self.machines.append(machine)
        return machine

    async def leave(self, machine: Machine) -> None:
        """In good order: clients go elsewhere, what runs may finish."""
        machine.serves = False
        await asyncio.to_thread(machine.served.stop)

    async def kill(self, machine: Machine) -> None:
        machine.serves = False
        await asyncio.to_thread(machine.served.kill)

    async def new_key(self, machine: Machine, name: str = "", **limits: Any) -> tuple[str, str]:
        """A caller nobody has had before, and its key, known to every machine."""
        name = name or f"caller-{secrets.token_hex(6)}"
        made = await machine.answer(ADMIN, "POST", "/v1/admin/keys", {"name": name, **limits})
        key: str = made["key"]
        for each in self.serving():
            await until(partial(_is, each, key, 200))
        return name, key

    def sent_with(self, word: str) -> str:
        """What the provider behind the gateways got last with this word in it."""
        for request in reversed(self.upstream.requests):
            if word.encode() in request.body:
                return request.body.decode()
        raise AssertionError(f"no provider was reported {word}")

    def _decide(self, request: Any) -> Behaviour | None:
        if any(model.encode() in request.body for model in self.exhausted):
            return Behaviour(error=429, retry_after=60)
        return None


async def is_refused(machine: Machine, key: str) -> bool:
    return await _is(machine, key, 401)


async def _is(machine: Machine, key: str, status: int) -> bool:
    return (await machine.ask(key, "GET", "/v1/models")).status == status


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = _WITHIN_SECONDS) -> None:
    end = time.monotonic() + seconds
    while not await holds():
        assert time.monotonic() < end, "it did not come to hold"
        await asyncio.sleep(_POLL_SECONDS)
