"""Model names -> their targets. Pure: a function of one settings snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import Final, Protocol

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.settings import LossPolicy, Provider, Rule, Settings
from wireglot.gateway.targets.context_size import context_dialect
from wireglot_core.dialects import registry
from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.capabilities import WebSockets
from wireglot_core.dialects.surface import StreamUsage, Surface, UpstreamSide
from wireglot_core.ir.content import Origin
from wireglot_core.ir.purpose import NO_FACTS, RequestFacts
from wireglot_core.providers.endpoints import NoEndpoint, Operation, endpoint
from wireglot_core.providers.fit.fit import Fitter
from wireglot_core.providers.limits import Limits, base_limits
from wireglot_core.providers.spec import limits_of, names
from wireglot_core.providers.spec import provider as known_provider
from wireglot_core.wire.wildcards import caught


class LostState(msgspec.Struct, frozen=True):
    """The reasoning state in an upstream's answers that clients may not send back."""

    foreign: bool
    """The upstream's dialect is of another family: clients have no place for its state."""
    shown: bool = False
    """The plain reasoning of a server that the catalog does not know, dropped by clients. A server that has
    shown some accepts it back."""
    replaced: bool = False
    """Clients of the upstream's own dialect may send placeholders for its signatures."""
    any: bool = False
    bare: bool = False
    """Signatures come back without their minter: they would be sent to another model or account, in vain."""


def lost_state(client: Surface, upstream: Surface, limits: Limits, *, catalog: bool) -> LostState:
    about = client.reasoning
    foreign = upstream.family != client.family
    shown = not foreign and about.drops_thoughts and limits.reasoning == "own" and not catalog
    replaced = not foreign and bool(about.placeholders) and limits.call_signatures
    dropped = about.drops_thoughts and limits.reasoning == "text"
    return LostState(
        foreign=foreign,
        shown=shown,
        replaced=replaced,
        any=about.returns != "all" and (foreign or shown or replaced or dropped),
        bare=about.bare_signatures and upstream.name != client.name,
    )


class Target(msgspec.Struct, frozen=True):
    """One upstream for clients of one dialect: a provider, the model there, and the dialect to use with
    it."""

    provider: Provider
    model: str
    dialect: str
    limits: Limits
    fitter: Fitter
    """Fits requests to these limits."""
    plain: bool
    """No request can need fitting: the dialect's own vendor, or a server without known limits."""
    codec: Dialect
    surface: Surface
    """The dialect over HTTP."""
    upstream: UpstreamSide
    name: str
    """The name of provider and model."""
    urls: Mapping[Operation, str]
    """URLs of the operations that the provider has an endpoint for."""
    minter: Origin | None
    """The minter of what answers leave unsigned, if the client's dialect is of another family."""
    lost: LostState
    asked_usage: StreamUsage | None
    """How the usage of its streams is requested, for the ledger. A server that the catalog does not know may
    reject that option."""
    inlines_media: bool = False
    """Whether it accepts no images and files by URL, so that the gateway may download them."""
    loads: bool = False
    """Whether its server loads models with a context of a requested size, see `relay/context_sizes.py`. The
    client's dialect cannot request one."""
    losses: LossPolicy | None = None
    others: tuple[Target, ...] = ()
    """The same model there, in the provider's other dialects."""

    @property
    def websockets(self) -> WebSockets | None:
        """How requests are sent to it over a WebSocket, if it has one."""
        spec = self.provider.spec
        return self.surface.websockets if spec.websocket and self.dialect not in spec.forms else None


class Unroutable(Exception):
    """No provider for a model; the message tells the user what would help."""


class Retired(Unroutable):
    pass


_ASKED_OF_MODELS: Final[tuple[Operation, ...]] = (
    "generate", "stream", "compact", "count", "embed", "embed_one",
)  # fmt: skip
_EMBEDS: Final[tuple[Operation, ...]] = ("embed", "embed_one")
# Characters of a model's name in a request.
_MAX_MODEL_LETTERS = 256
# Names of models whose targets are cached.
_MAX_ROUTES = 4096
_CONTROL = re.compile(r"[\x00-\x20\x7f]")


class RequestTraits(Protocol):
    """What the conditions of rules need to know about a request. Each is called only if a rule needs it."""

    def effort(self) -> str: ...

    def facts(self) -> RequestFacts: ...

    def prompt_tokens(self) -> int:
        """An estimate; 0 if the request cannot be parsed."""
        ...

    def has_images(self) -> bool: ...


