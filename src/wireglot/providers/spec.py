"""A provider as its catalog file describes it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from wireglot.dialects.base import UpstreamOperation as Operation
from wireglot.providers.limits import CLONE, PROXY, Limits, base_limits, narrowed
from wireglot.providers.list_price import ListPrice, Unpriced, price_list

_DRESSES = frozenset({"anthropic", "google", "models", "openai"})


def plain_name(model: str) -> str:
    """The name the catalog knows, of one that a reseller or a cloud has dressed up:
    `us.anthropic.claude-sonnet-4-5-20250929-v1:0`, `anthropic/claude-sonnet-4.5`, `models/gemini-3-pro`.

    Only closed models: they are their vendor's wherever they are served. Open weights under another host's
    name (`moonshotai/kimi-k2.6`) take what that host takes."""
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
    """Models whose name matches a pattern. Every matching entry applies, in file order."""

    match: str
    title: str = ""
    limits: dict[str, Any] = {}
    dialect_limits: dict[str, dict[str, Any]] = {}
    """What holds in one dialect only, over `limits`."""
    dialects: tuple[str, ...] = ()
    """Where the model speaks fewer dialects than its provider."""
    context: int = 0
    """Tokens of the context window, 0 where unknown. Not stated where the generated list has it."""
    input: int = 0
    """The most tokens of a request, where that is less than the window."""
    output: int = 0
    embeds: bool = False
    """It makes vectors of texts, and answers nothing."""
    dimensions: int = 0
    """Of its vectors, where a request names no other number; 0: not known."""
    retired: bool = False
    successor: str = ""

    @property
    def input_limit(self) -> int:
        """The most tokens of a request, 0 where unknown."""
        return self.input or self.context

    @property
    def is_name(self) -> bool:
        """Whether it is one model's name, which can be listed, and not a pattern."""
        return not any(mark in self.match for mark in "*?[")

    @property
    def answers(self) -> bool:
        """Whether it is the name of a model that can be asked."""
        return self.is_name and not self.retired and not self.embeds

    def covers(self, model: str) -> bool:
        """By the plain name, or by the whole one where the entry has a whole one: `openai/gpt-oss-120b`."""
        if "/" in self.match:
            return fnmatchcase(model, self.match)
        name = plain_name(model)
        return "/" not in name and fnmatchcase(name, self.match)


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where limits of a file come from: the provider's own documents, its SDK, or a public report."""

    url: Annotated[str, Meta(pattern="^https://")]
    date: Annotated[str, Meta(pattern=r"^20\d\d-[01]\d-[0-3]\d$")]
    """Of code and reports, when they were written; of pages, when they were read or entered here."""
    status: Literal["read", "named"]
    """read: it was read for these limits. named: it is where the provider documents such things, and the
    limits were entered with it; they have not been compared since."""
    limits: tuple[str, ...]
    """The limits that it tells of, in whatever table of the file they stand."""
    says: str = ""


