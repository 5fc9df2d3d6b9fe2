"""The parts of a request to a provider besides its body: URL, key and headers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from wireglot.gateway.errors import RequestError
from wireglot.gateway.relay.host_form import in_form
from wireglot.gateway.relay.sign_ins import signed
from wireglot.gateway.request.job import Job
from wireglot.gateway.settings import Credential, Provider
from wireglot.gateway.targets.routing import Target
from wireglot.http.application import Headers
from wireglot.http.transport import Outbound
from wireglot_core.dialects.registry import surface
from wireglot_core.providers.endpoints import NoEndpoint, Operation, endpoint, key_check
from wireglot_core.providers.spec import ProviderSpec
from wireglot_core.providers.spec import provider as known_provider

USER_AGENT: Final = "wireglot"

_JSON: Final = ("content-type", "application/json")
_ACCEPTS_JSON: Final = ("accept", "application/json")
_ACCEPTS_STREAM: Final = ("accept", "text/event-stream")
_UNCODED: Final = ("accept-encoding", "identity")

KEY_HEADERS: Final = {
    "bearer": ("authorization", "Bearer "),
    "x-api-key": ("x-api-key", ""),
    "x-goog-api-key": ("x-goog-api-key", ""),
    "api-key": ("api-key", ""),
}
"""A provider's `auth` -> the header of the key, and what stands before the key in it."""

_SOME_MODEL: Final = "wireglot-key-check"
"""For hosts where customers name the models: they check the key before the model."""
_NO_REQUEST: Final = b"{}"
"""Rejected as invalid if the key is accepted, so it costs no tokens; otherwise the key is rejected."""


def list_outbound(provider: Provider, credential: Credential | None) -> Outbound | None:
    """The request for a provider's own list of models; None if its dialects have none."""
    for spoken in sorted(provider.spec.dialects, key=lambda name: not surface(name).models.tells_more):
        try:
            url = endpoint(provider.spec, spoken, "models", variables=provider.variables)
        except NoEndpoint:
            continue
        return own_outbound(provider, credential, spoken, url)
    return None


def own_outbound(
    provider: Provider, credential: Credential | None, spoken: str, url: str, *, body: bytes = b""
) -> Outbound:
    """A request of the gateway itself, in one of the provider's dialects: a GET if there is no body."""
    upstream = surface(spoken).upstream
    assert upstream is not None, f"{spoken} has an endpoint"
    headers: Headers = [
        *([_JSON] if body else []),
        _ACCEPTS_JSON,
        _UNCODED,
        ("user-agent", USER_AGENT),
        *_key_headers(provider, credential),
        *upstream.fixed_headers,
        *provider.spec.headers.items(),
        *provider.headers,
    ]
    return _formed(provider, credential, spoken, url, headers, body)


# Requests that cost nothing and show whether a provider is reachable and accepts a key.


def key_questions(asked: Provider, credential: Credential | None) -> Iterator[tuple[str, Outbound]]:
    """The most reliable first, each with its dialect. If one does not exist there (404), the next may."""
    spec = asked.spec
    if check := key_check(spec, asked.variables):
        yield spec.dialects[0], own_outbound(asked, credential, spec.dialects[0], check)
    for spoken in spec.dialects:
        try:
            url = endpoint(spec, spoken, "models", variables=asked.variables)
        except NoEndpoint:
            continue
        yield spoken, own_outbound(asked, credential, spoken, url)
    for spoken in spec.dialects:
        try:
            url = endpoint(spec, spoken, "generate", _known_model(spec), asked.variables)
        except NoEndpoint:
            continue
        yield spoken, own_outbound(asked, credential, spoken, url, body=_NO_REQUEST)


def _known_model(spec: ProviderSpec) -> str:
    inherited = known_provider(spec.vendor).models if spec.vendor else ()
    entries = (*spec.models, *inherited)
    return next((entry.match for entry in entries if entry.answers), _SOME_MODEL)


# Requests of clients.


def outbound(
    job: Job, target: Target, credential: Credential | None, *, operation: Operation, body: bytes
) -> Outbound:
    provider = target.provider
    same = target.dialect == job.dialect
    url = target.urls.get(operation, "")
    if not url:
        raise _no_endpoint(target, operation)
    if same and job.context.framing == "json-array":
        url = url.removesuffix(f"?{job.surface.sse_query}")
    incoming = job.head.headers
    upstream = target.upstream
    headers: Headers = [
        _JSON,
        _ACCEPTS_STREAM if operation == "stream" else _ACCEPTS_JSON,
        _UNCODED,
        # Some hosts admit only agents that they know: the client's own name is passed on, never another's.
        ("user-agent", incoming.get("user-agent", USER_AGENT)),
        *_key_headers(provider, credential),
    ]
    passed = incoming.keys() & upstream.passed_headers if same else None
    if passed:
        headers += [(name, incoming[name]) for name in upstream.passed_headers if name in passed]
        headers += [header for header in upstream.fixed_headers if header[0] not in passed]
    else:
        headers += upstream.fixed_headers
    if not same:
        for mark, header in upstream.body_headers:
            if body.find(mark) >= 0:
                headers.append(header)
    headers += provider.spec.headers.items()
    headers += provider.headers
    return _formed(provider, credential, target.dialect, url, headers, body)


def _formed(
    provider: Provider, credential: Credential | None, spoken: str, url: str, headers: Headers, body: bytes
) -> Outbound:
    """The request in the host's own form if it has one, signed if its keys sign requests."""
    if body and provider.spec.forms:
        headers, body = in_form(provider.spec.forms.get(spoken), headers, body)
    method = "POST" if body else "GET"
    if credential is not None and credential.signing is not None:
        headers += signed(credential.signing, method, url, body)
    account = credential.account if credential is not None else ""
    return Outbound(
        method=method,
        url=url,
        headers=headers,
        body=body,
        pool=f"{provider.name}\x1f{account}",  # connections are shared between requests with the same key
        proxy=provider.proxy,
    )


def _no_endpoint(target: Target, operation: Operation) -> RequestError:
    try:
        endpoint(target.provider.spec, target.dialect, operation, target.model, target.provider.variables)
    except NoEndpoint as fault:
        return RequestError("bad", f"model: {fault}", param="model")
    raise AssertionError(f"{target.name} has an endpoint to {operation}")


def _key_headers(provider: Provider, credential: Credential | None) -> Headers:
    if credential is None or credential.signing is not None:
        return []
    assert credential.login is None, "what is sent comes of the login, and is not the secret of it"
    auth = "bearer" if credential.token else provider.spec.auth
    if auth == "none":
        return []
    name, prefix = KEY_HEADERS[auth]
    return [(name, prefix + credential.secret.value), *credential.headers]
