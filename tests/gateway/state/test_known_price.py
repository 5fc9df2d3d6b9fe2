"""[M5] Budgets in money on the catalog's models: priced ones are paid, the others are reported plainly."""

from __future__ import annotations

import asyncio

import pytest

from tests.gateway.kit import catalogued, exchange, settings
from tests.gateway.state.quotas_kit import DOLLAR, NOON
from tests.tiers import rows
from tools.prices.build import live
from wireglot.gateway.config.prices import known_price, why_unknown
from wireglot.gateway.entry.callers import Caller
from wireglot.gateway.errors import RequestError
from wireglot.gateway.settings import ClientKey, Settings
from wireglot.gateway.state.quotas.quotas import Quotas
from wireglot.gateway.state.quotas.reservation import Reservation
from wireglot.gateway.targets.routing import route
from wireglot.stores.memory import MemoryCounters
from wireglot.stores.memory.engine import MemoryLedger
from wireglot.stores.records import KeyQuotas
from wireglot_core.ir.outcome import Usage
from wireglot_core.providers.prices import cost, list_price
from wireglot_core.providers.spec import names

AT = int(NOON * 1000)
CATALOG = settings(*(catalogued(name) for name in names()))
MODELS = [(name, model) for name in names() for model in live(CATALOG.providers[name].spec)]


def reserved(now: Settings, model: str, **body: int) -> Reservation:
    """What a key with a budget of money reserves for a request."""
    key = ClientKey("me", "0" * 64, limits=KeyQuotas(cost_per_day=100 * DOLLAR))
    made = exchange(now, {"model": model, **body}, path="/v1/chat/completions", caller=Caller("me", key))

    async def work() -> Reservation:
        quotas = Quotas(MemoryCounters(), MemoryLedger(), "here", lambda *_, **__: None, wall=lambda: NOON)
        target = route(now, made.job.model, made.job.dialect)[0]
        found = await quotas.admit(made, target)
        await quotas.close()
        assert found is not None
        return found

    return asyncio.run(work())


@rows(("provider", "model"), MODELS, ids=["/".join(each) for each in MODELS])
def test_a_budget_in_money_pays_for_every_priced_model_and_says_why_not_for_the_others(
    provider: str, model: str
) -> None:
    price = known_price(CATALOG, provider, model, AT)
    if price is not None:
        expected = reserved(CATALOG, f"{provider}/{model}", max_tokens=100)
        assert expected.likely_cost == cost(price, expected.expected)
        return
    with pytest.raises(RequestError) as refused:
        reserved(CATALOG, f"{provider}/{model}")
    error = refused.value.error
    assert (error.status, error.code, error.param) == (403, "price_unknown", "model")
    assert why_unknown(CATALOG, provider, model, AT) in error.message
    assert error.message.endswith("add it to [prices]")


def test_a_list_price_in_dollars_says_nothing_to_who_counts_in_euros() -> None:
    euros = settings(catalogued("openai"), catalogued("demo"), currency="EUR")
    assert known_price(euros, "openai", "gpt-5", AT) is None
    with pytest.raises(RequestError, match=r"list price is in USD, and this gateway uses EUR"):
        reserved(euros, "openai/gpt-5")
    assert known_price(euros, "demo", "demo", AT) is not None


def test_what_a_request_costs_is_what_it_cost_when_it_came() -> None:
    """DeepSeek's peak hours on a Monday, and Gemini's introductory price."""
    monday = AT + 14 * 3_600_000  # 02:00 UTC
    dear, plain = (known_price(CATALOG, "deepseek", "deepseek-v4-pro", at) for at in (monday, AT))
    assert dear is not None
    assert plain is not None
    assert dear.input == 2 * plain.input


def test_a_long_prompt_is_charged_at_the_long_price() -> None:
    found = list_price(CATALOG.providers["anthropic"].spec, "claude-haiku-5-5", AT)
    assert found is not None
    short, long = Usage(input=100_000, output=1000), Usage(input=100_001, output=1000)
    assert cost(found.price, long) > 4 * cost(found.price, short)


def test_a_provider_that_nobody_configured_has_no_prices() -> None:
    assert known_price(CATALOG, "nobody", "gpt-5", AT) is None
    assert why_unknown(CATALOG, "nobody", "gpt-5", AT) == ""
