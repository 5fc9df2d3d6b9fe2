"""Questions that cost nothing and show whether a provider is there and takes a key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from wireglot.gateway.relay.outbound import own_outbound
from wireglot.gateway.settings import Credential, Provider
from wireglot.http.transport import Outbound
from wireglot.providers.endpoints import NoEndpoint, endpoint, key_check
from wireglot.providers.spec import ProviderSpec, provider

_SOME_MODEL: Final = "wireglot-key-check"
"""For hosts whose models have their customers' own names: who may ask is decided before what for."""
_NO_REQUEST: Final = b"{}"
"""Refused as a request by the one that takes the key, so that no token is spent; refused for the key by
others."""


def key_questions(asked: Provider, credential: Credential | None) -> Iterator[tuple[str, Outbound]]:
    """The surest first, each with its dialect. Where one is not there (404), the next may be."""
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
    inherited = provider(spec.vendor).models if spec.vendor else ()
    entries = (*spec.models, *inherited)
    return next((entry.match for entry in entries if entry.is_name and not entry.retired), _SOME_MODEL)
