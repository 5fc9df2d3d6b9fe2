"""The one door to everything remembered: opened with the process, asked around each request."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
from typing import TYPE_CHECKING, Protocol

from wireglot.gateway.observe.log import Level
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.conversations.items import RESPONSES
from wireglot.gateway.state.held import Held
from wireglot.gateway.state.idempotency import HEADER as IDEMPOTENCY_KEY
from wireglot.gateway.state.idempotency import Idempotency
from wireglot.gateway.state.keys.table import KeyTable
from wireglot.gateway.state.ledger.sweeper import Sweeper
from wireglot.gateway.state.ledger.usage_ledger import UsageLedger
from wireglot.gateway.state.page_request import PageRequest
from wireglot.gateway.state.quotas.quotas import Quotas
from wireglot.gateway.state.reasoning.vault import ReasoningVault
from wireglot.gateway.state.sharing import Sharing
from wireglot.gateway.state.store_health import StoreHealth, WatchedDocuments
from wireglot.gateway.state.tasks import Guarded, Note, stop
from wireglot.gateway.targets.routing import Target
from wireglot.stores import StoreDown, StoreUnusable, open_counters, open_engine
from wireglot.stores.base import Counters, Engine, Vault
from wireglot.stores.deferred import DeferredEngine, DeferredShared
from wireglot.stores.seal import Sealer
from wireglot.stores.sealed import SealedVault

if TYPE_CHECKING:
    from wireglot.gateway.app import Gateway
    from wireglot.gateway.request.job import Job

_LOOK = 2.0
"""Seconds between two looks whether the store answers."""


class _Part(Protocol):
    async def close(self) -> None: ...


class State:
    def __init__(
        self, settings: Settings, engine: Engine, counters: Counters, vault: Vault, note: Note
    ) -> None:
        self.instance = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.settings = settings
        self.engine = engine
        self.counters = counters
        self.note = note
        self.store_health = StoreHealth()
        server = settings.server
        sealer = Sealer(
            server.secret.value.encode() or secrets.token_bytes(32),
            [old.value.encode() for old in server.old_secrets],
        )
        self.documents = WatchedDocuments(engine.documents, sealer, self._unreadable, self.store_health)
        self.vault = SealedVault(vault, sealer, self._unreadable)
        self.vault_apart: Vault | None = vault if vault is not engine.vault else None
        """The vault, where it is not the engine's: wiping a caller must reach it too."""
        self.ledger = UsageLedger(engine.ledger, settings, self.instance, note)
        self.keys = KeyTable(engine.keys, note)
        self.sharing = Sharing(counters, self.instance, note)
        self.quotas = Quotas(
            counters, engine.ledger, settings, self.instance, note, peers=lambda: self.sharing.peers
        )
        self.reasoning = ReasoningVault(self.vault, settings, note)
        if self.vault_apart is None:
            self.reasoning.away = lambda: bool(self.store_health.trouble)
        self.held = Held(
            self.documents, engine.ledger, settings, note, self.instance, sealer, self.store_health
        )
        self.idempotency = Idempotency(self.documents, settings, note)
        self._sweeper = Sweeper(engine, counters, self.instance, note)
        self._watch: asyncio.Task[None] | None = None
        self._counters_trouble = ""
        self._told = False
        """Whether the log says that the store is down."""

    @classmethod
    async def open(cls, settings: Settings, note: Note) -> State:
        """Raises StoreUnusable: a gateway that could not remember what it promises does not start."""
        store = settings.store
        engine: Engine
        away = ""
        try:
            engine = await open_engine(store.url.value)
        except StoreDown as down:
            # Requests that need no state go on without it.
            away = str(down)
            note("error", "store down", detail=away)
            engine = DeferredEngine(store.url.value, away)
        url = _counters_url(settings)
        counters: Counters
        vault: Vault | None
        try:
            counters, vault = await open_counters(url)
        except StoreDown as down:
            note("error", "store down", detail=str(down))
            late = DeferredShared(url, str(down))
            counters, vault = late.counters, late.vault
        state = cls(settings, engine, counters, vault or engine.vault, note)
        state.store_health.trouble = away
        state._told = bool(away)
        return state

    async def start(self, gateway: Gateway) -> None:
        await self.ledger.start()
        self.ledger.publish(gateway.observer.metrics)
        self._sweeper.start(lambda: self.settings)
        await self.keys.start()
        await self.sharing.start(gateway.health)
        await self.held.start(gateway)
        guard = Guarded(self.note, "store")
        self._watch = asyncio.create_task(guard.forever(self._look, lambda: _LOOK))

    def adopt(self, settings: Settings) -> None:
        self.settings = settings
        for part in (self.ledger, self.quotas, self.reasoning, self.held, self.idempotency):
            part.adopt(settings)

    async def drain(self, seconds: float) -> None:
        """Let what runs without a client finish for so long. A later call with less time overtakes."""
        await self.held.drain(seconds)

    async def close(self) -> None:
        """Every part, whatever becomes of the one before: unwritten books above all."""
        await stop(self._watch)
        parts: tuple[_Part, ...] = (
            self.held,
            self.idempotency,
            self.sharing,
            self.keys,
            self.quotas,
            self._sweeper,
            self.ledger,
            self.counters,
            self.engine,
        )
        async with contextlib.AsyncExitStack() as closing:
            for part in reversed(parts):
                closing.push_async_callback(self._close, part)

    async def _close(self, part: _Part) -> None:
        try:
            await part.close()
        except Exception as bug:
            self.note("error", "bug", type=type(bug).__name__, where=f"close {type(part).__name__}")

    # Around a request.

    def is_plain(self, job: Job) -> bool:
        """Nothing must be done around it: most requests are so, and having a store costs them nothing."""
        return job.dialect != RESPONSES and IDEMPOTENCY_KEY not in job.head.headers

    def concerns(self, job: Job, targets: tuple[Target, ...]) -> bool:
        """Whether something may have to be put before it, or kept of its answer."""
        return job.dialect == RESPONSES or bool(job.conversation) or self.reasoning.concern(job, targets)

    async def around(self, gateway: Gateway, job: Job) -> None:
        """Have a request answered, once for each Idempotency-Key, and in the background where it asks so."""
        claim = await self.idempotency.begin(job)
        if claim is None:
            return  # it has been answered before, and has that answer again
        try:
            await self.held.answer(gateway, job)
        finally:
            await claim.finish(job)

    async def before(self, job: Job, targets: tuple[Target, ...]) -> None:
        """Put back what the client did not send and the upstream needs; arrange for what must be kept."""
        await self.held.load(job, targets)
        await self.reasoning.recall(job, targets)

    async def answer(self, page: PageRequest) -> None:
        """Answer a question about what is remembered."""
        from wireglot.gateway.state.pages import answer

        await answer(self, page)

    # The store itself.

    @property
    def trouble(self) -> str:
        """Why the store or the counters do not answer, "" where both do."""
        return self.store_health.trouble or self._counters_trouble

    async def _look(self) -> None:
        """Try whether the store takes a write, where nothing else has shown it lately."""
        is_sure = self.store_health.is_sure and not self.keys.down
        if not is_sure:
            self.store_health.trouble = await _trouble(self.engine)
            if not self.store_health.trouble:
                self.store_health.written()
        if not is_sure or self.sharing.down or self._counters_trouble:
            # Apart: what must be kept can be kept without them.
            self._counters_trouble = await _trouble(self.counters)
        trouble = self.trouble
        if bool(trouble) != self._told:
            level: Level = "error" if trouble else "info"
            event, fields = ("store down", {"detail": trouble}) if trouble else ("store is back", {})
            self.note(level, event, **fields)
            self._told = bool(trouble)

    def _unreadable(self, kind: str) -> None:
        self.note("warn", "unreadable", kind=kind, detail="sealed with another secret, or damaged")


async def _trouble(part: Engine | Counters) -> str:
    """Why it does not answer, "" where it does."""
    try:
        await part.check()
    except (StoreDown, StoreUnusable) as down:
        return str(down) or type(down).__name__
    return ""


def _counters_url(settings: Settings) -> str:
    """Shared between machines by Redis, between workers by a file, by nobody otherwise."""
    store = settings.store
    if store.shared.value:
        return store.shared.value
    if settings.server.workers > 1 and store.folder:
        return f"sqlite://{os.path.join(store.folder, 'counters.db')}"
    return "memory:"
