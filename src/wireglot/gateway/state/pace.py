"""How often what is remembered is looked at, renewed and tried again. Tests go at a pace of their own."""

from __future__ import annotations

import msgspec


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    store_look_seconds: float = 2.0
    """Between two looks whether the store answers."""
    budgets_look_seconds: float = 10.0
    """Between two looks at how much of their budgets keys have used, for the metrics."""
    keys_look_seconds: float = 1.0
    """Between two looks for changed keys, give or take a fifth: workers do not ask all at once."""
    background_look_seconds: float = 1.0
    """Between two looks for orders to cancel, which come by another process."""
    background_follow_seconds: float = 0.25
    """Between two looks into the store for events, where another process works on the response."""
    claim_lease_seconds: float = 30.0
    """After which an idempotency claim is free again whose process says nothing: it has died."""
    claim_beat_seconds: float = 10.0
    """Between two renewals of a claim."""
