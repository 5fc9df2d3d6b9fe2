"""Stop reasons and usage: tables for both directions."""

from __future__ import annotations

from typing import Any

from wireglot_core.dialects.fields import own_form
from wireglot_core.dialects.openai_chat.extras import NAME
from wireglot_core.dialects.openai_chat.lost_fields import LOST
from wireglot_core.dialects.openai_shared import check_numbers, parse_logprob
from wireglot_core.dialects.usage_checks import UsageFields, losses_of_usage, split_output, uncounted
from wireglot_core.ir.content import Extra, TokenLogprob
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Stop, StopReason, Usage
from wireglot_core.ir.request import Request
from wireglot_core.ir.usage import counts_of

_NAMES: dict[StopReason, str] = {
    "end": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "context_full": "length",
    "tool_calls": "tool_calls",
    "refused": "content_filter",
    "paused": "length",  # the answer is incomplete: no other value means that
    "malformed_call": "stop",
    "other": "stop",
}
_REASONS: dict[str, StopReason] = {
    **{name: reason for reason, name in reversed(_NAMES.items())},
    "function_call": "tool_calls",
    # Servers that imitate OpenAI's.
    "": "end",
    "eos": "end",
    "eos_token": "end",
    "end_turn": "end",
    "stop_sequence": "end",
    "max_tokens": "length",
    "model_length": "length",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "safety": "refused",
}
_EXACT = frozenset({"end", "length", "tool_calls", "refused"})
# Tokens of a count that a provider reports: a larger one is ignored.
_MAX_TOKENS_BELIEVED = 10**9

# service_tier: OpenAI's name for the neutral one. Names that both share stay unchanged.
_TIERS = {"default": "standard"}
_TIER_NAMES = {"standard": "default"}
_KNOWN_TIERS = frozenset({"auto", "standard", "flex", "scale", "priority", "fast"})

USAGE_FIELDS = UsageFields(
    (
        ("input", "prompt_tokens"),
        ("output", "completion_tokens"),
        ("total", "total_tokens"),
        ("read", "cached_tokens"),  # Kimi
        ("read", "prompt_cache_hit_tokens"),  # DeepSeek
    ),
    (
        (
            "prompt_tokens_details",
            (
                ("read", "cached_tokens"),
                ("written", "cache_write_tokens"),
                ("written", "created_cache_tokens"),  # vLLM
            ),
        ),
        ("completion_tokens_details", (("reasoning", "reasoning_tokens"),)),
    ),
    check_numbers,
    # Text tokens are the remainder of all tokens: other kinds are reported next to them.
    again=(
        "reasoning_tokens",
        "prompt_cache_miss_tokens",
        "prompt_tokens_details.text_tokens",
        "completion_tokens_details.text_tokens",
    ),
)


def matched_sequence(choice: dict[str, Any]) -> str | None:
    """The stop sequence that ended an answer, if a server reports it: vLLM, SGLang. Both report the number of
    a token there if that was the end, and others a name for the reason."""
    matched = choice.get("stop_reason") or choice.get("matched_stop")
    return matched if type(matched) is str and matched not in _REASONS else None


def parse_stop(raw: Any, calls: bool, refusal: bool, matched: str | None = None) -> Stop:
    """The reason, derived from the content if the server's own value contradicts it."""
    spelled = raw if type(raw) is str else ""
    reason: StopReason = _REASONS.get(spelled, "other") if type(raw) is str else "other"
    if calls and reason in ("end", "other"):
        reason = "tool_calls"
    elif reason == "tool_calls" and not calls:
        reason = "end"
    elif refusal and reason == "end":
        reason = "refused"
    elif matched is not None and reason == "end":
        return Stop("stop_sequence", spelled, NAME, matched)
    return Stop(reason, spelled, NAME)


def is_vague(raw: str) -> bool:
    """Whether a later value may be more specific: some servers send `tool_calls`, then `stop`."""
    return _REASONS.get(raw, "other") in ("end", "other")


