"""Decides what to do after a failed attempt: retry at the target, retry with another key, or neither. Pure:
the clock, the random number and the state of the other keys are parameters."""

from __future__ import annotations

from typing import Final, NamedTuple

from wireglot.gateway.errors import RETRY_AFTER_MAX
from wireglot.gateway.settings import Provider
from wireglot.gateway.targets.health import QUARANTINE_SECONDS
from wireglot.http.retry import wait_before
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.failures import HELPED_BY_RETRY, AttemptFailed

_RATE_UNADVISED_SECONDS: Final = 1.0
_QUOTA_SECONDS: Final = 60.0
"""At most: an account may be paid at any moment."""
ANSWERS_PAID_AGAIN: Final = 1
"""How often a target is retried after it charged for a response that was not an answer."""


class After(NamedTuple):
    wait: float | None
    """Seconds until the next attempt at this target; None: there is none."""
    rejected: bool = False
    """The key is not valid any more."""
    rest: float = 0.0
    """Seconds for which the key is not used for this model."""


def after(
    failed: AttemptFailed,
    provider: Provider,
    *,
    account: str,
    others: bool,
    tried: int,
    chance: float,
    unanswered: int = 0,
) -> After:
    """What follows a failed attempt. `others`: another key of the provider could be used now. `unanswered`:
    how many attempts at this target were paid for and brought no answer."""
    at_once = 0.0 if others else None
    match failed.blame:
        case "credential":
            if failed.error.kind == "auth" and account:
                return After(at_once, rejected=True)
            # Another key may have the permission that this one lacks. The only key is not parked: it may be
            # allowed other things.
            return After(at_once, rest=QUARANTINE_SECONDS if others else 0.0)
        case "quota":
            rest = failed.wait if failed.wait is not None else _QUOTA_SECONDS
            return After(at_once, rest=min(rest, _QUOTA_SECONDS))
        case "rate":
            rest = failed.wait if failed.wait is not None else _RATE_UNADVISED_SECONDS
            # Clients are given no longer wait either: after it, the key must be in use again.
            rest = min(rest, RETRY_AFTER_MAX)
            if provider.retry.schedule is not None:
                rest = 0.0  # the wait comes from the retry schedule alone
            if others:
                return After(0.0, rest=rest)
            return After(wait_before(provider.retry, tried, failed.wait, chance), rest=rest)
        case "answer":
            # Nothing is overloaded, so there is no wait. If it happens twice, it is the model's behaviour.
            again = wait_before(provider.retry, tried, 0.0, 0.0)
            return After(again if unanswered <= ANSWERS_PAID_AGAIN else None)
        case "connection":
            if not provider.retry.connection_errors:
                return After(None)
    if failed.blame not in HELPED_BY_RETRY:
        return After(None)
    return After(wait_before(provider.retry, tried, failed.wait, chance))


def resting(route: str, seconds: float) -> AttemptFailed:
    """The failure of a target that was not called because its circuit breaker is open."""
    return AttemptFailed(
        ApiError(
            "server",
            f"circuit breaker open for {route} after repeated failures",
            status=503,
            code="upstream_unavailable",
            retry_after=seconds,
        ),
        "timeout",
        wait=seconds,
    )
