"""What a dialect shows of the thinking by default is requested of every target, or its absence is reported."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from tests.tiers import rows
from wireglot_core import translate_request
from wireglot_core.dialects.registry import DialectName
from wireglot_core.ir.loss import Feature

Body = dict[str, Any]
HELLO = [{"role": "user", "content": "hello"}]
SHOWN: dict[DialectName, list[Body]] = {
    "ollama": [{"model": "m", "messages": HELLO, "think": think} for think in (True, "low", "high")],
    "anthropic": [
        {
            "model": "m",
            "max_tokens": 9000,
            "messages": HELLO,
            "thinking": {"type": "enabled", "budget_tokens": 4000},
        }
    ],
    "openai-chat": [
        {"model": "m", "messages": HELLO, "reasoning_effort": "high"},
        {"model": "m", "messages": HELLO, "thinking": {"type": "enabled"}},
        {"model": "m", "messages": HELLO, "reasoning": {"enabled": True}},
        {"model": "m", "messages": HELLO, "reasoning": {"max_tokens": 4000}},
        {"model": "m", "messages": HELLO, "enable_thinking": True},
    ],
}
"""Requests whose answers show the thinking although they do not say so. Claude's adaptive thinking, and thinking of
Responses, Gemini and Interactions, is shown only on request."""
HIDDEN: dict[DialectName, list[Body]] = {
    "ollama": [{"model": "m", "messages": HELLO}, {"model": "m", "messages": HELLO, "think": False}],
    "anthropic": [
        {"model": "m", "max_tokens": 9000, "messages": HELLO},
        {"model": "m", "max_tokens": 9000, "messages": HELLO, "thinking": {"type": "disabled"}},
        {
            "model": "m",
            "max_tokens": 9000,
            "messages": HELLO,
            "thinking": {"type": "enabled", "budget_tokens": 4000, "display": "omitted"},
        },
    ],
    "openai-chat": [
        {"model": "m", "messages": HELLO},
        {"model": "m", "messages": HELLO, "reasoning_effort": "none"},
        {"model": "m", "messages": HELLO, "reasoning": {"effort": "high", "exclude": True}},
    ],
    "openai-responses": [{"model": "m", "input": "hello", "reasoning": {"effort": "high"}}],
    "gemini": [
        {
            "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
            "generationConfig": {"thinkingConfig": {"thinkingLevel": "HIGH"}},
        }
    ],
    "gemini-interactions": [
        {"model": "m", "input": "hello", "generation_config": {"thinking_level": "high"}}
    ],
}
MODELS: dict[DialectName, list[tuple[str, str | None]]] = {
    "anthropic": [("claude-opus-4-8", None), ("claude-sonnet-4-5", None), ("claude-3-5-haiku", None)],
    "openai-chat": [
        ("gpt-5", None),
        ("gpt-4o", None),
        ("kimi-k2-thinking", "kimi"),
        ("m", "vllm"),
        ("m", "openrouter"),
    ],
    "openai-responses": [("gpt-5", None), ("gpt-4o", None)],
    "gemini": [("gemini-3-pro", None), ("gemini-2.5-flash", None), ("gemini-2.0-flash", None)],
    "gemini-interactions": [("gemini-3-pro", None)],
    "ollama": [("qwen3", None)],
}
TARGETS = tuple(MODELS)


def is_shown(target: DialectName, body: Body, model: str) -> bool:
    """Whether a request asks for visible thinking, read on the wire."""
    match target:
        case "anthropic":
            thinking = body.get("thinking", {})
            shown = thinking.get("display", "summarized" if thinking.get("type") == "enabled" else "omitted")
            return thinking.get("type") in ("enabled", "adaptive") and shown == "summarized"
        case "openai-chat":  # the servers of reasoning models show what they have, except OpenAI's
            return not model.startswith("gpt") and body.get("reasoning", {}).get("exclude") is not True
        case "openai-responses":
            return body.get("reasoning", {}).get("summary") is not None
        case "gemini":
            return body.get("generationConfig", {}).get("thinkingConfig", {}).get("includeThoughts") is True
        case "gemini-interactions":
            return bool(body.get("generation_config", {}).get("thinking_summaries") == "auto")
        case _:
            return body.get("think") not in (None, False)


def sent(source: DialectName, target: DialectName, body: Body) -> Iterator[tuple[str, bool, list[Feature]]]:
    for model, provider in MODELS[target]:
        rendered = translate_request(body, source=source, target=target, model=model, provider=provider)
        lost = [loss.feature for loss in rendered.losses if loss.feature.startswith("thinking.")]
        yield model, is_shown(target, rendered.value, model), lost


@rows(("source", "target"), [pair for pair in product(SHOWN, TARGETS) if pair[0] != pair[1]])
def test_what_is_shown_by_default_is_requested_or_reported(source: DialectName, target: DialectName) -> None:
    for body in SHOWN[source]:
        for model, is_requested, lost in sent(source, target, body):
            assert is_requested or lost, (body, model)


@rows(("source", "target"), [pair for pair in product(HIDDEN, TARGETS) if pair[0] != pair[1]])
def test_what_is_not_shown_is_not_requested(source: DialectName, target: DialectName) -> None:
    if target in ("openai-chat", "ollama"):
        return  # which have no switch
    for body in HIDDEN[source]:
        for model, is_requested, lost in sent(source, target, body):
            assert not is_requested or lost, (body, model)


@rows("target", [name for name in TARGETS if name not in ("anthropic", "openai-chat", "ollama")])
def test_it_is_requested_wherever_there_is_a_switch(target: DialectName) -> None:
    for source, bodies in SHOWN.items():
        for body in bodies:
            for model, is_requested, _ in sent(source, target, body):
                if model not in ("gpt-4o", "gemini-2.0-flash"):  # which do not think
                    assert is_requested, (source, body, model)
