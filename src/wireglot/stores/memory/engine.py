"""A whole store that ends with its process."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from typing import Final

import msgspec

from wireglot.stores.base import Documents, Keys, Ledger, Vault
from wireglot.stores.memory.documents import (
    Clock,
    MemoryDocuments,
    MemoryKeys,
    MemoryVault,
    is_live,
    wall_clock,
)
from wireglot.stores.memory.ledger import MemoryLedger
from wireglot.stores.records import (
    Document,
    KeyRow,
    KindLimits,
    KindStats,
    Stats,
    Swept,
    UsageRow,
    VaultEntry,
)

VERSION: Final = 1


class MemoryEngine:
    def __init__(self, *, clock: Clock = wall_clock) -> None:
        # Typed as what they are: the engine reaches below their protocols to sweep and export.
        self._documents = MemoryDocuments(clock)
        self._vault = MemoryVault(clock)
        self._ledger = MemoryLedger(clock)
        self._keys = MemoryKeys()
        self.documents: Documents = self._documents
        self.vault: Vault = self._vault
        self.ledger: Ledger = self._ledger
        self.keys: Keys = self._keys

    async def check(self) -> None:
        """Always there."""

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

    async def export(self) -> AsyncIterator[Document | UsageRow | KeyRow | VaultEntry]:
        for row in list(self._keys.rows.values()):
            yield row
        for document in self._documents.everything():
            yield document
        for entry in self._vault.everything():
            yield entry
        for usage in list(self._ledger.usage.values()):
            yield usage

    async def load(self, records: Sequence[Document | UsageRow | KeyRow | VaultEntry]) -> None:
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
