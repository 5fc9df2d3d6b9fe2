"""Rows of all workers of one supervisor: each answers questions about its own on a socket in their directory.

A question is one line of JSON, and so is its answer; only whoever wants to listen gets a line for each row as
it changes. A worker that does not answer in time is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import msgspec

from wireglot.gateway.trace.wanted import Wanted
from wireglot.traces.trace import Row

_TIMEOUT_SECONDS: Final = 2.0
_LINE_BYTES_MOST: Final = 64 * 1024 * 1024
_GONE: Final = "the worker that answered it has gone"
_LOOK_SECONDS: Final = 2.0
"""Between two looks for workers that have come or gone, while somebody listens."""


class PeerRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Any of these, one at a time."""

    rows: Wanted | None = None
    find: str = ""
    forget: str = ""
    """A key, whose rows go."""
    record_until: float | None = None
    ended: tuple[str, float] | None = None
    """A session of the inspector, and when it would have ended by itself."""
    status: bool = False
    live: bool = False


class PeerResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    rows: list[Row] = []
    count: int = 0
    """Rows that were forgotten."""
    dropped: int = 0
    until: float = 0.0
    ended: list[tuple[str, float]] = []


Answerer = Callable[[PeerRequest], Awaitable[PeerResponse]]
Streamer = Callable[[Callable[[PeerResponse], Coroutine[Any, Any, None]]], Coroutine[Any, Any, None]]
"""Tells each news to what it is given, until it is cancelled."""

_encode = msgspec.json.Encoder().encode


class RowSiblings:
    def __init__(self, directory: str, index: int, answer: Answerer, stream: Streamer) -> None:
        self._directory = Path(directory)
        self._own = self._directory / f"rows-{index}.sock"
        self._answer = answer
        self._stream = stream
        self._server: asyncio.Server | None = None
        self._streams: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, str(self._own), limit=_LINE_BYTES_MOST)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            self._own.unlink(missing_ok=True)
        for task in list(self._streams):
            task.cancel()

    def others(self) -> list[Path]:
        return [path for path in sorted(self._directory.glob("rows-*.sock")) if path != self._own]

    async def ask(self, question: PeerRequest) -> list[PeerResponse]:
        """What the others say, each that answers."""
        told = await asyncio.gather(*(self._ask(path, question) for path in self.others()))
        return [each for each in told if each is not None]

    async def _ask(self, path: Path, question: PeerRequest) -> PeerResponse | None:
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS), _line(path, question) as reader:
                return msgspec.json.decode(await reader.readline(), type=PeerResponse)
        except (OSError, ValueError, msgspec.MsgspecError):  # a timeout is an OSError too
            return None

    async def listen(self, heard: Callable[[PeerResponse], None]) -> None:
        """Tell what all others have to tell, until it is cancelled."""
        tasks: dict[Path, asyncio.Task[None]] = {}
        try:
            while True:
                for path in self.others():
                    if path not in tasks or tasks[path].done():
                        tasks[path] = asyncio.create_task(self._listen(path, heard))
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            for task in tasks.values():
                task.cancel()

    async def _listen(self, path: Path, heard: Callable[[PeerResponse], None]) -> None:
        running: dict[str, Row] = {}
        with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):
            async with _line(path, PeerRequest(live=True)) as reader:
                before = await self._ask(path, PeerRequest(rows=Wanted(status="running")))
                running = {row.id: row for row in before.rows} if before is not None else {}
                while data := await reader.readline():
                    told = msgspec.json.decode(data, type=PeerResponse)
                    for row in told.rows:
                        if row.state == "running":
                            running[row.id] = row
                        else:
                            running.pop(row.id, None)
                    heard(told)
        # Who ends in good order ends its exchanges first.
        ended = [msgspec.structs.replace(row, state="failed", error=_GONE) for row in running.values()]
        if ended:
            heard(PeerResponse(rows=ended))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError, asyncio.CancelledError):
                question = msgspec.json.decode(await reader.readline(), type=PeerRequest)
                if question.live:
                    await self._tell(reader, writer)
                else:
                    writer.write(_encode(await self._answer(question)) + b"\n")
                    await writer.drain()
        finally:
            self._streams.discard(task)
            writer.close()

    async def _tell(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def tell(told: PeerResponse) -> None:
            writer.write(_encode(told) + b"\n")
            await writer.drain()

        telling = asyncio.create_task(self._stream(tell))
        gone = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait((telling, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            telling.cancel()
            gone.cancel()


@contextlib.asynccontextmanager
async def _line(path: Path, question: PeerRequest) -> AsyncIterator[asyncio.StreamReader]:
    reader, writer = await asyncio.open_unix_connection(str(path), limit=_LINE_BYTES_MOST)
    try:
        writer.write(_encode(question) + b"\n")
        yield reader
    finally:
        writer.close()
