"""Parses and renders stop reasons, usage and log probabilities."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.fields import own_form
from wireglot_core.dialects.ollama.extras import NAME
from wireglot_core.dialects.ollama.lost_fields import LOST
from wireglot_core.dialects.usage_checks import COUNT_MAX, Numbers, UsageFields, losses_of_usage, uncounted
from wireglot_core.ir.content import Extra, TokenLogprob
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Stop, StopReason, Usage
from wireglot_core.ir.usage import counts_of

_NAMES: Final[dict[StopReason, str]] = {
    "end": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "context_full": "length",
    "tool_calls": "stop",
    "refused": "stop",
    "paused": "length",  # the answer is incomplete: no other value means that
    "malformed_call": "stop",
    "other": "stop",
}
_REASONS: Final[dict[str, StopReason]] = {
    "": "end",  # servers before 0.3 do not report it
    "stop": "end",
    "length": "length",
    "load": "end",
    "unload": "end",
    "tool_calls": "tool_calls",
}
_EXACT: Final = frozenset({"end", "length", "tool_calls"})


def parse_stop(raw: Any, calls: bool, *, is_done: bool = True) -> Stop:
    if not is_done:
        return Stop("other", "", NAME)
    spelled = raw if type(raw) is str else ""
    reason = _REASONS.get(spelled, "other")
    if calls and reason == "end":
        reason = "tool_calls"
    elif reason == "tool_calls" and not calls:
        reason = "end"
    return Stop(reason, spelled, NAME)


def render_stop(stop: Stop, calls: bool, losses: list[Loss]) -> str:
    """The `done_reason`; "" if the server sent none."""
    if stop.dialect == NAME:
        return stop.raw
    LOST.of(stop, "$.stop", losses)
    name = _NAMES[stop.reason]
    if stop.reason not in _EXACT or parse_stop(name, calls).reason != stop.reason:
        losses.append(Loss("$.stop", "stop_reason", "approximated", f"{stop.reason} is reported as {name}"))
    return name


# Usage

_DURATIONS: Final = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
METRICS: Final = frozenset({"prompt_eval_count", "eval_count", *_DURATIONS})


def _agree(numbers: Numbers) -> list[str]:
    return []  # none of them repeats another


USAGE_FIELDS: Final = UsageFields((("input", "prompt_eval_count"), ("output", "eval_count")), (), _agree)


def _count(value: Any) -> int:
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= COUNT_MAX else 0


def parse_usage(body: dict[str, Any]) -> Usage | None:
    """The usage in an answer or in the last line of a stream; None if there is none."""
    raw = {key: value for key, value in body.items() if key in METRICS and value is not None}
    if not raw:
        return None
    return Usage(
        input=_count(raw.get("prompt_eval_count")),
        output=_count(raw.get("eval_count")),
        raw=Extra(NAME, uncounted(raw, USAGE_FIELDS.counted), raw),
    )


def render_usage(usage: Usage | None, losses: list[Loss]) -> dict[str, Any]:
    if usage is None:
        return {}
    raw = own_form(usage.raw, NAME)
    if raw:
        again = parse_usage(raw)
        if again is not None and counts_of(again) == counts_of(usage):
            return dict(raw)
    losses_of_usage(usage.raw, NAME, "$.usage", losses)
    for name in ("cache_read", "cache_write", "cache_write_long", "tool_prompt"):
        if getattr(usage, name):
            losses.append(
                Loss(f"$.usage.{name}", "usage.detail", "approximated", "counted with prompt_eval_count")
            )
    if usage.reasoning:
        losses.append(Loss("$.usage.reasoning", "usage.detail", "approximated", "counted with eval_count"))
    return {"prompt_eval_count": usage.total_input, "eval_count": usage.total_output}


# Log probabilities

_TOKEN: Final = frozenset({"token", "logprob", "bytes", "top_logprobs"})


def parse_logprobs(value: Any) -> tuple[TokenLogprob, ...] | None:
    """The tokens; None if they are not in Ollama's form."""
    if type(value) is not list or not value:
        return None
    tokens: list[TokenLogprob] = []
    for entry in value:
        top = entry.get("top_logprobs") if type(entry) is dict else None
        pair, others = _pair(entry), [_pair(other) for other in top] if type(top) is list else []
        if pair is None or None in others:
            return None
        tokens.append(TokenLogprob(*pair, tuple([other for other in others if other is not None])))
    return tuple(tokens)


def _pair(entry: Any) -> tuple[str, float] | None:
    if type(entry) is not dict or not entry.keys() <= _TOKEN:
        return None
    token, logprob = entry.get("token"), entry.get("logprob")
    return (token, logprob) if type(token) is str and isinstance(logprob, int | float) else None


def render_logprobs(tokens: tuple[TokenLogprob, ...]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for token in tokens:
        entry = _entry(token.token, token.logprob)
        if token.top:
            entry["top_logprobs"] = [_entry(*pair) for pair in token.top]
        out.append(entry)
    return out


def _entry(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode("utf-8", "replace"))}
