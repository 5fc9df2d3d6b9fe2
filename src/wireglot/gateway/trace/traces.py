"""All that is known of exchanges, for the inspector: rows of all, bodies of recorded ones.

One instance per process; several workers request rows from each other, and read the same files. In a fleet
all machines report their rows to its store, and upload their recordings.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, Final

import msgspec

from wireglot.gateway.entry.callers import LOCAL
from wireglot.gateway.entry.guard import is_loopback
from wireglot.gateway.observe.metrics import Metrics
from wireglot.gateway.observe.observer import Observer
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.job import Incoming
from wireglot.gateway.settings import Settings
from wireglot.gateway.trace.fleet_traces import FleetMember, FleetTraces
from wireglot.gateway.trace.growing import GrowingTrace, GrowingTraces
from wireglot.gateway.trace.made_trace import made_trace, recorded_title
from wireglot.gateway.trace.peers import (
    Commanded,
    PeerCommand,
    PeerRequest,
    PeerResponse,
    Peers,
    SiblingWorkers,
)
from wireglot.gateway.trace.policy import RECORDED_OPERATIONS, RecordingPolicy
from wireglot.gateway.trace.recording import Recording, Writer, recording_of
from wireglot.gateway.trace.rows import ExchangeRows, Listener, redacted
from wireglot.gateway.trace.shelf import FOLDER, TraceShelf, file_name
from wireglot.gateway.trace.wanted import Wanted
from wireglot.http.copies import Room
from wireglot.stores.base import FleetLog
from wireglot.stores.seal import Sealer
from wireglot_core.traces.trace import Row, Trace

ROOM_BYTES: Final = 128 * 1024 * 1024
"""Memory for recordings of this process, from the request until they are on disk."""
_LAST_WORDS_SECONDS: Final = 2.0
_FLUSH_SECONDS: Final = 2.0
_SWEEP_SECONDS: Final = 60.0
MAX_EXCHANGES: Final = 200
"""Exchanges with bodies that a worker holds in memory where none are recorded."""
_RUNNING_SHARE: Final = 2
"""How many times `memory_bytes` running exchanges may take in addition."""
_BESIDE_BODIES_BYTES: Final = 4096
"""Memory of an exchange in addition to its bodies."""


class Traces:
    def __init__(
        self,
        settings: Settings,
        observer: Observer,
        sealer: Sealer,
        fleet_log: FleetLog | None = None,
        *commanded: Commanded,
        asks_for_keys: Callable[[], bool] = lambda: False,
    ) -> None:
        """`commanded`: further parts that execute commands of other processes. `asks_for_keys`: whether a
        request needs a key now."""
        self.worker = f"{socket.gethostname()}/{os.getpid()}"
        self.rows = ExchangeRows(self.worker)
        self.room = Room(ROOM_BYTES)
        self.policy = RecordingPolicy(settings.trace)
        self.memory = RecentRecordings(settings, asks_for_keys)
        self.growing = GrowingTraces(lambda: observer.redactor)
        self.running: dict[str, Recording] = {}
        """Recordings of running exchanges, by id."""
        folder = Path(settings.store.folder) / FOLDER if settings.store.folder else None
        self.shelf = TraceShelf(folder, sealer, observer.note)
        self.siblings = Peers()
        self.fleet = Peers()
        self._no_room = 0
        self._sorting = Lock()
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
        self.memory.adopt(settings)

    async def start(self, directory: str = "", index: int = 0, record_until: float = 0.0) -> None:
        """`directory`: with the sockets of the workers; "" if there is only one."""
        self._loop = asyncio.get_running_loop()
        self.policy.record_until(record_until)
        if directory:
            if self.shelf.folder is None:
                self.shelf = TraceShelf(Path(directory) / FOLDER, self._sealer, self._observer.note)
            self.siblings = siblings = SiblingWorkers(
                directory, index, self._answered, self.rows.listen, self._shown
            )
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
        """Exchanges that should have been recorded, and were not."""
        return self._no_room + self._writer.failed

    # The life of an exchange.

    def begin(self, incoming: Incoming, body: bytes, record: ExchangeRecord) -> Recording | None:
        """None: it is not recorded."""
        is_temporary = not (self.policy.active and self.policy.begins(incoming))
        if is_temporary and (
            not self.memory.most
            or incoming.caller is not LOCAL
            or incoming.asked.operation not in RECORDED_OPERATIONS
        ):
            return None
        head, most = incoming.head, incoming.settings.trace.body_bytes
        room = self.memory.room if is_temporary else self.room
        recording = recording_of(head, body, record, room, most, self)
        recording.is_temporary = is_temporary
        self.running[record.id] = recording
        return recording

    def over(self, recording: Recording) -> None:
        """The answer was sent, and its record is complete: now it is known whether the recording is kept."""
        record = recording.record
        self.running.pop(record.id, None)
        if record.wiped:
            recording.let_go()
        elif recording.is_temporary or not self.policy.keeps(record):
            if self.memory.most and (not record.caller or record.caller == LOCAL.name):
                self.memory.put(recording)
            else:
                recording.let_go()
        elif recording.lost or self._writer.is_full:
            recording.let_go()
            self._no_room += 1
        else:
            record.recorded = True

    def keep(self, recording: Recording) -> None:
        """Its row is reported: have it written."""
        if recording.record.recorded:
            self._writer.take(recording)

    # Runs in the writer's thread.

    def _write(self, recording: Recording) -> None:
        trace = made_trace(recording, self._observer.redactor, self.worker)
        self.shelf.put(trace)
        if recording.record.wiped:  # wiped while it was written
            self.shelf.remove(file_name(trace.row))
            return
        self._soon(lambda: self.fleet.offer(trace.row))
        self._soon(lambda: self.rows.entitle(trace.row.id, trace.row.title))

    def _written(self, recording: Recording) -> None:
        self._soon(recording.let_go)

    def _soon(self, call: Callable[[], None]) -> None:
        """Call it on the loop."""
        with contextlib.suppress(RuntimeError):  # it has ended
            if self._loop is not None:
                self._loop.call_soon_threadsafe(call)

    async def _sweep(self) -> None:
        while True:
            await asyncio.to_thread(self.shelf.sweep, self._settings.trace)
            self.memory.status()  # checks whether a key was created since
            await asyncio.sleep(_SWEEP_SECONDS)

    # Reading.

    async def listed(self, wanted: Wanted) -> list[Row]:
        """Rows of all workers and machines, and of earlier processes, as others may see them."""
        own, *theirs = await asyncio.gather(
            self._own(wanted), self.siblings.rows(wanted), self.fleet.rows(wanted)
        )
        # Ten thousand take half a second, too long for the loop.
        return await asyncio.to_thread(lambda: list(map(self.redacted, self._with_kept(wanted, own, theirs))))

    async def _own(self, wanted: Wanted) -> list[Row]:
        if wanted.histories:
            await self.rows.read_histories()
        facts = self.rows.snapshot(wanted.ids)
        return await self.titled(await asyncio.to_thread(lambda: wanted.page(self.rows.formatted(facts))))

    async def titled(self, rows: list[Row]) -> list[Row]:
        """The rows with the titles of those that run, or whose bodies are in memory only."""
        is_on, held = self.memory.is_on, dict[str, Recording]()
        for row in rows:
            found = None
            if not row.title:
                found = self.running.get(row.id) or (self.memory.find(row.id) if is_on else None)
            if found is not None and (row.state != "running" or self._may_look(found)):
                held[row.id] = found
        unread = [each for each in held.values() if each.title is None]
        if unread:
            await asyncio.to_thread(self._read_titles, unread)
        return [
            msgspec.structs.replace(row, title=held[row.id].title or "") if row.id in held else row
            for row in rows
        ]

    async def _shown(self, rows: list[Row]) -> list[Row]:
        return [self.redacted(row) for row in await self.titled(rows)]

    def _read_titles(self, recordings: list[Recording]) -> None:
        for each in recordings:
            each.title = recorded_title(each, self._observer.redactor)

    def _with_kept(self, wanted: Wanted, rows: list[Row], theirs: list[list[Row]]) -> list[Row]:
        """The rows with those that only others or the shelf have, the newest first."""
        known, found = {row.id for row in rows}, 0
        for others in theirs:
            rows += [row for row in others if row.id not in known]
            known.update(row.id for row in others)
        in_order = wanted.is_newest_first
        if not in_order and wanted.ids is None:
            return wanted.page(self._with_all_kept(wanted, rows, known))
        before = wanted.before[1] if wanted.before is not None and in_order else None
        for kept in self.shelf.listed() if wanted.ids is None else ():  # recent ones are in memory
            if wanted.limit and found > wanted.limit and in_order:
                break
            if kept.at < wanted.since - 1 or (before is not None and kept.at > before + 1):
                continue
            row = self.shelf.row(kept) if kept.id not in known else None
            if row is not None and wanted.matches(row):
                rows.append(row)
                found += 1
        return wanted.page(rows)

    def _with_all_kept(self, wanted: Wanted, rows: list[Row], known: set[str]) -> list[Row]:
        """The same for an order that requires all rows, for one caller at a time. Only as many matches as
        wanted are kept."""
        matching = (
            row
            for row in self.shelf.rows(lambda kept: kept.at >= wanted.since - 1 and kept.id not in known)
            if wanted.matches(row)
        )
        with self._sorting:
            return rows + wanted.first(matching)

    async def find(self, id: str) -> Row | None:
        """The current row, from whichever process has it."""
        row = self.rows.find(id) or await self.siblings.find(id)
        row = row or await asyncio.to_thread(self._kept_row, id) or await self.fleet.find(id)
        return self.redacted(row) if row is not None else None

    def _kept_row(self, id: str) -> Row | None:
        kept = self.shelf.find(id)
        return self.shelf.row(kept) if kept is not None else None

    async def opened(self, row: Row) -> tuple[Trace | None, str]:
        """The recording, or why that cannot be shown here ("": it was not recorded, or is gone)."""
        trace = await asyncio.to_thread(self.reader(), row.id)
        if trace is None and row.worker != self.worker and self.memory.is_on:
            trace = await self.siblings.opened(row.id)
        return (trace, "") if trace is not None or not row.recorded else await self.elsewhere(row)

    async def grown(self, row: Row, cursor: str) -> tuple[GrowingTrace | None, str]:
        """What is new of a running exchange, or why that cannot be shown here."""
        recording = self.running.get(row.id)
        if recording is None:
            grown = await self.siblings.grown(row.id, cursor) if row.worker != self.worker else None
            if grown is not None:
                return grown, ""
            return None, f"it runs in {row.worker}" if row.worker != self.worker else ""
        if not self._may_look(recording):
            return None, ""
        return await self.growing.since(recording, self.redacted(row), cursor), ""

    def _may_look(self, recording: Recording) -> bool:
        """Whether anything of a running exchange may be shown: only if it might be kept."""
        if not recording.is_temporary and self.policy.may_keep(recording.record):
            return True
        return self.memory.is_on and recording.record.caller in ("", LOCAL.name)

    async def elsewhere(self, row: Row) -> tuple[Trace | None, str]:
        """The same, from another machine only."""
        return await self.fleet.trace(row) if self.rows.find(row.id) is None else (None, "")

    def reader(self) -> Callable[[str], Trace | None]:
        """The same, for this process and this machine's files, by id and in a thread: the folder is read
        once."""
        is_in_memory = self.memory.is_on
        files: list[Callable[[str], Trace | None]] = []

        def read(id: str) -> Trace | None:
            held = self.memory.find(id) if is_in_memory else None
            if held is not None:
                return self._made(held)
            if not files:
                self._writer.flush(_FLUSH_SECONDS)
                files.append(self.shelf.reader())
            return files[0](id)

        return read

    def _made(self, recording: Recording) -> Trace:
        """The trace of a recording in memory, in a thread."""
        trace = made_trace(recording, self._observer.redactor, self.worker)
        row = msgspec.structs.replace(trace.row, recorded=True)
        return msgspec.structs.replace(trace, row=row)

    def listen(self) -> Listener:
        """A listener for the changing rows of all workers and machines."""
        listener = self.rows.listen()
        self.siblings.listen(listener)
        self.fleet.listen(listener)
        return listener

    def redacted(self, row: Row) -> Row:
        """The row as others may see it."""
        if not row.recorded and row.id in self.memory:
            row = msgspec.structs.replace(row, recorded=True)
        return redacted(row, self._observer.redactor)

    async def status(self) -> dict[str, Any]:
        said = await self.siblings.dropped()
        until = self.policy.until
        return {
            "mode": "all" if until else self._settings.trace.mode,
            "until": until or None,
            "dropped": self.dropped + sum(said),
            "memory": self.memory.status(),
            "kept_bytes": await asyncio.to_thread(lambda: self.shelf.bytes),
            "workers": 1 + len(said),
            "fleet": self.fleet.status(),
        }

    # Commands to all processes.

    async def forget(self, key: str) -> int:
        """Remove all data of one caller, on all machines. Returns how many recordings there were here. Raises
        StoreDown if the other machines cannot be informed."""
        now = time.time()
        self._forget_here(key)
        await self.siblings.forget(key, now)
        here = await asyncio.to_thread(self._forget, key)
        return max(here, await self.fleet.forget(key, now))

    def _forget_here(self, key: str, until: float = float("inf")) -> bool:
        """Remove one caller's data from this process, up to a time, including running exchanges. Returns
        whether there was any."""
        had_any = self.rows.forget(key, until)
        self.memory.forget(key, until)
        for recording in [each for each in self.running.values() if each.record.wiped]:
            del self.running[recording.record.id]
        return had_any

    def _forget(self, key: str, until: float = float("inf")) -> int:
        return self._writer.forget(key, until, _FLUSH_SECONDS) + self.shelf.forget(key, until)

    async def record_for(self, seconds: float) -> str:
        """Record all bodies, in all workers and machines. Returns why it applies to this machine only, if it
        does."""
        until = time.time() + seconds if seconds > 0 else 0.0
        return await self.command(PeerCommand(time.time(), record_until=until))

    async def command(self, command: PeerCommand) -> str:
        """Send a command to all workers and machines, including this one. Returns why it applies to this
        machine only, if it does."""
        await self._obey(command, True)
        await self.siblings.command(command)
        return await self.fleet.command(command)

    async def _obey(self, command: PeerCommand, is_new: bool) -> None:
        for each in self._commanded:
            each.obey(command, is_new=is_new)
        if command.forgotten is not None:
            had_any = self._forget_here(command.forgotten, command.at)
            self.fleet.let_go(command.forgotten, command.at)
            if had_any:  # some may have been reported since
                await self.fleet.forget_rows(command.forgotten, command.at)
            await asyncio.to_thread(self._forget, command.forgotten, command.at)

    async def _answered(self, question: PeerRequest) -> PeerResponse:
        """The answer to a sibling's request."""
        if question.rows is not None:
            rows = await self._own(question.rows)
            return PeerResponse(rows=await asyncio.to_thread(lambda: list(map(self.redacted, rows))))
        if question.find:
            row = self.rows.find(question.find)
            if row is not None and row.recorded:
                await asyncio.to_thread(self._writer.flush, _FLUSH_SECONDS)
            return PeerResponse(rows=await self._shown([row]) if row is not None else [])
        if question.grown:
            row = self.rows.find(question.grown)
            grown = (await self.grown(row, question.cursor))[0] if row is not None else None
            return PeerResponse(grown=grown)
        if question.opened:
            held = self.memory.find(question.opened) if self.memory.is_on else None
            trace = await asyncio.to_thread(self._made, held) if held is not None else None
            return PeerResponse(trace=trace)
        if question.forget:
            self._forget_here(question.forget)
            await asyncio.to_thread(self._writer.forget, question.forget, float("inf"), _FLUSH_SECONDS)
        if question.command is not None:
            await self._obey(question.command, True)
        standing = [command for each in self._commanded for command in each.standing()]
        return PeerResponse(dropped=self.dropped, standing=standing)


