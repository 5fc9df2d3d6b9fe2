"""Translation between two dialects, still pure: plan a request, translate a request, a response, a stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import msgspec

from wireglot_core.dialects.base import Dialect, StreamReader
from wireglot_core.dialects.capabilities import Embeddings
from wireglot_core.dialects.common_losses import unreported_sequence
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.embeddings import fitting_form, joined_embeddings
from wireglot_core.dialects.fields import describe
from wireglot_core.dialects.places import RequestPlaces, answer_located
from wireglot_core.dialects.plain_document import plain_document
from wireglot_core.dialects.registry import DialectName, dialect, surface
from wireglot_core.ir.content import Origin, Part
from wireglot_core.ir.errors import ClientFault, StrictLoss, Unsupported, UpstreamFault, WireglotError
from wireglot_core.ir.leaked_calls import LEAK_FAMILIES, LeakFamily
from wireglot_core.ir.loss import Loss, worst_first
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Event, Failure, Start
from wireglot_core.ir.trail import Trail
from wireglot_core.ir.verdict import NoAnswer, StreamVerdict, accept
from wireglot_core.providers.aliases import Aliases, EventRestorer
from wireglot_core.providers.carried import MinterNamer, brought_back, with_minter
from wireglot_core.providers.emulation import EmulatingReader, Emulation, Emulator
from wireglot_core.providers.fit.fit import Fitter
from wireglot_core.providers.limits import Limits
from wireglot_core.providers.shown_searches import ShownSearches
from wireglot_core.providers.spec import limits_for, may_reason
from wireglot_core.wire.json import BadJson, decode

Body = Mapping[str, Any] | bytes | str
"""JSON, or the document itself, of any mappings, sequences and subclasses of str."""

NO_MODEL = "unknown"
"""The model name if neither the body nor the caller gives one and the dialect requires it."""


class Plan(msgspec.Struct, frozen=True):
    """A client's request, ready for one upstream: what to render, and how to translate its answer."""

    client: Request
    upstream: Request
    aliases: Aliases
    context: Context
    losses: tuple[Loss, ...] = ()
    trail: Trail | None = None
    emulation: Emulation | None = None
    """What must be done with the answer, if anything."""

    def retraced(self, losses: tuple[Loss, ...]) -> tuple[Loss, ...]:
        """A renderer's losses of the fitted request, at their places in the client's request."""
        if self.trail is None or not losses:
            return losses
        return tuple(self.trail.retrace(loss, self.upstream) for loss in losses)


def plan(
    request: Request,
    *,
    source: str | None,
    target: str,
    model: str | None = None,
    provider: str | None = None,
    limits: Limits | None = None,
    fitter: Fitter | None = None,
    context: Context | None = None,
) -> Plan:
    """Fit a parsed request to the upstream that will answer it.

    `source` None: the request is of no dialect, so it is fitted to every one. `limits` are those of a
    provider that may not be in the catalog; `fitter` was made from them for both dialects.
    """
    context = context or Context()
    server = surface(target)
    name = model or request.model
    losses: list[Loss] = []
    if not name and source != target and not server.model_in_path:
        name = NO_MODEL
        losses.append(Loss("$.model", "model", "invented", "no model was named"))
    # Minters are compared only as far as the caller names the answering model: a guess must not drop a
    # signature.
    context = msgspec.structs.replace(context, provider=provider or context.provider, model=model or "")
    request = brought_back(request, context.provider)
    upstream = request if name == request.model else msgspec.structs.replace(request, model=name)
    stated = limits is not None or fitter is not None or bool(provider)
    if limits is not None:
        fitter = Fitter.between(limits, source, target)
    elif fitter is None:
        fitter = _known_fitter(source, target, name, context.provider)
    limits = fitter.target.limits
    if limits.thinking == "none" or not may_reason(target, name):
        context = msgspec.structs.replace(context, reasons=False)
    # A model that requires its signatures must be told where they are another's, even in its own dialect.
    if (
        source == target
        and not stated
        and not (limits.call_signatures and _carries_foreign_state(request, server.family))
    ):
        return Plan(request, upstream, Aliases(), context, tuple(losses))
    fitted = fitter.fit(upstream, context)
    unreported: Iterable[Loss] = ()
    if fitted.request.stop:
        unreported = unreported_sequence(fitted.request, fitter.target.client, server)
    return Plan(
        request,
        fitted.request,
        aliases=fitted.aliases,
        context=context,
        losses=(*losses, *fitted.losses, *unreported),
        trail=fitted.trail,
        emulation=fitted.emulation,
    )


