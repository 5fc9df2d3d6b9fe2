"""How old the list prices are that money is counted by."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from wireglot.cli.doctor.case import Case
from wireglot.cli.doctor.finding import Finding, note, ok, warning
from wireglot.cli.paint import count
from wireglot.gateway.config.keys import MONEY
from wireglot.gateway.config.price_age import price_ages, stale_prices


def look_at_prices(case: Case) -> Iterator[Finding]:
    settings = case.loaded
    specs = [provider.spec for provider in settings.providers.values()]
    today = datetime.fromtimestamp(case.clock(), UTC).date()
    stale = stale_prices(specs, today)
    by_money = any(getattr(key.limits, name) for key in settings.keys for name in MONEY)
    for age in stale:
        fix = f"pip install -U wireglot, or your own in [prices] in {case.file} ({age.source})"
        yield (warning if by_money else note)(str(age), fix)
    ages = price_ages(specs, today)
    if ages and not stale:
        yield ok(f"the oldest list price is {count(max(0, ages[0].days), 'day')} old")
