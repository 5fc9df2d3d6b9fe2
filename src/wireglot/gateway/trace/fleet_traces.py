"""The fleet's exchanges for the inspector: rows and bodies of all machines, and commands to all.

Rows are stored in clear text, as usage is; providers' error messages may quote a prompt, so they are sealed.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from wireglot.gateway.observe.log import Note
from wireglot.gateway.setting_tables import TraceSettings
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.tasks import Guarded, stop
from wireglot.gateway.trace.peers import ENDED_UP_TO, SESSION_SECONDS, Obey, PeerCommand, Peers
from wireglot.gateway.trace.rows import CALLER, ExchangeRows, Facts, Listener, wiped
from wireglot.gateway.trace.shelf import TraceShelf, file_name
from wireglot.gateway.trace.wanted import Wanted
from wireglot.stores.base import FleetLog, StoreDown
from wireglot.stores.records import LogEntry
from wireglot.stores.seal import Sealer, Unreadable
from wireglot_core.traces.trace import Row, Trace

ROWS: Final = "rows"
ORDERS: Final = "orders"
SIGN_OUTS: Final = "sign-outs"
"""The names of the logs. Sign-outs have a separate one: many of them must not push out an order to forget a
caller."""
KEPT_SECONDS: Final = 24 * 3600.0
"""For all entries: those of one log are all kept for the same time."""
# Rows that wait in Redis for the other machines.
_MAX_ROW_ENTRIES: Final = 10_000
# Commands that wait in Redis for the other machines.
_MAX_ORDERS: Final = 1_000
# Sign-outs that wait in Redis for the other machines.
_MAX_SIGN_OUTS: Final = 10_000
ROWS_AT_ONCE: Final = 100
"""Rows in one entry: so the log takes at most 100 MB, and usually a tenth of that."""
_SEALED_FOR: Final = "\0fleet"
_ERRORS: Final = "row-errors"
_FORM: Final = b"\x01"
# Bytes of one entry of another machine, unpacked.
_MAX_BYTES: Final = 4 * 1024 * 1024


class PackedRows(msgspec.Struct, frozen=True, omit_defaults=True):
    machine: str
    """The same for all workers of one supervisor."""
    worker: str
    at: float
    rows: list[Row] = []
    """Without their errors."""
    errors: bytes = b""
    """Errors by id, sealed."""
    dropped: int = 0
    """Rows that this worker could not report, since it began."""
    forgotten: str | None = None
    """A caller whose rows until then must not be shown."""


_RowsDecoder: Final = msgspec.msgpack.Decoder(PackedRows)
_OrderDecoder: Final = msgspec.msgpack.Decoder(PeerCommand)


def pack_rows(
    machine: str, worker: str, at: float, rows: Sequence[Row], sealer: Sealer, dropped: int = 0
) -> PackedRows:
    errors = {row.id: row.error for row in rows if row.error}
    sealed = sealer.seal(_SEALED_FOR, _ERRORS, "", msgspec.json.encode(errors)) if errors else b""
    # A title contains a user's words: it stays with the recording, which is sealed.
    bare = [
        msgspec.structs.replace(row, error="", title="") if row.error or row.title else row for row in rows
    ]
    return PackedRows(machine, worker, at, rows=bare, errors=sealed, dropped=dropped)


def packed(value: PackedRows | PeerCommand) -> bytes:
    return _FORM + zlib.compress(_pack(value), 1)


async def tell(log: FleetLog, value: PackedRows | PeerCommand) -> None:
    """Append a value to the log. Raises StoreDown."""
    if isinstance(value, PackedRows):
        name, most = ROWS, _MAX_ROW_ENTRIES
    elif value.ended:
        name, most = SIGN_OUTS, _MAX_SIGN_OUTS
    else:
        name, most = ORDERS, _MAX_ORDERS
    await log.tell(name, packed(value), seconds=KEPT_SECONDS, most=most)


def read_rows(entries: Sequence[LogEntry], sealer: Sealer) -> list[tuple[str, PackedRows]]:
    """Packed rows with their places. Entries in the form of a later version are left out."""
    found = []
    for entry in entries:
        try:
            reported = _RowsDecoder.decode(_unpacked(entry.body))
        except (ValueError, zlib.error, msgspec.MsgspecError):
            continue
        found.append((entry.place, _with_errors(reported, sealer)))
    return found


def read_order(entry: LogEntry) -> PeerCommand | None:
    try:
        return _OrderDecoder.decode(_unpacked(entry.body))
    except (ValueError, zlib.error, msgspec.MsgspecError):
        return None


def _unpacked(body: bytes) -> bytes:
    if body[:1] != _FORM:
        raise ValueError("of another version")
    reading = zlib.decompressobj()
    unpacked = reading.decompress(body[1:], _MAX_BYTES)
    if not reading.eof:
        raise ValueError("longer than any batch of rows")
    return unpacked


def _with_errors(reported: PackedRows, sealer: Sealer) -> PackedRows:
    if not reported.errors:
        return reported
    try:
        opened = sealer.open(_SEALED_FOR, _ERRORS, "", reported.errors)
        errors = msgspec.json.decode(opened, type=dict[str, str])
    except (Unreadable, ValueError, zlib.error, msgspec.MsgspecError):
        return reported  # sealed with another secret: the row is shown without its error
    rows = [
        msgspec.structs.replace(row, error=errors[row.id]) if row.id in errors else row
        for row in reported.rows
    ]
    return msgspec.structs.replace(reported, rows=rows)


# Rows of other machines in the list.
MAX_ROWS: Final = 20_000
_PAGE: Final = 250
_FRESH_SECONDS: Final = 0.5
_CALL_SECONDS: Final = 3.0
_PAUSE_SECONDS: Final = 2.0
"""Pause after a failure before the next call to the store: viewers do not wait for it each time."""
_BEGIN_SECONDS: Final = 1.5
"""Time for reading past entries, the newest first: what is not read by then is left out."""
_LATELY_SECONDS: Final = 900.0
_SILENT_SECONDS: Final = 30.0
"""After this silence of a process all its running exchanges count as ended."""

_pack = msgspec.msgpack.Encoder().encode

_unpack = msgspec.msgpack.Decoder(Row).decode


async def _trouble(work: Awaitable[None], seconds: float) -> str:
    """Why the store did not do the work in time; "" if it did."""
    try:
        async with asyncio.timeout(seconds):
            await work
    except StoreDown as down:
        return str(down) or "the store is not available"
    except TimeoutError:
        return f"the store does not answer within {seconds:g} s"
    return ""


class FleetMember(NamedTuple):
    """This process, and how it communicates with the others."""

    log: FleetLog
    sealer: Sealer
    note: Note
    machine: str
    worker: str


class FleetRows:
    def __init__(
        self,
        own: FleetMember,
        *,
        wall: Callable[[], float] = time.time,
        fresh_seconds: float = _FRESH_SECONDS,
        pause_seconds: float = _PAUSE_SECONDS,
    ) -> None:
        self.trouble = ""
        """Why the list may be incomplete; "" if it is not."""
        self._own = own
        self._log = own.log
        self._wall = wall
        self._fresh_seconds = fresh_seconds
        self._pause_seconds = pause_seconds
        self._rows: OrderedDict[str, bytes] = OrderedDict()
        """By id, in the order in which they were first read."""
        self._heard: dict[str, float] = {}
        """When each process was last heard of, by its own clock."""
        self._machines: dict[str, float] = {}
        self._dropped: dict[str, int] = {}
        self._forgotten: dict[str, float] = {}
        """Callers that were wiped, and when."""
        self._listeners: list[Callable[[Row], None]] = []
        self._place = ""
        self._is_begun = False
        self._looked = float("-inf")
        self._reading = asyncio.Lock()

    @property
    def machines(self) -> int:
        """How many machines were heard of recently, this one included. One without rows to report is not
        counted."""
        since = self._wall() - _LATELY_SECONDS
        return len({self._own.machine, *(name for name, at in self._machines.items() if at > since)})

    @property
    def dropped(self) -> int:
        """Rows that other processes could not report."""
        return sum(self._dropped.values())

    def listen(self, tell: Callable[[Row], None]) -> Callable[[], None]:
        """Call `tell` with rows of other machines, as they are read. Returns a function that stops it."""
        self._listeners.append(tell)
        return lambda: self._listeners.remove(tell)

    async def refresh(self) -> None:
        """Read new entries, unless that was done just now."""
        async with self._reading:
            pause = self._pause_seconds if self.trouble else self._fresh_seconds
            if time.monotonic() - self._looked < pause:
                return
            self.trouble = await _trouble(self._read(), _CALL_SECONDS)
            self._looked = time.monotonic()

    async def _read(self) -> None:
        if not self._is_begun:
            await self._begin()
        while True:
            entries = await self._log.heard(ROWS, self._place, _PAGE)
            await self._took(entries)
            if len(entries) < _PAGE:
                return

    async def _begin(self) -> None:
        """Read the newest entries, as many as are kept."""
        found: list[LogEntry] = []
        count, before, until = 0, "", time.monotonic() + _BEGIN_SECONDS
        while count < MAX_ROWS and time.monotonic() < until:
            entries = await self._log.last(ROWS, before, _PAGE)
            found += entries
            if len(entries) < _PAGE:
                break
            before = entries[-1].place
            reported = await asyncio.to_thread(read_rows, entries, self._own.sealer)
            count += sum(len(each.rows) for _, each in reported)
        await self._took(found[::-1])
        self._is_begun = True

    async def _took(self, entries: list[LogEntry]) -> None:
        if not entries:
            return
        reported = await asyncio.to_thread(read_rows, entries, self._own.sealer)
        self._place = entries[-1].place
        for _, each in reported:
            self._take(each)

    def _take(self, reported: PackedRows) -> None:
        if reported.forgotten is not None:
            self.forget(reported.forgotten, reported.at)
            return
        self._heard[reported.worker] = max(reported.at, self._heard.get(reported.worker, 0.0))
        self._machines[reported.machine] = self._heard[reported.worker]
        self._dropped[reported.worker] = reported.dropped
        for row in reported.rows:
            if row.at <= self._forgotten.get(row.key, 0.0):
                continue  # its process did not know of the order yet
            self._rows[row.id] = _pack(row)
            if len(self._rows) > MAX_ROWS:
                self._rows.popitem(last=False)
            if self._is_begun and reported.machine != self._own.machine:  # its own workers tell one another
                for tell in self._listeners:
                    tell(row)

    async def listed(self, wanted: Wanted) -> list[Row]:
        """The newest first."""
        await self.refresh()
        held = self._rows
        packed = list(held.values()) if wanted.ids is None else [held[id] for id in wanted.ids if id in held]
        return await asyncio.to_thread(lambda: wanted.page(self._as_it_is(_unpack(each)) for each in packed))

    def find(self, id: str) -> Row | None:
        found = self._rows.get(id)
        return self._as_it_is(_unpack(found)) if found is not None else None

    def forget(self, key: str, until: float) -> None:
        gone = [
            row for packed in self._rows.values() if (row := _unpack(packed)).key == key and row.at <= until
        ]
        self._forgotten[key] = max(until, self._forgotten.get(key, 0.0))
        for row in gone:
            del self._rows[row.id]
            if row.state == "running":
                for tell in self._listeners:
                    tell(wiped(row))

    def _as_it_is(self, row: Row) -> Row:
        """The row's current state: an exchange in a process that has ended is not running any more."""
        if row.state != "running":
            return row
        silent = self._wall() - self._heard.get(row.worker, row.at)
        if silent < _SILENT_SECONDS:
            return row
        text = f"the process that handled it ({row.worker}) no longer responds"
        return msgspec.structs.replace(row, state="failed", error=text)


