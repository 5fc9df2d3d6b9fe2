"""Which ratios a run can stand by, and what it says instead of the others."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

LEAST_ROUNDS = 3
LEAST_CPU_SECONDS = 0.05
"""Of either side in a round. The clock is exact; what else wakes on a machine within a second is not."""
LEAST_FINISHED = 20
"""Requests or events of either side in a round."""
MAX_SPREAD = 0.5
"""From the lowest to the highest round, as a part of the median."""

TOO_SHORT = "too short"
TOO_UNEVEN = "too uneven"


class Reading(NamedTuple):
    """One round of one server."""

    cost: float
    """Processor time of one request or event; microseconds."""
    cpu_seconds: float
    finished: int


class Ratio(NamedTuple):
    """The median of the rounds' ratios, and the lowest and the highest of them."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{_short(self.value)} ({_short(self.low)}-{_short(self.high)})"

    def verdict(self, goal: float | None) -> str:
        """Whether at most `goal` was reached. A goal that some rounds reach and some miss is near."""
        if goal is None:
            return ""
        if self.low <= goal < self.high:
            return "near"
        return "reached" if self.value <= goal else "missed"


class Undocumented(NamedTuple):
    """No ratio, and why."""

    what: str
    why: str

    def __str__(self) -> str:
        return self.what

    def verdict(self, goal: float | None) -> str:
        return ""


def ratio(ours: Sequence[Reading], theirs: Sequence[Reading], base: str = "nginx") -> Ratio | Undocumented:
    """Ours to theirs, round by round; or why it would say nothing."""
    pairs = list(zip(ours, theirs, strict=False))
    if not pairs:
        return Undocumented("-", f"there is no {base} beside it")
    if len(pairs) < LEAST_ROUNDS:
        return Undocumented(TOO_SHORT, f"{len(pairs)} of {LEAST_ROUNDS} rounds")
    for name, readings in (("wireglot", ours), (base, theirs)):
        least = min(reading.cpu_seconds for reading in readings)
        if least < LEAST_CPU_SECONDS:
            text = f"{name} took {least * 1000:.0f} ms of processor time in a round"
            return Undocumented(TOO_SHORT, f"{text}, {LEAST_CPU_SECONDS * 1000:.0f} ms are needed")
        fewest = min(reading.finished for reading in readings)
        if fewest < LEAST_FINISHED:
            return Undocumented(
                TOO_SHORT, f"{name} finished {fewest} in a round, {LEAST_FINISHED} are needed"
            )
    return spread([one.cost / other.cost for one, other in pairs])


def spread(values: Sequence[float]) -> Ratio | Undocumented:
    """The median of figures of rounds, if they agree."""
    middle = median(values)
    low, high = min(values), max(values)
    if high - low > MAX_SPREAD * abs(middle):
        return Undocumented(TOO_UNEVEN, f"the rounds say {_short(low)} to {_short(high)}")
    return Ratio(middle, low, high)


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
