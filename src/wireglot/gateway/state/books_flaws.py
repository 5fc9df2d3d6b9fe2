"""What in a provider's own numbers does not add up. The account goes on with the numbers as they were read;
whoever pays by them is told that they are odd."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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


def flaws(usage: Usage | None) -> tuple[str, ...]:
    """Sorted; none where the numbers agree, or where the provider told none of its own."""
    raw = usage.raw if usage is not None else None
    if raw is None:
        return ()
    known = _DIALECTS.get(raw.dialect)
    if known is None:
        return ()
    places, check = known
    document = _in_camel_case(raw.fields) if raw.dialect == "gemini" else raw.fields or raw.form
    numbers: Numbers = {}
    found: set[str] = set()
    for name, path in places:
        value = _at(document, path)
        if value is None:
            continue
        if (type(value) is float and value.is_integer()) or (type(value) is str and value.isdecimal()):
            value = int(value)  # how JSON of Google's may write whole numbers
        if type(value) is not int:
            found.add(ODD)
        elif value < 0:
            found.add(NEGATIVE)
        elif value > COUNT_MAX:
            found.add(ABSURD)
        else:
            numbers[name] = value
    found.update(check(numbers))
    return tuple(sorted(found)) if found else ()


def _in_camel_case(document: dict[str, Any]) -> dict[str, Any]:
    """Gemini's servers may write their names either way."""
    if "prompt_token_count" not in document and "total_token_count" not in document:
        return document
    return {_UNDERSCORED.sub(lambda found: found[1].upper(), name): n for name, n in document.items()}


def _at(document: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = document
    for key in path:
        if type(value) is not dict:
            return None
        value = value.get(key)
    return value


def _anthropic(told: Numbers) -> Iterator[str]:
    """Its input holds nothing cached, and there is no total."""
    if told.get("reasoning", 0) > told.get("output", 0):
        yield REASONING
    # A stream may tell the sum anew and not its parts, so parts that fall short mean nothing.
    if "written" in told and told.get("short", 0) + told.get("long", 0) > told["written"]:
        yield WRITTEN


def _openai(told: Numbers) -> Iterator[str]:
    read, write, reasoning = told.get("read", 0), told.get("written", 0), told.get("reasoning", 0)
    if "input" in told and read + write > told["input"]:
        yield CACHED
    if "input" not in told or "output" not in told:
        return
    whole = told["input"] + told["output"]
    # xAI counts reasoning beside the output, not within it; then the total says so.
    beside = reasoning > 0 and told.get("total") == whole + reasoning
    if reasoning > told["output"] and not beside:
        yield REASONING
    if "total" in told and told["total"] != whole and not beside:
        yield TOTAL


def _gemini(told: Numbers) -> Iterator[str]:
    """Thoughts and the prompts of built-in tools stand beside prompt and answer; what is cached is within."""
    if told.get("read", 0) > told.get("input", 0):
        yield CACHED
    parts = sum(told.get(name, 0) for name in ("input", "output", "reasoning", "tools"))
    if "total" in told and told["total"] != parts:
        yield TOTAL


Places = tuple[tuple[str, tuple[str, ...]], ...]
_DIALECTS: Final[dict[str, tuple[Places, Callable[[Numbers], Iterator[str]]]]] = {
    "anthropic": (
        (
            ("input", ("input_tokens",)),
            ("output", ("output_tokens",)),
            ("read", ("cache_read_input_tokens",)),
            ("written", ("cache_creation_input_tokens",)),
            ("short", ("cache_creation", "ephemeral_5m_input_tokens")),
            ("long", ("cache_creation", "ephemeral_1h_input_tokens")),
            ("reasoning", ("output_tokens_details", "thinking_tokens")),
        ),
        _anthropic,
    ),
    "openai-chat": (
        (
            ("input", ("prompt_tokens",)),
            ("output", ("completion_tokens",)),
            ("total", ("total_tokens",)),
            ("read", ("cached_tokens",)),  # Kimi
            ("read", ("prompt_cache_hit_tokens",)),  # DeepSeek
            ("read", ("prompt_tokens_details", "cached_tokens")),
            ("written", ("prompt_tokens_details", "cache_write_tokens")),
            ("reasoning", ("completion_tokens_details", "reasoning_tokens")),
        ),
        _openai,
    ),
    "openai-responses": (
        (
            ("input", ("input_tokens",)),
            ("output", ("output_tokens",)),
            ("total", ("total_tokens",)),
            ("read", ("input_tokens_details", "cached_tokens")),
            ("written", ("input_tokens_details", "cache_write_tokens")),
            ("reasoning", ("output_tokens_details", "reasoning_tokens")),
        ),
        _openai,
    ),
    "gemini": (
        (
            ("input", ("promptTokenCount",)),
            ("output", ("candidatesTokenCount",)),
            ("reasoning", ("thoughtsTokenCount",)),
            ("tools", ("toolUsePromptTokenCount",)),
            ("read", ("cachedContentTokenCount",)),
            ("total", ("totalTokenCount",)),
        ),
        _gemini,
    ),
}
