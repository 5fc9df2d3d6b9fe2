"""A store that cannot be reached yet: everything asked of it fails until it can, and it is then opened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from wireglot.stores.base import Counters, Documents, Engine, Keys, Ledger, StoreDown, StoreUnusable, Vault
from wireglot.stores.open import open_counters, open_engine
from wireglot.stores.records import Document, KeyRow, KindLimits, Stats, Swept, UsageRow, VaultEntry

T = TypeVar("T")


class DeferredEngine:
    """`check` tries to open it. Until then it is down, for the reason it was down at first."""

    def __init__(
        self, url: str, reason: str, *, open: Callable[[str], Awaitable[Engine]] = open_engine
    ) -> None:
        self._url = url
        self._reason = reason
        self._open = open
        self._engine: Engine | None = None
        self._opening = asyncio.Lock()
        self.documents = cast(Documents, _Part(self, "documents"))
        self.vault = cast(Vault, _Part(self, "vault"))
        self.ledger = cast(Ledger, _Part(self, "ledger"))
        self.keys = cast(Keys, _Part(self, "keys"))

    def opened(self) -> Engine:
        if self._engine is None:
            raise StoreDown(self._reason)
        return self._engine

    async def check(self) -> None:
        async with self._opening:  # once, however many ask
            if self._engine is None:
                self._engine = await _usable(self._open(self._url))
        await self._engine.check()

    async def sweep(
        self, now: int, *, usage_before: int, dead_before: int, kinds: Mapping[str, KindLimits]
    ) -> Swept:
        return await self.opened().sweep(now, usage_before=usage_before, dead_before=dead_before, kinds=kinds)

    async def wipe(self, caller: str) -> dict[str, int]:
        return await self.opened().wipe(caller)

    async def stats(self) -> Stats:
        return await self.opened().stats()

    def export(self) -> AsyncIterator[Document | UsageRow | KeyRow | VaultEntry]:
        return self.opened().export()

    async def load(self, records: Sequence[Document | UsageRow | KeyRow | VaultEntry]) -> None:
        await self.opened().load(records)

    def lacks(self, caller: str) -> bool:
        return self._engine is not None and self._engine.lacks(caller)

    def kept_mark(self, caller: str) -> Hashable:
        return None if self._engine is None else self._engine.kept_mark(caller)

    async def close(self) -> None:
        if self._engine is not None:
            await self._engine.close()


class DeferredShared:
    """The same for counters and the vault beside them. `counters.check` tries to open them."""

    def __init__(
        self,
        url: str,
        reason: str,
        *,
        open: Callable[[str], Awaitable[tuple[Counters, Vault | None]]] = open_counters,
    ) -> None:
        self._url = url
        self._reason = reason
        self._open = open
        self._shared: _Shared | None = None
        self._opening = asyncio.Lock()
        self.counters = cast(Counters, _DeferredCounters(self, "counters"))
        self.vault = cast(Vault, _Part(self, "vault"))

    def opened(self) -> _Shared:
        if self._shared is None:
            raise StoreDown(self._reason)
        return self._shared

    async def check(self) -> None:
        async with self._opening:
            if self._shared is None:
                counters, vault = await _usable(self._open(self._url))
                assert vault is not None, "only an engine of its own can be away at the start"
                self._shared = _Shared(counters, vault)
        await self._shared.counters.check()

    async def close(self) -> None:
        if self._shared is not None:
            await self._shared.counters.close()


async def _usable(opening: Awaitable[T]) -> T:
    """What cannot be used while we run may be mended while we run: it is down."""
    try:
        return await opening
    except StoreUnusable as problem:
        raise StoreDown(str(problem)) from problem


class _Shared(NamedTuple):
    counters: Counters
    vault: Vault


class _Part:
    """One side of a store that may not be open: looking up a method on it is what fails."""

    def __init__(self, deferred: DeferredEngine | DeferredShared, name: str) -> None:
        self._deferred = deferred
        self._name = name

    def __getattr__(self, method: str) -> Any:
        return getattr(getattr(self._deferred.opened(), self._name), method)


class _DeferredCounters(_Part):
    _deferred: DeferredShared

    async def check(self) -> None:
        await self._deferred.check()

    async def close(self) -> None:
        await self._deferred.close()
