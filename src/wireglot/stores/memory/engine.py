"""A whole store that ends with its process."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from wireglot.stores.base import Documents, Keys, Ledger, Vault
from wireglot.stores.durations import of_values
from wireglot.stores.records import (
    Document,
    KeyRow,
    KindLimits,
    KindStats,
    Record,
    Session,
    Spender,
    Stats,
    Swept,
    UsageQuery,
    UsageRow,
    UsageTotal,
    VaultEntry,
    are_all_changes,
    gives_way,
    model_of,
)
from wireglot_core.ir.usage import KINDS, kinds_of

Clock = Callable[[], int]
"""Unix milliseconds."""

_MAX_LACKING: Final = 4096
"""Callers known to have no stored reasoning in memory."""


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
        """Callers that had nothing at the last look-up, and nothing has been stored since."""
        self.inserted = 0
        """The number of entries stored so far."""

    async def keep(self, caller: str, entries: Mapping[str, bytes], seconds: int) -> None:
        until = self._clock() + seconds * 1000
        for name, body in entries.items():
            self.insert(VaultEntry(caller, name, body, until))

    async def recall(self, caller: str, names: Sequence[str]) -> dict[str, bytes]:
        now = self._clock()
        shelf = self.shelves.get(caller)
        if shelf is None:
            if len(self.lacking) >= _MAX_LACKING:
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
        """Returns how many had expired."""
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
        self._revisions: dict[str, int] = {}
        """The version with which each was written."""

    async def version(self) -> int:
        return self._version

    async def all(self) -> list[KeyRow]:
        return sorted(self.rows.values(), key=lambda row: row.name)

    async def get(self, name: str) -> KeyRow | None:
        return self.rows.get(name)

    async def changed(self, since: int) -> list[KeyRow] | None:
        revisions = {revision: name for name, revision in self._revisions.items() if revision >= since}
        if not are_all_changes(revisions, since, self._version):
            return None
        return [self.rows[revisions[revision]] for revision in sorted(revisions)]

    async def put(self, row: KeyRow, *, new: bool = False, over: KeyRow | None = None) -> bool:
        there = self.rows.get(row.name)
        if (new and there is not None) or (over is not None and there != over):
            return False
        self.rows[row.name] = row
        self._version += 1
        self._revisions[row.name] = self._version
        return True

    async def delete(self, name: str) -> bool:
        if self.rows.pop(name, None) is None:
            return False
        del self._revisions[name]
        self._version += 1
        return True


_GROUPS: Final[dict[str, Callable[[UsageRow], str]]] = {
    "caller": lambda row: row.caller,
    "model": model_of,
    "provider": lambda row: row.provider,
    "day": lambda row: datetime.fromtimestamp(row.started // 1000, UTC).strftime("%Y-%m-%d"),
    "session": lambda row: row.session,
    "outcome": lambda row: row.outcome,
    "operation": lambda row: row.operation,
    "purpose": lambda row: row.purpose,
    "agent": lambda row: row.agent,
    "caller_group": lambda row: row.caller_group,
    "client": lambda row: row.client,
}


class MemoryLedger:
    def __init__(self, clock: Callable[[], int] = lambda: int(time.time() * 1000)) -> None:
        """`clock` returns unix milliseconds."""
        self._clock = clock
        self.usage: dict[str, UsageRow] = {}
        self.beats: dict[str, int] = {}

    async def apply(self, rows: Sequence[UsageRow]) -> None:
        for row in rows:
            there = self.usage.get(row.id)
            if there is None or gives_way(there, row):
                self.usage[row.id] = row

    async def totals(self, query: UsageQuery) -> list[UsageTotal]:
        # Rows do not change: a thread may add them up while the loop goes on.
        return await asyncio.to_thread(_totals, query, list(self.usage.values()))

    async def losses(self, query: UsageQuery) -> dict[str, int]:
        return dict(Counter(feature for row in self._chosen(query) for feature in dict.fromkeys(row.losses)))

    async def sum_up(self, until: int) -> bool:
        return False  # rows in memory need no sums

    async def rows(self, query: UsageQuery, *, limit: int, newest_first: bool = True) -> list[UsageRow]:
        found = sorted(self._chosen(query), key=lambda row: (row.started, row.id), reverse=newest_first)
        return found[:limit]

    async def spent(self, name: str, since: int, by: Spender = "caller") -> tuple[int, int]:
        rows = [
            row
            for row in self.usage.values()
            if row.started >= since and row.outcome and getattr(row, by) == name
        ]
        return sum(row.total for row in rows), sum(row.cost or 0 for row in rows)

    async def sessions(self, caller: str, *, limit: int, before: int = 0, beyond: str = "") -> list[Session]:
        named: dict[str, list[UsageRow]] = {}
        for row in self.usage.values():
            if row.caller == caller and row.session:
                named.setdefault(row.session, []).append(row)
        found = [_session(id, rows) for id, rows in named.items()]
        found = [session for session in found if not before or (session.last, session.id) < (before, beyond)]
        found.sort(key=lambda session: (session.last, session.id), reverse=True)
        return found[:limit]

    async def forget_session(self, caller: str, session: str) -> int:
        return self._unname(lambda row: row.caller == caller and row.session == session)

    async def beat(self, instance: str) -> None:
        self.beats[instance] = max(self._clock(), self.beats.get(instance, 0))

    async def close_open(self, instances: Sequence[str], now: int) -> int:
        return self.crash(lambda row: row.instance in instances, now)

    def crash(self, gone: Callable[[UsageRow], bool], now: int) -> int:
        rows = [row for row in self.usage.values() if not row.outcome and gone(row)]
        for row in rows:
            self.usage[row.id] = msgspec.structs.replace(row, outcome="crash", finished=now)
        return len(rows)

    def forget_caller(self, caller: str) -> int:
        return self._unname(lambda row: row.caller == caller and row.session != "")

    def _unname(self, chosen: Callable[[UsageRow], bool]) -> int:
        rows = [row for row in self.usage.values() if chosen(row)]
        for row in rows:
            self.usage[row.id] = msgspec.structs.replace(row, session="")
        return len(rows)

    def _chosen(self, query: UsageQuery) -> list[UsageRow]:
        return [row for row in self.usage.values() if query.chooses(row)]


def _totals(query: UsageQuery, rows: Iterable[UsageRow]) -> list[UsageTotal]:
    def step_of(row: UsageRow) -> str:
        return str(row.started - row.started % query.step)

    names = {**_GROUPS, "step": step_of}
    sums: dict[tuple[str, ...], list[UsageRow]] = {} if query.groups else {(): []}
    for row in filter(query.chooses, rows):
        sums.setdefault(tuple(names[name](row) for name in query.groups), []).append(row)
    return [_total(group, sums[group], durations=query.durations) for group in sorted(sums)]


def _total(group: tuple[str, ...], rows: Sequence[UsageRow], *, durations: bool) -> UsageTotal:
    ended = [row for row in rows if row.outcome]
    return UsageTotal(
        group=group,
        requests=len(rows),
        failed=sum(row.outcome != "ok" for row in ended),
        left=sum(row.outcome == "client_abort" for row in ended),
        open=len(rows) - len(ended),
        tokens=_tokens(rows),
        cost=sum(row.cost or 0 for row in rows),
        unpriced=sum(map(_is_unpriced, ended)),
        milliseconds=sum(row.finished - row.started for row in ended),
        lossy=sum(bool(row.losses) for row in rows),
        first=min((row.started for row in rows), default=0),
        last=max((row.started for row in rows), default=0),
        took=of_values(row.finished - row.started for row in ended if durations),
        first_byte=of_values(row.first_byte for row in ended if durations and row.first_byte > 0),
    )


def _tokens(rows: Sequence[UsageRow]) -> dict[str, int]:
    if not rows:
        return dict.fromkeys(KINDS, 0)
    return dict(zip(KINDS, map(sum, zip(*map(kinds_of, rows), strict=True)), strict=True))


def _is_unpriced(row: UsageRow) -> bool:
    """Whether a request that ended has used something at an unknown price."""
    return row.cost is None and (row.total > 0 or (row.outcome == "ok" and row.source == "none"))


def _session(id: str, rows: Sequence[UsageRow]) -> Session:
    last = max(rows, key=lambda row: (row.started, row.id))
    return Session(
        id=id,
        caller=last.caller,
        requests=len(rows),
        tokens=sum(row.total for row in rows),
        cost=sum(row.cost or 0 for row in rows),
        model=last.model,
        dialects=tuple(sorted({row.dialect for row in rows if row.dialect})),
        first=min(row.started for row in rows),
        last=last.started,
    )


VERSION: Final = 1


class MemoryEngine:
    def __init__(self, *, clock: Clock = wall_clock) -> None:
        # Concrete types: the engine uses more than their protocols to sweep and export.
        self._documents = MemoryDocuments(clock)
        self._vault = MemoryVault(clock)
        self._ledger = MemoryLedger(clock)
        self._keys = MemoryKeys()
        self.documents: Documents = self._documents
        self.vault: Vault = self._vault
        self.ledger: Ledger = self._ledger
        self.keys: Keys = self._keys

    async def check(self) -> None:
        """Always available."""

    async def sweep(
        self, now: int, *, usage_before: int, dead_before: int, kinds: Mapping[str, KindLimits]
    ) -> Swept:
        expired: Counter[str] = Counter()
        for document in self._documents.everything():
            if not is_live(document, now):
                self._documents.remove(document.caller, document.kind, document.id)
                expired[document.kind] += 1
        if past := self._vault.expire(now):
            expired["vault"] = past

        evicted = {kind: self._evict(kind, limits.bytes) for kind, limits in kinds.items() if limits.bytes}

        beats = self._ledger.beats
        crashed = self._ledger.crash(lambda row: beats.get(row.instance, row.started) < dead_before, now)
        for instance in [name for name, beat in beats.items() if beat < dead_before]:
            del beats[instance]

        usage = self._ledger.usage
        old = [row.id for row in usage.values() if row.started < usage_before]
        for id in old:
            del usage[id]
        return Swept(
            expired=dict(expired),
            evicted={kind: count for kind, count in evicted.items() if count},
            usage=len(old),
            crashed=crashed,
        )

    def _evict(self, kind: str, limit: int) -> int:
        found = sorted((d for d in self._documents.everything() if d.kind == kind), key=lambda d: d.created)
        total = sum(len(document.body) for document in found)
        count = 0
        for document in found:
            if total <= limit:
                break
            self._documents.remove(document.caller, document.kind, document.id)
            total -= len(document.body)
            count += 1
        return count

    async def wipe(self, caller: str) -> dict[str, int]:
        gone: Counter[str] = Counter()
        for document in self._documents.everything():
            if document.caller == caller:
                self._documents.remove(document.caller, document.kind, document.id)
                gone[document.kind] += 1
        if entries := self._vault.shelves.pop(caller, {}):
            gone["vault"] = len(entries)
        if named := self._ledger.forget_caller(caller):
            gone["sessions"] = named
        return dict(gone)

    async def stats(self) -> Stats:
        by_kind: dict[str, list[Document]] = {}
        for document in self._documents.everything():
            by_kind.setdefault(document.kind, []).append(document)
        kinds = {
            kind: KindStats(
                count=len(found),
                bytes=sum(len(document.body) for document in found),
                oldest=min(document.created for document in found),
                newest=max(document.created for document in found),
            )
            for kind, found in sorted(by_kind.items())
        }
        entries = self._vault.everything()
        kinds["vault"] = KindStats(len(entries), sum(len(entry.body) for entry in entries))
        rows = self._ledger.usage.values()
        kinds["usage"] = KindStats(
            count=len(rows),
            bytes=sum(len(msgspec.json.encode(row)) for row in rows),
            oldest=min((row.started for row in rows), default=0),
            newest=max((row.started for row in rows), default=0),
        )
        keys = self._keys.rows.values()
        kinds["keys"] = KindStats(len(keys), sum(len(msgspec.json.encode(row)) for row in keys))
        return Stats("memory", VERSION, kinds)

    async def export(self) -> AsyncIterator[Record]:
        for row in list(self._keys.rows.values()):
            yield row
        for document in self._documents.everything():
            yield document
        for entry in self._vault.everything():
            yield entry
        for usage in list(self._ledger.usage.values()):
            yield usage

    async def load(self, records: Sequence[Record]) -> None:
        for record in records:
            match record:
                case Document():
                    if not self._documents.holds(record):
                        self._documents.insert(record)
                case VaultEntry():
                    if not self._vault.holds(record):
                        self._vault.insert(record)
                case UsageRow():
                    self._ledger.usage.setdefault(record.id, record)
                case KeyRow():
                    await self._keys.put(record, new=True)

    def lacks(self, caller: str) -> bool:
        return caller in self._vault.lacking

    def kept_mark(self, caller: str) -> Hashable:
        return self._vault.inserted

    async def close(self) -> None:
        """Nothing to close."""
