"""docs/reference/providers.md: what the catalog knows, provider by provider."""

from __future__ import annotations

from collections.abc import Iterator

from tools.blocks import table
from wireglot.providers.spec import ModelSpec, ProviderSpec, names, provider

_ABOUT = """\
# Providers

The catalog: what `[providers.NAME]` means without any further field. A provider is on when
[the configuration](../configuration.md) names it, or when one of its key variables is set. Model names that
are not listed here work too, as `provider/model`; those listed also work bare, at the first provider that is
on and knows them (the model's vendor before resellers).
"""

_NOTES = """\
**home**: the dialect's own vendor; requests in it
[go there as they are](../gateway.md#passed-through-or-translated).
**read**, **named**: where its limits come from, and of which date: read for them, or the place where the
provider documents such things.
**counts**: dialects in which it counts tokens itself; for others
[the gateway estimates](../gateway.md#counting-tokens).
"""


def page() -> list[str]:
    specs = [provider(name) for name in names()]
    rows = [
        (
            f"[`{spec.name}`](#{spec.name})",
            spec.title,
            ", ".join(f"`{dialect}`" for dialect in spec.dialects),
            " or ".join(f"`{variable}`" for variable in spec.api_key_env) or "none needed",
            "yes" if spec.home else "",
            ", ".join(f"`{dialect}`" for dialect in spec.counts),
        )
        for spec in specs
    ]
    heads = ("name", "who", "dialects, preferred first", "key", "home", "counts")
    return [_ABOUT, table(heads, rows), "", _NOTES, *(line for spec in specs for line in _section(spec))]


def _section(spec: ProviderSpec) -> Iterator[str]:
    yield from (f"## {spec.name}", "")
    yield from (f"- {spec.title}", f"- {_bases(spec)}")
    if spec.variables:
        told = ", ".join(f"`{name}` = `{value}`" for name, value in sorted(spec.variables.items()))
        yield f"- placeholders: {told}"
    if spec.streams != "both":
        yield f"- streams: {spec.streams}"
    yield from _gone(spec)
    yield from _sources(spec)
    listed = [_row(entry) for entry in spec.models if entry.is_name and not entry.retired]
    if listed:
        heads = ("model", "title", "context", "output", "dialects")
        yield from ("", table(heads, listed))
    else:
        yield "- no models are known by name: ask for them as `" + spec.name + "/MODEL`"
    yield ""


def _sources(spec: ProviderSpec) -> Iterator[str]:
    for source in spec.sources:
        limits = ", ".join(f"`{limit}`" for limit in source.limits)
        yield f"- {source.status} {source.date}: <{source.url}> ({limits})"


def _bases(spec: ProviderSpec) -> str:
    others = [f"{dialect}: `{url}`" for dialect, url in sorted(spec.base_urls.items())]
    return "base URL " + "; ".join([f"`{spec.base_url}`", *others])


def _row(entry: ModelSpec) -> tuple[str, ...]:
    return (
        f"`{entry.match}`",
        entry.title,
        _tokens(entry.context),
        _tokens(entry.output),
        ", ".join(f"`{dialect}`" for dialect in entry.dialects),
    )


def _tokens(count: int) -> str:
    return f"{count:,}" if count else ""


def _gone(spec: ProviderSpec) -> Iterator[str]:
    gone = [
        f"`{entry.match}`" + (f" (use `{entry.successor}`)" if entry.successor else "")
        for entry in spec.models
        if entry.retired
    ]
    if gone:
        yield f"- retired, answered with 404: {', '.join(gone)}"
