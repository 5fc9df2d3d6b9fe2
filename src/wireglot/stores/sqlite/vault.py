"""Values under unguessable names, for a limited time."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final
from zlib import crc32

import apsw

from wireglot.stores.sql import to_text, to_texts
from wireglot.stores.sqlite.worker_threads import Database
from wireglot_core.wire.json import encode_text

_WORD_BYTES: Final = 8
_WORDS: Final = 512
"""A page of them: an entry of one caller seldom changes the word of another."""
_BINARY: Final = getattr(os, "O_BINARY", 0)
"""Without it, Windows changes line ends."""

Seen = tuple[int, int, bytes]
"""Identifies the store's file, with a caller's word."""


class KeptWords:
    """Shows every process that shares a store whether anything was stored in its vault, without reading the
    vault.

    Next to the store is a small file (`wireglot.db-kept`) of words, each for a group of callers. A process
    that stores something of a caller changes its word once that can be read, and before it is reported as
    stored. So a process that found nothing, and finds the word unchanged, would find nothing again.
    """

    def __init__(self, store: Path) -> None:
        self._store = str(store)
        # Next to the target of a link, like SQLite's own files.
        self._path = os.path.realpath(store) + "-kept"

    def look(self, caller: str) -> Seen | None:
        """None if it is unknown. Reads a page that is in memory: the loop may do it."""
        try:
            store = os.stat(self._store)
            file = os.open(self._path, os.O_RDONLY | _BINARY)
            try:
                os.lseek(file, _place(caller), os.SEEK_SET)
                word = os.read(file, _WORD_BYTES)
            finally:
                os.close(file)
        except OSError:
            return None
        return (store.st_dev, store.st_ino, word) if len(word) == _WORD_BYTES else None

    def begin(self, caller: str) -> Seen | None:
        """Like `look`, if that returned None: creates the file. Its first words are new ones."""
        self.remove()
        with contextlib.suppress(OSError):
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
            try:
                os.write(file, os.urandom(_WORDS * _WORD_BYTES))
            finally:
                os.close(file)
        return self.look(caller)

    def change(self, callers: Iterable[str]) -> None:
        """Something of these callers is stored. Without the file nothing relies on it. Words never repeat:
        two processes may change one at once."""
        places = set(map(_place, callers))
        if not places:
            return
        try:
            file = os.open(self._path, os.O_WRONLY | _BINARY)
            try:
                for place in places:
                    os.lseek(file, place, os.SEEK_SET)
                    os.write(file, os.urandom(_WORD_BYTES))
            finally:
                os.close(file)
        except OSError:  # it is missing, or the disk is full
            self.remove()

    def remove(self) -> None:
        """A process that relies on it then reads the store, and creates another one."""
        with contextlib.suppress(OSError):
            os.unlink(self._path)


def _place(caller: str) -> int:
    return crc32(caller.encode("utf-8", "surrogatepass")) % _WORDS * _WORD_BYTES


LACKING_SECONDS: Final = 60.0
"""A version from before the words stores without changing one."""
_MAX_LACKING: Final = 4096
"""Callers known to have no stored reasoning in SQLite: about 1 MB."""


class SqliteVault:
    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self.words: Final = KeptWords(database.path)
        self._database = database
        self._clock = clock
        self._lacking: dict[str, tuple[float, Seen]] = {}
        """Callers with nothing stored: until when that counts, and what their words were before."""

    async def keep(self, caller: str, entries: Mapping[str, bytes], seconds: int) -> None:
        expires = self._database.now() + seconds * 1000
        rows = [(to_text(caller), to_text(name), expires, body) for name, body in entries.items()]

        def write(connection: apsw.Connection) -> None:
            connection.executemany(
                "INSERT INTO vault (tenant, name, expires, body) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (tenant, name) DO UPDATE SET expires = excluded.expires, body = excluded.body",
                rows,
            )

        # A caller that stops waiting does not undo it. The end of an answer waits for this, but not for the
        # disk, which takes tens of milliseconds when it is busy.
        await self._database.write(write, lambda: self.words.change([caller]), synced=False)

    async def recall(self, caller: str, names: Sequence[str]) -> dict[str, bytes]:
        now = self._database.now()
        tenant = to_text(caller)

        def read(connection: apsw.Connection) -> tuple[dict[str, bytes], Seen | None]:
            # Read before the store: an entry written after that changes it.
            seen = self.words.look(caller) or self.words.begin(caller)
            # One statement for all of them: a conversation of a hundred turns has three hundred names.
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
            if len(self._lacking) >= _MAX_LACKING:
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
