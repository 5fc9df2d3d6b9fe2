"""Ctrl-C while an answer is waited for: the loop hears of it, and its handler once the loop rests.

A handler that raises wherever the loop happens to be leaves half a connection behind, or is lost.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, Final, TypeVar

T = TypeVar("T")
_NAMES: Final = ("SIGINT", "SIGTERM", "SIGHUP")
_Handler = Callable[[int, FrameType | None], Any]


def run_heeding(runner: asyncio.Runner, work: Coroutine[Any, Any, T]) -> T:
    """What it gives. Where a signal ended it: what the signal's handler raises."""
    loop, handlers, heard = runner.get_loop(), _handlers(), list[int]()

    async def heeding() -> T:
        task = asyncio.current_task()
        assert task is not None

        def hear(number: int) -> None:
            heard.append(number)
            task.cancel()

        for number in handlers:
            loop.add_signal_handler(number, hear, number)
        return await work

    try:
        return runner.run(heeding())
    finally:
        for number, handler in handlers.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
        if heard:
            handlers[heard[0]](heard[0], None)


def _handlers() -> dict[int, _Handler]:
    """Of signals that somebody handles: what ends the process at once, or is ignored, stays so."""
    # Windows' loops hear no signals; elsewhere those of the main thread do.
    if not hasattr(signal, "SIGHUP") or threading.current_thread() is not threading.main_thread():
        return {}
    numbers = [int(getattr(signal, name)) for name in _NAMES]
    return {number: handler for number in numbers if callable(handler := signal.getsignal(number))}
