"""Prepares one request for one upstream: passed through unchanged, or translated."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from wireglot.gateway.errors import UNTRANSLATABLE, RequestError, request_error
from wireglot.gateway.relay import candidates
from wireglot.gateway.relay.host_form import unframing, unsent
from wireglot.gateway.relay.media import with_files
from wireglot.gateway.relay.outbound import outbound
from wireglot.gateway.relay.refusals import without_opaque_state
from wireglot.gateway.relay.unavailable import refuse_code_execution, refuse_search
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.job import Job
from wireglot.gateway.request.token_weight import TOKEN, token_weight
from wireglot.gateway.settings import Credential
from wireglot.gateway.targets.context_size import ContextSize, context_loss
from wireglot.gateway.targets.prepared import Prepared
from wireglot.gateway.targets.routing import Target
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.surface import Thread
from wireglot_core.ir.errors import Unsupported
from wireglot_core.ir.grades import Grade
from wireglot_core.ir.loss import Feature, Loss, withheld, worst_first
from wireglot_core.ir.request import Request
from wireglot_core.ir.safeguards import Safeguard
from wireglot_core.providers.emulation import Emulation
from wireglot_core.providers.endpoints import Operation
from wireglot_core.translate import Plan, plan
from wireglot_core.wire.json import encode
from wireglot_core.wire.splice import splice

_MAX_NAMED: Final = 4
"""Losses that an error of the policy `strict` names after the worst one."""
LOSS_REFUSED: Final = "loss_refused"
_WEIGHTS: Final[dict[Grade, int]] = {"serious": 1000, "degraded": 1, "harmless": 0}
"""One serious loss weighs more than all others that a request can have. Harmless ones do not count."""
_RELOAD: Final = 10
_EMULATED: Final[dict[Feature, int]] = {"candidates": 1, "output_format": 1}
"""Weights of features that the gateway emulates: a dialect in which the upstream supports them itself is
cheaper, or more reliable."""


def prepare_best(
    exchange: Exchange, target: Target, credential: Credential | None
) -> tuple[Target, Prepared]:
    """The prepared request and its target: `target`, or the same model in another dialect.

    The client's own dialect comes first and is nearly always used: the others are tried only if the request
    would lose something there. Some servers enforce a JSON schema on Chat and ignore one on Messages (Ollama,
    llama.cpp).
    """
    try:
        prepared = prepare(exchange, target, credential)
    except RequestError as refused:
        if refused.error.code != LOSS_REFUSED or not target.others:
            raise
        return _without_losses(exchange, target, credential, refused)
    best = target, prepared
    if not target.others or not (prepared.losses or _reload_weight(exchange, target)):
        return best
    least = _weight(prepared.losses) + _reload_weight(exchange, target)
    if not least or exchange.attempt.policy == "as-is":
        return best
    for other in target.others:
        try:
            candidate = prepare(exchange, other, credential)
        except RequestError:
            continue  # the request cannot be expressed in that dialect
        weight = _weight(candidate.losses) + _reload_weight(exchange, other)
        if weight < least:
            least, best = weight, (other, candidate)
    return best


def _without_losses(
    exchange: Exchange, target: Target, credential: Credential | None, refused: RequestError
) -> tuple[Target, Prepared]:
    """For callers that accept no losses: the first dialect without any."""
    for other in target.others:
        try:
            return other, prepare(exchange, other, credential)
        except RequestError:
            continue
    raise refused


def _reload_weight(exchange: Exchange, target: Target) -> int:
    """Weight of a dialect whose requests would load the model again, in another size."""
    size = exchange.attempt.context_size
    return _RELOAD if size is not None and size.ours and target.upstream.contexts is None else 0


def _weight(losses: tuple[Loss, ...]) -> int:
    weight = 0
    for loss in losses:
        weight += _WEIGHTS[loss.grade]
        if loss.action == "emulated":
            weight += _EMULATED.get(loss.feature, 0)
    return weight


def prepare(exchange: Exchange, target: Target, credential: Credential | None) -> Prepared:
    job, spec = exchange.job, target.provider.spec
    stream = job.stream if spec.streams == "both" else spec.streams == "only"
    same = target.dialect == job.dialect and stream == job.stream
    if exchange.attempt.policy == "as-is":
        if not same:
            raise not_as_is(target)
        return _raw(exchange, target, credential, as_is=True)
    if (
        same
        and target.plain
        and exchange.attempt.context_size is None
        and not exchange.sealed
        and not exchange.attempt.stripped
        and not (job.surface.client.safeguards and _is_checked_here(job, target))
    ):
        return _raw(exchange, target, credential)
    if job.surface.client.thread is not None:
        _refuse_thread(job, job.surface.client.thread)
    return _translated(exchange, target, credential, stream=stream)


def upstream_context(job: Job, target: Target, credential: Credential | None) -> Context:
    return msgspec.structs.replace(
        job.context,
        provider=target.provider.name,
        model=target.model,
        account=credential.account if credential is not None else "",
        memory=job.content.memory,
    )


def _is_checked_here(job: Job, target: Target) -> bool:
    """Whether the request may ask for checks that this upstream does not make: only a dialect's own vendor is
    known to make them."""
    own = target.provider.spec.home and target.dialect == job.dialect
    return not own and job.surface.client.safeguards in job.outline.members


def _checked(job: Job) -> Loss:
    """The loss that reports the checks a request asks for. Raises the refusal, if they are refused."""
    path, settings = "$.safeguards", job.safeguards
    match settings.mode:
        case "refuse":
            message = f"{job.surface.client.safeguards}: this gateway makes no such check for this model"
            raise RequestError("bad", message, code="unsupported", param=job.surface.client.safeguards)
        case "off":
            return Loss(path, "safeguards", "dropped", "off in this gateway's [safeguards]")
        case "judge":
            return Loss(path, "safeguards", "emulated", f"{settings.model or job.model} judges tool calls")


def not_as_is(target: Target) -> RequestError:
    spoken = " and ".join(target.provider.spec.dialects)
    how = "" if target.provider.spec.streams == "both" else f", streams: {target.provider.spec.streams}"
    return RequestError(
        "bad",
        f"{target.provider.name} speaks {spoken}{how}: the request cannot be forwarded unchanged "
        "(x-wireglot-loss-policy, or losses of the key, route or provider)",
        code="as_is_impossible",
    )


def _raw(
    exchange: Exchange,
    target: Target,
    credential: Credential | None,
    *,
    as_is: bool = False,
    losses: tuple[Loss, ...] = (),
) -> Prepared:
    """The request with its body unchanged, but for the model's name and for headers that the host would
    reject."""
    job = exchange.job
    job.content.check()
    body = job.body
    named = (job.surface.client.agent_field and job.agent_field) or target.surface.model_field
    if named and target.model != job.model:
        body = job.outline.replaced(named, encode(target.model))
    if target.upstream.body_variables:
        body = _with_filled_fields(body, target)
    operation: Operation = "stream" if job.stream else "generate"
    if job.asked.operation == "compact":
        operation = "compact"
    usage = target.asked_usage if job.stream and not as_is else None
    own_usage = False
    if usage is not None:
        options = job.outline.get(usage.field)
        own_usage = not usage.is_asked(options)
        if own_usage:
            body = splice(body, {usage.field: encode(usage.asking(options))})
    left_out = unsent(job, target) if target.provider.spec.forms else ()
    if left_out:
        refuse_losses(exchange, left_out)
        losses += left_out
    is_framed = job.stream and (target.provider.spec.forms or target.upstream.framing)
    return Prepared(
        outbound=outbound(job, target, credential, operation=operation, body=body),
        stream=job.stream,
        raw=True,
        context=upstream_context(job, target, credential),
        losses=losses,
        leaks_calls=() if as_is or operation == "compact" else target.limits.leaks_calls,
        own_usage=own_usage,
        as_is=as_is,
        unframe=unframing(job, target) if is_framed else None,
    )


def _translated(
    exchange: Exchange, target: Target, credential: Credential | None, *, stream: bool
) -> Prepared:
    job = exchange.job
    context = upstream_context(job, target, credential)
    wanted = _wanted(exchange, target, context, stream)
    asked = wanted.asked
    sizes = exchange.attempt.context_size
    size, over = _context(sizes, target, asked) if sizes is not None else (0, ())
    try:
        planned, rendered = _rendered(exchange, target, context, wanted)
    except UNTRANSLATABLE as fault:
        raise request_error(fault) from None
    if rendered is None:
        return _unchanged(exchange, target, credential, exchange.located(over, asked))
    neutral = wanted.downloaded + planned.losses + planned.retraced(rendered.losses)
    further = 0
    if context.emulates and (asked.sampling.candidates or 1) > 1:
        neutral, further = candidates.emulated(exchange, asked, neutral)
    losses = exchange.located(neutral + over, asked)
    left_out = withheld(asked, neutral) if neutral else ()
    if wanted.refused:
        own = exchange.request()
        left_out = withheld(own, wanted.refused) + left_out
        losses = exchange.located(wanted.refused, own) + losses
    if exchange.invented:
        losses = exchange.located(exchange.invented) + losses
    if target.provider.spec.forms:
        losses += unsent(job, target)
    if losses:
        refuse_losses(exchange, losses)
        if exchange.attempt.policy != "silent":
            refuse_search(wanted.request, target, losses)
            refuse_code_execution(asked, target, neutral)
    body = _body(rendered.value, target, size, stream=stream)
    operation: Operation = "stream" if stream else "generate"
    is_framed = stream and (target.provider.spec.forms or target.upstream.framing)
    return Prepared(
        outbound=outbound(job, target, credential, operation=operation, body=body),
        stream=stream,
        raw=False,
        context=msgspec.structs.replace(planned.context, withheld=left_out) if left_out else planned.context,
        losses=losses,
        request=wanted.request,
        asked=asked if wanted.downloaded else None,
        aliases=planned.aliases,
        emulation=_emulation(planned.emulation) if further else planned.emulation,
        further=further,
        checks=wanted.checks,
        minter=target.minter,
        leaks_calls=target.limits.leaks_calls,
        context_size=size,
        unframe=unframing(job, target) if is_framed else None,
    )


def _unchanged(
    exchange: Exchange, target: Target, credential: Credential | None, losses: tuple[Loss, ...]
) -> Prepared:
    """A request that could have been translated, but need not be."""
    if losses:
        refuse_losses(exchange, losses)
    return _raw(exchange, target, credential, losses=losses)


class _Wanted(msgspec.Struct, frozen=True, gc=False):
    """What a target is asked for, before it is planned how its dialect can express it."""

    request: Request
    """Without state that the target has refused."""
    asked: Request
    """The same without checks that the gateway makes, and with files that it downloaded."""
    refused: tuple[Loss, ...]
    """Losses of the client's own request: `request` and `asked` have them no more."""
    checks: tuple[Safeguard, ...]
    downloaded: tuple[Loss, ...]
    may_pass: bool
    """Whether the client's own body may be sent, if the plan changes nothing."""


