"""Parses and renders stop reasons and usage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wireglot_core.dialects.common_losses import COUNTED_AS_INPUT
from wireglot_core.dialects.fields import object_in
from wireglot_core.dialects.openai_responses.lost_fields import LOST
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.dialects.openai_shared import check_numbers
from wireglot_core.dialects.usage_checks import UsageFields, losses_of_usage, split_output, uncounted
from wireglot_core.ir.content import Extra, Part, Text, ToolCall
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Stop, StopReason, Usage

_INCOMPLETE: dict[str, StopReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "refused",
}
_COMPLETE = frozenset({"completed", "complete", ""})

_STATUS: dict[StopReason, tuple[str, str]] = {
    "end": ("completed", ""),
    "tool_calls": ("completed", ""),
    "stop_sequence": ("completed", ""),
    "other": ("completed", ""),
    "length": ("incomplete", "max_output_tokens"),
    "context_full": ("incomplete", "max_output_tokens"),
    # There is no value for a pause. The answer is incomplete, and a client may request the rest.
    "paused": ("incomplete", "max_output_tokens"),
    "refused": ("incomplete", "content_filter"),
    "malformed_call": ("failed", ""),
}

USAGE_FIELDS = UsageFields(
    (("input", "input_tokens"), ("output", "output_tokens"), ("total", "total_tokens")),
    (
        ("input_tokens_details", (("read", "cached_tokens"), ("written", "cache_write_tokens"))),
        ("output_tokens_details", (("reasoning", "reasoning_tokens"),)),
    ),
    check_numbers,
    # Text tokens are the remainder of all tokens: other kinds are reported next to them.
    again=(
        "input_tokens_details.cache_write_tokens_details",
        "input_tokens_details.text_tokens",
        "output_tokens_details.text_tokens",
    ),
)

USAGE = "usage."
"""Prefix of a key in a response's extra: a count without a place in the usage."""

MALFORMED = {"code": "server_error", "message": "the model produced a malformed tool call"}


def parse_stop(status: str, details: Any, calls: bool, refused: bool) -> Stop:
    """There is no finish reason here: it follows from the status and from the content."""
    if status in _COMPLETE:
        reason: StopReason = "tool_calls" if calls else "refused" if refused else "end"
        return Stop(reason, status or "completed", NAME)
    if status == "incomplete":
        why = details.get("reason") if type(details) is dict else None
        if type(why) is not str:
            return Stop("length", status, NAME)
        return Stop(_INCOMPLETE.get(why, "other"), f"{status}/{why}", NAME)
    return Stop("other", status, NAME)


def render_stop(stop: Stop, content: Sequence[Part], losses: list[Loss]) -> tuple[str, str]:
    """Status and the reason why it is incomplete ("" for none)."""
    LOST.of(stop, "$.stop", losses)
    if stop.dialect == NAME and stop.raw:
        status, _, why = stop.raw.partition("/")
        return status, why
    status, why = _STATUS[stop.reason]
    calls = refused = False
    for part in content:
        calls = calls or type(part) is ToolCall
        refused = refused or (type(part) is Text and part.refusal)
    if stop.reason == "paused" and calls:
        status, why = "completed", ""  # the client continues by running them
    if stop.reason == "refused" and refused and not calls:
        status, why = "completed", ""  # the model's own text; a filter is reported without one
    back = parse_stop(status, {"reason": why}, calls, refused)
    if back.reason != stop.reason:
        losses.append(
            Loss("$.stop", "stop_reason", "approximated", f"{stop.reason} reads as {back.reason} here")
        )
    return status, why


def parse_usage(raw: Any) -> Usage | None:
    """Totals include their details in this dialect; the IR's numbers do not overlap."""
    if type(raw) is not dict:
        return None
    total_in, total_out = _count(raw, "input_tokens"), _count(raw, "output_tokens")
    inside, outside = object_in(raw.get("input_tokens_details")), object_in(raw.get("output_tokens_details"))
    read = min(_count(inside, "cached_tokens"), total_in)
    written = min(_count(inside, "cache_write_tokens"), total_in - read)
    long = min(_count(object_in(inside.get("cache_write_tokens_details")), "ttl_12h_tokens"), written)
    reasoning: int | None = None
    if type(outside.get("reasoning_tokens")) in (int, float):
        reasoning = _count(outside, "reasoning_tokens")
    return Usage(
        input=total_in - read - written,
        cache_read=read,
        cache_write=written - long,
        cache_write_long=long,
        output=split_output(total_out, reasoning or 0),
        reasoning=reasoning,
        raw=Extra(NAME, uncounted(raw, USAGE_FIELDS.counted), raw),
    )


def contradictions(raw: Any) -> dict[str, Any]:
    """Details larger than the total they are part of, by path: the parsed usage has less."""
    usage = parse_usage(raw)
    if usage is None:
        return {}
    inside = object_in(raw.get("input_tokens_details"))
    rows = (
        ("cached_tokens", usage.cache_read),
        ("cache_write_tokens", usage.cache_write + usage.cache_write_long),
    )
    return {
        f"{USAGE}input_tokens_details.{key}": inside[key]
        for key, counted in rows
        if _count(inside, key) > counted
    }


def render_usage(usage: Usage | None, losses: list[Loss]) -> dict[str, Any]:
    """All numbers, always: clients read them as integers without checking."""
    if usage is None:
        usage = Usage()
    raw = usage.raw
    if raw is not None and raw.dialect == NAME and parse_usage(raw.form) == usage:
        return raw.form
    losses_of_usage(raw, NAME, "$.usage", losses)
    if usage.tool_prompt:
        losses.append(COUNTED_AS_INPUT.at("$.usage.tool_prompt"))
    written = usage.cache_write + usage.cache_write_long
    inside: dict[str, Any] = {"cached_tokens": usage.cache_read, "cache_write_tokens": written}
    if usage.cache_write_long:
        inside["cache_write_tokens_details"] = {
            "ttl_30m_tokens": usage.cache_write,
            "ttl_12h_tokens": usage.cache_write_long,
        }
    return {
        "input_tokens": usage.total_input,
        "input_tokens_details": inside,
        "output_tokens": usage.total_output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": usage.total,
    }


def _count(raw: dict[str, Any], key: str) -> int:
    value = raw.get(key)
    if type(value) is int:
        return max(value, 0)
    return int(value) if type(value) is float and 0 <= value < 2**53 else 0