class KnownTraits(msgspec.Struct, frozen=True):
    """Known traits of a request. By default it meets no condition."""

    asked_effort: str = ""
    about: RequestFacts = NO_FACTS
    tokens: int = 0
    images: bool = False

    def effort(self) -> str:
        return self.asked_effort

    def facts(self) -> RequestFacts:
        return self.about

    def prompt_tokens(self) -> int:
        return self.tokens

    def has_images(self) -> bool:
        return self.images


NO_TRAITS: Final = KnownTraits()


class Router:
    """Caches the routes of the current settings: most requests are for models that others have used.

    `has_conditions`: whether any rule of the settings has one. If none has, a route depends only on the model
    and the client's dialect.
    """

    def __init__(self, settings: Settings) -> None:
        self.adopt(settings)

    def adopt(self, settings: Settings) -> None:
        self._settings = settings
        self.has_conditions = any(rule.is_conditional for rule in settings.rules)
        self._rules: dict[str, tuple[Rule, ...]] = {}
        self._routes: dict[tuple[str, str, Rule | None], tuple[Target, ...]] = {}
        self._embedding: dict[tuple[str, str, Rule | None], tuple[Target, ...]] = {}

    def reads_body(self, settings: Settings, model: str) -> bool:
        """Whether the body may have to be parsed to find the route of a model."""
        return any(rule.reads_body for rule in self._matching(settings, model))

    def targets(
        self, settings: Settings, model: str, dialect: str, traits: RequestTraits = NO_TRAITS
    ) -> tuple[Target, ...]:
        """Raises a RequestError that says what would help."""
        if settings is not self._settings:  # reloaded since the request came in: its own routes apply
            return _checked_route(settings, model, dialect, traits)
        rule = _applying(self._matching(settings, model), traits) if self.has_conditions else None
        key = (model, dialect, rule)
        found = self._routes.get(key)
        if found is None:
            found = _checked_route(settings, model, dialect, traits)
            if len(self._routes) >= _MAX_ROUTES:  # model names come from clients
                self._routes.clear()
            self._routes[key] = found
        return found

    def embedding_targets(
        self, settings: Settings, model: str, dialect: str, traits: RequestTraits = NO_TRAITS
    ) -> tuple[Target, ...]:
        """The targets of `targets` that embed, each in a dialect that does."""
        targets = self.targets(settings, model, dialect, traits)
        key = (model, dialect, _applying(self._matching(settings, model), traits))
        found = self._embedding.get(key) if settings is self._settings else None
        if found is None:
            found = _that_embed(targets, dialect)
            if settings is self._settings:
                if len(self._embedding) >= _MAX_ROUTES:
                    self._embedding.clear()
                self._embedding[key] = found
        if not found:
            who = ", ".join(dict.fromkeys(target.provider.name for target in targets))
            raise RequestError(
                "bad",
                f"model: {model} has no embeddings API ({who})",
                code="unsupported",
                param="model",
            )
        return found

    def _matching(self, settings: Settings, model: str) -> tuple[Rule, ...]:
        if settings is not self._settings or len(model) > _MAX_MODEL_LETTERS:
            return _matching_rules(settings, model)
        found = self._rules.get(model)
        if found is None:
            if len(self._rules) >= _MAX_ROUTES:
                self._rules.clear()
            found = self._rules[model] = _matching_rules(settings, model)
        return found


def _checked_route(settings: Settings, model: str, dialect: str, traits: RequestTraits) -> tuple[Target, ...]:
    if not model:
        raise RequestError("bad", "model: expected the name of a model", code="invalid_value", param="model")
    try:
        return route(settings, model, dialect, traits)
    except Unroutable as nowhere:
        raise RequestError("not_found", f"model: {nowhere}", param="model") from None


def route(
    settings: Settings, model: str, dialect: str, traits: RequestTraits = NO_TRAITS
) -> tuple[Target, ...]:
    """The upstreams for a model, in the order they are to be tried."""
    if not model:
        raise Unroutable("no model was named")
    if len(model) > _MAX_MODEL_LETTERS or _CONTROL.search(model):
        raise Unroutable(
            "a model name must not contain spaces or control characters, and has at most 256 characters"
        )
    rule = _applying(_matching_rules(settings, model), traits)
    if rule is not None:
        return tuple(_target(settings, name, dialect, rule.losses) for name in _named(rule, model))
    return (_target(settings, model, dialect, None),)


def known_name(settings: Settings, model: str, plain: str) -> str:
    """The name of a model on a cloud if [models] has a rule for it, or a provider is named before it; else
    `plain`, its name on its vendor's own API. A pattern that also matches the plain name is for that one."""
    prefix, slash, _ = model.partition("/")
    if model == plain or (slash and prefix in settings.providers):
        return model
    for rule in _rules_for(settings, model):
        if caught(rule.match, model) is not None and caught(rule.match, plain) is None:
            return model
    return plain


