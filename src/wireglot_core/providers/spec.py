"""A provider as its catalog file describes it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from wireglot_core.dialects.surface import UpstreamOperation as Operation
from wireglot_core.ir.errors import WireglotError
from wireglot_core.providers.limits import CLONE, PROXY, UNLISTED, Limits, base_limits, narrowed
from wireglot_core.providers.list_price import ListPrice, Unpriced, price_list

_DRESSES = frozenset({"anthropic", "google", "models", "openai"})


def plain_name(model: str) -> str:
    """The catalog's name for a model, given the name that a reseller or a cloud uses:
    `us.anthropic.claude-sonnet-4-5-20250929-v1:0`, `anthropic/claude-sonnet-4.5`, `models/gemini-3-pro`.

    Only for closed models: the vendor's limits apply wherever they are served. For open weights under another
    host's name (`moonshotai/kimi-k2.6`) that host's limits apply.
    """
    head, _, name = model.rpartition("/")
    if head and _DRESSES.isdisjoint(head.split("/")):
        name = model
    at = name.find("anthropic.")
    if at >= 0:
        name = name[at + len("anthropic.") :]
    return name.replace(".", "-") if name.startswith("claude") else name


Auth = Literal["bearer", "x-api-key", "x-goog-api-key", "api-key", "none"]
Streams = Literal["both", "only", "never"]


class ModelSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Settings for the models whose name matches a pattern. Every matching entry applies, in file order."""

    match: str
    title: str = ""
    limits: dict[str, Any] = {}
    dialect_limits: dict[str, dict[str, Any]] = {}
    """Limits that apply in one dialect only, over `limits`."""
    dialects: tuple[str, ...] = ()
    """The dialects of this model, if fewer than its provider's."""
    context: int = 0
    """Tokens of the context window, 0 if unknown. Left out if the generated list has it."""
    input: int = 0
    """Maximum tokens of a request, if less than the window."""
    output: int = 0
    embeds: bool = False
    """An embedding model: it returns vectors for texts and generates no answers."""
    dimensions: int = 0
    """The length of its vectors, unless a request sets another; 0: unknown."""
    retired: bool = False
    successor: str = ""

    @property
    def input_limit(self) -> int:
        """Maximum tokens of a request, 0 if unknown."""
        return self.input or self.context

    @property
    def is_name(self) -> bool:
        """Whether `match` is the name of one model, which can be listed, rather than a pattern."""
        return not any(mark in self.match for mark in "*?[")

    @property
    def answers(self) -> bool:
        """Whether this is the name of a model that can be called."""
        return self.is_name and not self.retired and not self.embeds

    def covers(self, model: str) -> bool:
        """Whether the entry matches a model: by its plain name, or by the full one if the entry has a full
        one, such as `openai/gpt-oss-120b`."""
        if "/" in self.match:
            return fnmatchcase(model, self.match)
        name = plain_name(model)
        return "/" not in name and fnmatchcase(name, self.match)


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The source of limits in a file: the provider's own documentation, its SDK, or a public report."""

    url: Annotated[str, Meta(pattern="^https://")]
    date: Annotated[str, Meta(pattern=r"^20\d\d-[01]\d-[0-3]\d$")]
    """For code and reports, when they were written; for pages, when they were read or entered here."""
    status: Literal["read", "named"]
    """read: it was read for these limits. named: the provider documents such limits there, and they were
    entered with it but have not been compared since."""
    limits: tuple[str, ...]
    """The limits that it documents, from any table of the file."""
    says: str = ""


