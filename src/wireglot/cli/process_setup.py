"""The process of a gateway: its event loop, garbage collector, memory, descriptors and privileges."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

T = TypeVar("T")

_THRESHOLDS: Final = (10_000, 3, 10)
_WHOLE_LOOK_SECONDS: Final = 3600.0
_WHOLE_LOOK_OBJECTS: Final = 250_000
_OLDEST: Final = 2


def run_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end on the fastest loop there is."""
    with calm_collector():
        try:
            import uvloop
        except ImportError:  # Windows has none
            return asyncio.run(work)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(work)


@contextmanager
def calm_collector() -> Iterator[None]:
    """One large body makes thousands of objects, hardly any of them garbage that reference counts leave.

    Looking through them every 700 objects was about a tenth of the work for it. What is loaded by now stays.
    At most 40,000 young objects are looked at in one go, which takes 20 to 30 ms.

    What has lived through two looks is not looked at again, though it goes as ever when its last reference
    does: a look through 1,000 open streams and all else took 126 ms. An exchange leaves no circles
    (tests/gateway/faults/test_faults_garbage.py). If others do, a look that spares nothing finds them: where
    much more is spared than after the last one, and at most once an hour.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    spared = gc.get_freeze_count()
    whole_look_due = time.monotonic() + _WHOLE_LOOK_SECONDS
    is_whole = False

    def spare(phase: str, look: Mapping[str, Any]) -> None:
        nonlocal whole_look_due, is_whole, spared
        if look["generation"] == 0:
            return
        if phase == "stop":
            gc.freeze()
            if is_whole:
                is_whole, spared = False, gc.get_freeze_count()
        elif look["generation"] == _OLDEST and (now := time.monotonic()) >= whole_look_due:
            whole_look_due = now + _WHOLE_LOOK_SECONDS
            is_whole = gc.get_freeze_count() > spared + _WHOLE_LOOK_OBJECTS
            if is_whole:
                gc.unfreeze()

    gc.set_threshold(*_THRESHOLDS)
    gc.callbacks.append(spare)
    try:
        yield
    finally:
        gc.callbacks.remove(spare)
        gc.set_threshold(*before)
        gc.unfreeze()


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
    of 2 MB during other traffic a gateway held 103 MiB, and 79 with this. Other C libraries are left as they
    are.
    """
    if (mallopt := _found("mallopt")) is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
        mallopt(_TRIM_THRESHOLD, _FREE_BYTES)
        mallopt(_ARENA_MAX, _ARENAS)


@contextlib.asynccontextmanager
async def holes_given_back(every_seconds: float = _TRIM_SECONDS) -> AsyncIterator[None]:
    """Meanwhile unused pages of the heap go back to the system, also those between others.

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


def raise_limit() -> None:
    """Each request holds two, its client's and its provider's. The soft limit is 1024 on most systems, for
    the sake of programs that use select(); this one does not."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # another system, or one that forbids it
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


DEBUGGABLE: Final = "WIREGLOT_DEBUGGABLE"
"""Set: debuggers and profilers of the same user may look into the process."""

# <linux/prctl.h>
_SET_DUMPABLE: Final = 4
_SET_NO_NEW_PRIVS: Final = 38


def give_up(environ: Mapping[str, str] = os.environ) -> None:
    """Files for their owner alone, no programs with more rights than ours, no memory for others to read.

    Not a dump of its memory is written when it dies, and no process of the same user can attach to it. What
    the system does not know is left as it is: a unit or a container can do the same from outside.
    """
    os.umask(0o077)
    debuggable = bool(environ.get(DEBUGGABLE))
    if not debuggable:
        with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no such module
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            prctl = ctypes.CDLL(None).prctl
            prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            if not debuggable:
                prctl(_SET_DUMPABLE, 0, 0, 0, 0)
