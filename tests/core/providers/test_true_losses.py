"""What a loss says is what happened: its place, its kind, and that it happened at all."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tiers import rows
from wireglot_core import translate_request
from wireglot_core.dialects.registry import DialectName
from wireglot_core.ir.loss import Loss

_PROVIDERS: dict[DialectName, tuple[str, str]] = {
    "anthropic": ("anthropic", "claude-opus-4-6"),
    "openai-chat": ("kimi", "kimi-k2.6"),
    "openai-responses": ("openai", "gpt-5.1"),
    "gemini": ("gemini", "gemini-3-pro-preview"),
}


def _sent(
    body: dict[str, Any], source: DialectName, target: DialectName
) -> tuple[dict[str, Any], tuple[Loss, ...]]:
    provider, model = _PROVIDERS[target]
    out = translate_request(body, source=source, target=target, provider=provider, model=model)
    return out.value, out.losses


def _others(source: DialectName) -> list[DialectName]:
    return [name for name in _PROVIDERS if name != source]


@pytest.mark.parametrize("target", _others("openai-responses"))
def test_an_item_that_is_left_out_is_not_reported_as_moved(target: DialectName) -> None:
    """A configuration update is dropped: it has no place that could change."""
    update = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]
    asked = {"model": "m", "input": [*turns, update, {"role": "user", "content": "go"}]}
    _, losses = _sent(asked, "openai-responses", target)
    assert [(loss.feature, loss.action) for loss in losses if loss.path == "$.input[2]"] == [
        ("foreign_part", "dropped")
    ]


def test_a_system_text_after_a_left_out_item_is_placed_by_the_turn_before_both() -> None:
    """Anthropic takes a system message after a user turn only."""
    update = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]
    rule = {"role": "developer", "content": "Be brief."}
    asked = {"model": "m", "input": [*turns, update, rule, {"role": "user", "content": "go"}]}
    body, losses = _sent(asked, "openai-responses", "anthropic")
    assert [turn["role"] for turn in body["messages"]] != ["user", "assistant", "system", "user"]
    assert "system.position" in [loss.feature for loss in losses if loss.path == "$.input[3]"]


@pytest.mark.parametrize("target", _others("openai-responses"))
def test_no_user_turn_is_put_before_an_answer_that_is_left_out(target: DialectName) -> None:
    listed = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "files", "tools": []}
    asked = {"model": "m", "input": [listed, {"role": "user", "content": "go"}]}
    body, losses = _sent(asked, "openai-responses", target)
    assert "message.role" not in [loss.feature for loss in losses]
    assert "Begin." not in str(body)


@pytest.mark.parametrize("target", _others("openai-responses"))
def test_a_mode_of_reasoning_is_reported_where_it_is(target: DialectName) -> None:
    asked = {"model": "m", "input": "hi", "reasoning": {"effort": "high", "mode": "pro"}}
    _, losses = _sent(asked, "openai-responses", target)
    (loss,) = (loss for loss in losses if loss.feature == "unknown_field")
    assert (loss.path, loss.detail) == ("$.reasoning.mode", "openai-responses only")


@pytest.mark.parametrize("target", _others("anthropic"))
def test_thinking_between_tools_is_read_as_off(target: DialectName) -> None:
    """Off, with short notes on progress: the notes alone have no place elsewhere."""
    hello = [{"role": "user", "content": "hi"}]
    asked = {"model": "m", "max_tokens": 9, "messages": hello, "thinking": {"type": "between_tools"}}
    _, losses = _sent(asked, "anthropic", target)
    assert "unknown_field" not in [loss.feature for loss in losses]
    (notes,) = (loss for loss in losses if loss.feature == "thinking.display")
    assert (notes.path, notes.action, notes.grade) == ("$.thinking.type", "dropped", "harmless")


_CALLING = {"mode": "ANY", "allowedFunctionNames": ["f"]}


def _gemini(config: dict[str, Any]) -> dict[str, Any]:
    return {
        "contents": [{"role": "user", "parts": [{"text": "go"}]}],
        "tools": [{"functionDeclarations": [{"name": "f"}, {"name": "g"}]}],
        "toolConfig": config,
    }


@pytest.mark.parametrize("target", _others("gemini"))
def test_only_the_unknown_field_of_a_tool_config_is_geminis_own(target: DialectName) -> None:
    config = {
        "functionCallingConfig": {**_CALLING, "streamFunctionCallArguments": True},
        "retrievalConfig": {"languageCode": "de"},
    }
    _, losses = _sent(_gemini(config), "gemini", target)
    assert sorted(loss.path for loss in losses if loss.detail == "gemini only") == [
        "$.toolConfig.functionCallingConfig.streamFunctionCallArguments",
        "$.toolConfig.retrievalConfig",
    ]


@pytest.mark.parametrize("target", _others("gemini"))
def test_an_empty_list_of_names_in_a_tool_config_is_no_loss(target: DialectName) -> None:
    config = {"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": []}}
    _, losses = _sent(_gemini(config), "gemini", target)
    assert [loss for loss in losses if loss.path.startswith("$.toolConfig")] == []


@pytest.mark.parametrize("target", _others("gemini"))
def test_checked_arguments_are_a_field_of_geminis_and_not_the_choice(target: DialectName) -> None:
    """VALIDATED is AUTO with checked arguments: the choice itself crosses."""
    _, losses = _sent(_gemini({"functionCallingConfig": {"mode": "VALIDATED"}}), "gemini", target)
    (loss,) = (loss for loss in losses if loss.path.startswith("$.toolConfig"))
    assert (loss.feature, loss.grade) == ("unknown_field", "degraded")


@rows(
    "config",
    [
        {},
        {"functionCallingConfig": {}},
        {"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": []}},
        {"functionCallingConfig": {**_CALLING, "streamFunctionCallArguments": True}},
        {"functionCallingConfig": {"new": 1}, "retrievalConfig": {"languageCode": "de"}},
        {"functionCallingConfig": None},
    ],
)
def test_a_tool_config_comes_back_to_gemini_unchanged(config: dict[str, Any]) -> None:
    body = _gemini(config)
    sent = translate_request(body, source="gemini", target="gemini", provider="gemini")
    assert sent.value["toolConfig"] == config


def test_a_field_of_reasoning_is_reported_at_its_item() -> None:
    thought = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "short"}],
        "content": [{"type": "reasoning_text", "text": "long"}],
        "encrypted_content": "state",
    }
    turns = [{"role": "user", "content": "hi"}, thought, {"role": "assistant", "content": "yes?"}]
    asked = {"model": "m", "input": [*turns, {"role": "user", "content": "go"}]}
    _, losses = _sent(asked, "openai-responses", "openai-chat")
    assert "$.input[1].content" in [loss.path for loss in losses]
