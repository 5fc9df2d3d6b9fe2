"""Client keys that are kept in the store, as a table in memory that is never much older than a second."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable
from typing import Any, Final

from wireglot.gateway.settings import ClientKey, LossPolicy
from wireglot.gateway.state.question import unavailable
from wireglot.stores.base import Keys, StoreDown
from wireglot.stores.records import KeyRow

POLL: Final = 1.0
"""Seconds between two looks for changes, give or take a fifth: workers do not ask all at once."""
TRUSTED: Final = 60.0
"""Seconds that the last known table serves on while the store is down."""

_LOSSES: Final[dict[str, LossPolicy]] = {"strict": "strict", "warn": "warn", "silent": "silent"}


class KeyTable:
    """`clock` is monotonic and tells how old the table is; `wall` tells what has expired."""

    def __init__(
        self,
        keys: Keys,
        note: Any,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._keys = keys
        self._note = note
        self._clock = clock
        self._wall = wall
        self._found: dict[str, tuple[ClientKey, int]] = {}
        """By digest, with the moment (unix milliseconds) from which it opens nothing; 0: there is none."""
        self._version: int | None = None
        self._read: float | None = None
        """When the store last said that the table is right."""
        self._any = False
        self._distrusted = False
        self._one_at_a_time = asyncio.Lock()
        self._poll: asyncio.Task[None] | None = None

    @property
    def required(self) -> bool:
        """Whether any key was ever made, revoked ones too. Where nobody could say yet: as if."""
        return self._any or self._read is None

    async def start(self) -> None:
        await self.refresh()
        self._poll = asyncio.create_task(self._look())

    async def close(self) -> None:
        if self._poll is not None:
            self._poll.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._poll

    def find(self, digest: str) -> ClientKey | None:
        if self._read is None or self._clock() - self._read > TRUSTED:
            # It may have been revoked since, or made since: nobody knows.
            raise unavailable("client keys")
        found = self._found.get(digest)
        if found is None:
            return None
        key, until = found
        return None if until and until <= self._wall() * 1000 else key

    async def refresh(self) -> None:
        """Read the keys again if they have changed. What cannot be read stays as it was, for a while."""
        async with self._one_at_a_time:
            asked = self._clock()
            try:
                # The version first: what changes between the two is read again the next time.
                version = await self._keys.version()
                if version != self._version:
                    self._take(await self._keys.all())
                    self._version = version
                self._read = asked
            except StoreDown as down:
                self._distrust(str(down))
                return
        if self._distrusted:
            self._distrusted = False
            self._note("info", "keys are known again")

    def _take(self, rows: list[KeyRow]) -> None:
        found: dict[str, tuple[ClientKey, int]] = {}
        for row in rows:
            if row.revoked:
                continue
            found[row.digest] = (_client_key(row, row.digest), 0)
            if row.old_digest and row.old_until:
                found[row.old_digest] = (_client_key(row, row.old_digest), row.old_until)
        self._found = found
        self._any = bool(rows)

    def _distrust(self, reason: str) -> None:
        if self._distrusted or (self._read is not None and self._clock() - self._read <= TRUSTED):
            return
        self._distrusted = True
        self._note("error", "keys are not known", detail=f"stored keys are refused: {reason}")

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(POLL * (0.8 + 0.4 * random.random()))
            await self.refresh()


def _client_key(row: KeyRow, digest: str) -> ClientKey:
    return ClientKey(row.name, digest, _LOSSES.get(row.losses), row.models, row.limits, row.expires)
