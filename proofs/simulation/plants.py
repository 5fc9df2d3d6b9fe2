"""Defects that are put into the gateway on purpose, to see that the laws find them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec

from proofs.simulation.patches import replace
from wireglot.gateway.config.watch import Watcher
from wireglot.gateway.entry import gates
from wireglot.gateway.state.ledger import drain
from wireglot.gateway.state.quotas.settlements import Settlements
from wireglot.http.server.connection import ServerReply
from wireglot.stores.journal import disk
from wireglot.stores.journal.files import Segment
from wireglot.stores.records import UsageRow
from wireglot.stores.sqlite.worker_threads import WriterThread

_ENDS: Final = (b"event: message_stop", b"[DONE]", b"event: response.completed", b"finishReason")


async def _wait_for(work: Awaitable[Any], timeout: float) -> Any:
    """`asyncio.wait_for` as Python 3.11 has it: a cancellation that meets the end of the work is lost."""
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()

    def release(_: object = None) -> None:
        if not waiter.done():
            waiter.set_result(None)

    timer = loop.call_later(timeout, release)
    task = asyncio.ensure_future(work)
    task.add_done_callback(release)
    try:
        try:
            await waiter
        except asyncio.CancelledError:
            if task.done():
                return task.result()
            task.cancel()
            await asyncio.wait({task})
            raise
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait({task})
        raise TimeoutError
    finally:
        timer.cancel()


def _swallow_cancellation() -> None:
    async def run(self: Any) -> None:
        while True:
            if self._due:
                await asyncio.sleep(self._settle)
            else:
                with suppress(TimeoutError):
                    await _wait_for(self._wake.wait(), self.interval)
            self._wake.clear()
            asked, self._asked = self._asked, False
            self.step(asked)

    replace(Watcher, run=run)


def _write_rows_twice() -> None:
    once = drain.collapsed

    def twice(rows: list[UsageRow]) -> list[UsageRow]:
        found = once(rows)
        return [*found, *(msgspec.structs.replace(row, id=f"{row.id}b") for row in found if row.outcome)]

    replace(drain, collapsed=twice)


def _end_streams_twice() -> None:
    once = ServerReply.write

    def write(self: ServerReply, data: bytes) -> None:
        once(self, data)
        if any(end in data for end in _ENDS) and random.random() < 0.3:
            once(self, data)

    replace(ServerReply, write=write)


def _leak_permits() -> None:
    async def enter(self: gates.Gate) -> None:
        if self.try_enter():
            return
        if len(self._waiting) >= self._queue:
            raise gates.shed("too many concurrent requests: the queue is full")
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[bool] = loop.create_future()
        self._waiting.append(turn)
        timer = loop.call_later(self._seconds, gates._expire, turn)
        try:
            is_ours = await turn
        finally:  # and nothing where its owner left just as it was given
            timer.cancel()
            if turn in self._waiting:
                self._waiting.remove(turn)
        if not is_ours:
            raise gates.shed("too many concurrent requests: the request waited too long in the queue")

    replace(gates.Gate, enter=enter)


def _sync_no_journal() -> None:
    replace(Segment, sync=lambda self: None)
    replace(disk.LocalDisk, kernel_sync=lambda self: None)


def _sync_no_store() -> None:
    once = WriterThread.do

    async def do(self: Any, work: Any, after: Any = None, *, synced: bool = True) -> Any:
        return await once(self, work, after, synced=False)

    replace(WriterThread, do=do)


def _settle_twice() -> None:
    once = Settlements.settle

    async def twice(self: Any, *args: Any) -> None:
        await once(self, *args)
        await once(self, *args)

    replace(Settlements, settle=twice)


class Plant(NamedTuple):
    put: Callable[[], None]
    """Puts the defect into the gateway."""
    law: str
    """The one that it breaks."""
    seed: int
    """One that finds it, as long as nothing changes the order of events: where to begin to look."""


PLANTS: Final = {
    "swallowed-cancellation": Plant(_swallow_cancellation, "no task remains", 9),
    "rows-twice": Plant(_write_rows_twice, "nothing is doubled", 1),
    "streams-end-twice": Plant(_end_streams_twice, "every stream ends once", 1),
    "leaked-permit": Plant(_leak_permits, "no permit remains", 22),
    "journal-without-sync": Plant(_sync_no_journal, "nothing is lost", 4),
    "store-without-sync": Plant(_sync_no_store, "nothing is lost", 12),
    "budget-settled-twice": Plant(_settle_twice, "budgets add up", 15),
}
