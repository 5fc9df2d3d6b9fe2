"""Values under names nobody can guess, for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import apsw

from wireglot.stores.sql import to_text, to_texts
from wireglot.stores.sqlite.database import Database
from wireglot.stores.sqlite.kept_words import KeptWords, Seen
from wireglot.wire.json import encode_text

LACKING_SECONDS: Final = 60.0
"""A version from before the words keeps without a word."""
_LACKING_MOST: Final = 4096
"""Callers: about 1 MB."""


class SqliteVault:
    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self.words: Final = KeptWords(database.path)
        self._database = database
        self._clock = clock
        self._lacking: dict[str, tuple[float, Seen]] = {}
        """Callers of whom there was nothing: until when that counts, and what their words were before."""

    async def keep(self, caller: str, entries: Mapping[str, bytes], seconds: int) -> None:
        expires = self._database.now() + seconds * 1000
        rows = [(to_text(caller), to_text(name), expires, body) for name, body in entries.items()]

        def write(connection: apsw.Connection) -> None:
            connection.executemany(
                "INSERT INTO vault (tenant, name, expires, body) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (tenant, name) DO UPDATE SET expires = excluded.expires, body = excluded.body",
                rows,
            )

        # A caller that stops waiting for it does not undo it. The end of an answer waits for this, and not
        # for the disk, which takes tens of milliseconds when it is busy.
        await self._database.write(write, lambda: self.words.change([caller]), synced=False)

    async def recall(self, caller: str, names: Sequence[str]) -> dict[str, bytes]:
        now = self._database.now()
        tenant = to_text(caller)

        def read(connection: apsw.Connection) -> tuple[dict[str, bytes], Seen | None]:
            # Before the look into the store: what is kept behind it is news.
            seen = self.words.look(caller) or self.words.begin(caller)
            # One statement for all of them: a conversation of a hundred turns asks for three hundred.
            found = connection.execute(
                "SELECT wanted.key, body FROM json_each(?) AS wanted CROSS JOIN vault"
                " WHERE tenant = ? AND name = wanted.value AND expires > ?",
                (encode_text(to_texts(names)), tenant, now),
            )
            held = {names[at]: body for at, body in found}
            if held or connection.execute("SELECT 1 FROM vault WHERE tenant = ? LIMIT 1", (tenant,)).get:
                return held, None
            return {}, seen

        held, seen = await self._database.read(read)
        if seen is not None:
            if len(self._lacking) >= _LACKING_MOST:
                self._lacking.clear()
            self._lacking[caller] = (self._clock() + LACKING_SECONDS, seen)
        return held

    def lacks(self, caller: str) -> bool:
        known = self._lacking.get(caller)
        if known is None:
            return False
        until, seen = known
        if self._clock() < until and self.words.look(caller) == seen:
            return True
        del self._lacking[caller]
        return False
