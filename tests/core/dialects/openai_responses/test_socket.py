"""Responses over a WebSocket to an upstream: what is recognized, what is sent, and what is an error."""

from __future__ import annotations

from typing import Any

from wireglot_core.dialects.openai_responses.socket import lane, mark, message, refused
from wireglot_core.wire.json import decode, encode

CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"role": "user", "content": "hi"},
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "content": [{"text": "hi", "type": "input_text"}],
            "role": "user",
        },
    ),
    (
        {"role": "assistant", "content": "hi"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "hi", "annotations": [], "logprobs": []}],
        },
    ),
    (CALL, {**dict(reversed(CALL.items())), "id": "fc_1", "status": "completed", "namespace": None}),
    (
        {"type": "reasoning", "encrypted_content": "e", "summary": []},
        {"type": "reasoning", "id": "rs_1", "content": None, "encrypted_content": "e"},
    ),
]
DIFFERENT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"role": "user", "content": "hi"}, {"role": "user", "content": "Hi"}),
    ({"role": "user", "content": "hi"}, {"role": "assistant", "content": "hi"}),
    ({"role": "user", "content": "hi"}, {"role": "developer", "content": "hi"}),
    (CALL, {**CALL, "arguments": "{ }"}),
    (CALL, {**CALL, "call_id": "d"}),
    (CALL, {**CALL, "type": "custom_tool_call"}),
    (
        {"type": "reasoning", "encrypted_content": "e"},
        {"type": "reasoning", "encrypted_content": "f"},
    ),
    (
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
        },
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "b"}, {"type": "input_text", "text": "a"}],
        },
    ),
]


def test_items_that_say_the_same_are_recognized_and_no_others() -> None:
    assert not [pair for pair in SAME if mark(pair[0]) != mark(pair[1])]
    assert not [pair for pair in DIFFERENT if mark(pair[0]) == mark(pair[1])]
    assert (
        mark({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "x"}]}) == b""
    )


def test_a_request_is_sent_whole_or_from_a_place_on() -> None:
    body = {"model": "m", "input": ["a", "b"], "stream": True, "background": False, "store": False}
    assert decode(message(body, 0, "")) == {
        "type": "response.create",
        "model": "m",
        "input": ["a", "b"],
        "store": False,
    }
    listed = {**body, "input": [CALL, {"role": "user", "content": "on"}]}
    sent = decode(message(listed, 1, "resp_1"))
    assert sent["previous_response_id"] == "resp_1"
    assert sent["input"] == [{"role": "user", "content": "on"}]
    assert decode(message(listed, 2, "resp_1"))["input"] == []


def test_an_error_in_place_of_an_answer_is_one_of_http() -> None:
    inner = {"type": "invalid_request_error", "code": "previous_response_not_found", "message": "gone"}
    lost = refused(encode({"type": "error", "status": 400, "error": inner, "headers": {"Retry-After": 3}}))
    assert lost is not None
    assert (lost.status, lost.headers, lost.is_lost) == (400, {"retry-after": "3"}, True)
    assert decode(lost.body) == {"error": inner}
    for status in (None, "429", 200, 700, True):
        plain = refused(encode({"type": "error", "code": "x", "message": "flat", "status": status}))
        assert plain is not None
        assert (plain.status, plain.is_lost) == (500, False)
        assert decode(plain.body) == {"error": {"code": "x", "message": "flat"}}
    assert refused(b'{"type":"response.created","response":{}}') is None
    assert refused(b'{"type":"response.failed","response":{"error":{"type":"error"}}}') is None


def test_the_lane_of_a_message_is_its_own_field() -> None:
    named = {b'{"stream_id":"a.b-c_1"}': "a.b-c_1", b'{"stream_id":"a b"}': "", b'{"stream_id":7}': ""}
    others = {b'{"input":"\\"stream_id\\":\\"x\\""}': "", b"{": "", b'["stream_id"]': "", b"{}": ""}
    assert {given: lane(given) for given in named | others} == named | others
