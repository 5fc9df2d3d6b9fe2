"""When a failed attempt is made again: by the contract's fixed schedule, or as one would today."""

from __future__ import annotations

from typing import Final

from wireglot.http.failures import HELPED_BY_RETRY, of_error
from wireglot.http.retry import RetryPolicy, wait_before
from wireglot.ir.errors import ApiError
from wireglot.kimi.errors import KimiConfigError
from wireglot.kimi.seams import RetryPreset

POLICIES: Final[dict[RetryPreset, RetryPolicy]] = {
    "fixed-100ms": RetryPolicy(retries=3, schedule=(0.1, 0.2, 0.4), connection_errors=False),
    "modern": RetryPolicy(),
}


class Failed(Exception):
    """One attempt came to nothing. `status` None: there was no answer, and `lost` says that the connection
    (not the provider's certificate, say) was the reason. `cause` may be shown to the caller."""

    def __init__(
        self,
        error: ApiError,
        status: int | None,
        *,
        wait: float | None = None,
        lost: bool = False,
        cause: BaseException | None = None,
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.status = status
        self.wait = wait
        self.lost = lost
        self.cause = cause


def policy_of(preset: RetryPreset) -> RetryPolicy:
    policy = POLICIES.get(preset)
    if policy is None:
        raise KimiConfigError(f"unknown retry preset {preset!r}: expected one of {', '.join(POLICIES)}")
    return policy


def helps(policy: RetryPolicy, failed: Failed) -> bool:
    """Whether another attempt could do better."""
    if failed.status is None:
        return policy.connection_errors and failed.lost
    if policy.schedule is not None:
        # The contract goes by the status alone. Its schedule is too short to wait for a quota anyway.
        return failed.status == 429 or 500 <= failed.status <= 599
    return of_error(failed.error, failed.status).blame in HELPED_BY_RETRY


def next_wait(policy: RetryPolicy, failed: Failed, tried: int, chance: float) -> float | None:
    """Seconds until the next attempt after `tried` of them; None: that was the last."""
    return wait_before(policy, tried, failed.wait, chance) if helps(policy, failed) else None
