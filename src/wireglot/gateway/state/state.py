"""All stored state: opened with the process, reloaded with its settings, closed with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Iterator
from typing import Any, Protocol

from wireglot.gateway.observe.log import Level
from wireglot.gateway.observe.metrics import Metrics
from wireglot.gateway.observe.observer import Observer
from wireglot.gateway.settings import Settings, StoreSettings
from wireglot.gateway.state.conversations.continued import Continuing
from wireglot.gateway.state.conversations.store import ConversationStore
from wireglot.gateway.state.idempotency import Idempotency
from wireglot.gateway.state.keys.table import KeyTable
from wireglot.gateway.state.ledger.sweeper import Sweeper
from wireglot.gateway.state.ledger.usage_ledger import UsageLedger
from wireglot.gateway.state.losses.shelf import LossShelf
from wireglot.gateway.state.quotas.quotas import Quotas
from wireglot.gateway.state.reasoning.vault import ReasoningVault
from wireglot.gateway.state.responses.background import Background
from wireglot.gateway.state.responses.chain import Chain
from wireglot.gateway.state.responses.compaction import Compaction
from wireglot.gateway.state.responses.store import ResponseStore
from wireglot.gateway.state.sharing import Sharing
from wireglot.gateway.state.store_health import StoreHealth, WatchedDocuments
from wireglot.gateway.state.tasks import Guarded, Pace, stop
from wireglot.gateway.targets.health import Health
from wireglot.stores import StoreDown, StoreUnusable, open_counters, open_engine, open_fleet_log
from wireglot.stores.base import Counters, Engine, Shared, VaultApart
from wireglot.stores.bounded import BoundedEngine, BoundedShared, Bounds, StoreBreaker
from wireglot.stores.deferred import DeferredEngine, DeferredShared
from wireglot.stores.memory import MemoryCounters
from wireglot.stores.seal import SealedVault, Sealer


class _Part(Protocol):
    async def close(self) -> None: ...


def _bounded(
    shared: Shared | DeferredShared, store: StoreSettings
) -> tuple[Counters, VaultApart | None, Bounds | None]:
    """The counters, with their vault if they have one. Those in memory never block: they have no bounds."""
    if isinstance(shared, Shared) and isinstance(shared.counters, MemoryCounters):
        return shared.counters, None, None
    within = BoundedShared(shared, store.timeout, answers_soon=bool(store.shared.value))
    return within.counters, within.vault, within.bounds


class State:
    def __init__(
        self,
        settings: Settings,
        behind: Engine,
        shared: Shared | DeferredShared,
        observer: Observer,
        *,
        pace: Pace,
    ) -> None:
        """`shared`: if it has a vault, that is used instead of the engine's."""
        note = observer.note
        engine = BoundedEngine(behind, settings.store.timeout)
        self._bounds: dict[str, Bounds] = {"store": engine.bounds}
        counters, vault, bounds = _bounded(shared, settings.store)
        if bounds is not None:
            self._bounds["shared"] = bounds
        self.pace = pace
        self.instance = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.settings = settings
        self.engine: Engine = engine
        self.counters: Counters = counters
        self.note = note
        store = settings.store
        self.fleet_log = open_fleet_log(store.url.value, store.shared.value, lambda: behind.documents)
        """Separate from the limits for requests: it opens no circuit breaker of theirs."""
        self.store_health = StoreHealth()
        server = settings.server
        self.sealer = sealer = Sealer(
            server.secret.value.encode() or secrets.token_bytes(32),
            [old.value.encode() for old in server.old_secrets],
        )
        self.documents = WatchedDocuments(engine.documents, sealer, self._unreadable, self.store_health)
        self.vault = SealedVault(vault if vault is not None else engine.vault, sealer, self._unreadable)
        self.vault_apart: VaultApart | None = vault
        """The vault, if it is not the engine's: wiping a caller must include it."""
        self.ledger = UsageLedger(engine.ledger, settings, self.instance, note)
        self.keys = KeyTable(engine.keys, note, look_seconds=pace.keys_look_seconds)
        self.keys.groups = settings.groups
        self.sharing = Sharing(counters, self.instance, note)
        self.quotas = Quotas(counters, engine.ledger, self.instance, note, peers=lambda: self.sharing.peers)
        self.reasoning = ReasoningVault(self.vault, settings, note)
        if self.vault_apart is None:
            self.reasoning.store_health = self.store_health
            self.reasoning.lacks = engine.lacks
            self.reasoning.kept_mark = engine.kept_mark
        self.responses = ResponseStore(self.documents, settings)
        self.conversations = ConversationStore(self.documents, settings)
        self.background = Background(self.documents, self.responses, self.instance, observer, pace)
        self.chain = Chain(self.responses, self.conversations, self.background, self.store_health, note)
        self.continuing = Continuing(self.conversations, self.store_health, note)
        self.compaction = Compaction(sealer)
        self.idempotency = Idempotency(self.documents, settings, note, pace)
        self.losses = LossShelf(self.documents, note, peers=lambda: self.sharing.peers)
        observer.keep_losses_with(self.losses.keep)
        self._sweeper = Sweeper(engine, counters, self.instance, note)
        self._watch: asyncio.Task[None] | None = None
        self._budget_watch: asyncio.Task[None] | None = None
        self._counters_trouble = ""
        self._reported = False
        """Whether the log says that the store is down."""

    @classmethod
    async def open(cls, settings: Settings, observer: Observer, pace: Pace | None = None) -> State:
        """Raises StoreUnusable: a gateway that could not store what it promises does not start."""
        store, note = settings.store, observer.note
        engine: Engine
        away = ""
        try:
            engine = await open_engine(store.url.value)
        except StoreDown as down:
            # Requests that need no state work without it.
            away = str(down)
            note("error", "store down", detail=away)
            engine = DeferredEngine(store.url.value, away)
        url = _counters_url(settings)
        shared: Shared | DeferredShared
        try:
            shared = await open_counters(url)
        except StoreDown as down:
            note("error", "store down", detail=str(down))
            shared = DeferredShared(url, str(down))
        state = cls(settings, engine, shared, observer, pace=pace or Pace())
        state.store_health.trouble = away
        state._reported = bool(away)
        return state

    async def start(self, health: Health) -> None:
        """`health`: the state of providers, whose cool-downs are shared with other processes."""
        await self.ledger.start()
        self._sweeper.start(lambda: self.settings)
        await self.keys.start()
        await self.sharing.start(health)
        self.losses.start()
        self.background.open()
        guard = Guarded(self.note, "store")
        self._watch = asyncio.create_task(guard.forever(self._look, lambda: self.pace.store_look_seconds))
        budgets = Guarded(self.note, "limits: budgets")
        self._budget_watch = asyncio.create_task(
            budgets.forever(self.quotas.watch.look, lambda: self.pace.budgets_look_seconds)
        )

    def adopt(self, settings: Settings) -> None:
        self.settings = settings
        self.keys.groups = settings.groups
        for bounds in self._bounds.values():
            bounds.seconds = settings.store.timeout
        parts = (self.ledger, self.reasoning, self.responses, self.conversations, self.idempotency)
        for part in parts:
            part.adopt(settings)

    async def drain(self, seconds: float) -> None:
        """Let background work finish for this long. A later call with less time takes precedence."""
        await self.background.drain(seconds)

    async def close(self) -> None:
        """Close every part, even if one before it fails: above all an unwritten ledger."""
        await stop(self._watch, self._budget_watch)
        parts: tuple[_Part, ...] = (
            self.background,
            self.idempotency,
            self.losses,
            self.sharing,
            self.keys,
            self.quotas,
            self._sweeper,
            self.ledger,
            self.counters,
            self.engine,
        )
        if self.fleet_log is not None:
            parts += (self.fleet_log,)
        async with contextlib.AsyncExitStack() as closing:
            for part in reversed(parts):
                closing.push_async_callback(self._close, part)

    async def _close(self, part: _Part) -> None:
        try:
            await part.close()
        except Exception as bug:  # even if one part fails, all others are closed
            self.note("error", "bug", type=type(bug).__name__, where=f"close {type(part).__name__}")

    # The store itself.

    @property
    def trouble(self) -> str:
        """Why the store or the counters do not answer; "" if both do."""
        opened = (bounds.trouble for bounds in self._bounds.values())
        return self.store_health.trouble or self._counters_trouble or next(filter(None, opened), "")

    def health(self) -> dict[str, Any]:
        """The state of the store: its trouble, and how many processes share it."""
        return {"trouble": self.trouble or None, "processes": self.sharing.peers}

    async def _look(self) -> None:
        """Test whether the store accepts a write, if no other write has shown it lately."""
        is_sure = self.store_health.is_sure and not self.keys.down
        if not is_sure or self._is_left_alone("store"):
            self.store_health.trouble = await _trouble(self.engine)
            if not self.store_health.trouble:
                self.store_health.written()
                await self.responses.remove_unstored()
        if not is_sure or self.sharing.down or self._counters_trouble or self._is_left_alone("shared"):
            # Separate: what must be stored can be stored without them.
            self._counters_trouble = await _trouble(self.counters)
        trouble = self.trouble
        if bool(trouble) != self._reported:
            level: Level = "error" if trouble else "info"
            event, fields = ("store down", {"detail": trouble}) if trouble else ("store available again", {})
            self.note(level, event, **fields)
            self._reported = bool(trouble)

    def publish(self, metrics: Metrics) -> None:
        self.quotas.watch.publish(metrics)
        metrics.read(
            "store_down",
            "1 while the store or Redis does not answer or rejects writes.",
            lambda: {(): int(bool(self.trouble))},
        )
        metrics.read(
            "store_breaker_open",
            "1 while the circuit breaker for these calls to the store or Redis is open.",
            lambda: {names: 1 for names, breaker in self._breakers() if breaker.why},
            ("part", "calls"),
        )
        metrics.read(
            "store_refused_total",
            "Calls to the store that were skipped while its circuit breaker was open.",
            lambda: {names: breaker.refused for names, breaker in self._breakers() if breaker.refused},
            ("part", "calls"),
            "counter",
        )

    def _breakers(self) -> Iterator[tuple[tuple[str, str], StoreBreaker]]:
        for part, bounds in self._bounds.items():
            for calls, breaker in bounds.breakers.items():
                yield (part, calls), breaker

    def _is_left_alone(self, part: str) -> bool:
        """Whether requests do not call it: only a check changes that."""
        bounds = self._bounds.get(part)
        return bounds is not None and bool(bounds.trouble)

    def _unreadable(self, kind: str) -> None:
        self.note("warn", "unreadable", kind=kind, detail="sealed with another secret, or damaged")


async def _trouble(part: Engine | Counters) -> str:
    """Why it does not answer; "" if it does."""
    try:
        await part.check()
    except (StoreDown, StoreUnusable) as down:
        return str(down) or type(down).__name__
    return ""


def _counters_url(settings: Settings) -> str:
    """Shared between machines by Redis, between workers by a file, otherwise not at all."""
    store = settings.store
    if store.shared.value:
        return store.shared.value
    if settings.server.workers > 1 and store.folder:
        return f"sqlite://{os.path.join(store.folder, 'counters.db')}"
    return "memory:"
