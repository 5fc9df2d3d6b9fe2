"""All that is known of exchanges, for whoever looks: rows of every one, bodies of those that are recorded.

One for each process; with several workers each asks the others for their rows, and reads the same files. In a
fleet all machines tell their rows to its store, and hand over what they record.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Coroutine
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from wireglot.gateway.observe.metrics import Metrics
from wireglot.gateway.observe.observer import Observer
from wireglot.gateway.observe.record import Record
from wireglot.gateway.request.ended_sessions import EndedSessions
from wireglot.gateway.request.job import Incoming
from wireglot.gateway.setting_tables import TraceSettings
from wireglot.gateway.settings import Settings
from wireglot.gateway.trace.fleet_entries import FleetCommand
from wireglot.gateway.trace.fleet_traces import FleetTraces
from wireglot.gateway.trace.made_trace import made_trace
from wireglot.gateway.trace.recording import Recording, Room, Writer
from wireglot.gateway.trace.rows import ExchangeRows, Listener, told
from wireglot.gateway.trace.shelf import FOLDER, TraceShelf, file_name
from wireglot.gateway.trace.siblings import PeerRequest, PeerResponse, RowSiblings
from wireglot.gateway.trace.wanted import Wanted
from wireglot.stores.base import FleetLog
from wireglot.stores.seal import Sealer
from wireglot.traces.trace import Row, Trace


def is_kept(record: Record, trace: TraceSettings) -> bool:
    if trace.routes and not any(_pattern(each).fullmatch(record.model) for each in trace.routes):
        return False
    match trace.mode:
        case "all":
            return True
        case "errors":
            return _failed(record)
        case "off":  # it was turned off meanwhile
            return False


def _failed(record: Record) -> bool:
    """A client that leaves is none: people press Esc."""
    if record.outcome == "client_abort":
        return False
    return (
        record.outcome != "ok"
        or record.status >= 400
        or any(loss.grade == "serious" for loss in record.losses)
    )


@lru_cache(256)
def _pattern(text: str) -> re.Pattern[str]:
    """`*` stands for anything, as in [models]."""
    return re.compile(".*".join(re.escape(piece) for piece in text.split("*")), re.DOTALL)


ROOM_BYTES: Final = 128 * 1024 * 1024
"""That recordings of this process hold, from the request on until they are on the disk."""
_LAST_WORDS_SECONDS: Final = 2.0
_FLUSH_SECONDS: Final = 2.0
_SWEEP_SECONDS: Final = 60.0
_HEARD_SECONDS: Final = 5.0
_OPERATIONS: Final = frozenset({"generate", "compact", "count", "assist"})


class Traces:
    def __init__(
        self, settings: Settings, observer: Observer, sealer: Sealer, fleet_log: FleetLog | None = None
    ) -> None:
        self.worker = f"{socket.gethostname()}/{os.getpid()}"
        self.rows = ExchangeRows(self.worker)
        self.room = Room(ROOM_BYTES)
        self.dropped = 0
        """Exchanges that were to be recorded, and were not: there was no room."""
        self.until = 0.0
        """All bodies are recorded until then: unix seconds."""
        self._ends = 0.0
        """The same by a clock that nobody sets: what was asked for is so many minutes."""
        self.active = False
        """Whether any exchange may have to be recorded: all that a request asks where none is."""
        self.siblings: RowSiblings | None = None
        self.fleet: FleetTraces | None = None
        self.ended = EndedSessions()
        self._fleet_log = fleet_log
        self._observer = observer
        self._sealer = sealer
        self._settings = settings
        self._writer = Writer(self._write, self._written, observer.note)
        self._shelf: TraceShelf | None = None
        self._folder = Path(settings.store.folder) / FOLDER if settings.store.folder else None
        self._temporary: Path | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._sweeping: asyncio.Task[None] | None = None
        observer.list_with(self.rows)
        self.adopt(settings)

    def adopt(self, settings: Settings) -> None:
        self._settings = settings
        self._look()

    async def start(self, directory: str = "", index: int = 0, record_until: float = 0.0) -> None:
        """`directory`: where workers find one another, "" where there is only one."""
        self._loop = asyncio.get_running_loop()
        self._sweeping = self._loop.create_task(self._sweep())
        if directory:
            self._folder = self._folder or Path(directory) / FOLDER
            self.siblings = RowSiblings(directory, index, self._answered, self._stream)
            await self.siblings.start()
            said = await self.siblings.ask(PeerRequest(status=True))
            record_until = max([record_until, *(each.until for each in said)])
            for nonce, ends in (pair for each in said for pair in each.ended):
                self.ended.add(nonce, ends)
        self.record_until(record_until)
        if self._fleet_log is not None:
            machine = f"{socket.gethostname()}:{directory or secrets.token_hex(8)}"
            self.fleet = FleetTraces(
                self._fleet_log,
                self.rows,
                self._sealer,
                note=self._observer.note,
                told=self.told,
                shelf=lambda: self.shelf,
                settings=lambda: self._settings,
                machine=machine,
                worker=self.worker,
            )
            await self.fleet.start(self._obey)

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._timer is not None:
            self._timer.cancel()
        if self.siblings is not None:
            await self.siblings.close()
        self.rows.close()
        await asyncio.to_thread(self._writer.close, _LAST_WORDS_SECONDS)
        if self.fleet is not None:
            await self.fleet.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def publish(self, metrics: Metrics) -> None:
        metrics.read(
            "traces_dropped_total",
            "Exchanges that were to be recorded and were not: too many at once, or not to be written.",
            lambda: {(): self.dropped + self._writer.failed},
            kind="counter",
        )
        metrics.read(
            "fleet_rows_dropped_total",
            "Exchanges that other machines of a fleet cannot list: too many at once, or the store was away.",
            lambda: {(): self.fleet.sender.dropped} if self.fleet is not None else {},
            kind="counter",
        )

    # Whether an exchange is recorded, and what becomes of it.

    def record_until(self, until: float) -> None:
        """All bodies, up to a moment (unix seconds), whatever the settings say."""
        self.until = until
        self._ends = time.monotonic() + until - time.time()
        self._look()

    def announcement(self) -> str:
        """For whoever starts the gateway: what is said through it is kept for a while. "": it is not."""
        minutes = round((self.until - time.time()) / 60)
        if minutes > 0:
            return f"all bodies are recorded for {minutes} minutes (--trace), without secrets, and sealed"
        trace = self._settings.trace
        whose = {"errors": "of exchanges that fail ", "all": "", "off": ""}[trace.mode]
        return (
            f"bodies {whose}are recorded (trace.mode = {trace.mode}), sealed" if trace.mode != "off" else ""
        )

    @property
    def _is_recording_all(self) -> bool:
        return self._ends > time.monotonic()

    def _look(self) -> None:
        left = self._ends - time.monotonic()
        self.active = left > 0 or self._settings.trace.mode != "off"
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if left > 0 and self._loop is not None:
            self._timer = self._loop.call_later(left, self._look)

    def begin(self, incoming: Incoming, body: bytes, record: Record) -> Recording | None:
        """None: it is not recorded."""
        if incoming.asked.operation not in _OPERATIONS:
            return None
        trace = incoming.settings.trace
        if not self._is_recording_all:
            if trace.mode == "off" or (trace.keys and incoming.caller.name not in trace.keys):
                return None
            if trace.sample < 1.0 and random.random() >= trace.sample:
                return None
        return Recording(incoming.head, body, record, self.room, body_bytes=trace.body_bytes, keeper=self)

    def over(self, recording: Recording) -> None:
        """The answer is out, and its record is complete: now it is known whether it is kept."""
        record = recording.record
        if not self._is_kept(record):
            recording.let_go()
            return
        if recording.lost or self._writer.is_full:
            recording.let_go()
            self.dropped += 1
            return
        record.recorded = True

    def keep(self, recording: Recording) -> None:
        """Its row is told: have it written."""
        if recording.record.recorded:
            self._writer.take(recording)

    def _is_kept(self, record: Record) -> bool:
        if self._is_recording_all:
            return True
        return is_kept(record, self._settings.trace)

    # In the writer's thread.

    def _write(self, recording: Recording) -> None:
        trace = made_trace(recording, self._observer.redactor, self.worker)
        self.shelf.put(trace)
        if self.fleet is not None and self._loop is not None:
            offer, row = self.fleet.bodies.offer, trace.row
            self._loop.call_soon_threadsafe(offer, row.key, row.id, file_name(row))

    def _written(self, recording: Recording) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            if self._loop is not None:
                self._loop.call_soon_threadsafe(recording.let_go)

    @property
    def shelf(self) -> TraceShelf:
        """Made when it is first needed, in whichever thread."""
        if self._shelf is None:
            if self._folder is None:
                self._temporary = Path(tempfile.mkdtemp(prefix="wireglot-traces-"))
                self._folder = self._temporary
            self._shelf = TraceShelf(self._folder, self._sealer, self._observer.note)
        return self._shelf

    async def _sweep(self) -> None:
        while True:
            if self._folder is not None:
                await asyncio.to_thread(self.shelf.sweep, self._settings.trace)
            await asyncio.sleep(_SWEEP_SECONDS)

    # What there is.

    async def listed(self, wanted: Wanted) -> list[Row]:
        """Of all workers and machines, and of those that ran before; as others may see them."""
        facts = self.rows.snapshot()
        own = asyncio.to_thread(lambda: wanted.page(self.rows.formatted(facts)))
        others = self.siblings.ask(PeerRequest(rows=wanted)) if self.siblings is not None else _nobody()
        fresh = self.fleet.rows.refresh() if self.fleet is not None else _nothing()
        mine, theirs, _ = await asyncio.gather(own, others, fresh)
        rows = [*mine, *(row for each in theirs for row in each.rows)]
        distant = self.fleet.rows.snapshot() if self.fleet is not None else []
        merged = await asyncio.to_thread(self._with_kept, wanted, rows, distant)
        redactor = self._observer.redactor
        return [told(row, redactor) for row in merged]

    def _with_kept(self, wanted: Wanted, rows: list[Row], distant: list[bytes]) -> list[Row]:
        """Rows with those that only the fleet's store or the shelf knows, the newest first."""
        known, found = {row.id for row in rows}, 0
        if self.fleet is not None and distant:
            more = wanted.page(self.fleet.rows.unpacked(distant, known))
            known.update(row.id for row in more)
            rows += more
        before = wanted.before[0] if wanted.before is not None else None
        for kept in self.shelf.listed() if self._folder is not None else []:
            if wanted.limit and found > wanted.limit:
                break
            if kept.at < wanted.since - 1 or (before is not None and kept.at > before + 1):
                continue
            row = self.shelf.row(kept) if kept.id not in known else None
            if row is not None and wanted.matches(row):
                rows.append(row)
                found += 1
        return wanted.page(rows)

    async def find(self, id: str) -> Row | None:
        """As it is now, whoever has it."""
        row = self.rows.find(id)
        if row is None and self.siblings is not None:
            said = await self.siblings.ask(PeerRequest(find=id))
            row = next((each for told in said for each in told.rows), None)
        if row is None:
            row = await asyncio.to_thread(self._kept_row, id)
        if row is None and self.fleet is not None:
            await self.fleet.rows.refresh()
            row = self.fleet.rows.find(id)
        return None if row is None else told(row, self._observer.redactor)

    def _kept_row(self, id: str) -> Row | None:
        kept = self.shelf.find(id) if self._folder is not None else None
        return self.shelf.row(kept) if kept is not None else None

    async def trace(self, id: str) -> Trace | None:
        """What was recorded of it."""
        row = await self.find(id)
        return (await self.opened(row))[0] if row is not None else None

    async def opened(self, row: Row) -> tuple[Trace | None, str]:
        """What was recorded of it, or why that cannot be shown here ("": it was not, or is gone)."""
        trace = await asyncio.to_thread(self.read, row.id)
        if trace is not None or not row.recorded or self.fleet is None or self.rows.find(row.id) is not None:
            return trace, ""
        return await self.fleet.trace(row)

    def read(self, id: str) -> Trace | None:
        """The same, of this machine alone, in a thread."""
        self._writer.flush(_FLUSH_SECONDS)
        kept = self.shelf.find(id) if self._folder is not None else None
        return self.shelf.trace(kept) if kept is not None else None

    def reader(self) -> Callable[[str], Trace | None]:
        """`read` for many: the folder is looked through once."""
        self._writer.flush(_FLUSH_SECONDS)
        return self.shelf.reader() if self._folder is not None else lambda _: None

    async def forget(self, key: str) -> int:
        """Everything of one caller goes, on all machines. How many recordings there were here. Raises
        StoreDown where the other machines cannot be told."""
        now = time.time()
        self.rows.forget(key)
        if self.siblings is not None:
            await self.siblings.ask(PeerRequest(forget=key))
        here = await asyncio.to_thread(self._forget, key)
        elsewhere = await self.fleet.forget(key, now) if self.fleet is not None else 0
        return max(here, elsewhere)

    def _forget(self, key: str, until: float = float("inf")) -> int:
        self._writer.flush(_FLUSH_SECONDS)
        return self.shelf.forget(key, until) if self._folder is not None else 0

    async def record_for(self, seconds: float) -> str:
        """All bodies, in all workers and machines, for so long. Why it holds for this machine alone, where it
        does."""
        until = time.time() + seconds if seconds > 0 else 0.0
        self.record_until(until)
        if self.siblings is not None:
            await self.siblings.ask(PeerRequest(record_until=until))
        return await self._order(FleetCommand(time.time(), record_until=until))

    async def end_session(self, nonce: str, ends: float) -> str:
        """A session of the inspector, in all workers and machines. Why it holds for this one alone, where it
        does."""
        self.ended.add(nonce, ends)
        if self.siblings is not None:
            await self.siblings.ask(PeerRequest(ended=(nonce, ends)))
        return await self._order(FleetCommand(time.time(), ended=nonce, ends=ends))

    async def _order(self, order: FleetCommand) -> str:
        return await self.fleet.order(order) if self.fleet is not None else ""

    async def _obey(self, order: FleetCommand, is_new: bool) -> None:
        if order.ended:
            self.ended.add(order.ended, order.ends)
        if order.record_until is not None and (is_new or order.record_until > max(time.time(), self.until)):
            self.record_until(order.record_until)
        if order.forgotten is not None and self.fleet is not None:
            self.rows.forget(order.forgotten, order.at)
            self.fleet.let_go(order.forgotten, order.at)
            await asyncio.to_thread(self._forget, order.forgotten, order.at)

    async def status(self) -> dict[str, Any]:
        said = await self.siblings.ask(PeerRequest(status=True)) if self.siblings is not None else []
        until = self.until if self._is_recording_all else 0.0
        kept = await asyncio.to_thread(lambda: self.shelf.bytes if self._folder is not None else 0)
        return {
            "mode": "all" if until else self._settings.trace.mode,
            "until": until or None,
            "dropped": self.dropped + self._writer.failed + sum(each.dropped for each in said),
            "kept_bytes": kept,
            "workers": 1 + len(said),
            "fleet": self.fleet.status() if self.fleet is not None else None,
        }

    # What siblings ask.

    async def _answered(self, question: PeerRequest) -> PeerResponse:
        if question.rows is not None:
            wanted = question.rows
            facts = self.rows.snapshot()
            rows = await asyncio.to_thread(lambda: wanted.page(self.rows.formatted(facts)))
            return PeerResponse(rows=rows)
        if question.find:
            row = self.rows.find(question.find)
            if row is not None and row.recorded:
                await asyncio.to_thread(self._writer.flush, _FLUSH_SECONDS)
            return PeerResponse(rows=[row] if row is not None else [])
        if question.forget:
            await asyncio.to_thread(self._writer.flush, _FLUSH_SECONDS)
            return PeerResponse(count=self.rows.forget(question.forget))
        if question.record_until is not None:
            self.record_until(question.record_until)
        if question.ended is not None:
            self.ended.add(*question.ended)
        dropped = self.dropped + self._writer.failed
        return PeerResponse(
            dropped=dropped, until=self.until, ended=self.ended.all() if question.status else []
        )

    async def _stream(self, tell: Callable[[PeerResponse], Coroutine[Any, Any, None]]) -> None:
        listener = self.rows.listen()
        dropped = 0
        try:
            while True:
                news = await listener.heard(_HEARD_SECONDS)
                missed, dropped = listener.dropped - dropped, listener.dropped
                if news or missed:
                    await tell(PeerResponse(rows=news, dropped=missed))
        finally:
            listener.close()

    def listen(self) -> Listener:
        return self.rows.listen()

    def told(self, row: Row) -> Row:
        """As others may see it."""
        return told(row, self._observer.redactor)


async def _nobody() -> list[PeerResponse]:
    return []


async def _nothing() -> None: ...
