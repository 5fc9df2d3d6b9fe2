"""The models that a client may use, listed in the format of its dialect."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec

from wireglot.gateway.entry.callers import may_ask
from wireglot.gateway.errors import RequestError, refusal
from wireglot.gateway.relay.context_sizes import ContextSizes
from wireglot.gateway.relay.outbound import list_outbound
from wireglot.gateway.relay.sign_ins import SignIns
from wireglot.gateway.request.headers import identity
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.settings import ClientKey, Credential, Provider, Settings
from wireglot.gateway.targets.context_size import context_dialect
from wireglot.gateway.targets.routing import Unroutable, route
from wireglot.http.transport import Timeouts, Transport, TransportFault
from wireglot_core.dialects.listed_model import ListedModel, UpstreamModel, read_list
from wireglot_core.dialects.registry import surface
from wireglot_core.dialects.surface import CONFIRM, Surface
from wireglot_core.ir.errors import ClientFault
from wireglot_core.ir.failures import AttemptFailed
from wireglot_core.providers.spec import ModelSpec
from wireglot_core.wire.json import BadJson, decode

FRESH_SECONDS: Final = 60.0
"""A list younger than this is not requested again. Users who load a local model look for it at once."""
KEPT_SECONDS: Final = 3600.0
"""A list younger than this is reported although its server is down."""
RETRY_SECONDS: Final = 15.0
WAIT_SECONDS: Final = 2.0
"""Maximum time that a page waits; a later answer is used for the next one."""
# Models that are read of one provider's list.
MAX_MODELS: Final = 5000
# Models of one provider that are requested one by one for their context.
MAX_SHOWN: Final = 64
# Bytes of one provider's list of models.
_MAX_BYTES: Final = 16 * 2**20
_TIMEOUTS: Final = Timeouts(first_byte=5.0, total=10.0)


class Listed(msgspec.Struct, frozen=True):
    """`models` by provider; `age` in seconds, of the oldest list; `silent`: providers that were asked and
    reported none."""

    models: Mapping[str, tuple[UpstreamModel, ...]] = {}
    age: int = 0
    silent: tuple[str, ...] = ()


class _Entry:
    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.models: tuple[UpstreamModel, ...] | None = None
        self.at = 0.0
        self.tried = float("-inf")
        self.asking: asyncio.Task[None] | None = None


class UpstreamLists:
    """The model lists of providers, one instance per process. Only providers without models in the catalog
    are queried: for the others it knows more than they report."""

    def __init__(
        self,
        transports: dict[str, Transport],
        clock: Callable[[], float] | None = None,
        sign_ins: SignIns | None = None,
        contexts: ContextSizes | None = None,
    ) -> None:
        self._transports = transports
        self._sign_ins = sign_ins or SignIns()
        self._clock = clock
        self._contexts = contexts or ContextSizes(transports)
        self._entries: dict[str, _Entry] = {}
        self._reported: dict[str, tuple[UpstreamModel, ...]] = {}

    async def of(self, providers: Iterable[Provider]) -> Listed:
        now = self._clock or asyncio.get_running_loop().time
        entries = [self._entry(provider) for provider in providers if is_asked(provider)]
        if not entries:
            return Listed()
        for entry in entries:
            self._refresh(entry, now())
        missing = [entry.asking for entry in entries if entry.models is None and entry.asking is not None]
        if missing:
            await asyncio.wait(missing, timeout=WAIT_SECONDS)
        at = now()
        known = {
            entry.provider.name: entry.models
            for entry in entries
            if entry.models is not None and at - entry.at <= KEPT_SECONDS
        }
        if known != self._reported:
            self._reported = known  # the same object while nothing changes: derived results stay valid
        ages = [at - entry.at for entry in entries if entry.provider.name in known]
        silent = tuple(entry.provider.name for entry in entries if entry.provider.name not in known)
        return Listed(self._reported, round(max(ages, default=0.0)), silent)

    def _entry(self, provider: Provider) -> _Entry:
        entry = self._entries.get(provider.name)
        if entry is None or (entry.provider is not provider and entry.provider != provider):
            entry = self._entries[provider.name] = _Entry(provider)
        return entry

    def _refresh(self, entry: _Entry, now: float) -> None:
        """Request the list, unless that is in progress or was done a moment ago."""
        if entry.asking is not None:
            return
        pause = FRESH_SECONDS if entry.models is not None and entry.at >= entry.tried else RETRY_SECONDS
        if now - entry.tried < pause:
            return
        entry.tried = now
        entry.asking = asyncio.create_task(self._ask(entry, now))

    async def _ask(self, entry: _Entry, now: float) -> None:
        try:
            found = await self._fetched(entry.provider)
            if found is not None:
                entry.models, entry.at = found, now
        except (TransportFault, AttemptFailed):
            pass  # unreachable, or access denied: its last list stays valid for a while
        finally:
            entry.asking = None

    async def _fetched(self, provider: Provider) -> tuple[UpstreamModel, ...] | None:
        credential = provider.credentials[0] if provider.credentials else None
        if credential is not None and credential.login is not None:
            credential = await self._sign_ins.ready(credential)
        question = list_outbound(provider, credential)
        if question is None:
            return None
        answer = await self._transports[question.url.partition(":")[0]].send(question, _TIMEOUTS)
        try:
            if answer.status != 200:
                answer.abort()
                return None
            found = read_list(decode(await answer.read(_MAX_BYTES)), MAX_MODELS)
        except BadJson:
            return None
        except BaseException:
            answer.abort()
            raise
        return await self._sized(provider, credential, found)

    async def _sized(
        self, provider: Provider, credential: Credential | None, found: tuple[UpstreamModel, ...]
    ) -> tuple[UpstreamModel, ...]:
        """With the contexts that the server reports for single models only."""
        bare = [model for model in found if not model.context and not model.embeds][:MAX_SHOWN]
        if not bare or not context_dialect(provider.spec):
            return found
        shown = await asyncio.gather(
            *(self._contexts.shown(provider, model.id, credential) for model in bare)
        )
        sizes = {model.id: most for model, (most, _) in zip(bare, shown, strict=True) if most}
        return tuple(
            msgspec.structs.replace(model, context=sizes[model.id]) if model.id in sizes else model
            for model in found
        )


def is_asked(provider: Provider) -> bool:
    return not any(entry.is_name for entry in provider.spec.models)


class ModelPages:
    """Lists of models and single models, and other pages that a vendor's own client requests."""

    OPERATIONS: Final = frozenset({"models", "model", "assist", "operation", "managed"})

    def __init__(self, upstreams: UpstreamLists) -> None:
        self._upstreams = upstreams
        self._of: tuple[Settings, Listed] | None = None
        self._known: dict[str, tuple[ListedModel, ...]] = {}

    async def answer(self, page: PageRequest) -> None:
        spoken = surface(page.asked.dialect)
        theirs = await self._upstreams.of(page.settings.providers.values())
        for silent in theirs.silent:
            page.record.noted(f"{silent} has returned no list of models")
        if page.asked.operation == "managed":
            self._send_managed(page, spoken, theirs)
            return
        try:
            document = self._document(page, spoken, theirs)
        except ClientFault as fault:
            raise RequestError("bad", str(fault).removeprefix("$.")) from None
        if document is None:
            raise RequestError("not_found", f"there is no endpoint {page.head.path}", code="unknown_url")
        page.send(document, more=[("age", str(theirs.age))] if theirs.models else None)

    def _document(self, page: PageRequest, spoken: Surface, theirs: Listed) -> dict[str, Any] | None:
        asked = page.asked
        models: Sequence[ListedModel] = permitted(
            self._listed(page.settings, asked.dialect, theirs), page.caller.key
        )
        match asked.operation:
            case "models":
                if spoken.models.with_aliases is not None:
                    models = spoken.models.with_aliases(models, page.head.headers.get("user-agent", ""))
                return render_list(spoken, models, page.head.query)
            case "model":
                name = asked.model
                if spoken.models.named is not None:
                    name = spoken.models.named(page.document())
                page.record.model = name
                plain = spoken.client.model_name(name)
                found = find(models, name) or find(models, plain) or _unlisted(page, plain, theirs)
                confirm = spoken.models.confirm if asked.verb == CONFIRM else None
                return (confirm or spoken.models.render_model)(found)
        if spoken.assist is None:
            return None
        if asked.operation == "operation":
            return spoken.assist.operation(asked.verb)
        return spoken.assist.answer(asked.verb, page.document(), models)

    def _send_managed(self, page: PageRequest, spoken: Surface, theirs: Listed) -> None:
        """The settings for the caller's group, or for everyone; 304 if the client has them already."""
        key = page.caller.key
        group = page.settings.groups.get(key.group) if key is not None else None
        settings = (group or page.settings).managed.settings
        if settings is None or spoken.client.managed is None:
            self._send_no_policy(page)
            return
        models = permitted(self._listed(page.settings, page.asked.dialect, theirs), key)
        settings = spoken.client.managed(settings, models)
        checksum = _checksum(settings)
        known = page.head.headers.get("if-none-match", "").replace("W/", "").split(",")
        if f'"{checksum}"' in map(str.strip, known):
            page.record.answered(304)
            page.reply.send(304, identity(page.record.id, page.asked.dialect), b"")
            return
        document = {"uuid": checksum, "checksum": checksum, "settings": settings}
        page.send(document, more=[("etag", f'"{checksum}"'), ("cache-control", "private, no-cache")])

    def _send_no_policy(self, page: PageRequest) -> None:
        """Not cacheable by proxies: there may be settings the next time."""
        error = RequestError(
            "not_found", "there are no managed settings for this key", code="no_policy"
        ).error
        page.record.failed(error)
        refused = refusal(error, page.asked.dialect, page.record.id)
        page.record.answered(refused.status)
        headers = [*refused.headers, *identity(page.record.id, page.asked.dialect)]
        page.reply.send(refused.status, [*headers, ("cache-control", "no-store")], refused.body)

    def _listed(self, settings: Settings, dialect: str, theirs: Listed) -> tuple[ListedModel, ...]:
        of = self._of
        if of is None or of[0] is not settings or of[1].models is not theirs.models:
            self._of, self._known = (settings, theirs), {}
        known = self._known.get(dialect)
        if known is None:
            known = self._known[dialect] = models(settings, dialect, theirs.models)
        return known


