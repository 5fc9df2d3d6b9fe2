"""[M5] Prices have an age, and somebody says so."""

from __future__ import annotations

from datetime import date, timedelta

from wireglot.gateway.config.prices import STALE_DAYS, price_ages, stale_prices
from wireglot_core.providers.list_price import ListPrice, Price, price_list
from wireglot_core.providers.spec import ProviderSpec, names, provider

OLD, NEW = "2026-08-01", "2026-11-16"
TODAY = date.fromisoformat(OLD) + timedelta(days=STALE_DAYS + 1)


def spec(name: str, **dates: str) -> ProviderSpec:
    entries = (
        ListPrice(model=model, price=Price(1, 1), source=f"https://{name}.test", date=day)
        for model, day in dates.items()
    )
    return ProviderSpec(name, name, ("openai-chat",), "http://x", prices=tuple(entries))


def test_only_old_prices_are_stale_and_the_oldest_come_first() -> None:
    specs = [spec("one", a=NEW, b=OLD), spec("two", c=OLD, d=OLD), spec("three")]
    assert [age.provider for age in price_ages(specs, date(2026, 11, 20))] == ["one", "two", "one"]
    assert [str(age) for age in stale_prices(specs, TODAY)] == [
        "one: the price of b is of 2026-08-01, 91 days old",
        "two: the prices of 2 models are of 2026-08-01, 91 days old",
    ]
    assert stale_prices(specs, TODAY - timedelta(days=1)) == []


def test_the_catalogs_prices_are_as_old_as_their_list() -> None:
    taken = date.fromisoformat(price_list().date)
    catalog = [provider(name) for name in names()]
    assert {age.provider for age in price_ages(catalog, taken) if age.days == 0} >= set(
        price_list().providers
    )
    assert stale_prices(catalog, taken + timedelta(days=STALE_DAYS + 1))
