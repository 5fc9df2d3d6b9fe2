"""A provider's table -> its spec: a catalog entry as it is, one with fields replaced, or a new one."""

from __future__ import annotations

from typing import Any, Final, get_args

import msgspec

from wireglot.gateway.config.declared import declared
from wireglot.gateway.config.dialects import read_dialects
from wireglot.gateway.config.problems import key_path, kind, one_of, shown
from wireglot.gateway.config.provider_table import ProviderTable
from wireglot.gateway.config.table import Table
from wireglot.providers import spec as catalog
from wireglot.providers.limits import Limits, spelled_out
from wireglot.providers.spec import Auth, ModelSpec, ProviderSpec

AUTHS: Final = get_args(Auth)
_LIMITS: Final = msgspec.structs.fields(Limits)
"""Once: it takes milliseconds, and is wanted for each provider of each configuration."""
_USUAL_AUTH: Final = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}


def read_spec(name: str, table: Table) -> ProviderSpec | None:
    """None, with a problem noted, where nothing tells who it is and how it speaks. Every field is read all
    the same: its problems are to be told in the same run."""
    entry = _entry(name, table)
    start = entry or ProviderSpec(name=name, title=name, dialects=(), base_url="", auth="none")
    where = read_dialects(table, start, known=entry is not None)
    title = table.read(ProviderTable, "title", start.title)
    spec = msgspec.structs.replace(start, name=name, title=title, **where)
    spec = msgspec.structs.replace(
        spec,
        auth=table.read(ProviderTable, "auth", _auth(spec, table, entry is not None)),
        home=table.read(ProviderTable, "home", spec.home),
        streams=table.read(ProviderTable, "streams", spec.streams),
        counts=_counts(table, spec),
        limits={**spec.limits, **_limits(table)},
    )
    spec = msgspec.structs.replace(spec, models=_models(table, spec))
    return spec if entry is not None or _stands_alone(spec, table) else None


def _stands_alone(spec: ProviderSpec, table: Table) -> bool:
    """Whether a provider that no catalog knows says how and where it is spoken to."""
    if "catalog" in table:
        return False  # an unknown one, which is a problem already
    if not spec.dialects and not any(field in table for field in ("dialect", "dialects")):
        meant = one_of(catalog.names(), spec.name)
        table.problems.add(table.path, f"a catalog entry ({meant}), or dialect and base_url", "neither")
    elif not spec.base_url and "base_url" not in table:
        table.wrong("base_url", "the URL of the provider's API", "nothing")
    return bool(spec.dialects and spec.base_url)


def _entry(name: str, table: Table) -> ProviderSpec | None:
    wanted: str = table.read(ProviderTable, "catalog")
    if not wanted:
        return catalog.provider(name) if name in catalog.names() else None
    if wanted in catalog.names():
        return catalog.provider(wanted)
    table.wrong("catalog", one_of(catalog.names(), wanted), shown(wanted))
    return None


def _auth(spec: ProviderSpec, table: Table, known: bool) -> str:
    keyed = "api_key" in table or "api_keys" in table
    if known and (spec.auth != "none" or not keyed):
        return spec.auth
    spoken = spec.dialects[0] if spec.dialects else ""
    return _USUAL_AUTH.get(spoken, "bearer") if keyed else "none"


def _counts(table: Table, spec: ProviderSpec) -> tuple[str, ...]:
    given: tuple[str, ...] = table.read(ProviderTable, "counts")
    if "counts" not in table:
        return tuple(dialect for dialect in spec.counts if dialect in spec.dialects)
    for dialect in given:
        if dialect not in spec.dialects:
            table.wrong("counts", one_of(spec.dialects, dialect), shown(dialect))
    return given


def _limits(table: Table) -> dict[str, Any]:
    """Fields of `Limits`, as in a catalog file."""
    given = table.table("limits")
    read: dict[str, Any] = {}
    for field in _LIMITS:
        value = given.raw(field.name)
        if value is None:
            continue
        try:
            meant = spelled_out({field.name: value})[field.name]
            msgspec.convert(meant, field.type)
            read[field.name] = meant
        except msgspec.ValidationError as fault:
            given.wrong(field.name, str(fault).partition(",")[0].removeprefix("Expected "), shown(value))
    given.close()
    return read


def _models(table: Table, spec: ProviderSpec) -> tuple[ModelSpec, ...]:
    """`models` lists what is served: those names and no others, each with what the entry knows of it."""
    value = table.raw("models")
    if value is None:
        return spec.models
    if type(value) is not list or not value:
        table.wrong("models", declared(ProviderTable)["models"].expected, kind(value))
        return spec.models
    read: dict[str, ModelSpec] = {}
    for number, name in enumerate(value):
        path = key_path(table.path, "models") + f"[{number}]"
        if type(name) is not str or not name or not name.isprintable() or " " in name:
            table.problems.add(path, "the name of a model", shown(name))
        elif name in read:
            table.problems.add(path, "each name once", f"{shown(name)} again")
        else:
            read[name] = _resolved(spec, name)
    return tuple(read.values())


def _resolved(spec: ProviderSpec, name: str) -> ModelSpec:
    entries = [entry for entry in spec.models if entry.covers(name)]
    limits: dict[str, Any] = {}
    dialect_limits: dict[str, dict[str, Any]] = {}
    for entry in entries:
        limits.update(entry.limits)
        for dialect, only_there in entry.dialect_limits.items():
            dialect_limits[dialect] = {**dialect_limits.get(dialect, {}), **only_there}
    last = entries[-1] if entries else ModelSpec(match=name)
    dialects = tuple(dialect for dialect in last.dialects if dialect in spec.dialects)
    return msgspec.structs.replace(
        last,
        match=name,
        limits=limits,
        dialect_limits=dialect_limits,
        dialects=dialects,
        retired=False,
        successor="",
    )
