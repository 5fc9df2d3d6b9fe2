"""How the C library hands out memory, for a process that lives for months and meets large bodies."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import sys
from collections.abc import AsyncIterator, Callable
from typing import Final

# <malloc.h> of glibc
_MMAP_THRESHOLD: Final = -3
_TRIM_THRESHOLD: Final = -1
_ARENA_MAX: Final = -8

_LARGE_BYTES: Final = 2 * 1024 * 1024
"""A block of its own is new pages each time, and the kernel takes longer to hand out a page than to copy one:
a turn of 500 KB took 250 of them, a sixth of its time."""
_FREE_BYTES: Final = 16 * 1024 * 1024
"""At the end of the heap, before it is given back at once."""
_ARENAS: Final = 2
_TRIM_SECONDS: Final = 60.0


def give_large_blocks_back() -> None:
    """What a large body took goes back to the system when it is freed, and of smaller ones what is more than
    the next will need; the rest of it once a minute (`holes_given_back`).

    glibc moves its own threshold up with the first large block that is freed, and from then on puts such
    blocks between small ones, where they leave holes; and every thread has a heap of its own. After 96 bodies
    of 2 MB beside other traffic a gateway held 103 MiB, and 79 with this. Other C libraries are left as they
    are.
    """
    if (mallopt := _found("mallopt")) is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
        mallopt(_TRIM_THRESHOLD, _FREE_BYTES)
        mallopt(_ARENA_MAX, _ARENAS)


@contextlib.asynccontextmanager
async def holes_given_back(every_seconds: float = _TRIM_SECONDS) -> AsyncIterator[None]:
    """Meanwhile pages of the heap that nobody uses go back to the system, also those between others.

    By itself glibc gives only the end of its heap back. What lives long and was put behind the pieces of a
    large body keeps their place: a gateway grew from 82 to 87 MiB within an hour, in two steps.
    """
    trim = _found("malloc_trim")
    if trim is None:
        yield
        return
    task = asyncio.create_task(_trim_again_and_again(trim, every_seconds))
    try:
        yield
    finally:
        task.cancel()


async def _trim_again_and_again(trim: Callable[[int], int], every_seconds: float) -> None:
    while True:
        await asyncio.sleep(every_seconds)
        trim(0)


def _found(name: str) -> Callable[..., int] | None:
    """A function of glibc; None where the C library is another."""
    if sys.platform != "linux":
        return None
    with contextlib.suppress(OSError, AttributeError):
        found: Callable[..., int] = getattr(ctypes.CDLL(None), name)
        return found
    return None