def _checksum(settings: dict[str, Any]) -> str:
    """As clients compute it: of the JSON with sorted keys and without spaces."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _unlisted(page: PageRequest, name: str, theirs: Listed) -> ListedModel:
    """A name that is only valid through a pattern of [models] or a provider's prefix."""
    found = listed(page.settings, name.removeprefix("models/"), page.asked.dialect, theirs.models)
    if found is None or not may_ask(page.caller.key, found.id):
        raise RequestError("not_found", f"model: there is no model {name!r}", param="model")
    return found


def models(
    settings: Settings, dialect: str, theirs: Mapping[str, Sequence[UpstreamModel]] = {}
) -> tuple[ListedModel, ...]:
    """Names of rules first, then the models of each provider, bare and as `provider/model`. Each name is
    reported with the route that a request for it in this dialect takes; one without a route is not listed.
    `theirs` are models that providers list themselves: their bare names have no route."""
    names = [rule.match for rule in settings.rules if "*" not in rule.match]
    for provider in settings.providers.values():
        for entry in provider.spec.models:
            if entry.is_name and not entry.retired:
                # A bare name that begins with another provider's name would be routed to that one.
                prefix, slash, _ = entry.match.partition("/")
                if not slash or prefix not in settings.providers:
                    names.append(entry.match)
                names.append(f"{provider.name}/{entry.match}")
    names += [f"{name}/{model.id}" for name, found in theirs.items() for model in found]
    known = _by_name(theirs)
    listing = (_listed(settings, name, dialect, known) for name in dict.fromkeys(names))
    # Clients offer every listed model: a dialect without embeddings lists no models for them.
    embeds = surface(dialect).embeddings is not None
    return tuple(model for model in listing if model is not None and (embeds or not model.embeds))


