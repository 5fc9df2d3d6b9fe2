"""Losses of the last requests: at hand in the process that had them, in the store for all others.

A request without any costs nothing here. One that has some costs an entry in a dict; the store gets them a
little later, many at once, so that no answer waits for a disk.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Final

from wireglot.gateway.observe.log import Note
from wireglot.gateway.observe.record import Record
from wireglot.gateway.state.stored_forms import LOSSES
from wireglot.gateway.state.tasks import Guarded, stop
from wireglot.ir.loss import worst_first
from wireglot.stores.base import Documents, StoreDown
from wireglot.stores.records import Document
from wireglot.wire.json import encode

KEPT_SECONDS: Final = 3600
KEPT_MOST: Final = 10_000
"""Requests, of all processes that share a store."""
KEPT_BYTES: Final = 32 * 1024 * 1024
"""In the memory of one process."""
ENTRY_BYTES: Final = 16 * 1024
"""Of one request. What is cut off is counted."""
_WAITING_MOST: Final = 2_000
"""That the store has not got yet: where it is away, the oldest stay with this process alone."""
_AT_ONCE: Final = 500
_GATHER_SECONDS: Final = 0.05
_PAUSE_SECONDS: Final = 0.2
_LOOKS: Final = 3
"""For what another process may be about to write."""
_LOOK_SECONDS: Final = 0.2

_Name = tuple[str, str]
"""A caller, and the id of one of its requests."""


class LossShelf:
    def __init__(
        self,
        documents: Documents | None,
        note: Note,
        *,
        peers: Callable[[], int] = lambda: 1,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`documents` None: nobody else could read them. `peers`: how many processes share the store."""
        self._documents = documents
        self._peers = peers
        self._clock = clock
        self._held: OrderedDict[_Name, tuple[float, bytes]] = OrderedDict()
        self._held_bytes = 0
        self._waiting: deque[Document] = deque(maxlen=_WAITING_MOST)
        self._written: deque[_Name] = deque()
        self._wake = asyncio.Event()
        self._guard = Guarded(note, "losses")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._documents is not None:
            self._task = asyncio.create_task(self._guard.forever(self._turn))

    async def close(self) -> None:
        await stop(self._task)
        if self._waiting:
            await self._guard.run(self._flush)

    # What a request leaves.

    def keep(self, record: Record) -> None:
        """Called once for each request that has losses, when all of them are known."""
        now = self._clock()
        name, body = (record.caller, record.id), entry(record, int(now))
        self._hold(name, now, body)
        if self._documents is not None:
            created = int(now * 1000)
            expires = created + KEPT_SECONDS * 1000
            self._waiting.append(
                Document(record.caller, LOSSES, record.id, body, created=created, expires=expires)
            )
            self._wake.set()

    def _hold(self, name: _Name, now: float, body: bytes) -> None:
        before = self._held.pop(name, None)
        if before is not None:
            self._held_bytes -= len(before[1])
        self._held[name] = (now + KEPT_SECONDS, body)
        self._held_bytes += len(body)
        while len(self._held) > KEPT_MOST or self._held_bytes > KEPT_BYTES or self._oldest_ends() <= now:
            _, (_, gone) = self._held.popitem(last=False)
            self._held_bytes -= len(gone)

    def _oldest_ends(self) -> float:
        return next(iter(self._held.values()))[0]

    # Who asks for it.

    async def find(self, caller: str, id: str) -> bytes | None:
        """Raises StoreDown where only the store could know."""
        for look in range(_LOOKS):
            held = self._held.get((caller, id))
            if held is not None:
                return held[1] if held[0] > self._clock() else None
            if self._documents is None:
                return None
            found = await self._documents.get(caller, LOSSES, [id])
            if found:
                return found[0].body
            if look + 1 < _LOOKS:
                await asyncio.sleep(_LOOK_SECONDS)
        return None

    # What goes to the store.

    async def _turn(self) -> None:
        await self._wake.wait()
        self._wake.clear()
        await asyncio.sleep(_GATHER_SECONDS)
        while self._waiting:
            await self._flush()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _flush(self) -> None:
        assert self._documents is not None
        batch = [self._waiting.popleft() for _ in range(min(_AT_ONCE, len(self._waiting)))]
        try:
            await self._documents.put(batch)
        except StoreDown:
            self._waiting.extendleft(reversed(batch[: _WAITING_MOST - len(self._waiting)]))
            self._wake.set()
            raise
        self._written.extend((document.caller, document.id) for document in batch)
        await self._forget(self._documents, len(self._written) - max(1, KEPT_MOST // max(1, self._peers())))

    async def _forget(self, documents: Documents, count: int) -> None:
        """The oldest of those that this process wrote: the store shall not hold more than was promised."""
        if count <= 0:
            return
        gone: dict[str, list[str]] = {}
        for caller, id in [self._written.popleft() for _ in range(count)]:
            gone.setdefault(caller, []).append(id)
        for caller, ids in gone.items():
            await documents.delete(caller, LOSSES, ids)


def entry(record: Record, created: int) -> bytes:
    """What the page tells of one request; the worst first, as many as there is room for."""
    document: dict[str, object] = {
        "object": "losses",
        "request_id": record.id,
        "created": created,
        "dialect": record.dialect,
        "model": record.model[:_TEXT_LONGEST],
        "route": record.route[:_TEXT_LONGEST],
    }
    told = [loss.told() for loss in worst_first(record.losses)]
    for loss in told:
        loss["detail"] = loss["detail"][:_TEXT_LONGEST]
    fitting = _fitting(told, ENTRY_BYTES - len(encode(document)) - 64)
    return encode({**document, "losses": told[:fitting], "untold": len(told) - fitting})


_TEXT_LONGEST: Final = 512


def _fitting(told: Sequence[dict[str, str]], room: int) -> int:
    for count, loss in enumerate(told):
        room -= len(encode(loss)) + 1
        if room < 0:
            return count
    return len(told)
