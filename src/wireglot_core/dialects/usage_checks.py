"""Contradictions in a provider's own token counts. The usage keeps the numbers as reported; users who pay by
them are informed of the contradictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from wireglot_core.dialects.unknown_fields import is_hollow
from wireglot_core.ir.content import Extra
from wireglot_core.ir.loss import Loss, losses_of_extra

Counted = Mapping[str, frozenset[str] | None]
"""Fields that are counted, or repeat a count; with the inner fields of an object."""


def uncounted(raw: dict[str, Any], counted: Counted) -> dict[str, Any]:
    """The values that are not counted, by path. Zeros and empty values are left out."""
    out: dict[str, Any] = {}
    for key, value in raw.items():
        if not value:  # the simplest empty value
            continue
        if key not in counted:
            if not is_hollow(value):
                out[key] = value
        elif type(value) is dict:
            inside = counted[key]
            if inside is not None:
                for name, item in value.items():
                    if item and name not in inside and not is_hollow(item):
                        out[f"{key}.{name}"] = item
    return out


# Values of a stream's earlier reports of usage, nested ones counted, that are kept beside a later one: they
# are read again with each report. Real ones have about 20.
MAX_USAGE_VALUES: Final = 128


def joined_usage(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A later report over an earlier one, of which fields are kept as long as there is room."""
    if old.keys() <= new.keys():
        return {**old, **new}
    kept: dict[str, Any] = {}
    room = MAX_USAGE_VALUES
    for key, value in old.items():
        room -= _values(value, room)
        if room < 0:
            break
        kept[key] = value
    return {**kept, **new}


def _values(value: Any, most: int) -> int:
    """The number of values in a value, itself included; one above `most` if there are more."""
    found = 1
    if type(value) is dict or type(value) is list:
        for inner in value.values() if type(value) is dict else value:
            found += _values(inner, most - found)
            if found > most:
                return most + 1
    return found


NEGATIVE: Final = "negative_count"
ODD: Final = "count_not_whole"
ABSURD: Final = "count_absurd"
TOTAL: Final = "total_is_not_the_sum"
CACHED: Final = "cached_exceeds_input"
REASONING: Final = "reasoning_exceeds_output"
WRITTEN: Final = "cache_parts_exceed_cache_writes"

COUNT_MAX: Final = 10**12
"""Tokens of a count in an answer's usage. No request has more; a larger count is an error of the provider and
ignored."""

Numbers = dict[str, int]
"""The reported counts that are plausible, under our own names."""

Names = tuple[tuple[str, str], ...]
"""Our names, and the fields that report them. If two fields report the same count, the later one wins."""


class UsageFields:
    """The fields of a dialect's counts, and how they must agree. `again`: fields that repeat some of them, by
    path."""

    __slots__ = ("check", "counted", "flat", "nested")

    def __init__(
        self,
        flat: Names,
        nested: tuple[tuple[str, Names], ...],
        check: Callable[[Numbers], list[str]],
        again: tuple[str, ...] = (),
    ) -> None:
        self.flat = flat
        self.nested = nested
        self.check = check
        counted: dict[str, set[str]] = {key: set() for _, key in flat}
        for key, inner in nested:
            counted[key] = {name for _, name in inner}
        for path in again:
            key, _, name = path.partition(".")
            counted.setdefault(key, set()).update([name] if name else ())
        self.counted: Counted = {key: frozenset(inner) or None for key, inner in counted.items()}

    def problems(self, raw: Extra) -> tuple[str, ...]:
        """The names of the problems, sorted; empty if the numbers agree."""
        numbers: Numbers = {}
        found: list[str] = []
        get = raw.form.get
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


def split_output(reported: int, reasoning: int, *, beside: bool = False) -> int:
    """The output tokens in addition to the reasoning. Most servers count reasoning within their output; more
    reasoning than output proves that it is counted separately, and so may a total (`beside`)."""
    return reported if beside or reasoning > reported else reported - reasoning


def _judge(name: str, value: Any, numbers: Numbers, found: list[str]) -> None:
    if (type(value) is float and value.is_integer()) or (type(value) is str and value.isdecimal()):
        value = int(value)  # JSON from Google may write whole numbers like this
    if type(value) is not int:
        found.append(ODD)
    elif value < 0:
        found.append(NEGATIVE)
    elif value > COUNT_MAX:
        found.append(ABSURD)
    else:
        numbers[name] = value


def losses_of_usage(raw: Extra | None, own: str, path: str, out: list[Loss]) -> None:
    """Reports fields of another dialect's usage other than the counts, and counts that contradict each
    other."""
    if raw is None or raw.dialect == own:
        return
    losses_of_extra(raw, own, path, out, "usage.detail")
    for key, value in raw.form.items():
        if type(value) in (int, float) and value < 0:
            detail = "a count below zero is read as none"
            out.append(Loss(f"{path}.{key}", "usage.detail", "dropped", detail))