def _with_figures(model: ListedModel, reported: UpstreamModel) -> ListedModel:
    """With figures that its own server reports, if the catalog has none."""
    return msgspec.structs.replace(
        model,
        title=model.title if model.title != model.id or not reported.title else reported.title,
        context=model.context or reported.context,
        output=model.output or reported.output,
        dimensions=model.dimensions or (reported.dimensions if reported.embeds else 0),
        embeds=model.embeds or reported.embeds,
        media=model.media if reported.can is None else reported.media,
        can=reported.can,
        file=reported.file,
    )


def listed(
    settings: Settings, name: str, dialect: str, theirs: Mapping[str, Sequence[UpstreamModel]] = {}
) -> ListedModel | None:
    """A name that a client may use, listed or not: a pattern of [models] may match it too."""
    return _listed(settings, name, dialect, _by_name(theirs))


def _by_name(theirs: Mapping[str, Sequence[UpstreamModel]]) -> dict[tuple[str, str], UpstreamModel]:
    return {(name, model.id): model for name, found in theirs.items() for model in found}


def _listed(
    settings: Settings, name: str, dialect: str, reported: Mapping[tuple[str, str], UpstreamModel]
) -> ListedModel | None:
    try:
        target = route(settings, name, dialect)[0]
    except Unroutable:
        return None
    spec = _entry(target.provider, target.model)
    limits = target.limits
    known = ListedModel(
        id=name,
        provider=target.provider.name,
        title=_title(name, target.provider.name, spec),
        context=spec.input_limit if spec is not None else 0,
        output=(spec.output if spec is not None else 0) or limits.max_tokens,
        dialects=(spec.dialects if spec is not None else ()) or target.provider.spec.dialects,
        thinking="" if limits.thinking in (None, "none") else limits.thinking,
        efforts=tuple(limits.efforts),
        thinking_off=limits.thinking_off,
        hosted_tools=limits.hosted_tools,
        media=tuple(limits.media),
        output_formats=tuple(limits.output_formats),
        embeds=spec is not None and spec.embeds,
        dimensions=spec.dimensions if spec is not None else 0,
    )
    names = (target.model, target.model + surface(dialect).client.alias_suffix)
    own = next(filter(None, (reported.get((target.provider.name, each)) for each in names)), None)
    return known if own is None else _with_figures(known, own)


