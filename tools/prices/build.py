"""The registry's dump -> `prices.json` of the catalog: prices and context windows of live models."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec

from wireglot_core.providers.list_price import ListPrice, Price, PriceList, Tier
from wireglot_core.providers.prices import micro
from wireglot_core.providers.spec import ProviderSpec, names, provider

NAMES: Final = Path(__file__).with_name("names.toml")
_FIELDS: Final = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_long",
    "output_reasoning_mtok": "reasoning",
}
"""Audio, searches and the like have no count of ours: docs/usage.md says so."""
_DATED: Final = re.compile(r"-20\d{6}$")


class Alias(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One table of names.toml."""

    registry: str
    prefix: str = ""
    """Of our names, which the registry leaves out."""
    names: dict[str, str] = {}
    without: tuple[str, ...] = ()
    """Not to be taken from the registry."""
    weekdays_of_hours: tuple[int, ...] = ()
    """The days on which prices of certain hours hold: the registry cannot say so."""
    source: str = ""
    """Instead of the registry's first page."""


class Missing(Exception):
    """What names.toml points at is not there."""


def aliases_of(text: str) -> dict[str, Alias]:
    return msgspec.convert(tomllib.loads(text), dict[str, Alias])


def built(dump: Mapping[str, Any], aliases: Mapping[str, Alias], today: str) -> PriceList:
    providers, contexts = {}, {}
    for name in names():
        alias = aliases.get(name)
        if alias is not None:
            found = tuple(_prices(provider(name), alias, dump, today))
            if not found:
                raise Missing(f"{name}: {dump['registry']} has no model of {alias.registry!r} that we know")
            providers[name] = found
            if windows := dict(_contexts(provider(name), alias, dump)):
                contexts[name] = windows
    return PriceList(
        registry=dump["registry"], version=dump["version"], date=today, providers=providers, contexts=contexts
    )


def written(prices: PriceList) -> str:
    """A line for each figure, so that a change of one is a change of its line."""
    parts = []
    for name, entries in prices.providers.items():
        lines = ",\n".join(f"      {msgspec.json.encode(entry).decode()}" for entry in entries)
        parts.append(f'    "{name}": [\n{lines}\n    ]')
    text = ",\n".join(parts)
    windows = []
    for name, models in prices.contexts.items():
        lines = ",\n".join(f'      "{model}": {tokens}' for model, tokens in models.items())
        windows.append(f'    "{name}": {{\n{lines}\n    }}')
    contexts = ",\n".join(windows)
    head = f'"registry": "{prices.registry}",\n  "version": "{prices.version}",\n  "date": "{prices.date}"'
    return f'{{\n  {head},\n  "providers": {{\n{text}\n  }},\n  "contexts": {{\n{contexts}\n  }}\n}}\n'


def live(spec: ProviderSpec) -> list[str]:
    """Names of models that can be asked for and are in service."""
    return [entry.match for entry in spec.models if entry.is_name and not entry.retired]


def _prices(spec: ProviderSpec, alias: Alias, dump: Mapping[str, Any], today: str) -> Iterator[ListPrice]:
    theirs = dump["providers"].get(alias.registry)
    if theirs is None:
        raise Missing(f"{spec.name}: {dump['registry']} has no provider {alias.registry!r}")
    source = alias.source or next((url for url in theirs["urls"] if url.startswith("https://")), "")
    found = dict(_known(spec, alias, theirs["models"]))
    for name, wanted in alias.names.items():
        if name not in found and name in live(spec):
            raise Missing(f"{spec.name}: {dump['registry']} has no model {wanted!r} any more")
    for name, conditions in found.items():
        yield from _conditional(name, conditions, source, today, alias.weekdays_of_hours)


def _contexts(spec: ProviderSpec, alias: Alias, dump: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    return _known(spec, alias, dump["providers"][alias.registry].get("contexts", {}))


def _known(spec: ProviderSpec, alias: Alias, theirs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What the registry has under the name of each live model."""
    models = {name.lower(): value for name, value in theirs.items()}
    for name in live(spec):
        wanted = alias.names.get(name, name.removeprefix(alias.prefix)).lower()
        value = models.get(wanted) or models.get(_DATED.sub("", wanted))
        if value is not None and name not in alias.without:
            yield name, value


def _conditional(
    name: str, conditions: list[dict[str, Any]], source: str, today: str, weekdays: tuple[int, ...]
) -> Iterator[ListPrice]:
    """One that holds now, then those that are announced, then those of certain hours."""
    now: dict[str, Any] = conditions[0]["prices"]
    later, hourly = [], dict[Price, list[tuple[int, int]]]()
    for each in conditions:
        if "from" in each:
            hours = (_whole_hour(each["from"]), _whole_hour(each["to"]) or 24)
            hourly.setdefault(_price(each["prices"]), []).append(hours)
        elif each.get("since", "") <= today:
            now = each["prices"]
        else:
            later.append(
                ListPrice(model=name, price=_price(each["prices"]), source=source, since=each["since"])
            )
    yield ListPrice(model=name, price=_price(now), source=source)
    yield from later
    for price, spans in hourly.items():
        yield ListPrice(model=name, price=price, source=source, hours=tuple(spans), weekdays=weekdays)


def _price(amounts: Mapping[str, Any]) -> Price:
    known = {ours: amounts[theirs] for theirs, ours in _FIELDS.items() if theirs in amounts}
    marks = sorted({mark for each in known.values() if isinstance(each, dict) for mark, _ in each["tiers"]})
    tiers = tuple(
        Tier(over=mark, **{name: _amount(each, mark) for name, each in known.items()}) for mark in marks
    )
    return Price(**{name: _amount(each, 0) for name, each in known.items()}, tiers=tiers)


def _amount(value: str | dict[str, Any], mark: int) -> int:
    """What holds for requests just longer than `mark`."""
    if isinstance(value, str):
        return micro(Decimal(value))
    found = value["base"]
    for start, price in value["tiers"]:
        if start <= mark:
            found = price
    return micro(Decimal(found))


def _whole_hour(time: str) -> int:
    found = re.fullmatch(r"(\d\d):00:00(\+00:00)?", time)
    if found is None:
        raise ValueError(f"{time} is no whole hour of UTC")
    return int(found[1])
