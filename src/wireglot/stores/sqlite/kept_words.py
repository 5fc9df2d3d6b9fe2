"""Tells every process that shares a store when anything is kept in its vault, without asking the store.

Beside the store lies a small file (`wireglot.db-kept`) of words, each for a group of callers. Whoever keeps
something of a caller changes its word once that can be found, and before anybody hears of it. So who has
found nothing, and finds the word as it was before the look, would find nothing again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from zlib import crc32

_WORD_BYTES: Final = 8
_WORDS: Final = 512
"""A page of them: what is kept of one caller is seldom news to another."""
_BINARY: Final = getattr(os, "O_BINARY", 0)
"""Without it, Windows changes line ends."""

Seen = tuple[int, int, bytes]
"""Which file the store is, and a caller's word beside it."""


class KeptWords:
    def __init__(self, store: Path) -> None:
        self._store = str(store)
        # Where SQLite itself puts its files: beside what a link leads to.
        self._path = os.path.realpath(store) + "-kept"

    def look(self, caller: str) -> Seen | None:
        """None where it cannot be told. Reads a page that lies in memory: the loop may do it."""
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
        """As `look`, where that could not tell: makes the file. Its first words were in none before it."""
        self.remove()
        with contextlib.suppress(OSError):
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
            try:
                os.write(file, os.urandom(_WORDS * _WORD_BYTES))
            finally:
                os.close(file)
        return self.look(caller)

    def change(self, callers: Iterable[str]) -> None:
        """Something of these is kept. Without the file nobody relies on it. Never the same word again: two
        may change it at once."""
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
        """Whoever relies on it asks the store, and makes another one."""
        with contextlib.suppress(OSError):
            os.unlink(self._path)


def _place(caller: str) -> int:
    return crc32(caller.encode("utf-8", "surrogatepass")) % _WORDS * _WORD_BYTES
