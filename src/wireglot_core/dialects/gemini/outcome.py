"""Stop reasons and usage: tables for both directions."""

from __future__ import annotations

from typing import Any

from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.gemini import names
from wireglot_core.dialects.gemini.lost_fields import LOST
from wireglot_core.dialects.gemini.names import OWN, count
from wireglot_core.dialects.google_shared import check_numbers
from wireglot_core.dialects.usage_checks import UsageFields, losses_of_usage, uncounted
from wireglot_core.ir.content import Extra
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Stop, StopReason, Usage

FINISH_NUMBERS = (
    "FINISH_REASON_UNSPECIFIED",
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
)
"""Vertex's numbering. The Developer API agrees on the first five, and only they have been seen as numbers."""

UNSIGNED = "MISSING_THOUGHT_SIGNATURE"
"""The request is wrong rather than the answer: it lacks a thought signature."""

_FINISHES: dict[StopReason, str] = {
    "end": "STOP",
    "stop_sequence": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    # CONTINUATION is a pause that is resumed with Gemini's token, which no other provider has.
    "paused": "MAX_TOKENS",
    "context_full": "MAX_TOKENS",
    "refused": "SAFETY",
    "malformed_call": "MALFORMED_FUNCTION_CALL",
    "other": "OTHER",
}
_REASONS: dict[str, StopReason] = {
    **{finish: reason for reason, finish in reversed(_FINISHES.items())},
    "RECITATION": "refused",
    "BLOCKLIST": "refused",
    "PROHIBITED_CONTENT": "refused",
    "SPII": "refused",
    "IMAGE_SAFETY": "refused",
    "IMAGE_PROHIBITED_CONTENT": "refused",
    "IMAGE_RECITATION": "refused",
    "MODEL_ARMOR": "refused",
    "ESCALATION": "refused",  # google-genai 3.3, as the next one: the account or the request was limited
    "PUP_LIMITED_DISABLED": "refused",
    "UNEXPECTED_TOOL_CALL": "malformed_call",
    "TOO_MANY_TOOL_CALLS": "malformed_call",
    "MALFORMED_RESPONSE": "malformed_call",
    UNSIGNED: "malformed_call",  # ai.google.dev/api; google-genai 3.1 lacked it
    "CONTINUATION": "paused",
}
_AFTER_WORDS: dict[str, StopReason] = dict.fromkeys(
    ("UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE", UNSIGNED), "paused"
)
"""The meaning of these after a text: the text is kept, and the model was not done."""


_USAGE = UsageFields(
    (
        ("input", "promptTokenCount"),
        ("output", "candidatesTokenCount"),
        ("reasoning", "thoughtsTokenCount"),
        ("tools", "toolUsePromptTokenCount"),
        ("read", "cachedContentTokenCount"),
        ("total", "totalTokenCount"),
    ),
    (),
    check_numbers,
    again=("serviceTier",),
)


def check_usage(raw: Extra) -> tuple[str, ...]:
    """The contradictions in a usage. Gemini's servers may use either spelling of the names."""
    if "prompt_token_count" in raw.form or "total_token_count" in raw.form:
        raw = Extra(OWN, raw.fields, _NAMES.camel(raw.form))
    return _USAGE.problems(raw)


_BY_MODALITY = (
    "promptTokensDetails",
    "cacheTokensDetails",
    "candidatesTokensDetails",
    "toolUsePromptTokensDetails",
)
_NAMES = names.Names(*_USAGE.counted, *_BY_MODALITY, "trafficType")
_PLAIN_TRAFFIC = "ON_DEMAND"
"""The traffic type of all requests without purchased throughput."""


def read_stop(stated: Any, calls: bool, message: Any = None, *, said: bool = False) -> Stop:
    """The stop for a finishReason. A call overrides STOP and nothing else: a cut-off answer stays cut off.
    `said`: the answer has text."""
    raw = names.enum_name(stated, FINISH_NUMBERS)
    reason = _REASONS.get(raw, "other")
    if said and not calls:
        reason = _AFTER_WORDS.get(raw, reason)
    if reason == "end" and calls:
        reason = "tool_calls"
    fields = {"finishMessage": message} if message is not None else {}
    form = {"finishReason": stated} if stated != raw else {}
    return Stop(reason, raw, OWN, extra=Extra(OWN, fields, form) if fields or form else None)


def silent_stop(content: bool, calls: bool) -> Stop:
    """The stop of a whole document without a finish reason."""
    reason: StopReason = "tool_calls" if calls else "end" if content else "other"
    return Stop(reason, "", OWN, extra=Extra(OWN, {}, {"finishReason": "absent"}))


