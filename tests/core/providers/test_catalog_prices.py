"""[M5] The catalog's prices: every live model has one or a reason, and each is plausible, dated and sourced."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest

from tests.tiers import rows
from tools.prices.build import live
from wireglot_core.providers.list_price import ListPrice, Rates, price_list
from wireglot_core.providers.prices import list_price, why_unpriced
from wireglot_core.providers.spec import ProviderSpec, names, provider

DOLLAR = 1_000_000
FREE = {"zai/glm-4.7-flash"}
"""Models whose vendor says that they cost nothing."""
NOW = int(datetime.now(UTC).timestamp() * 1000)

SPECS = [provider(name) for name in names()]
PRICED = [
    pytest.param(spec, entry, id=f"{spec.name}/{entry.model}{'@' + entry.since if entry.since else ''}")
    for spec in SPECS
    for entry in spec.prices
]


@rows("spec", SPECS, ids=names())
def test_every_live_model_has_a_price_or_a_reason_why_it_has_none(spec: ProviderSpec) -> None:
    for model in live(spec):
        priced = spec.free or list_price(spec, model, NOW) is not None
        assert priced != bool(why_unpriced(spec, model)), f"{spec.name}/{model}: one of the two"


def test_most_of_the_catalog_is_priced() -> None:
    """A registry that lost a provider, or renamed its models, would show here."""
    models = [(spec, model) for spec in SPECS for model in live(spec)]
    priced = [model for spec, model in models if list_price(spec, model, NOW) is not None]
    assert len(priced) >= 0.8 * len(models)


@rows(("spec", "entry"), PRICED)
def test_a_price_is_plausible(spec: ProviderSpec, entry: ListPrice) -> None:
    """A slip of the decimal point, or dollars where millionths are meant, would show here."""
    if f"{spec.name}/{entry.model}" in FREE:
        assert (entry.price.input, entry.price.output) == (0, 0)
        return
    known = spec.model(entry.model)
    if known is not None and known.embeds:
        assert (entry.price.output, entry.price.tiers) == (0, ())
        assert 0.01 * DOLLAR <= entry.price.input <= DOLLAR
        return
    before: Rates = entry.price
    for rates in _all_rates(entry):
        assert 0.01 * DOLLAR <= rates.input <= 60 * DOLLAR
        assert rates.input <= rates.output <= 300 * DOLLAR, "an answer costs at least what a question does"
        assert rates.output <= 12 * rates.input
        if rates.cache_read is not None:
            assert 0.01 * rates.input <= rates.cache_read <= rates.input, "a cache saves money"
        if rates.cache_write is not None:
            assert 0.5 * rates.input <= rates.cache_write <= 2 * rates.input
        if rates.cache_write_long is not None:
            assert rates.cache_write is not None
            assert rates.cache_write <= rates.cache_write_long <= 4 * rates.input
        assert rates.reasoning is None or rates.output <= rates.reasoning <= 4 * rates.output
        assert before.input <= rates.input <= 6 * before.input, "longer requests are not cheaper"
        assert before.output <= rates.output
        assert (rates.cache_read is None) == (entry.price.cache_read is None)
        before = rates


@rows(("spec", "entry"), PRICED)
def test_a_price_is_for_a_known_name_with_a_source_and_a_date(spec: ProviderSpec, entry: ListPrice) -> None:
    assert entry.model in live(spec), "of models that are in service, by their names"
    assert entry.source.startswith("https://")
    assert entry.date is not None
    assert date(2026, 11, 1) <= date.fromisoformat(entry.date) <= datetime.now(UTC).date()
    assert entry.since is None or date.fromisoformat(entry.since) > date.fromisoformat(entry.date)
    marks = [tier.over for tier in entry.price.tiers]
    assert marks == sorted(set(marks))
    assert all(16_000 <= mark < 2_000_000 for mark in marks)
    assert all(start < end for start, end in entry.hours)


@rows("spec", SPECS, ids=names())
def test_nothing_stands_by_hand_that_the_generated_list_has(spec: ProviderSpec) -> None:
    generated = price_list().of(spec.name)
    by_hand = spec.prices[len(generated) :]
    assert not {entry.model for entry in generated} & {entry.model for entry in by_hand}
    for entry in by_hand:
        assert entry.date, f"{entry.model}: when was it found?"


def test_the_generated_list_says_where_it_is_from() -> None:
    found = price_list()
    assert found.registry == "genai-prices"
    assert [part.isdigit() for part in found.version.split(".")] == [True, True, True]
    assert set(found.providers) <= set(names())


def test_reasons_are_for_models_in_service() -> None:
    for spec in SPECS:
        for entry in spec.unpriced:
            assert any(why_unpriced(spec, model) == entry.why for model in live(spec)), entry.match


def _all_rates(entry: ListPrice) -> Iterator[Rates]:
    yield entry.price
    yield from entry.price.tiers
