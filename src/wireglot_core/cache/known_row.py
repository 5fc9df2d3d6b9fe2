"""The settled beginning of a conversation and what is known about it, so that its turns are not processed
again.

Clients change the last turns of a conversation (a cache marker moves on, an answer is requested again). So
only the turns before those count as settled, and results about them are kept.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Sequence
from typing import Any, Final

import msgspec

from wireglot_core.cache.texts import Texts

OPEN_TURNS: Final = 4
"""Number of turns at the end that may change."""
_MAX_LEAD: Final = 2
"""Turns at the beginning of a conversation that may be new each time, such as a system text that the client
sends elsewhere. They are compared by value and form, all others by identity."""
_LEAST: Final = 8
"""In shorter conversations, walking through the turns is as fast."""
_STEP: Final = 6
"""Turns are settled in steps of this many: recording them takes as long as walking through them."""
_MAX_ROWS: Final = 16
"""Cached conversations that begin with the same turn."""
# Results that a cached conversation keeps of one text: callers choose the models that they are made for.
_MAX_MADE: Final = 32
_VALUE_BYTES: Final = 128
"""Estimated size of one turn in a row, including the results about it."""
_ROW_BYTES: Final = 2048
_KEY: Final = "rows"


class KnownRow:
    """`made`: what callers found out about the first turns: key -> (number of turns covered, result). The
    results must not be changed."""

    __slots__ = ("made", "values")

    def __init__(self, values: tuple[Any, ...], made: dict[Hashable, tuple[int, Any]]) -> None:
        self.values: Final = values
        self.made: Final = made

    def reached(self, key: Hashable) -> tuple[int, Any] | None:
        return self.made.get(key)

    def settle(self, key: Hashable, found: Any, count: int | None = None) -> None:
        """Store a result that covers all settled turns, or the first `count` of them."""
        if len(self.made) >= _MAX_MADE and key not in self.made:
            self.made.clear()
        self.made[key] = (len(self.values) if count is None else count, found)


def row_of(memory: Texts, values: Sequence[Any]) -> KnownRow | None:
    """The row that covers the settled part of these turns, or nearly all of it. None if that part is short,
    or if none of the first turns is known."""
    settled = len(values) - OPEN_TURNS
    if settled < _LEAST:
        return None
    lead = next((at for at in range(_MAX_LEAD + 1) if memory.is_known(values[at])), None)
    if lead is None:
        return None
    anchor, before = values[lead], tuple(values[:lead])
    rows: tuple[KnownRow, ...] = memory.find(anchor, _KEY) or ()
    longest: KnownRow | None = None
    for row in rows:
        count = len(row.values)
        if count > settled or (longest is not None and count <= len(longest.values)):
            continue
        if is_alike(row.values[:lead], before) and all(map(operator.is_, row.values[lead:], values[lead:])):
            longest = row
    if longest is not None and settled - len(longest.values) < _STEP:
        return longest
    new = KnownRow(tuple(values[:settled]), dict(longest.made) if longest is not None else {})
    rows = (new, *[row for row in rows if row is not longest][: _MAX_ROWS - 1])
    size = sum([_ROW_BYTES + _VALUE_BYTES * len(row.values) for row in rows])
    memory.keep(anchor, _KEY, rows, size)
    return new


def is_alike(one: Any, other: Any) -> bool:
    """Whether two values are equal, including differences that JSON makes and Python does not: 1, 1.0 and
    true, positive and negative zero, the order of members."""
    if one is other:
        return True
    kind = type(one)
    if kind is not type(other):
        return False
    if kind is str:
        return bool(one == other)
    if kind is tuple or kind is list:
        return len(one) == len(other) and all(map(is_alike, one, other))
    if kind is dict:
        return list(one) == list(other) and all(map(is_alike, one.values(), other.values()))
    if isinstance(one, msgspec.Struct):
        for name in one.__struct_fields__:
            mine, theirs = getattr(one, name), getattr(other, name)
            if mine is not theirs and not is_alike(mine, theirs):
                return False
        return True
    return bool(one == other) and (kind is not float or repr(one) == repr(other))
