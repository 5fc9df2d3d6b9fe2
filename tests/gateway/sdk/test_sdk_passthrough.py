"""Where client and upstream speak the same dialect nothing is read again: bytes in are bytes out."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.gateway.sdk.sdk_kit import Stage, stage_fixtures
from wireglot.testing.scripted_upstream import Behaviour

ODD = '"é \\u00e9 \\/ \\ud83d\\ude42 1.0 1e5"'
"""Spelled as no encoder would."""


class Wire(NamedTuple):
    """A request with odd spelling, its answer whole and streamed, and where each is asked for."""

    path: str
    streaming_path: str
    body: bytes
    streaming_body: bytes
    whole: bytes
    pieces: tuple[bytes, ...]


def with_stream(body: bytes) -> bytes:
    return body.replace(b"{", b'{ "stream" :true ,', 1)


ANTHROPIC = (
    b'{ "model":"m1",  "max_tokens": 10.0e0 ,"x_unknown":[1.50, {"a":null}], "messages":[{"role":"user","content":'
    + ODD.encode()
    + b"}] }\n"
)
CHAT = (
    b'{ "messages":[{"content":'
    + ODD.encode()
    + b',"role":"user"}],\n  "model":"m1", "x_unknown":[1.50,{"a":null}] }'
)
RESPONSES = b'{ "input" :' + ODD.encode() + b', "store":false , "x_unknown":[1.50,{"a":null}],"model":"m1"  }'
INTERACTIONS = RESPONSES
GEMINI = b'{ "contents" :[{"parts":[{"text":' + ODD.encode() + b'}] ,"role":"user"}], "x_unknown":[1.50] }'
CODE_ASSIST = b'{ "model":"m1", "user_prompt_id":"p", "request": ' + GEMINI + b' ,"x_unknown":[1.50] }'

WIRES: dict[str, Wire] = {
    "anthropic": Wire(
        "/v1/messages",
        "/v1/messages",
        ANTHROPIC,
        with_stream(ANTHROPIC),
        b'{ "id":"msg_1","type":"message","role":"assistant","model":"m1","x_new":{"deep":[1.50]},'
        b'"content":[{"type":"text","text":"h\\u00e9"}],"stop_reason":"end_turn","stop_sequence":null,'
        b'"usage":{"input_tokens":1,"output_tokens":1} }\n',
        (
            b": a comment\n\n",
            b'event: message_start\ndata: {"type":"message_start", "message":{"id":"msg_1","type":"message",'
            b'"role":"assistant","model":"m1","content":[],"stop_reason":null,"stop_sequence":null,'
            b'"usage":{"input_tokens":1,"output_tokens":1}}}\n\n',
            b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
            b'"content_block":{"type":"text","text":""}}\n\nevent: ping\ndata: {"type": "ping"}\n\n',
            b"event: content_block_delta\ndata: ",
            b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"h\\u00e9 \xe2\x80\xa8"}}\n\n',
            b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
            b'event: x_new\ndata: {"type":"x_new"}\n\n',
            b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn",'
            b'"stop_sequence":null},"usage":{"output_tokens":3}}\n\n',
            b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
        ),
    ),
    "openai-chat": Wire(
        "/v1/chat/completions",
        "/v1/chat/completions",
        CHAT,
        with_stream(CHAT),
        b'{ "id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m1","x_new":[1.50],"choices":[{"index":0,'
        b'"message":{"role":"assistant","content":"h\\u00e9"},"finish_reason":"stop"}]}\n\n',
        (
            b": OPENROUTER PROCESSING\n\n",
            b'data: {"id":"c","object":"chat.completion.chunk", "created":1,"model":"m1","choices":[{"index":0,'
            b'"delta":{"role":"assistant","content":"h\\u00e9"},"finish_reason":null}],"x_new":1.50}\r\n\r\n',
            b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m1","choices":[{"index":0,',
            b'"delta":{},"finish_reason":"stop"}]}\r\n\r\n',
            b"data: [DONE]\r\n\r\n",
        ),
    ),
    "openai-responses": Wire(
        "/v1/responses",
        "/v1/responses",
        RESPONSES,
        with_stream(RESPONSES),
        b'{ "id":"resp_1","object":"response","status":"completed","model":"m1","x_new":[1.50],"output":[{"type":"message",'
        b'"id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"h\\u00e9"}]}]}',
        (
            b'event: response.created\ndata: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1",'
            b'"object":"response","status":"in_progress","model":"m1","output":[]}}\n\n',
            b'event: response.x_new\ndata: {"type":"response.x_new","sequence_number":1, "a":1.50}\n\n',
            b'event: response.output_item.added\ndata: {"type":"response.output_item.added","sequence_number":2,'
            b'"output_index":0,"item":{"type":"message","id":"msg_1","status":"in_progress","role":"assistant",'
            b'"content":[]}}\n\n',
            b'event: response.completed\ndata: {"type":"response.completed","sequence_number":3,"response":{"id":"resp_1",'
            b'"object":"response","status":"completed","model":"m1","output":[{"type":"message","id":"msg_1",'
            b'"status":"completed","role":"assistant","content":[]}]}}\n\n',
        ),
    ),
    "gemini": Wire(
        "/v1beta/models/m1:generateContent",
        "/v1beta/models/m1:streamGenerateContent?alt=sse",
        GEMINI,
        GEMINI,
        b'{ "candidates":[{"content":{"parts":[{"text":"h\\u00e9"}],"role":"model"},"finishReason":"STOP","index":0}],'
        b'"x_new":[1.50],"modelVersion":"m1"}\n',
        (
            b'data: {"candidates": [{"content":{"parts":[{"text":"h\\u00e9"}],"role":"model"},"index":0}],"x_new":1.50}\r\n\r\n',
            b'data: {"candidates": [{"content":{"parts":[{"text":""}],"role":"model"},',
            b'"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1}}\r\n\r\n',
        ),
    ),
    "code-assist": Wire(
        "/v1internal:generateContent",
        "/v1internal:streamGenerateContent?alt=sse",
        CODE_ASSIST,
        CODE_ASSIST,
        b'{ "response":{"candidates":[{"content":{"parts":[{"text":"h\\u00e9"}],"role":"model"},"finishReason":"STOP",'
        b'"index":0}]},"traceId":"t","x_new":[1.50]}',
        (
            b'data: {"response":{"candidates":[{"content":{"parts":[{"text":"h\\u00e9"}],"role":"model"},"index":0}]}}\n\n',
            b'data: {"response":{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP",'
            b'"index":0}]},"x_new":1.50}\n\n',
        ),
    ),
    "gemini-interactions": Wire(
        "/v1beta/interactions",
        "/v1beta/interactions",
        INTERACTIONS,
        with_stream(INTERACTIONS),
        b'{ "id":"v1_1","status":"completed","object":"interaction","model":"m1","x_new":[1.50],"steps":[{"type":'
        b'"model_output","content":[{"type":"text","text":"h\\u00e9"}]}],"usage":{"total_tokens":2}}\n\n',
        (
            b": a comment\n\n",
            b'event: interaction.created\ndata: {"event_type":"interaction.created", "interaction":{"id":"v1_1",'
            b'"status":"in_progress","model":"m1"},"event_id":"1"}\n\n',
            b'event: step.start\ndata: {"event_type":"step.start","index":0,"step":{"type":"model_output"}}\n\n',
            b"event: step.delta\ndata: ",
            b'{"event_type":"step.delta","index":0,"delta":{"type":"text","text":"h\\u00e9 \xe2\x80\xa8"}}\n\n',
            b'event: step.stop\ndata: {"event_type":"step.stop","index":0,"x_new":1.50}\n\n',
            b'event: x_new\ndata: {"event_type":"x_new"}\n\n',
            b'event: interaction.completed\ndata: {"event_type":"interaction.completed","interaction":{"id":"v1_1",'
            b'"status":"completed","model":"m1","usage":{"total_input_tokens":1,"total_output_tokens":1}}}\n\n',
            b"event: done\ndata: [DONE]\n\n",
        ),
    ),
}
NAMED_CODES = ("openai-chat", "openai-responses", "gemini-interactions")
"""Where the code of an error is a word."""
running, stage = stage_fixtures()


def renamed(body: bytes) -> bytes:
    """The request of a client that knows the model by another name."""
    return body.replace(b'"model":"m1"', b'"model":"frail-m1"')


def test_a_whole_exchange_is_passed_on_to_the_byte(stage: Stage) -> None:
    wire = WIRES[stage.dialect]
    stage.upstream.next(Behaviour(body=wire.whole))
    answer = stage.post(wire.path, wire.body)
    assert stage.upstream.requests[-1].body == wire.body
    assert (answer.status, answer.body) == (200, wire.whole)
    assert "x-wireglot-losses" not in answer.headers


def test_a_stream_is_passed_on_to_the_byte(stage: Stage) -> None:
    wire = WIRES[stage.dialect]
    stage.upstream.next(Behaviour(pieces=wire.pieces))
    answer = stage.post(wire.streaming_path, wire.streaming_body)
    assert stage.upstream.requests[-1].body == wire.streaming_body
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.body == b"".join(wire.pieces)


def test_a_stream_is_passed_on_to_the_byte_however_it_is_cut(stage: Stage) -> None:
    wire = WIRES[stage.dialect]
    whole = b"".join(wire.pieces)
    stage.upstream.next(Behaviour(pieces=tuple(whole[at : at + 7] for at in range(0, len(whole), 7))))
    assert stage.post(wire.streaming_path, wire.streaming_body).body == whole


def test_only_the_model_is_exchanged(stage: Stage) -> None:
    """[L7] Toward Anthropic clients also in the answer: they compare it with the one they asked for."""
    wire = WIRES[stage.dialect]
    stage.upstream.next(Behaviour(body=wire.whole))
    path = wire.path.replace("/m1:", "/frail-m1:")
    answer = stage.post(path, renamed(wire.body))
    assert stage.upstream.requests[-1].body == wire.body
    assert stage.upstream.requests[-1].path.endswith(wire.path.removeprefix("/v1beta"))
    own = renamed if stage.dialect == "anthropic" else bytes
    assert answer.body == own(wire.whole)
    assert answer.headers["x-wireglot-route"] == "frail/m1"
    if wire.streaming_path == wire.path:
        stage.upstream.next(Behaviour(pieces=wire.pieces))
        assert stage.post(path, renamed(wire.streaming_body)).body == own(b"".join(wire.pieces))


def test_an_error_of_the_upstream_is_passed_on_to_the_byte(stage: Stage) -> None:
    wire = WIRES[stage.dialect]
    body = b'{ "error":{"type":"invalid_request_error","code":400,"message":"n\\u00f6","status":"INVALID_ARGUMENT"} }'
    body = body.replace(b"{ ", b'{ "type":"error",') if stage.dialect == "anthropic" else body
    body = body.replace(b'"code":400', b'"code":"bad"') if stage.dialect in NAMED_CODES else body
    for path, sent in ((wire.path, wire.body), (wire.streaming_path, wire.streaming_body)):
        stage.upstream.next(Behaviour(status=400, body=body))
        answer = stage.post(path, sent)
        assert (answer.status, answer.body) == (400, body)


def test_an_array_of_chunks_is_passed_on_to_the_byte(stage: Stage) -> None:
    """Gemini's streams without alt=sse."""
    if stage.dialect not in ("gemini", "code-assist"):
        pytest.skip("no other dialect has them")
    wire = WIRES[stage.dialect]
    pieces = (b"[" + wire.whole.strip(), b"\r\n,\r\n" + wire.whole, b"]\n")
    stage.upstream.next(Behaviour(pieces=pieces, headers=(("content-type", "application/json"),)))
    answer = stage.post(wire.streaming_path.partition("?")[0], wire.streaming_body)
    assert stage.upstream.requests[-1].query == ""
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.body == b"".join(pieces)


def test_headers_of_the_client_stay_behind(stage: Stage) -> None:
    wire = WIRES[stage.dialect]
    stage.upstream.next(Behaviour(body=wire.whole))
    secret = "sk-of-the-client"
    stage.post(
        wire.path,
        wire.body,
        {"authorization": f"Bearer {secret}", "x-api-key": secret, "x-goog-api-key": secret, "cookie": "a=b"},
    )
    seen = stage.upstream.requests[-1]
    assert secret not in str(seen.headers)
    assert "cookie" not in seen.headers
    assert "upstream-key-0123456789" in str(seen.headers)