def _wanted(exchange: Exchange, target: Target, context: Context, stream: bool) -> _Wanted:
    job, request = exchange.job, exchange.request()
    refused: tuple[Loss, ...] = ()
    if exchange.attempt.stripped:
        stripped = without_opaque_state(request, target.dialect)
        request, refused = stripped.request, stripped.losses
    checks = request.safeguards
    if checks and _is_checked_here(job, target):
        refused += (_checked(job),)
        asked = msgspec.structs.replace(request, stream=stream, safeguards=())
    else:
        checks = ()
        asked = request if stream == request.stream else msgspec.structs.replace(request, stream=stream)
    downloaded: tuple[Loss, ...] = ()
    if target.inlines_media and context.emulates and job.settings.fetch is not None:
        asked, downloaded = with_files(asked, exchange.files)
    may_pass = (
        target.dialect == job.dialect
        and stream == job.stream
        and not checks
        and not downloaded
        and not exchange.sealed
        and not exchange.attempt.stripped
    )
    return _Wanted(
        request=request,
        asked=asked,
        refused=refused,
        checks=checks,
        downloaded=downloaded,
        may_pass=may_pass,
    )


def _emulation(emulation: Emulation | None) -> Emulation | None:
    """Without that of several answers: each is requested on its own."""
    return msgspec.structs.replace(emulation, several=False) if emulation is not None else None


