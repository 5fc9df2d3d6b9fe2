"""Sends requests for embeddings to one upstream and delivers the answers: forwarded, or translated and, if
the upstream takes fewer inputs at once, split into several requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec

from wireglot.gateway.errors import RequestError, with_request_errors
from wireglot.gateway.relay.outbound import outbound
from wireglot.gateway.relay.preparation import not_as_is, refuse_losses, upstream_context
from wireglot.gateway.relay.relay import Relay
from wireglot.gateway.request.exchange import Exchange, some_of_each
from wireglot.gateway.request.headers import ESTIMATE, JSON
from wireglot.gateway.request.job import Job
from wireglot.gateway.request.token_weight import ESTIMATED, embedding_tokens, is_unreported
from wireglot.gateway.request.worker_thread import LARGE_BYTES, run_in_thread
from wireglot.gateway.settings import Credential
from wireglot.gateway.targets.prepared import Prepared
from wireglot.gateway.targets.routing import Target
from wireglot.http.application import Headers
from wireglot.http.transport import Answer, Outbound, TransportFault
from wireglot_core.dialects.capabilities import EmbeddingForm, Embeddings, EmbedOperation
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.embeddings import fitting_form, joined_embeddings
from wireglot_core.dialects.places import answer_located
from wireglot_core.dialects.surface import Surface
from wireglot_core.ir import failures
from wireglot_core.ir.embedding import EmbeddingInput, EmbeddingRequest, EmbeddingResponse
from wireglot_core.ir.errors import Unsupported, UpstreamFault
from wireglot_core.ir.failures import AttemptFailed
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Usage, added
from wireglot_core.wire.json import BadJson, decode, encode

_MAX_REQUESTS: Final = 64
"""Requests to a provider that one request for embeddings is split into: a client with more inputs does better
to send several itself."""
_OPENING_BYTES: Final = 64
_INPUT: Final = re.compile(r"\$\.inputs\[(\d+)\]")


class PreparedEmbedding(Prepared, frozen=True, kw_only=True):
    """`raw`: body and answer pass through as bytes; `asked_for` is needed to translate the answer
    otherwise."""

    asked_for: EmbeddingRequest | None = None
    more: tuple[Outbound, ...] = ()
    """The requests after `outbound`, where the upstream takes fewer inputs at once."""
    before: tuple[bytes, ...] = ()
    """The answers to requests before `outbound`, which an earlier attempt at the same target received."""
    counts: tuple[int, ...] = ()
    """How many inputs each of all these requests has."""


class _Answered(msgspec.Struct, frozen=True):
    body: bytes
    headers: Headers
    losses: tuple[Loss, ...]
    charged: Usage | None
    """The usage of this attempt: for requests of an earlier one, only what no provider reported."""
    model: str
    is_estimated: bool


def prepare(
    exchange: Exchange, target: Target, credential: Credential | None
) -> tuple[Target, PreparedEmbedding]:
    """The request prepared for a target that embeds."""
    job = exchange.job
    operation = job.embed_operation
    if target.dialect == job.dialect and operation in target.urls:
        return target, _raw(job, target, credential, operation)
    if exchange.attempt.policy == "as-is":
        raise not_as_is(target)
    return target, _translated(exchange, target, credential)


def _raw(
    job: Job, target: Target, credential: Credential | None, operation: EmbedOperation
) -> PreparedEmbedding:
    """The request with its body unchanged, but for the model's name."""
    job.content.check()
    body = job.body
    if target.model != job.model:
        body = _form(job).rename(body, target.model)
    return PreparedEmbedding(
        outbound=outbound(job, target, credential, operation=operation, body=body),
        stream=False,
        raw=True,
        context=upstream_context(job, target, credential),
    )