def render_stop(stop: Stop, calls: bool, refusal: bool, path: str, losses: list[Loss]) -> str:
    if stop.dialect == NAME and stop.raw:
        return stop.raw
    LOST.of(stop, path, losses)
    name = "tool_calls" if calls and stop.reason in ("end", "paused") else _NAMES[stop.reason]
    if stop.reason == "refused" and refusal:
        name = "stop"  # the model's own text; `content_filter` is used without one
    if stop.reason not in _EXACT or parse_stop(name, calls, refusal).reason != stop.reason:
        losses.append(Loss(path, "stop_reason", "approximated", f"{stop.reason} is reported as {name}"))
    return name


def parse_tier(value: str) -> str:
    return _TIERS.get(value, value)


def render_tier(value: str, native: bool, path: str, losses: list[Loss]) -> str | None:
    if value in _KNOWN_TIERS or native:
        return _TIER_NAMES.get(value, value)
    losses.append(Loss(path, "service_tier", "dropped", f"Chat has no tier {value!r}"))
    return None


def _count(value: Any) -> int:
    """A number of tokens; absurd values count as not reported."""
    if value is None:
        return 0
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= _MAX_TOKENS_BELIEVED else 0


def parse_usage(raw: dict[str, Any]) -> Usage:
    prompt_details = raw.get("prompt_tokens_details")
    details: dict[str, Any] = prompt_details if type(prompt_details) is dict else {}
    completion_details = raw.get("completion_tokens_details")
    spent: dict[str, Any] = completion_details if type(completion_details) is dict else {}
    prompt, completion = _count(raw.get("prompt_tokens")), _count(raw.get("completion_tokens"))
    read = written = 0
    # The second is Kimi's, the third DeepSeek's. Most report 0, or nothing.
    for cached in (
        details.get("cached_tokens"),
        raw.get("cached_tokens"),
        raw.get("prompt_cache_hit_tokens"),
    ):
        if cached and (read := _count(cached)):
            read = min(read, prompt)
            break
    if wrote := details.get("cache_write_tokens") or details.get("created_cache_tokens"):
        written = min(_count(wrote), prompt - read)
    thought = spent.get("reasoning_tokens")
    if thought is None:
        thought = raw.get("reasoning_tokens")
    reasoning = None if thought is None else _count(thought)
    output = completion
    if reasoning:
        # xAI counts reasoning in addition to the completion, not within it: the total shows that.
        beside = _count(raw.get("total_tokens")) == prompt + completion + reasoning
        output = split_output(completion, reasoning, beside=beside)
    return Usage(
        input=prompt - read - written,
        cache_read=read,
        cache_write=written,
        output=output,
        reasoning=reasoning,
        raw=Extra(NAME, uncounted(raw, USAGE_FIELDS.counted), raw) if raw else None,
    )


def render_usage(usage: Usage, losses: list[Loss]) -> dict[str, Any]:
    raw = own_form(usage.raw, NAME)
    if raw and counts_of(parse_usage(raw)) == counts_of(usage):
        return dict(raw)
    losses_of_usage(usage.raw, NAME, "$.usage", losses)
    if usage.cache_write_long:
        losses.append(
            Loss("$.usage.cache_write_long", "usage.detail", "approximated", "counted with cache_write")
        )
    if usage.tool_prompt:
        losses.append(Loss("$.usage.tool_prompt", "usage.detail", "approximated", "counted with input"))
    prompt = {"cached_tokens": usage.cache_read}
    written = usage.cache_write + usage.cache_write_long
    if written:
        prompt["cache_write_tokens"] = written
    return {
        "prompt_tokens": usage.total_input,
        "completion_tokens": usage.total_output,
        "total_tokens": usage.total,
        "prompt_tokens_details": prompt,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
    }


def parse_logprobs(value: Any) -> tuple[TokenLogprob, ...] | None:
    """The tokens of `logprobs.content`; None if they are not reported in OpenAI's form."""
    if type(value) is not list or not value:
        return None
    tokens = []
    for entry in value:
        token = parse_logprob(entry)
        if token is None:
            return None
        tokens.append(token)
    return tuple(tokens)


def asks_usage(request: Request) -> bool:
    """Whether a stream reports its usage: only clients that request it accept a chunk without choices."""
    options = own_form(request.extra, NAME).get("stream_options")
    return type(options) is dict and bool(options.get("include_usage"))


def tells_usage(request: Request) -> bool:
    """Whether the answer to a request reports its usage."""
    return not request.stream or asks_usage(request)
