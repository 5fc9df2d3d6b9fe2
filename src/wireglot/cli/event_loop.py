"""The event loop of a process that serves, and its garbage collector: nobody else runs while that looks."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

T = TypeVar("T")

_THRESHOLDS: Final = (20_000, 5, 10)
_WHOLE_LOOK_SECONDS: Final = 3600.0
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
    At most 100,000 young objects are looked at in one go, which takes 20 to 60 ms. What is old is looked
    through once a million objects have been made that did not go by themselves; an exchange leaves none
    (tests/gateway/faults/test_faults_garbage.py).

    What has lived through such a look is not looked at by the next: with 1,000 open streams it took 80 ms
    each time. It still goes when the last reference does. Once an hour a look spares nothing, for what became
    a circle after it was spared.
    """
    before = gc.get_threshold()
    whole_look_due = time.monotonic() + _WHOLE_LOOK_SECONDS

    def spare(phase: str, look: Mapping[str, Any]) -> None:
        nonlocal whole_look_due
        if look["generation"] != _OLDEST:
            return
        if phase == "stop":
            gc.freeze()
        elif (now := time.monotonic()) >= whole_look_due:
            whole_look_due = now + _WHOLE_LOOK_SECONDS
            gc.unfreeze()

    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    gc.callbacks.append(spare)
    try:
        yield
    finally:
        gc.callbacks.remove(spare)
        gc.set_threshold(*before)
        gc.unfreeze()
