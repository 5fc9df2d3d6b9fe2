"""Checks of an answer that the client requests, and their results: it runs no tool before it has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec

from wireglot_core.ir.content import Extra

TOOL_CALLS: Final = "tool_calls"
"""The kind of a safeguard that checks each tool call of an answer before the client runs it."""

Reason = Literal["timeout", "error", "refused", "input_too_long", "truncated"]
"""Why there is no verdict. `truncated`: the call itself is incomplete, or the judge's answer."""


class Safeguard(msgspec.Struct, frozen=True, omit_defaults=True):
    """`kind`: `TOOL_CALLS`, or the native type if no other dialect has it.

    `context` is what the client states about itself for the check: its rules, folders, platform.
    """

    kind: str
    context: dict[str, Any] = {}
    extra: Extra | None = None


class CallVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The verdict about one call. `reason`: for `unavailable`, why; else a text for a person."""

    outcome: Literal["flagged", "not_flagged", "skipped", "unavailable"]
    reason: str = ""
    extra: Extra | None = None


_WORST_FIRST: Final = ("flagged", "unavailable", "skipped", "not_flagged")


def by_id(found: Iterable[tuple[str, CallVerdict]]) -> dict[str, CallVerdict]:
    """Verdicts by the ids of their calls. If calls share an id, the worst verdict counts: a client cannot
    distinguish them, and may run each of them."""
    worst: dict[str, CallVerdict] = {}
    for id, verdict in found:
        known = worst.setdefault(id, verdict)
        if _WORST_FIRST.index(verdict.outcome) < _WORST_FIRST.index(known.outcome):
            worst[id] = verdict
    return worst


class SafeguardResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one safeguard. `calls` by the ids of the calls; a missing call was not checked. `reason`:
    for `unavailable`, why."""

    kind: str
    status: Literal["available", "unavailable", "unsupported"]
    calls: dict[str, CallVerdict] = {}
    reason: str = ""
    extra: Extra | None = None
