"""A file with its threads: one that writes, one that reads, and one for reports that may take long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw

from wireglot.stores.sqlite.file import BUSY_SECONDS, Format, open_file, open_reader
from wireglot.stores.sqlite.worker_threads import WatchedConnection, WorkerThread, WriterThread

T = TypeVar("T")

Clock = Callable[[], float]
"""Unix seconds."""


class Database:
    def __init__(
        self, path: Path, form: Format, clock: Clock, busy: float, connection: apsw.Connection
    ) -> None:
        self.path = path
        self._clock = clock
        again = partial(open_file, path, form, busy=busy, create=False)
        self._writer = WriterThread("store-write", WatchedConnection(path, again, connection))
        reader = partial(open_reader, path, busy=busy)
        self._reader = WorkerThread("store-read", WatchedConnection(path, reader))
        self._reports = WorkerThread("store-report", WatchedConnection(path, reader))
        self.write, self.read, self.report = self._writer.do, self._reader.do, self._reports.do

    @classmethod
    async def open(
        cls, path: str, form: Format, *, clock: Clock = time.time, busy: float = BUSY_SECONDS
    ) -> Database:
        """The file is made or brought up to date here, so that what is wrong with it is told at the start."""
        file = Path(path).expanduser().absolute()
        connection = await asyncio.to_thread(open_file, file, form, busy=busy)
        return cls(file, form, clock, busy, connection)

    def now(self) -> int:
        return int(self._clock() * 1000)

    def now_exactly(self) -> float:
        return self._clock() * 1000

    async def close(self) -> None:
        # The writer last: the last connection of all cleans up after itself.
        await self._reader.close()
        await self._reports.close()
        await self._writer.close()
