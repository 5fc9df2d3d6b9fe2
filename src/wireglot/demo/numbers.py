"""A number that the bounds and the grid of a JSON schema accept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeGuard

_Bound = tuple[float, bool]
"""A bound, and whether the number may not be equal to it."""


def is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_for(given: Mapping[str, Any], *, whole: bool) -> int | float:
    """1 where that is allowed, else something near the bound that forbids it."""
    low, high = _low(given), _high(given)
    step = given.get("multipleOf")
    grid = Fraction(str(step)) if is_number(step) and step > 0 else None
    if whole:
        grid = Fraction(grid.numerator) if grid is not None else Fraction(1)
    if grid is not None:
        return _on_grid(grid, low, high)
    if (low is None or low[0] < 1) and (high is None or high[0] > 1):
        return 1.0
    if low is not None and high is not None:
        return (low[0] + high[0]) / 2
    if low is not None:
        return low[0] + 1 if low[1] else low[0]
    assert high is not None
    return high[0] - 1 if high[1] else high[0]


def _low(given: Mapping[str, Any]) -> _Bound | None:
    """OpenAPI's older schemas say `exclusiveMinimum: true` beside the minimum."""
    value, strict = given.get("minimum"), given.get("exclusiveMinimum")
    bound = (value, strict is True) if is_number(value) else None
    if is_number(strict) and (bound is None or strict >= bound[0]):
        return strict, True
    return bound


def _high(given: Mapping[str, Any]) -> _Bound | None:
    value, strict = given.get("maximum"), given.get("exclusiveMaximum")
    bound = (value, strict is True) if is_number(value) else None
    if is_number(strict) and (bound is None or strict <= bound[0]):
        return strict, True
    return bound


def _on_grid(grid: Fraction, low: _Bound | None, high: _Bound | None) -> int | float:
    """The multiple nearest to 1 within the bounds."""
    place = int(max(Fraction(1), grid) // grid)
    if low is not None:
        least = math.ceil(Fraction(low[0]) / grid)
        place = max(place, least + (1 if low[1] and least * grid == Fraction(low[0]) else 0))
    if high is not None:
        most = math.floor(Fraction(high[0]) / grid)
        place = min(place, most - (1 if high[1] and most * grid == Fraction(high[0]) else 0))
    made = place * grid
    return int(made) if made.denominator == 1 else float(made)
