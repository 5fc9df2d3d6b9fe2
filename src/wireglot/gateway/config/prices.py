"""[prices]: prices of models that the catalog does not have, or that differ from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

from msgspec import NODEFAULT

from wireglot.gateway.config.problems import Problems, key_path, kind, shown
from wireglot.gateway.config.table import Table, declared
from wireglot.gateway.settings import Settings
from wireglot.stores.records import MICRO
from wireglot_core.providers.list_price import Price, Rates, Tier
from wireglot_core.providers.prices import PriceRule, list_price, micro, price_of, why_unpriced
from wireglot_core.providers.spec import ProviderSpec

_EXPECTED: Final = "a price for a million tokens"


def read_prices(value: object, problems: Problems) -> tuple[PriceRule, ...]:
    if not isinstance(value, Mapping):
        problems.add("prices", "a table", kind(value))
        return ()
    rules = []
    for match, given in value.items():
        path = key_path("prices", match)
        if not isinstance(given, Mapping):
            problems.add(path, "a table with input and output", kind(given))
            continue
        rules.append(PriceRule(match, _price(Table(given, path, problems))))
    return tuple(rules)


def _price(table: Table) -> Price:
    rates = _rates(table, Price)
    tiers = _tiers(table)
    table.close()
    return Price(**rates, tiers=tiers)


def _rates(table: Table, struct: type[Rates]) -> dict[str, int]:
    """Written in units of the currency per million tokens, stored in millionths of that."""
    found = {"input": 0, "output": 0}
    for setting in declared(struct).values():
        if setting.unit != "money":
            continue
        value = table.raw(setting.name)
        if value is None:
            if setting.default is NODEFAULT:
                table.wrong(setting.name, _EXPECTED, "none")
            continue
        if type(value) not in (int, float) or not 0 <= value < (setting.less_than or 0) / MICRO:
            table.wrong(setting.name, _EXPECTED, shown(value))
            continue
        found[setting.attribute] = micro(Decimal(str(value)))
    return found


def _tiers(table: Table) -> tuple[Tier, ...]:
    given = table.raw("tiers")
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(each, Mapping) for each in given):
        table.wrong("tiers", "a list of tables with over, input and output", kind(given))
        return ()
    found: list[Tier] = []
    for number, each in enumerate(given):
        tier = Table(each, f"{table.at('tiers')}[{number}]", table.problems)
        over = tier.raw("over")
        if type(over) is not int or over <= (found[-1].over if found else 0):
            tier.wrong("over", "tokens of input, more than the tier before", shown(over))
            over = found[-1].over + 1 if found else 1
        found.append(Tier(over=over, **_rates(tier, Tier)))
        tier.close()
    return tuple(found)


STALE_DAYS: Final = 90
"""Vendors changed a price of the catalog about once a quarter in 2026."""


class PriceAge(NamedTuple):
    """The prices of one provider that were taken on the same day."""

    provider: str
    date: date
    days: int
    models: tuple[str, ...]
    source: str
    """Where the vendor publishes them."""

    @property
    def is_stale(self) -> bool:
        return self.days > STALE_DAYS

    def __str__(self) -> str:
        count = len(self.models)
        what = f"the price of {self.models[0]}" if count == 1 else f"the prices of {count} models"
        return f"{self.provider}: {what} {'is' if count == 1 else 'are'} of {self.date}, {self.days} days old"


def price_ages(specs: Iterable[ProviderSpec], today: date) -> list[PriceAge]:
    """Oldest first."""
    found: dict[tuple[str, date], tuple[dict[str, None], str]] = {}
    for spec in specs:
        for entry in spec.prices:
            if entry.date is not None:
                key = (spec.name, date.fromisoformat(entry.date))
                found.setdefault(key, ({}, entry.source))[0][entry.model] = None
    ages = (
        PriceAge(provider, day, (today - day).days, tuple(models), source)
        for (provider, day), (models, source) in found.items()
    )
    return sorted(ages, key=lambda age: (-age.days, age.provider))


def stale_prices(specs: Iterable[ProviderSpec], today: date) -> list[PriceAge]:
    """Prices that should be checked again: with `make prices`, or `[prices]` in the configuration."""
    return [age for age in price_ages(specs, today) if age.is_stale]


def known_price(settings: Settings, provider: str, model: str, at: int) -> Price | None:
    """`at` in unix milliseconds. None: neither the configuration nor the catalog has it."""
    found = settings.providers.get(provider)
    if found is None:
        return None
    return price_of(settings.prices, found.spec, model, provider=provider, at=at, currency=settings.currency)


def why_unknown(settings: Settings, provider: str, model: str, at: int) -> str:
    """In a few words; "" if there is nothing to report."""
    found = settings.providers.get(provider)
    if found is None:
        return ""
    listed = list_price(found.spec, model, at)
    if listed is not None and listed.currency != settings.currency:
        return f"its list price is in {listed.currency}, and this gateway uses {settings.currency}"
    return why_unpriced(found.spec, model)
