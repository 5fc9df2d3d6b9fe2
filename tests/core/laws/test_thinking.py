"""Thinking never becomes more than the client asked for, and neither does the service tier: for every model and
endpoint of the catalog, every dialect of clients and everything they can ask for. Read on the wire."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.tiers import WHOLE, rows
from wireglot_core import translate_request
from wireglot_core.dialects.registry import dialect_name
from wireglot_core.ir.request import EFFORTS
from wireglot_core.providers.limits import Limits
from wireglot_core.providers.spec import limits_of, may_reason, names, provider

HELLO = [{"role": "user", "content": "hello"}]
CLIENTS: dict[str, dict[str, Any]] = {
    "anthropic": {"model": "m", "max_tokens": 100_000, "messages": HELLO},
    "openai-chat": {"model": "m", "messages": HELLO},
    "openai-responses": {"model": "m", "input": "hello"},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]},
    "ollama": {"model": "m", "messages": HELLO},
}
BUDGETS = (1_024, 4_000, 8_192, 10_000, 31_999, 60_000)


class Amount(NamedTuple):
    """Off, an effort, a number of tokens, or nothing that says how much."""

    effort: str | None = None
    budget: int | None = None


OFF = Amount("none")


def asks(dialect: str) -> Iterator[tuple[Amount, dict[str, Any]]]:
    """How the clients of a dialect ask for each amount."""
    match dialect:
        case "anthropic":
            yield OFF, {"thinking": {"type": "disabled"}}
            yield OFF, {"thinking": {"type": "between_tools"}}
            for effort in EFFORTS[2:]:
                adaptive = {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
                yield Amount(effort), adaptive
            for budget in BUDGETS:
                yield Amount(budget=budget), {"thinking": {"type": "enabled", "budget_tokens": budget}}
        case "openai-chat":
            yield OFF, {"thinking": {"type": "disabled"}}
            yield OFF, {"reasoning": {"enabled": False}}
            yield OFF, {"enable_thinking": False}
            for effort in EFFORTS:
                yield Amount(effort), {"reasoning_effort": effort}
            yield Amount(budget=4_000), {"reasoning": {"max_tokens": 4_000}}
        case "openai-responses":
            for effort in EFFORTS:
                yield Amount(effort), {"reasoning": {"effort": effort}}
                yield Amount(effort), {"reasoning": {"effort": effort, "summary": "auto"}}
        case "gemini-interactions":
            for effort in EFFORTS[1:6]:
                yield Amount(effort), {"generation_config": {"thinking_level": effort}}
                shown = {"thinking_level": effort, "thinking_summaries": "auto"}
                yield Amount(effort), {"generation_config": shown}
        case "ollama":
            yield OFF, {"think": False}
            for effort in ("low", "medium", "high", "max"):
                yield Amount(effort), {"think": effort}
        case _:
            yield OFF, {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}
            for effort in EFFORTS[1:6]:
                config = {"thinkingLevel": effort.upper(), "includeThoughts": True}
                yield Amount(effort), {"generationConfig": {"thinkingConfig": config}}
            for budget in (100, 600, *BUDGETS):
                config = {"thinkingBudget": budget}
                yield Amount(budget=budget), {"generationConfig": {"thinkingConfig": config}}


def sent(dialect: str, body: dict[str, Any]) -> Amount:
    """How much a request asks for."""
    match dialect:
        case "anthropic":
            thinking = body.get("thinking", {})
            if thinking.get("type") in ("disabled", "between_tools"):
                return OFF
            return Amount(body.get("output_config", {}).get("effort"), thinking.get("budget_tokens"))
        case "openai-chat":
            thinking, reasoning = body.get("thinking", {}), body.get("reasoning", {})
            if thinking.get("type") == "disabled" or body.get("enable_thinking") is False:
                return OFF
            if reasoning.get("enabled") is False:
                return OFF
            effort = body.get("reasoning_effort", reasoning.get("effort"))
            return Amount(effort, thinking.get("budget_tokens", reasoning.get("max_tokens")))
        case "openai-responses":
            return Amount(body.get("reasoning", {}).get("effort"))
        case "gemini-interactions":
            return Amount(body.get("generation_config", {}).get("thinking_level"))
        case "ollama":
            think = body.get("think")
            return OFF if think is False else Amount(think if isinstance(think, str) else None)
        case _:
            config = body.get("request", body).get("generationConfig", {}).get("thinkingConfig", {})
            if config.get("thinkingBudget") == 0:
                return OFF
            level = config.get("thinkingLevel")
            return Amount(level.lower() if level else None, config.get("thinkingBudget"))


TOKENS = {"none": 0, "minimal": 512, "low": 1_999, "medium": 8_192, "high": 24_576, "xhigh": 47_999}
"""The most that each effort stands for."""


def tokens(amount: Amount) -> float:
    if amount.effort is not None:
        return TOKENS.get(amount.effort, float("inf"))
    assert amount.budget is not None
    return amount.budget


def is_more(got: Amount, asked: Amount) -> bool:
    if got.effort is not None and asked.budget is not None:  # the step below the one of the budget is enough
        steps = [effort for effort in EFFORTS if tokens(Amount(effort)) < asked.budget]
        return EFFORTS.index(got.effort) > len(steps)
    return tokens(got) > tokens(asked)


def is_lowest(got: Amount, limits: Limits) -> bool:
    if got.budget is not None:
        return got.budget == limits.budget_min
    return got.effort == min((step for step in limits.efforts if step != "none"), key=EFFORTS.index)


def can_be_off(limits: Limits) -> bool:
    if limits.thinking in ("effort", "level"):
        return "none" in limits.efforts or bool(limits.thinking_switch and limits.thinking_off)
    if limits.thinking == "adaptive" and limits.between_tools:
        return True
    return limits.thinking in ("adaptive", "budget", "toggle") and limits.thinking_off


def entries() -> Iterator[tuple[str, str, str]]:
    for name in names():
        spec = provider(name)
        known = {entry.match.rstrip("*").replace("[2-5]", "4") for entry in spec.models} or {"some-model"}
        for dialect in spec.dialects:
            if name != "demo":
                yield from ((name, dialect, model) for model in sorted(known))


ENDPOINTS = sorted({(name, dialect) for name, dialect, _ in entries()})


def models(name: str, dialect: str) -> list[str]:
    """In `make full` all. What is sent depends on a model's limits: else the first one of each that has others."""
    every = [model for of, by, model in entries() if (of, by) == (name, dialect)]
    if WHOLE:
        return every
    by_limits: dict[str, str] = {}
    for model in every:
        kind = f"{limits_of(provider(name), dialect_name(dialect), model)} {may_reason(dialect, model)}"
        by_limits.setdefault(kind, model)
    return list(by_limits.values())


