"""Two gateways on two "machines" (folders), one PostgreSQL and one Redis between them, and callers of both."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

from proofs.lab.link import Link, Reply
from proofs.served import Served
from proofs.servers import PostgresServer, RedisServer
from tests.waiting import until

T = TypeVar("T")

ADMIN = "an-admin-secret-of-the-fleet"
SECRET = "the-secret-that-all-gateways-share"


class Fleet:
    def __init__(self, folder: Path, store: str, shared: str, more: str = "") -> None:
        """`shared`: "" where nothing is shared but the store."""
        beside = f'shared = "{shared}"\n' if shared else ""
        toml = (
            f'[server]\nsecret = "{SECRET}"\nadmin_secret = "{ADMIN}"\n[limits]\ndrain = 1.0\nauth_failures = 100000\n'
            f'[store]\nurl = "{store}"\n{beside}[providers.demo]\n{more}'
        )
        self.machines = [Served(folder / name, toml) for name in ("one", "two")]

    def ask(
        self,
        machine: int,
        method: str,
        path: str,
        document: Any = None,
        *,
        key: str = "",
        headers: dict[str, str] | None = None,
    ) -> Reply:
        async def asked() -> Reply:
            link = Link(self.machines[machine].port, key)
            try:
                return await link.ask(method, path, document, headers)
            finally:
                link.close()

        return run(asked())

    def admin(self, machine: int, method: str, path: str, document: Any = None) -> Reply:
        return self.ask(machine, method, path, document, key=ADMIN)

    def create_key(self, name: str, **limits: Any) -> str:
        reply = self.admin(0, "POST", "/v1/admin/keys", {"name": name, **limits})
        assert reply.status in (200, 201), reply.body
        key: str = reply.json()["key"]
        return key

    @contextmanager
    def running(self) -> Iterator[Self]:
        try:
            for machine in self.machines:
                machine.start()
            yield self
        finally:
            for machine in self.machines:
                if machine.is_started:
                    machine.kill()


class OwnFleet(Fleet):
    """With the plain servers it runs on."""

    def __init__(self, folder: Path, postgres: PostgresServer, redis: RedisServer, more: str) -> None:
        super().__init__(folder, postgres.url, redis.url, more)
        self.postgres = postgres
        self.redis = redis


@contextmanager
def fleet(folder: Path, more: str = "") -> Iterator[OwnFleet]:
    with (
        PostgresServer() as postgres,
        RedisServer() as redis,
        OwnFleet(folder, postgres, redis, more).running() as running,
    ):
        yield running


class Caller:
    """Stores responses at both machines in turn, and remembers what was acknowledged."""

    def __init__(self, two: Fleet, number: int) -> None:
        self._links = [Link(machine.port) for machine in two.machines]
        self._turn = number
        self.acknowledged: dict[str, str] = {}
        self.broken = 0
        self.unstored = 0
        self.odd: list[Reply] = []

    async def run(self, stopped: asyncio.Event) -> None:
        last = ""
        while not stopped.is_set():
            self._turn += 1
            word = secrets.token_hex(8)
            body: dict[str, Any] = {"model": "demo-anthropic", "input": f"[[demo:echo]] {word}"}
            if last:
                body["previous_response_id"] = last
            try:
                reply = await self._links[self._turn % 2].ask("POST", "/v1/responses", body)
            except OSError:
                self.broken += 1
                await asyncio.sleep(0.02)
                continue
            if reply.status != 200:
                self.odd.append(reply)
                continue
            answer = reply.json()
            if not answer["store"]:
                self.unstored += 1  # it was bought, and says itself that it could not be kept
                continue
            last = answer["id"]
            self.acknowledged[last] = word
        for link in self._links:
            link.close()


async def progress(callers: list[Caller], count: int = 5) -> None:
    """Until each of them has so many more acknowledged."""
    wanted = [len(caller.acknowledged) + count for caller in callers]
    await until(
        lambda: all(len(caller.acknowledged) >= each for caller, each in zip(callers, wanted, strict=True))
    )


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def chat(model: str, text: str, **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}
