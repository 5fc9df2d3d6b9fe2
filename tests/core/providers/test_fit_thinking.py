"""Thinking in the only form a model takes."""

from typing import Any

import pytest

from tests.core.providers.asks import CLAUDE, assistant, features, fitted, pair, request, user
from tests.tiers import rows
from wireglot_core import translate_request
from wireglot_core.dialects.registry import DialectName
from wireglot_core.ir.content import (
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.request import (
    Effort,
    Thinking,
)
from wireglot_core.providers.limits import Limits
from wireglot_core.providers.spec import limits_for


@rows(
    ("thinking", "limits", "expected", "reported"),
    [
        (Thinking(effort="high"), Limits(thinking="budget"), Thinking("on", budget=24576), "thinking.effort"),
        (
            Thinking("on", budget=4000),
            Limits(thinking="effort"),
            Thinking(effort="medium"),
            "thinking.budget",
        ),
        (Thinking("on", budget=4000), Limits(thinking="level"), Thinking(effort="medium"), "thinking.budget"),
        (Thinking("on", budget=400), Limits(thinking="level"), Thinking(effort="minimal"), "thinking.budget"),
        (
            Thinking(effort="max"),
            Limits(thinking="level", efforts=("low", "high")),
            Thinking(effort="high"),
            "thinking.effort",
        ),
        (
            Thinking(effort="minimal"),
            Limits(thinking="effort", efforts=("low", "high", "max")),
            Thinking(effort="low"),
            "thinking.effort",
        ),
        (
            Thinking(effort="medium"),
            Limits(thinking="effort", efforts=("low", "high", "max")),
            Thinking(effort="low"),
            "thinking.effort",
        ),
        (Thinking("off"), Limits(thinking="effort"), Thinking(effort="none"), None),
        (Thinking("off"), Limits(thinking="adaptive"), Thinking("off"), None),
        (
            Thinking("off"),
            Limits(thinking="budget", thinking_off=False, budget_min=128),
            Thinking("on", budget=128),
            "thinking.mode",
        ),
        (
            Thinking(effort="high"),
            Limits(thinking="adaptive"),
            Thinking("auto", "high", display="summary"),
            "thinking.mode",
        ),
        (
            Thinking("on", display="omitted"),
            Limits(thinking="adaptive"),
            Thinking("auto", display="omitted"),
            None,
        ),
        (Thinking("auto"), Limits(thinking="adaptive"), Thinking("auto"), None),
        (Thinking(effort="high"), Limits(thinking="none"), Thinking(), "thinking.effort"),
        (Thinking("on", budget=9), Limits(thinking="fixed"), Thinking(), "thinking.budget"),
        (
            Thinking("on", budget=90_000),
            Limits(thinking="budget", budget_max=24576),
            Thinking("on", budget=24576),
            "thinking.budget",
        ),
        (Thinking(), Limits(thinking="level"), Thinking(), None),
    ],
)
def test_thinking_in_the_only_form_a_model_takes(
    thinking: Thinking, limits: Limits, expected: Thinking, reported: str | None
) -> None:
    """R-DA-14, R-DA-15, PAINS 23"""
    outcome = fitted(request(thinking=thinking), limits)
    assert outcome.request.thinking == expected
    assert [loss.feature for loss in outcome.losses] == ([reported] if reported else [])


@pytest.mark.parametrize("provider", ["anthropic", "bedrock"])
@pytest.mark.parametrize("source", ["anthropic", "openai-chat"])
def test_thinking_by_a_budget_stays_visible_where_it_becomes_adaptive(
    source: DialectName, provider: str
) -> None:
    """From Opus 4.7 on `display` is `omitted` by default: blocks come without their text."""
    budget = {"thinking": {"type": "enabled", "budget_tokens": 4000}}
    asked = {"model": "m", "max_tokens": 9000, "messages": [{"role": "user", "content": "hi"}], **budget}
    out = translate_request(
        asked, source=source, target="anthropic", provider=provider, model="claude-opus-5"
    )
    assert out.value["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert out.value["output_config"] == {"effort": "medium"}
    features = [loss.feature for loss in out.losses if loss.feature.startswith("thinking.")]
    assert (
        features == ["thinking.budget"]
        if source == "openai-chat"
        else ["thinking.budget", "thinking.display"]
    )


@pytest.mark.parametrize(
    ("source", "body"),
    [
        ("anthropic", {"max_tokens": 9, "thinking": {"type": "disabled"}, "inference_geo": "c"}),
        ("openai-chat", {"reasoning_effort": "none"}),
        ("openai-chat", {"thinking": {"type": "disabled"}}),
    ],
)
def test_kimis_switch_is_a_field_of_its_own(source: DialectName, body: dict[str, Any]) -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **body}
    out = translate_request(asked, source=source, target="openai-chat", provider="kimi", model="kimi-k2.6")
    assert out.value["thinking"] == {"type": "disabled"}
    assert "reasoning_effort" not in out.value
    assert [loss.feature for loss in out.losses] == (["unknown_field"] if "inference_geo" in body else [])


@pytest.mark.parametrize(
    ("effort", "allowed", "nearest"), [("xhigh", ("low", "high"), "high"), ("none", ("low",), "low")]
)
def test_an_effort_clamps_to_the_nearest(
    effort: Effort, allowed: tuple[Effort, ...], nearest: Effort
) -> None:
    """R-DA-14"""
    outcome = fitted(request(thinking=Thinking(effort=effort)), Limits(thinking="effort", efforts=allowed))
    assert outcome.request.thinking.effort == nearest


def test_thinking_is_off_where_the_answer_leaves_it_no_room() -> None:
    """budget_tokens >= max_tokens is a 400, and so is a budget below the least one."""
    limits = limits_for("anthropic", "claude-sonnet-4-5")
    outcome = fitted(request(thinking=Thinking(effort="low"), max_tokens=64), limits, "anthropic")
    assert outcome.request.thinking == Thinking("off")
    assert ("thinking.mode", "dropped") in features(outcome)
    outcome = fitted(request(thinking=Thinking(effort="high"), max_tokens=4096), limits, "anthropic")
    assert outcome.request.thinking.budget == 4095


def test_thinking_that_was_only_switched_on_gets_a_budget_where_there_must_be_one() -> None:
    limits = limits_for("anthropic", "claude-sonnet-4-5")
    outcome = fitted(request(thinking=Thinking("on"), max_tokens=32_000), limits, "anthropic")
    assert outcome.request.thinking == Thinking("on", budget=8192)
    assert features(outcome) == [("thinking.budget", "invented")]


def test_thinking_stops_for_a_tool_loop_whose_thinking_is_lost() -> None:
    limits = limits_for("anthropic", "claude-sonnet-4-5")
    thinking = Thinking("on", budget=2048)
    lost = request(user(Text("x")), *pair("a"), thinking=thinking, max_tokens=9000)
    outcome = fitted(lost, limits, "anthropic")
    assert outcome.request.thinking == Thinking("off")
    assert features(outcome) == [("thinking.mode", "dropped")]
    kept = request(
        user(Text("x")),
        assistant(Reasoning("t", CLAUDE), ToolCall("a", "f", "{}")),
        user(ToolResult("a")),
        thinking=thinking,
        max_tokens=9000,
    )
    assert fitted(kept, limits, "anthropic").request.thinking == thinking


MANUAL = {"type": "enabled", "budget_tokens": 4000}


@rows(
    ("provider", "model"),
    [
        ("openrouter", "anthropic/claude-sonnet-4.5"),
        ("openrouter", "x-ai/grok-4.7"),
        ("fireworks", "accounts/fireworks/models/glm-5p3"),
        ("ollama", "qwen3"),
        ("vllm", "m"),
        ("llama-cpp", "m"),
        ("kimi-anthropic", "kimi-k3"),
        ("zai", "glm-5.3"),
    ],
)
@rows("thinking", [MANUAL, {"type": "adaptive"}])
def test_a_wish_in_the_providers_own_dialect_goes_as_it_was_put(
    provider: str, model: str, thinking: dict[str, Any]
) -> None:
    asked = {"max_tokens": 9000, "messages": [{"role": "user", "content": "hi"}], "thinking": thinking}
    out = translate_request(asked, source="anthropic", target="anthropic", provider=provider, model=model)
    assert out.value["thinking"] == thinking
    assert "output_config" not in out.value
    assert out.losses == ()


def test_a_claude_of_a_reseller_thinks_as_its_vendor_says() -> None:
    asked = {"messages": [{"role": "user", "content": "hi"}], "reasoning_effort": "low", "max_tokens": 9000}
    for model, style in (
        ("anthropic/claude-sonnet-4.5", "enabled"),
        ("anthropic/claude-opus-4.8", "adaptive"),
    ):
        out = translate_request(
            asked, source="openai-chat", target="anthropic", provider="openrouter", model=model
        )
        assert out.value["thinking"]["type"] == style


def test_an_off_that_a_model_cannot_do_is_bent_in_any_dialect() -> None:
    asked = {
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 9,
        "thinking": {"type": "disabled"},
    }
    out = translate_request(
        asked, source="anthropic", target="anthropic", provider="kimi-anthropic", model="kimi-k2.7-code"
    )
    assert "thinking" not in out.value
    assert [loss.feature for loss in out.losses] == ["thinking.mode"]


def test_deepseeks_own_switch_stays() -> None:
    for thinking in ({"type": "disabled"}, {"type": "enabled"}):
        asked = {"messages": [{"role": "user", "content": "hi"}], "thinking": thinking}
        out = translate_request(
            asked, source="openai-chat", target="openai-chat", provider="deepseek", model="deepseek-flash"
        )
        assert (out.value["thinking"], out.losses) == (thinking, ())


@pytest.mark.parametrize(
    "wish",
    [
        {"reasoning": {"effort": "high"}},
        {"reasoning": {"enabled": True, "exclude": True}},
        {"thinking": {"type": "enabled"}},
        {"reasoning_effort": "high"},
    ],
)
def test_nothing_is_left_of_a_wish_that_was_taken_out(wish: dict[str, Any]) -> None:
    asked = {"messages": [{"role": "user", "content": "hi"}], **wish}
    out = translate_request(asked, source="openai-chat", target="openai-chat", provider="mistral", model="m")
    assert not {"reasoning", "thinking", "reasoning_effort"} & out.value.keys()
    assert out.losses


def test_a_model_that_always_thinks_loses_nothing_when_it_is_asked_to() -> None:
    outcome = fitted(request(thinking=Thinking("on")), Limits(thinking="fixed"))
    assert (outcome.request.thinking, outcome.losses) == (Thinking(), ())


def test_who_wants_to_see_thoughts_asks_a_claude_to_think():
    """[X11] Gemini thinks of itself: `includeThoughts` alone shows it, and must not be lost on the way."""
    body = {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "generationConfig": {"maxOutputTokens": 9000, "thinkingConfig": {"includeThoughts": True}},
    }
    crossed = translate_request(body, source="gemini", target="anthropic", model="claude-opus-4-6")
    assert crossed.value["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert [(loss.feature, loss.action) for loss in crossed.losses] == [("thinking.mode", "invented")]


@pytest.mark.parametrize(
    "flag",
    [
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"chat_template_kwargs": {"thinking": False}},
        {"chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "high"},
        {"enable_thinking": False},
    ],
)
def test_thinking_that_a_template_switches_off_is_off_everywhere(flag: dict[str, Any]) -> None:
    """vLLM, SGLang, llama.cpp and Qwen have no other switch."""
    asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **flag}
    models: dict[DialectName, str] = {
        "anthropic": "claude-sonnet-4-5",
        "openai-responses": "gpt-5.1",
        "gemini": "gemini-2.5-flash",
    }
    sent = {
        target: translate_request(asked, source="openai-chat", target=target, model=model).value
        for target, model in models.items()
    }
    assert sent["anthropic"]["thinking"] == {"type": "disabled"}
    assert sent["openai-responses"]["reasoning"] == {"effort": "none"}
    assert sent["gemini"]["generationConfig"]["thinkingConfig"] == {"thinkingBudget": 0}
    for provider in (None, "vllm", "qwen", "kimi"):
        own = translate_request(asked, source="openai-chat", target="openai-chat", provider=provider)
        assert {key: own.value[key] for key in flag} == flag
        assert not own.losses


def test_what_stands_beside_a_templates_switch_is_a_loss() -> None:
    flags = {"enable_thinking": True, "add_vision_id": True}
    asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "chat_template_kwargs": flags}
    out = translate_request(asked, source="openai-chat", target="anthropic", model="claude-sonnet-4-5")
    assert out.value["thinking"]["type"] == "enabled"
    assert ("$.chat_template_kwargs", "unknown_field") in {(loss.path, loss.feature) for loss in out.losses}


