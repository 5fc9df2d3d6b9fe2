"""How old the prices of the catalog are, for who must say so: a list price is worth as much as its date."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Final, NamedTuple

from wireglot.providers.spec import ProviderSpec

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
    """Those to be looked at again: `make prices`, or `[prices]` in the configuration."""
    return [age for age in price_ages(specs, today) if age.is_stale]
