"""Stop reasons and usage: tables for both directions."""

from __future__ import annotations

from typing import Any

from wireglot_core.dialects.anthropic.lost_fields import LOST, no_tier
from wireglot_core.dialects.anthropic.names import NAME
from wireglot_core.dialects.common_losses import COUNTED_AS_INPUT
from wireglot_core.dialects.fields import own_fields
from wireglot_core.dialects.usage_checks import (
    REASONING,
    WRITTEN,
    Numbers,
    UsageFields,
    joined_usage,
    losses_of_usage,
    split_output,
    uncounted,
)
from wireglot_core.ir.content import Extra
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Stop, StopReason, Usage

REASONS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "stop_sequence",
    "max_tokens": "length",
    "model_context_window_exceeded": "context_full",
    "tool_use": "tool_calls",
    "refusal": "refused",
    "pause_turn": "paused",
    "compaction": "paused",  # the summary is there, and the answer follows when it is sent back
}
SPELT: dict[StopReason, str] = {reason: raw for raw, reason in reversed(REASONS.items())}

_TIERS_READ = {"standard_only": "standard"}
_TIERS_REQUEST = {"auto": "auto", "standard": "standard_only"}
_TIERS_RESPONSE = frozenset({"standard", "priority", "batch"})


def _check_numbers(counts: Numbers) -> list[str]:
    """In this dialect the input excludes cached tokens, and there is no total."""
    found = []
    if counts.get("reasoning", 0) > counts.get("output", 0):
        found.append(REASONING)
    # A stream may repeat the sum and not its parts, so parts that fall short mean nothing.
    if "written" in counts and counts.get("short", 0) + counts.get("long", 0) > counts["written"]:
        found.append(WRITTEN)
    return found


USAGE_FIELDS = UsageFields(
    (
        ("input", "input_tokens"),
        ("output", "output_tokens"),
        ("read", "cache_read_input_tokens"),
        ("written", "cache_creation_input_tokens"),
    ),
    (
        ("cache_creation", (("short", "ephemeral_5m_input_tokens"), ("long", "ephemeral_1h_input_tokens"))),
        ("output_tokens_details", (("reasoning", "thinking_tokens"),)),
    ),
    _check_numbers,
    again=(
        "service_tier",
        # Servers that imitate Anthropic's repeat the counts under OpenAI's names.
        "prompt_tokens",
        "completion_tokens",
        "cached_tokens",
        "total_tokens",
    ),
)

_AT_START_ONLY = ("cache_creation", "service_tier", "inference_geo")
_NOWHERE = "not_available"
"""Anthropic's value for a location (`inference_geo`) that is not reported; most answers have it."""


def parse_stop(raw: Any, sequence: Any, details: dict[str, Any], calls: bool) -> Stop:
    """`details`: `stop_details`, if present. If there are calls, an `end_turn` (or no reason) becomes a stop
    for tool calls."""
    text = raw if type(raw) is str else ""
    reason: StopReason = REASONS.get(text, "other")
    if calls and (reason == "end" or not text):
        reason = "tool_calls"
    extra = Extra(NAME, details) if details else None
    return Stop(reason, text, NAME, sequence if type(sequence) is str else None, extra)


def render_stop(stop: Stop, path: str, losses: list[Loss]) -> dict[str, Any]:
    """The stop fields. This dialect has no stop reason for a malformed call: the caller reports an error."""
    if stop.dialect == NAME and stop.raw:
        raw: str | None = stop.raw
    elif stop.dialect == NAME and stop.reason == "other":
        raw = None  # the source had no stop reason either
    else:
        raw = SPELT.get(stop.reason, "end_turn")
        if stop.reason not in SPELT:
            said = f" ({stop.raw})" if stop.raw else ""
            detail = f"{stop.reason}{said} is reported as {raw}"
            losses.append(Loss(f"{path}.reason", "stop_reason", "approximated", detail))
    fields: dict[str, Any] = {"stop_reason": raw, "stop_sequence": stop.sequence}
    if stop.dialect != NAME:
        fields["stop_details"] = None  # required, and null without details
    LOST.of(stop, path, losses)
    fields.update(own_fields(stop.extra, NAME))
    return fields


