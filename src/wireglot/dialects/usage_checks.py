"""What in a provider's own numbers does not add up. An account goes on with the numbers as they were read;
whoever pays by them is told that they are odd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from wireglot.ir.content import Extra

NEGATIVE: Final = "negative_count"
ODD: Final = "count_not_whole"
ABSURD: Final = "count_absurd"
TOTAL: Final = "total_is_not_the_sum"
CACHED: Final = "cached_exceeds_input"
REASONING: Final = "reasoning_exceeds_output"
WRITTEN: Final = "cache_parts_exceed_cache_writes"

COUNT_MAX: Final = 10**12
"""More tokens than any request has; a ledger counts no more."""

Numbers = dict[str, int]
"""Those that were told and make sense, under names of our own."""

Names = tuple[tuple[str, str], ...]
"""Names of our own, and the fields that tell them. Of two that tell the same, the later holds."""


class UsageFields(msgspec.Struct, frozen=True):
    """Where a dialect tells its numbers, and how they must agree."""

    flat: Names
    nested: tuple[tuple[str, Names], ...]
    check: Callable[[Numbers], list[str]]

    def problems(self, raw: Extra) -> tuple[str, ...]:
        return self.problems_of(raw.form)

    def problems_of(self, document: dict[str, Any]) -> tuple[str, ...]:
        """Sorted; none where the numbers agree."""
        numbers: Numbers = {}
        found: list[str] = []
        get = document.get
        for name, key in self.flat:
            value = get(key)
            if type(value) is int and 0 <= value <= COUNT_MAX:
                numbers[name] = value
            elif value is not None:
                _judge(name, value, numbers, found)
        for key, inner in self.nested:
            details = get(key)
            if type(details) is dict:
                for name, part in inner:
                    value = details.get(part)
                    if type(value) is int and 0 <= value <= COUNT_MAX:
                        numbers[name] = value
                    elif value is not None:
                        _judge(name, value, numbers, found)
        found += self.check(numbers)
        return tuple(sorted(set(found))) if found else ()


def split_output(told: int, reasoning: int, *, beside: bool = False) -> int:
    """What was written beside the reasoning. Most count reasoning within their output; more of it than of the
    whole output proves that it stands beside it, and so may a total (`beside`)."""
    return told if beside or reasoning > told else told - reasoning


def _judge(name: str, value: Any, numbers: Numbers, found: list[str]) -> None:
    if (type(value) is float and value.is_integer()) or (type(value) is str and value.isdecimal()):
        value = int(value)  # how JSON of Google's may write whole numbers
    if type(value) is not int:
        found.append(ODD)
    elif value < 0:
        found.append(NEGATIVE)
    elif value > COUNT_MAX:
        found.append(ABSURD)
    else:
        numbers[name] = value
