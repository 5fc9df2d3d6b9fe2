"""FAULTS 3b: bodies that are no JSON, or JSON that nobody behind us should have to read."""

from __future__ import annotations

import re

import pytest

from tests.gateway.faults.faults_kit import Client, logged, model_at, post, reported
from tests.gateway.faults.faults_stages import (
    EVERY,
    SECRET,
    A,
    C,
    R,
    Stage,
    asked,
    guarded,
    send,
    stage_behind,
)
from wireglot.testing.scripted_upstream import Behaviour
from wireglot_core.wire.json import decode, encode

stage = stage_behind(guarded)


@pytest.fixture(autouse=True)
def _fresh(stage: Stage) -> None:
    stage[1].reset()


def refused(stage: Stage, client: Client, body: bytes, code: str) -> str:
    """Nothing reaches the upstream, and C and R learn the code."""
    answered = send(stage, client, body)
    said = reported(client, answered)
    assert answered.status == 400
    assert not stage[1].requests
    if client.family in "CR":
        assert said.code == code
    line = logged(stage[0], answered)
    assert line["error"]["code"] == code
    return said.message


def whole(client: Client, text: str = "hi") -> bytes:
    return encode(client.body(model_at("openai-chat"), text, False))


NO_JSON = {
    "empty": b"",
    "blank": b" \n",
    "truncated": b'{"model": "m", "messages": [',
    "garbage after": b'{"model": "m"} canary-body-text',
    "comma after": b'{"model": "m",}',
    "byte order mark": b"\xef\xbb\xbf{}",
    "utf-16": '{"model": "canary-body-text"}'.encode("utf-16"),
    "single quotes": b"{'model': 'canary-body-text'}",
}


@pytest.mark.sampled("client.name", each=3)
@EVERY
@pytest.mark.parametrize("kind", NO_JSON)
def test_what_is_no_json_is_refused_with_its_place(stage: Stage, client: Client, kind: str) -> None:
    """FAULTS 20"""
    answered = send(stage, client, NO_JSON[kind])
    said = reported(client, answered)
    assert answered.status == 400
    if client.family in "CR":
        assert said.code in ("invalid_json", "invalid_utf8")
    if NO_JSON[kind].strip():
        assert re.search(r"byte \d+", said.message)
    assert "canary" not in said.message
    assert "canary" not in str(logged(stage[0], answered)), "no part of a body is logged"
    assert not stage[1].requests


@pytest.mark.sampled("client.name", each=2)
@EVERY
@pytest.mark.parametrize("body", [b"[]", b'"text"', b"7", b"null", b"true"])
def test_what_is_no_object_is_refused(stage: Stage, client: Client, body: bytes) -> None:
    """FAULTS 21"""
    refused(stage, client, body, "invalid_type")


@pytest.mark.sampled("client.name", each=2)
@EVERY
@pytest.mark.parametrize(
    "value",
    [
        b"[" * 129 + b"]" * 129,
        b'{"a":' * 129 + b"1" + b"}" * 129,
        b'[{"a":' * 5_000 + b"1" + b"}]" * 5_000,
        b"[" * 100_000,
    ],
    ids=["129 arrays", "129 objects", "10,000 mixed", "100,000 unclosed"],
)
def test_what_is_nested_too_deeply_is_refused(stage: Stage, client: Client, value: bytes) -> None:
    """FAULTS 22"""
    body = whole(client)
    refused(stage, client, body[:-1] + b',"deep":' + value + b"}", "json_too_deep")


