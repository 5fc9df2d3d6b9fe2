"""What goes out to a provider beside the body: where to, with which key, under which headers."""

from __future__ import annotations

from typing import Final

from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.job import Job
from wireglot.gateway.settings import Credential
from wireglot.gateway.targets.routing import Target
from wireglot.http.application import Headers
from wireglot.http.transport import Outbound
from wireglot.providers.endpoints import NoEndpoint, Operation, endpoint

USER_AGENT: Final = "wireglot"

_AUTH: Final = {
    "bearer": ("authorization", "Bearer "),
    "x-api-key": ("x-api-key", ""),
    "x-goog-api-key": ("x-goog-api-key", ""),
}


def outbound(
    job: Job, target: Target, credential: Credential | None, *, operation: Operation, body: bytes
) -> Outbound:
    provider = target.provider
    same = target.dialect == job.dialect
    try:
        url = endpoint(provider.spec, target.dialect, operation, target.model, provider.variables)
    except NoEndpoint as fault:
        raise RequestError("bad", f"model: {fault}", param="model") from None
    if same and job.framing == "json-array":
        url = url.removesuffix(f"?{job.surface.sse_query}")
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
    upstream = target.upstream
    passed = [name for name in upstream.passed_headers if name in incoming] if same else []
    headers.extend((name, incoming[name]) for name in passed)
    headers.extend(header for header in upstream.fixed_headers if header[0] not in passed)
    headers.extend(provider.spec.headers.items())
    headers.extend(provider.headers)
    account = credential.account if credential is not None else ""
    return Outbound(
        method="POST",
        url=url,
        headers=headers,
        body=body,
        pool=f"{provider.name}\x1f{account}",
        proxy=provider.proxy,
    )
