"""The last exchanges of this process, without bodies: those that run as their records, those that are over
packed small. Whoever listens hears of each as it comes and ends; who is too slow misses some, counted.

A request pays for a row when its answer is out, a few microseconds; for listeners only while there are any.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

import msgspec

from wireglot.gateway.observe.record import Record
from wireglot.gateway.trace.told_rows import mended, row_fields, row_of
from wireglot.traces.trace import Row

ROWS_MOST: Final = 10_000
_UNHEARD_MOST: Final = 500
"""Rows that wait for a listener."""
_LOOK_SECONDS: Final = 0.25
"""Between two looks at what has become of running exchanges, while anybody listens."""
_UNLISTED_OPERATIONS: Final = frozenset({"inspector", "admin", "health", "ready", "metrics", "stub"})
_UNLISTED_PATHS: Final = ("/inspector", "/metrics", "/health", "/readyz", "/v1/admin/")

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(Row).decode


class Listener:
    """One who hears of rows as they change: the newest of each exchange, in the order of their first news."""

    def __init__(self, gone: Callable[[Listener], None]) -> None:
        self.dropped = 0
        self._gone = gone
        self._news: OrderedDict[str, Row] = OrderedDict()
        self._wake = asyncio.Event()

    def tell(self, row: Row) -> None:
        news = self._news
        if row.id not in news and len(news) >= _UNHEARD_MOST:
            news.popitem(last=False)
            self.dropped += 1
        news[row.id] = row
        self._wake.set()

    async def heard(self, seconds: float) -> list[Row]:
        """What there is, or comes within so many seconds."""
        if not self._news:
            self._wake.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._wake.wait()
            except TimeoutError:
                return []
        news = list(self._news.values())
        self._news.clear()
        return news

    def close(self) -> None:
        self._gone(self)


class ExchangeRows:
    """Implements the observer's `RowSink`. All of it belongs to the loop."""

    def __init__(self, worker: str, most: int = ROWS_MOST) -> None:
        self._worker = worker
        self._most = most
        self._running: dict[str, Record] = {}
        self._over: OrderedDict[str, bytes] = OrderedDict()
        """By id, the oldest first."""
        self._listeners: list[Listener] = []
        self._seen: dict[str, tuple[object, ...]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._over_to: Callable[[bytes], None] | None = None

    def tell_over_to(self, take: Callable[[bytes], None]) -> None:
        """Each row that is over goes there, packed as it is."""
        self._over_to = take

    # Told by the observer.

    def begin(self, record: Record) -> None:
        if record.operation in _UNLISTED_OPERATIONS or record.path.startswith(_UNLISTED_PATHS):
            return
        self._running[record.id] = record
        if self._listeners:
            self._tell(record)

    def finish(self, record: Record) -> None:
        if self._running.pop(record.id, None) is None:
            return
        fields, over = row_fields(record, self._worker), self._over
        try:
            over[record.id] = _pack(fields)
        except UnicodeEncodeError:  # half a character, which a client may send and no text holds
            over[record.id] = _pack(mended(row_of(record, self._worker)))
        if self._over_to is not None:
            self._over_to(over[record.id])
        if len(over) > self._most:
            over.popitem(last=False)
        if self._listeners:
            self._seen.pop(record.id, None)
            row = _unpack(over[record.id])
            for listener in self._listeners:
                listener.tell(row)

    # Asked by pages.

    def snapshot(self) -> tuple[list[Row], list[bytes]]:
        """What there is now, for `unpacked`: those that run, and those that are over."""
        return [row_of(record, self._worker) for record in self._running.values()], list(self._over.values())

    @staticmethod
    def unpacked(running: list[Row], over: list[bytes]) -> Iterator[Row]:
        """In any thread: ten thousand take some 20 milliseconds."""
        yield from running
        for packed in over:
            yield _unpack(packed)

    def find(self, id: str) -> Row | None:
        record = self._running.get(id)
        if record is not None:
            return row_of(record, self._worker)
        packed = self._over.get(id)
        return _unpack(packed) if packed is not None else None

    def forget(self, key: str, until: float = float("inf")) -> int:
        """What is over of one caller, up to a moment. How many there were."""
        rows = [_unpack(packed) for packed in self._over.values()]
        gone = [row.id for row in rows if row.key == key and row.at <= until]
        for id in gone:
            del self._over[id]
        return len(gone)

    def changed(self, seen: dict[str, tuple[object, ...]]) -> list[Row]:
        """Those that run, as far as they are not as they were `seen`; what is over is taken out of it."""
        for id in seen.keys() - self._running.keys():
            del seen[id]
        found = []
        for record in islice(reversed(list(self._running.values())), _UNHEARD_MOST):
            matters = _what_matters(record)
            if seen.get(record.id) != matters:
                seen[record.id] = matters
                found.append(row_of(record, self._worker))
        return found

    def listen(self) -> Listener:
        listener = Listener(self._unlisten)
        self._listeners.append(listener)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)
        return listener

    def _unlisten(self, listener: Listener) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)
        if not self._listeners:
            self.close()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._seen.clear()

    def _look(self) -> None:
        """What has changed of those that run: records tell nobody of it, so that they cost nothing."""
        for row in self.changed(self._seen):
            for listener in self._listeners:
                listener.tell(row)
        self._timer = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def _tell(self, record: Record) -> None:
        self._seen[record.id] = _what_matters(record)
        row = row_of(record, self._worker)
        for listener in self._listeners:
            listener.tell(row)


def _what_matters(record: Record) -> tuple[object, ...]:
    return (record.provider, record.upstream_model, record.attempts, record.first_byte, record.status,
            len(record.losses), record.recorded)  # fmt: skip