def _body(value: dict[str, Any], target: Target, size: int, *, stream: bool) -> bytes:
    """The rendered body, with what the provider wants besides. `size`: of the model's context, or 0."""
    if size and target.upstream.contexts is not None:
        target.upstream.contexts.write(value, size)
    if target.upstream.body_variables:
        value.update(_filled_fields(target))
    usage = target.asked_usage if stream else None
    if usage is not None:
        value[usage.field] = usage.asking(value.get(usage.field))
    return encode(value)


def _context(sizes: ContextSize, target: Target, asked: Request) -> tuple[int, tuple[Loss, ...]]:
    """The size of the model's context to request, 0 if the dialect cannot; and the loss of what is beyond
    it."""
    tokens = -(-token_weight(asked) // TOKEN)
    size = sizes.request(tokens, asked.max_tokens) if target.upstream.contexts is not None else 0
    loss = context_loss(tokens, size or sizes.unasked)
    return size, (loss,) if loss is not None else ()


def _rendered(
    exchange: Exchange, target: Target, context: Context, wanted: _Wanted
) -> tuple[Plan, Rendered[dict[str, Any]] | None]:
    """The plan and the translated body; no body where the client's own may pass and the target needs no
    change."""
    asked = wanted.asked
    try:
        planned = plan(
            asked,
            source=exchange.job.dialect,
            target=target.dialect,
            model=target.model,
            provider=target.provider.name,
            fitter=target.fitter,
            context=context,
        )
    except Unsupported as fault:
        fault.path = exchange.place(fault.path, asked)
        raise
    may_pass = wanted.may_pass and not planned.losses and not planned.aliases
    if may_pass and planned.upstream == msgspec.structs.replace(asked, model=target.model):
        return planned, None
    writing = planned.context
    if not exchange.attempt.asks_state:
        writing = msgspec.structs.replace(writing, reasons=False)
    if not exchange.attempt.asks_summary:
        writing = msgspec.structs.replace(writing, summaries=False)
    return planned, target.codec.render_request(planned.upstream, writing)


def refuse_losses(exchange: Exchange, losses: tuple[Loss, ...]) -> None:
    if exchange.attempt.policy == "strict":
        exchange.attempt.losses = losses  # reported in the headers of the refusal
        first, *others = worst_first(losses)
        place = _place(first)
        more = f" (and {len(others)} more: {_named(others)})" if others else ""
        raise RequestError(
            "bad",
            f"{place}: {first.feature} would be {first.action}: {first.detail}{more}",
            code=LOSS_REFUSED,
            param=place,
        )


def _named(losses: list[Loss]) -> str:
    shown = [f"{loss.feature} at {_place(loss)}" for loss in losses[:_MAX_NAMED]]
    return ", ".join(shown) + (", ..." if len(losses) > _MAX_NAMED else "")


def _place(loss: Loss) -> str:
    return loss.path.removeprefix("$").removeprefix(".") or "the request"


def _with_filled_fields(body: bytes, target: Target) -> bytes:
    filled = _filled_fields(target)
    return splice(body, {field: encode(value) for field, value in filled.items()}) if filled else body


def _filled_fields(target: Target) -> dict[str, str]:
    """Fields of the body that are filled from the provider's variables."""
    known, variables = target.provider.variables, target.upstream.body_variables
    return {field: value for field, variable in variables.items() if (value := known.get(variable, ""))}


def _refuse_thread(job: Job, thread: Thread) -> None:
    if job.outline.get(thread.field) is not None:
        error = thread.error
        raise RequestError("bad", error.message, code=error.code, document=thread.body)