def write_stop(stop: Stop, calls: bool, path: str, out: list[Loss]) -> dict[str, Any]:
    """`finishReason` (and its message) for a candidate; a reason that it cannot distinguish is a loss."""
    LOST.of(stop, path, out)
    kept = own_fields(stop.extra, OWN)
    if stop.dialect == OWN and not stop.raw and own_form(stop.extra, OWN).get("finishReason") == "absent":
        return dict(kept)
    own = stop.dialect == OWN and stop.reason in (_reported(stop.raw, calls), _AFTER_WORDS.get(stop.raw))
    raw = stop.raw if own else _FINISHES[stop.reason]
    if stop.reason == "paused" and calls and raw != stop.raw:
        raw = "STOP"  # the client continues by running them
    stated = own_form(stop.extra, OWN).get("finishReason")
    reason = stop.reason if own else _reported(raw, calls)
    if reason != stop.reason:
        out.append(Loss(path, "stop_reason", "approximated", f"{stop.reason} becomes {raw}"))
    same = stated is not None and names.enum_name(stated, FINISH_NUMBERS) == raw
    return {"finishReason": stated if same else raw, **kept}


def _reported(raw: str, calls: bool) -> StopReason:
    reason = _REASONS.get(raw, "other")
    return "tool_calls" if reason == "end" and calls else reason


def read_usage(raw: dict[str, Any]) -> Usage:
    """`promptTokenCount` includes the cached tokens; `candidatesTokenCount` excludes the thoughts."""
    given = _NAMES.camel(raw)
    prompt = count(given.get("promptTokenCount"))
    cached = count(given.get("cachedContentTokenCount"))
    thoughts = given.get("thoughtsTokenCount")
    return Usage(
        input=max(prompt - cached, 0),
        cache_read=cached,
        tool_prompt=count(given.get("toolUsePromptTokenCount")),
        output=count(given.get("candidatesTokenCount")),
        reasoning=None if thoughts is None else count(thoughts),
        raw=Extra(OWN, _unreported(given), raw),
    )


def _unreported(given: dict[str, Any]) -> dict[str, Any]:
    if given.keys() <= _USAGE.counted.keys():
        return {}
    rest = uncounted(given, _USAGE.counted)
    for key in _BY_MODALITY:
        details = rest.get(key)
        if details is not None and _is_text_alone(details):
            del rest[key]
    if rest.get("trafficType") == _PLAIN_TRAFFIC:
        del rest["trafficType"]
    return rest


def _is_text_alone(details: Any) -> bool:
    """Whether the tokens by modality only repeat the count."""
    return type(details) is list and all(
        type(entry) is dict and (entry.get("modality") in ("TEXT", 1) or not entry.get("tokenCount"))
        for entry in details
    )


def usage_tier(raw: dict[str, Any]) -> str:
    tier = raw.get("serviceTier", raw.get("service_tier"))
    return tier.lower() if type(tier) is str else ""


def write_usage(usage: Usage, tier: str, path: str, out: list[Loss]) -> dict[str, Any]:
    """The provider's own numbers, if they are Gemini's and still correct; else the usage under Gemini's
    names."""
    raw = usage.raw
    if raw is not None and raw.dialect == OWN and _same(read_usage(raw.form), usage):
        return raw.form
    losses_of_usage(raw, OWN, path, out)
    for kind in ("cache_write", "cache_write_long"):
        if getattr(usage, kind):
            out.append(Loss(f"{path}.{kind}", "usage.detail", "approximated", "counted as plain prompt"))
    written: dict[str, Any] = {"promptTokenCount": usage.total_input - usage.tool_prompt}
    if usage.cache_read:
        written["cachedContentTokenCount"] = usage.cache_read
    # A count without a field of its own is output: the parts add up to the total.
    written["candidatesTokenCount"] = usage.total_output - (usage.reasoning or 0)
    if usage.reasoning:
        written["thoughtsTokenCount"] = usage.reasoning
    if usage.tool_prompt:
        written["toolUsePromptTokenCount"] = usage.tool_prompt
    written["totalTokenCount"] = usage.total
    if tier:
        written["serviceTier"] = tier
    return written


def _same(one: Usage, other: Usage) -> bool:
    return (one.input, one.cache_read, one.tool_prompt, one.output, one.reasoning or 0, one.total) == (
        other.input,
        other.cache_read,
        other.tool_prompt,
        other.output,
        other.reasoning or 0,
        other.total,
    )
