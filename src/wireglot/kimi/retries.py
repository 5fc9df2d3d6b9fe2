"""When a failed attempt is made again: by the contract's fixed schedule, or as one would today."""

from __future__ import annotations

from typing import Final

from wireglot.http.failures import HELPED_BY_RETRY, AttemptFailed
from wireglot.http.retry import FIXED_100MS, RetryPolicy, wait_before
from wireglot.kimi.errors import KimiConfigError
from wireglot.kimi.seams import RetryPreset

POLICIES: Final[dict[RetryPreset, RetryPolicy]] = {"fixed-100ms": FIXED_100MS, "modern": RetryPolicy()}


def policy_of(preset: RetryPreset) -> RetryPolicy:
    policy = POLICIES.get(preset)
    if policy is None:
        raise KimiConfigError(f"unknown retry preset {preset!r}: expected one of {', '.join(POLICIES)}")
    return policy


def helps(policy: RetryPolicy, failed: AttemptFailed) -> bool:
    """Whether another attempt could do better. A failure without a status is one of the network."""
    if not failed.status:
        return policy.connection_errors and failed.blame == "connection"
    if policy.schedule is not None:
        # The contract goes by the status alone. Its schedule is too short to wait for a quota anyway.
        return failed.status == 429 or 500 <= failed.status <= 599
    return failed.blame in HELPED_BY_RETRY


def next_wait(policy: RetryPolicy, failed: AttemptFailed, tried: int, chance: float) -> float | None:
    """Seconds until the next attempt after `tried` of them; None: that was the last."""
    return wait_before(policy, tried, failed.wait, chance) if helps(policy, failed) else None
