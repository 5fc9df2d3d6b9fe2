"""Write the catalog's list of prices again from a dump of the registry (`make prices` makes both).

    python -m tools.prices DUMP.json [--today 2026-11-16]

Says what changed, which models have no price, and which by-hand prices the registry knows by now.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from tools.prices.build import NAMES, Missing, aliases_of, built, live, written
from wireglot_core.providers.list_price import ListPrice, PriceList, price_list
from wireglot_core.providers.prices import why_unpriced
from wireglot_core.providers.spec import names, provider

LIST = Path(str(files("wireglot_core.providers"))) / "catalog" / "prices.json"


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools.prices", description=__doc__)
    parser.add_argument("dump", type=Path)
    parser.add_argument("--today", default=f"{datetime.now(UTC):%Y-%m-%d}")
    options = parser.parse_args()
    try:
        dump = json.loads(options.dump.read_text(encoding="utf-8"))
        new = built(dump, aliases_of(NAMES.read_text(encoding="utf-8")), options.today)
    except Missing as missing:
        print(f"prices: {missing}: see tools/prices/names.toml", file=sys.stderr)
        return 1
    old = price_list()
    LIST.write_text(written(new), encoding="utf-8")
    for line in changes(old, new):
        print(line)
    without = [line for name in names() for line in unexplained(name, new)]
    for line in without:
        print(f"prices: {line}", file=sys.stderr)
    return 1 if without else 0


def changes(old: PriceList, new: PriceList) -> Iterator[str]:
    yield f"{old.registry} {old.version} of {old.date} -> {new.registry} {new.version} of {new.date}"
    for name in sorted({*old.providers, *new.providers}):
        before, after = (_by_model(which, name) for which in (old, new))
        for model in sorted({*before, *after}):
            if before.get(model) != after.get(model):
                word = "new" if model not in before else "gone" if model not in after else "changed"
                yield f"{word}: {name}/{model}"
    for name in names():
        for model in sorted(by_hand(name) & {*_by_model(new, name)}):
            yield f"no longer needed by hand: {name}/{model}"
    for name in sorted({*old.contexts, *new.contexts}):
        was, now = (which.contexts.get(name, {}) for which in (old, new))
        for model in sorted({*was, *now}):
            if was.get(model) != now.get(model):
                yield f"context: {name}/{model} {was.get(model, 'unknown')} -> {now.get(model, 'unknown')}"


def unexplained(name: str, new: PriceList) -> Iterator[str]:
    """Models in service that have neither a price nor a word why."""
    spec = provider(name)
    priced = {*_by_model(new, name)} | by_hand(name)
    for model in live(spec):
        if not spec.free and model not in priced and not why_unpriced(spec, model):
            yield f"{name}/{model} has no price: add it to [[prices]] or [[unpriced]] of its catalog file"


def by_hand(name: str) -> set[str]:
    """Models whose price stands in the provider's own file."""
    generated = len(price_list().of(name))
    return {each.model for each in provider(name).prices[generated:]}


def _by_model(prices: PriceList, name: str) -> dict[str, list[ListPrice]]:
    found: dict[str, list[ListPrice]] = {}
    for each in prices.providers.get(name, ()):
        found.setdefault(each.model, []).append(each)
    return found


if __name__ == "__main__":
    sys.exit(main())
