"""What tokens cost: R-DE-12, separate prices for input, output, caches and reasoning, in whole millionths."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from wireglot.ir.outcome import Usage
from wireglot.ir.usage import COUNTS
from wireglot.providers.prices import Price, PriceRule, cost, micro, price_of
from wireglot.providers.spec import ModelSpec, ProviderSpec, names, provider


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


_SPEC = ProviderSpec(
    "mine",
    "Mine",
    ("openai-chat",),
    "http://x",
    models=(
        ModelSpec("big*", price=Price(2, 2)),
        ModelSpec("big-new", price=Price(3, 3)),
        ModelSpec("big-new", title="more about it"),
    ),
)


def test_the_configuration_comes_before_the_catalog_and_the_particular_before_the_general() -> None:
    rules = (PriceRule("mine/big-x", Price(7, 7)), PriceRule("odd*", Price(8, 8)))
    assert price_of(rules, _SPEC, "mine", "big-x") == Price(7, 7)
    assert price_of(rules, _SPEC, "mine", "odd-one") == Price(8, 8)
    assert price_of(rules, _SPEC, "mine", "big-old") == Price(2, 2)
    assert price_of(rules, _SPEC, "mine", "big-new") == Price(3, 3)
    assert price_of(rules, _SPEC, "other", "big-x") == Price(2, 2)


def test_a_model_that_nobody_knows_the_price_of_has_none() -> None:
    assert price_of((), _SPEC, "mine", "small") is None


@pytest.mark.parametrize("name", names())
def test_the_prices_of_the_catalog_are_plausible(name: str) -> None:
    """A slip of the decimal point, or dollars where millionths are meant, would show here."""
    for entry in provider(name).models:
        price = entry.price
        if price is None or (price.input, price.output) == (0, 0):
            continue
        assert entry.is_name, "a pattern would give a price to models that are not out yet"
        assert 10_000 <= price.input <= price.output <= 200_000_000
        assert price.cache_read is None or price.cache_read <= price.input
        assert price.cache_write is None or price.cache_write >= price.input


def test_the_demo_costs_nothing_and_that_is_known() -> None:
    for entry in provider("demo").models:
        assert price_of((), provider("demo"), "demo", entry.match) == Price(0, 0)