def _translated(exchange: Exchange, target: Target, credential: Credential | None) -> PreparedEmbedding:
    job, form = exchange.job, _form(exchange.job)
    context = upstream_context(job, target, credential)
    request = exchange.embedding()
    asked = msgspec.structs.replace(request, model=target.model)
    forms = _embeddings(target.surface).forms.items()
    operation, theirs = fitting_form((each for each in forms if each[0] in target.urls), len(asked.inputs))
    size = theirs.max_inputs or len(asked.inputs)
    if len(asked.inputs) > size * _MAX_REQUESTS:
        where = form.place(f"$.inputs[{size * _MAX_REQUESTS}]", request).removeprefix("$.")
        raise RequestError(
            "bad", f"{where}: at most {size * _MAX_REQUESTS} inputs can be embedded at once", param=where
        )

    def place(path: str, start: int) -> str:
        """The path in the client's body of an input in one of the split requests."""
        return form.place(_moved(path, start), request)

    bodies: list[bytes] = []
    counts: list[int] = []
    losses: list[Loss] = []
    for start in range(0, len(asked.inputs), size):
        part = msgspec.structs.replace(asked, inputs=asked.inputs[start : start + size])
        rendering = partial(_render, theirs, part, context, partial(place, start=start))
        rendered = with_request_errors(rendering)
        bodies.append(encode(rendered.value))
        counts.append(len(part.inputs))
        losses += [msgspec.structs.replace(loss, path=place(loss.path, start)) for loss in rendered.losses]
    found = some_of_each(tuple(dict.fromkeys(losses)))
    if found:
        refuse_losses(exchange, found)
    before = exchange.answered_parts.get(target.name, ())
    first, *more = (
        outbound(job, target, credential, operation=operation, body=body) for body in bodies[len(before) :]
    )
    return PreparedEmbedding(
        outbound=first,
        stream=False,
        raw=False,
        context=context,
        losses=found,
        asked_for=request,
        more=tuple(more),
        before=before,
        counts=tuple(counts),
    )


def _render(
    form: EmbeddingForm, request: EmbeddingRequest, context: Context, place: Callable[[str], str]
) -> Rendered[dict[str, Any]]:
    try:
        return form.render_request(request, context)
    except Unsupported as fault:
        fault.path = place(fault.path)
        raise


def _moved(path: str, start: int) -> str:
    """The path of an input in one of the split requests, counted among all inputs."""
    return _INPUT.sub(lambda found: f"$.inputs[{int(found[1]) + start}]", path) if start else path


def _embeddings(spoken: Surface) -> Embeddings:
    found = spoken.embeddings
    assert found is not None, "only a dialect with embeddings has a path to them"
    return found


def _form(job: Job) -> EmbeddingForm:
    return _embeddings(job.surface).forms[job.embed_operation]


class EmbeddingDelivery:
    """Keeps no state of requests."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    async def deliver(self, exchange: Exchange, target: Target, prepared: Prepared, answer: Answer) -> None:
        """An upstream's good answer, forwarded or translated for the client."""
        assert isinstance(prepared, PreparedEmbedding)
        held = exchange.held
        try:
            body = await answer.read(exchange.job.settings.limits.response, held.reading(answer))
        except TransportFault as fault:
            if fault.problem == "too_large":  # the provider has embedded all of the inputs
                error = failures.connection_error(fault.problem, f"{target.provider.name}: {fault.message}")
                exchange.record.answered_nothing(error, _estimated(exchange, prepared), "estimated")
            raise
        await held.room(len(body))
        if prepared.raw:
            looking = partial(_usage_of, target, body)
            exchange.record.used(await run_in_thread(looking) if len(body) > LARGE_BYTES else looking())
            self._send(exchange, body)
            return
        bodies = await self._all_parts(exchange, target, prepared, body)
        size = sum(map(len, bodies))
        rendering = partial(_rendered, exchange.job, target, prepared, bodies)
        try:
            rendered = await run_in_thread(rendering) if size > LARGE_BYTES else rendering()
        except AttemptFailed as failed:
            exchange.answered_parts.pop(target.name, None)  # any of the answers may be the faulty one
            paid: Usage | None = None
            for each in bodies[len(prepared.before) :]:
                paid = added(paid, await _paid(target, each))
            exchange.record.answered_nothing(failed.error, paid)
            raise
        exchange.record.used(rendered.charged, "estimated" if rendered.is_estimated else "provider")
        exchange.record.stopped("", rendered.model)
        if rendered.losses:
            exchange.lose(*rendered.losses)
        await held.room(max(0, len(rendered.body) - size))
        self._send(exchange, rendered.body, rendered.headers)

    async def _all_parts(
        self, exchange: Exchange, target: Target, prepared: PreparedEmbedding, body: bytes
    ) -> list[bytes]:
        """The answers to all parts of a split request. Those already received are paid for: another attempt
        at the target continues after them."""
        held, record = exchange.held, exchange.record
        bodies = [*prepared.before, body]
        paid: Usage | None = None
        if prepared.before:
            await held.room(sum(map(len, prepared.before)))
        try:
            for further in prepared.more:
                paid = added(paid, await _paid(target, bodies[-1]))
                patience = target.provider.timeouts.total
                bodies.append(await self._relay.ask(exchange, target, further, patience))
                await held.room(len(bodies[-1]))
        except AttemptFailed as failed:
            exchange.answered_parts[target.name] = tuple(bodies)
            record.answered_nothing(failed.error, paid)
            raise
        except BaseException:
            record.used(paid, "partial" if paid is not None else None)
            raise
        return bodies

    def _send(self, exchange: Exchange, body: bytes, headers: Sequence[tuple[str, str]] = ()) -> None:
        exchange.record.answered()
        exchange.record.began()
        exchange.send(200, [JSON, *exchange.headers(), *headers], body)


