"""What the mock upstream says: whole answers and streams in each dialect, cut so that a clock fits in.

Every text begins with a mark, `@@` 17 digits of the monotonic clock in nanoseconds `@@`, taken just before it
is written. A client on the same machine reads from it how long each event was under way.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import Any, NamedTuple

from wireglot_core.wire.json import encode

MARK = re.compile(rb"@@(\d{17})@@")
_MARK_LENGTH = 21
_HOLE = "@@hole@@"
_WORDS = " and then it reads the file again before the edit is made"

_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
    b"x-request-id: req_mock\r\ntransfer-encoding: chunked\r\n\r\n"
)
_REASONS = {429: b"Too Many Requests", 500: b"Internal Server Error", 503: b"Service Unavailable"}


class Plan(NamedTuple):
    """How to answer, reported by the model's name: `mock-c200-g20` is a stream of 200 events, 20 ms apart."""

    chunks: int = 200
    gap: int = 0
    size: int = 400
    pad: int = 8
    delay: int = 0
    error: int = 0
    """Answer with this status."""
    cut: int = -1
    """Hang up after so many events of a stream; a whole answer is not given at all."""
    broken: int = -1
    """The event of this number is no JSON; a whole answer is none either."""


_LETTERS = {
    "c": "chunks",
    "g": "gap",
    "s": "size",
    "w": "pad",
    "d": "delay",
    "e": "error",
    "x": "cut",
    "m": "broken",
}


@lru_cache
def plan_of(model: bytes) -> Plan:
    found = re.findall(r"-([a-z])(\d+)", model.decode().rpartition("mock")[2])
    return Plan(**{_LETTERS[letter]: int(number) for letter, number in found if letter in _LETTERS})


class Sandwich(NamedTuple):
    """Bytes with room for a mark between them."""

    before: bytes
    after: bytes

    def marked(self) -> bytes:
        return b"%b@@%017d@@%b" % (self.before, time.monotonic_ns(), self.after)


class Script(NamedTuple):
    """A stream: what opens it, the event that is said again and again, what closes it."""

    opening: bytes
    event: Sandwich
    closing: bytes


BROKEN = b'10\r\ndata: {"broken\n\n\r\n'


def failure(status: int) -> bytes:
    body = b'{"type":"error","error":{"type":"mock_error","message":"as asked","code":"mock"}}'
    return _whole_head(len(body), status) + body


@lru_cache
def whole(dialect: str, size: int) -> Sandwich:
    """An answer that is not streamed."""
    body = encode(_WHOLE[dialect](_HOLE + _padding(size)))
    before, _, after = body.partition(_HOLE.encode())
    return Sandwich(_whole_head(len(before) + _MARK_LENGTH + len(after)) + before, after)


@lru_cache
def script(dialect: str, events: int, pad: int) -> Script:
    opening, event, closing = _STREAMS[dialect](_HOLE + _padding(pad), events)
    before, _, after = _frame(dialect, event).partition(_HOLE.encode())
    length = len(before) + _MARK_LENGTH + len(after)
    return Script(
        _STREAM_HEAD + b"".join(_chunk(_frame(dialect, frame)) for frame in opening),
        Sandwich(b"%x\r\n%b" % (length, before), after + b"\r\n"),
        b"".join(_chunk(_frame(dialect, frame)) for frame in closing) + b"0\r\n\r\n",
    )


def _padding(length: int) -> str:
    return (_WORDS * (length // len(_WORDS) + 1))[:length]


def _whole_head(length: int, status: int = 200) -> bytes:
    reason = _REASONS.get(status, b"OK" if status == 200 else b"Mock")
    return (
        b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\nx-request-id: req_mock\r\n"
        b"content-length: %d\r\n\r\n" % (status, reason, length)
    )


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _frame(dialect: str, event: dict[str, Any] | str) -> bytes:
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    if dialect == "gemini":
        return b"data: %b\r\n\r\n" % encode(event)
    if "type" in event:
        return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), encode(event))
    return b"data: %b\n\n" % encode(event)


