"""The losses of an agent's ordinary turn: few are degraded, and those can change the answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tiers import rows
from wireglot_core import translate_request, translate_response
from wireglot_core.dialects.registry import DialectName, dialect_name
from wireglot_core.ir.loss import Loss

_EPHEMERAL = {"type": "ephemeral", "ttl": "1h"}

_TOOLS: list[dict[str, Any]] = [
    {
        "name": "Bash",
        "description": "Run a shell command.",
        "input_schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command"},
                "timeout": {"type": "number", "description": "Milliseconds, at most 600000"},
                "run_in_background": {"type": "boolean", "default": False},
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    },
    {
        "name": "AskUserQuestion",
        "description": "Ask the user.",
        "input_schema": {
            "type": "object",
            "properties": {
                "questions": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 4,
                    "items": {
                        "type": "object",
                        "properties": {
                            "question": {"type": "string"},
                            "header": {"type": "string", "maxLength": 12},
                            "multiSelect": {"type": "boolean", "default": False},
                        },
                        "required": ["question", "header", "multiSelect"],
                        "additionalProperties": False,
                    },
                },
            },
            "required": ["questions"],
            "additionalProperties": False,
        },
    },
    {
        "name": "WebFetch",
        "description": "Fetch a page.",
        "input_schema": {
            "type": "object",
            "properties": {
                "url": {"type": "string", "format": "uri"},
                "prompt": {"type": "string", "minLength": 1},
                "offset": {"type": "integer", "minimum": 0, "maximum": 9007199254740991},
                "limit": {"type": "integer", "exclusiveMinimum": 0},
            },
            "required": ["url", "prompt"],
        },
    },
    {
        "name": "TodoWrite",
        "description": "Write the list.",
        "input_schema": {
            "type": "object",
            "properties": {
                "todos": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "content": {"type": "string", "minLength": 1},
                            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                        },
                        "required": ["content", "status"],
                    },
                },
                "metadata": {
                    "type": "object",
                    "propertyNames": {"type": "string"},
                    "additionalProperties": {},
                },
            },
            "required": ["todos"],
        },
    },
    {
        "name": "NotebookEdit",
        "description": "Edit a notebook.",
        "defer_loading": True,
        "input_schema": {
            "type": "object",
            "properties": {"cell": {"type": "string", "pattern": "^[a-z]+$"}},
            "required": ["cell"],
        },
    },
]


def _turn() -> dict[str, Any]:
    """What Claude Code 2.1 sends in its second request of a turn, shortened."""
    return {
        "model": "claude-sonnet-4-6",
        "max_tokens": 32_000,
        "stream": True,
        "system": [
            {"type": "text", "text": "You are Claude Code."},
            {"type": "text", "text": "Rules.", "cache_control": _EPHEMERAL},
            {"type": "text", "text": "Surroundings.", "cache_control": _EPHEMERAL},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "List the files."}]},
            {"role": "system", "content": "The following deferred tools are available: NotebookEdit."},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "toolu_01", "name": "Bash", "input": {"command": "ls"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_01",
                        "content": "a.txt",
                        "is_error": False,
                        "cache_control": _EPHEMERAL,
                    }
                ],
            },
        ],
        "tools": _TOOLS,
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "metadata": {"user_id": "user_1_account__session_2"},
        "speed": "standard",
    }


_UPSTREAMS: dict[str, tuple[DialectName, str]] = {
    "gemini": ("gemini", "gemini-3-pro-preview"),
    "openai": ("openai-responses", "gpt-5.1"),
    "kimi": ("openai-chat", "kimi-k2.6"),
}


def _losses(provider: str, body: dict[str, Any]) -> tuple[Loss, ...]:
    target, model = _UPSTREAMS[provider]
    return translate_request(body, source="anthropic", target=target, model=model, provider=provider).losses


@pytest.mark.parametrize("provider", _UPSTREAMS)
def test_a_turn_of_claude_code_degrades_two_features_at_most(provider: str) -> None:
    losses = _losses(provider, _turn())
    assert [loss for loss in losses if loss.grade == "serious"] == []
    degraded = {loss.feature for loss in losses if loss.grade == "degraded"}
    # An instruction that moves, and a call of another model that the client brings without its state.
    assert degraded <= {"system.position", "reasoning.signature"}


@pytest.mark.parametrize("provider", _UPSTREAMS)
def test_context_management_that_keeps_everything_is_no_loss(provider: str) -> None:
    paths = [loss.path for loss in _losses(provider, _turn())]
    assert "$.context_management" not in paths
    assert "$.speed" not in paths


@rows("provider", _UPSTREAMS)
@rows(
    "edit",
    [
        {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}},
        {"type": "clear_thinking_20251015"},
        {"type": "clear_tool_uses_20250919"},
        {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 150_000}},
    ],
)
def test_context_management_that_removes_something_is_a_loss_of_its_own(
    provider: str, edit: dict[str, Any]
) -> None:
    kept = {"type": "clear_thinking_20251015", "keep": "all"}
    losses = _losses(provider, {**_turn(), "context_management": {"edits": [kept, edit]}})
    (loss,) = (loss for loss in losses if loss.path == "$.context_management")
    assert (loss.feature, loss.action, loss.grade) == ("context_management", "dropped", "degraded")


def test_what_says_nothing_elsewhere_still_reaches_anthropic() -> None:
    body = _turn()
    sent = translate_request(body, source="anthropic", target="anthropic", provider="anthropic")
    assert sent.value["context_management"] == body["context_management"]
    assert sent.value["speed"] == "standard"


def test_an_unknown_speed_is_still_a_loss() -> None:
    losses = _losses("gemini", {**_turn(), "speed": "warp"})
    assert "$.speed" in [loss.path for loss in losses]


_SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}


@pytest.mark.parametrize("provider", ["gemini", "kimi"])
def test_a_search_for_tools_that_are_all_declared_is_harmless(provider: str) -> None:
    losses = _losses(provider, {**_turn(), "tools": [_SEARCH, *_TOOLS]})
    (loss,) = (loss for loss in losses if loss.path == "$.tools[0]")
    assert (loss.feature, loss.action, loss.grade) == ("tool.deferred", "dropped", "harmless")


def test_a_search_for_tools_without_a_provider_that_runs_it_is_harmless_too() -> None:
    body = {**_turn(), "tools": [_SEARCH, *_TOOLS]}
    for target in ("openai-chat", "gemini"):
        losses = translate_request(body, source="anthropic", target=dialect_name(target)).losses
        assert [loss.grade for loss in losses if loss.path == "$.tools[0]"] == ["harmless"]


def _searched() -> dict[str, Any]:
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "snow"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-6",
        "content": [call, found, {"type": "text", "text": "Snow."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _next_turn(target: DialectName, answer: dict[str, Any]) -> dict[str, Any]:
    """The request in which a client of the dialect brings an answer back."""
    hello, more = {"role": "user", "content": "Weather?"}, {"role": "user", "content": "And later?"}
    if target == "openai-chat":
        return {"model": "m", "messages": [hello, answer["choices"][0]["message"], more]}
    if target == "openai-responses":
        return {"model": "m", "input": [hello, *answer["output"], more]}
    turns = [{"role": "user", "parts": [{"text": "Weather?"}]}, answer["candidates"][0]["content"]]
    return {"contents": [*turns, {"role": "user", "parts": [{"text": "And later?"}]}]}


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "gemini"])
def test_a_block_that_the_client_was_perhaps_to_see_stays_serious(target: DialectName) -> None:
    answer = {**_searched(), "content": [{"type": "novelty", "content": "Look!"}]}
    losses = translate_response(answer, source="anthropic", target=target).losses
    assert [loss.grade for loss in losses if loss.feature == "foreign_part"] == ["serious"]


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "gemini"])
def test_blocks_of_a_hosted_tool_that_come_back_unchanged_are_harmless(target: DialectName) -> None:
    answer = translate_response(_searched(), source="anthropic", target=target)
    about = [loss for loss in answer.losses if loss.feature == "foreign_part"]
    assert [(loss.action, loss.grade) for loss in about] == [("emulated", "harmless")] * 2
    again = translate_request(_next_turn(target, answer.value), source=target, target="anthropic").value
    assert again["messages"][1]["content"][:2] == _searched()["content"][:2]
