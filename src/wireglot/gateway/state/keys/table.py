"""A table in memory of the client keys in the store, never much older than a second."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from wireglot.gateway.observe.log import Note
from wireglot.gateway.request.page_request import unavailable
from wireglot.gateway.settings import ClientKey, Group, LossPolicy
from wireglot.gateway.state.tasks import Guarded, stop
from wireglot.stores.base import Keys, StoreDown
from wireglot.stores.records import KeyRow

TRUSTED_SECONDS: Final = 60.0
"""Seconds for which the last known table is used while the store is down."""

_CHANGES_AT_ONCE: Final = 500
"""Maximum number of keys that are updated on the event loop; more are updated in a thread."""

_LOSSES: Final[dict[str, LossPolicy]] = {
    "strict": "strict",
    "warn": "warn",
    "silent": "silent",
    "as-is": "as-is",
}


class KeyTable:
    """`clock` is monotonic and measures the table's age; `wall` decides what has expired."""

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
        self.groups: Mapping[str, Group] = {}
        """Of the configuration; may be replaced at any time."""
        self._grouped: Mapping[str, Group] = {}
        """The groups that `_found` was made with."""
        self._found: dict[str, tuple[ClientKey | KeyRow, int]] = {}
        """Keys and sign-ins by digest, each with the time (unix milliseconds) at which it expires; 0:
        never."""
        self._version: int | None = None
        self._read: float | None = None
        """When the store last confirmed the table."""
        self.required = True
        """Whether any key was ever created, revoked ones included. True until the store has answered."""
        self.operator_key = ""
        """Belongs to no client and is not stored: for commands of the user who runs the process."""
        self.down = False
        """Whether the last read of the store failed."""
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
        found = self._opened(digest)
        return found if isinstance(found, ClientKey) else None

    def sign_in(self, digest: str) -> KeyRow | None:
        """The sign-in with this access token. The caller must check whether its key is still valid."""
        found = self._opened(digest)
        return found if isinstance(found, KeyRow) else None

    def clients(self) -> list[ClientKey]:
        """All valid keys, by name."""
        found = {key.name: key for key, _ in self._found.values() if isinstance(key, ClientKey)}
        return [found[name] for name in sorted(found)]

    def sign_ins_of(self, name: str) -> list[KeyRow]:
        """The devices that signed in with a key, including ended sign-ins."""
        return [row for row in self._rows.values() if row.sign_in is not None and row.sign_in.key == name]

    def names_of_person(self, subject: str) -> list[str]:
        """The keys of a person of the identity provider, revoked ones first."""
        found = [row for row in self._rows.values() if row.subject == subject]
        return [row.name for row in sorted(found, key=lambda row: not row.revoked)]

    def _opened(self, digest: str) -> ClientKey | KeyRow | None:
        if self._read is None or self.clock() - self._read > TRUSTED_SECONDS:
            # The key may have been revoked or created since: that is unknown.
            raise unavailable("client keys")
        found = self._found.get(digest)
        if found is None:
            return None
        key, until = found
        return None if until and until <= self._wall() * 1000 else key

    def is_gone(self, key: ClientKey | None) -> bool:
        """Whether a stored key was deleted or revoked while its request ran: its name may belong to another
        by now."""
        if key is None or not key.created or self._version is None:
            return False
        row = self._rows.get(key.name)
        return row is None or bool(row.revoked) or row.created != key.created

    async def refresh(self) -> None:
        """Read the keys again if they have changed. If they cannot be read, the table is used unchanged for a
        while."""
        await self._guard.run(self._refresh)

    async def _refresh(self) -> None:
        async with self._one_at_a_time:
            asked = self.clock()
            try:
                # The version first: a change between the two reads is then read again the next time.
                version, groups = await self._keys.version(), self.groups
                if version != self._version or groups != self._grouped:
                    await self._read_changes(groups)
                    self._version, self._grouped = version, groups
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
            self._note("info", "client keys available again")

    async def _read_changes(self, groups: Mapping[str, Group]) -> None:
        is_new = self._version is None or groups != self._grouped
        rows = None if is_new else await self._keys.changed(self._version or 0)
        if rows is not None and len(rows) <= _CHANGES_AT_ONCE and self._is_continued(rows[0]):
            del rows[0]
            self._report_unusable(rows, groups)
            for row in rows:
                for digest, (key, _) in _opens(self._rows.get(row.name), groups):
                    if digest in self._found and self._found[digest][0].name == key.name:
                        del self._found[digest]
                self._rows[row.name] = row
                self._found.update(_opens(row, groups))
            self.required = bool(self._rows)
            return
        rows = await self._keys.all()
        self._report_unusable(rows, groups)

        def build() -> dict[str, tuple[ClientKey | KeyRow, int]]:
            return {digest: opened for row in rows for digest, opened in _opens(row, groups)}

        self._found = await asyncio.to_thread(build) if len(rows) > _CHANGES_AT_ONCE else build()
        self._rows = {row.name: row for row in rows}
        self.required = bool(rows)

    def _is_continued(self, last: KeyRow) -> bool:
        """Whether the last change that was read is still in the store. A store restored from a backup, or a
        replica that took over, has other changes under the same numbers."""
        return self._rows.get(last.name) == last

    def _report_unusable(self, rows: list[KeyRow], groups: Mapping[str, Group]) -> None:
        """Report keys that cannot be used, if they worked before or are new."""
        for row in sorted(rows, key=lambda row: row.name):
            reason = _unusable(row, groups)
            before = self._rows.get(row.name)
            if reason and (before is None or reason != _unusable(before, self._grouped)):
                self._note("error", reason, name=row.name, detail="it authorizes nothing until it is fixed")

    def _distrust(self, reason: str) -> None:
        if self._distrusted or (self._read is not None and self.clock() - self._read <= TRUSTED_SECONDS):
            return
        self._distrusted = True
        self._note("error", "client keys not available", detail=f"stored keys are refused: {reason}")


def _unusable(row: KeyRow, groups: Mapping[str, Group]) -> str:
    """What is wrong with a key, for the log; "": nothing. A key whose group is missing would have no
    limits."""
    if row.revoked:
        return ""
    if row.sign_in is not None:
        return ""
    if not row.digest:
        return "key not readable"
    return "key without group" if row.group and row.group not in groups else ""


def _opens(
    row: KeyRow | None, groups: Mapping[str, Group]
) -> Iterator[tuple[str, tuple[ClientKey | KeyRow, int]]]:
    """The digests that this row makes valid, and until when."""
    if row is None or row.revoked or _unusable(row, groups):
        return
    if row.sign_in is not None:
        yield row.sign_in.digest, (row, row.sign_in.until)
        if row.old_digest:
            yield row.old_digest, (row, row.old_until)
        return
    yield row.digest, (_client_key(row, row.digest, groups), 0)
    if row.old_digest and row.old_until:
        yield row.old_digest, (_client_key(row, row.old_digest, groups), row.old_until)


def _client_key(row: KeyRow, digest: str, groups: Mapping[str, Group]) -> ClientKey:
    return ClientKey(
        name=row.name,
        digest=digest,
        losses=_LOSSES.get(row.losses),
        models=row.models,
        limits=row.limits,
        expires=row.expires,
        group=row.group,
        owner=row.owner,
        created=row.created,
    ).in_group(groups.get(row.group))
