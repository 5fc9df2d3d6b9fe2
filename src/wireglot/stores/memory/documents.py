"""Documents, vault and keys in dicts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from wireglot.stores.records import Document, KeyRow, VaultEntry

Clock = Callable[[], int]
"""Unix milliseconds."""

_LACKING_MOST: Final = 4096
"""Callers."""


def wall_clock() -> int:
    return int(time.time() * 1000)


class MemoryDocuments:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shelves: dict[tuple[str, str], dict[str, Document]] = {}
        self._pieces: dict[tuple[str, str, str], dict[str, None]] = {}

    async def put(self, documents: Sequence[Document], *, new: bool = False) -> bool:
        if new and any(self._live(d.caller, d.kind, d.id) for d in documents):
            return False
        for document in documents:
            self.insert(document)
        return True

    async def replace(self, document: Document) -> bool:
        if self._live(document.caller, document.kind, document.id) is None:
            return False
        self.insert(document)
        return True

    async def append(self, documents: Sequence[Document]) -> int:
        first = documents[0]
        last = max((p.number for p in self._of(first.caller, first.kind, first.parent)), default=0)
        for number, document in enumerate(documents, last + 1):
            self.insert(msgspec.structs.replace(document, number=number))
        return last + 1

    async def get(self, caller: str, kind: str, ids: Sequence[str]) -> list[Document]:
        found = (self._live(caller, kind, id) for id in dict.fromkeys(ids))
        return [document for document in found if document is not None]

    async def touch(self, caller: str, kind: str, id: str, *, created: int, expires: int) -> bool:
        document = self._live(caller, kind, id)
        if document is None:
            return False
        self.insert(msgspec.structs.replace(document, created=created, expires=expires))
        return True

    async def touch_pieces(self, caller: str, kind: str, parent: str, *, expires: int) -> None:
        for piece in self._of(caller, kind, parent):
            self.insert(msgspec.structs.replace(piece, expires=expires))

    async def pieces(
        self,
        caller: str,
        kind: str,
        parent: str,
        *,
        after: int = 0,
        before: int = 0,
        limit: int = 0,
        newest_first: bool = False,
    ) -> list[Document]:
        found = [
            piece
            for piece in self._of(caller, kind, parent)
            if piece.number > after and (not before or piece.number < before)
        ]
        found.sort(key=lambda piece: piece.number, reverse=newest_first)
        return found[:limit] if limit else found

    async def recent(
        self, caller: str, kind: str, *, limit: int, before: tuple[int, str] | None = None
    ) -> list[Document]:
        now = self._clock()
        found = [
            document
            for document in self._shelves.get((caller, kind), {}).values()
            if is_live(document, now) and (before is None or (document.created, document.id) < before)
        ]
        found.sort(key=lambda document: (document.created, document.id), reverse=True)
        return found[:limit]

    async def delete(self, caller: str, kind: str, ids: Sequence[str]) -> int:
        now = self._clock()
        gone = [self.remove(caller, kind, id) for id in ids]
        return sum(document is not None and is_live(document, now) for document in gone)

    async def delete_pieces(self, caller: str, kind: str, parent: str) -> int:
        return await self.delete(caller, kind, list(self._pieces.get((caller, kind, parent), {})))

    def insert(self, document: Document) -> None:
        self.remove(document.caller, document.kind, document.id)
        self._shelves.setdefault((document.caller, document.kind), {})[document.id] = document
        if document.parent:
            place = (document.caller, document.kind, document.parent)
            self._pieces.setdefault(place, {})[document.id] = None

    def remove(self, caller: str, kind: str, id: str) -> Document | None:
        document = self._shelves.get((caller, kind), {}).pop(id, None)
        if document is not None and document.parent:
            place = (caller, kind, document.parent)
            del self._pieces[place][id]
            if not self._pieces[place]:
                del self._pieces[place]
        return document

    def holds(self, document: Document) -> bool:
        return document.id in self._shelves.get((document.caller, document.kind), {})

    def everything(self) -> Iterator[Document]:
        for shelf in list(self._shelves.values()):
            yield from list(shelf.values())

    def _live(self, caller: str, kind: str, id: str) -> Document | None:
        document = self._shelves.get((caller, kind), {}).get(id)
        return document if document is not None and is_live(document, self._clock()) else None

    def _of(self, caller: str, kind: str, parent: str) -> list[Document]:
        found = (self._live(caller, kind, id) for id in self._pieces.get((caller, kind, parent), {}))
        return [piece for piece in found if piece is not None]


def is_live(document: Document, now: int) -> bool:
    return not document.expires or document.expires > now


class MemoryVault:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.shelves: dict[str, dict[str, VaultEntry]] = {}
        """By caller and name; none is empty."""
        self.lacking: set[str] = set()
        """Callers of whom there was nothing when it was last looked for, and nothing has come since."""
        self.inserted = 0
        """How many entries so far."""

    async def keep(self, caller: str, entries: Mapping[str, bytes], seconds: int) -> None:
        until = self._clock() + seconds * 1000
        for name, body in entries.items():
            self.insert(VaultEntry(caller, name, body, until))

    async def recall(self, caller: str, names: Sequence[str]) -> dict[str, bytes]:
        now = self._clock()
        shelf = self.shelves.get(caller)
        if shelf is None:
            if len(self.lacking) >= _LACKING_MOST:
                self.lacking.clear()
            self.lacking.add(caller)
            return {}
        found = map(shelf.get, names)
        return {entry.name: entry.body for entry in found if entry is not None and entry.expires > now}

    def insert(self, entry: VaultEntry) -> None:
        self.shelves.setdefault(entry.caller, {})[entry.name] = entry
        self.lacking.discard(entry.caller)
        self.inserted += 1

    def holds(self, entry: VaultEntry) -> bool:
        return entry.name in self.shelves.get(entry.caller, {})

    def everything(self) -> list[VaultEntry]:
        return [entry for shelf in self.shelves.values() for entry in shelf.values()]

    def expire(self, now: int) -> int:
        """How many were past their time."""
        gone = [entry for entry in self.everything() if entry.expires <= now]
        for entry in gone:
            del self.shelves[entry.caller][entry.name]
            if not self.shelves[entry.caller]:
                del self.shelves[entry.caller]
        return len(gone)


class MemoryKeys:
    def __init__(self) -> None:
        self.rows: dict[str, KeyRow] = {}
        self._version = 0

    async def version(self) -> int:
        return self._version

    async def all(self) -> list[KeyRow]:
        return sorted(self.rows.values(), key=lambda row: row.name)

    async def put(self, row: KeyRow, *, new: bool = False, over: KeyRow | None = None) -> bool:
        there = self.rows.get(row.name)
        if (new and there is not None) or (over is not None and there != over):
            return False
        self.rows[row.name] = row
        self._version += 1
        return True

    async def delete(self, name: str) -> bool:
        if self.rows.pop(name, None) is None:
            return False
        self._version += 1
        return True