# Recordings in memory only.


def memory_bytes(settings: Settings) -> int:
    """How much memory these settings allow; 0: none, since others than the single user may have access."""
    server = settings.server
    is_private = (
        server.inspector == "auto"
        and is_loopback(server.host)
        and all(is_loopback(name) for name in server.hosts)
        and not server.require_key
        and not settings.keys
    )
    return settings.trace.memory_bytes if is_private else 0


class RecentRecordings:
    """The last exchanges of this process with their bodies, in memory only: what a single user's gateway can
    show before anything is recorded. They are dropped with the process, and as soon as anybody needs a key.
    Only used on the loop, except for `find`."""

    def __init__(self, settings: Settings, asks_for_keys: Callable[[], bool]) -> None:
        """`asks_for_keys`: whether a request needs a key now, including one created since."""
        self.most = memory_bytes(settings)
        """0: it is off. Requests check nothing else."""
        self.room = Room(_RUNNING_SHARE * self.most)
        """For running exchanges that are to be kept here."""
        self.held = 0
        self._asks_for_keys = asks_for_keys
        self._found: OrderedDict[str, tuple[Recording, int]] = OrderedDict()
        """With the size of each, the oldest first."""

    def adopt(self, settings: Settings) -> None:
        self.most = memory_bytes(settings)
        self.room.most = _RUNNING_SHARE * self.most
        self._shrink()

    @property
    def is_on(self) -> bool:
        """After a key was created nothing is left."""
        if self.most and self._asks_for_keys():
            self.clear()
            return False
        return self.most > 0

    def put(self, recording: Recording) -> None:
        """Keep an ended exchange. Its share of the memory for running ones is free again."""
        size, lost = recording.held, recording.request.lost or recording.answer.lost
        size += recording.request.held + recording.answer.held
        for attempt in recording.attempts:
            size += attempt.request.held
            lost = lost or attempt.request.lost
            if attempt.answer is not None:
                size += attempt.answer.held
                lost = lost or attempt.answer.lost
        recording.room.held -= size
        size += _BESIDE_BODIES_BYTES
        if lost or size > self.most:
            return
        self._found[recording.record.id] = recording, size
        self.held += size
        if self.held > self.most or len(self._found) > MAX_EXCHANGES:
            self._shrink()

    def find(self, id: str) -> Recording | None:
        found = self._found.get(id)
        return found[0] if found is not None else None

    def __contains__(self, id: str) -> bool:
        return id in self._found

    def forget(self, key: str, until: float = float("inf")) -> None:
        """Remove all data of one caller, up to a time in unix seconds."""
        since_then = time.monotonic() - (time.time() - until)
        for id, (held, _) in list(self._found.items()):
            if held.record.caller == key and held.record.started <= since_then:
                self._remove(id)

    def clear(self) -> None:
        self._found.clear()
        self.held = 0

    def status(self) -> dict[str, Any] | None:
        """For display; None: it is off."""
        if not self.is_on:
            return None
        return {"exchanges": len(self._found), "bytes": self.held, "most_bytes": self.most}

    def _remove(self, id: str) -> None:
        _, size = self._found.pop(id)
        self.held -= size

    def _shrink(self) -> None:
        while self._found and (self.held > self.most or len(self._found) > MAX_EXCHANGES):
            self._remove(next(iter(self._found)))
