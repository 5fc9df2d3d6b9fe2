"""Reasoning toward an endpoint: it goes back to who minted it."""

from tests.core.providers.asks import CLAUDE, GEMINI, assistant, features, fit, fitted, pair, request, user
from wireglot_core import translate_request
from wireglot_core.dialects.context import Context
from wireglot_core.ir.content import (
    Extra,
    Origin,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.providers.fit.parts import SKIP_SIGNATURE
from wireglot_core.providers.limits import Limits


def test_reasoning_goes_back_only_to_who_signed_it() -> None:
    """R-DA-09, PAINS 3"""
    wanted = request(
        user(Text("x")),
        assistant(Reasoning("ours", CLAUDE), Reasoning("theirs", GEMINI), Reasoning("nobody's"), Text("a")),
        user(Text("y")),
    )
    outcome = fitted(wanted, Limits(reasoning="signed"), "anthropic")
    assert outcome.request.messages[1].content == (Reasoning("ours", CLAUDE), Text("a"))
    assert features(outcome) == [("reasoning.text", "dropped")] * 2


def test_a_provider_that_wants_the_text_gets_the_text_of_any() -> None:
    """R-DA-11"""
    wanted = request(user(Text("x")), assistant(Reasoning("t", CLAUDE), Text("a")), user(Text("y")))
    outcome = fitted(wanted, Limits(reasoning="text"))
    assert outcome.request.messages[1].content == (Reasoning("t"), Text("a"))
    assert features(outcome) == [("reasoning.signature", "dropped")]


def test_generic_upstreams_get_no_reasoning() -> None:
    """R-DA-12"""
    outcome = fitted(request(user(Text("x")), assistant(Reasoning("t"), Text("a"))), Limits(reasoning="drop"))
    assert outcome.request.messages[1].content == (Text("a"),)


def test_what_another_provider_wrote_is_not_its_own_in_the_same_dialect_either() -> None:
    """Two servers of one dialect: a client that changes between them brings the first one's reasoning."""
    ours, theirs = Origin("openai-chat", "one", "m"), Origin("openai-chat", "other", "m")
    wanted = request(
        user(Text("x")),
        assistant(Reasoning("a", minter=ours), Reasoning("b", minter=theirs), Reasoning("c"), Text("d")),
        user(Text("y")),
    )
    context = Context(provider="one", model="m")
    outcome = fit(wanted, Limits(reasoning="own"), context, "openai-chat", foreign=False)
    reported = [part.text for part in outcome.request.messages[1].content if isinstance(part, Reasoning)]
    assert reported == ["a", "c"]
    assert [(loss.feature, loss.action) for loss in outcome.losses] == [("reasoning.text", "dropped")]


def test_turns_with_calls_get_an_empty_reasoning_where_it_is_demanded() -> None:
    """R-DA-11, PAINS 8"""
    wanted = request(user(Text("x")), *pair("a"), assistant(Text("done")), user(Text("y")))
    outcome = fitted(wanted, Limits(reasoning="text", reasoning_required=True))
    assert outcome.request.messages[1].content[0] == Reasoning("")
    assert outcome.request.messages[3].content == (Text("done"),)
    assert features(outcome) == [("reasoning.text", "invented")]


def test_the_first_call_of_each_step_is_signed() -> None:
    """R-DA-02, R-DA-05, PAINS 1. [prefix] Old turns too: what stood there while they were new stays."""
    wanted = request(
        user(Text("old")),
        *pair("a"),
        assistant(Text("done")),
        user(Text("new")),
        assistant(ToolCall("b", "f", "{}"), ToolCall("c", "f", "{}")),
        user(ToolResult("b"), ToolResult("c")),
        assistant(ToolCall("d", "f", "{}", signature=GEMINI)),
        user(ToolResult("d"), Text("go on")),
    )
    outcome = fitted(wanted, Limits(call_signatures=True), "gemini")
    signatures = [
        part.signature.data if part.signature else None
        for message in outcome.request.messages
        for part in message.content
        if isinstance(part, ToolCall)
    ]
    assert signatures == [SKIP_SIGNATURE, SKIP_SIGNATURE, None, "U0lH"]
    assert features(outcome) == [("reasoning.signature", "invented")] * 2


def test_another_providers_signature_leaves_a_call_that_goes_to_chat() -> None:
    wanted = request(
        user(Text("x")), assistant(ToolCall("a", "f", "{}", signature=GEMINI)), user(ToolResult("a"))
    )
    outcome = fitted(wanted, Limits())
    assert outcome.request.messages[1].content == (ToolCall("a", "f", "{}"),)
    assert features(outcome) == [("reasoning.signature", "dropped")]


def test_mistrals_thinking_is_a_chunk_of_the_content_both_ways() -> None:
    chunk = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    own = {"role": "assistant", "content": [chunk, {"type": "text", "text": "a"}]}
    others = {"role": "assistant", "content": "a", "reasoning_content": "hm"}
    for turn in (own, others):
        asked = {"messages": [{"role": "user", "content": "x"}, turn, {"role": "user", "content": "y"}]}
        out = translate_request(
            asked,
            source="openai-chat",
            target="openai-chat",
            provider="mistral",
            model="magistral-medium-latest",
        )
        assert out.value["messages"][1] == own
        assert out.losses == ()


def test_state_beside_reasoning_is_declared_where_only_the_text_is_read() -> None:
    signed = Reasoning("t", Signature("[{}]", Origin("openai-chat")))
    wanted = request(user(Text("x")), assistant(signed, Text("a")), user(Text("y")))
    outcome = fitted(wanted, Limits(reasoning="text", reasoning_field="reasoning"))
    assert outcome.request.messages[1].content[0] == Reasoning(
        "t", extra=Extra("openai-chat", form={"field": "reasoning"})
    )
    assert features(outcome) == [("reasoning.signature", "dropped")]
