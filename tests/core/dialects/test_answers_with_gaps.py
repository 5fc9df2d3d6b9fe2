"""Answers whose upstream left something out that clients rely on."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Media, Message, Reasoning, Text
from wireglot_core.ir.errors import UpstreamFault
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Failure, unfold
from wireglot_core.wire.json import encode

ASKED = Request("the-asked-one", (Message("user", (Text("hi"),)),))
NAMELESS: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "", "arguments": "{}"}}
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ]
    },
    "openai-responses": {
        "id": "r1",
        "status": "completed",
        "output": [{"type": "function_call", "call_id": "c1", "name": "", "arguments": "{}"}],
    },
    "anthropic": {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "tool_use", "id": "c1", "name": "", "input": {}}],
        "stop_reason": "tool_use",
    },
}


@pytest.mark.parametrize("name", ["anthropic", "openai-chat", "openai-responses"])
def test_an_answer_that_names_no_model_names_the_one_that_was_asked(name: str) -> None:
    """[X24] Whole and streamed; no client is given a model of no name."""
    answer = Response("r", "", (Text("Hi"),), Stop("end"))
    whole = dialect(name).render_response(answer, Context(model="sent-on"), ASKED).value
    assert whole["model"] == "the-asked-one"
    data = dialect(name).stream_writer(Context(model="sent-on"), ASKED).write(unfold(answer))
    assert b'"model":"the-asked-one"' in data
    assert b'"model":""' not in data
    alone = dialect(name).render_response(answer, Context(model="sent-on")).value
    assert alone["model"] == "sent-on"


@pytest.mark.parametrize("name", NAMELESS)
def test_a_call_without_a_name_is_no_answer(name: str) -> None:
    """[X24] No tool has that name, and clients run the tool that is named."""
    body = NAMELESS[name]
    with pytest.raises(UpstreamFault, match="name of a tool"):
        dialect(name).parse_response(body, Context())


CHAT_CALL = {"index": 0, "id": "c1", "type": "function", "function": {"arguments": '{"a":1}'}}
STREAMS: dict[str, list[dict[str, Any]]] = {
    "openai-chat": [
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"tool_calls": [CHAT_CALL]}}]},
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ],
    "openai-responses": [
        {"type": "response.created", "response": {"id": "r1", "model": "m"}},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {"type": "function_call", "call_id": "c1", "name": "", "arguments": "{}"},
        },
        {"type": "response.completed", "response": {"id": "r1", "status": "completed", "output": []}},
    ],
    "anthropic": [
        {"type": "message_start", "message": {"id": "m1", "model": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c1"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ],
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_streamed_call_without_a_name_is_a_failure(name: str) -> None:
    """[X24]"""
    reader = dialect(name).stream_reader(Context())
    data = b"".join(b"data: " + encode(event) + b"\n\n" for event in STREAMS[name]) + b"data: [DONE]\n\n"
    last = [*reader.read(data), *reader.end()][-1]
    assert isinstance(last, Failure)
    assert "name of a tool" in last.error.message


def test_thinking_has_the_key_of_its_signature() -> None:
    """[X24] Anthropic's SDK reads it without asking; hosts that sign nothing leave it out."""
    anthropic = dialect("anthropic")
    block = {"type": "thinking", "thinking": "Hm."}
    body = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [block]}
    answer = anthropic.parse_response(body, Context())
    assert isinstance(answer.content[0], Reasoning)
    (shown,) = anthropic.render_response(answer, Context()).value["content"]
    assert shown == {**block, "signature": ""}
    data = anthropic.stream_writer(Context(), None).write(unfold(answer))
    assert b'"thinking":"","signature":""' in data


@pytest.mark.parametrize(
    "document",
    [
        Media("document", "text/plain", text="words"),
        Media("document", "text/plain", data=base64.b64encode(b"words").decode()),
    ],
)
def test_plain_text_in_another_spelling_is_no_loss(document: Media) -> None:
    """[X24] "text/plain is sent as text/plain" is no news."""
    request = Request("m", (Message("user", (document,)),), max_tokens=5)
    assert dialect("anthropic").render_request(request, Context()).losses == ()