def _usage_of(target: Target, body: bytes) -> Usage | None:
    """The usage in an answer that passes through. Some hosts send errors with status 200."""
    try:
        if body.find(b'"error"', 0, _OPENING_BYTES) >= 0:
            _checked(target, body)
        usage = _embeddings(target.surface).usage(body)
        body.decode()
    except (BadJson, UnicodeDecodeError):
        raise failures.unreadable("the upstream's answer is not JSON") from None
    return usage


def _estimated(exchange: Exchange, prepared: PreparedEmbedding) -> Usage:
    """The estimated usage of the part that is sent first."""
    if prepared.asked_for is None:
        return Usage(input=exchange.prompt_tokens())
    answered, size = len(prepared.before), prepared.counts[len(prepared.before)]
    start = sum(prepared.counts[:answered])
    return Usage(input=embedding_tokens(prepared.asked_for.inputs[start : start + size]))


async def _paid(target: Target, body: bytes) -> Usage | None:
    """The usage of an answer that the client may not get."""
    looking = partial(_reported, target, body)
    return await run_in_thread(looking) if len(body) > LARGE_BYTES else looking()


def _reported(target: Target, body: bytes) -> Usage | None:
    with suppress(BadJson):
        return _embeddings(target.surface).usage(body)
    return None


def _checked(target: Target, body: bytes) -> dict[str, object]:
    """The document of an answer. Raises AttemptFailed if it is an error or no answer."""
    try:
        document = decode(body)
    except BadJson:
        raise failures.unreadable("the upstream's answer is not JSON") from None
    error = target.codec.parse_error(document)
    if error is not None:
        raise failures.of_error(error, error.status)
    if not isinstance(document, dict):
        raise failures.unreadable("the upstream's answer is not a JSON object")
    return document


def _rendered(job: Job, target: Target, prepared: PreparedEmbedding, bodies: list[bytes]) -> _Answered:
    request, form = prepared.asked_for, _form(job)
    assert request is not None
    try:
        answers = [
            _embeddings(target.surface).parse_response(_checked(target, body), prepared.context)
            for body in bodies
        ]
        response = joined_embeddings(answers, prepared.counts)
        whole, charged, is_estimated = _usages(answers, request.inputs, len(prepared.before))
        if is_estimated:
            response = msgspec.structs.replace(response, usage=whole if form.tells_usage else None)
        rendered = form.render_response(response, prepared.context, request)
    except UpstreamFault as fault:
        raise _unread(fault) from None
    losses = answer_located(None, rendered.losses)
    is_told = is_estimated and form.tells_usage
    return _Answered(
        encode(rendered.value),
        [ESTIMATE] if is_told else [],
        losses=(*losses, ESTIMATED) if is_told else losses,
        charged=charged,
        model=response.model,
        is_estimated=is_estimated,
    )


def _usages(
    answers: Sequence[EmbeddingResponse], inputs: Sequence[EmbeddingInput], before: int
) -> tuple[Usage | None, Usage | None, bool]:
    """The usage of all answers, the part of it that is still to be charged, and whether any of it is an
    estimate. For the first `before` answers, what their provider reported has been charged already."""
    whole: Usage | None = None
    charged: Usage | None = None
    is_estimated, start = False, 0
    for index, answer in enumerate(answers):
        end = start + len(answer.embeddings)
        usage, is_new = answer.usage, index >= before
        if usage is None or is_unreported(usage):
            usage, is_new, is_estimated = Usage(input=embedding_tokens(inputs[start:end])), True, True
        whole = added(whole, usage)
        if is_new:
            charged = added(charged, usage)
        start = end
    return whole, charged, is_estimated


def _unread(fault: UpstreamFault) -> AttemptFailed:
    place = "" if fault.path == "$" else f"{fault.path.removeprefix('$.')}: "
    return failures.unreadable(f"the upstream's answer cannot be read: {place}{fault.message}")