def parse_usage(raw: dict[str, Any]) -> Usage:
    """Parses a usage object. Total output includes thinking; input excludes all cached tokens."""
    split = raw.get("cache_creation")
    short = long = 0
    if type(split) is dict:
        short = _count(split.get("ephemeral_5m_input_tokens"))
        long = _count(split.get("ephemeral_1h_input_tokens"))
    total = raw.get("cache_creation_input_tokens")
    # The total wins: a split from message_start may be older than a total from message_delta.
    written = _count(total) if total is not None else short + long
    long = min(long, written)
    details = raw.get("output_tokens_details")
    thinking = details.get("thinking_tokens") if type(details) is dict else None
    output = _count(raw.get("output_tokens"))
    reasoning = _count(thinking) if thinking is not None else None
    return Usage(
        input=_count(raw.get("input_tokens")),
        cache_read=_count(raw.get("cache_read_input_tokens")),
        cache_write=written - long,
        cache_write_long=long,
        output=split_output(output, reasoning or 0),
        reasoning=reasoning,
        raw=Extra(NAME, _unreported(raw), raw),
    )


def _unreported(raw: dict[str, Any]) -> dict[str, Any]:
    if raw.keys() <= USAGE_FIELDS.counted.keys():
        return {}
    rest = uncounted(raw, USAGE_FIELDS.counted)
    if rest.get("inference_geo") == _NOWHERE:
        del rest["inference_geo"]
    return rest


def render_usage(usage: Usage, path: str, losses: list[Loss]) -> dict[str, Any]:
    raw = usage.raw
    if raw is not None and raw.dialect == NAME and parse_usage(raw.form) == usage:
        return dict(raw.form)
    if raw is not None:
        losses_of_usage(raw, NAME, path, losses)
    if usage.tool_prompt:
        losses.append(COUNTED_AS_INPUT.at(f"{path}.tool_prompt"))
    written = usage.cache_write + usage.cache_write_long
    split = {
        "ephemeral_5m_input_tokens": usage.cache_write,
        "ephemeral_1h_input_tokens": usage.cache_write_long,
    }
    # The vendor's OpenAPI document requires all of these; unknown values are null.
    return {
        # A count without a field of its own is input: the parts add up to the total.
        "input_tokens": usage.total_input - usage.cache_read - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": split if written else None,
        "output_tokens": usage.total_output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning} if usage.reasoning else None,
        "server_tool_use": None,
        "service_tier": None,
        "inference_geo": None,
    }


def shorten_final(usage: dict[str, Any], estimate: Usage | None) -> None:
    """The usage of a message_delta, without fields that only message_start must have. Values not yet reported
    there are kept."""
    raw = estimate.raw if estimate is not None else None
    reported = raw.form if raw is not None and raw.dialect == NAME else {}
    for key in _AT_START_ONLY:
        if key in usage and (usage[key] is None or usage[key] == reported.get(key)):
            del usage[key]


def merge_usage(old: dict[str, Any], new: Any) -> dict[str, Any]:
    """A later usage object merged over an earlier one: its values win, missing ones are kept."""
    if type(new) is not dict:
        return old
    return joined_usage(
        old, {key: value for key, value in new.items() if value is not None or key not in old}
    )


def overwrite_estimate(estimate: Usage, usage: dict[str, Any]) -> None:
    """The cache writes and thinking reported in message_start are kept unless the final usage repeats
    them."""
    raw = estimate.raw
    counted = estimate.cache_write or estimate.cache_write_long or estimate.reasoning
    if not counted and (raw is None or raw.dialect != NAME):
        return
    reported = render_usage(estimate, "$.usage", [])
    if reported.get("cache_creation") is not None and usage.get("cache_creation") is None:
        usage["cache_creation"] = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0}
    if reported.get("output_tokens_details") is not None and usage.get("output_tokens_details") is None:
        usage["output_tokens_details"] = {"thinking_tokens": 0}


def tier_of_usage(usage: Any) -> str:
    tier = usage.get("service_tier") if type(usage) is dict else None
    return tier if type(tier) is str else ""


def render_final_usage(usage: Usage | None, tier: str, losses: list[Loss]) -> dict[str, Any]:
    """Includes the tier of the answer; zeros if the upstream reported nothing."""
    rendered = render_usage(usage or Usage(), "$.usage", losses)
    stated = rendered.get("service_tier")
    if tier and stated != tier:
        if tier in _TIERS_RESPONSE or stated is not None:
            rendered["service_tier"] = tier
        else:
            losses.append(no_tier(tier))
    return rendered


def parse_tier(raw: str) -> str:
    return _TIERS_READ.get(raw, raw)


def render_tier(tier: str) -> str | None:
    """The request's spelling of a tier; None if it has none."""
    return _TIERS_REQUEST.get(tier)


def _count(value: Any) -> int:
    """A number of tokens; any other value counts as 0 (and stays in the raw usage)."""
    if type(value) is int:
        return max(value, 0)
    if type(value) is float and value.is_integer():
        return max(int(value), 0)
    return 0