@lru_cache(maxsize=256)
def _known_fitter(source: str | None, target: str, model: str, provider: str) -> Fitter:
    return Fitter.between(limits_for(target, model, provider, source == target), source, target)


def _carries_foreign_state(request: Request, dialect: str) -> bool:
    """Whether the history contains state that another provider minted."""
    for message in request.messages:
        if message.role == "assistant":
            for part in message.content:
                signature = getattr(part, "signature", None)
                if signature is not None and signature.origin.dialect != dialect:
                    return True
    return False


def translate_request(
    body: Body,
    *,
    source: DialectName,
    target: DialectName,
    model: str | None = None,
    provider: str | None = None,
    stream: bool | None = None,
    context: Context | None = None,
    strict: bool = False,
) -> Rendered[dict[str, Any]]:
    """A request of one dialect as a request of another.

    `model` is the upstream's model; `provider` limits the request to what that provider accepts. With
    `strict`, a loss raises `StrictLoss` instead.
    """
    context = context or Context()
    client, upstream = dialect(source), dialect(target)
    document = _object(body, ClientFault)
    request = client.parse_request(document, context)
    if stream is not None:
        request = msgspec.structs.replace(request, stream=stream)
    try:
        planned = plan(
            request, source=client.name, target=upstream.name, model=model, provider=provider, context=context
        )
    except Unsupported as fault:
        if client.places is not None:
            fault.path = RequestPlaces(client.places, document, request).of(fault.path)
        raise
    rendered = upstream.render_request(planned.upstream, planned.context)
    losses = planned.losses + planned.retraced(rendered.losses)
    if losses and client.places is not None:
        losses = RequestPlaces(client.places, document, request).located(losses)
    refuse_losses(losses, strict)
    return Rendered(rendered.value, losses)


def translate_response(
    body: Body,
    *,
    source: DialectName,
    target: DialectName,
    request: Body | None = None,
    model: str | None = None,
    provider: str | None = None,
    status: int = 0,
    context: Context | None = None,
    strict: bool = False,
    leaks_calls: bool | Sequence[LeakFamily] | None = None,
) -> Rendered[dict[str, Any]]:
    """A response (or an error body) of the `source` that produced it, in the `target` dialect of the client.

    `request` is the client's original request, in its own dialect: it restores tool names and freeform tools,
    and what that dialect echoes. A response that contains a broken call becomes an error body. `leaks_calls`:
    the tokens in which calls that are left in the text are read as calls, True for all known ones; None:
    those in the catalog for this `provider` and `model`, and none if no provider is named. Only calls to
    tools of the `request` are.
    """
    upstream, client = dialect(source), dialect(target)
    document = _object(body, UpstreamFault)
    back = _way_back(
        client, upstream, request, model, provider=provider, context=context, leaks_calls=leaks_calls
    )
    error = upstream.parse_error(document, status)
    content: Sequence[Part] = ()
    if error is not None:
        rendered = client.render_error(error, back.context)
    else:
        response = upstream.parse_response(document, back.context)
        rendered, content = _answered(response, client, upstream, back)
    if not rendered.losses:
        return rendered
    losses = answer_located(client.places, rendered.losses, rendered.value, content)
    refuse_losses(losses, strict)
    return Rendered(rendered.value, losses)