@pytest.mark.sampled("client.name", "upstream")
@EVERY
@pytest.mark.parametrize("upstream", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("levels", [129, 400, 900])
def test_the_depth_of_a_large_body_is_measured_too(
    stage: Stage, client: Client, upstream: str, levels: int
) -> None:
    """[A4] FAULTS 22: whether it passes through or is translated; the error names the rule."""
    body = encode(client.body(model_at(upstream), "x" * 20_000, False))
    deep = b',"deep":' + b'[{"a":' * (levels // 2) + b"[1]" + b"}]" * (levels // 2) + b"}"
    assert "128" in refused(stage, client, body[:-1] + deep, "json_too_deep")


@pytest.mark.sampled(each=4)
@EVERY
def test_many_keys_and_long_lists_and_texts_are_taken_or_refused_in_kind(
    stage: Stage, client: Client
) -> None:
    """FAULTS 23"""
    body = whole(client)[:-1]
    keys = b"{" + b",".join(b'"k%d":0' % n for n in range(100_000)) + b"}"
    for value in (keys, b"[" + b"0," * 300_000 + b"0]", b'"' + b"x" * 3_000_000 + b'"'):
        answered = send(stage, client, body + b',"metadata_of_mine":' + value + b"}")
        if answered.status != 200:
            assert answered.status == 400
            reported(client, answered)


@pytest.mark.parametrize("client", [A, C, R], ids=lambda client: client.name)
@pytest.mark.parametrize(
    "twice",
    [b'"model": "other/m1"', b'"model" : "other/m1"', b'"mod\\u0065l": "other/m1"', b'"stream": true'],
    ids=["model", "spaced", "escaped", "stream"],
)
def test_what_routing_depends_on_may_not_stand_twice(stage: Stage, client: Client, twice: bytes) -> None:
    """FAULTS 24: anyone who checks the first and sends the second is fooled."""
    body = whole(client)
    refused(stage, client, body[:-1] + b"," + twice + b"}", "duplicate_key")
    refused(stage, client, b"{" + twice + b"," + body[1:], "duplicate_key")


@pytest.mark.parametrize("client", [A, C, R], ids=lambda client: client.name)
def test_a_key_spelled_with_escapes_is_the_same_key(stage: Stage, client: Client) -> None:
    """FAULTS 24: the model that was checked is the model that is asked for."""
    body = whole(client).replace(b'"model"', b'"mod\\u0065l"')
    answered = send(stage, client, body, client.dialect)
    assert answered.status == 200
    assert stage[1].requests[-1].json["model"] == "m1"
    other = body.replace(b"openai-chat-up/m1", b"openai-chat-up/forbidden")
    assert send(stage, client, other).status == (400 if client.family == "A" else 403)


@pytest.mark.sampled("client.name", each=2)
@EVERY
@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e999999999"])
def test_a_number_that_json_has_not_is_refused(stage: Stage, client: Client, number: bytes) -> None:
    """FAULTS 25"""
    body = whole(client)
    refused(stage, client, body[:-1] + b',"temperature":' + number + b"}", "invalid_number")


LARGE = [2**53 + 1, 2**64 + 1, int("9" * 40)]


@pytest.mark.parametrize("source", ["anthropic", "openai-chat"])
@pytest.mark.parametrize("number", LARGE)
def test_a_large_integer_in_a_tools_schema_keeps_its_digits(stage: Stage, number: int, source: str) -> None:
    """FAULTS 26: passed through and translated."""
    schema = {"type": "object", "properties": {"n": {"type": "integer", "const": number}}}
    tool = {"name": "count", "description": "d", "input_schema": schema}
    answered = asked(stage, A, source, tools=[tool])
    assert answered.status == 200
    assert str(number).encode() in stage[1].requests[-1].body


@pytest.mark.parametrize("source", ["anthropic", "openai-chat"])
def test_an_integer_of_4301_digits_is_no_server_error(stage: Stage, source: str) -> None:
    """FAULTS 26: Python itself refuses to read it; the one that answers says so."""
    body = encode(A.body(model_at(source), "hi", False))[:-1] + b',"max_tokens":' + b"9" * 4301 + b"}"
    answered = post(
        stage[0].port, "/v1/messages", body.replace(b'"max_tokens":4096,', b""), {"x-api-key": SECRET}
    )
    assert answered.status in (200, 400)


@pytest.mark.sampled("client.name", each=2)
@pytest.mark.parametrize("source", ["anthropic", "openai-chat", "openai-responses", "gemini", "code-assist"])
@EVERY
def test_half_a_surrogate_pair_in_a_text_does_not_stop_the_request(
    stage: Stage, client: Client, source: str
) -> None:
    """FAULTS 27"""
    body = encode(client.body(model_at(source), "before HERE after", False)).replace(b"HERE", b"\\ud800")
    answered = send(stage, client, body, source)
    assert answered.status == 200
    sent = stage[1].requests[-1].body
    if client.dialect == source:
        assert b"before \\ud800 after" in sent or "before \ufffd after".encode() in sent
    else:
        assert "before \ufffd after".encode() in sent


@pytest.mark.sampled("client.name", each=2)
@EVERY
@pytest.mark.parametrize(
    "text", [b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xe2\x82"]
)
def test_bytes_that_are_no_utf8_are_refused(stage: Stage, client: Client, text: bytes) -> None:
    """FAULTS 28"""
    refused(stage, client, whole(client, "HERE").replace(b"HERE", text), "invalid_utf8")


@pytest.mark.sampled("client.name", "code", each=3)
@EVERY
@pytest.mark.parametrize(
    ("value", "code"),
    [(b'"\xe4"', "invalid_utf8"), (b"1e999", "invalid_number"), (b"[" * 129 + b"]" * 129, "json_too_deep")],
)
@pytest.mark.parametrize(
    "field", ["previous_response_id", "store", "conversation", "background", "metadata", "user", "timeout"]
)
def test_no_field_that_is_read_by_itself_is_read_as_it_may_not_be(
    stage: Stage, client: Client, field: str, value: bytes, code: str
) -> None:
    """FAULTS 20, 22, 28: what decides the way of a request is read before all of its body is."""
    body = whole(client)
    refused(stage, client, body[:-1] + b',"%b":%b}' % (field.encode(), value), code)
    padding = b',"padding":"%b"' % (b"x" * 20_000)
    refused(stage, client, body[:-1] + padding + b',"%b":%b}' % (field.encode(), value), code)


@EVERY
@pytest.mark.parametrize(
    ("value", "code"), [(b'"\xe4"', "invalid_utf8"), (b"1e999", "invalid_number")], ids=["letters", "number"]
)
def test_a_body_whose_depth_is_measured_is_refused_for_what_else_is_wrong(
    stage: Stage, client: Client, value: bytes, code: str
) -> None:
    """FAULTS 20, 28: many brackets side by side are no depth, but they are counted."""
    body = whole(client)
    refused(stage, client, body[:-1] + b',"wide":[' + b"[]," * 200 + value + b"]}", code)


def test_decoding_agrees_with_what_is_sent_on(stage: Stage) -> None:
    """FAULTS 24: of a nested key that stands twice the last wins, for us and for the upstream."""
    body = whole(A).replace(b'"role":"user"', b'"role":"assistant","role":"user"')
    assert send(stage, A, body).status == 200
    assert stage[1].requests[-1].json["messages"][0]["role"] == "user"
    assert decode(body)["messages"][0]["role"] == "user"
    stage[1].next(Behaviour())
