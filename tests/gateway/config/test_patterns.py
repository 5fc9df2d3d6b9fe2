"""Rules for names with `*`."""

from __future__ import annotations

import pytest

from wireglot.gateway.config import models
from wireglot.gateway.settings import Rule


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
