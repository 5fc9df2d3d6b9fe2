"""What a model costs by the settings at a moment, or why nobody knows."""

from __future__ import annotations

from wireglot.gateway.settings import Settings
from wireglot.providers.prices import Price, list_price, price_of, why_unpriced


def known_price(settings: Settings, provider: str, model: str, at: int) -> Price | None:
    """`at` in unix milliseconds. None: neither the configuration nor the catalog has it."""
    found = settings.providers.get(provider)
    if found is None:
        return None
    return price_of(settings.prices, found.spec, model, provider=provider, at=at, currency=settings.currency)


def why_unknown(settings: Settings, provider: str, model: str, at: int) -> str:
    """In a few words, "" where there is nothing to say."""
    found = settings.providers.get(provider)
    if found is None:
        return ""
    listed = list_price(found.spec, model, at)
    if listed is not None and listed.currency != settings.currency:
        return f"its list price is in {listed.currency}, and this gateway counts in {settings.currency}"
    return why_unpriced(found.spec, model)
