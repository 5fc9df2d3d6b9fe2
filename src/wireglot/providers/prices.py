"""What tokens cost. Money is whole millionths of a currency unit; nothing is ever rounded twice."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from fnmatch import fnmatchcase
from functools import lru_cache
from operator import mul
from typing import Final

import msgspec

from wireglot.ir.outcome import Usage
from wireglot.ir.usage import COUNTS, counts_of
from wireglot.providers.spec import Price, ProviderSpec

_MILLION: Final = 1_000_000


class PriceRule(msgspec.Struct, frozen=True):
    """`match` is a pattern for a model's name, or for `provider/model`."""

    match: str
    price: Price


def micro(amount: Decimal) -> int:
    """An amount of money in millionths, rounded once."""
    return int((amount * _MILLION).to_integral_value(ROUND_HALF_EVEN))


def price_of(rules: tuple[PriceRule, ...], spec: ProviderSpec, provider: str, model: str) -> Price | None:
    """What the configuration says, then the catalog."""
    full = f"{provider}/{model}"
    for rule in rules:
        if fnmatchcase(full if "/" in rule.match else model, rule.match):
            return rule.price
    found: Price | None = None
    for entry in spec.models:
        if entry.price is not None and entry.covers(model):
            found = entry.price
    return found


def cost(price: Price, usage: Usage) -> int:
    """The cost of a request, rounded once, to the nearest millionth (half to even)."""
    spent: int = sum(map(mul, counts_of(usage), _prices(price)))
    whole, rest = divmod(spent, _MILLION)
    return whole + (2 * rest > _MILLION or (2 * rest == _MILLION and whole % 2))


@lru_cache(4096)
def _prices(price: Price) -> tuple[int, ...]:
    """For each count, the first of its prices that has a value; the last one always has."""
    known = [[getattr(price, name) for name in count.prices] for count in COUNTS.values()]
    return tuple(next(value for value in values if value is not None) for values in known)


__all__ = ["Price", "PriceRule", "cost", "micro", "price_of"]
