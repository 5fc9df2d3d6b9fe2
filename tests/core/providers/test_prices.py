"""What tokens cost: R-DE-12, separate prices for input, output, caches and reasoning, in whole millionths."""

from __future__ import annotations

from datetime import date, datetime
from decimal import ROUND_HALF_EVEN, Decimal

from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.usage import COUNTS
from wireglot_core.providers.list_price import ListPrice, Price, Tier, day_number
from wireglot_core.providers.prices import PriceRule, cost, micro, price_of
from wireglot_core.providers.spec import ModelSpec, ProviderSpec, provider


def test_each_kind_of_token_has_its_own_price() -> None:
    price = Price(1_000_000, 10_000_000, 100_000, 1_250_000, 2_000_000, 20_000_000)
    usage = convert(dict.fromkeys(COUNTS, 1000), Usage)
    assert cost(price, usage) == 1000 + 1000 + 100 + 1250 + 2000 + 10_000 + 20_000


def test_what_has_no_price_of_its_own_costs_what_it_is_a_kind_of() -> None:
    price = Price(3_000_000, 15_000_000)
    assert cost(price, Usage(cache_read=1000)) == 3000
    assert cost(price, Usage(cache_write=1000)) == 3000
    assert cost(price, Usage(cache_write_long=1000)) == 3000
    assert cost(price, Usage(reasoning=1000)) == 15_000
    short = Price(3_000_000, 15_000_000, cache_write=3_750_000)
    assert cost(short, Usage(cache_write_long=1000)) == 3750


def test_a_price_of_nothing_is_a_price() -> None:
    price = Price(3_000_000, 15_000_000, cache_read=0, reasoning=0)
    assert cost(price, Usage(cache_read=1000, reasoning=1000)) == 0
    assert cost(Price(0, 0), Usage(input=1, output=1)) == 0


def test_halves_are_rounded_to_even_once() -> None:
    price = Price(500_000, 0)
    assert [cost(price, Usage(input=n)) for n in range(6)] == [0, 0, 1, 2, 2, 2]
    # Two halves make a whole: the parts are added up before anything is rounded.
    assert cost(Price(500_000, 500_000), Usage(input=1, output=1)) == 1


counts = st.integers(0, 10**12)
prices = st.integers(0, 10**9)


@given(counts, counts, counts, prices, prices, prices)
def test_the_cost_is_what_decimal_arithmetic_says(
    fresh: int, read: int, output: int, input_price: int, read_price: int, output_price: int
) -> None:
    exact = Decimal(fresh * input_price + read * read_price + output * output_price) / 1_000_000
    price = Price(input_price, output_price, cache_read=read_price)
    expected = int(exact.to_integral_value(ROUND_HALF_EVEN))
    assert cost(price, Usage(input=fresh, cache_read=read, output=output)) == expected >= 0


def test_amounts_become_millionths() -> None:
    assert [micro(Decimal(text)) for text in ("1", "0.15", "0.0000005", "0.0000015")] == [
        1_000_000,
        150_000,
        0,
        2,
    ]


def test_a_long_request_costs_the_price_of_its_length_for_all_of_its_tokens() -> None:
    """[M5] Long contexts: past the mark every token costs more, and cached input counts for the length."""
    long = Tier(over=200_000, input=4_000_000, output=18_000_000, cache_read=400_000)
    longer = Tier(over=500_000, input=8_000_000, output=36_000_000)
    price = Price(2_000_000, 12_000_000, cache_read=200_000, tiers=(long, longer))
    assert cost(price, Usage(input=200_000, output=1000)) == 400_000 + 12_000
    assert cost(price, Usage(input=200_001, output=1000)) == 800_004 + 18_000
    assert cost(price, Usage(input=1, cache_read=200_000)) == 4 + 80_000
    assert cost(price, Usage(input=1, cache_read=500_000)) == 8 * 500_001, "without one of its own, as input"


