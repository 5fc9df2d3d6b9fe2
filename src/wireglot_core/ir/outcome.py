"""The outcome of a request: the answer, its stop reason, its usage."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from wireglot_core.ir.content import Extra, Part
from wireglot_core.ir.safeguards import SafeguardResult
from wireglot_core.ir.usage import COUNTS, TokenCounts, counts_of

StopReason = Literal[
    "end",
    "stop_sequence",
    "length",
    "context_full",
    "tool_calls",
    "refused",
    "paused",
    "malformed_call",
    "other",
]


class Stop(msgspec.Struct, frozen=True, omit_defaults=True):
    """The unified stop reason next to the raw one; `sequence` is the stop sequence that matched, if reported.
    `raw` is spelling: it returns to its own `dialect` verbatim and is ignored by every other."""

    reason: StopReason
    raw: str = ""
    dialect: str = ""
    sequence: str | None = None
    extra: Extra | None = None


class Usage(TokenCounts, frozen=True, omit_defaults=True, kw_only=True):
    """Token usage. `raw`: the provider's own numbers, verbatim (spelling, returned to its own dialect)."""

    raw: Extra | None = None


def added(one: Usage | None, other: Usage | None) -> Usage | None:
    """Two usage reports added up; no longer a provider's own numbers."""
    if one is None or other is None:
        return one or other
    both = zip(COUNTS, counts_of(one), counts_of(other), strict=True)
    counts: dict[str, Any] = {name: first + second for name, first, second in both}
    if one.reasoning is None and other.reasoning is None:
        del counts["reasoning"]
    return Usage(**counts)


class Candidate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A second or later answer to one request (`n`, `candidateCount`)."""

    content: tuple[Part, ...]
    stop: Stop
    extra: Extra | None = None


class Response(msgspec.Struct, frozen=True, omit_defaults=True):
    """A whole answer. `created` is in unix seconds, 0 if the dialect does not report it."""

    id: str
    model: str
    content: tuple[Part, ...]
    stop: Stop
    usage: Usage | None = None
    created: int = 0
    service_tier: str = ""
    others: tuple[Candidate, ...] = ()
    extra: Extra | None = None
    safeguard_results: tuple[SafeguardResult, ...] = ()