@pytest.mark.sampled("dialect", each=8)
@rows(("name", "dialect"), ENDPOINTS)
def test_thinking_never_becomes_more_than_asked(name: str, dialect: Any) -> None:
    broken: list[Any] = []
    for model in models(name, dialect):
        for client, body in CLIENTS.items():
            if client == dialect:
                continue
            limits = limits_of(provider(name), dialect, model)
            for asked, words in asks(client):
                rendered = translate_request(
                    {**body, **words},
                    source=dialect_name(client),
                    target=dialect,
                    model=model,
                    provider=name,
                )
                got = sent(dialect, rendered.value)
                reported = any(loss.feature.startswith("thinking") for loss in rendered.losses)
                if wrong := verdict(asked, got, limits, reported):
                    broken.append((model, client, words, got, wrong))
    assert broken == []


def verdict(asked: Amount, got: Amount, limits: Limits, reported: bool) -> str:
    if limits.thinking == "none":
        return "" if got in (Amount(), OFF) else "a model that does not think was asked to"
    if asked == OFF and can_be_off(limits):
        return "" if got == OFF else "it was not switched off"
    if got == Amount():
        return "" if reported else "nothing was sent, and nothing reported"
    if got == OFF:
        return "it was switched off"
    if not is_more(got, asked):
        return ""
    if not is_lowest(got, limits):
        return "it is more than asked, and not the least"
    return "" if reported else "it is more than asked, and not reported"


