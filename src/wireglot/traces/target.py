"""Where a recorded request went, as it must be known to translate it again to the letter."""

from __future__ import annotations

from typing import Any

import msgspec

from wireglot.ir.leaked_calls import LeakFamily
from wireglot.ir.request import Request
from wireglot.providers.limits import Limits
from wireglot.traces.trace import Attempt


class BadTarget(ValueError):
    """What stands in a trace's `limits` is not what a gateway writes there."""


class TraceTarget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    dialect: str
    provider: str = ""
    model: str = ""
    passthrough: bool = False
    limits: Limits | None = None
    """None: those of the catalog."""
    stream: bool | None = None
    """Whether the upstream streams, whatever the client asked for; None: as the client."""
    account: str = ""
    fields: dict[str, Any] = {}
    """Of the upstream's body, set once it was translated: the configuration's, and the question for usage."""
    without: list[str] = []
    """Taken out of it again, for a host that is told them elsewhere."""
    asked: Request | None = None
    """What was translated, where that is not just what the client's body says: turns that the gateway holds,
    reasoning that it remembers or has unsealed."""
    source: str = ""
    """The dialect it was translated from, where that is not the client's."""
    withholds: bool = False
    """The client was not shown the reasoning that it did not ask for: known from the answer that it got."""

    @property
    def leaks_calls(self) -> tuple[LeakFamily, ...]:
        return self.limits.leaks_calls if self.limits is not None else ()


class _Recorded(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    limits: Limits | None = None
    stream: bool | None = None
    account: str = ""
    fields: dict[str, Any] = {}
    without: list[str] = []
    asked: Request | None = None
    source: str = ""


def recorded_target(
    *,
    limits: Limits | None,
    stream: bool | None = None,
    account: str = "",
    fields: dict[str, Any] | None = None,
    without: list[str] | None = None,
    asked: Request | None = None,
    source: str = "",
) -> dict[str, Any]:
    """What an `Attempt` keeps as its `limits`."""
    recorded = _Recorded(
        limits=limits,
        stream=stream,
        account=account,
        fields=fields or {},
        without=without or [],
        asked=asked,
        source=source,
    )
    told: dict[str, Any] = msgspec.to_builtins(recorded)
    return told


def target_of(attempt: Attempt) -> TraceTarget:
    """Raises BadTarget."""
    try:
        recorded = msgspec.convert(attempt.limits, _Recorded)
    except (msgspec.ValidationError, UnicodeError) as fault:
        raise BadTarget(f"attempts[].limits: {fault}") from None
    return TraceTarget(
        dialect=attempt.dialect,
        provider=attempt.provider,
        model=attempt.model,
        passthrough=attempt.passthrough,
        limits=recorded.limits,
        stream=recorded.stream,
        account=recorded.account,
        fields=recorded.fields,
        without=recorded.without,
        asked=recorded.asked,
        source=recorded.source,
    )
