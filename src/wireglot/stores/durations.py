"""The durations of requests, as a multiset that can be merged: exact values, or buckets of a fixed histogram.

A sum in a store has one character for each bucket, followed by the number of requests in it. A database can
merge sums by concatenating such texts, and a single character is one request, so rows and sums are
concatenated alike.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

_WIDTH: Final = 1.1
"""A bucket ends at this many times its beginning: its middle is within 5 % of every value in it."""
_LONGEST_MS: Final = 31 * 86_400_000
_FIRST_LETTER: Final = 0x100
"""From here on there are only letters, no digits, in every encoding of a database."""


def _bounds() -> tuple[int, ...]:
    found = [0, 1]
    while found[-1] < _LONGEST_MS:
        found.append(max(found[-1] + 1, int(found[-1] * _WIDTH)))
    return tuple(found)


BOUNDS: Final = _bounds()
"""The beginning of each bucket, in milliseconds. The last has no end."""

_MIDDLES: Final = {
    chr(_FIRST_LETTER + place): (begin + end - 1) // 2
    for place, (begin, end) in enumerate(zip(BOUNDS, (*BOUNDS[1:], BOUNDS[-1] + 1), strict=True))
}
_NUMBER: Final = re.compile("[0-9]+")
_DIGITS: Final = "0123456789"
_REPEATED: Final = 8
"""Up to this count a character is repeated: characters are counted in C."""


class Durations(msgspec.Struct, frozen=True):
    counts: dict[int, int] = {}
    """How many requests took this many milliseconds."""
    is_exact: bool = True
    """Whether values are exact; otherwise each is the middle of its bucket."""

    def percentile(self, percent: int) -> int | None:
        """By nearest rank. None if there are no values."""
        rank = -(-percent * sum(self.counts.values()) // 100)
        for value in sorted(self.counts):
            rank -= self.counts[value]
            if rank <= 0:
                return value
        return None


def merged(parts: Iterable[Durations]) -> Durations:
    counts: Counter[int] = Counter()
    is_exact = True
    for part in parts:
        counts.update(part.counts)
        is_exact = is_exact and part.is_exact
    return Durations(dict(counts), is_exact)


def of_values(values: Iterable[int]) -> Durations:
    return Durations(dict(Counter(max(0, value) for value in values)))


def of_numbers(text: str) -> Durations:
    """Exact values, each followed by a space."""
    return of_values(map(int, text.split()))


def of_letters(text: str) -> Durations:
    return Durations({_MIDDLES[letter]: count for letter, count in _counted(text).items()}, is_exact=False)


def letter_of(value: int) -> str:
    """The character of a value's bucket."""
    return chr(_FIRST_LETTER + bisect_right(BOUNDS, max(0, value)) - 1)


def packed(text: str) -> str:
    """The same durations in a nearly minimal text."""
    counts = sorted(_counted(text).items())
    return "".join(letter * count if count <= _REPEATED else f"{letter}{count}" for letter, count in counts)


def letter_sql(value: str, low: int = 0, high: int = len(BOUNDS)) -> str:
    """`letter_of` in SQL: integers are compared, so that every database finds the same bucket."""
    if high - low == 1:
        return f"'{chr(_FIRST_LETTER + low)}'"
    middle = (low + high) // 2
    below, above = letter_sql(value, low, middle), letter_sql(value, middle, high)
    return f"CASE WHEN {value} < {BOUNDS[middle]} THEN {below} ELSE {above} END"


def _counted(text: str) -> Counter[str]:
    counts = Counter(text)
    for number in _NUMBER.finditer(text):
        counts[text[number.start() - 1]] += int(number[0]) - 1
    for digit in _DIGITS:
        del counts[digit]
    return counts