def _answered(
    response: Response, client: Dialect, upstream: Dialect, back: _WayBack
) -> tuple[Rendered[dict[str, Any]], tuple[Part, ...]]:
    """The client's answer, and the parts that its losses refer to."""
    losses: tuple[Loss, ...] = ()
    emulation = back.emulation()
    if emulation is not None:
        beside: list[Loss] = []
        response = emulation.response(response, beside)
        losses = tuple(beside)
    # A malformed call is reported in the dialect's form, which may be more than an error.
    if (client is not upstream or back.leaks_calls) and response.stop.reason != "malformed_call":
        try:
            # Whether an empty answer is acceptable is up to callers that can retry.
            accepted = accept(
                response,
                back.client,
                may_be_empty=True,
                leaks_calls=back.leaks_calls,
                renamed=back.renamed(response.model),
                cuts=back.context.emulates,
            )
        except NoAnswer as failed:
            return client.render_error(failed.error, back.context), ()
        response, losses = accepted.response, losses + accepted.losses
    searches = back.searches()
    if searches is not None:
        response = searches.response(response)
        losses += tuple(searches.losses)
    restored = _restored(response, back.aliases(response.model))
    unseen: list[Loss] = []
    if back.is_abroad:
        restored = with_minter(restored, back.minter(response.model), unseen)
    rendered = client.render_response(restored, back.context, back.client)
    return Rendered(rendered.value, (*losses, *unseen, *rendered.losses)), restored.content


def translate_embedding_request(
    body: Body,
    *,
    source: DialectName,
    target: DialectName,
    model: str | None = None,
    context: Context | None = None,
    strict: bool = False,
) -> Rendered[dict[str, Any]]:
    """A request for embeddings of one dialect as a request of another.

    `model` is the upstream's model. A dialect with two endpoints gets the body for the one that accepts the
    request: Gemini that of `embedContent` for one input, of `batchEmbedContents` for several. Raises
    Unsupported for what cannot be embedded there, such as token ids or too many inputs.
    """
    context = context or Context()
    document = _object(body, ClientFault)
    client, upstream = _embeddings(source), _embeddings(target)
    form = client.forms[client.operation(document)]
    request = form.parse_request(document, context)
    asked = msgspec.structs.replace(request, model=model or request.model)
    _, theirs = fitting_form(upstream.forms.items(), len(asked.inputs))
    try:
        if theirs.max_inputs and len(asked.inputs) > theirs.max_inputs:
            raise Unsupported(
                f"expected at most {theirs.max_inputs} inputs", f"$.inputs[{theirs.max_inputs}]"
            )
        rendered = theirs.render_request(asked, context)
    except Unsupported as fault:
        fault.path = form.place(fault.path, request)
        raise
    losses = [msgspec.structs.replace(loss, path=form.place(loss.path, request)) for loss in rendered.losses]
    refuse_losses(losses, strict)
    return Rendered(rendered.value, tuple(dict.fromkeys(losses)))


def translate_embedding_response(
    body: Body,
    *,
    source: DialectName,
    target: DialectName,
    request: Body,
    status: int = 0,
    context: Context | None = None,
    strict: bool = False,
) -> Rendered[dict[str, Any]]:
    """Embeddings (or an error body) of the `source` that made them, in the `target` dialect of the client.

    `request` is the client's original request, in its own dialect: it determines the format of the vectors,
    and how many there must be.
    """
    context = context or Context()
    document = _object(body, UpstreamFault)
    upstream, client = _embeddings(source), _embeddings(target)
    error = dialect(source).parse_error(document, status)
    if error is not None:
        rendered = dialect(target).render_error(error, context)
    else:
        original = _object(request, ClientFault)
        form = client.forms[client.operation(original)]
        asked = form.parse_request(original, context)
        response = joined_embeddings([upstream.parse_response(document, context)], [len(asked.inputs)])
        rendered = form.render_response(response, context, asked)
    losses = answer_located(None, rendered.losses)
    refuse_losses(losses, strict)
    return Rendered(rendered.value, losses)


def _embeddings(name: DialectName) -> Embeddings:
    found = surface(name).embeddings
    if found is None:
        raise Unsupported(f"{name} has no embeddings")
    return found


