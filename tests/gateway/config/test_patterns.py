"""Names with `*`."""

from __future__ import annotations

import re
from itertools import product

import pytest

from wireglot.gateway.config import models
from wireglot.gateway.config.patterns import caught
from wireglot.gateway.settings import Rule


def test_a_pattern_catches_what_a_regular_expression_would() -> None:
    patterns = ["".join(each) for length in range(5) for each in product("ab*", repeat=length)]
    texts = ["".join(each) for length in range(6) for each in product("ab", repeat=length)]
    for pattern in patterns:
        expected = re.compile("(.*)".join(map(re.escape, pattern.split("*"))), re.DOTALL)
        for text in texts:
            found = expected.fullmatch(text)
            assert caught(pattern, text) == (None if found is None else found.groups()), (pattern, text)


def test_nothing_else_is_special_in_a_pattern() -> None:
    assert caught("a.b[c]?*", "a.b[c]?\nd") == ("\nd",)
    assert caught("a.b", "axb") is None


def test_a_long_text_is_compared_in_no_time() -> None:
    """A regular expression would take years: for each star it tries all places for all others."""
    assert caught("*-a" * 20 + "-b", "-a" * 500_000) is None
    assert caught("*-a" * 20, "-a" * 500_000) is not None


def test_rules_of_thousands_of_names_are_not_compared_with_one_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A reload would stop all requests for seconds."""
    compared: list[str] = []

    def covers(earlier: Rule, later: Rule) -> bool:
        compared.append(later.match)
        return False

    monkeypatch.setattr(models, "_covers", covers)
    names = [*(f"model-{number}" for number in range(3000)), "a-*", "model-7", "b-*"]
    assert list(models.unreachable_rules([Rule(name, ("x/y",)) for name in names], ())) == []
    assert compared == ["model-7", "b-*"]
