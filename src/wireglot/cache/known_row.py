"""A conversation as far as it came before, and what is known of it, so that its turns are not read again.

Clients change the last turns of a conversation (a mark of the cache moves on, an answer is asked for once
more). So only what stands before those counts as settled, and what was found out about it is kept.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Sequence
from typing import Any, Final

import msgspec

from wireglot.cache.texts import Texts

OPEN_TURNS: Final = 4
"""So many turns at the end may come otherwise."""
_MAX_LEAD: Final = 2
"""So many at the beginning may be new each time, as a system text is that stands elsewhere. They are the same
if they say the same in the same form; the others are if they are the very same."""
_LEAST: Final = 8
"""Shorter conversations are walked through as quickly."""
_STEP: Final = 6
"""So many more turns are settled at once: to note that takes as long as to walk through them."""
_MAX_ROWS: Final = 16
"""Conversations that begin with the same turn."""
_MAX_MADE: Final = 32
_VALUE_BYTES: Final = 128
"""Of a turn in a row, with what is found out about it."""
_ROW_BYTES: Final = 2048
_KEY: Final = "rows"


class KnownRow:
    """`made`: what was found out about the first turns, by the one that asked: after how many of them, and
    what. None of that may be changed."""

    __slots__ = ("made", "values")

    def __init__(self, values: tuple[Any, ...], made: dict[Hashable, tuple[int, Any]]) -> None:
        self.values: Final = values
        self.made: Final = made

    def reached(self, key: Hashable) -> tuple[int, Any] | None:
        return self.made.get(key)

    def settle(self, key: Hashable, found: Any, count: int | None = None) -> None:
        """What is known after all that is settled, or after `count` of it."""
        if len(self.made) >= _MAX_MADE and key not in self.made:
            self.made.clear()
        self.made[key] = (len(self.values) if count is None else count, found)


def row_of(memory: Texts, values: Sequence[Any]) -> KnownRow | None:
    """The settled part of these turns, or nearly all of it; None where it is short, or none of the first
    ones is known."""
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
    """Whether they are equal also in what JSON tells apart and Python does not: 1, 1.0 and true, zeros of
    both signs, the order of members."""
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
