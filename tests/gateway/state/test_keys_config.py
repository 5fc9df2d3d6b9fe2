"""Limits and ends of the keys that stand in wireglot.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.config.config_files import digest, loaded, problems
from tests.tiers import rows
from wireglot.stores.records import KeyQuotas


def key(lines: str) -> str:
    return f'[providers.demo]\n[keys.team]\nhash = "{digest("secret")}"\n{lines}\n'


def test_limits_stand_beside_the_hash(tmp_path: Path) -> None:
    text = key(
        "requests_per_minute = 60\ntokens_per_minute = 40000\nconcurrent = 5\ntokens_per_day = 1000000\n"
        "tokens_per_month = 5000000\ncost_per_day = 2.50\ncost_per_month = 50"
    )
    (found,) = loaded(tmp_path, text).keys
    assert found.limits == KeyQuotas(60, 40_000, 5, 1_000_000, 5_000_000, 2_500_000, 50_000_000)
    assert found.expires == 0


def test_a_key_without_limits_has_none(tmp_path: Path) -> None:
    (found,) = loaded(tmp_path, key("")).keys
    assert not found.limits


def test_money_is_never_rounded_by_binary_fractions(tmp_path: Path) -> None:
    (found,) = loaded(tmp_path, key("cost_per_day = 0.1\ncost_per_month = 1.000001")).keys
    assert (found.limits.cost_per_day, found.limits.cost_per_month) == (100_000, 1_000_001)


def test_an_amount_below_a_millionth_is_not_without_limit(tmp_path: Path) -> None:
    (found,) = loaded(tmp_path, key("cost_per_day = 0.0000001\ncost_per_month = 0")).keys
    assert (found.limits.cost_per_day, found.limits.cost_per_month) == (1, 0)


@rows(
    ("text", "milliseconds"),
    [
        ("2027-01-31", 1_801_353_600_000),
        ("2027-01-31T00:00:00", 1_801_353_600_000),
        ("2027-01-31T00:00:00Z", 1_801_353_600_000),
        ("2027-01-31T02:00:00+02:00", 1_801_353_600_000),
        ('"2027-01-31"', 1_801_353_600_000),
    ],
)
def test_a_key_ends_at_a_date_or_a_time(tmp_path: Path, text: str, milliseconds: int) -> None:
    (found,) = loaded(tmp_path, key(f"expires = {text}")).keys
    assert found.expires == milliseconds


@rows(
    ("line", "field", "said"),
    [
        ("requests_per_minute = -1", "requests_per_minute", "a whole number from 0"),
        ("requests_per_minute = 1.5", "requests_per_minute", "a whole number from 0"),
        ("concurrent = true", "concurrent", "a whole number from 0"),
        ("cost_per_day = -0.5", "cost_per_day", "an amount of money"),
        ("cost_per_day = nan", "cost_per_day", "an amount of money"),
        ("cost_per_day = inf", "cost_per_day", "an amount of money"),
        ('cost_per_day = "2"', "cost_per_day", "an amount of money"),
        ("expires = 30", "expires", "a date or a time"),
        ("expires = 12:00:00", "expires", "a date or a time"),
        ('expires = "soon"', "expires", "a date or a time"),
        ("tokens_a_day = 5", "tokens_a_day", "did you mean tokens_per_day?"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(tmp_path: Path, line: str, field: str, said: str) -> None:
    found = problems(tmp_path, key(line))
    assert list(found) == [f"keys.team.{field}"]
    assert said in found[f"keys.team.{field}"]


@pytest.mark.parametrize("name", ["local", "admin"])
def test_a_caller_that_is_no_key_gives_its_name_to_none(tmp_path: Path, name: str) -> None:
    """THREATS T5: such a key would read what was stored before there were keys."""
    text = f'[providers.demo]\n[keys]\n{name} = "{digest("secret")}"\n'
    found = problems(tmp_path, text)
    assert list(found) == [f"keys.{name}"]
    assert "but not" in found[f"keys.{name}"]


GROUPED = """
[groups.eng]
models = ["demo/*"]
losses = "strict"
cost_per_month = 50
requests_per_minute = 10
[groups.eng.shared]
cost_per_month = 2000
[groups.eng.safeguards]
mode = "off"
"""


def test_a_key_has_what_it_leaves_out_from_its_group(tmp_path: Path) -> None:
    found = loaded(tmp_path, key('group = "eng"\nowner = "ada@example.com"\ncost_per_month = 5') + GROUPED)
    (own,) = found.keys
    assert own.limits == KeyQuotas(requests_per_minute=10, cost_per_month=5_000_000)
    assert (own.models, own.losses, own.owner) == (("demo/*",), "strict", "ada@example.com")
    group = found.groups["eng"]
    assert group.shared == KeyQuotas(cost_per_month=2_000_000_000)
    assert group.safeguards is not None
    assert group.safeguards.mode == "off"


def test_what_a_key_sets_wins_over_its_group(tmp_path: Path) -> None:
    text = key('group = "eng"\nmodels = ["fast"]\nlosses = "warn"\nrequests_per_minute = 3') + GROUPED
    (own,) = loaded(tmp_path, text).keys
    assert (own.models, own.losses) == (("fast",), "warn")
    assert own.limits == KeyQuotas(requests_per_minute=3, cost_per_month=50_000_000)


@rows(
    ("text", "field", "said"),
    [
        (key('group = "egn"') + GROUPED, "keys.team.group", "did you mean eng?"),
        (key("") + "[groups.eng]\ncost = 3\n", "groups.eng.cost", "an unknown one"),
        (key("") + "[groups.eng.shared]\ncost_per_month = -1\n", "groups.eng.shared.cost_per_month", "money"),
        (key("") + '[groups.eng.safeguards]\nmode = "on"\n', "groups.eng.safeguards.mode", "judge"),
        (key("") + '[groups.eng.safeguards]\nmodel = "away/m"\n', "groups.eng.safeguards.model", "provider"),
        (key("") + '[groups."a/b"]\n', 'groups."a/b"', "a name of letters"),
        ("groups = 3\n" + key(""), "groups", "a table"),
        (key("") + "[groups]\neng = 3\n", "groups.eng", "a table"),
    ],
)
def test_what_is_wrong_with_a_group_is_reported(tmp_path: Path, text: str, field: str, said: str) -> None:
    found = problems(tmp_path, text)
    assert list(found) == [field]
    assert said in found[field]
