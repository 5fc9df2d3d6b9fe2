"""Turns and parts toward an endpoint: system text, blanks, media, markers, turns held elsewhere."""

import pytest

from tests.core.providers.asks import assistant, features, fit, fitted, request, user
from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName
from wireglot_core.ir.content import (
    CacheMark,
    Extra,
    Foreign,
    Media,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import Unsupported
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import (
    Request,
    Tool,
)
from wireglot_core.providers.limits import Limits
from wireglot_core.translate import translate_request


def test_a_system_message_midway_becomes_marked_text_where_there_is_no_place_for_it() -> None:
    """R-DD-18"""
    wanted = request(
        Message("system", (Text("first"),)),
        user(Text("a")),
        Message("system", (Text("later"),)),
        assistant(Text("b")),
    )
    outcome = fitted(wanted, Limits(system_midway="no"))
    assert [message.role for message in outcome.request.messages] == ["system", "user", "assistant"]
    marked = outcome.request.messages[1].content[1]
    assert marked == Text("<system-reminder>\nlater\n</system-reminder>")
    assert features(outcome) == [("system.position", "approximated")]


def test_a_system_message_before_a_user_turn_moves_behind_it_where_only_that_is_legal() -> None:
    wanted = request(user(Text("a")), assistant(Text("b")), Message("system", (Text("s"),)), user(Text("c")))
    outcome = fitted(wanted, Limits(system_midway="after-user"))
    assert [message.role for message in outcome.request.messages] == ["user", "assistant", "user", "system"]
    assert features(outcome) == [("system.position", "approximated")]


def test_a_system_message_in_a_legal_place_stays() -> None:
    wanted = request(user(Text("a")), Message("system", (Text("s"),)), assistant(Text("b")), user(Text("c")))
    outcome = fitted(wanted, Limits(system_midway="after-user"))
    assert outcome.request == wanted
    assert outcome.losses == ()


def test_blank_text_goes_and_an_emptied_message_with_it() -> None:
    """R-DD-16, PAINS 25"""
    wanted = request(user(Text("a")), assistant(Text("")), user(Text("b"), Text("\n")))
    outcome = fitted(wanted, Limits(blank_text=False))
    assert [message.content for message in outcome.request.messages] == [(Text("a"),), (Text("b"),)]
    assert features(outcome) == [("content.empty", "dropped")] * 2


@pytest.mark.parametrize("blank", ["", "\n"])
def test_what_hangs_on_a_blank_text_is_reported_when_it_goes(blank: str) -> None:
    """Its cache marker would have made the prompt cheaper; fields of its own dialect said something too."""
    hung = Text(blank, cache=CacheMark("long"), extra=Extra("acme", {"more": 1}))
    outcome = fitted(request(user(Text("a"), hung)), Limits(blank_text=False))
    assert [message.content for message in outcome.request.messages] == [(Text("a"),)]
    paths = [loss.path for loss in outcome.losses]
    assert "$.messages[0].content[1].cache" in paths
    assert "$.messages[0].content[1].more" in paths


def test_a_conversation_that_starts_with_the_assistant_gets_a_user_turn() -> None:
    outcome = fitted(request(assistant(Text("hello")), user(Text("hi"))), Limits(starts_with_user=True))
    assert [message.role for message in outcome.request.messages] == ["user", "assistant", "user"]
    assert features(outcome) == [("message.role", "invented")]


def test_a_prefill_is_asked_for_in_words_where_it_is_refused() -> None:
    """R-DD-17"""
    outcome = fitted(request(user(Text("a")), assistant(Text("{"))), Limits(prefill=False))
    assert outcome.request.messages[-1].role == "user"
    assert features(outcome) == [("prefill", "approximated")]


def test_media_leaves_a_tool_result_and_stands_behind_all_results() -> None:
    """PAINS 19"""
    picture = Media("image", "image/png", "AAAA")
    wanted = request(
        user(Text("x")),
        assistant(ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}")),
        user(ToolResult("a", (Text("see"), picture)), ToolResult("b", (Text("t"),))),
    )
    outcome = fitted(wanted, Limits(tool_result_media="beside"))
    parts = outcome.request.messages[2].content
    assert [type(part) for part in parts] == [ToolResult, ToolResult, Text, Media]
    assert parts[3] == picture
    assert features(outcome) == [("tool_result.media", "approximated")]


@pytest.mark.parametrize("item", [Media("video", "video/mp4", "AAAA"), Media("audio", "audio/flac", "AAAA")])
def test_media_of_a_result_that_the_endpoint_does_not_take_become_a_note(item: Media) -> None:
    """They would leave the result for a message that cannot hold them."""
    wanted = request(
        user(Text("go")), assistant(ToolCall("a", "f", "{}")), user(ToolResult("a", (Text("ok"), item)))
    )
    limits = Limits(tool_result_media="beside", media=("image", "audio"), audio=("audio/wav",))
    outcome = fitted(wanted, limits)
    assert outcome.request.messages[-1] == user(
        ToolResult("a", (Text("ok"), Text(f"[{item.kind} left out: this model cannot take it]")))
    )
    assert [(loss.path, loss.feature, loss.action) for loss in outcome.losses] == [
        ("$.messages[2].content[0].content[1]", item.kind, "dropped")
    ]


def test_only_the_last_markers_stay() -> None:
    """R-DD-14"""
    mark = CacheMark()
    wanted = request(
        user(Text("a", cache=mark), Text("b", cache=mark)), tools=(Tool("f", cache=mark),), cache=mark
    )
    outcome = fitted(wanted, Limits(cache_markers=2))
    assert isinstance(outcome.request.tools[0], Tool)
    assert outcome.request.tools[0].cache is None
    assert outcome.request.messages[0].content == (Text("a"), Text("b", cache=mark))
    assert outcome.request.cache == mark
    assert features(outcome) == [("cache_marker", "dropped")] * 2


def test_turns_held_by_another_provider_are_declared_missing() -> None:
    wanted = request(
        user(Text("and now?")), extra=Extra("openai-responses", {"previous_response_id": "resp_1"})
    )
    outcome = fitted(wanted, Limits(), "anthropic")
    assert [(loss.path, loss.feature) for loss in outcome.losses] == [
        ("$.previous_response_id", "conversation_state")
    ]
    reference = Message("user", (Foreign("openai-responses", "item_reference", {"id": "msg_1"}),))
    outcome = fitted(request(reference, user(Text("hi"))), Limits(), "anthropic")
    assert [loss.path for loss in outcome.losses] == ["$.messages[0].content[0]"]


def test_a_request_with_nothing_but_a_reference_is_refused() -> None:
    empty = Request("m", (), extra=Extra("openai-responses", {"prompt": {"id": "pmpt_1"}}))
    with pytest.raises(Unsupported) as refused:
        fitted(empty, Limits(), "gemini")
    assert refused.value.path == "$.prompt"


def test_media_a_model_cannot_take_leaves_a_note() -> None:
    outcome = fitted(request(user(Media("video", url="https://x/v.mp4"))), Limits(media=("image",)))
    assert outcome.request.messages[0].content == (Text("[video left out: this model cannot take it]"),)
    assert features(outcome) == [("video", "dropped")]


def test_losses_point_to_where_the_client_put_things() -> None:
    wanted = request(
        Message("system", (Text("s"),)),
        user(Text("a")),
        user(Text("b"), Text(" ")),
        assistant(Reasoning("x"), ToolCall("1", "f", "{}")),
        user(Text("late"), ToolResult("ghost")),
    )
    outcome = fitted(wanted, Limits(blank_text=False, reasoning="drop"))
    assert sorted((loss.path, loss.feature) for loss in outcome.losses) == [
        ("$.messages[2].content[1]", "content.empty"),
        ("$.messages[3].content[0]", "reasoning.text"),
        ("$.messages[3].content[1]", "tool_result.pairing"),
        ("$.messages[4].content[1]", "tool_result.pairing"),
    ]
    last = outcome.request.messages[-1]
    assert outcome.trail.retrace(
        Loss("$.messages[3].content[1].cache", "cache_marker", "dropped"), outcome.request
    ) == (Loss("$.messages[4].content[0].cache", "cache_marker", "dropped"))
    assert last.content[1] == Text("late")


def test_a_tool_result_to_a_turn_held_elsewhere_is_refused() -> None:
    wanted = request(user(ToolResult("call_1")), extra=Extra("openai-responses", {"conversation": "conv_1"}))
    with pytest.raises(Unsupported) as refused:
        fitted(wanted, Limits(), "gemini")
    assert refused.value.path == "$.conversation"


def test_a_prefill_is_asked_for_in_words_where_the_model_would_begin_a_new_answer() -> None:
    wanted = request(user(Text("a")), assistant(Text("{")))
    limits = Limits(continues=False)
    outcome = fitted(wanted, limits)
    assert outcome.request.messages[-1].role == "user"
    assert features(outcome) == [("prefill", "approximated")]
    assert fitted(wanted, Limits(prefill_field="partial", continues=False)).losses == ()
    assert fit(wanted, limits, Context(), "openai-chat", foreign=False).request.messages == wanted.messages


@rows(
    ("target", "model", "provider", "continued"),
    [
        ("openai-chat", "gpt-5.5", "openai", False),
        ("openai-responses", "gpt-5.5", "openai", False),
        ("openai-chat", "some-model", None, False),
        ("openai-chat", "llama-3.3-70b-versatile", "groq", True),
        ("openai-chat", "meta-llama/llama-4", "openrouter", True),
        ("openai-chat", "kimi-k2.5", "kimi", True),
        ("gemini", "gemini-3.8-flash", None, False),
        ("gemini", "gemini-3.1-pro-preview", None, True),
        ("gemini", "gemini-2.5-flash", None, True),
        ("anthropic", "claude-sonnet-4-5", None, True),
    ],
)
def test_who_continues_a_prefill_is_known_by_endpoint_and_model(
    target: DialectName, model: str, provider: str | None, continued: bool
) -> None:
    """[K6] A loss where the model will not continue, and no alarm where it will."""
    source: DialectName = "openai-chat" if target == "anthropic" else "anthropic"
    body = {
        "model": "x",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "JSON, please"}, {"role": "assistant", "content": "Here:"}],
    }
    out = translate_request(body, source=source, target=target, model=model, provider=provider)
    assert ("prefill" not in {loss.feature for loss in out.losses}) == continued


def test_a_last_turn_in_which_nothing_was_said_is_no_prefill() -> None:
    wanted = request(user(Text("a")), assistant(Text(" ")))
    assert features(fitted(wanted, Limits(continues=False))) == []


def test_sound_does_not_reach_openai_responses_whose_document_knows_none() -> None:
    sound = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    body = {"model": "gpt-5.5", "messages": [{"role": "user", "content": [sound]}]}
    sent = translate_request(body, source="openai-chat", target="openai-responses", provider="openai")
    assert "input_audio" not in str(sent.value)
    assert ("audio", "dropped") in [(loss.feature, loss.action) for loss in sent.losses]


def test_a_turn_that_has_paused_goes_back_unchanged() -> None:
    """What its provider's own tools have left is no beginning that a client wants continued."""
    search = Foreign("anthropic", "server_tool_use", {"type": "server_tool_use", "id": "s"})
    wanted = request(user(Text("hi")), assistant(Text("Looking."), search))
    for foreign in (True, False):
        outcome = fitted(wanted, Limits(prefill=False), "anthropic", foreign)
        assert outcome.request.messages == wanted.messages
        assert outcome.losses == ()