# Recordings that wait to be written for the other machines.
MAX_WAITING_BODIES: Final = 1_000
MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""Bytes of one recorded exchange that is sent to other machines, sealed and compressed."""
_BODY_CALL_SECONDS: Final = 10.0


class FleetBodies:
    def __init__(self, own: FleetMember, shelf: TraceShelf, settings: Callable[[], TraceSettings]) -> None:
        self.dropped = 0
        """Recordings that can be opened on this machine only: too many at once, or too large."""
        self._log = own.log
        self._shelf = shelf
        self._settings = settings
        self._waiting: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """Names of files, with the key and the id of each."""
        self._wake = asyncio.Event()
        self._guard = Guarded(own.note, "fleet: bodies")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._guard.forever(self._hand_over_all))

    async def close(self) -> None:
        await stop(self._task)

    def offer(self, key: str, id: str, name: str) -> None:
        """A file has been written."""
        if not self._settings().fleet_bytes:
            return
        self._waiting[name] = key, id
        if len(self._waiting) > MAX_WAITING_BODIES:
            self._waiting.popitem(last=False)
            self.dropped += 1
        self._wake.set()

    def forget(self, key: str) -> None:
        for name in [name for name, (owner, _) in self._waiting.items() if owner == key]:
            del self._waiting[name]

    async def find(self, key: str, id: str) -> bytes | None:
        """The recording as it was handed over. Raises StoreDown."""
        try:
            async with asyncio.timeout(_BODY_CALL_SECONDS):
                return await self._log.find(key, id)
        except TimeoutError:
            raise StoreDown(f"the store does not answer within {_BODY_CALL_SECONDS:g} s") from None

    async def _hand_over_all(self) -> None:
        await self._wake.wait()
        self._wake.clear()
        while self._waiting:
            name = next(iter(self._waiting))
            try:
                async with asyncio.timeout(_BODY_CALL_SECONDS):
                    await self._hand_over(name, *self._waiting[name])
            except (StoreDown, TimeoutError):
                await asyncio.sleep(_PAUSE_SECONDS)  # and then one more time
                continue
            except Exception:  # a bug with one recording, which is reported, does not block the others
                self._waiting.pop(name, None)
                self.dropped += 1
                self._wake.set()
                raise
            self._waiting.pop(name, None)

    async def _hand_over(self, name: str, key: str, id: str) -> None:
        settings = self._settings()
        data = await asyncio.to_thread(self._shelf.sealed, name)
        if data is None:
            return  # swept or wiped meanwhile
        if len(data) > min(MAX_BODY_BYTES, settings.fleet_bytes):
            self.dropped += 1
            return
        seconds = settings.keep_hours * 3600
        await self._log.keep(key, id, data, seconds=seconds, max_bytes=settings.fleet_bytes)
        if name not in self._waiting:  # its caller was wiped while it was being written
            await self._log.forget(key)


# Rows that wait to be sent to the other machines.
MAX_WAITING_ROWS: Final = 2_000
_EVERY_SECONDS: Final = 0.5
_ENTRIES_AT_ONCE: Final = 10
"""Entries per turn: requests take precedence over this work."""
_SEND_SECONDS: Final = 5.0
_BEAT_SECONDS: Final = 10.0
"""While exchanges run, the other processes hear of this one at least this often."""
_LAST_WORDS_SECONDS: Final = 1.0


class RowSender:
    def __init__(
        self,
        own: FleetMember,
        rows: ExchangeRows,
        reported: Callable[[Row], Row],
        most: int = MAX_WAITING_ROWS,
    ) -> None:
        """`reported`: makes a row as others may see it."""
        self.dropped = 0
        """Rows that are not reported to the others."""
        self.trouble = ""
        self.telling = asyncio.Lock()
        self._own = own
        self._rows = rows
        self._reported = reported
        self._most = most
        self._over: deque[Facts] = deque()
        self._seen: dict[str, tuple[object, ...]] = {}
        self._spoke = 0.0
        self._guard = Guarded(own.note, "fleet: rows")
        self._task: asyncio.Task[None] | None = None
        rows.tell_over_to(self._take)

    def start(self) -> None:
        self._task = asyncio.create_task(self._guard.forever(self._tell, lambda: _EVERY_SECONDS))

    async def close(self) -> None:
        await stop(self._task)
        with suppress(StoreDown, TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                await self.turn()

    def forget(self, key: str) -> None:
        """Drop a caller's rows that were not reported yet."""
        self._over = deque(each for each in self._over if each[CALLER] != key)

    def _take(self, facts: Facts) -> None:
        if len(self._over) >= self._most:
            self._over.popleft()
            self.dropped += 1
        self._over.append(facts)

    async def _tell(self) -> None:
        self.trouble = await _trouble(self.turn(), _SEND_SECONDS)

    async def turn(self) -> None:
        """Report new rows. Raises StoreDown."""
        async with self.telling:
            await self._turn()

    async def _turn(self) -> None:
        running = self._rows.changed(self._seen)
        over = [self._over.popleft() for _ in range(min(len(self._over), ROWS_AT_ONCE * _ENTRIES_AT_ONCE))]
        is_due = bool(self._seen) and time.monotonic() - self._spoke > _BEAT_SECONDS
        if not running and not over and not is_due:
            return
        entries = await asyncio.to_thread(self._entries, running, over)
        try:
            for entry in entries:
                await tell(self._own.log, entry)
        except BaseException:
            # Reported again with the next turn: the same row twice counts as one.
            for each in reversed(over):
                if len(self._over) < self._most:
                    self._over.appendleft(each)
                else:
                    self.dropped += 1
            for row in running:
                self._seen.pop(row.id, None)
            raise
        self._spoke = time.monotonic()

    def _entries(self, running: list[Row], over: list[Facts]) -> list[PackedRows]:
        """Runs in a thread."""
        rows = [self._reported(row) for row in (*running, *self._rows.formatted(over))]
        pages = [rows[at : at + ROWS_AT_ONCE] for at in range(0, len(rows), ROWS_AT_ONCE)] or [[]]
        own, now = self._own, time.time()
        return [pack_rows(own.machine, own.worker, now, page, own.sealer, self.dropped) for page in pages]


