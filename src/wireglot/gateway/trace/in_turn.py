"""Long looks at recordings, beside the loop and few at a time: whoever looks takes nothing from clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, TypeVar

from wireglot.gateway.entry.gates import Gate

T = TypeVar("T")

_WAITING_MOST: Final = 8
_WAITING_SECONDS: Final = 10.0


class InTurn:
    """Threads share one interpreter with the loop: dozens of searches at once leave it a fraction."""

    def __init__(self, at_once: int) -> None:
        self._gate = Gate(at_once, _WAITING_MOST * at_once, _WAITING_SECONDS)

    async def do(self, work: Callable[[], T]) -> T:
        """What the work gives, or raises. Raises RequestError where too many wait already."""
        await self._gate.enter()
        task = asyncio.ensure_future(asyncio.to_thread(work))
        task.add_done_callback(self._done)
        # Whoever leaves meanwhile does not end the work: the next one waits for it all the same.
        return await asyncio.shield(task)

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._gate.leave()
        if not task.cancelled():
            task.exception()  # told to whoever still waits, and to nobody else
