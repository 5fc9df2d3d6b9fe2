"""An `error` with nothing in it beside an answer is no error: servers print every field of their schema."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Text
from wireglot_core.ir.stream import fold
from wireglot_core.wire.json import encode

ANSWERS: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    },
    "openai-responses": {
        "id": "r1",
        "status": "completed",
        "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
        ],
    },
    "anthropic": {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
    },
    "gemini": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]
    },
}
HOLLOW = [{}, {"message": None, "type": None, "code": None}, {"message": "", "code": 0}]


@rows("name", ANSWERS)
@rows("error", HOLLOW)
def test_a_hollow_error_beside_an_answer_is_none(name: str, error: dict[str, Any]) -> None:
    """[X22] Three paid attempts and a 500 for an answer that was good."""
    body = {"error": error, **ANSWERS[name]}
    assert dialect(name).parse_error(body, 200) is None
    assert dialect(name).parse_error(body) is None
    (text,) = dialect(name).parse_response(body, Context()).content
    assert isinstance(text, Text)
    assert text.text == "Hi"


@pytest.mark.parametrize("name", ANSWERS)
def test_an_error_that_says_something_stays_one(name: str) -> None:
    """[X22]"""
    error = dialect(name).parse_error({"error": {"message": "no", "code": None}, **ANSWERS[name]})
    assert error is not None
    assert error.message == "no"


@rows("name", ANSWERS)
@rows("error", HOLLOW[1:])
def test_a_hollow_error_alone_stays_one(name: str, error: dict[str, Any]) -> None:
    """[X22] Without an answer beside it there is nothing else it could mean."""
    assert dialect(name).parse_error({"error": error}) is not None


@pytest.mark.parametrize("error", HOLLOW)
def test_chunks_with_a_hollow_error_are_chunks(error: dict[str, Any]) -> None:
    """[X22]"""
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "error": error}
    choices = [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    data = b"".join(
        b"data: " + document + b"\n\n"
        for document in (
            encode({**chunk, "choices": choices}),
            encode({**chunk, "choices": [], "usage": usage}),
            b"[DONE]",
        )
    )
    reader = dialect("openai-chat").stream_reader(Context())
    response = fold([*reader.read(data), *reader.end()])
    assert [part.text for part in response.content if isinstance(part, Text)] == ["Hi"]
    assert response.usage is not None
    tap = dialect("openai-chat").surface.tap(1 << 20)
    tap.feed(data)
    assert tap.error is None
    assert tap.usage is not None