class StreamTranslator:
    """Bytes of the `source` stream in, bytes of the `target` stream out, split anywhere.

    Whatever arrives, the output is one legal stream: after `close` it has its end, or its dialect's error.
    `leaks_calls`: as in `translate_response`.
    """

    def __init__(
        self,
        *,
        source: DialectName,
        target: DialectName,
        request: Body | None = None,
        model: str | None = None,
        provider: str | None = None,
        context: Context | None = None,
        framing: Literal["sse", "json-array"] | None = None,
        leaks_calls: bool | Sequence[LeakFamily] | None = None,
    ) -> None:
        upstream, client = dialect(source), dialect(target)
        context = context or Context()
        if framing is not None:
            context = msgspec.structs.replace(context, framing=framing)
        own = client.surface.client.framing if framing is None else None
        self._framer = own.framer(context.max_frame) if own is not None else None
        back = _way_back(
            client, upstream, request, model, provider=provider, context=context, leaks_calls=leaks_calls
        )
        self._reader: StreamReader = upstream.stream_reader(back.context)
        emulation = back.emulation()
        self._emulator = Emulator(emulation) if emulation is not None else None
        if self._emulator is not None:
            self._reader = EmulatingReader(self._reader, self._emulator)
        self._writer = client.stream_writer(back.context, back.client)
        self._places = client.places
        self._back: _WayBack | None = back
        self._restorer: EventRestorer | None = None
        self._namer: MinterNamer | None = None
        self._searches = back.searches()
        self._watch: StreamVerdict | None = None
        if client is not upstream or back.leaks_calls:
            drops, leaks = client.surface.client.leaves_out_calls, back.leaks_calls
            self._watch = StreamVerdict(
                back.client,
                leaves_out=drops,
                may_be_empty=True,
                leaks_calls=leaks,
                renamed=back.renamed(""),
            )
        self._closed = False
        self.failed = False

    @property
    def losses(self) -> list[Loss]:
        """Losses so far, at their places in the complete answer."""
        reported = self._watch.losses if self._watch is not None else []
        if self._emulator is not None:
            reported = self._emulator.losses + reported
        if self._searches is not None:
            reported = reported + self._searches.losses
        if self._namer is not None:
            reported = reported + self._namer.losses
        return list(answer_located(self._places, reported + self._writer.losses))

    def feed(self, data: bytes) -> bytes:
        if self._closed:
            raise ValueError("the stream is closed")
        given: object = data
        if not isinstance(given, (bytes, bytearray, memoryview)):
            raise UpstreamFault(f"expected bytes of a stream, got {describe(given)}")
        return self._write(self._reader.read(data))

    def close(self) -> bytes:
        """Call it at the end of the source stream. A stream cut short ends with the target's own error."""
        if self._closed:
            return b""
        self._closed = True
        return self._write(self._reader.end())

    def _write(self, events: list[Event]) -> bytes:
        if not events:
            return b""
        if self._watch is not None:
            events = self._watch.pass_on(events)
            if not events:
                return b""
        if type(events[-1]) is Failure:
            self.failed = True
        if self._back is not None and type(events[0]) is Start:
            model = events[0].model
            aliases = self._back.aliases(model)
            if self._back.is_abroad:
                self._namer = MinterNamer(self._back.minter(model))
            self._back = None
            if aliases:
                self._restorer = EventRestorer(aliases)
        if self._searches is not None:
            events = self._searches.events(events)
        if self._restorer is not None:
            events = self._restorer.events(events)
        if self._namer is not None:
            events = self._namer.events(events)
        data = self._writer.write(events)
        return data if self._framer is None else self._framer.feed(data)


class _WayBack(msgspec.Struct, frozen=True):
    client: Request | None
    """The request that the answer belongs to."""
    speaks: Dialect
    """Its dialect."""
    upstream: Dialect
    model: str | None
    provider: str | None
    context: Context

    tells: Dialect
    """The dialect in which the answer is reported."""
    leaks_calls: tuple[LeakFamily, ...]

    @property
    def is_abroad(self) -> bool:
        return self.tells.surface.family != self.upstream.surface.family

    def minter(self, answered: str) -> Origin:
        """The minter of what the answer leaves unsigned. It is bound to no account."""
        context = self.context
        return Origin(self.upstream.surface.family, context.provider, context.model or answered)

    def aliases(self, answered: str) -> Aliases:
        """The upstream names of the request's tools. `answered` is the model that the answer names: it is
        used if the caller does not say which model was called."""
        if self.client is None:
            return Aliases()
        if self.model:
            return self._planned(self.model)
        return self._planned(answered or None).joined(self._planned(None)).with_freeform(self.client.tools)

    def searches(self) -> ShownSearches | None:
        """Shows the client the searches that the upstream has run itself."""
        if self.client is None:
            return None
        return ShownSearches.of(self.client, self.upstream.surface, self.tells.surface, self.context.seed)

    def emulation(self) -> Emulation | None:
        """What must be done with the answer, as `translate_request` reported it."""
        if self.client is None or not (self.client.stop or self.client.output or self.client.tool_choice):
            return None
        planned = self._plan(self.model)
        return planned.emulation if planned is not None else None

    def renamed(self, answered: str) -> dict[str, tuple[str, str]]:
        """The client's names of upstream functions, if an answer may leak calls of them."""
        return self.aliases(answered).functions if self.leaks_calls else {}

    def _planned(self, model: str | None) -> Aliases:
        planned = self._plan(model)
        return planned.aliases if planned is not None else Aliases()

    def _plan(self, model: str | None) -> Plan | None:
        assert self.client is not None
        try:
            return plan(
                self.client,
                source=self.speaks.name,
                target=self.upstream.name,
                model=model,
                provider=self.provider,
                context=self.context,
            )
        except Unsupported:  # it was answered all the same: a gateway restored what it only refers to
            return None