def named_targets(settings: Settings, model: str) -> list[str]:
    """The names that [models] maps a name to; the name itself if no rule applies."""
    rule = _applying(_matching_rules(settings, model), NO_TRAITS)
    return _named(rule, model) if rule is not None else [model]


def _applying(rules: Iterable[Rule], traits: RequestTraits) -> Rule | None:
    """The first rule whose conditions the request meets. Conditions that are cheap to check come first."""
    tokens = -1
    for rule in rules:
        if rule.purpose and traits.facts().purpose not in rule.purpose:
            continue
        if rule.agent and not _is_agent(traits.facts().agent, rule.agent):
            continue
        if rule.effort and traits.effort() not in rule.effort:
            continue
        if rule.images and not traits.has_images():
            continue
        if rule.prompt_over:
            tokens = traits.prompt_tokens() if tokens < 0 else tokens
            if tokens <= rule.prompt_over:
                continue
        return rule
    return None


def _is_agent(agent: str, names: tuple[str, ...]) -> bool:
    lowered = agent.lower()
    return bool(agent) and any(caught(name.lower(), lowered) is not None for name in names)


def _matching_rules(settings: Settings, model: str) -> tuple[Rule, ...]:
    """The rules for a name, in the order in which they are tried: an exact name before patterns, patterns in
    the order of the file. None follows one without a condition."""
    found: list[Rule] = []
    for rule in _rules_for(settings, model):
        if caught(rule.match, model) is not None:
            found.append(rule)
            if not rule.is_conditional:
                break
    return tuple(found)


def _named(rule: Rule, model: str) -> list[str]:
    """The targets of a rule, with their `*` replaced by what its pattern matched."""
    found = caught(rule.match, model)
    assert found is not None, f"{rule.match} is no rule for {model}"
    return [_filled(target, found) for target in rule.targets]


def _rules_for(settings: Settings, model: str) -> list[Rule]:
    """Rules for exactly this name, then patterns. A name that begins with a provider means that provider:
    only patterns that name it, too, apply (`kimi/*`)."""
    exact = [rule for rule in settings.rules if rule.match == model]
    prefix, slash, rest = model.partition("/")
    named = slash and rest and (prefix in settings.providers or prefix in settings.off)
    start = f"{prefix}/" if named else ""
    patterns = [rule for rule in settings.rules if rule.match != model and "*" in rule.match]
    return exact + [rule for rule in patterns if rule.match.startswith(start)]


def _filled(target: str, caught: tuple[str, ...]) -> str:
    for text in caught:
        target = target.replace("*", text, 1)
    return target


def _target(settings: Settings, name: str, dialect: str, losses: LossPolicy | None) -> Target:
    provider, model = _provider_of(settings, name)
    entry = provider.spec.model(model)
    if entry is not None and entry.retired and not provider.spec.moved:
        instead = f": use {entry.successor}" if entry.successor else ""
        raise Retired(f"{provider.name} has retired {model}{instead}")
    spoken = (entry.dialects if entry is not None and entry.dialects else None) or provider.spec.dialects
    asking = registry.surface(dialect)
    own = dialect if asking.upstream is not None else asking.family
    if asking.upstream is not None and asking.upstream.of_family and asking.family in spoken:
        spoken = (own, *spoken)
    chosen = own if own in spoken else spoken[0]
    policy = losses or provider.losses
    first = _spoken_in(provider, model, chosen, asking, own=chosen == own, losses=policy)
    if provider.spec.home and first.limits.thinking != "none":
        return first  # a vendor's reasoning state goes back in the dialect that it came in
    others = tuple(
        _spoken_in(provider, model, name, asking, own=name == own, losses=policy)
        for name in spoken
        if name != chosen
    )
    return msgspec.structs.replace(first, others=others) if others else first


def _that_embed(targets: Iterable[Target], dialect: str) -> tuple[Target, ...]:
    """The client's own dialect comes first, as for any request."""
    asking = registry.surface(dialect)
    found = []
    for target in targets:
        provider, entry = target.provider, target.provider.spec.model(target.model)
        spoken = (entry.dialects if entry is not None and entry.dialects else None) or provider.spec.dialects
        for name in dict.fromkeys((target.dialect, *spoken)):
            if registry.surface(name).embeddings is None:
                continue
            there = (
                target
                if name == target.dialect
                else _spoken_in(
                    provider, target.model, name, asking, own=name == dialect, losses=target.losses
                )
            )
            if any(operation in there.urls for operation in _EMBEDS):
                found.append(there)
                break
    return tuple(found)


