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

from wireglot.gateway.request.worker_thread import Threads

T = TypeVar("T")

_THRESHOLDS: Final = (10_000, 3, 10)
_WHOLE_LOOK_SECONDS: Final = 3600.0
_WHOLE_LOOK_OBJECTS: Final = 250_000
_OLDEST: Final = 2


def run_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end on the fastest available loop."""
    with calm_collector():
        try:
            import uvloop
        except ImportError:  # Windows has none
            runner = asyncio.Runner()
        else:
            runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        with runner:
            runner.get_loop().set_default_executor(Threads(thread_name_prefix="asyncio"))
            return runner.run(work)


@contextmanager
def calm_collector() -> Iterator[None]:
    """One large body creates thousands of objects, hardly any of which need the garbage collector.

    Scanning them every 700 objects was about a tenth of the work for it. Objects loaded by now are never
    scanned. At most 40,000 young objects are scanned at once, which takes 20 to 30 ms.

    Objects that survive two scans are not scanned again, though they are freed as ever with their last
    reference: a scan of 1,000 open streams and all else took 126 ms. An exchange leaves no reference cycles
    (tests/gateway/faults/test_faults_garbage.py). If other code does, a full scan finds them: when the number
    of unscanned objects has grown much since the last one, and at most once an hour.
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
"""A separately mapped block gets new pages each time, and the kernel takes longer to provide a page than to
copy one: a turn of 500 KB took 250 of them, a sixth of its time."""
_FREE_BYTES: Final = 16 * 1024 * 1024
"""Free memory at the end of the heap that is kept for the next request."""
_ARENAS: Final = 2
_TRIM_SECONDS: Final = 60.0


def give_large_blocks_back() -> None:
    """Return the memory of large bodies to the system when it is freed, and of smaller ones what exceeds the
    next one's need; the rest once a minute (`holes_given_back`).

    glibc raises its own threshold with the first large block that is freed, and from then on places such
    blocks between small ones, where they leave holes; and every thread has a separate heap. After 96 bodies
    of 2 MB during other traffic a gateway held 103 MiB, and 79 with this. Other C libraries are not changed.
    """
    if (mallopt := _found("mallopt")) is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
        mallopt(_TRIM_THRESHOLD, _FREE_BYTES)
        mallopt(_ARENA_MAX, _ARENAS)


@contextlib.asynccontextmanager
async def holes_given_back(every_seconds: float = _TRIM_SECONDS) -> AsyncIterator[None]:
    """In this context unused pages of the heap are returned to the system, also those between others.

    By itself glibc returns only the end of its heap. Long-lived objects that were placed after parts of a
    large body keep those pages: a gateway grew from 82 to 87 MiB within an hour, in two steps.
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
    """A function of glibc; None with another C library."""
    if sys.platform != "linux":
        return None
    with contextlib.suppress(OSError, AttributeError):
        found: Callable[..., int] = getattr(ctypes.CDLL(None), name)
        return found
    return None


def raise_limit() -> None:
    """Each request needs two descriptors, its client's and its provider's. The soft limit is 1024 on most
    systems, for programs that use select(); this one does not."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # another system, or one that forbids it
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


DEBUGGABLE: Final = "WIREGLOT_DEBUGGABLE"
"""If set, debuggers and profilers of the same user may inspect the process."""

# <linux/prctl.h>
_SET_DUMPABLE: Final = 4
_SET_NO_NEW_PRIVS: Final = 38


def give_up(environ: Mapping[str, str] = os.environ) -> None:
    """Make files readable by their owner only, gain no privileges through programs, and protect the memory.

    No core dump is written when it dies, and no process of the same user can attach to it. Settings that the
    system does not have are skipped: a unit or a container can set them from outside.
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
