"""The provider, key and model of a call. Everything is looked up when a call is made, not before."""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import urlsplit

import msgspec

from wireglot.kimi.errors import KimiConfigError
from wireglot_core.providers.endpoints import endpoint
from wireglot_core.providers.spec import ProviderSpec, provider

PROVIDER: Final = "kimi"
DIALECT: Final = "openai-chat"
KEY: Final = "COLIBRI_KIMI_API_KEY"
BASE_URL: Final = "COLIBRI_KIMI_BASE_URL"

_OFFICIAL: Final = frozenset({"api.moonshot.ai", "api.moonshot.cn", "api.kimi.com"})
"""Hosts where a retired model is not available. Other hosts may serve its weights."""


class Setup(msgspec.Struct, frozen=True):
    url: str
    model: str
    key: str

    def __repr__(self) -> str:
        return f"Setup({self.model})"


def set_up(model: str | None, api_key: str | None, base_url: str | None) -> Setup:
    spec = provider(PROVIDER)
    base = _base_url(base_url, spec)
    return Setup(
        endpoint(msgspec.structs.replace(spec, base_url=base, base_urls={}), DIALECT, "generate"),
        _model(model, base, spec),
        _key(api_key, spec),
    )


def default_model() -> str:
    """The first model of the catalog that is not retired."""
    return next(entry.match for entry in provider(PROVIDER).models if entry.answers)


def _model(model: str | None, base: str, spec: ProviderSpec) -> str:
    if not model:
        return default_model()
    entry = spec.model(model)
    if entry is not None and entry.retired and urlsplit(base).hostname in _OFFICIAL:
        raise KimiConfigError(
            f"{model} is retired and Kimi answers no more requests for it: ask for {entry.successor}, "
            "or give the base URL of a server of your own that still has it"
        )
    return model


def _key(given: str | None, spec: ProviderSpec) -> str:
    names = (KEY, *spec.api_key_env)
    found = (given or "").strip()
    for name in names:
        found = found or os.environ.get(name, "").strip()
    if not found:
        raise KimiConfigError(f"no API key for Kimi: pass api_key, or set {' or '.join(names)}")
    if not found.isascii() or not found.isprintable() or " " in found:
        raise KimiConfigError("the API key holds characters that no HTTP header can carry")
    return found


def _base_url(given: str | None, spec: ProviderSpec) -> str:
    """The first one that is set: an empty string counts as unset."""
    base = (given or "").strip() or os.environ.get(BASE_URL, "").strip() or spec.base_url
    try:
        parts = urlsplit(base)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    else:
        # A password in a URL would be shown wherever the URL is; the key has a separate parameter.
        usable = usable and parts.username is None and not parts.query and not parts.fragment
    if not usable:
        # Not chained and not quoted: the invalid value may be a secret in the wrong place.
        raise KimiConfigError("the base URL must look like https://host/v1, without user, query or fragment")
    return base
