"""All that is known of exchanges, for anyone who looks: rows of every one, bodies of those that are recorded.

One for each process; with several workers each asks the others for their rows, and reads the same files. In a
fleet all machines tell their rows to its store, and hand over what they record.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from wireglot.gateway.observe.metrics import Metrics
from wireglot.gateway.observe.observer import Observer
from wireglot.gateway.observe.record import Record
from wireglot.gateway.request.job import Incoming
from wireglot.gateway.settings import Settings
from wireglot.gateway.trace.fleet_traces import FleetMember, FleetTraces
from wireglot.gateway.trace.made_trace import made_trace
from wireglot.gateway.trace.peers import (
    Commanded,
    PeerCommand,
    PeerRequest,
    PeerResponse,
    Peers,
    SiblingWorkers,
)
from wireglot.gateway.trace.policy import RecordingPolicy
from wireglot.gateway.trace.recording import Recording, Room, Writer
from wireglot.gateway.trace.rows import ExchangeRows, Listener, redacted
from wireglot.gateway.trace.shelf import FOLDER, TraceShelf
from wireglot.gateway.trace.wanted import Wanted
from wireglot.stores.base import FleetLog
from wireglot.stores.seal import Sealer
from wireglot.traces.trace import Row, Trace

ROOM_BYTES: Final = 128 * 1024 * 1024
"""That recordings of this process hold, from the request on until they are on the disk."""
_LAST_WORDS_SECONDS: Final = 2.0
_FLUSH_SECONDS: Final = 2.0
_SWEEP_SECONDS: Final = 60.0


class Traces:
    def __init__(
        self,
        settings: Settings,
        observer: Observer,
        sealer: Sealer,
        fleet_log: FleetLog | None = None,
        *commanded: Commanded,
    ) -> None:
        """`commanded`: who else does what other processes order."""
        self.worker = f"{socket.gethostname()}/{os.getpid()}"
        self.rows = ExchangeRows(self.worker)
        self.room = Room(ROOM_BYTES)
        self.policy = RecordingPolicy(settings.trace)
        folder = Path(settings.store.folder) / FOLDER if settings.store.folder else None
        self.shelf = TraceShelf(folder, sealer, observer.note)
        self.siblings = Peers()
        self.fleet = Peers()
        self._no_room = 0
        self._commanded = (self.policy, *commanded)
        self._fleet_log = fleet_log
        self._observer = observer
        self._sealer = sealer
        self._settings = settings
        self._writer = Writer(self._write, self._written, observer.note)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sweeping: asyncio.Task[None] | None = None
        observer.list_with(self.rows)

    def adopt(self, settings: Settings) -> None:
        self._settings = settings
        self.policy.adopt(settings.trace)

    async def start(self, directory: str = "", index: int = 0, record_until: float = 0.0) -> None:
        """`directory`: where workers find one another, "" where there is only one."""
        self._loop = asyncio.get_running_loop()
        self.policy.record_until(record_until)
        if directory:
            if self.shelf.folder is None:
                self.shelf = TraceShelf(Path(directory) / FOLDER, self._sealer, self._observer.note)
            self.siblings = siblings = SiblingWorkers(directory, index, self._answered, self.rows.listen)
            await siblings.start(self._obey)
        self._sweeping = self._loop.create_task(self._sweep())
        if self._fleet_log is not None:
            machine = f"{socket.gethostname()}:{directory or secrets.token_hex(8)}"
            own = FleetMember(self._fleet_log, self._sealer, self._observer.note, machine, self.worker)
            self.fleet = fleet = FleetTraces(
                own, self.rows, self.redacted, self.shelf, lambda: self._settings
            )
            await fleet.start(self._obey)

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        self.policy.close()
        await self.siblings.close()
        self.rows.close()
        await asyncio.to_thread(self._writer.close, _LAST_WORDS_SECONDS)
        await self.fleet.close()
        self.shelf.close()

    def publish(self, metrics: Metrics) -> None:
        metrics.read(
            "traces_dropped_total",
            "Exchanges that could not be recorded: too many at once, or a write failed.",
            lambda: {(): self.dropped},
            kind="counter",
        )
        metrics.read(
            "fleet_rows_dropped_total",
            "Exchanges that other machines of a fleet cannot list: too many at once, or the store was down.",
            lambda: {(): self.fleet.unsent} if self.fleet.unsent is not None else {},
            kind="counter",
        )

    @property
    def dropped(self) -> int:
        """Exchanges that were to be recorded, and were not."""
        return self._no_room + self._writer.failed

    # What becomes of an exchange.

    def begin(self, incoming: Incoming, body: bytes, record: Record) -> Recording | None:
        """None: it is not recorded."""
        if not self.policy.begins(incoming):
            return None
        body_bytes = incoming.settings.trace.body_bytes
        return Recording(incoming.head, body, record, self.room, body_bytes=body_bytes, keeper=self)

    def over(self, recording: Recording) -> None:
        """The answer is out, and its record is complete: now it is known whether it is kept."""
        if not self.policy.keeps(recording.record):
            recording.let_go()
        elif recording.lost or self._writer.is_full:
            recording.let_go()
            self._no_room += 1
        else:
            recording.record.recorded = True

    def keep(self, recording: Recording) -> None:
        """Its row is reported: have it written."""
        if recording.record.recorded:
            self._writer.take(recording)

    # In the writer's thread.

    def _write(self, recording: Recording) -> None:
        trace = made_trace(recording, self._observer.redactor, self.worker)
        self.shelf.put(trace)
        self._soon(lambda: self.fleet.offer(trace.row))
        self._soon(lambda: self.rows.entitle(trace.row.id, trace.row.title))

    def _written(self, recording: Recording) -> None:
        self._soon(recording.let_go)

    def _soon(self, call: Callable[[], None]) -> None:
        """On the loop."""
        with contextlib.suppress(RuntimeError):  # it has ended
            if self._loop is not None:
                self._loop.call_soon_threadsafe(call)

    async def _sweep(self) -> None:
        while True:
            await asyncio.to_thread(self.shelf.sweep, self._settings.trace)
            await asyncio.sleep(_SWEEP_SECONDS)

    # What there is.

    async def listed(self, wanted: Wanted) -> list[Row]:
        """Of all workers and machines, and of those that ran before; as others may see them."""
        own, *theirs = await asyncio.gather(
            self._own(wanted), self.siblings.rows(wanted), self.fleet.rows(wanted)
        )
        merged = await asyncio.to_thread(self._with_kept, wanted, own, theirs)
        return [self.redacted(row) for row in merged]

    async def _own(self, wanted: Wanted) -> list[Row]:
        if wanted.histories:
            await self.rows.read_histories()
        facts = self.rows.snapshot(wanted.ids)
        return await asyncio.to_thread(lambda: wanted.page(self.rows.formatted(facts)))

    def _with_kept(self, wanted: Wanted, rows: list[Row], theirs: list[list[Row]]) -> list[Row]:
        """Rows with those that only others or the shelf know, the newest first."""
        known, found = {row.id for row in rows}, 0
        for others in theirs:
            rows += [row for row in others if row.id not in known]
            known.update(row.id for row in others)
        in_order = wanted.is_newest_first
        before = wanted.before[1] if wanted.before is not None and in_order else None
        for kept in self.shelf.listed() if wanted.ids is None else ():  # what changes now is in memory
            if wanted.limit and found > wanted.limit and in_order:
                break
            if kept.at < wanted.since - 1 or (before is not None and kept.at > before + 1):
                continue
            row = self.shelf.row(kept) if kept.id not in known else None
            if row is not None and wanted.matches(row):
                rows.append(row)
                found += 1
        return wanted.page(rows)

    async def find(self, id: str) -> Row | None:
        """As it is now, no matter who has it."""
        row = self.rows.find(id) or await self.siblings.find(id)
        row = row or await asyncio.to_thread(self._kept_row, id) or await self.fleet.find(id)
        return self.redacted(row) if row is not None else None

    def _kept_row(self, id: str) -> Row | None:
        kept = self.shelf.find(id)
        return self.shelf.row(kept) if kept is not None else None

    async def opened(self, row: Row) -> tuple[Trace | None, str]:
        """What was recorded of it, or why that cannot be shown here ("": it was not, or is gone)."""
        trace = await asyncio.to_thread(lambda: self.reader()(row.id))
        return (trace, "") if trace is not None or not row.recorded else await self.elsewhere(row)

    async def elsewhere(self, row: Row) -> tuple[Trace | None, str]:
        """The same, of another machine alone."""
        return await self.fleet.trace(row) if self.rows.find(row.id) is None else (None, "")

    def reader(self) -> Callable[[str], Trace | None]:
        """The same, of this machine alone, by id and in a thread: the folder is looked through once."""
        self._writer.flush(_FLUSH_SECONDS)
        return self.shelf.reader()

    def listen(self) -> Listener:
        """Hears of the rows of all workers and machines, as they change."""
        listener = self.rows.listen()
        self.siblings.listen(listener)
        self.fleet.listen(listener)
        return listener

    def redacted(self, row: Row) -> Row:
        """As others may see it."""
        return redacted(row, self._observer.redactor)

    async def status(self) -> dict[str, Any]:
        said = await self.siblings.dropped()
        until = self.policy.until
        return {
            "mode": "all" if until else self._settings.trace.mode,
            "until": until or None,
            "dropped": self.dropped + sum(said),
            "kept_bytes": await asyncio.to_thread(lambda: self.shelf.bytes),
            "workers": 1 + len(said),
            "fleet": self.fleet.status(),
        }

    # What all processes do.

    async def forget(self, key: str) -> int:
        """Everything of one caller goes, on all machines. How many recordings there were here. Raises
        StoreDown where the other machines cannot be informed."""
        now = time.time()
        self.rows.forget(key)
        await self.siblings.forget(key, now)
        here = await asyncio.to_thread(self._forget, key)
        return max(here, await self.fleet.forget(key, now))

    def _forget(self, key: str, until: float = float("inf")) -> int:
        self._writer.flush(_FLUSH_SECONDS)
        return self.shelf.forget(key, until)

    async def record_for(self, seconds: float) -> str:
        """All bodies, in all workers and machines. Why it holds for this machine alone, where it does."""
        until = time.time() + seconds if seconds > 0 else 0.0
        return await self.command(PeerCommand(time.time(), record_until=until))

    async def command(self, command: PeerCommand) -> str:
        """To all workers and machines, this one too. Why it holds for this machine alone, where it does."""
        await self._obey(command, True)
        await self.siblings.command(command)
        return await self.fleet.command(command)

    async def _obey(self, command: PeerCommand, is_new: bool) -> None:
        for each in self._commanded:
            each.obey(command, is_new=is_new)
        if command.forgotten is not None:
            self.rows.forget(command.forgotten, command.at)
            self.fleet.let_go(command.forgotten, command.at)
            await asyncio.to_thread(self._forget, command.forgotten, command.at)

    async def _answered(self, question: PeerRequest) -> PeerResponse:
        """What a sibling asks."""
        if question.rows is not None:
            return PeerResponse(rows=await self._own(question.rows))
        if question.find:
            row = self.rows.find(question.find)
            if row is not None and row.recorded:
                await asyncio.to_thread(self._writer.flush, _FLUSH_SECONDS)
            return PeerResponse(rows=[row] if row is not None else [])
        if question.forget:
            await asyncio.to_thread(self._writer.flush, _FLUSH_SECONDS)
            self.rows.forget(question.forget)
        if question.command is not None:
            await self._obey(question.command, True)
        standing = [command for each in self._commanded for command in each.standing()]
        return PeerResponse(dropped=self.dropped, standing=standing)
