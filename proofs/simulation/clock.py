"""Time and randomness of a run. `install` comes before any import of wireglot: many of its functions have
`time.monotonic` and the like as defaults."""

from __future__ import annotations

import os
import random
import time
from typing import Any, Final

REAL_MONOTONIC: Final = time.monotonic
REAL_CPU: Final = time.process_time
_EPOCH: Final = 1_790_000_000.0
"""Where the wall clock of every run begins: a day in 2026."""


class Clock:
    """`now` only goes on; `offset` is what the wall clock was set forward or back by."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.offset = 0.0
        self.entropy = random.Random(0)
        self.sleep: Any = None
        """Set by the loop that runs: what a sleeping thread does."""

    def begin(self, seed: int) -> None:
        self.now, self.offset = 1000.0, 0.0
        self.entropy = random.Random(f"entropy {seed}")
        random.seed(f"chance {seed}")

    @property
    def wall(self) -> float:
        return _EPOCH + self.now + self.offset


CLOCK: Final = Clock()


def install() -> None:
    def urandom(size: int) -> bytes:
        return CLOCK.entropy.randbytes(size)

    def sleep(seconds: float) -> None:
        if CLOCK.sleep is None:
            CLOCK.now += seconds
        else:
            CLOCK.sleep(seconds)

    replaced: dict[str, Any] = {
        "time": lambda: CLOCK.wall,
        "time_ns": lambda: int(CLOCK.wall * 1e9),
        "monotonic": lambda: CLOCK.now,
        "monotonic_ns": lambda: int(CLOCK.now * 1e9),
        "perf_counter": lambda: CLOCK.now,
        "sleep": sleep,
    }
    for name, function in replaced.items():
        setattr(time, name, function)
    os.urandom = urandom
    random._urandom = urandom  # type: ignore[attr-defined]  # that of SystemRandom, and so of `secrets`
