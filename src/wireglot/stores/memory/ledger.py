"""The ledger in a dict; its sums are the plain reading of what the other stores ask their database for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from wireglot.ir.usage import KINDS, kinds_of
from wireglot.stores.records import Grouping, Session, UsageQuery, UsageRow, UsageTotal, gives_way, model_of

_GROUPS: Final[dict[Grouping, Callable[[UsageRow], str]]] = {
    "caller": lambda row: row.caller,
    "model": model_of,
    "provider": lambda row: row.provider,
    "day": lambda row: datetime.fromtimestamp(row.started // 1000, UTC).strftime("%Y-%m-%d"),
    "session": lambda row: row.session,
    "outcome": lambda row: row.outcome,
    "operation": lambda row: row.operation,
}


class MemoryLedger:
    def __init__(self, clock: Callable[[], int] = lambda: int(time.time() * 1000)) -> None:
        """`clock` tells unix milliseconds."""
        self._clock = clock
        self.usage: dict[str, UsageRow] = {}
        self.beats: dict[str, int] = {}

    async def apply(self, rows: Sequence[UsageRow]) -> None:
        for row in rows:
            there = self.usage.get(row.id)
            if there is None or gives_way(there, row):
                self.usage[row.id] = row

    async def totals(self, query: UsageQuery) -> list[UsageTotal]:
        sums: dict[tuple[str, ...], list[UsageRow]] = {} if query.groups else {(): []}
        for row in self._chosen(query):
            sums.setdefault(tuple(_GROUPS[name](row) for name in query.groups), []).append(row)
        return [_total(group, sums[group]) for group in sorted(sums)]

    async def rows(self, query: UsageQuery, *, limit: int, newest_first: bool = True) -> list[UsageRow]:
        found = sorted(self._chosen(query), key=lambda row: (row.started, row.id), reverse=newest_first)
        return found[:limit]

    async def spent(self, caller: str, since: int) -> tuple[int, int]:
        rows = [
            row
            for row in self.usage.values()
            if row.caller == caller and row.started >= since and row.outcome
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


def _total(group: tuple[str, ...], rows: Sequence[UsageRow]) -> UsageTotal:
    ended = [row for row in rows if row.outcome]
    took = sorted(row.finished - row.started for row in ended)
    return UsageTotal(
        group=group,
        requests=len(rows),
        failed=sum(row.outcome != "ok" for row in ended),
        open=len(rows) - len(ended),
        tokens=dict(zip(KINDS, map(sum, zip(*map(kinds_of, rows), strict=True)), strict=True))
        if rows
        else dict.fromkeys(KINDS, 0),
        cost=sum(row.cost or 0 for row in rows),
        unpriced=sum(
            row.cost is None and (row.total > 0 or (row.outcome == "ok" and row.source == "none"))
            for row in ended
        ),
        milliseconds=sum(took),
        p50=took[(len(took) - 1) // 2] if took else 0,
        first=min((row.started for row in rows), default=0),
        last=max((row.started for row in rows), default=0),
    )


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
