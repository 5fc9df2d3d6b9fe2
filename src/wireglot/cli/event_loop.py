"""The event loop of a process that serves, and its garbage collector: nobody else runs while that looks."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Coroutine, Iterator, Mapping
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