NAMED = {"default": "standard", "standard_only": "standard", "unspecified": "auto"}


def tier(body: dict[str, Any]) -> str | None:
    body = body.get("request", body)
    raw = "fast" if body.get("speed") == "fast" else body.get("service_tier", body.get("serviceTier"))
    return None if raw is None else NAMED.get(raw, raw)


TIER_ASKS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [{"service_tier": "auto"}, {"service_tier": "standard_only"}, {"speed": "fast"}],
    "openai-chat": [{"service_tier": name} for name in ("auto", "default", "flex", "priority", "fast")],
    "openai-responses": [{"service_tier": name} for name in ("auto", "default", "flex", "priority", "fast")],
    "gemini": [{"serviceTier": name} for name in ("unspecified", "flex", "standard", "priority")],
    "ollama": [],
}


@pytest.mark.sampled("dialect", each=8)
@rows(("name", "dialect"), ENDPOINTS)
def test_a_service_tier_is_the_one_asked_for_or_none(name: str, dialect: Any) -> None:
    broken: list[Any] = []
    for model in models(name, dialect):
        tiers = limits_of(provider(name), dialect, model).service_tiers
        for client, body in CLIENTS.items():
            for words in TIER_ASKS[client]:
                if client == dialect:
                    continue
                rendered = translate_request(
                    {**body, **words},
                    source=dialect_name(client),
                    target=dialect,
                    model=model,
                    provider=name,
                )
                asked, got = tier(words), tier(rendered.value)
                reported = any(loss.feature == "service_tier" for loss in rendered.losses)
                if got is None and not reported:
                    broken.append((model, client, words, "dropped, and not reported"))
                elif got is not None and (got != asked or (tiers is not None and got not in tiers)):
                    broken.append((model, client, words, rendered.value))
    assert broken == []


