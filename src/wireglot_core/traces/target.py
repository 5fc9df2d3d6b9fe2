"""The target of a recorded request, with everything needed to translate it again exactly."""

from __future__ import annotations

from typing import Any

import msgspec

from wireglot_core.ir.leaked_calls import LeakFamily
from wireglot_core.ir.request import Request
from wireglot_core.providers.limits import Limits
from wireglot_core.traces.trace import Attempt


class BadTarget(ValueError):
    """The `limits` of a trace are not in the format that a gateway writes."""


class RecordedTarget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of an `Attempt`'s `limits`."""

    limits: Limits | None = None
    """None: those of the catalog."""
    stream: bool | None = None
    """Whether the upstream streams, whatever the client requested; None: like the client."""
    account: str = ""
    fields: dict[str, Any] = {}
    """Fields of the upstream's body set after the translation: those of the configuration, and the request
    for usage."""
    without: list[str] = []
    """Fields removed again, for a host that receives them elsewhere."""
    asked: Request | None = None
    """The translated request, if it differs from the client's body: with turns that the gateway stores, and
    reasoning that it remembers or has unsealed."""
    emulates: bool = True
    """Whether the gateway emulated features that the upstream lacks."""
    source: str = ""
    """The dialect it was translated from, if that is not the client's."""

    def written(self) -> dict[str, Any]:
        reported: dict[str, Any] = msgspec.to_builtins(self)
        return reported


# Built here: msgspec 0.22 lets one thread use a type that another has only begun to build.
msgspec.json.Decoder(RecordedTarget)


class TraceTarget(RecordedTarget, frozen=True, kw_only=True, omit_defaults=True):
    dialect: str
    provider: str = ""
    model: str = ""
    passthrough: bool = False
    withholds: bool = False
    """The client was not shown reasoning that it did not ask for: derived from its answer."""

    @property
    def leaks_calls(self) -> tuple[LeakFamily, ...]:
        return self.limits.leaks_calls if self.limits is not None else ()


def target_of(attempt: Attempt) -> TraceTarget:
    """Parses an attempt's target. Raises BadTarget."""
    written = attempt.limits
    try:
        if isinstance(asked := written.get("asked"), msgspec.Raw):  # never written to a file
            written = {**written, "asked": msgspec.json.decode(asked)}
        recorded = msgspec.convert(written, RecordedTarget)
    except (msgspec.DecodeError, UnicodeError) as fault:
        raise BadTarget(f"attempts[].limits: {fault}") from None
    return TraceTarget(
        dialect=attempt.dialect,
        provider=attempt.provider,
        model=attempt.model,
        passthrough=attempt.passthrough,
        **{name: getattr(recorded, name) for name in recorded.__struct_fields__},
    )
