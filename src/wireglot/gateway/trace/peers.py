"""Other processes of the same gateway: none, the workers of one supervisor, or a fleet (`fleet_traces.py`).

Workers answer requests about their own rows on a socket in their directory. A request is one line of JSON,
and so is its answer; only a listener gets a line for each row as it changes. A worker that does not answer in
time is left out: after a short time if all are called for a list, later if one of them has what is requested.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from wireglot.gateway.trace.filters import Term
from wireglot.gateway.trace.growing import GrowingTrace
from wireglot.gateway.trace.rows import Listener
from wireglot.gateway.trace.wanted import Wanted
from wireglot_core.traces.trace import Row, Trace

_LIST_SECONDS: Final = 2.0
_EXCHANGE_SECONDS: Final = 15.0
"""For one exchange: its bodies may be megabytes, which a busy worker takes seconds to prepare."""
# Bytes of one message between workers: a whole trace.
_MAX_LINE_BYTES: Final = 64 * 1024 * 1024
_GONE: Final = "the worker that handled it has exited"
_LOOK_SECONDS: Final = 2.0
"""Between two checks for new or ended workers, while a client listens."""
_HEARD_SECONDS: Final = 5.0


_RUNNING: Final = Wanted(terms=(Term("status", "=", ("running",)),))
SESSION_SECONDS: Final = 8 * 3600
"""How long a session of the inspector is valid."""
ENDED_UP_TO: Final = "up to"
"""The value of `ended` that signs out all sessions which end by a given time."""


class PeerCommand(msgspec.Struct, frozen=True, omit_defaults=True):
    """A command to every process of the gateway: one of these fields at a time."""

    at: float
    record_until: float | None = None
    ended: str = ""
    """A session of the inspector, or `ENDED_UP_TO`."""
    ends: float = 0.0
    """When it would have ended by itself."""
    whose: str = ""
    """A hash of the session's owner; "": of an unknown session, and with `ENDED_UP_TO` of all."""
    forgotten: str | None = None


class Commanded(Protocol):
    def obey(self, command: PeerCommand, *, is_new: bool) -> None:
        """`is_new`: it was given just now, and not before this process began."""
        ...

    def standing(self) -> list[PeerCommand]:
        """The commands that a process must know when it begins."""
        ...


Obey = Callable[[PeerCommand, bool], Awaitable[None]]
"""Executes a command; the flag says whether it was given just now."""


class Peers:
    """A gateway without other processes."""

    @property
    def unsent(self) -> int | None:
        """Rows that are not reported to the others; None: there are no others."""
        return None

    async def close(self) -> None: ...

    async def rows(self, wanted: Wanted) -> list[Row]:
        return []

    async def find(self, id: str) -> Row | None:
        return None

    async def grown(self, id: str, cursor: str) -> GrowingTrace | None:
        """What is new of an exchange that runs in another process of this machine."""
        return None

    async def opened(self, id: str) -> Trace | None:
        """The recording in the memory of another process of this machine."""
        return None

    async def trace(self, row: Row) -> tuple[Trace | None, str]:
        """The recording of another machine, or why it cannot be shown here."""
        return None, ""

    async def unbooked(self, since: float, until: float) -> list[Row]:
        """Exchanges of other machines whose usage is not in the store of this one."""
        return []

    def listen(self, listener: Listener) -> None:
        """Pass it the rows of all other processes, until it is closed."""

    async def command(self, command: PeerCommand) -> str:
        """Send a command to all others. Returns why that failed, or ""."""
        return ""

    async def forget(self, key: str, until: float) -> int:
        """Remove one caller's rows and bodies. Returns the number of bodies. Raises StoreDown."""
        return 0

    async def forget_rows(self, key: str, until: float) -> None:
        """The same, for rows that were reported to the others. Raises StoreDown."""

    def let_go(self, key: str, until: float) -> None:
        """The same, for the others' rows in the memory of this process."""

    def offer(self, row: Row) -> None:
        """An exchange has been recorded."""

    async def dropped(self) -> list[int]:
        """For each process that answers: how many exchanges should have been recorded, and were not."""
        return []

    def status(self) -> dict[str, Any] | None:
        """The state of the others, for display."""
        return None


class PeerRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request to a peer: one of these fields at a time."""

    rows: Wanted | None = None
    find: str = ""
    forget: str = ""
    """A key whose rows are removed."""
    command: PeerCommand | None = None
    grown: str = ""
    """A running exchange: what is new of it since `cursor`."""
    cursor: str = ""
    opened: str = ""
    """An exchange whose bodies are in the memory of its process."""
    live: bool = False


class PeerResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    rows: list[Row] = []
    dropped: int = 0
    standing: list[PeerCommand] = []
    grown: GrowingTrace | None = None
    trace: Trace | None = None


Shown = Callable[[list[Row]], Awaitable[list[Row]]]
Answerer = Callable[[PeerRequest], Awaitable[PeerResponse]]

_encode = msgspec.json.Encoder().encode


async def _unchanged(rows: list[Row]) -> list[Row]:
    return rows


_read_request: Final = msgspec.json.Decoder(PeerRequest).decode
_read_response: Final = msgspec.json.Decoder(PeerResponse).decode


class SiblingWorkers(Peers):
    def __init__(
        self,
        directory: str,
        index: int,
        answer: Answerer,
        listen: Callable[[], Listener],
        shown: Shown = _unchanged,
    ) -> None:
        """`answer`: handles requests of the others. `listen`: returns a listener for its own rows. `shown`:
        adds to rows what only this process knows."""
        self._shown = shown
        self._directory = Path(directory)
        self._own = self._directory / f"rows-{index}.sock"
        self._answer = answer
        self._hear = listen
        self._server: asyncio.Server | None = None
        self._streams: set[asyncio.Task[Any]] = set()

    async def start(self, obey: Obey) -> None:
        self._server = await asyncio.start_unix_server(self._serve, str(self._own), limit=_MAX_LINE_BYTES)
        for said in await self._ask_all(PeerRequest()):
            for command in said.standing:
                await obey(command, False)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            self._own.unlink(missing_ok=True)
        for task in list(self._streams):
            task.cancel()

    async def rows(self, wanted: Wanted) -> list[Row]:
        return [row for said in await self._ask_all(PeerRequest(rows=wanted)) for row in said.rows]

    async def find(self, id: str) -> Row | None:
        found = [row for said in await self._ask_all(PeerRequest(find=id)) for row in said.rows]
        return found[0] if found else None

    async def grown(self, id: str, cursor: str) -> GrowingTrace | None:
        said = await self._ask_all(PeerRequest(grown=id, cursor=cursor))
        return next((each.grown for each in said if each.grown is not None), None)

    async def opened(self, id: str) -> Trace | None:
        said = await self._ask_all(PeerRequest(opened=id))
        return next((each.trace for each in said if each.trace is not None), None)

    async def command(self, command: PeerCommand) -> str:
        await self._ask_all(PeerRequest(command=command))
        return ""

    async def forget(self, key: str, until: float) -> int:
        await self._ask_all(PeerRequest(forget=key))
        return 0  # all workers share one folder of bodies

    async def dropped(self) -> list[int]:
        return [said.dropped for said in await self._ask_all(PeerRequest())]

    def listen(self, listener: Listener) -> None:
        listener.when_closed(asyncio.create_task(self._listen_all(listener)).cancel)

    # Requests to others.

    def _others(self) -> list[Path]:
        return [path for path in sorted(self._directory.glob("rows-*.sock")) if path != self._own]

    async def _ask_all(self, question: PeerRequest) -> list[PeerResponse]:
        """The answers of the others, without those that fail."""
        reported = await asyncio.gather(*(self._ask(path, question) for path in self._others()))
        return [each for each in reported if each is not None]

    async def _ask(self, path: Path, question: PeerRequest) -> PeerResponse | None:
        is_of_one = question.find or question.grown or question.opened
        seconds = _EXCHANGE_SECONDS if is_of_one else _LIST_SECONDS
        try:
            async with asyncio.timeout(seconds), _line(path, question) as reader:
                return _read_response(await reader.readline())
        except (OSError, ValueError, msgspec.MsgspecError):  # a timeout is an OSError too
            return None

    async def _listen_all(self, listener: Listener) -> None:
        tasks: dict[Path, asyncio.Task[None]] = {}
        try:
            while True:
                for path in self._others():
                    if path not in tasks or tasks[path].done():
                        tasks[path] = asyncio.create_task(self._listen(path, listener))
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            for task in tasks.values():
                task.cancel()

    async def _listen(self, path: Path, listener: Listener) -> None:
        running: dict[str, Row] = {}
        with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):
            async with _line(path, PeerRequest(live=True)) as reader:
                before = await self._ask(path, PeerRequest(rows=_RUNNING))
                running = {row.id: row for row in before.rows} if before is not None else {}
                while data := await reader.readline():
                    reported = _read_response(data)
                    for row in reported.rows:
                        if row.state == "running":
                            running[row.id] = row
                        else:
                            running.pop(row.id, None)
                        listener.tell(row)
                    listener.dropped += reported.dropped
        # A worker that shuts down in order ends its exchanges first.
        for row in running.values():
            listener.tell(msgspec.structs.replace(row, state="failed", error=_GONE))

    # Requests of others.

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError, asyncio.CancelledError):
                question = _read_request(await reader.readline())
                if question.live:
                    await self._tell(reader, writer)
                else:
                    await _write(writer, await self._answer(question))
        finally:
            self._streams.discard(task)
            writer.close()

    async def _tell(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        telling = asyncio.create_task(self._stream(writer))
        gone = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait((telling, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            telling.cancel()
            gone.cancel()

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        listener, dropped = self._hear(), 0
        try:
            while True:
                news = await self._shown(await listener.heard(_HEARD_SECONDS))
                missed, dropped = listener.dropped - dropped, listener.dropped
                if news or missed:
                    await _write(writer, PeerResponse(rows=news, dropped=missed))
        finally:
            listener.close()


async def _write(writer: asyncio.StreamWriter, reported: PeerResponse) -> None:
    writer.write(_encode(reported) + b"\n")
    await writer.drain()


@contextlib.asynccontextmanager
async def _line(path: Path, question: PeerRequest) -> AsyncIterator[asyncio.StreamReader]:
    reader, writer = await asyncio.open_unix_connection(str(path), limit=_MAX_LINE_BYTES)
    try:
        writer.write(_encode(question) + b"\n")
        yield reader
    finally:
        writer.close()
