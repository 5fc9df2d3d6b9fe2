"""Waiting for what comes to hold by itself. The deadline only ends a test that fails: nothing is measured by it."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

DEADLINE_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.001
_MAX_POLL_SECONDS: Final = 0.03
"""Many a look is a request: what does not hold soon is looked at less often."""
_NEVER: Final = "it did not come to hold"


def wait_until(look: Callable[[], T | None], complaint: str = _NEVER) -> T:
    """What `look` finds, once that is true. It may raise to end the waiting."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    pause = _POLL_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline, complaint
        time.sleep(pause)
        pause = min(1.5 * pause, _MAX_POLL_SECONDS)
    return found


async def until(look: Callable[[], object], complaint: str = _NEVER) -> None:
    """The same within a loop; `look` may be a coroutine function."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    pause = _POLL_SECONDS
    while not await _seen(look):
        assert time.monotonic() < deadline, complaint
        await asyncio.sleep(pause)
        pause = min(1.5 * pause, _MAX_POLL_SECONDS)


async def _seen(look: Callable[[], object]) -> object:
    answer = look()
    return await answer if inspect.isawaitable(answer) else answer
