"""[prices] with prices by length."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.config.config_files import QUIET, loaded
from tests.tiers import rows
from wireglot.gateway.config import ConfigError
from wireglot_core.providers.list_price import Price, Tier


def prices(tmp_path: Path, line: str) -> Price:
    (rule,) = loaded(tmp_path, f'[prices]\n"m" = {line}\n', QUIET).prices
    return rule.price


def test_prices_of_long_requests_are_read(tmp_path: Path) -> None:
    long = "{ over = 200000, input = 4, output = 18, cache_read = 0.4 }, { over = 500000, input = 8, output = 36 }"
    assert prices(tmp_path, f"{{ input = 2, output = 12, cache_read = 0.2, tiers = [{long}] }}") == Price(
        2_000_000,
        12_000_000,
        200_000,
        tiers=(
            Tier(over=200_000, input=4_000_000, output=18_000_000, cache_read=400_000),
            Tier(over=500_000, input=8_000_000, output=36_000_000),
        ),
    )


@rows(
    ("tiers", "reported"),
    [
        ("3", "tiers: expected a list of tables with over, input and output"),
        ("[{ input = 1, output = 1 }]", "tiers[0].over: expected tokens of input"),
        ("[{ over = 0, input = 1, output = 1 }]", "tiers[0].over: expected tokens of input"),
        (
            "[{ over = 9, input = 1, output = 1 }, { over = 9, input = 1, output = 1 }]",
            "tiers[1].over: expected tokens of input, more than the tier before",
        ),
        ("[{ over = 9, input = 1 }]", "tiers[0].output: expected a price for a million tokens"),
        ("[{ over = 9, input = 1, output = 1, tiers = [] }]", "tiers[0].tiers: expected"),
    ],
)
def test_a_wrong_one_is_reported_by_its_place(tmp_path: Path, tiers: str, reported: str) -> None:
    with pytest.raises(ConfigError) as caught:
        prices(tmp_path, f"{{ input = 1, output = 1, tiers = {tiers} }}")
    assert f"prices.m.{reported}" in str(caught.value)
