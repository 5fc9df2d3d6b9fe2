"""Which dialects a provider speaks, and under which base URL each of them lives."""

from __future__ import annotations

from typing import Any

from wireglot.dialects.registry import surfaces
from wireglot.gateway.config.problems import one_of, shown
from wireglot.gateway.config.provider_table import ProviderTable
from wireglot.gateway.config.table import Table
from wireglot.gateway.config.urls import base_url
from wireglot.providers.spec import ProviderSpec


def upstream_dialects() -> tuple[str, ...]:
    """All that a provider can speak, those among them that were registered from outside."""
    return tuple(surface.name for surface in surfaces() if surface.upstream is not None)


def read_dialects(table: Table, start: ProviderSpec, *, known: bool) -> dict[str, Any]:
    """`dialects`, `base_url` and `base_urls` of a spec. `start` is the catalog's entry if it is `known`."""
    dialects = _dialects(table)
    others = _base_urls(table)
    url = base_url(table, "base_url", _checked_as(start, dialects, others))
    if known and "base_url" not in table:
        _refuse_strange(table, start, dialects, others)
    return _where(start, dialects, url, others)


def _dialects(table: Table) -> tuple[str, ...]:
    several: tuple[str, ...] = table.read(ProviderTable, "dialects")
    one: str = table.read(ProviderTable, "dialect")
    known = upstream_dialects()
    if one and several:
        table.wrong("dialect", "either dialect or dialects", "both")
    for field, spoken in (("dialect", (one,) if one else ()), ("dialects", several)):
        for dialect in spoken:
            if dialect not in known:
                table.wrong(field, one_of(known, dialect), shown(dialect))
    spoken = several or ((one,) if one else ())
    return tuple(dict.fromkeys(dialect for dialect in spoken if dialect in known))


def _base_urls(table: Table) -> dict[str, str]:
    urls = table.table("base_urls")
    known = upstream_dialects()
    for dialect in urls.values:
        if dialect not in known:
            urls.wrong(dialect, one_of(known, dialect), "another name")
    return {dialect: base_url(urls, dialect, dialect) for dialect in known if dialect in urls}


def _checked_as(start: ProviderSpec, dialects: tuple[str, ...], others: dict[str, str]) -> str:
    """The dialect whose convention a `base_url` must follow: one of those that will live there. Beside an
    OpenAI form `/v1` is no mistake: the Anthropic form goes without it, or has a base of its own."""
    known = dialects or tuple(dialect for dialect in start.dialects if dialect not in start.base_urls)
    living = [dialect for dialect in known if dialect not in others]
    return next((dialect for dialect in living if dialect != "anthropic"), living[0] if living else "")


def _refuse_strange(
    table: Table, entry: ProviderSpec, dialects: tuple[str, ...], others: dict[str, str]
) -> None:
    """A dialect that the entry does not speak needs a place of its own."""
    for dialect in dialects:
        if dialect not in entry.dialects and dialect not in others:
            field = "dialects" if "dialects" in table else "dialect"
            expected = f"{one_of(entry.dialects)}, or a base_url for another"
            table.wrong(field, expected, shown(dialect))


def _where(
    start: ProviderSpec, dialects: tuple[str, ...], url: str, others: dict[str, str]
) -> dict[str, Any]:
    """Dialects and URLs together. With a `base_url` of its own nothing goes to the entry's other hosts:
    what lives beside it (an Anthropic form without `/v1`) moves along, what lives elsewhere is off unless
    `base_urls` says where it is now, or `dialects` that it is spoken here."""
    if not url:
        spoken = dialects or start.dialects
        return {"dialects": spoken, "base_urls": {**start.base_urls, **others}}
    moved: dict[str, str] = {}
    for dialect in dialects or start.dialects:
        beside = start.base_urls.get(dialect)
        along = dialect in dialects or beside is None or _root(start) == beside
        if dialect == "anthropic" and url.endswith("/v1") and along:
            moved[dialect] = url.removesuffix("/v1")
    spoken = dialects or tuple(
        dialect
        for dialect in start.dialects
        if dialect not in start.base_urls or dialect in moved or dialect in others
    )
    return {"dialects": spoken, "base_url": url, "base_urls": {**moved, **others}}


def _root(spec: ProviderSpec) -> str:
    return spec.base_url.removesuffix("/v1")
