"""What a recorded message says: its bytes, its document, and whether a text is in it."""

from __future__ import annotations

import base64

import pytest

from tests.tiers import rows
from wireglot_core.traces import bodies
from wireglot_core.traces.bodies import (
    UnreadableBody,
    check_linkable,
    document,
    holds_text,
    is_tangled,
    payload,
    whole,
)
from wireglot_core.traces.trace import Attempt, Row, Trace, TraceFrame, TraceMessage


def frames(*texts: str) -> TraceMessage:
    return TraceMessage(frames=[TraceFrame(float(at), text) for at, text in enumerate(texts)])


def test_a_payload_is_the_body_or_its_pieces_in_their_order() -> None:
    assert payload(TraceMessage(body="é")) == "é".encode()
    assert payload(frames("one ", "two")) == b"one two"
    assert payload(TraceMessage(body=base64.b64encode(b"\xff").decode(), base64=True)) == b"\xff"
    with pytest.raises(UnreadableBody, match="no base64"):
        payload(TraceMessage(body="é", base64=True))


@rows(
    ("message", "problem"),
    [
        (None, "the answer: no body was recorded"),
        (TraceMessage(), "the answer: no body was recorded"),
        (TraceMessage(body="{}", truncated=True), "the answer: only the beginning of it was recorded"),
        (TraceMessage(body="{"), "the answer: "),
        (TraceMessage(body="[]"), "the answer: expected a JSON object"),
        (TraceMessage(body="[{}, {}]"), "the answer: expected a JSON object"),
        (TraceMessage(body='["x"]'), "the answer: expected a JSON object"),
    ],
)
def test_what_is_no_document_is_reported(message: TraceMessage | None, problem: str) -> None:
    with pytest.raises(UnreadableBody) as reported:
        document(message, "the answer")
    assert str(reported.value).startswith(problem)


def test_an_object_alone_in_a_list_is_the_document() -> None:
    assert document(TraceMessage(body='{"a": 1}'), "it") == {"a": 1}
    assert document(TraceMessage(body='[{"a": 1}]'), "it") == {"a": 1}


def test_a_stream_that_was_cut_in_the_recording_amounts_to_nothing() -> None:
    short = frames('data: {"choices": []}\n\n')
    with pytest.raises(UnreadableBody, match="only the beginning"):
        whole(TraceMessage(frames=short.frames, truncated=True), "openai-chat", "the answer")
    with pytest.raises(UnreadableBody, match="the answer: "):
        whole(frames(": nothing\n\n"), "openai-chat", "the answer")


def test_parts_are_counted_and_not_the_signs_within_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_CONTAINERS", 3)
    monkeypatch.setattr(bodies, "MAX_VALUES", 3)
    assert not is_tangled(b"[[{}]]")
    assert is_tangled(b"[[[{}]]]")
    assert not is_tangled(b"[1,2,3,4]")
    assert is_tangled(b"[1,2,3,4,5]")
    assert not is_tangled(b'["[[[[[", "\\"{{{{", ",,,,,"]')
    check_linkable(None, "it")
    check_linkable(TraceMessage(body="[[{}]]"), "it")
    check_linkable(frames("[[", "[["), "it")
    for message in (TraceMessage(body="[[[{}]]]"), frames("{}", "[[[{}]]]")):
        with pytest.raises(UnreadableBody, match="it: too large to be linked"):
            check_linkable(message, "it")


def said(**messages: TraceMessage) -> Trace:
    attempt = Attempt(
        provider="",
        model="",
        dialect="openai-chat",
        request=messages.get("sent"),
        answer=messages.get("came"),
    )
    return Trace(
        row=Row(id="req_1", at=0.0, dialect="openai-chat"),
        request=messages.get("request", TraceMessage()),
        answer=messages.get("answer", TraceMessage()),
        attempts=[attempt],
    )


CHUNKS = (
    'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"Good mor"}}]}\n\n',
    'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"ning"}}]}\n\n',
    'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    "data: [DONE]\n\n",
)


@rows("side", ["request", "answer", "sent", "came"])
def test_a_text_is_found_on_every_side(side: str) -> None:
    assert holds_text(said(**{side: TraceMessage(body='{"a": "Say \\"hello\\""}')}), 'say "hello"')
    assert holds_text(said(**{side: frames("Hel", "lo")}), "hello")
    assert not holds_text(said(**{side: TraceMessage(body="Help")}), "hello")


def test_letters_by_their_numbers_and_words_of_many_events_are_found() -> None:
    escaped = TraceMessage(body='{"a": "Z\\u00fcrich"}')
    assert holds_text(said(request=escaped), "zürich")
    assert not holds_text(said(request=escaped), "zörich")
    assert not holds_text(said(request=TraceMessage(body='"\\u00fc')), "ü")
    assert holds_text(said(answer=frames(*CHUNKS)), "good morning")
    assert not holds_text(said(answer=frames(*CHUNKS)), "good evening")
    assert not holds_text(said(answer=frames("nothing")), "good morning")
    assert not holds_text(said(came=frames(*CHUNKS)), "good morning")