_SOURCE = "https://prices.test"
_SPEC = ProviderSpec(
    "mine",
    "Mine",
    ("openai-chat",),
    "http://x",
    models=(ModelSpec("big*"),),
    prices=(
        ListPrice(model="big-old", price=Price(2, 2), source=_SOURCE),
        ListPrice(model="big-new", price=Price(2, 2), source=_SOURCE),
        ListPrice(model="big-new", price=Price(3, 3), source=_SOURCE),
        ListPrice(model="big-yuan", price=Price(5, 5), source=_SOURCE, currency="CNY"),
    ),
)


def _price(
    model: str,
    rules: tuple[PriceRule, ...] = (),
    *,
    provider: str = "mine",
    currency: str = "USD",
    at: str = "2026-11-16T12",
    spec: ProviderSpec = _SPEC,
) -> Price | None:
    moment = int(datetime.fromisoformat(f"{at}:00:00+00:00").timestamp() * 1000)
    return price_of(rules, spec, model, provider=provider, at=moment, currency=currency)


def test_the_configuration_comes_before_the_catalog_and_what_is_said_last_holds() -> None:
    rules = (PriceRule("mine/big-x", Price(7, 7)), PriceRule("odd*", Price(8, 8)))
    assert _price("big-x", rules) == Price(7, 7)
    assert _price("odd-one", rules) == Price(8, 8)
    assert _price("big-old", rules) == Price(2, 2)
    assert _price("big-new", rules) == Price(3, 3)
    assert _price("big-x", rules, provider="other") is None


def test_a_price_in_another_currency_is_none() -> None:
    """Dollars reported as euros would be wrong numbers in every report and every budget."""
    assert _price("big-old", currency="EUR") is None
    assert _price("big-yuan") is None
    assert _price("big-yuan", currency="CNY") == Price(5, 5)
    assert _price("big-yuan", (PriceRule("big-*", Price(1, 1)),)) == Price(1, 1)


def test_a_model_that_nobody_knows_the_price_of_has_none() -> None:
    assert _price("small") is None
    assert _price("big-older") is None, "a price is for one name"


def test_an_announced_price_holds_from_its_day() -> None:
    entries = (
        ListPrice(model="m", price=Price(1, 1), source=_SOURCE),
        ListPrice(model="m", price=Price(2, 2), source=_SOURCE, since="2026-12-01"),
    )
    spec = ProviderSpec("mine", "Mine", ("openai-chat",), "http://x", prices=entries)
    assert _price("m", spec=spec, at="2026-11-30T23") == Price(1, 1)
    assert _price("m", spec=spec, at="2026-12-01T00") == Price(2, 2)


def test_a_price_of_certain_hours_holds_in_these_on_the_days_it_is_for() -> None:
    peak = ListPrice(
        model="m",
        price=Price(2, 2),
        source=_SOURCE,
        hours=((1, 4), (6, 10)),
        weekdays=(0, 1, 2, 3, 4),
    )
    entries = (ListPrice(model="m", price=Price(1, 1), source=_SOURCE), peak)
    spec = ProviderSpec("mine", "Mine", ("openai-chat",), "http://x", prices=entries)
    hours = [hour for hour in range(24) if _price("m", spec=spec, at=f"2026-11-16T{hour:02}") == Price(2, 2)]
    assert hours == [1, 2, 3, 6, 7, 8, 9], "on a Monday"
    for day, dear in ((20, True), (21, False), (22, False), (23, True)):
        assert (_price("m", spec=spec, at=f"2026-11-{day}T02") == Price(2, 2)) is dear


@given(st.dates(date(2000, 1, 1), date(2099, 12, 31)))
def test_days_are_counted_as_the_calendar_does(day: date) -> None:
    assert day_number(day.isoformat()) == (day - date(1970, 1, 1)).days


def test_the_demo_costs_nothing_in_any_currency() -> None:
    for entry in provider("demo").models:
        assert _price(entry.match, spec=provider("demo"), provider="demo") == Price(0, 0)
        assert _price(entry.match, spec=provider("demo"), provider="demo", currency="EUR") == Price(0, 0)
