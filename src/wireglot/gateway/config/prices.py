"""[prices]: what models cost, for those whose price the catalog does not know or knows otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from wireglot.gateway.config.problems import Problems, key_path, kind, shown
from wireglot.gateway.config.table import Table
from wireglot.providers.prices import Price, PriceRule, micro


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
    """Units of currency for a million tokens."""
    found: dict[str, int] = {}
    for name in Price.__struct_fields__:
        value = table.raw(name)
        if value is None:
            if name in ("input", "output"):
                table.wrong(name, "a price for a million tokens", "none")
            continue
        if type(value) not in (int, float) or not 0 <= value < 1e9:
            table.wrong(name, "a price for a million tokens", shown(value))
            continue
        found[name] = micro(Decimal(str(value)))
    table.close()
    return Price(**{"input": 0, "output": 0, **found})
