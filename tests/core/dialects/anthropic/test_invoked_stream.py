"""Bedrock's frames as server-sent events."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.tiers import rows
from wireglot_core.dialects.anthropic.invoked_stream import InvokedStream
from wireglot_core.testing.laws import every_cut
from wireglot_core.wire.event_stream import BadFrame, message

EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "m"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ü\n\n"}},
    {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 1}},
]


def chunk(data: bytes) -> bytes:
    inside = json.dumps({"bytes": base64.b64encode(data).decode(), "p": "abc"}).encode()
    return message({":event-type": "chunk", ":message-type": "event"}, inside)


def read(pieces: list[bytes]) -> bytes:
    stream = InvokedStream(1024 * 1024)
    out = b"".join(stream.feed(piece) for piece in pieces)
    stream.close()
    return out


def test_every_cut_of_the_frames_gives_the_same_events_byte_for_byte() -> None:
    data = b"".join(chunk(json.dumps(event).encode()) for event in EVENTS)
    expected = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in EVENTS).encode()
    for pieces in every_cut(data):
        assert read(pieces) == expected


@rows(
    ("headers", "payload", "kind", "said"),
    [
        ({":exception-type": "throttlingException"}, b'{"message":"Slow down"}', "rate_limit_error", "Slow down"),
        ({":exception-type": "ThrottlingException"}, b'{"message":"Slow down"}', "rate_limit_error", "Slow down"),
        ({":exception-type": "serviceUnavailableException"}, b"{}", "overloaded_error", "serviceUnavailableException"),
        ({":exception-type": "modelStreamErrorException"}, b'{"message":"m","originalMessage":"why"}', "api_error", "why"),
        ({":exception-type": "validationException"}, b"no JSON", "invalid_request_error", "validationException"),
        ({}, b"[]", "api_error", "the stream ended in an error"),
    ],
)  # fmt: skip
def test_an_exception_is_the_error_that_anthropic_itself_would_send(
    headers: dict[str, str], payload: bytes, kind: str, said: str
) -> None:
    reported = read([message({":message-type": "exception", **headers}, payload)])
    assert reported.startswith(b"event: error\ndata: ")
    assert json.loads(reported.partition(b"data: ")[2]) == {
        "type": "error",
        "error": {"type": kind, "message": said},
    }


def test_an_error_without_a_model_is_reported_too() -> None:
    headers = {":message-type": "error", ":error-code": "internalServerException", ":error-message": "Oh."}
    assert b'"message":"Oh."' in read([message(headers, b"")])


@rows("payload", [b"", b"{}", b'{"bytes":"!"}', b'{"bytes":"e30"', b'{"bytes":"WzFd"}'])
def test_a_chunk_that_holds_no_event_is_a_bad_frame(payload: bytes) -> None:
    with pytest.raises(BadFrame, match="no event"):
        read([message({":event-type": "chunk", ":message-type": "event"}, payload)])


def test_an_event_that_is_too_large_is_a_bad_frame() -> None:
    stream = InvokedStream(1024)
    with pytest.raises(BadFrame, match="larger"):
        stream.feed(chunk(bytes(5000)))
