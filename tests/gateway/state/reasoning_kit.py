"""A vault and jobs for it, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tests.gateway.kit import catalogued, exchange, settings
from wireglot.gateway.entry.callers import Caller
from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.settings import Provider, Secret, ServerSettings, Settings
from wireglot.gateway.state.reasoning.vault import ReasoningVault
from wireglot.gateway.steps import BeforeAnswer
from wireglot.gateway.targets.routing import route
from wireglot.stores.base import StoreDown, Vault
from wireglot.stores.memory import MemoryEngine
from wireglot_core.ir.content import Origin, Part, Signature
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.providers.limits import Limits

MODELS = {
    "gemini": "gemini/gemini-3.5-flash",
    "anthropic": "anthropic/claude-sonnet-4-5",
    "openai": "openai/gpt-5.5",
    "kimi": "kimi/kimi-k2.6",
}


async def _take(step: BeforeAnswer, exchange: Exchange) -> None:
    waiting = step(exchange)
    if waiting is not None:
        await waiting


def _provider(name: str) -> Provider:
    provider = catalogued(name, f"key-of-{name}")
    spoken = {"openai": "openai-responses", "kimi": "openai-chat"}.get(name)
    if spoken is None:
        return provider
    spec = msgspec.structs.replace(provider.spec, dialects=(spoken,))
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
        self.limits: Limits | None = None
        """Of every upstream, instead of what the catalog says."""
        self.turns = ReasoningVault(self.vault, now, lambda *args, **fields: None)

    def ask(
        self,
        body: dict[str, Any],
        dialect: str = "openai-chat",
        model: str = MODELS["gemini"],
        caller: str = "one",
        session: str = "",
    ) -> Exchange:
        named: Any = {"x_session_id": session} if session else {}
        asked = Asked(
            dialect, "generate", model if dialect == "gemini" else "", False if dialect == "gemini" else None
        )
        if dialect != "gemini":
            body = {"model": model, **body}
        made = exchange(
            self.settings, body, asked=asked, caller=Caller(caller), id=f"req_{id(body)}", **named
        )
        made.targets = route(self.settings, made.job.model, made.job.dialect)
        if self.limits is not None:
            made.targets = tuple(msgspec.structs.replace(each, limits=self.limits) for each in made.targets)
        asyncio.run(_take(self.turns.recall, made))
        return made

    def answer(self, made: Exchange, *content: Part) -> None:
        target = made.targets[0]
        made.record.routed(target.provider.name, target.model, target.dialect)
        if made.ending.holds(target):
            asyncio.run(made.ending.keep(Response("r", target.model, content, Stop("end"))))


def signed(data: str, by: str = "gemini", provider: str = "", account: str = "a") -> Signature:
    return Signature(data, Origin(by, provider or by, "", account))
