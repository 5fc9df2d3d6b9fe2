"""Losses of the latest requests, in the store: any process that shares it can report them.

A request without losses costs nothing here. Those of others are written to the store a little later, many at
once, so that no answer waits for a disk; until then this process reports them from memory.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from typing import Final

import msgspec

from wireglot.gateway.observe.log import Note
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.state.stored_forms import LOSSES
from wireglot.gateway.state.tasks import Guarded, stop
from wireglot.stores.base import Documents, StoreDown
from wireglot.stores.records import Document
from wireglot_core.ir.loss import Loss, sum_of, worst_first
from wireglot_core.wire.json import encode

KEPT_SECONDS: Final = 3600
# Recorded losses on disk, divided among the workers.
MAX_KEPT: Final = 10_000
KEPT_BYTES: Final = 64 * 1024 * 1024
"""Limits for all processes that share a store together."""
ENTRY_BYTES: Final = 16 * 1024
"""Per request. The losses cut off are counted."""
_TEXT_LONGEST: Final = 512
_ROOM_FOR_THE_REST: Final = 64
_MAX_WAITING: Final = 1_000
"""Records of losses that wait for the store. If it is down for long, the oldest are dropped."""
_AT_ONCE: Final = 250
_GATHER_SECONDS: Final = 0.05
_PAUSE_SECONDS: Final = 0.2
_LOOKS: Final = 3
"""How often to look for an entry that another process may be about to write."""
_LOOK_SECONDS: Final = 0.2

_Name = tuple[str, str]
"""A caller, and the id of one of its requests."""


class _Written(msgspec.Struct, frozen=True):
    caller: str
    id: str
    size: int
    expires: int


class LossShelf:
    def __init__(
        self,
        documents: Documents,
        note: Note,
        *,
        peers: Callable[[], int] = lambda: 1,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`peers`: how many processes share the store, this one included."""
        self._documents = documents
        self._peers = peers
        self._clock = clock
        self._waiting: OrderedDict[_Name, Document] = OrderedDict()
        self._written: deque[_Written] = deque()
        self._written_bytes = 0
        self._wake = asyncio.Event()
        self._guard = Guarded(note, "losses")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._guard.forever(self._turn))

    async def close(self) -> None:
        await stop(self._task)
        while self._waiting and await self._guard.run(self._flush):
            pass

    def keep(self, record: ExchangeRecord) -> None:
        """Called once for each request with losses, when all of them are known."""
        if record.wiped:
            return
        now = self._clock()
        id, created = record.asked_as or record.id, int(now * 1000)
        body = entry(record, int(now))
        self._waiting[record.caller, id] = Document(
            record.caller, LOSSES, id, body, created=created, expires=created + KEPT_SECONDS * 1000
        )
        while len(self._waiting) > _MAX_WAITING:
            self._waiting.popitem(last=False)
        self._wake.set()

    async def find(self, caller: str, id: str) -> bytes | None:
        """The losses of a request. Raises StoreDown if only the store could know."""
        for look in range(_LOOKS):
            if look:
                await asyncio.sleep(_LOOK_SECONDS)
            waiting = self._waiting.get((caller, id))
            if waiting is not None:
                return waiting.body
            found = await self._documents.get(caller, LOSSES, [id])
            if found:
                return found[0].body
        return None

    def forget(self, caller: str) -> int:
        """Drop the entries of a caller that are not in the store yet. Returns how many there were."""
        names = [name for name in self._waiting if name[0] == caller]
        for name in names:
            del self._waiting[name]
        return len(names)

    # Write the waiting entries to the store.

    async def _turn(self) -> None:
        await self._wake.wait()
        self._wake.clear()
        await asyncio.sleep(_GATHER_SECONDS)
        while self._waiting:
            try:
                await self._flush()
            except StoreDown:
                self._wake.set()  # tried again after a pause
                raise
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _flush(self) -> None:
        batch = list(islice(self._waiting.items(), _AT_ONCE))
        await self._documents.put([document for _, document in batch])
        for name, document in batch:
            if name not in self._waiting:  # its caller was wiped meanwhile
                await self._documents.delete(document.caller, LOSSES, [document.id])
                continue
            if self._waiting[name] is document:
                del self._waiting[name]
            self._written.append(_Written(*name, len(document.body), document.expires))
            self._written_bytes += len(document.body)
        await self._make_room()

    async def _make_room(self) -> None:
        """Delete the oldest entries that this process wrote, beyond its share of the limit. Expired ones are
        swept with all other records."""
        now, peers = int(self._clock() * 1000), max(1, self._peers())
        gone: dict[str, list[str]] = {}
        while self._written and (
            len(self._written) > max(1, MAX_KEPT // peers)
            or self._written_bytes > KEPT_BYTES // peers
            or self._written[0].expires <= now
        ):
            oldest = self._written.popleft()
            self._written_bytes -= oldest.size
            if oldest.expires > now:
                gone.setdefault(oldest.caller, []).append(oldest.id)
        for caller, ids in gone.items():
            await self._documents.delete(caller, LOSSES, ids)


def _written(loss: Loss) -> bytes:
    if len(loss.path) + len(loss.detail) <= _TEXT_LONGEST:
        return _written_once(loss)
    # The keys of a body may be as long as the body: they are not kept in full.
    return encode({**loss.as_dict(), "detail": loss.detail[:_TEXT_LONGEST]})


@lru_cache(maxsize=512)
def _written_once(loss: Loss) -> bytes:
    """Cached: a client has the same losses with every request."""
    return encode(loss.as_dict())


def entry(record: ExchangeRecord, created: int) -> bytes:
    """The page about one request; the worst losses first, as many as fit."""
    head = encode(
        {
            "object": "losses",
            "request_id": record.asked_as or record.id,
            "created": created,
            "dialect": record.dialect,
            "model": record.model[:_TEXT_LONGEST],
            "route": record.route[:_TEXT_LONGEST],
        }
    )
    reported: list[bytes] = []
    room = ENTRY_BYTES - len(head) - _ROOM_FOR_THE_REST
    worst = worst_first(record.grouped_losses())
    for loss in worst:
        written = _written(loss)
        room -= len(written) + 1
        if room < 0:
            break
        reported.append(written)
    unreported = sum_of(worst[len(reported) :])
    # Twice: `untold` is its former name.
    rest = (head[:-1], b",".join(reported), unreported, unreported)
    return b'%b,"losses":[%b],"unreported":%d,"untold":%d}' % rest