def _way_back(
    client: Dialect,
    upstream: Dialect,
    request: Body | None,
    model: str | None,
    provider: str | None,
    context: Context | None,
    leaks_calls: bool | Sequence[LeakFamily] | None,
) -> _WayBack:
    context = context or Context()
    if leaks_calls is None:
        leaks_calls = limits_for(upstream.name, model or "", provider).leaks_calls if provider else ()
    elif isinstance(leaks_calls, bool):
        leaks_calls = LEAK_FAMILIES if leaks_calls else ()
    prefix = client.surface.client.call_prefix or context.call_prefix
    context = msgspec.structs.replace(
        context, call_prefix=prefix, provider=provider or context.provider, model=model or context.model
    )
    asked: Request | None = None
    speaks = client
    if request is not None:
        asked, speaks = _asked(_object(request, ClientFault), client, upstream, context)
        if not context.seed:
            # Minted ids must differ from those of earlier turns of the same conversation.
            context = msgspec.structs.replace(context, seed=str(len(asked.messages)))
    return _WayBack(
        client=asked,
        speaks=speaks,
        upstream=upstream,
        model=model,
        provider=provider,
        context=context,
        tells=client,
        leaks_calls=tuple(leaks_calls),
    )


def _asked(
    document: dict[str, Any], client: Dialect, upstream: Dialect, context: Context
) -> tuple[Request, Dialect]:
    """The request an answer belongs to, and its dialect. Recorded traffic often has only the one that was
    sent upstream: it is equivalent, except for the client's names of tools."""
    try:
        return client.parse_request(document, context), client
    except ClientFault as fault:
        try:
            return upstream.parse_request(document, context), upstream
        except ClientFault:
            raise fault from None


def _restored(response: Response, aliases: Aliases) -> Response:
    if not aliases:
        return response
    content = tuple(aliases.restore(part) for part in response.content)
    return response if content == response.content else msgspec.structs.replace(response, content=content)


def _object(body: Body, fault: type[WireglotError]) -> dict[str, Any]:
    if isinstance(body, Mapping):
        document: dict[str, Any] = plain_document(body, fault)
        return document
    if not isinstance(body, (bytes, bytearray, memoryview, str)):
        raise fault(f"expected an object, or JSON as text or bytes, got {describe(body)}")
    try:
        value = decode(body)
    except BadJson as problem:
        raise fault(f"expected a JSON object: {problem}") from None
    if not isinstance(value, dict):
        # Gemini wraps an error in an array of one, and so do its non-SSE streams.
        if (
            fault is UpstreamFault
            and isinstance(value, list)
            and len(value) == 1
            and isinstance(value[0], dict)
        ):
            return value[0]
        raise fault("expected a JSON object")
    return value


def refuse_losses(losses: Sequence[Loss], strict: bool = True) -> None:
    """All or nothing: a loss becomes an error that names the worst and counts the rest."""
    if strict and losses:
        first = worst_first(losses)[0]
        more = f" (and {len(losses) - 1} more)" if len(losses) > 1 else ""
        raise StrictLoss(f"{first.feature} would be {first.action}: {first.detail}{more}", first.path)
