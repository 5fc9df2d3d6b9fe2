"""`wireglot serve` to count in: nothing happens in it by the clock, and nothing is collected.

    python -m proofs.guard.serve serve --config FILE

Rows and documents of finished requests are gathered for a moment and written together. Under callgrind, and
beside others on the machine, the moment is over before the next request: each would be written alone, or with
however many happened to be done. So short timers wait here until the process gets SIGUSR1. Longer ones, for
what is done every few seconds whether there are requests or not, never run out.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import Callable
from contextvars import Context
from typing import TypeVarTuple, Unpack

import uvloop

TICK = signal.SIGUSR1
SHORT_SECONDS = 1.0
_NEVER_SECONDS = 86_400.0


_Arguments = TypeVarTuple("_Arguments")


class HeldLoop(uvloop.Loop):
    """An event loop whose short timers run out together, when `tick` says so."""

    def __init__(self) -> None:
        super().__init__()
        self._held: list[asyncio.TimerHandle] = []

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[_Arguments]], object],
        *args: *_Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        if delay <= 0:
            return super().call_later(delay, callback, *args, context=context)
        if delay > SHORT_SECONDS:
            return super().call_later(_NEVER_SECONDS, callback, *args, context=context)
        handle = asyncio.TimerHandle(self.time() + delay, callback, args, self, context)
        self._held.append(handle)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[_Arguments]], object],
        *args: *_Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_later(when - self.time(), callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It stays among those that are held, and is left out of the next tick."""

    def tick(self) -> None:
        due, self._held = self._held, []
        for handle in due:
            if not handle.cancelled():
                handle._run()


def hold_timers() -> None:
    """Let every event loop from now on be one that is reported when its timers run out."""

    def new_loop() -> HeldLoop:
        loop = HeldLoop()
        signal.signal(TICK, lambda *_: loop.call_soon_threadsafe(loop.tick))
        return loop

    gc.disable()
    uvloop.new_event_loop = new_loop


def main() -> int:
    from wireglot.cli import main as wireglot

    hold_timers()
    return wireglot(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
