"""The log of a fleet, stored as documents: every version knows their tables."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from wireglot.stores.base import Documents
from wireglot.stores.records import Document, LogEntry

FLEET: Final = "\0fleet"
"""No caller can have this name."""
REPORTED: Final = "fleet-log"
"""The kind of log entries; their parent is the log."""
HANDED_OVER: Final = "trace"
_TRIM_EVERY: Final = 64
_TRIMMED_AT_ONCE: Final = 500


class DocumentLog:
    """Implements `FleetLog`."""

    def __init__(self, documents: Callable[[], Documents]) -> None:
        """`documents`: called each time; fails while the store is not open yet."""
        self._documents = documents
        self._kept: OrderedDict[tuple[str, str], int] = OrderedDict()
        """Sizes of this process's uploads. The total is limited by the store's sweep."""

    async def tell(self, log: str, body: bytes, *, seconds: float, most: int) -> None:
        now = _now()
        entry = Document(
            FLEET, REPORTED, secrets.token_hex(12), body, log, created=now, expires=now + int(seconds * 1000)
        )
        number = await self._documents().append([entry])
        if number > most and number % _TRIM_EVERY == 0:
            old = await self._documents().pieces(
                FLEET, REPORTED, log, before=number - most, limit=_TRIMMED_AT_ONCE
            )
            await self._documents().delete(FLEET, REPORTED, [each.id for each in old])

    async def heard(self, log: str, after: str, limit: int) -> list[LogEntry]:
        known = int(after or 0)
        newest = await self._documents().pieces(FLEET, REPORTED, log, limit=1, newest_first=True)
        if not newest or newest[0].number == known:
            return []
        # Numbers continue from the existing ones: after all have expired, they begin with 1 again.
        start = known if newest[0].number > known else 0
        found = await self._documents().pieces(FLEET, REPORTED, log, after=start, limit=limit)
        return [_entry(each) for each in found]

    async def last(self, log: str, before: str, limit: int) -> list[LogEntry]:
        found = await self._documents().pieces(
            FLEET, REPORTED, log, before=int(before or 0), limit=limit, newest_first=True
        )
        return [_entry(each) for each in found]

    async def remove(self, log: str, places: Sequence[str]) -> None:
        for place in places:
            number = int(place)
            found = await self._documents().pieces(FLEET, REPORTED, log, after=number - 1, before=number + 1)
            await self._documents().delete(FLEET, REPORTED, [each.id for each in found])

    async def keep(self, caller: str, id: str, body: bytes, *, seconds: float, max_bytes: int) -> None:
        now = _now()
        document = Document(caller, HANDED_OVER, id, body, created=now, expires=now + int(seconds * 1000))
        await self._documents().put([document])
        self._kept.pop((caller, id), None)
        self._kept[caller, id] = len(body)
        while sum(self._kept.values()) > max_bytes and len(self._kept) > 1:
            (owner, oldest), _ = self._kept.popitem(last=False)
            await self._documents().delete(owner, HANDED_OVER, [oldest])

    async def find(self, caller: str, id: str) -> bytes | None:
        found = await self._documents().get(caller, HANDED_OVER, [id])
        return found[0].body if found else None

    async def forget(self, caller: str) -> int:
        gone = 0
        while found := await self._documents().recent(caller, HANDED_OVER, limit=20):
            gone += await self._documents().delete(caller, HANDED_OVER, [each.id for each in found])
        return gone

    async def close(self) -> None:
        """The documents belong to their store."""


def _entry(document: Document) -> LogEntry:
    return LogEntry(str(document.number), document.created, document.body)


def _now() -> int:
    return int(time.time() * 1000)
