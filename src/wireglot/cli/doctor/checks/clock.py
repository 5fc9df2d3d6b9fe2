"""Whether this machine's clock agrees with those of the providers: signatures and tokens go by it."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Final

from wireglot.cli.doctor.case import Case
from wireglot.cli.doctor.finding import Finding, ok, problem, warning
from wireglot.cli.paint import count

_TOLERATED_SECONDS: Final = 30.0
_REFUSED_SECONDS: Final = 240.0
"""Amazon refuses a signature that is five minutes off, Google a token that is not yet valid."""
_FIX: Final = "set it from the network: sudo timedatectl set-ntp true (macOS: sudo sntp -sS time.apple.com)"


def look_at_clock(case: Case) -> Iterator[Finding]:
    skews = [answered.skew for answered in case.answers if answered.skew is not None]
    if not skews:
        return  # nobody has told the time
    skew = median(skews)
    if abs(skew) <= _TOLERATED_SECONDS:
        yield ok(f"it agrees with {count(len(skews), 'provider')} within {max(1, round(abs(skew)))} s")
        return
    told = f"this machine's clock is {_told(abs(skew))} {'behind' if skew > 0 else 'ahead'}"
    signs_in = any(
        credential.login is not None
        for provider in case.loaded.providers.values()
        for credential in provider.credentials
    )
    if signs_in and abs(skew) > _REFUSED_SECONDS:
        yield problem(f"{told}: logins and signatures are refused", _FIX)
    else:
        yield warning(f"{told}: budgets, expiries and logs are off by as much", _FIX)


def _told(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.0f} hours"
