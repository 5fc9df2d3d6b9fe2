"""The models of a configuration, as a table or as JSON lines, and why the others are off."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from wireglot.cli.argument_parser import near
from wireglot.cli.terminal import OK, Failed, Paint, columns_of, count, laid_out, one_line
from wireglot.gateway import config
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.stored_forms import now_ms
from wireglot_core.providers import spec as catalog
from wireglot_core.providers.limits import Limits
from wireglot_core.providers.prices import Price, price_of
from wireglot_core.providers.spec import ModelSpec, ProviderSpec, limits_of

_MILLION: Final = 1_000_000
_SHORT: Final = {"image": "img", "document": "doc"}
"""Inputs in the table; JSON has the whole words."""
_OFF: Final = "  (off)"
_HEADS: Final = ("model", "context", "output", "takes", "price in/out")
_LEAST: Final = (3, 2, 1)
"""Columns that a narrow terminal omits, in this order: inputs, output, context."""


class ModelRow(msgspec.Struct, frozen=True):
    """One model of one provider. Tokens are 0 and the price is None if unknown."""

    name: str
    on: bool
    context: int
    output: int
    takes: tuple[str, ...]
    price: Price | None
    off_because: str = ""

    def cells(self) -> tuple[str, ...]:
        return (
            one_line(self.name),
            _tokens(self.context),
            _tokens(self.output),
            " ".join(_SHORT.get(kind, kind) for kind in self.takes) or "-",
            _price(self.price),
        )

    def document(self) -> dict[str, Any]:
        price = self.price
        return {
            "name": self.name,
            "on": self.on,
            "context": self.context or None,
            "output": self.output or None,
            "takes": list(self.takes),
            "price": None
            if price is None
            else {"input": price.input / _MILLION, "output": price.output / _MILLION},
            **({"off_because": self.off_because} if self.off_because else {}),
        }


def run(arguments: argparse.Namespace) -> int:
    """Of the named file, or of the one that `wireglot serve` would find."""
    pattern: str = arguments.pattern
    path = Path(arguments.config) if arguments.config else config.find()
    settings = config.load(path, create_secret=False, keys_needed=False)
    known = [*_rows_of(settings), *_rows_that_are_off(settings)]
    rows = [row for row in known if pattern in row.name and (row.on or arguments.all)]
    if pattern and not rows:
        raise Failed(_nothing(pattern, known))
    if arguments.names:
        for row in rows:
            print(one_line(row.name))
        return OK
    if arguments.json:
        for row in rows:
            print(msgspec.json.encode(row.document()).decode())
        return OK
    _print_table(rows)
    if not pattern:
        _print_rest(settings)
    return OK


def _nothing(pattern: str, known: Sequence[ModelRow]) -> str:
    text = f"no available model matches {one_line(pattern)}"
    off = [row for row in known if not row.on and pattern in row.name]
    if off:
        best = min(off, key=lambda row: _distance(row.name, pattern))
        provider, _, model = best.name.partition("/")
        if pattern in (provider, model, best.name):
            return f"{text}: {best.name} is off, {best.off_because}"
        return f"{text}: provider {provider} is off, {best.off_because} ({best.name})"
    names = {name: row for row in known for name in (row.name, row.name.partition("/")[2])}
    meant = near(pattern, names)
    return f"{text}: did you mean {meant}?" if meant else text


def _distance(name: str, pattern: str) -> tuple[bool, bool, bool, bool, int]:
    """How far a model is from a pattern: the provider's name or the model's own first, and those of the
    vendor before those of others who serve it."""
    provider, _, model = name.partition("/")
    is_home = provider in catalog.names() and catalog.provider(provider).home
    return (
        pattern not in (provider, model),
        not provider.startswith(pattern),
        not is_home,
        not model.startswith(pattern),
        len(model),
    )


def _print_table(rows: Sequence[ModelRow]) -> None:
    paint = Paint(sys.stdout)
    table = [_HEADS, *(row.cells() for row in rows)]
    room = columns_of(sys.stdout) - (0 if all(row.on for row in rows) else len(_OFF))
    for column in _LEAST:
        if _width(table) <= room:
            break
        table = [tuple(cell for at, cell in enumerate(cells) if at != column) for cells in table]
    heads, *others = laid_out(table, room)
    if len(heads) == 1:
        print(paint(heads[0], "bold"))
    for row, lines in zip(rows, others, strict=True):
        text = "\n".join(lines)
        print(text if row.on else paint(f"{text}{_OFF}", "dim"))


def _width(table: Sequence[tuple[str, ...]]) -> int:
    columns = [max(map(len, column)) for column in zip(*table, strict=True)]
    return sum(columns) + 2 * (len(columns) - 1)


def _print_rest(settings: Settings) -> None:
    rules = [rule for rule in settings.rules if rule.targets]
    if rules:
        print("\nCustom names ([models]):")
        for rule in rules:
            print(one_line(f"  {rule.match} -> {', '.join(rule.targets)}"))
    off = [(name, f"set {variable}") for name, variable in settings.off.items()]
    off += [(name, _why_off(catalog.provider(name))) for name in _off(settings) if name not in settings.off]
    if off:
        print(f"\n{count(len(off), 'provider')} off (--all lists their models):")
        width = max(len(name) for name, _ in off)
        for name, why in off:
            print(f"  {name.ljust(width)}  {why}")


def _rows_of(settings: Settings) -> Iterator[ModelRow]:
    for provider in settings.providers.values():
        yield from _rows(settings, provider.name, provider.spec)


def _rows_that_are_off(settings: Settings) -> Iterator[ModelRow]:
    for name in _off(settings):
        yield from _rows(settings, name, catalog.provider(name))


def _off(settings: Settings) -> list[str]:
    return [name for name in catalog.names() if name not in settings.providers]


def _rows(settings: Settings, name: str, spec: ProviderSpec) -> Iterator[ModelRow]:
    for entry in spec.models:
        if entry.is_name and not entry.retired:
            yield _row(settings, name, spec, entry)


def _row(settings: Settings, name: str, spec: ProviderSpec, entry: ModelSpec) -> ModelRow:
    on = name in settings.providers
    dialect = (entry.dialects or spec.dialects)[0]
    limits = limits_of(spec, dialect, entry.match)
    return ModelRow(
        name=f"{name}/{entry.match}",
        on=on,
        context=entry.context,
        output=entry.output or limits.max_tokens,
        takes=("embed",) if entry.embeds else tuple(_takes(limits)),
        price=price_of(
            settings.prices, spec, entry.match, provider=name, at=now_ms(), currency=settings.currency
        ),
        off_because="" if on else f"set {settings.off[name]}" if name in settings.off else _why_off(spec),
    )


def _takes(limits: Limits) -> Iterator[str]:
    """What differs between models: all of them accept text, and tools unless stated otherwise."""
    if limits.thinking not in (None, "none"):
        yield "think"
    yield from limits.media


def _why_off(spec: ProviderSpec) -> str:
    if spec.auth != "none" and spec.api_key_env:
        return f"set {' or '.join(spec.api_key_env)}"
    return f"add [providers.{spec.name}] to the configuration"


def _tokens(number: int) -> str:
    if not number:
        return "-"
    if number >= _MILLION:
        return f"{number / _MILLION:.3g}M"
    return f"{number / 1000:.4g}k" if number >= 1000 else str(number)


def _price(price: Price | None) -> str:
    if price is None:
        return "-"
    return f"{price.input / _MILLION:.4g}/{price.output / _MILLION:.4g}"
