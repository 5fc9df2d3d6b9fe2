"""Client keys that are kept in the store, as a table in memory that is never much older than a second."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from typing import Final

from wireglot.gateway.observe.log import Note
from wireglot.gateway.request.page_request import unavailable
from wireglot.gateway.settings import ClientKey, LossPolicy
from wireglot.gateway.state.tasks import Guarded, stop
from wireglot.stores.base import Keys, StoreDown
from wireglot.stores.records import KeyRow

TRUSTED_SECONDS: Final = 60.0
"""For which the last known table serves on while the store is down."""

_CHANGES_AT_ONCE: Final = 500
"""Keys that are taken over on the event loop; more of them in a thread."""

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
        self._rows: dict[str, KeyRow] = {}
        self._found: dict[str, tuple[ClientKey, int]] = {}
        """By digest, with the moment (unix milliseconds) from which it opens nothing; 0: there is none."""
        self._version: int | None = None
        self._read: float | None = None
        """When the store last said that the table is right."""
        self.required = True
        """Whether any key was ever made, revoked ones too. True until the store has answered."""
        self.operator_key = ""
        """Of no client, and in no store: for commands of the user who runs the process."""
        self.down = False
        """Whether the store did not answer when it was last asked."""
        self._distrusted = False
        self._one_at_a_time = asyncio.Lock()
        self._guard = Guarded(note, "keys")
        self._poll: asyncio.Task[None] | None = None

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
        row = self._rows.get(key.name)
        return row is None or bool(row.revoked) or row.created != key.created

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
                    await self._read_changes()
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

    async def _read_changes(self) -> None:
        rows = None if self._version is None else await self._keys.changed(self._version)
        if rows is not None and len(rows) <= _CHANGES_AT_ONCE and self._is_continued(rows[0]):
            del rows[0]
            self._report_unreadable(rows)
            for row in rows:
                for digest, (key, _) in _opens(self._rows.get(row.name)):
                    if digest in self._found and self._found[digest][0].name == key.name:
                        del self._found[digest]
                self._rows[row.name] = row
                self._found.update(_opens(row))
            self.required = bool(self._rows)
            return
        rows = await self._keys.all()
        self._report_unreadable(rows)

        def build() -> dict[str, tuple[ClientKey, int]]:
            return {digest: opened for row in rows for digest, opened in _opens(row)}

        self._found = await asyncio.to_thread(build) if len(rows) > _CHANGES_AT_ONCE else build()
        self._rows = {row.name: row for row in rows}
        self.required = bool(rows)

    def _is_continued(self, last: KeyRow) -> bool:
        """Whether the last change that was read is still in the store. One restored from a backup, or a
        replica that took over, has other changes under the same numbers."""
        return self._rows.get(last.name) == last

    def _report_unreadable(self, rows: list[KeyRow]) -> None:
        """Those that could still be read before, or were not there."""
        for row in sorted(filter(_is_unreadable, rows), key=lambda row: row.name):
            before = self._rows.get(row.name)
            if before is None or not _is_unreadable(before):
                detail = "it authorizes nothing until it is fixed"
                self._note("error", "key not readable", name=row.name, detail=detail)

    def _distrust(self, reason: str) -> None:
        if self._distrusted or (self._read is not None and self.clock() - self._read <= TRUSTED_SECONDS):
            return
        self._distrusted = True
        self._note("error", "keys are not known", detail=f"stored keys are refused: {reason}")


def _is_unreadable(row: KeyRow) -> bool:
    return not row.digest and not row.revoked


def _opens(row: KeyRow | None) -> Iterator[tuple[str, tuple[ClientKey, int]]]:
    """The digests that open with this row, and until when."""
    if row is None or row.revoked or not row.digest:
        return
    yield row.digest, (_client_key(row, row.digest), 0)
    if row.old_digest and row.old_until:
        yield row.old_digest, (_client_key(row, row.old_digest), row.old_until)


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
