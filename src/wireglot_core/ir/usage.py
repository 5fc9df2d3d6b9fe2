"""Token counts: each is declared once, here, with everything that other modules need to know about it.

A new count is one more line of `TokenCounts`. The account of an answer (`outcome.Usage`), the ledger row and
its journal, columns and sums of every store, reports, metrics, log lines and the table of `wireglot usage`
are derived from it. Declared elsewhere are only the field of a dialect that reports the count, and a separate
price for it (`providers.spec.Price`).
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Annotated, Final, Literal, NamedTuple, TypeVar, get_type_hints

import msgspec

Side = Literal["input", "output"]
_Row = TypeVar("_Row", bound=msgspec.Struct)


class Count(msgspec.Struct, frozen=True):
    """Properties of one count in addition to its name."""

    side: Side
    prices: tuple[str, ...]
    """Names of `Price` fields: the first that is set is the price of a token."""
    kind: str = ""
    """The name under which it is reported externally, together with other counts of this kind; "": its own
    name."""
    heading: str = ""
    """The heading of its kind in the table of `wireglot usage`; "": the kind."""


class TokenCounts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Token counts that never overlap: the total of each side is the sum of that side's counts."""

    input: Annotated[int, Count("input", ("input",))] = 0
    cache_read: Annotated[int, Count("input", ("cache_read", "input"), heading="cached")] = 0
    cache_write: Annotated[int, Count("input", ("cache_write", "input"), heading="written")] = 0
    cache_write_long: Annotated[
        int, Count("input", ("cache_write_long", "cache_write", "input"), kind="cache_write")
    ] = 0
    """Cache writes kept for longer than the provider's default: an hour where that is five minutes."""
    tool_prompt: Annotated[int, Count("input", ("input",), kind="input")] = 0
    """Tokens that built-in tools of the provider added to the prompt."""
    output: Annotated[int, Count("output", ("output",))] = 0
    reasoning: Annotated[int | None, Count("output", ("reasoning", "output"))] = None
    """None: the provider did not report it separately from the output."""

    @property
    def total_input(self) -> int:
        return sum(filter(None, _INPUT(self)))

    @property
    def total_output(self) -> int:
        return sum(filter(None, _OUTPUT(self)))

    @property
    def total(self) -> int:
        return sum(filter(None, _ALL(self)))


class Kind(NamedTuple):
    """Counts that are reported as one number."""

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
            assert known.side == count.side, f"{name} is reported as {kind}, which is on the other side"
            kinds[kind] = known._replace(counts=(*known.counts, name))
    return kinds


COUNTS: Final = _declared()
"""By name, in the order of their declaration."""
KINDS: Final = _kinds()


_Values = Callable[[TokenCounts], tuple[int | None, ...]]

# None: not reported.
_ALL: Final[_Values] = attrgetter(*COUNTS)
_INPUT: Final[_Values] = attrgetter(*[name for name, count in COUNTS.items() if count.side == "input"])
_OUTPUT: Final[_Values] = attrgetter(*[name for name, count in COUNTS.items() if count.side == "output"])
_KIND_OF: Final = [count.kind or name for name, count in COUNTS.items()]


def counts_of(counts: TokenCounts) -> tuple[int, ...]:
    """All counts, in the order of `COUNTS`; a count that was not reported is 0."""
    return tuple([value or 0 for value in _ALL(counts)])


def with_counts(row: _Row, counts: TokenCounts) -> _Row:
    """A row with all counts; a count that was not reported is 0."""
    reported = {name: value or 0 for name, value in zip(COUNTS, _ALL(counts), strict=True)}
    return msgspec.structs.replace(row, **reported)


def kinds_of(counts: TokenCounts) -> tuple[int, ...]:
    """The sum of each kind, in the order of `KINDS`."""
    sums = dict.fromkeys(KINDS, 0)
    for kind, value in zip(_KIND_OF, _ALL(counts), strict=True):
        if value:
            sums[kind] += value
    return tuple(sums.values())
