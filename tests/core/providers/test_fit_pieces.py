"""Histories as SDKs send them back: thoughts in the pieces of a stream, calls beside an empty text."""

from __future__ import annotations

from typing import Any

import pytest

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.envelope import seal
from wireglot_core.dialects.registry import DialectName
from wireglot_core.ir.content import Origin, Signature
from wireglot_core.translate import translate_request

CONTEXT = Context()
CALL = {"functionCall": {"id": "a1b2c3d4", "name": "f", "args": {}}}
ANSWER = {"functionResponse": {"id": "a1b2c3d4", "name": "f", "response": {"output": "x"}}}


def gemini(*parts: dict[str, Any]) -> dict[str, Any]:
    return {
        "contents": [
            {"role": "user", "parts": [{"text": "Go."}]},
            {"role": "model", "parts": [*parts, CALL]},
            {"role": "user", "parts": [ANSWER]},
        ]
    }


def thought(text: str, signature: Signature | None = None) -> dict[str, Any]:
    part: dict[str, Any] = {"text": text, "thought": True}
    if signature is not None:
        part["thoughtSignature"] = seal(signature, "reasoning", CONTEXT.secret)
    return part


def test_a_streamed_thought_is_one_thought_for_who_reads_its_text() -> None:
    """R-DA-11: Kimi's own words, as google-genai sends them back."""
    body = gemini(thought("I look it "), thought("up."))
    sent = translate_request(
        body, source="gemini", target="openai-chat", model="kimi-k2.6", provider="kimi", context=CONTEXT
    )
    assert sent.value["messages"][1]["reasoning_content"] == "I look it up."


def test_a_streamed_thought_returns_whole_to_who_signed_it() -> None:
    """R-DA-09: a signature covers the text to the letter; it came behind it, in a part of its own."""
    signature = Signature("c2ln", Origin("anthropic", "anthropic"))
    body = gemini(thought("I look it "), thought("up."), thought("", signature))
    model = "claude-sonnet-4-5"
    sent = translate_request(
        body, source="gemini", target="anthropic", model=model, provider="anthropic", context=CONTEXT
    )
    (block, call) = sent.value["messages"][1]["content"]
    assert block == {"type": "thinking", "thinking": "I look it up.", "signature": "c2ln"}
    assert call["type"] == "tool_use"


def test_two_signed_thoughts_stay_two() -> None:
    """R-DA-03"""
    signatures = [Signature(data, Origin("anthropic", "anthropic")) for data in ("b25l", "dHdv")]
    body = gemini(*(piece for each in signatures for piece in (thought("Hm"), thought("", each))))
    sent = translate_request(
        body,
        source="gemini",
        target="anthropic",
        model="claude-sonnet-4-5",
        provider="anthropic",
        context=CONTEXT,
    )
    blocks = sent.value["messages"][1]["content"]
    assert [(block["thinking"], block["signature"]) for block in blocks[:2]] == [
        ("Hm", "b25l"),
        ("Hm", "dHdv"),
    ]


def test_thoughts_that_are_not_sent_are_reported_piece_by_piece() -> None:
    body = gemini(thought("I look it "), thought("up."))
    sent = translate_request(
        body, source="gemini", target="openai-chat", model="gpt-5.5", provider="openai", context=CONTEXT
    )
    lost = {loss.path for loss in sent.losses if loss.feature == "reasoning.text"}
    assert {"$.contents[1].parts[0]", "$.contents[1].parts[1]"} <= lost


def test_gemini_gets_its_own_thoughts_as_it_cut_them() -> None:
    body = gemini({"text": "I look it ", "thought": True}, {"text": "up.", "thought": True})
    assert translate_request(body, source="gemini", target="gemini", context=CONTEXT).value == body


@pytest.mark.parametrize(
    ("provider", "model", "content"), [("kimi", "kimi-k2.6", None), ("openai", "gpt-5.5", "")]
)
def test_an_empty_text_beside_calls_is_none_where_blank_text_is_refused(
    provider: str, model: str, content: str | None
) -> None:
    """openai-python gives every streamed call the content "" and sends it back so; Kimi answers that with a 400."""
    call = {"id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = {
        "messages": [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": "", "reasoning_content": "Hm.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "functions.f:0", "content": "x"},
        ],
    }
    sent = translate_request(
        body, source="openai-chat", target="openai-chat", model=model, provider=provider, context=CONTEXT
    )
    assert sent.value["messages"][1]["content"] == content


@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "openai-responses"])
def test_a_streamed_text_is_one_text_with_its_blanks(target: DialectName) -> None:
    """[X1] google-genai keeps one content for each chunk: `Hello`, ` `, `world` is `Hello world`."""
    pieces = [{"role": "model", "parts": [{"text": text}]} for text in ("Hello", " ", "world", "\n")]
    question = {"role": "user", "parts": [{"text": "?"}]}
    sent = translate_request(
        {"contents": [question, *pieces, question]}, source="gemini", target=target, model="m"
    )
    turns = sent.value["input" if target == "openai-responses" else "messages"]
    content = turns[1]["content"]
    text = content if isinstance(content, str) else "".join(part["text"] for part in content)
    assert (len(turns), text) == (3, "Hello world\n")
    assert isinstance(content, str) or len(content) == 1
    assert [loss for loss in sent.losses if loss.feature == "content.empty"] == []


def test_thoughts_of_one_turn_are_joined_over_contents() -> None:
    """[X1] Thoughts are cut the same way."""
    body = gemini()
    thoughts = [{"role": "model", "parts": [thought(text)]} for text in ("I look it ", "up.")]
    body["contents"][1:1] = thoughts
    sent = translate_request(
        body, source="gemini", target="openai-chat", model="kimi-k2.6", provider="kimi", context=CONTEXT
    )
    assert sent.value["messages"][1]["reasoning_content"] == "I look it up."
