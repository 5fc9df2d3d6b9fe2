"""What in a provider's own numbers does not add up. The account goes on with the numbers as they were read;
whoever pays by them is told that they are odd."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from wireglot.ir.outcome import Usage

NEGATIVE: Final = "negative_count"
ODD: Final = "count_not_whole"
ABSURD: Final = "count_absurd"
TOTAL: Final = "total_is_not_the_sum"
CACHED: Final = "cached_exceeds_input"
REASONING: Final = "reasoning_exceeds_output"
WRITTEN: Final = "cache_parts_exceed_cache_writes"

COUNT_MAX: Final = 10**12
"""More tokens than any request has; the ledger counts no more."""

_UNDERSCORED: Final = re.compile("_([a-z])")

Numbers = dict[str, int]
"""Those that were told and make sense, under names of our own."""


def usage_checks(usage: Usage | None) -> tuple[str, ...]:
    """Sorted; none where the numbers agree, or where the provider told none of its own."""
    raw = usage.raw if usage is not None else None
    if raw is None:
        return ()
    known = _DIALECTS.get(raw.dialect)
    if known is None:
        return ()
    flat, nested, check = known
    document = _in_camel_case(raw.fields) if raw.dialect == "gemini" else raw.fields or raw.form
    numbers: Numbers = {}
    found: list[str] = []
    get = document.get
    for name, key in flat:
        value = get(key)
        if type(value) is int and 0 <= value <= COUNT_MAX:
            numbers[name] = value
        elif value is not None:
            _judge(name, value, numbers, found)
    for key, inner in nested:
        details = get(key)
        if type(details) is dict:
            for name, part in inner:
                value = details.get(part)
                if type(value) is int and 0 <= value <= COUNT_MAX:
                    numbers[name] = value
                elif value is not None:
                    _judge(name, value, numbers, found)
    found += check(numbers)
    return tuple(sorted(set(found))) if found else ()


def _judge(name: str, value: Any, numbers: Numbers, found: list[str]) -> None:
    if (type(value) is float and value.is_integer()) or (type(value) is str and value.isdecimal()):
        value = int(value)  # how JSON of Google's may write whole numbers
    if type(value) is not int:
        found.append(ODD)
    elif value < 0:
        found.append(NEGATIVE)
    elif value > COUNT_MAX:
        found.append(ABSURD)
    else:
        numbers[name] = value


def _in_camel_case(document: dict[str, Any]) -> dict[str, Any]:
    """Gemini's servers may write their names either way."""
    if "prompt_token_count" not in document and "total_token_count" not in document:
        return document
    return {_UNDERSCORED.sub(lambda found: found[1].upper(), name): n for name, n in document.items()}


def _anthropic(told: Numbers) -> list[str]:
    """Its input holds nothing cached, and there is no total."""
    found = []
    if told.get("reasoning", 0) > told.get("output", 0):
        found.append(REASONING)
    # A stream may tell the sum anew and not its parts, so parts that fall short mean nothing.
    if "written" in told and told.get("short", 0) + told.get("long", 0) > told["written"]:
        found.append(WRITTEN)
    return found


def _openai(told: Numbers) -> list[str]:
    found = []
    get = told.get
    sent, output, total, reasoning = get("input"), get("output"), get("total"), get("reasoning", 0)
    if sent is not None and get("read", 0) + get("written", 0) > sent:
        found.append(CACHED)
    if sent is None or output is None:
        return found
    # xAI counts reasoning beside the output, not within it; then the total says so.
    beside = reasoning > 0 and total == sent + output + reasoning
    if reasoning > output and not beside:
        found.append(REASONING)
    if total is not None and total != sent + output and not beside:
        found.append(TOTAL)
    return found


def _gemini(told: Numbers) -> list[str]:
    """Thoughts and the prompts of built-in tools stand beside prompt and answer; what is cached is within."""
    found = []
    if told.get("read", 0) > told.get("input", 0):
        found.append(CACHED)
    parts = sum(told.get(name, 0) for name in ("input", "output", "reasoning", "tools"))
    if "total" in told and told["total"] != parts:
        found.append(TOTAL)
    return found


Names = tuple[tuple[str, str], ...]
"""Names of our own, and the fields that tell them. Of two that tell the same, the later holds."""
_DIALECTS: Final[dict[str, tuple[Names, tuple[tuple[str, Names], ...], Callable[[Numbers], list[str]]]]] = {
    "anthropic": (
        (
            ("input", "input_tokens"),
            ("output", "output_tokens"),
            ("read", "cache_read_input_tokens"),
            ("written", "cache_creation_input_tokens"),
        ),
        (
            (
                "cache_creation",
                (("short", "ephemeral_5m_input_tokens"), ("long", "ephemeral_1h_input_tokens")),
            ),
            ("output_tokens_details", (("reasoning", "thinking_tokens"),)),
        ),
        _anthropic,
    ),
    "openai-chat": (
        (
            ("input", "prompt_tokens"),
            ("output", "completion_tokens"),
            ("total", "total_tokens"),
            ("read", "cached_tokens"),  # Kimi
            ("read", "prompt_cache_hit_tokens"),  # DeepSeek
        ),
        (
            ("prompt_tokens_details", (("read", "cached_tokens"), ("written", "cache_write_tokens"))),
            ("completion_tokens_details", (("reasoning", "reasoning_tokens"),)),
        ),
        _openai,
    ),
    "openai-responses": (
        (("input", "input_tokens"), ("output", "output_tokens"), ("total", "total_tokens")),
        (
            ("input_tokens_details", (("read", "cached_tokens"), ("written", "cache_write_tokens"))),
            ("output_tokens_details", (("reasoning", "reasoning_tokens"),)),
        ),
        _openai,
    ),
    "gemini": (
        (
            ("input", "promptTokenCount"),
            ("output", "candidatesTokenCount"),
            ("reasoning", "thoughtsTokenCount"),
            ("tools", "toolUsePromptTokenCount"),
            ("read", "cachedContentTokenCount"),
            ("total", "totalTokenCount"),
        ),
        (),
        _gemini,
    ),
}
