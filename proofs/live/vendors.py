"""The vendors of `make live`: those of the catalog whose key is in the environment."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

import msgspec

from wireglot.gateway.relay.outbound import KEY_HEADERS
from wireglot.probe.endpoint import root_of
from wireglot.probe.run import WIRES
from wireglot_core.providers.list_price import Price
from wireglot_core.providers.prices import list_price
from wireglot_core.providers.spec import ProviderSpec, provider

MODELS: Final = {
    "anthropic": "claude-haiku-5-5",
    "openai": "gpt-6-luna",
    "gemini": "gemini-3.5-flash-lite",
    "deepseek": "deepseek-v4-flash",
    "fireworks": "accounts/fireworks/models/glm-5p3-flash",
    "groq": "openai/gpt-oss-20b",
    "kimi": "kimi-k2.6",
    "minimax": "MiniMax-M3",
    "mistral": "mistral-small-latest",
    "qwen": "qwen3.8-flash",
    "together": "deepseek-ai/DeepSeek-V4.1-Flash",
    "xai": "grok-4.3",
    "zai": "glm-5.3-flash",
}
"""Provider -> a cheap model of it with tools and thinking. Without a price in dollars nothing could keep to a
limit, so providers without one (OpenRouter, the clouds) are missing."""


class Unpriced(ValueError):
    """A message for the user: the cost of the model is unknown."""


class Vendor(msgspec.Struct, frozen=True):
    spec: ProviderSpec
    model: str
    price: Price
    variable: str
    key: str
    moved: str = ""
    """Another address for all its dialects, such as a scripted upstream; "": the catalog's."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def dialects(self) -> tuple[str, ...]:
        """Those that the probe speaks, and the model has."""
        entry = self.spec.model(self.model)
        known = entry.dialects if entry is not None and entry.dialects else self.spec.dialects
        return tuple(name for name in known if name in WIRES)

    def root(self, dialect: str) -> str:
        return root_of(self.moved or self.spec.base_urls.get(dialect, self.spec.base_url), dialect)

    @property
    def key_header(self) -> tuple[str, str]:
        return KEY_HEADERS[self.spec.auth]


def vendor(name: str, environ: Mapping[str, str], *, model: str = "", moved: str = "") -> Vendor | None:
    """None if there is no key for it. Raises Unpriced."""
    spec = provider(name)
    variable = next((each for each in spec.api_key_env if environ.get(each)), "")
    if not variable:
        return None
    chosen = model or MODELS[name]
    found = list_price(spec, chosen, int(time.time() * 1000))
    if found is None or found.currency != "USD":
        raise Unpriced(f"{name}: no known price of {chosen} in USD: name another model with --model")
    return Vendor(spec, chosen, found.price, variable, environ[variable], moved)
