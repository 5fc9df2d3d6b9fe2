"""A provider's table -> its spec: a catalog entry as it is, one with fields replaced, or a new one."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from wireglot.gateway.config.problems import key_path, kind, one_of, shown
from wireglot.gateway.config.table import Table
from wireglot.gateway.config.urls import base_url
from wireglot.providers import spec as catalog
from wireglot.providers.limits import Limits
from wireglot.providers.spec import ModelSpec, ProviderSpec

DIALECTS: Final = ("anthropic", "openai-chat", "openai-responses", "gemini", "code-assist")
"""Those an upstream can speak."""

AUTHS: Final = ("bearer", "x-api-key", "x-goog-api-key", "none")
_USUAL_AUTH: Final = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def read_spec(name: str, table: Table) -> ProviderSpec | None:
    """None, with a problem noted, where nothing tells who it is and how it speaks. Every field is read all
    the same: its problems are to be told in the same run."""
    entry = _entry(name, table)
    start = entry or ProviderSpec(name=name, title=name, dialects=(), base_url="", auth="none")
    dialects = _dialects(table)
    others = _base_urls(table)
    url = base_url(table, "base_url", _checked_as(start, dialects, others))
    if entry is not None and "base_url" not in table:
        _refuse_strange(table, entry, dialects, others)
    where = _where(start, dialects, url, others)
    title = table.text("title", start.title)
    spec = msgspec.structs.replace(start, name=name, title=title, **where)
    spec = msgspec.structs.replace(
        spec,
        auth=table.choice("auth", AUTHS, _auth(spec, table, entry is not None)),
        home=table.flag("home", spec.home),
        streams=table.choice("streams", ("both", "only", "never"), spec.streams),
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
    wanted = table.text("catalog")
    if not wanted:
        return catalog.provider(name) if name in catalog.names() else None
    if wanted in catalog.names():
        return catalog.provider(wanted)
    table.wrong("catalog", one_of(catalog.names(), wanted), shown(wanted))
    return None


def _dialects(table: Table) -> tuple[str, ...]:
    several = table.texts("dialects", "a list of dialects")
    one = table.text("dialect")
    if one and several:
        table.wrong("dialect", "either dialect or dialects", "both")
    for field, spoken in (("dialect", (one,) if one else ()), ("dialects", several)):
        for dialect in spoken:
            if dialect not in DIALECTS:
                table.wrong(field, one_of(DIALECTS, dialect), shown(dialect))
    spoken = several or ((one,) if one else ())
    return tuple(dict.fromkeys(dialect for dialect in spoken if dialect in DIALECTS))


def _base_urls(table: Table) -> dict[str, str]:
    urls = table.table("base_urls")
    for dialect in urls.values:
        if dialect not in DIALECTS:
            urls.wrong(dialect, one_of(DIALECTS, dialect), "another name")
    return {dialect: base_url(urls, dialect, dialect) for dialect in DIALECTS if dialect in urls}


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


def _auth(spec: ProviderSpec, table: Table, known: bool) -> str:
    keyed = "api_key" in table or "api_keys" in table
    if known and (spec.auth != "none" or not keyed):
        return spec.auth
    spoken = spec.dialects[0] if spec.dialects else ""
    return _USUAL_AUTH.get(spoken, "bearer") if keyed else "none"


def _counts(table: Table, spec: ProviderSpec) -> tuple[str, ...]:
    given = table.texts("counts", "a list of its dialects")
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
    for field in msgspec.structs.fields(Limits):
        value = given.raw(field.name)
        if value is None:
            continue
        try:
            msgspec.convert(value, field.type)
            read[field.name] = value
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
        table.wrong("models", "a list of model names", kind(value))
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
    for entry in entries:
        limits.update(entry.limits)
    last = entries[-1] if entries else ModelSpec(match=name)
    dialects = tuple(dialect for dialect in last.dialects if dialect in spec.dialects)
    return msgspec.structs.replace(
        last, match=name, limits=limits, dialects=dialects, retired=False, successor=""
    )


def read_headers(table: Table) -> dict[str, Any]:
    """Header names that may be set; the values are still references."""
    given = table.table("headers")
    for name in given.values:
        if not _HEADER.fullmatch(name):
            given.wrong(name, "the name of a header", "another text")
        elif name.lower() in _OURS:
            given.wrong(name, "a header that the gateway does not set itself", name.lower())
    return {name: value for name, value in given.values.items() if _HEADER.fullmatch(name)}
