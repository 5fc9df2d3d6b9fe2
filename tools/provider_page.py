"""docs/reference/providers.md: what the catalog knows, provider by provider."""

from __future__ import annotations

from collections.abc import Iterator

from tools.blocks import table
from wireglot.stores.records import MICRO
from wireglot_core.providers.list_price import Rates, day_number, price_list
from wireglot_core.providers.prices import why_unpriced
from wireglot_core.providers.spec import ModelSpec, ProviderSpec, names, provider

_ABOUT = """\
# Providers

The catalog: the defaults of `[providers.NAME]`. A provider is on when
[the configuration](../configuration.md) names it, or when one of its key variables is set. Models that
are not listed here (of some providers, none is listed) can be requested as `provider/model`. Listed models
can also be requested without the provider's name: the first provider that is on and lists the model is used
(the vendor before resellers).
"""

_NOTES = """\
**home**: the dialect's own vendor; requests in it
[are forwarded unchanged](../gateway.md#forwarded-or-translated).
**read**, **named**: the source of its limits, with the date. `read`: the limits were taken from this page;
`named`: the page where the provider documents them.
**price**: list price for a million tokens of input and of output, with cached input in brackets;
`>`: for longer requests. The sources are listed above the table. [How it is used](../usage.md#prices).
**counts**: dialects in which the provider counts tokens; for others
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
    yield f"- {_bases(spec)}"
    if spec.variables:
        text = ", ".join(f"`{name}` = `{value}`" for name, value in sorted(spec.variables.items()))
        yield f"- placeholders: {text}"
    if spec.streams != "both":
        yield f"- streams: {spec.streams}"
    yield from _gone(spec)
    yield from _sources(spec)
    yield from _price_sources(spec)
    listed = [_row(spec, entry) for entry in spec.models if entry.is_name and not entry.retired]
    if listed:
        heads = ("model", "context", "output", "price", "dialects")
        used = [place for place in range(len(heads)) if any(row[place] for row in listed)]
        yield from ("", table(_chosen(heads, used), [_chosen(row, used) for row in listed]))
    yield ""


def _chosen(cells: tuple[str, ...], places: list[int]) -> tuple[str, ...]:
    return tuple(cells[place] for place in places)


def _sources(spec: ProviderSpec) -> Iterator[str]:
    for source in spec.sources:
        limits = ", ".join(f"`{limit}`" for limit in source.limits)
        yield f"- {source.status} {source.date}: <{source.url}> ({limits})"


def _price_sources(spec: ProviderSpec) -> Iterator[str]:
    reported = dict.fromkeys((entry.source, entry.date, entry.says) for entry in spec.prices)
    for source, day, says in reported:
        yield f"- prices {day}: <{source}>{f', {says}' if says else ''}"
    if any(entry.hours for entry in spec.prices):
        yield "- some prices apply only at certain hours: the table lists the prices of all other hours"


def _price(spec: ProviderSpec, model: str) -> str:
    """As of the day of the list: the page must not change by itself."""
    if spec.free:
        return "free"
    at = 86_400_000 * day_number(price_list().date)
    found = [entry for entry in spec.prices if entry.model == model and not entry.hours]
    now = next((entry for entry in reversed(found) if entry.holds(at)), None)
    if now is None:
        return f"none: {why_unpriced(spec, model)}"
    reported = _rates(now.price, now.currency)
    reported += "".join(f"; > {tier.over:,}: {_rates(tier, now.currency)}" for tier in now.price.tiers)
    later = (entry for entry in found if entry.since is not None)
    return reported + "".join(
        f"; from {entry.since}: {_rates(entry.price, entry.currency)}" for entry in later
    )


def _rates(rates: Rates, currency: str) -> str:
    if (rates.input, rates.output) == (0, 0):
        return "free"
    cached = f" ({rates.cache_read / MICRO:g})" if rates.cache_read is not None else ""
    sign = "$" if currency == "USD" else f"{currency} "
    return f"{sign}{rates.input / MICRO:g}{cached} / {sign}{rates.output / MICRO:g}"


def _bases(spec: ProviderSpec) -> str:
    others = [f"{dialect}: `{url}`" for dialect, url in sorted(spec.base_urls.items())]
    return "base URL " + "; ".join([f"`{spec.base_url}`", *others])


def _row(spec: ProviderSpec, entry: ModelSpec) -> tuple[str, ...]:
    return (
        f"`{entry.match}`",
        _tokens(entry.context),
        _tokens(entry.output),
        _price(spec, entry.match),
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
