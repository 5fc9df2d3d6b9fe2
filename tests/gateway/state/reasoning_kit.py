"""A vault and jobs for it, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from tests.gateway.kit import catalogued, head, settings
from wireglot.gateway.entry.guard import Caller
from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.observe.record import Record
from wireglot.gateway.request.job import Job
from wireglot.gateway.settings import Provider, Secret, ServerSettings, Settings
from wireglot.gateway.state.reasoning.vault import ReasoningVault
from wireglot.gateway.targets.routing import Target, route
from wireglot.http.application import Reply
from wireglot.http.redaction import Redactor
from wireglot.ir.content import Origin, Part, Signature
from wireglot.ir.outcome import Response, Stop
from wireglot.stores.base import StoreDown, Vault
from wireglot.stores.memory import MemoryEngine
from wireglot.wire.json import encode

MODELS = {
    "gemini": "gemini/gemini-3.5-flash",
    "anthropic": "anthropic/claude-sonnet-4-5",
    "openai": "openai/gpt-5.5",
    "kimi": "kimi/kimi-k2.6",
}


def _provider(name: str) -> Provider:
    provider = catalogued(name, f"key-of-{name}")
    if name != "openai":
        return provider
    spec = msgspec.structs.replace(provider.spec, dialects=("openai-responses",))
    return msgspec.structs.replace(provider, spec=spec)


PROVIDERS = tuple(_provider(name) for name in MODELS)
SETTINGS = settings(*PROVIDERS, server=ServerSettings(secret=Secret("of this gateway", "test")))


class WatchedVault:
    """A vault in memory that tells what it was asked, and can be down."""

    def __init__(self) -> None:
        self.behind: Vault = MemoryEngine().vault
        self.down = False
        self.kept: list[set[str]] = []
        self.asked: list[list[str]] = []

    async def keep(self, caller: str, entries: Mapping[str, bytes], seconds: int) -> None:
        if self.down:
            raise StoreDown("away")
        self.kept.append(set(entries))
        await self.behind.keep(caller, entries, seconds)

    async def recall(self, caller: str, names: Sequence[str]) -> dict[str, bytes]:
        if self.down:
            raise StoreDown("away")
        self.asked.append(list(names))
        return await self.behind.recall(caller, names)


class Memory:
    """One gateway's memory of turns. `ask` puts back what is known; `answer` has an answer kept."""

    def __init__(self, vault: WatchedVault | None = None, now: Settings = SETTINGS) -> None:
        self.vault = vault or WatchedVault()
        self.settings = now
        self.turns = ReasoningVault(self.vault, now, lambda *args, **fields: None)

    def ask(
        self,
        body: dict[str, Any],
        dialect: str = "openai-chat",
        model: str = MODELS["gemini"],
        caller: str = "one",
        session: str = "",
    ) -> Job:
        named = {"x_session_id": session} if session else {}
        asked = Asked(
            dialect, "generate", model if dialect == "gemini" else "", False if dialect == "gemini" else None
        )
        if dialect != "gemini":
            body = {"model": model, **body}
        made = head("POST", "/v1/any", **named)
        nobody = cast(Reply, None)  # nothing is sent here
        record = Record(f"req_{id(body)}", 0.0)
        job = Job(self.settings, made, encode(body), asked, Caller(caller), record, nobody, Redactor(), 1)
        asyncio.run(self.turns.recall(job, self._targets(job)))
        return job

    def answer(self, job: Job, *content: Part) -> None:
        target = self._targets(job)[0]
        job.record.provider, job.record.upstream_model = target.provider.name, target.model
        response = Response("r", target.model, content, Stop("end"))
        for keeping in job.keepings:
            asyncio.run(keeping.keep(response))

    def _targets(self, job: Job) -> tuple[Target, ...]:
        return route(self.settings, job.model, job.dialect)


def signed(data: str, by: str = "gemini", provider: str = "", account: str = "a") -> Signature:
    return Signature(data, Origin(by, provider or by, "", account))