@rows(
    ("name", "dialect", "model", "client", "words", "expected"),
    [
        # Off, and the least there is
        ("gemini", "gemini", "gemini-3-pro-preview", "anthropic", {"thinking": {"type": "disabled"}}, "low"),
        ("gemini", "gemini", "gemini-3.1-pro-preview", "openai-chat", {"reasoning_effort": "minimal"}, "low"),
        ("vertex", "gemini", "gemini-4-argon", "openai-responses", {"reasoning": {"effort": "none"}}, "low"),
        ("gemini", "gemini", "gemini-3.5-flash", "anthropic", {"thinking": {"type": "disabled"}}, "minimal"),
        ("gemini", "gemini", "gemini-3.8-flash", "anthropic", {"thinking": {"type": "disabled"}}, "low"),
        ("code-assist", "code-assist", "gemini-3.1-pro-preview", "openai-chat", {"reasoning_effort": "none"}, "low"),
        ("deepseek", "openai-responses", "deepseek-flash", "openai-responses", {"reasoning": {"effort": "none"}}, "none"),
        ("deepseek", "openai-chat", "deepseek-flash", "openai-responses", {"reasoning": {"effort": "none"}}, "none"),
        ("deepseek", "anthropic", "deepseek-flash", "openai-responses", {"reasoning": {"effort": "none"}}, "none"),
        ("deepseek", "openai-chat", "deepseek-flash", "openai-chat", {"reasoning_effort": "none"}, "none"),
        ("kimi", "openai-chat", "kimi-k3", "anthropic", {"thinking": {"type": "disabled"}}, "low"),
        ("openai", "openai-responses", "gpt-5", "anthropic", {"thinking": {"type": "disabled"}}, "minimal"),
        ("openai", "openai-responses", "gpt-5.1", "anthropic", {"thinking": {"type": "disabled"}}, "none"),
        ("openai", "openai-responses", "gpt-5.4", "openai-chat", {"reasoning_effort": "minimal"}, "low"),
        ("anthropic", "anthropic", "claude-sonnet-5-5", "openai-chat", {"reasoning_effort": "none"}, "none"),
        ("anthropic", "anthropic", "claude-opus-5-5", "openai-chat", {"reasoning_effort": "none"}, "low"),
        ("qwen", "openai-chat", "qwen3.8-max", "anthropic", {"thinking": {"type": "disabled"}}, "none"),
        ("zai", "openai-chat", "glm-5.3", "anthropic", {"thinking": {"type": "disabled"}}, "low"),
        ("zai", "openai-chat", "glm-5", "anthropic", {"thinking": {"type": "disabled"}}, "none"),
        ("groq", "openai-chat", "qwen/qwen3-32b", "anthropic", {"thinking": {"type": "disabled"}}, "none"),
        ("minimax", "anthropic", "MiniMax-M3", "openai-chat", {"reasoning_effort": "none"}, "none"),
        ("together", "openai-chat", "zai-org/GLM-5.2", "anthropic", {"thinking": {"type": "disabled"}}, "none"),
        # In between: the one below
        ("kimi", "openai-chat", "kimi-k3", "openai-responses", {"reasoning": {"effort": "medium"}}, "low"),
        ("deepseek", "openai-chat", "deepseek-flash", "openai-responses", {"reasoning": {"effort": "xhigh"}}, "high"),
        ("gemini", "gemini", "gemini-3-pro-preview", "openai-chat", {"reasoning_effort": "medium"}, "low"),
        ("anthropic", "anthropic", "claude-opus-4-6", "openai-chat", {"reasoning_effort": "xhigh"}, "high"),
        # The highest
        ("gemini", "gemini", "gemini-4-hydrogen", "openai-responses", {"reasoning": {"effort": "xhigh"}}, "xhigh"),
        ("gemini", "gemini", "gemini-4-hydrogen", "openai-responses", {"reasoning": {"effort": "max"}}, "xhigh"),
        ("gemini", "gemini", "gemini-4-argon", "openai-responses", {"reasoning": {"effort": "max"}}, "high"),
    ],
)  # fmt: skip
def test_the_steps_of_a_family(
    name: str, dialect: Any, model: str, client: Any, words: dict[str, Any], expected: str
) -> None:
    rendered = translate_request(
        {**CLIENTS[client], **words}, source=client, target=dialect, model=model, provider=name
    )
    assert sent(dialect, rendered.value) == Amount(expected)


def test_geminis_xhigh_is_xhigh_everywhere() -> None:
    body = {**CLIENTS["gemini"], "generationConfig": {"thinkingConfig": {"thinkingLevel": "XHIGH"}}}
    for dialect, model in (
        ("anthropic", "claude-opus-5-5"),
        ("openai-responses", "gpt-6-sol"),
        ("openai-chat", "gpt-6-sol"),
    ):
        rendered = translate_request(body, source="gemini", target=dialect_name(dialect), model=model)
        assert sent(dialect, rendered.value) == Amount("xhigh")


def test_fast_mode_is_one_tier_in_both_dialects() -> None:
    fast = {**CLIENTS["anthropic"], "speed": "fast"}
    for words in ({}, {"service_tier": "auto"}):
        rendered = translate_request({**fast, **words}, source="anthropic", target="openai-responses")
        assert rendered.value["service_tier"] == "fast"
        same = translate_request({**fast, **words}, source="anthropic", target="anthropic")
        assert (same.value["speed"], same.value.get("service_tier")) == ("fast", words.get("service_tier"))
    body = {**CLIENTS["openai-responses"], "service_tier": "fast"}
    rendered = translate_request(body, source="openai-responses", target="anthropic", model="claude-opus-5-5")
    assert rendered.value["speed"] == "fast"
    rendered = translate_request(
        body, source="openai-responses", target="anthropic", model="claude-haiku-5-5"
    )
    assert "speed" not in rendered.value
    assert "service_tier" in [loss.feature for loss in rendered.losses]