_LOOK_SECONDS: Final = 2.0
"""Between two reads of orders."""
_FOLLOW_SECONDS: Final = 1.0
"""Between two reads of rows, while a client follows them."""
# Ended sessions that wait to be sent to the other machines.
_MAX_UNSAID: Final = 100
_CLOCKS_APART_SECONDS: Final = 60.0


def fewer_orders(orders: Sequence[PeerCommand]) -> list[PeerCommand]:
    """Reduces orders that exceed the number allowed to wait for the store: the newest stay. Sign-outs become
    one time until which all sessions of a caller, or of everyone, have ended."""
    ends: dict[str, float] = {}
    others = []
    for order in orders:
        if order.whose or order.ended == ENDED_UP_TO:
            ends[order.whose] = max(order.ends, ends.get(order.whose, 0.0))
        else:
            others.append(order)
    if len(ends) > _MAX_UNSAID // 4:
        ends = {"": max(ends.values())}
    at = orders[-1].at
    cutoffs = [PeerCommand(at, ended=ENDED_UP_TO, ends=end, whose=whose) for whose, end in ends.items()]
    return [*cutoffs, *others[-_MAX_UNSAID // 2 :]]


class FleetTraces(Peers):
    def __init__(
        self,
        own: FleetMember,
        rows: ExchangeRows,
        reported: Callable[[Row], Row],
        shelf: TraceShelf,
        settings: Callable[[], Settings],
    ) -> None:
        self._sender = RowSender(own, rows, reported)
        self._rows = FleetRows(own)
        self._bodies = FleetBodies(own, shelf, lambda: settings().trace)
        self._guard = Guarded(own.note, "fleet: orders")
        self._own = own
        self._log = own.log
        self._shelf = shelf
        self._settings = settings
        self._unsaid: deque[PeerCommand] = deque()
        """Orders that are not in the store yet."""
        self._places = {ORDERS: "", SIGN_OUTS: ""}
        self._unread_sign_outs: deque[float] = deque(maxlen=_MAX_SIGN_OUTS)
        """The times of the sign-outs read since the log was last read to its end."""
        self._is_caught_up = False
        self._trouble = ""
        self._task: asyncio.Task[None] | None = None

    async def start(self, obey: Obey) -> None:
        look = partial(self._look, obey)
        await self._guard.run(look)
        self._task = asyncio.create_task(self._guard.forever(look, lambda: _LOOK_SECONDS))
        self._sender.start()
        self._bodies.start()

    async def close(self) -> None:
        await stop(self._task)
        await self._bodies.close()
        await self._sender.close()

    @property
    def unsent(self) -> int:
        return self._sender.dropped

    def status(self) -> dict[str, Any]:
        unreported = self._sender.dropped + self._rows.dropped
        return {
            "machines": self._rows.machines,
            "trouble": self._rows.trouble or self._sender.trouble or self._trouble or None,
            "unreported": unreported,
            "untold": unreported,  # its former name
            "unshared": self._bodies.dropped,
        }

    async def rows(self, wanted: Wanted) -> list[Row]:
        return await self._rows.listed(wanted)

    async def find(self, id: str) -> Row | None:
        await self._rows.refresh()
        return self._rows.find(id)

    def listen(self, listener: Listener) -> None:
        listener.when_closed(self._rows.listen(listener.tell))
        listener.when_closed(asyncio.create_task(self._follow()).cancel)

    async def _follow(self) -> None:
        """Keep the rows up to date, until it is cancelled."""
        while True:
            await self._rows.refresh()
            await asyncio.sleep(_FOLLOW_SECONDS)

    async def unbooked(self, since: float, until: float) -> list[Row]:
        if self._settings().store.url.value.startswith("postgres"):
            return []
        return await self._rows.listed(Wanted(since=since, until=until))

    # Orders.

    async def command(self, command: PeerCommand) -> str:
        """Send a command to every process of the fleet, within seconds; if that fails, as soon as the store
        is back."""
        self._unsaid.append(command)
        if len(self._unsaid) > _MAX_UNSAID:
            self._unsaid = deque(fewer_orders(self._unsaid))
        return await _trouble(self._say(), _CALL_SECONDS)

    async def _say(self) -> None:
        while self._unsaid:
            order = self._unsaid[0]
            await tell(self._log, order)
            if self._unsaid and self._unsaid[0] is order:
                self._unsaid.popleft()

    async def _look(self, obey: Obey) -> None:
        said = await _trouble(self._say(), _CALL_SECONDS)
        self._trouble = said or await _trouble(self._obey_all(obey), _CALL_SECONDS)

    async def _obey_all(self, obey: Obey) -> None:
        await self._obey_log(ORDERS, obey)
        await self._obey_log(SIGN_OUTS, obey)
        times = self._unread_sign_outs
        if len(times) == _MAX_SIGN_OUTS:
            # The log is full. Older sign-outs may be gone, of sessions that began before these.
            ends = times[0] + _CLOCKS_APART_SECONDS + SESSION_SECONDS
            await obey(PeerCommand(times[0], ended=ENDED_UP_TO, ends=ends), True)
        times.clear()
        self._is_caught_up = True

    async def _obey_log(self, name: str, obey: Obey) -> None:
        while True:
            entries = await self._log.heard(name, self._places[name], _PAGE)
            for entry in entries:
                self._places[name] = entry.place
                order = read_order(entry)
                if order is not None:
                    if name == SIGN_OUTS:
                        self._unread_sign_outs.append(order.at)
                    await obey(order, self._is_caught_up)
            if len(entries) < _PAGE:
                return

    # Removing one caller's data.

    async def forget(self, key: str, until: float) -> int:
        """In the store, and on every machine."""
        self.let_go(key, until)
        gone = await self._log.forget(key)
        await self.forget_rows(key, until)
        await tell(self._log, PackedRows(self._own.machine, self._own.worker, until, forgotten=key))
        await tell(self._log, PeerCommand(until, forgotten=key))
        return gone

    async def forget_rows(self, key: str, until: float) -> None:
        async with self._sender.telling:  # rows being sent are in the log then
            await self._forget_logged(key, until)

    async def _forget_logged(self, key: str, until: float) -> None:
        before = ""
        while entries := await self._log.last(ROWS, before, _PAGE):
            before = entries[-1].place
            await self._without(key, until, entries)
            if len(entries) < _PAGE:
                break

    def let_go(self, key: str, until: float) -> None:
        self._sender.forget(key)
        self._bodies.forget(key)
        self._rows.forget(key, until)

    async def _without(self, key: str, until: float, entries: list[LogEntry]) -> None:
        """Write entries again without the caller's rows, if they have any: an entry has rows of many
        callers."""
        for place, reported in await asyncio.to_thread(read_rows, entries, self._own.sealer):
            left = [row for row in reported.rows if row.key != key or row.at > until]
            if len(left) == len(reported.rows):
                continue
            if left:
                await tell(
                    self._log,
                    pack_rows(
                        reported.machine,
                        reported.worker,
                        reported.at,
                        left,
                        self._own.sealer,
                        reported.dropped,
                    ),
                )
            await self._log.remove(ROWS, [place])

    # Bodies.

    def offer(self, row: Row) -> None:
        self._bodies.offer(row.key, row.id, file_name(row))

    async def trace(self, row: Row) -> tuple[Trace | None, str]:
        where = f"recorded by {row.worker}"
        settings = self._settings()
        if not settings.trace.fleet_bytes:
            return None, f"{where}, and bodies stay where they are recorded (trace.fleet_bytes = 0)"
        try:
            data = await self._bodies.find(row.key, row.id)
        except StoreDown as down:
            return None, f"{where}; the fleet's store is not available: {down}"
        alone = settings.server.secret.source.startswith(("file:", "random"))
        locked = f"{where}, and sealed with another secret: set server.secret, the same on every machine"
        if data is None:
            text = (
                f"{where}, and not in the fleet's store: it is not there yet, was too large, or was deleted"
            )
            return None, locked if alone else text
        try:
            return await asyncio.to_thread(self._shelf.opened, data, row.key, row.id), ""
        except (Unreadable, ValueError, zlib.error, msgspec.MsgspecError):
            return None, locked
