"""What a call takes at most, and what its connections hold. Sizes are bytes, times seconds."""

from __future__ import annotations

from typing import Final

import msgspec

_MIB: Final = 1024 * 1024


class CallLimits(msgspec.Struct, frozen=True):
    """Is a `wireglot.http.limits.ClientLimits`."""

    response: int = 64 * _MIB
    error_body: int = 64 * 1024
    pool: int = 256
    pool_idle: float = 60.0
    queue: int = 1_000_000
    queue_time: float = 3600.0
    """A program that begins many calls at once means to wait for them: only its own timeouts end that."""
    write_pending: int = 64 * 1024


LIMITS: Final = CallLimits()
