"""One request made ready for one upstream: passed through as it is, or translated."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from wireglot.dialects.base import Context
from wireglot.dialects.registry import dialect
from wireglot.gateway.errors import RequestError, told
from wireglot.gateway.relay.outbound import outbound
from wireglot.gateway.relay.recovery import without_opaque_state
from wireglot.gateway.request.body import check_unread
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.job import Job
from wireglot.gateway.settings import Credential
from wireglot.gateway.targets.prepared import Prepared
from wireglot.gateway.targets.routing import Target
from wireglot.ir.loss import Loss
from wireglot.providers.endpoints import Operation
from wireglot.providers.spec import names
from wireglot.translate import plan
from wireglot.wire.json import encode
from wireglot.wire.splice import splice

_MODEL_IN_PATH: Final = frozenset({"gemini"})


def prepare(exchange: Exchange, target: Target, credential: Credential | None) -> Prepared:
    job, spec = exchange.job, target.provider.spec
    stream = job.stream if spec.streams == "both" else spec.streams == "only"
    context = msgspec.structs.replace(
        job.context,
        provider=target.provider.name,
        model=target.model,
        account=credential.account if credential is not None else "",
    )
    same = target.dialect == job.dialect and stream == job.stream
    if same and target.plain and not exchange.sealed and not exchange.stripped:
        return _raw(job, target, credential, context)
    _refuse_thread(job)
    return _translated(exchange, target, credential, context, stream=stream)


def policy_of(job: Job, target: Target) -> str:
    """What is done about losses: as the caller wants it, else the route, else everybody."""
    return job.policy or target.losses or job.settings.losses


def _raw(job: Job, target: Target, credential: Credential | None, context: Context) -> Prepared:
    check_unread(job)
    body = job.body
    if target.dialect not in _MODEL_IN_PATH:
        if target.model != job.model:
            body = job.outline.replaced("model", encode(target.model))
        project = _project(target)
        if project:
            body = splice(body, {"project": encode(project)})
    operation: Operation = "stream" if job.stream else "generate"
    if job.asked.operation == "compact":
        operation = "compact"
    own_usage = job.stream and _must_ask_for_usage(target)
    if own_usage:
        options = job.outline.get("stream_options")
        own_usage = not (isinstance(options, dict) and options.get("include_usage"))
        if own_usage:
            body = splice(body, {"stream_options": encode(_with_usage(options))})
    return Prepared(
        outbound=outbound(job, target, credential, operation=operation, body=body),
        stream=job.stream,
        raw=True,
        context=context,
        own_usage=own_usage,
    )


def _must_ask_for_usage(target: Target) -> bool:
    """Chat tells what a stream cost only where it is asked to, and the ledger wants to know. A server of
    which the catalog knows nothing may not take the question."""
    return target.dialect == "openai-chat" and target.provider.spec.name in names()


def _with_usage(options: object) -> dict[str, Any]:
    return {**(options if isinstance(options, dict) else {}), "include_usage": True}


def _translated(
    exchange: Exchange, target: Target, credential: Credential | None, context: Context, *, stream: bool
) -> Prepared:
    job, request = exchange.job, exchange.request()
    refused: tuple[Loss, ...] = ()
    if exchange.stripped:
        stripped = without_opaque_state(request, target.dialect)
        request, refused = stripped.request, stripped.losses
    asked = request if stream == request.stream else msgspec.structs.replace(request, stream=stream)
    planned = told(
        lambda: plan(
            asked,
            source=job.dialect,
            target=target.dialect,
            model=target.model,
            provider=target.provider.name,
            limits=target.limits,
            context=context,
        )
    )
    untouched = (
        target.dialect == job.dialect
        and stream == job.stream
        and not planned.losses
        and not planned.aliases
        and not exchange.sealed
        and not exchange.stripped
    )
    if untouched and planned.upstream == msgspec.structs.replace(asked, model=target.model):
        return _raw(job, target, credential, context)
    rendered = told(lambda: dialect(target.dialect).render_request(planned.upstream, planned.context))
    losses = exchange.invented + refused + planned.losses + planned.retraced(rendered.losses)
    _refuse_losses(job, target, losses)
    value: dict[str, Any] = rendered.value
    project = _project(target)
    if project:
        value["project"] = project
    if stream and _must_ask_for_usage(target):
        value["stream_options"] = _with_usage(value.get("stream_options"))
    operation: Operation = "stream" if stream else "generate"
    return Prepared(
        outbound=outbound(job, target, credential, operation=operation, body=encode(value)),
        stream=stream,
        raw=False,
        context=planned.context,
        losses=losses,
        request=request,
        aliases=planned.aliases,
    )


def _refuse_losses(job: Job, target: Target, losses: tuple[Loss, ...]) -> None:
    if losses and policy_of(job, target) == "strict":
        first = losses[0]
        place = first.path.removeprefix("$").removeprefix(".")
        more = f" (and {len(losses) - 1} more)" if len(losses) > 1 else ""
        raise RequestError(
            "bad",
            f"{place}: {first.feature} would be {first.action}: {first.detail}{more}",
            code="loss_refused",
            param=place,
        )


def _project(target: Target) -> str:
    return target.provider.variables.get("project", "") if target.dialect == "code-assist" else ""


def _refuse_thread(job: Job) -> None:
    """Turns kept by Anthropic: its SDK goes on without them when it is told so in exactly these words."""
    if job.thread and job.dialect == "anthropic":
        message = "thread: this model keeps no conversation on the server; send the whole history"
        code = "thread_unsupported_request"
        raise RequestError(
            "bad",
            message,
            code=code,
            document={
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": message,
                    "details": {"error_code": code, "unsupported": ["thread"]},
                },
            },
        )
