"""What Google signs on its Chat endpoint: it goes back to who minted it, through a client of any dialect."""

from __future__ import annotations

from typing import Any

import pytest

from wireglot_core import translate_request, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, dialect
from wireglot_core.ir.stream import fold
from wireglot_core.wire.json import encode

SIGNED = {"google": {"thought_signature": "c2lnbmVk"}}
CALL: dict[str, Any] = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "look_up", "arguments": "{}"},
    "extra_content": SIGNED,
}
TOOLS: dict[DialectName, Any] = {
    "anthropic": [{"name": "look_up", "input_schema": {"type": "object"}}],
    "openai-responses": [{"type": "function", "name": "look_up", "parameters": {"type": "object"}}],
}
CLIENTS: list[DialectName] = ["anthropic", "openai-responses"]
"""Gemini's own clients hold it bare, and the vault tells whose it is."""
UPSTREAM: dict[str, Any] = {"provider": "openrouter", "model": "gemini-3-pro"}


def answer(message: dict[str, Any], finish: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "gemini-3-pro",
        "choices": [choice],
    }


def said_back(client: DialectName, reported: dict[str, Any]) -> dict[str, Any]:
    """A conversation in which the answer comes back, with the result of its call or another question."""
    match client:
        case "anthropic":
            content = reported["content"]
            result = [
                {"type": "tool_result", "tool_use_id": block["id"], "content": "x"}
                for block in content
                if block["type"] == "tool_use"
            ]
            behind: Any = result or "more"
            turns = [("user", "?"), ("assistant", content), ("user", behind)]
            return {"max_tokens": 9, "messages": [{"role": role, "content": said} for role, said in turns]}
        case _:
            results = [
                {"type": "function_call_output", "call_id": item["call_id"], "output": "x"}
                for item in reported["output"]
                if item["type"] == "function_call"
            ]
            last = results or [{"role": "user", "content": "more"}]
            return {"input": [{"role": "user", "content": "?"}, *reported["output"], *last]}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_signed_call_returns_to_its_minter(client: DialectName) -> None:
    """[X13]"""
    reported = translate_response(
        answer({"content": None, "tool_calls": [CALL]}, "tool_calls"),
        source="openai-chat",
        target=client,
        **UPSTREAM,
    ).value
    body = {**said_back(client, reported), "model": "m", "tools": TOOLS[client]}
    back = translate_request(body, source=client, target="openai-chat", **UPSTREAM)
    (call,) = next(turn["tool_calls"] for turn in back.value["messages"] if turn.get("tool_calls"))
    assert call["extra_content"] == SIGNED
    assert "reasoning.signature" not in [loss.feature for loss in back.losses]
    elsewhere = translate_request(body, source=client, target="openai-chat", provider="kimi", model="kimi-k3")
    assert "extra_content" not in encode(elsewhere.value).decode()


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_signed_message_returns_to_its_minter(streamed: bool) -> None:
    """[X13] Beside the message, as Google signs texts. (Messages have no place behind a streamed text: there
    the vault answers.)"""
    client: DialectName = "openai-responses"
    whole = answer({"content": "Rain.", "extra_content": SIGNED}, "stop")
    assert (
        translate_response(whole, source="openai-chat", target="openai-chat").value["choices"]
        == whole["choices"]
    )
    reported = translate_response(whole, source="openai-chat", target=client, **UPSTREAM).value
    if streamed:
        deltas: list[Any] = [
            {"role": "assistant", "content": "Ra"},
            {"content": "in."},
            {"extra_content": SIGNED},
        ]
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gemini-3-pro"}
        frames = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        frames.append({"index": 0, "delta": {}, "finish_reason": "stop"})
        data = b"".join(b"data: " + encode({**head, "choices": [frame]}) + b"\n\n" for frame in frames)
        context = Context(provider="openrouter", model="gemini-3-pro")
        reader = dialect("openai-chat").stream_reader(context)
        events = [*reader.read(data + b"data: [DONE]\n\n"), *reader.end()]
        reported = dialect(client).render_response(fold(events), context).value
    body = {**said_back(client, reported), "model": "m"}
    back = translate_request(body, source=client, target="openai-chat", **UPSTREAM)
    (turn,) = [turn for turn in back.value["messages"] if turn["role"] == "assistant"]
    assert turn["extra_content"] == SIGNED
    assert turn["content"] == "Rain."


def test_a_chat_clients_own_words_pass_as_they_are() -> None:
    """[X13] Bare, as Google's own clients send it."""
    turns = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "x"},
        {"role": "assistant", "content": "Rain.", "extra_content": SIGNED},
        {"role": "user", "content": "more"},
    ]
    body = {"model": "m", "messages": turns}
    request = translate_request(body, source="openai-chat", target="openai-chat", provider="vllm")
    assert request.value["messages"] == turns
    assert not [loss for loss in request.losses if loss.feature.startswith("reasoning")]


def test_a_placeholder_is_no_state_in_chat() -> None:
    """[L2]"""
    call = {**CALL, "extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}}
    turns = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "x"},
    ]
    body = {"model": "m", "messages": turns}
    assert translate_request(body, source="openai-chat", target="openai-chat").value["messages"] == turns
    reported = translate_request(body, source="openai-chat", target="anthropic")
    assert "reasoning.signature" not in [loss.feature for loss in reported.losses]