@rows(
    ("target", "provider", "model"),
    [
        ("gemini", "gemini", "gemini-3-pro-preview"),
        ("gemini", None, None),
        ("openai-responses", "openai", "gpt-5.1"),
        ("openai-responses", None, None),
        ("openai-chat", "openai", "gpt-5.1"),
        ("openai-chat", None, None),
    ],
)
def test_adaptive_thinking_that_the_effort_says_is_harmless(
    target: DialectName, provider: str | None, model: str | None
) -> None:
    asked = {
        "model": "m",
        "max_tokens": 9000,
        "messages": [{"role": "user", "content": "hi"}],
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
    }
    out = translate_request(asked, source="anthropic", target=target, provider=provider, model=model)
    (loss,) = (loss for loss in out.losses if loss.feature == "thinking.mode")
    assert (loss.action, loss.grade) == ("emulated", "harmless")


def test_thinking_without_an_effort_is_harmless_where_the_model_thinks_by_default() -> None:
    asked = request(thinking=Thinking("auto"))
    for default, grade in ((True, "harmless"), (False, "degraded")):
        limits = Limits(thinking="effort", efforts=("low", "high"), thinks_by_default=default)
        (loss,) = fitted(asked, limits).losses
        assert (loss.feature, loss.grade) == ("thinking.mode", grade)
