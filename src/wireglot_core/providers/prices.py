"""What tokens cost. Money is whole millionths of a currency unit; nothing is ever rounded twice."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from fnmatch import fnmatchcase
from functools import lru_cache
from operator import mul
from typing import Final

import msgspec

from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.usage import COUNTS, counts_of
from wireglot_core.providers.list_price import ListPrice, Price, Rates
from wireglot_core.providers.spec import ProviderSpec, plain_name

_MILLION: Final = 1_000_000
_FREE: Final = Price(0, 0)


class PriceRule(msgspec.Struct, frozen=True):
    """`match` is a pattern for a model's name, or for `provider/model`."""

    match: str
    price: Price


def micro(amount: Decimal) -> int:
    """An amount of money in millionths, rounded once."""
    return int((amount * _MILLION).to_integral_value(ROUND_HALF_EVEN))


def price_of(
    rules: tuple[PriceRule, ...],
    spec: ProviderSpec,
    model: str,
    *,
    provider: str,
    at: int,
    currency: str,
) -> Price | None:
    """The price in the configuration, else that in the catalog if it is in the accounting currency. `at` is
    in unix milliseconds: some prices end on a day, others apply during certain hours."""
    full = f"{provider}/{model}"
    for rule in rules:
        if fnmatchcase(full if "/" in rule.match else model, rule.match):
            return rule.price
    if spec.free:
        return _FREE
    found = list_price(spec, model, at)
    return found.price if found is not None and found.currency == currency else None


def list_price(spec: ProviderSpec, model: str, at: int) -> ListPrice | None:
    """The provider's own price, if the catalog knows it."""
    plain = plain_name(model)
    found: ListPrice | None = None
    for entry in spec.prices:
        if entry.model in (model, plain) and entry.holds(at):
            found = entry
    return found


def why_unpriced(spec: ProviderSpec, model: str) -> str:
    """Why the catalog has no price for a model, "" if none has been looked for."""
    plain = plain_name(model)
    for entry in spec.unpriced:
        if fnmatchcase(model, entry.match) or fnmatchcase(plain, entry.match):
            return entry.why
    return ""


def cost(price: Price, usage: Usage) -> int:
    """The cost of a request, rounded once, to the nearest millionth (half to even)."""
    rates = tier_of(price, usage.total_input) if price.tiers else price
    spent: int = sum(map(mul, counts_of(usage), _per_count(rates)))
    whole, rest = divmod(spent, _MILLION)
    return whole + (2 * rest > _MILLION or (2 * rest == _MILLION and whole % 2))


def tier_of(price: Price, tokens: int) -> Rates:
    """The rates of a request with this much input: past a threshold all of its tokens cost more, not only
    those beyond it (so do Anthropic, OpenAI, Google, xAI, MiniMax and Alibaba)."""
    found: Rates = price
    for tier in price.tiers:
        if tokens > tier.over:
            found = tier
    return found


@lru_cache(4096)
def _per_count(rates: Rates) -> tuple[int, ...]:
    """For each count, the first of its prices that is set; the last one always is."""
    known = [[getattr(rates, name) for name in count.prices] for count in COUNTS.values()]
    return tuple(next(value for value in values if value is not None) for values in known)


__all__ = ["Price", "PriceRule", "cost", "list_price", "micro", "price_of", "tier_of", "why_unpriced"]