# OpenAI Chat

_CHUNK = {
    "id": "chatcmpl-mock",
    "object": "chat.completion.chunk",
    "created": 1700000000,
    "model": "mock",
    "system_fingerprint": "fp_mock",
}


def _chat_usage(output: int) -> dict[str, Any]:
    return {"prompt_tokens": 25, "completion_tokens": output, "total_tokens": 25 + output}


def _chat_whole(text: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {**_CHUNK, "object": "chat.completion", "choices": [choice], "usage": _chat_usage(100)}


def _chat_chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**_CHUNK, "choices": [choice]}


def _chat_stream(text: str, events: int) -> tuple[list[Any], dict[str, Any], list[Any]]:
    closing = [_chat_chunk({}, "stop"), {**_CHUNK, "choices": [], "usage": _chat_usage(events)}, "[DONE]"]
    return [_chat_chunk({"role": "assistant", "content": ""})], _chat_chunk({"content": text}), closing


# Anthropic


def _anthropic_whole(text: str) -> dict[str, Any]:
    return {
        "id": "msg_mock",
        "type": "message",
        "role": "assistant",
        "model": "mock",
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": "end_turn" if text else None,
        "stop_sequence": None,
        "usage": {"input_tokens": 25, "output_tokens": 100 if text else 1},
    }


def _anthropic_stream(text: str, events: int) -> tuple[list[Any], dict[str, Any], list[Any]]:
    opening = [
        {"type": "message_start", "message": _anthropic_whole("")},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
    ]
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    closing = [
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": events}},
        {"type": "message_stop"},
    ]
    return opening, event, closing


# OpenAI Responses


def _responses_item(text: str, status: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}] if text else []
    return {"id": "msg_mock", "type": "message", "status": status, "role": "assistant", "content": content}


def _responses_whole(text: str, output: int = 100) -> dict[str, Any]:
    return {
        "id": "resp_mock",
        "object": "response",
        "created_at": 1700000000,
        "status": "completed" if text else "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": "mock",
        "output": [_responses_item(text, "completed")] if text else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {"input_tokens": 25, "output_tokens": output, "total_tokens": 25 + output} if text else None,
    }


def _responses_stream(text: str, events: int) -> tuple[list[Any], dict[str, Any], list[Any]]:
    place = {"item_id": "msg_mock", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "", "annotations": []}
    added = {"output_index": 0, "item": _responses_item("", "in_progress")}
    opening: list[Any] = [
        {"type": "response.created", "response": _responses_whole("")},
        {"type": "response.output_item.added", **added},
        {"type": "response.content_part.added", **place, "part": part},
    ]
    event = {"type": "response.output_text.delta", "sequence_number": 3, **place, "delta": text}
    done = {"output_index": 0, "item": _responses_item("done", "completed")}
    closing: list[Any] = [
        {"type": "response.output_text.done", **place, "text": "done"},
        {"type": "response.content_part.done", **place, "part": {**part, "text": "done"}},
        {"type": "response.output_item.done", **done},
        {"type": "response.completed", "response": _responses_whole("done", events)},
    ]
    return opening, event, closing


# Gemini


def _gemini_whole(text: str, finish: str = "STOP", output: int = 100) -> dict[str, Any]:
    usage = {"promptTokenCount": 25, "totalTokenCount": 25 + output}
    candidate: dict[str, Any] = {"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
        usage["candidatesTokenCount"] = output
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "mock", "responseId": "mock"}


def _gemini_stream(text: str, events: int) -> tuple[list[Any], dict[str, Any], list[Any]]:
    return [], _gemini_whole(text, "", 0), [_gemini_whole("", "STOP", events)]


_WHOLE = {
    "openai-chat": _chat_whole,
    "anthropic": _anthropic_whole,
    "openai-responses": _responses_whole,
    "gemini": _gemini_whole,
}
_STREAMS = {
    "openai-chat": _chat_stream,
    "anthropic": _anthropic_stream,
    "openai-responses": _responses_stream,
    "gemini": _gemini_stream,
}
