"""Background work: an error in it is reported, and does not end it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from wireglot.gateway.observe.log import Note
from wireglot.stores.base import StoreDown

PAUSE_SECONDS: Final = 1.0
"""After an error of work that sets its own interval: it must not spin."""
_STOP_SECONDS: Final = 5.0
"""Seconds for a cancelled task to end."""


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How often stored state is checked, renewed and retried. Tests use another pace."""

    store_look_seconds: float = 2.0
    """Between two checks of whether the store answers."""
    budgets_look_seconds: float = 10.0
    """Between two checks of how much of their budgets keys have used, for the metrics."""
    keys_look_seconds: float = 1.0
    """Between two checks for changed keys, give or take a fifth: workers do not read all at once."""
    background_look_seconds: float = 1.0
    """Between two checks for orders to cancel, which come from another process."""
    background_follow_seconds: float = 0.25
    """Between two reads of events from the store, if another process works on the response."""
    claim_lease_seconds: float = 30.0
    """After this time without a renewal an idempotency claim is free again: its process has died."""
    claim_beat_seconds: float = 10.0
    """Between two renewals of a claim."""


class Guarded:
    """Runs one kind of work repeatedly. The same trouble is reported once, until the work has succeeded
    again."""

    def __init__(self, note: Note, where: str) -> None:
        """`where`: what the log calls the work."""
        self._note = note
        self._where = where
        self.last_bug = ""
        """The kind of bug that was reported last; "" after a success."""

    async def run(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Returns whether it succeeded."""
        try:
            await work()
        except StoreDown:
            return False  # State checks the store, and reports it
        except Exception as bug:  # background work: a bug in it is reported, and it continues
            self.failed(bug)
            return False
        self.last_bug = ""
        return True

    def failed(self, bug: Exception) -> None:
        if self.last_bug != type(bug).__name__:
            self.last_bug = type(bug).__name__
            self._note("error", "bug", type=self.last_bug, where=self._where)

    async def forever(
        self, work: Callable[[], Awaitable[None]], every: Callable[[], float] | None = None
    ) -> None:
        """`every`: seconds to the next run. Without it the work itself waits until there is something to
        do."""
        while True:
            if every is not None:
                await asyncio.sleep(every())
            if not await self.run(work) and every is None:
                await asyncio.sleep(PAUSE_SECONDS)


async def stop(*tasks: asyncio.Task[None] | None) -> None:
    """Cancel tasks and wait for a bounded time: one that does not end must not keep others from closing."""
    found = [task for task in tasks if task is not None]
    for task in found:
        task.cancel()
    if found:
        done, _ = await asyncio.wait(found, timeout=_STOP_SECONDS)
        for task in done:
            if not task.cancelled():
                task.exception()  # marks it as seen
