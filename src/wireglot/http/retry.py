"""Whether and when to retry. Pure: random numbers and the clock are parameters."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Annotated, Final

import msgspec
from msgspec import Meta

_LONGEST_SECONDS: Final = 7 * 24 * 3600.0
_ABSURD_NUMBER: Final = 1e9
"""A Retry-After of this or more, in seconds or milliseconds, is a mistake."""


class RetryPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often and when to retry."""

    retries: Annotated[int, Meta(description="further attempts at one target")] = 2
    base: Annotated[
        float,
        Meta(
            description="first wait; doubled for each attempt, then random from 0 to that (full jitter)",
            extra={"unit": "seconds"},
        ),
    ] = 0.25
    cap: Annotated[float, Meta(description="maximum of such a wait", extra={"unit": "seconds"})] = 8.0
    wait_max: Annotated[
        float,
        Meta(
            description="the longest `retry-after` to wait for; a longer one fails immediately",
            extra={"unit": "seconds"},
        ),
    ] = 20.0
    connection_errors: Annotated[
        bool, Meta(description="whether failed or broken connections are retried")
    ] = True
    schedule: Annotated[
        tuple[float, ...] | None,
        Meta(
            description="waits before each further attempt, instead of the above", extra={"unit": "seconds"}
        ),
    ] = None


FIXED_100MS: Final = RetryPolicy(retries=3, schedule=(0.1, 0.2, 0.4), connection_errors=False)
"""A fixed schedule that ignores `Retry-After`, for callers whose contract defines the waits."""


def advised_wait(headers: Mapping[str, str], now: float) -> float | None:
    """The wait in seconds that an upstream requests: `retry-after-ms`, or `retry-after` in seconds or as a
    date."""
    precise = _number(headers.get("retry-after-ms"))
    if precise is not None:
        return precise / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds
    try:
        when = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(_LONGEST_SECONDS, max(0.0, when - now))


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else -1.0
    except ValueError:
        return None
    return min(value, _LONGEST_SECONDS) if 0 <= value < _ABSURD_NUMBER else None  # also refuses NaN


def wait_before(policy: RetryPolicy, tried: int, advice: float | None, chance: float) -> float | None:
    """Seconds to wait before the next attempt after `tried` of them; None: no further one.

    `chance` in [0, 1) is the jitter: full, so that many clients do not return at the same time.
    """
    if policy.schedule is not None:
        return policy.schedule[tried - 1] if tried <= len(policy.schedule) else None
    if tried > policy.retries:
        return None
    if advice is None:
        return min(policy.cap, policy.base * 2.0**tried) * chance
    return advice + policy.base * chance if advice <= policy.wait_max else None