class HeaderField(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A header that a host wants as a field of the body, unless the body has that field already."""

    field: str
    listed: bool = False
    """The header's value is separated by commas and becomes a list."""
    values: dict[str, str] = {}
    """Header values that have another name in the body; any other value is sent unchanged."""
    known: tuple[str, ...] = ()
    """Patterns of the list values that the host accepts, if it refuses requests with any other."""


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a host's form of a dialect differs from that of the dialect's vendor."""

    paths: dict[Operation, str] = {}
    """Replace the dialect's own paths; `{model}` is one segment. An operation without a path is not
    available."""
    without: tuple[str, ...] = ()
    """Fields left out of the body because the path contains them."""
    from_headers: dict[str, HeaderField] = {}
    """Header name -> field of the body. These headers are not sent."""
    framing: str = ""
    """The framing of its streams, one of the dialect's `framings`; "": server-sent events."""


class ProviderSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    title: str
    dialects: tuple[str, ...]
    base_url: str
    base_urls: dict[str, str] = {}
    """Base URLs of the dialects that are not under `base_url`."""
    auth: Auth = "bearer"
    api_key_env: tuple[str, ...] = ()
    moved: bool = False
    """It has another base URL than the catalog's: on a host of the user's own, what the vendor has retired
    may still be served."""
    home: bool = False
    """Whether this is the dialect's own vendor: requests of the dialect's clients are passed on to it
    unchanged."""
    careful: bool = True
    """Whether translated requests are limited to what all servers of a dialect accept (`limits.CLONE`), plus
    what this one is known to accept. Never applied to the dialect's own vendor."""
    catalog: str = ""
    """The catalog file it was made from; empty for a provider defined in a configuration."""
    streams: Streams = "both"
    websocket: bool = False
    """Whether its Responses API is available over a WebSocket, at the same URL."""
    lacks: tuple[Operation, ...] = ()
    """Operations of its dialects that it does not have."""
    counts: tuple[str, ...] = ()
    """Dialects in which it has an endpoint to count tokens."""
    variables: dict[str, str] = {}
    """Defaults of the `{placeholders}` in a base URL; `env:ONE|OTHER` is the first variable that is set."""
    regional: dict[str, dict[str, str]] = {}
    """Defaults that follow from another variable: `host = { by = "location", global = "...", "*" = "..." }`,
    where `{}` is replaced by that variable's value."""
    headers: dict[str, str] = {}
    forms: dict[str, Form] = {}
    """Dialect name -> the host's own form of that dialect."""
    login: dict[str, str] = {}
    """How to sign in without a key: `kind`, and defaults of the other fields of a `login` table."""
    key_check: str = ""
    """A path after `base_url` that requires a valid key, for a provider whose list of models is public."""
    vendor: str = ""
    """The vendor whose models it serves: what that vendor's file says about a model applies here too, unless
    this file says otherwise."""
    limits: dict[str, Any] = {}
    dialect_limits: dict[str, dict[str, Any]] = {}
    """Limits of a single dialect, by the dialect's name."""
    telemetry_name: str = ""
    """`gen_ai.provider.name` of OpenTelemetry's conventions, if it differs from the provider's name."""
    models: tuple[ModelSpec, ...] = ()
    sources: tuple[Source, ...] = ()
    prices: tuple[ListPrice, ...] = ()
    """Prices of the generated list, then those of its own file."""
    unpriced: tuple[Unpriced, ...] = ()
    free: bool = False
    """Its tokens are free, in any currency."""

    def knows(self, model: str) -> bool:
        return any(entry.covers(model) for entry in self.models)

    def model(self, model: str) -> ModelSpec | None:
        """The last matching entry for a model, which is the most specific."""
        matching = [entry for entry in self.models if entry.covers(model)]
        return matching[-1] if matching else None


# Built here: msgspec 0.22 lets one thread use a type that another has only begun to build.
msgspec.json.Decoder(ProviderSpec)


class UnknownProvider(WireglotError, ValueError):
    """The catalog has no provider of this name."""

    code = "UNKNOWN_PROVIDER"

    def __str__(self) -> str:
        return self.message


@cache
def names() -> tuple[str, ...]:
    from importlib.resources import files  # heavy; loaded only when a provider is needed

    catalog = files("wireglot_core.providers") / "catalog"
    return tuple(sorted(entry.name[:-5] for entry in catalog.iterdir() if entry.name.endswith(".toml")))


@cache
def provider(name: str) -> ProviderSpec:
    if name not in names():
        raise UnknownProvider(f"unknown provider {name!r}: expected one of {', '.join(names())}")
    import tomllib  # here, so that `import wireglot` stays light
    from importlib.resources import files

    text = (files("wireglot_core.providers") / "catalog" / f"{name}.toml").read_text(encoding="utf-8")
    spec = msgspec.convert({"name": name, "catalog": name, **tomllib.loads(text)}, ProviderSpec)
    known = price_list().contexts.get(name, {})
    models = tuple(
        msgspec.structs.replace(entry, context=entry.context or known.get(entry.match, 0))
        for entry in spec.models
    )
    return msgspec.structs.replace(spec, prices=(*price_list().of(name), *spec.prices), models=models)


@lru_cache(maxsize=256)
def provider_for(dialect: str, model: str) -> ProviderSpec | None:
    """The provider that speaks the dialect and whose catalog file has the model."""
    if not model:
        return None
    for name in names():
        spec = provider(name)
        if dialect in spec.dialects and spec.knows(model):
            return spec
    return None


@lru_cache(maxsize=256)
def limits_for(dialect: str, model: str, provider_name: str = "", own: bool = False) -> Limits:
    """The limits of a dialect, narrowed by the provider's file and its entries for the model."""
    spec = provider(provider_name) if provider_name else provider_for(dialect, model)
    return base_limits(dialect) if spec is None else limits_of(spec, dialect, model, own)


def limits_of(spec: ProviderSpec, dialect: str, model: str, own: bool = False) -> Limits:
    """Like `limits_for`, for a provider that need not be in the catalog. `own`: for requests in this very
    dialect, from which only what is known to be refused is removed."""
    limits = _resold(spec, dialect, model) if own else _careful(spec, dialect, model)
    if spec.catalog and limits.file_addresses is None:
        limits = msgspec.structs.replace(limits, file_addresses=())
    limits = narrowed(limits, spec.limits)
    limits = narrowed(limits, spec.dialect_limits.get(dialect, {}))
    inherited = provider(spec.vendor).models if spec.vendor else ()
    for entry in (*inherited, *spec.models):
        if entry.covers(model):
            limits = narrowed(limits, entry.limits)
            limits = narrowed(limits, entry.dialect_limits.get(dialect, {}))
    return limits


@lru_cache(maxsize=256)
def may_reason(dialect: str, model: str) -> bool:
    """False only for a model that its vendor's file lists as one that does not think; applies on any host."""
    vendor = _vendor_of(dialect, model)
    return vendor is None or limits_of(vendor, dialect, model).thinking != "none"


def _careful(spec: ProviderSpec, dialect: str, model: str) -> Limits:
    if spec.home or not spec.careful:
        return _resold(spec, dialect, model)
    vendor = _vendor_of(dialect, model)
    if vendor is None:
        return narrowed(base_limits(dialect), CLONE.get(dialect, {}))
    limits = _resold(spec, dialect, model) if spec.catalog else limits_of(vendor, dialect, model)
    return narrowed(limits, PROXY.get(dialect, {}))


def _vendor_of(dialect: str, model: str) -> ProviderSpec | None:
    """The dialect's own vendor, if the model is one of its closed models."""
    known = provider_for(dialect, model)
    return known if known is not None and known.home else None


_THINKING = (
    "thinking",
    "efforts",
    "thinking_off",
    "between_tools",
    "budget_min",
    "budget_max",
    "thinks_by_default",
    "thinking_in_loop",
    "tool_choices_thinking",
)


def _resold(spec: ProviderSpec, dialect: str, model: str) -> Limits:
    """The limits of a dialect for a model at this host; for a Claude model at a reseller, the thinking limits
    come from Anthropic's file. What a client says about thinking in the dialect itself is not changed. A
    server without known limits keeps the defaults: its requests need no fitting."""
    base = base_limits(dialect)
    if not spec.home and not spec.catalog and spec.careful:
        base = narrowed(base, UNLISTED.get(dialect, {}))
    if dialect != "anthropic" or spec.home or not (spec.limits or spec.dialect_limits):
        return base
    if not plain_name(model).startswith("claude"):
        return base
    vendor = limits_of(provider("anthropic"), dialect, model)
    return msgspec.structs.replace(base, **{name: getattr(vendor, name) for name in _THINKING})