def permitted(listing: Iterable[ListedModel], key: ClientKey | None) -> tuple[ListedModel, ...]:
    """The models that a client key allows."""
    return tuple(model for model in listing if may_ask(key, model.id))


def render_list(spoken: Surface, listing: Sequence[ListedModel], query: str = "") -> dict[str, Any]:
    """One page. A cursor that names no model and an invalid number are the client's fault."""
    return spoken.models.render_list(listing, parse_qs(query, keep_blank_values=True))


def find(listing: Sequence[ListedModel], model_id: str) -> ListedModel | None:
    """The listed model with that id, as a resource (`models/x`) or bare."""
    for wanted in dict.fromkeys((model_id, model_id.removeprefix("models/"))):
        for model in listing:
            if model.id == wanted:
                return model
    return None


def _entry(provider: Provider, model: str) -> ModelSpec | None:
    """The entry with the model's own name: it has figures, unlike a family's pattern."""
    for entry in provider.spec.models:
        if entry.match == model:
            return entry
    return provider.spec.model(model)


def _title(name: str, provider: str, spec: ModelSpec | None) -> str:
    """A model's title is shown for its own name; an alias is its own title."""
    if spec is None or not spec.title:
        return name
    if name == spec.match:
        return spec.title
    return f"{spec.title} ({provider})" if name == f"{provider}/{spec.match}" else name
