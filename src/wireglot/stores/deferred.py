"""A store that cannot be reached yet: everything asked of it fails until it can, and it is then opened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from typing import TypeVar

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

    def opened(self) -> Engine:
        if self._engine is None:
            raise StoreDown(self._reason)
        return self._engine

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
    """The same for counters and the vault beside them."""

    def __init__(
        self, url: str, reason: str, *, open: Callable[[str], Awaitable[Shared]] = open_counters
    ) -> None:
        self._url = url
        self._reason = reason
        self._open = open
        self._shared: Shared | None = None
        self._opening = asyncio.Lock()

    def opened(self) -> Shared:
        if self._shared is None:
            raise StoreDown(self._reason)
        return self._shared

    @property
    def counters(self) -> Counters:
        return self.opened().counters

    @property
    def vault(self) -> VaultApart | None:
        """Never None: only a server can be away at the start, and each has one."""
        return self.opened().vault

    async def check(self) -> None:
        async with self._opening:
            if self._shared is None:
                self._shared = await _usable(self._open(self._url))
        await self._shared.check()

    async def close(self) -> None:
        if self._shared is not None:
            await self._shared.close()


async def _usable(opening: Awaitable[T]) -> T:
    """What cannot be used while we run may be mended while we run: it is down."""
    try:
        return await opening
    except StoreUnusable as problem:
        raise StoreDown(str(problem)) from problem
