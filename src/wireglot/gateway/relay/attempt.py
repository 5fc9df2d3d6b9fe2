"""One request made ready for one upstream: passed through as it is, or translated."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from wireglot.dialects.base import Context
from wireglot.dialects.registry import dialect
from wireglot.gateway.errors import RequestError
from wireglot.gateway.relay.recovery import without_opaque_state
from wireglot.gateway.request.job import Job, with_faults_told
from wireglot.gateway.settings import Credential
from wireglot.gateway.targets.routing import Target
from wireglot.http.application import Headers
from wireglot.http.transport import Outbound
from wireglot.ir.errors import ApiError
from wireglot.ir.loss import Loss
from wireglot.ir.request import Request
from wireglot.providers.aliases import Aliases
from wireglot.providers.endpoints import NoEndpoint, Operation, endpoint
from wireglot.providers.spec import names
from wireglot.translate import plan
from wireglot.wire.json import encode
from wireglot.wire.splice import splice

ANTHROPIC_VERSION: Final = "2023-06-01"
USER_AGENT: Final = "wireglot"

_PASSED: Final[dict[str, tuple[str, ...]]] = {
    "anthropic": ("anthropic-version", "anthropic-beta"),
    "openai-chat": ("openai-beta",),
    "openai-responses": ("openai-beta",),
    "gemini": (),
    "code-assist": (),
}
"""Client headers that belong to the dialect and go on with it. No other header of a client does."""

_AUTH: Final = {
    "bearer": ("authorization", "Bearer "),
    "x-api-key": ("x-api-key", ""),
    "x-goog-api-key": ("x-goog-api-key", ""),
}
_MODEL_IN_PATH: Final = frozenset({"gemini"})


class Prepared(msgspec.Struct, frozen=True):
    """`raw`: body and answer pass through as bytes; `request` and `aliases` are the way back otherwise."""

    outbound: Outbound
    stream: bool
    """Whether the upstream streams, whatever the client asked for."""
    raw: bool
    context: Context
    losses: tuple[Loss, ...] = ()
    request: Request | None = None
    aliases: Aliases = Aliases()
    own_usage: bool = False
    """We asked for the usage at the end of the stream, and not the client: it does not get to see it."""


def prepare(job: Job, target: Target, credential: Credential | None) -> Prepared:
    spec = target.provider.spec
    stream = job.stream if spec.streams == "both" else spec.streams == "only"
    context = msgspec.structs.replace(
        job.context,
        provider=target.provider.name,
        model=target.model,
        account=credential.account if credential is not None else "",
    )
    same = target.dialect == job.dialect and stream == job.stream
    if same and target.plain and not job.sealed and not job.stripped:
        return _raw(job, target, credential, context)
    _refuse_thread(job)
    return _translated(job, target, credential, context, stream, same)


def _raw(job: Job, target: Target, credential: Credential | None, context: Context) -> Prepared:
    job.check_unread()
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
    outbound = _outbound(job, target, credential, operation, body, True)
    return Prepared(outbound, job.stream, True, context, own_usage=own_usage)


def _must_ask_for_usage(target: Target) -> bool:
    """Chat tells what a stream cost only where it is asked to, and the books want to know. A server of which
    the catalog knows nothing may not take the question."""
    return target.dialect == "openai-chat" and target.provider.spec.name in names()


def _with_usage(options: object) -> dict[str, Any]:
    return {**(options if isinstance(options, dict) else {}), "include_usage": True}


def _translated(
    job: Job, target: Target, credential: Credential | None, context: Context, stream: bool, same: bool
) -> Prepared:
    request = job.request()
    refused: tuple[Loss, ...] = ()
    if job.stripped:
        stripped = without_opaque_state(request, target.dialect)
        request, refused = stripped.request, stripped.losses
    asked = request if stream == request.stream else msgspec.structs.replace(request, stream=stream)
    planned = with_faults_told(
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
    untouched = same and not planned.losses and not planned.aliases and not job.sealed and not job.stripped
    if untouched and planned.upstream == msgspec.structs.replace(asked, model=target.model):
        return _raw(job, target, credential, context)
    rendered = with_faults_told(
        lambda: dialect(target.dialect).render_request(planned.upstream, planned.context)
    )
    losses = job.invented + refused + planned.losses + planned.retraced(rendered.losses)
    _refuse_losses(job, target, losses)
    value: dict[str, Any] = rendered.value
    project = _project(target)
    if project:
        value["project"] = project
    if stream and _must_ask_for_usage(target):
        value["stream_options"] = _with_usage(value.get("stream_options"))
    outbound = _outbound(
        job,
        target,
        credential,
        "stream" if stream else "generate",
        encode(value),
        target.dialect == job.dialect,
    )
    return Prepared(outbound, stream, False, planned.context, losses, request, planned.aliases)


def policy_of(job: Job, target: Target) -> str:
    return job.policy or target.losses or job.settings.losses


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


def _refuse_thread(job: Job) -> None:
    if job.thread and job.dialect == "anthropic":
        raise ThreadUnsupported


class ThreadUnsupported(Exception):
    """Turns kept by Anthropic: its SDK goes on without them when it is told so in exactly these words."""

    ERROR: Final = ApiError(
        "invalid_request",
        "thread: this model keeps no conversation on the server; send the whole history",
        code="thread_unsupported_request",
    )
    BODY: Final[dict[str, Any]] = {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": ERROR.message,
            "details": {"error_code": "thread_unsupported_request", "unsupported": ["thread"]},
        },
    }


def _project(target: Target) -> str:
    return target.provider.variables.get("project", "") if target.dialect == "code-assist" else ""


def outbound(
    job: Job,
    target: Target,
    credential: Credential | None,
    operation: Operation,
    body: bytes,
) -> Outbound:
    return _outbound(job, target, credential, operation, body, target.dialect == job.dialect)


def _outbound(
    job: Job,
    target: Target,
    credential: Credential | None,
    operation: Operation,
    body: bytes,
    same: bool,
) -> Outbound:
    provider = target.provider
    try:
        url = endpoint(provider.spec, target.dialect, operation, target.model, provider.variables)
    except NoEndpoint as fault:
        raise RequestError("bad", f"model: {fault}", param="model") from None
    if same and job.framing == "json-array" and job.dialect in ("gemini", "code-assist"):
        url = url.removesuffix("?alt=sse")
    incoming = job.head.headers
    headers: Headers = [
        ("content-type", "application/json"),
        ("accept", "text/event-stream" if operation == "stream" else "application/json"),
        ("accept-encoding", "identity"),
        # Some hosts admit only the agents they know: the client's own name goes on, never another's.
        ("user-agent", incoming.get("user-agent", USER_AGENT)),
    ]
    if credential is not None and provider.spec.auth != "none":
        name, prefix = _AUTH[provider.spec.auth]
        headers.append((name, prefix + credential.secret.value))
    if same:
        headers.extend((name, incoming[name]) for name in _PASSED[target.dialect] if name in incoming)
    if target.dialect == "anthropic" and not (same and "anthropic-version" in incoming):
        headers.append(("anthropic-version", ANTHROPIC_VERSION))
    headers.extend(provider.spec.headers.items())
    headers.extend(provider.headers)
    account = credential.account if credential is not None else ""
    return Outbound("POST", url, headers, body, f"{provider.name}\x1f{account}", provider.proxy)
