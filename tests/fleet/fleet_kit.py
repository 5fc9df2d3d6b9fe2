"""Two gateways on two "machines" (folders), one PostgreSQL and one Redis between them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tools.lab.link import Link, Reply
from tools.lab.served import Served
from tools.servers import PostgresServer, RedisServer

T = TypeVar("T")

ADMIN = "an-admin-secret-of-the-fleet"
SECRET = "the-secret-that-all-gateways-share"


class Fleet:
    def __init__(self, folder: Path, postgres: PostgresServer, redis: RedisServer, more: str) -> None:
        self.postgres = postgres
        self.redis = redis
        toml = (
            f'[server]\nsecret = "{SECRET}"\nadmin_secret = "{ADMIN}"\n[limits]\ndrain = 1.0\nauth_failures = 100000\n'
            f'[store]\nurl = "{postgres.url}"\nshared = "{redis.url}"\n[providers.demo]\n{more}'
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
def fleet(folder: Path, more: str = "") -> Iterator[Fleet]:
    with PostgresServer() as postgres, RedisServer() as redis:
        running = Fleet(folder, postgres, redis, more)
        try:
            for machine in running.machines:
                machine.start()
            yield running
        finally:
            for machine in running.machines:
                machine.kill()


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def chat(model: str, text: str, **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}
