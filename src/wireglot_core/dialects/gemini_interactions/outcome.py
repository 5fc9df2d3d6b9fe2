"""Parses and renders the end of an answer: its status and its usage."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.fields import object_in, text_in
from wireglot_core.dialects.gemini_interactions.lost_fields import LOST
from wireglot_core.dialects.gemini_interactions.names import OWN
from wireglot_core.dialects.google_shared import check_numbers
from wireglot_core.dialects.usage_checks import UsageFields, losses_of_usage, uncounted
from wireglot_core.ir.content import Extra
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Stop, StopReason, Usage

BLOCKED: Final = "content_blocked"
MALFORMED: Final = "malformed_function_call"

_STATUSES: Final[dict[StopReason, str]] = {
    "end": "completed",
    "stop_sequence": "completed",
    "other": "completed",
    "tool_calls": "requires_action",
    "length": "incomplete",
    "context_full": "incomplete",
    # `requires_continuation` promises a token that resumes the answer, which no other provider has.
    "paused": "incomplete",
    "refused": "failed",
    "malformed_call": "failed",
}
_REASONS: Final[dict[str, StopReason]] = {
    "completed": "end",
    "requires_action": "tool_calls",
    "incomplete": "length",
    "budget_exceeded": "length",
    "requires_continuation": "paused",
}
_BY_CODE: Final[dict[str, StopReason]] = {BLOCKED: "refused", MALFORMED: "malformed_call"}
_SAID: Final[dict[StopReason, dict[str, str]]] = {
    "refused": {"code": BLOCKED, "message": "The answer was blocked by a policy."},
    "malformed_call": {"code": MALFORMED, "message": "The model produced a malformed function call."},
}
"""There is no finish reason: a block and a malformed call are reported in the interaction's `errors`."""


def parse_stop(status: str, calls: bool, errors: Any = None) -> Stop:
    """The stop that a status means. Some servers send `completed` for a turn with pending calls."""
    reason = _REASONS.get(status, "other")
    if status == "failed" and type(errors) is list:
        codes = [text_in(object_in(error).get("code")) for error in errors]
        reason = next((_BY_CODE[code] for code in codes if code in _BY_CODE), "other")
    if reason == "end" and calls:
        reason = "tool_calls"
    return Stop(reason, status, OWN)


def render_stop(stop: Stop, calls: bool, losses: list[Loss]) -> tuple[str, dict[str, str] | None]:
    """The status, and the entry of `errors` with the reason, if one is required."""
    LOST.of(stop, "$.stop", losses)
    if stop.dialect == OWN and stop.raw:
        return stop.raw, None
    reason = stop.reason
    status, error = _STATUSES[reason], _SAID.get(reason)
    if calls and reason in ("end", "paused"):
        status = "requires_action"  # the client continues by running them
    if reason == "tool_calls" and not calls:
        status = "completed"
    back = parse_stop(status, calls, [error]).reason
    if back != reason:
        detail = f"{reason} reads as {back} here"
        losses.append(Loss("$.stop", "stop_reason", "approximated", detail))
    return status, error


# --- usage


USAGE_FIELDS: Final = UsageFields(
    (
        ("input", "total_input_tokens"),
        ("output", "total_output_tokens"),
        ("reasoning", "total_thought_tokens"),
        ("tools", "total_tool_use_tokens"),
        ("read", "total_cached_tokens"),
        ("total", "total_tokens"),
    ),
    (),
    check_numbers,
)
_BY_MODALITY: Final = (
    "input_tokens_by_modality",
    "cached_tokens_by_modality",
    "output_tokens_by_modality",
    "tool_use_tokens_by_modality",
)


def parse_usage(raw: Any) -> Usage | None:
    """`total_input_tokens` includes the cached ones; `total_output_tokens` excludes the thoughts."""
    if type(raw) is not dict:
        return None
    given = _count(raw, "total_input_tokens")
    cached = min(_count(raw, "total_cached_tokens"), given)
    thoughts = raw.get("total_thought_tokens")
    return Usage(
        input=given - cached,
        cache_read=cached,
        tool_prompt=_count(raw, "total_tool_use_tokens"),
        output=_count(raw, "total_output_tokens"),
        reasoning=None if thoughts is None else _count(raw, "total_thought_tokens"),
        raw=Extra(OWN, _unreported(raw), raw),
    )


def _unreported(raw: dict[str, Any]) -> dict[str, Any]:
    rest = uncounted(raw, USAGE_FIELDS.counted)
    for key in _BY_MODALITY:
        if key in rest and _is_text_alone(rest[key]):
            del rest[key]
    return rest


def _is_text_alone(details: Any) -> bool:
    """Whether the tokens by modality only repeat the count."""
    return type(details) is list and all(
        type(entry) is dict and (entry.get("modality") == "text" or not entry.get("tokens"))
        for entry in details
    )


def render_usage(usage: Usage | None, losses: list[Loss]) -> dict[str, Any] | None:
    """The provider's own numbers while they are correct, else the usage under the names of this dialect."""
    if usage is None:
        return None
    raw = usage.raw
    if raw is not None and raw.dialect == OWN and parse_usage(raw.form) == usage:
        return raw.form
    losses_of_usage(raw, OWN, "$.usage", losses)
    for kind in ("cache_write", "cache_write_long"):
        if getattr(usage, kind):
            losses.append(Loss(f"$.usage.{kind}", "usage.detail", "approximated", "counted as plain input"))
    return {
        "total_input_tokens": usage.total_input - usage.tool_prompt,
        "total_cached_tokens": usage.cache_read,
        # A count without a field of its own is output: the parts add up to the total.
        "total_output_tokens": usage.total_output - (usage.reasoning or 0),
        "total_thought_tokens": usage.reasoning or 0,
        "total_tool_use_tokens": usage.tool_prompt,
        "total_tokens": usage.total,
    }


def _count(raw: dict[str, Any], key: str) -> int:
    value = raw.get(key)
    if type(value) is int:
        return max(value, 0)
    return int(value) if type(value) is float and 0 <= value < 2**53 else 0
