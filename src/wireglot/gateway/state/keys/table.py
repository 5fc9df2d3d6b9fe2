"""Client keys that are kept in the store, as a table in memory that is never much older than a second."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Final

from wireglot.gateway.observe.log import Note
from wireglot.gateway.request.page_request import unavailable
from wireglot.gateway.settings import ClientKey, LossPolicy
from wireglot.gateway.state.tasks import Guarded, stop
from wireglot.stores.base import Keys, StoreDown
from wireglot.stores.records import KeyRow

TRUSTED_SECONDS: Final = 60.0
"""For which the last known table serves on while the store is down."""

_LOSSES: Final[dict[str, LossPolicy]] = {
    "strict": "strict",
    "warn": "warn",
    "silent": "silent",
    "as-is": "as-is",
}


class KeyTable:
    """`clock` is monotonic and tells how old the table is; `wall` tells what has expired."""

    def __init__(
        self,
        keys: Keys,
        note: Note,
        *,
        look_seconds: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._look_seconds = look_seconds
        self._keys = keys
        self._note = note
        self.clock = clock
        self._wall = wall
        self._found: dict[str, tuple[ClientKey, int]] = {}
        """By digest, with the moment (unix milliseconds) from which it opens nothing; 0: there is none."""
        self._version: int | None = None
        self._read: float | None = None
        """When the store last said that the table is right."""
        self._any = False
        self._held: frozenset[tuple[str, int]] = frozenset()
        """Names of those that are neither revoked nor deleted, with the moments they were made."""
        self.operator_key = ""
        """Of no client, and in no store: for commands of the user who runs the process."""
        self.down = False
        """Whether the store did not answer when it was last asked."""
        self._distrusted = False
        self._unread: frozenset[str] = frozenset()
        """The names of those that cannot be read."""
        self._one_at_a_time = asyncio.Lock()
        self._guard = Guarded(note, "keys")
        self._poll: asyncio.Task[None] | None = None

    @property
    def required(self) -> bool:
        """Whether any key was ever made, revoked ones too. Where nobody could say yet: as if."""
        return self._any or self._read is None

    async def start(self) -> None:
        await self.refresh()
        self._poll = asyncio.create_task(
            self._guard.forever(self._refresh, lambda: self._look_seconds * (0.8 + 0.4 * random.random()))
        )

    async def close(self) -> None:
        await stop(self._poll)

    def find(self, digest: str) -> ClientKey | None:
        if self._read is None or self.clock() - self._read > TRUSTED_SECONDS:
            # It may have been revoked since, or made since: nobody knows.
            raise unavailable("client keys")
        found = self._found.get(digest)
        if found is None:
            return None
        key, until = found
        return None if until and until <= self._wall() * 1000 else key

    def is_gone(self, key: ClientKey | None) -> bool:
        """Whether a stored key was deleted or revoked while its request ran: its name may be another's."""
        if key is None or not key.created or self._version is None:
            return False
        return (key.name, key.created) not in self._held

    async def refresh(self) -> None:
        """Read the keys again if they have changed. What cannot be read stays as it was, for a while."""
        await self._guard.run(self._refresh)

    async def _refresh(self) -> None:
        async with self._one_at_a_time:
            asked = self.clock()
            try:
                # The version first: what changes between the two is read again the next time.
                version = await self._keys.version()
                if version != self._version:
                    self._take(await self._keys.all())
                    self._version = version
                self._read = asked
                self.down = False
            except StoreDown as down:
                self.down = True
                self._distrust(str(down))
                return
            except Exception as bug:
                self._distrust(type(bug).__name__)
                raise
        if self._distrusted:
            self._distrusted = False
            self._note("info", "keys are known again")

    def _take(self, rows: list[KeyRow]) -> None:
        found: dict[str, tuple[ClientKey, int]] = {}
        unread = frozenset(row.name for row in rows if not row.digest and not row.revoked)
        for name in sorted(unread - self._unread):
            self._note("error", "key not readable", name=name, detail="it opens nothing until it is mended")
        self._unread = unread
        for row in rows:
            if row.revoked or not row.digest:
                continue
            found[row.digest] = (_client_key(row, row.digest), 0)
            if row.old_digest and row.old_until:
                found[row.old_digest] = (_client_key(row, row.old_digest), row.old_until)
        self._found = found
        self._any = bool(rows)
        self._held = frozenset((row.name, row.created) for row in rows if not row.revoked)

    def _distrust(self, reason: str) -> None:
        if self._distrusted or (self._read is not None and self.clock() - self._read <= TRUSTED_SECONDS):
            return
        self._distrusted = True
        self._note("error", "keys are not known", detail=f"stored keys are refused: {reason}")


def _client_key(row: KeyRow, digest: str) -> ClientKey:
    return ClientKey(
        name=row.name,
        digest=digest,
        losses=_LOSSES.get(row.losses),
        models=row.models,
        limits=row.limits,
        expires=row.expires,
        created=row.created,
    )