def _spoken_in(
    provider: Provider, model: str, dialect: str, asking: Surface, *, own: bool, losses: LossPolicy | None
) -> Target:
    """The target in one dialect of a provider, for clients that speak `asking`. `own`: they speak it too."""
    stated = limits_of(provider.spec, dialect, model, own=True)
    codec = registry.dialect(dialect)
    spoken_there = codec.surface
    assert spoken_there.upstream is not None, f"{dialect} is spoken by no server"
    limits = stated if own else limits_of(provider.spec, dialect, model)
    lost = lost_state(asking, spoken_there, limits, catalog=bool(provider.spec.catalog))
    fitter = Fitter.between(limits, asking.name, dialect)
    refuses = not limits.media_urls and base_limits(dialect).media_urls
    """Whether the provider rejects media URLs that its dialect allows, also from clients of that dialect."""
    loading = context_dialect(provider.spec)
    return Target(
        provider,
        model,
        dialect,
        limits,
        fitter,
        plain=provider.spec.home or _refuses_nothing(stated, dialect),
        codec=codec,
        surface=spoken_there,
        upstream=spoken_there.upstream,
        name=f"{provider.name}/{model}",
        urls=_urls(provider, dialect, model),
        minter=Origin(spoken_there.family, provider.name, model) if lost.foreign else None,
        lost=lost,
        asked_usage=spoken_there.upstream.stream_usage if provider.spec.catalog else None,
        inlines_media=refuses or not fitter.target.limits.media_urls,
        loads=bool(loading) and registry.surface(loading).family != asking.family,
        losses=losses,
    )


def _urls(provider: Provider, dialect: str, model: str) -> dict[Operation, str]:
    urls: dict[Operation, str] = {}
    for operation in _ASKED_OF_MODELS:
        with suppress(NoEndpoint):
            urls[operation] = endpoint(provider.spec, dialect, operation, model, provider.variables)
    return urls


def _refuses_nothing(limits: Limits, dialect: str) -> bool:
    """Whether requests need no fitting. Leaked calls only concern the answer, and a host of the dialect's own
    vendor reports a URL that it cannot open."""
    return msgspec.structs.replace(limits, leaks_calls=(), file_addresses=None) == base_limits(dialect)


def _provider_of(settings: Settings, name: str) -> tuple[Provider, str]:
    prefix, slash, rest = name.partition("/")
    if slash and prefix in settings.providers and rest:
        return settings.providers[prefix], rest
    if slash and prefix == "models" and rest:  # Gemini's long form
        return _provider_of(settings, rest)
    # A provider that lists exactly this name is a better match than one with a pattern that happens to fit
    # it.
    for provider in settings.providers.values():
        if any(entry.match == name for entry in provider.spec.models):
            return provider, name
    for provider in settings.providers.values():
        # `ollama/kimi-k3` names a provider: no other one gets it, unless that one names its models this way.
        if any(entry.covers(name) and (not slash or "/" in entry.match) for entry in provider.spec.models):
            return provider, name
    if slash and prefix and rest:
        raise Unroutable(_of_provider(settings, prefix, rest))
    on = ", ".join(settings.providers) or "none"
    raise Unroutable(
        f"no provider lists the model {name!r}: request it as provider/model or add a line to [models] "
        f"(providers that are on: {on})"
    )


def _nearest(provider: Provider, model: str) -> str:
    """A model of the provider that exists: the named one or the one most like it; else the provider."""
    if provider.spec.knows(model):
        return f"{provider.name}/{model}"
    listed = [entry.match for entry in provider.spec.models if entry.is_name]
    near = get_close_matches(model.lower(), listed, n=1)
    return f"{provider.name}/{near[0]}" if near else f"a model of {provider.name}"


def _of_provider(settings: Settings, prefix: str, model: str) -> str:
    """What to do about a model of a provider that is off."""
    if prefix in settings.off:
        problem = f"the provider {prefix} is off: set {settings.off[prefix]}"
    elif prefix in names():
        spec = known_provider(prefix)
        how = f"add [providers.{prefix}] to the configuration"
        if spec.auth != "none" and spec.api_key_env:
            how = f"set {' or '.join(spec.api_key_env)}, or {how} with its api_key"
        problem = f"the provider {prefix} is off: to turn it on, {how}"
    else:
        problem = f"there is no provider {prefix!r}"
        near = get_close_matches(prefix.lower(), [*settings.providers, *names()], n=1)
        if near and near[0] in settings.providers:
            return f"{problem}: did you mean {_nearest(settings.providers[near[0]], model)}?"
        if near:
            problem += f" (did you mean {near[0]}, which is off?)"
    others = [f"{each.name}/{model}" for each in settings.providers.values() if each.spec.knows(model)]
    if others:
        return f"{problem}; {model} is available as: {', '.join(others)}"
    return f"{problem} (providers that are on: {', '.join(settings.providers) or 'none'})"
