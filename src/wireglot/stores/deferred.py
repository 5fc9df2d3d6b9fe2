"""A store that cannot be reached yet: every call fails until it can, and it is then opened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from wireglot.stores.base import (
    Counters,
    Documents,
    Engine,
    Keys,
    Ledger,
    Shared,
    StoreDown,
    StoreUnusable,
    Vault,
    VaultApart,
)
from wireglot.stores.open import open_counters, open_engine
from wireglot.stores.records import KindLimits, Record, Stats, Swept

Opened = TypeVar("Opened", bound=Engine | Shared)


class _Deferred(Generic[Opened]):
    """`check` tries to open it. Until then it is down, with the original reason."""

    def __init__(self, url: str, reason: str, open: Callable[[str], Awaitable[Opened]]) -> None:
        self._url = url
        self._reason = reason
        self._open = open
        self._store: Opened | None = None
        self._opening = asyncio.Lock()

    def opened(self) -> Opened:
        if self._store is None:
            raise StoreDown(self._reason)
        return self._store

    async def check(self) -> None:
        async with self._opening:  # once, however many callers wait
            if self._store is None:
                try:
                    self._store = await self._open(self._url)
                except StoreUnusable as problem:
                    # A problem that makes it unusable may be fixed while we run: until then it is down.
                    raise StoreDown(str(problem)) from problem
        await self._store.check()

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()


class DeferredEngine(_Deferred[Engine]):
    def __init__(
        self, url: str, reason: str, *, open: Callable[[str], Awaitable[Engine]] = open_engine
    ) -> None:
        super().__init__(url, reason, open)

    @property
    def documents(self) -> Documents:
        return self.opened().documents

    @property
    def vault(self) -> Vault:
        return self.opened().vault

    @property
    def ledger(self) -> Ledger:
        return self.opened().ledger

    @property
    def keys(self) -> Keys:
        return self.opened().keys

    async def sweep(
        self, now: int, *, usage_before: int, dead_before: int, kinds: Mapping[str, KindLimits]
    ) -> Swept:
        return await self.opened().sweep(now, usage_before=usage_before, dead_before=dead_before, kinds=kinds)

    async def wipe(self, caller: str) -> dict[str, int]:
        return await self.opened().wipe(caller)

    async def stats(self) -> Stats:
        return await self.opened().stats()

    def export(self) -> AsyncIterator[Record]:
        return self.opened().export()

    async def load(self, records: Sequence[Record]) -> None:
        await self.opened().load(records)

    def lacks(self, caller: str) -> bool:
        return self._store is not None and self._store.lacks(caller)

    def kept_mark(self, caller: str) -> Hashable:
        return None if self._store is None else self._store.kept_mark(caller)


class DeferredShared(_Deferred[Shared]):
    """The same for counters and the vault that comes with them."""

    def __init__(
        self, url: str, reason: str, *, open: Callable[[str], Awaitable[Shared]] = open_counters
    ) -> None:
        super().__init__(url, reason, open)

    @property
    def counters(self) -> Counters:
        return self.opened().counters

    @property
    def vault(self) -> VaultApart | None:
        """Never None: only a server can be unreachable at the start, and each has one."""
        return self.opened().vault
