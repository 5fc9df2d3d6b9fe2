"""[prices]: what models cost, for those whose price the catalog does not know or knows otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from msgspec import NODEFAULT

from wireglot.gateway.config.declared import declared
from wireglot.gateway.config.problems import Problems, key_path, kind, shown
from wireglot.gateway.config.table import Table
from wireglot.providers.prices import Price, PriceRule, micro
from wireglot.stores.records import MICRO

_EXPECTED: Final = "a price for a million tokens"


def read_prices(value: object, problems: Problems) -> tuple[PriceRule, ...]:
    if not isinstance(value, Mapping):
        problems.add("prices", "a table", kind(value))
        return ()
    rules = []
    for match, given in value.items():
        path = key_path("prices", match)
        if not isinstance(given, Mapping):
            problems.add(path, "a table with input and output", kind(given))
            continue
        rules.append(PriceRule(match, _price(Table(given, path, problems))))
    return tuple(rules)


def _price(table: Table) -> Price:
    """Written in units of the currency for a million tokens, kept in millionths of them."""
    found: dict[str, int] = {}
    for setting in declared(Price).values():
        value = table.raw(setting.name)
        if value is None:
            if setting.default is NODEFAULT:
                table.wrong(setting.name, _EXPECTED, "none")
            continue
        if type(value) not in (int, float) or not 0 <= value < (setting.less_than or 0) / MICRO:
            table.wrong(setting.name, _EXPECTED, shown(value))
            continue
        found[setting.attribute] = micro(Decimal(str(value)))
    table.close()
    return Price(**{"input": 0, "output": 0, **found})
