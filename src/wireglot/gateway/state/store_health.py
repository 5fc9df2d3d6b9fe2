"""Whether the store accepts writes, as of a moment ago."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from wireglot.gateway.state.stored_forms import HISTORY
from wireglot.stores import StoreDown
from wireglot.stores.base import Documents
from wireglot.stores.records import Document
from wireglot.stores.seal import SealedDocuments, Sealer
from wireglot_core.ir.loss import Loss

TRUSTED_SECONDS: Final = 30.0
"""Seconds for which a successful write shows that others will succeed."""

NOT_STORED: Final = Loss(
    "$.store",
    "storage",
    "dropped",
    "the gateway's store was not available: the answer is not stored under its id",
    "response",
)
NOT_HELD: Final = Loss(
    "$.conversation",
    "storage",
    "dropped",
    "the gateway's store was not available: this turn is not in the stored conversation",
    "response",
)
"""For answers that were paid for: they are delivered, and report it."""

T = TypeVar("T")


class StoreHealth:
    """A store that can be read may still refuse writes (a full disk, a lock): code that is about to spend
    money on an answer that must be stored checks here first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.trouble = ""
        """Why it does not; "" if it does."""
        self._clock = clock
        self._written: float | None = None

    @property
    def is_sure(self) -> bool:
        """Whether it has accepted a write lately, and nothing has failed since."""
        return (
            not self.trouble and self._written is not None and self._clock() - self._written < TRUSTED_SECONDS
        )

    def written(self) -> None:
        self._written = self._clock()

    def suspect(self, down: StoreDown) -> None:
        """A write has failed. The next check of the store shows whether that lasts."""
        self.trouble = self.trouble or str(down)

    def check(self) -> None:
        if self.trouble:
            raise StoreDown(self.trouble)


class WatchedDocuments(SealedDocuments):
    """Reports the results of its writes: while there are any, no check has to test whether the store accepts
    them."""

    def __init__(
        self,
        behind: Documents,
        sealer: Sealer,
        on_unreadable: Callable[[str], None],
        store_health: StoreHealth,
    ) -> None:
        super().__init__(behind, sealer, on_unreadable, HISTORY)
        self._store_health = store_health

    async def put(self, documents: Sequence[Document], *, new: bool = False) -> bool:
        return await self._watched(super().put(documents, new=new))

    async def replace(self, document: Document) -> bool:
        return await self._watched(super().replace(document))

    async def append(self, documents: Sequence[Document]) -> int:
        return await self._watched(super().append(documents))

    async def _watched(self, work: Awaitable[T]) -> T:
        try:
            done = await work
        except StoreDown as down:
            self._store_health.suspect(down)
            raise
        if done:  # a call that changed nothing has written nothing
            self._store_health.written()
        return done
