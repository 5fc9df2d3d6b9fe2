"""Token counts: each is declared here, once, with all that others need to know of it.

A new count is one more line of `TokenCounts`. From it come the account of an answer (`outcome.Usage`), the
row of the ledger and its journal, columns and sums of every store, reports, metrics, log lines, the table of
`wireglot usage`. Said elsewhere is only what is known elsewhere: the field of a dialect that tells the count,
and a price of its own (`providers.spec.Price`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, get_type_hints

import msgspec

Side = Literal["input", "output"]


class Count(msgspec.Struct, frozen=True):
    """What is said about one count beside its name."""

    side: Side
    prices: tuple[str, ...]
    """Names of `Price`: the first that has a value is what a token of it costs."""
    kind: str = ""
    """The name under which it is told to the outside, as one with other counts of this kind; "": its own."""
    heading: str = ""
    """Of its kind in the table of `wireglot usage`; "": the kind."""


class TokenCounts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Numbers that never overlap: all that went in is the sum of the counts of that side."""

    input: Annotated[int, Count("input", ("input",))] = 0
    cache_read: Annotated[int, Count("input", ("cache_read", "input"), heading="cached")] = 0
    cache_write: Annotated[int, Count("input", ("cache_write", "input"), heading="written")] = 0
    cache_write_long: Annotated[
        int, Count("input", ("cache_write_long", "cache_write", "input"), kind="cache_write")
    ] = 0
    """Kept for longer than the provider's default: an hour where that is five minutes."""
    tool_prompt: Annotated[int, Count("input", ("input",), kind="input")] = 0
    """What built-in tools of the provider put into the prompt."""
    output: Annotated[int, Count("output", ("output",))] = 0
    reasoning: Annotated[int | None, Count("output", ("reasoning", "output"))] = None
    """None: the provider did not tell it apart from the output."""

    @property
    def total_input(self) -> int:
        total: int = _total_input(self)
        return total

    @property
    def total_output(self) -> int:
        total: int = _total_output(self)
        return total

    @property
    def total(self) -> int:
        total: int = _total(self)
        return total


class Kind(NamedTuple):
    """What is told as one number."""

    side: Side
    heading: str
    counts: tuple[str, ...]


def _declared() -> dict[str, Count]:
    hints = get_type_hints(TokenCounts, include_extras=True)
    return {name: hints[name].__metadata__[0] for name in TokenCounts.__struct_fields__}


def _kinds() -> dict[str, Kind]:
    kinds: dict[str, Kind] = {}
    for name, count in COUNTS.items():
        kind = count.kind or name
        known = kinds.get(kind)
        if known is None:
            kinds[kind] = Kind(count.side, count.heading or kind, (name,))
        else:
            assert known.side == count.side, f"{name} is told as {kind}, which is on the other side"
            kinds[kind] = known._replace(counts=(*known.counts, name))
    return kinds


COUNTS: Final = _declared()
"""By name, in the order of their declaration."""
KINDS: Final = _kinds()


def _of_side(*sides: Side) -> list[str]:
    return [name for name, count in COUNTS.items() if count.side in sides]


def _sum(names: Iterable[str]) -> str:
    return " + ".join(f"(counts.{name} or 0)" for name in names)


def _compiled(expression: str) -> Callable[[TokenCounts], Any]:
    """These run several times for every answer: a loop over names takes five times as long."""
    function: Callable[[TokenCounts], Any] = eval(f"lambda counts: {expression}")
    return function


def named_sums(groups: Mapping[str, Iterable[str]]) -> Callable[[TokenCounts], dict[str, int]]:
    """A function that adds up the counts of each group."""
    sums = ", ".join(f"{name!r}: {_sum(counts)}" for name, counts in groups.items())
    return _compiled(f"{{{sums}}}")


def _sums(groups: Iterable[Iterable[str]]) -> Callable[[TokenCounts], tuple[int, ...]]:
    return _compiled(f"({', '.join(map(_sum, groups))},)")


counts_of: Final = _sums([name] for name in COUNTS)
"""All counts of an account, in the order of `COUNTS`; what was not told is 0."""
with_counts: Final[Callable[[Any, TokenCounts], Any]] = eval(
    f"lambda row, counts: replace(row, {', '.join(f'{name}={_sum([name])}' for name in COUNTS)})",
    {"replace": msgspec.structs.replace},
)
"""A row that has all counts, with those of an account."""
kinds_of: Final = _sums(kind.counts for kind in KINDS.values())
"""The sum of each kind, in the order of `KINDS`."""

_total_input: Final = _compiled(_sum(_of_side("input")))
_total_output: Final = _compiled(_sum(_of_side("output")))
_total: Final = _compiled(_sum(_of_side("input", "output")))
