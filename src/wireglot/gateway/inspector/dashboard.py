"""A stretch of time in steps: counts, percentiles of what was really measured, tokens, money, losses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal

import msgspec

from wireglot.stores.records import MICRO, UsageRow, model_of
from wireglot.traces.trace import Row

By = Literal["model", "provider", "key"]
BY: Final[tuple[By, ...]] = ("model", "provider", "key")
_STEPS: Final = (1, 5, 10, 30, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86_400, 7 * 86_400)
_STEPS_USUAL: Final = 60
STEPS_MOST: Final = 500
GROUPS_SHOWN: Final = 30
_PERCENTILES: Final = (50, 95, 99)
_FAILED: Final = frozenset({"error", "gateway_abort", "crash"})

_NAMES: Final[dict[By, Callable[[UsageRow], str]]] = {
    "model": model_of,
    "provider": lambda row: row.provider,
    "key": lambda row: row.caller,
}


class Span(msgspec.Struct, frozen=True):
    """Unix seconds. Steps begin at whole multiples of `step`."""

    since: int
    until: int
    step: int

    @property
    def times(self) -> list[int]:
        first = self.since - self.since % self.step
        return list(range(first, self.until, self.step))

    def place(self, milliseconds: int) -> int:
        return (milliseconds // 1000 - (self.since - self.since % self.step)) // self.step


def usual_step(since: int, until: int) -> int:
    for step in _STEPS:
        if (until - since) / step <= _STEPS_USUAL * 2:
            return step
    return max(_STEPS[-1], math.ceil((until - since) / STEPS_MOST))


def percentile(ordered: Sequence[float], percent: int) -> float | None:
    """By nearest rank: a value that was really measured. None where there is none."""
    if not ordered:
        return None
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def charted(rows: Iterable[UsageRow], span: Span, by: By, groups_most: int = GROUPS_SHOWN) -> dict[str, Any]:
    """The series of all rows together, and of the largest groups."""
    found = list(rows)
    count = len(span.times)
    groups: dict[str, list[UsageRow]] = {}
    name_of = _NAMES[by]
    for row in found:
        groups.setdefault(name_of(row), []).append(row)
    largest = sorted(groups, key=lambda name: (-len(groups[name]), name))
    shown = largest[:groups_most]
    return {
        "times": span.times,
        "total": _summed(found),
        "series": _series(found, span, count),
        "groups": [
            {"name": name, "total": _summed(groups[name]), "series": _series(groups[name], span, count)}
            for name in shown
        ],
        "more_groups": len(largest) - len(shown),
        "losses": _features(found),
    }


def graded(rows: Iterable[Row]) -> dict[str, int]:
    """Losses by grade, of the exchanges that are still in the list."""
    grades = Counter({"serious": 0, "degraded": 0, "harmless": 0})
    for row in rows:
        if row.losses is not None:
            grades.update(msgspec.structs.asdict(row.losses))
    return dict(grades)


def _series(rows: list[UsageRow], span: Span, count: int) -> dict[str, list[Any]]:
    steps: list[list[UsageRow]] = [[] for _ in range(count)]
    for row in rows:
        place = span.place(row.started)
        if 0 <= place < count:
            steps[place].append(row)
    summed = [_flat(_summed(step)) for step in steps]
    return {name: [each[name] for each in summed] for name in _flat(_summed([]))}


def _summed(rows: list[UsageRow]) -> dict[str, Any]:
    ended = [row for row in rows if row.outcome]
    latency = sorted(row.finished - row.started for row in ended if row.finished >= row.started > 0)
    first = sorted(row.first_byte for row in ended if row.first_byte > 0)
    return {
        "requests": len(rows),
        "errors": sum(row.outcome in _FAILED for row in ended),
        "left": sum(row.outcome == "client_abort" for row in ended),
        "open": len(rows) - len(ended),
        "latency_ms": {f"p{each}": percentile(latency, each) for each in _PERCENTILES},
        "first_ms": {f"p{each}": percentile(first, each) for each in _PERCENTILES},
        "input_tokens": sum(row.total_input for row in ended),
        "output_tokens": sum(row.total_output for row in ended),
        "cached_tokens": sum(row.cache_read for row in ended),
        "cost": sum(row.cost or 0 for row in ended) / MICRO,
        "unpriced": sum(row.cost is None for row in ended),
        "lossy": sum(bool(row.losses) for row in ended),
    }


def _flat(summed: dict[str, Any]) -> dict[str, Any]:
    """`latency_ms: {p50: 1}` -> `latency_p50: 1`."""
    flat: dict[str, Any] = {}
    for name, value in summed.items():
        if isinstance(value, dict):
            flat |= {f"{name.removesuffix('_ms')}_{each}": number for each, number in value.items()}
        else:
            flat[name] = value
    return flat


def _features(rows: list[UsageRow]) -> list[dict[str, Any]]:
    """How many requests had a loss of this feature, the most first."""
    counted = Counter(feature for row in rows for feature in row.losses)
    return [{"feature": feature, "requests": times} for feature, times in counted.most_common()]