class HeaderField(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A header that a host wants as a field of the body, unless the body has that field already."""

    field: str
    listed: bool = False
    """What stands between commas is a list there."""
    values: dict[str, str] = {}
    """What is called otherwise there; any other value goes on as it is."""
    known: tuple[str, ...] = ()
    """Patterns of the values of a list that the host takes, where it refuses a request for any other."""


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a host wants a dialect that its vendor speaks otherwise."""

    paths: dict[Operation, str] = {}
    """Instead of the dialect's own; `{model}` is one segment. An operation without a path is not there."""
    without: tuple[str, ...] = ()
    """Fields of the body that the path tells."""
    from_headers: dict[str, HeaderField] = {}
    """By the names of headers, which are not sent."""
    framing: str = ""
    """Of its streams; "": server-sent events. Names one of the dialect's `framings`."""


class ProviderSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    title: str
    dialects: tuple[str, ...]
    base_url: str
    base_urls: dict[str, str] = {}
    """Bases of the dialects that do not live under `base_url`."""
    auth: Auth = "bearer"
    api_key_env: tuple[str, ...] = ()
    home: bool = False
    """The dialect's own vendor: what its clients say in it reaches the vendor as it is, fitted to nothing."""
    careful: bool = True
    """Whether only what all servers of a dialect take is translated to it (`limits.CLONE`), and what else it
    is known to. The dialect's own vendor is never treated so."""
    catalog: str = ""
    """The file it was made from; empty for one that a configuration describes."""
    streams: Streams = "both"
    websocket: bool = False
    """Whether its Responses can be had over a WebSocket, at the same URL."""
    lacks: tuple[Operation, ...] = ()
    """Endpoints that its dialects have and it has not."""
    counts: tuple[str, ...] = ()
    """Dialects in which it counts tokens by an endpoint of its own."""
    variables: dict[str, str] = {}
    """Defaults of the `{placeholders}` in a base URL; `env:ONE|OTHER` is the first variable that is set."""
    regional: dict[str, dict[str, str]] = {}
    """Defaults that follow from another variable: `host = { by = "location", global = "...", "*" = "..." }`,
    where `{}` stands for that one's value."""
    headers: dict[str, str] = {}
    forms: dict[str, Form] = {}
    """By the names of the dialects that it wants in a form of its own."""
    login: dict[str, str] = {}
    """How one signs in where there is no key: `kind`, and defaults of the other fields of a table `login`."""
    key_check: str = ""
    """A path behind `base_url` that opens to a valid key only, where anybody may see the list of models."""
    vendor: str = ""
    """Whose models it serves: what that file says about a model holds here too, unless this one says
    otherwise."""
    limits: dict[str, Any] = {}
    dialect_limits: dict[str, dict[str, Any]] = {}
    """What only one of its dialects refuses, by the dialect's name."""
    telemetry_name: str = ""
    """`gen_ai.provider.name` of OpenTelemetry's conventions, where it is not the provider's own."""
    models: tuple[ModelSpec, ...] = ()
    sources: tuple[Source, ...] = ()
    prices: tuple[ListPrice, ...] = ()
    """Those of the generated list, then those of its own file."""
    unpriced: tuple[Unpriced, ...] = ()
    free: bool = False
    """Its tokens cost nothing, in any currency."""

    def knows(self, model: str) -> bool:
        return any(entry.covers(model) for entry in self.models)

    def model(self, model: str) -> ModelSpec | None:
        """The last, most particular entry for a model."""
        matching = [entry for entry in self.models if entry.covers(model)]
        return matching[-1] if matching else None


# Built here: msgspec 0.22 lets one thread use a type that another has only begun to build.
msgspec.json.Decoder(ProviderSpec)


class UnknownProvider(ValueError):
    pass


@cache
def names() -> tuple[str, ...]:
    from importlib.resources import files  # heavy; loaded only by those who ask for a provider

    catalog = files("wireglot.providers") / "catalog"
    return tuple(sorted(entry.name[:-5] for entry in catalog.iterdir() if entry.name.endswith(".toml")))


@cache
def provider(name: str) -> ProviderSpec:
    if name not in names():
        raise UnknownProvider(f"unknown provider {name!r}: expected one of {', '.join(names())}")
    import tomllib  # here, so that `import wireglot` stays light
    from importlib.resources import files

    text = (files("wireglot.providers") / "catalog" / f"{name}.toml").read_text(encoding="utf-8")
    spec = msgspec.convert({"name": name, "catalog": name, **tomllib.loads(text)}, ProviderSpec)
    known = price_list().contexts.get(name, {})
    models = tuple(
        msgspec.structs.replace(entry, context=entry.context or known.get(entry.match, 0))
        for entry in spec.models
    )
    return msgspec.structs.replace(spec, prices=(*price_list().of(name), *spec.prices), models=models)


@lru_cache(maxsize=256)
def provider_for(dialect: str, model: str) -> ProviderSpec | None:
    """The provider of a dialect whose catalog knows the model."""
    if not model:
        return None
    for name in names():
        spec = provider(name)
        if dialect in spec.dialects and spec.knows(model):
            return spec
    return None


@lru_cache(maxsize=256)
def limits_for(dialect: str, model: str, provider_name: str = "", own: bool = False) -> Limits:
    """What a dialect demands, narrowed by the provider's file and its entries for the model."""
    spec = provider(provider_name) if provider_name else provider_for(dialect, model)
    return base_limits(dialect) if spec is None else limits_of(spec, dialect, model, own)


def limits_of(spec: ProviderSpec, dialect: str, model: str, own: bool = False) -> Limits:
    """The same for a provider that need not be in the catalog. `own`: for requests of this very dialect, from
    which only what is known to be refused is kept."""
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
    """False only for a model that the file of its vendor lists as one that does not think, on any host."""
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
    """The dialect's own vendor, where the model is one of its closed ones."""
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
    """What any model of a dialect demands; of a Claude at a reseller, how it thinks is known from its
    vendor's file. What a client says in the dialect itself stays its own. A server of which nothing is known
    stays one: its requests need no fitting."""
    base = base_limits(dialect)
    if dialect != "anthropic" or spec.home or not (spec.limits or spec.dialect_limits):
        return base
    if not plain_name(model).startswith("claude"):
        return base
    vendor = limits_of(provider("anthropic"), dialect, model)
    return msgspec.structs.replace(base, **{name: getattr(vendor, name) for name in _THINKING})
