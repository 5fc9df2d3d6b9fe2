"""What is scrubbed from a recording, and what that costs."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.faults.faults_kit import post
from tests.gateway.trace.trace_kit import Stage, id_of, stage
from tests.tiers import rows
from wireglot.gateway.trace.made_trace import Scrubber
from wireglot.http.redaction import Redactor


@pytest.mark.parametrize("word", [b"QUJD", b"\\n", b'\\"a'])
def test_a_picture_in_one_event_takes_no_more_than_a_few_times_its_size(word: bytes) -> None:
    event = b'data: {"data": "' + word * (1024 * 1024 // len(word)) + b'"}\n\n'
    scrubber = Scrubber(Redactor(["a-secret-that-is-not-there"]), [], "/")
    tracemalloc.start()
    try:
        assert scrubber.spread([(0.0, event)]) == [(0.0, event)]
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 10 * len(event)


SECRET = "qz7rT0pL9vXw3KfJm2Hd8Bn5"


def chat_call(choice: int, call: int, text: str) -> dict[str, Any]:
    called = {"index": call, "function": {"arguments": text}}
    return {"choices": [{"delta": {"tool_calls": [called]}, "index": choice}]}


def block(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def turns(one: list[Any], other: list[Any]) -> list[Any]:
    return [event for pair in zip(one, other, strict=True) for event in pair]


HALVES = [SECRET[:8], SECRET[8:16], SECRET[16:]]
SPLIT = {
    "parallel calls": turns(
        [chat_call(0, 0, half) for half in HALVES], [chat_call(0, 1, "other") for _ in HALVES]
    ),
    "parallel choices": turns(
        [chat_call(0, 0, half) for half in HALVES], [chat_call(1, 0, "other") for _ in HALVES]
    ),
    "two choices in one event": [
        {"choices": [{"index": 0, "delta": {"content": half}}, {"index": 1, "delta": {"content": "x"}}]}
        for half in HALVES
    ],
    "parallel blocks": turns(
        [block(3, {"type": "input_json_delta", "partial_json": half}) for half in HALVES],
        [block(4, {"type": "input_json_delta", "partial_json": "other"}) for _ in HALVES],
    ),
    "the name of a call": [
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"name": half}}]}}]}
        for half in HALVES
    ],
    "code": [
        {"type": "response.code_interpreter_call_code.delta", "output_index": 0, "delta": h} for h in HALVES
    ],
    "a field that nobody knows": [{"whatever": {"pieces": [half]}} for half in HALVES],
    "the beginning of a block": [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": HALVES[0]}},
        *(block(0, {"type": "text_delta", "text": half}) for half in HALVES[1:]),
    ],
}


@rows("framing", ["data: %s\n\n", "event: x\r\ndata:%s\r\n\r\n", ",\n%s"])
@rows("events", SPLIT.values(), ids=SPLIT)
def test_a_secret_that_comes_in_pieces_is_in_no_trace(events: list[Any], framing: str) -> None:
    scrubber = Scrubber(Redactor([SECRET]), [], "/")
    pieces = [(float(at), (framing % json.dumps(event)).encode()) for at, event in enumerate(events)]
    clean = scrubber.spread(pieces)
    text = b"".join(data for _, data in clean).decode()
    assert len(clean) == len(pieces)
    assert not any(half in text for half in HALVES)
    assert text.count("[redacted]") == 1
    assert text.count("other") == sum("other" in json.dumps(event) for event in events)


@pytest.mark.parametrize(
    "spelled", [r"\u0071" + SECRET[1:], r"\\u0071" + SECRET[1:], "".join(f"\\u{ord(c):04x}" for c in SECRET)]
)
def test_a_secret_that_is_spelled_with_escapes_is_in_no_trace(spelled: str) -> None:
    scrubber = Scrubber(Redactor([SECRET]), [], "/")
    body = f'{{"text": "a {spelled} b\\u0022 \\u005c", "n": 1}}'.encode()
    clean = scrubber.data(body)
    assert json.loads(clean)["text"] == 'a [redacted] b" \\'
    harmless = rb'{"text": "\u0041 \/ \u0022"}'
    assert scrubber.data(harmless) is harmless


def test_a_stream_that_cannot_be_read_keeps_nothing_of_a_secret_in_pieces() -> None:
    scrubber = Scrubber(Redactor([SECRET]), [], "/")
    pieces = [(0.0, f'"a": "{half}" "'.encode()) for half in HALVES]
    assert not any(half.encode() in data for _, data in scrubber.spread(pieces) for half in HALVES)


SERVER = {
    "type": "mcp",
    "server_label": "x",
    "server_url": "https://tools.example",
    "require_approval": "never",
}
TOKEN = "Zq7rT0pL9vXw3KfJm2Hd8Bn5"


@pytest.fixture(scope="module")
def made() -> Iterator[Stage]:
    with stage() as one:
        yield one


@rows("upstream", ["anthropic-up/m1", "openai-responses-up/m1"])
@rows(
    ("path", "more"),
    [
        (
            "/v1/messages",
            {
                "max_tokens": 9,
                "messages": [{"role": "user", "content": "hi"}],
                "mcp_servers": [
                    {
                        "type": "url",
                        "url": "https://tools.example",
                        "name": "x",
                        "authorization_token": TOKEN,
                    }
                ],
            },
        ),
        ("/v1/responses", {"input": "hi", "tools": [{**SERVER, "authorization": TOKEN}]}),
        (
            "/v1/responses",
            {"input": "hi", "tools": [{**SERVER, "headers": {"Authorization": f"Bearer {TOKEN}"}}]},
        ),
        ("/v1/responses", {"input": "hi", "tools": [{**SERVER, "headers": {"X-Tenant": TOKEN}}]}),
        (
            "/v1/responses",
            {"input": "hi", "tools": [{**SERVER, "server_url": f"https://me:{TOKEN}@tools.example/"}]},
        ),
        (
            "/v1/responses",
            {"input": "hi", "tools": [{**SERVER, "server_url": f"https://tools.example/?api_key={TOKEN}"}]},
        ),
        (
            "/v1/messages",
            {
                "max_tokens": 9,
                "messages": [{"role": "user", "content": f"is {TOKEN} in tools.example?"}],
                "mcp_servers": [
                    {"type": "url", "url": f"https://tools.example/sse?token={TOKEN}", "name": "x"}
                ],
            },
        ),
    ],
)
def test_what_opens_a_tool_server_is_in_no_trace(
    made: Stage, upstream: str, path: str, more: dict[str, Any]
) -> None:
    answer = post(made.gateway.port, path, json.dumps({"model": upstream, **more}).encode())
    assert answer.status == 200
    trace = json.dumps(made.look.trace(id_of(answer)))
    assert "tools.example" in trace
    assert TOKEN not in trace


def test_a_credential_in_the_url_of_a_header_is_hidden_there_and_wherever_else_it_stands(made: Stage) -> None:
    headers = {
        "referer": f"https://someone:{TOKEN}@app.example/a?b=c",
        "x-callback": "wss://only-a-user@app.example/",
        "link": '<https://app.example/?page=2&access_token=Kd83hHs9Zq1>; rel="next"',
        "x-mail": "someone@app.example",
    }
    said = f"Why does {TOKEN} not open it? Nor Kd83hHs9Zq1."
    body = {"model": "gemini-up/m1", "max_tokens": 9, "messages": [{"role": "user", "content": said}]}
    answer = post(made.gateway.port, "/v1/messages", json.dumps(body).encode(), headers)
    trace = made.look.trace(id_of(answer))
    whole = json.dumps(trace)
    assert TOKEN not in whole
    assert "Kd83hHs9Zq1" not in whole
    reported = dict(trace["request"]["headers"])
    assert reported["referer"] == "https://[redacted]@app.example/a?b=c"
    assert reported["x-callback"] == "wss://[redacted]@app.example/"
    assert reported["link"] == '<https://app.example/?page=2&access_token=[redacted]>; rel="next"'
    assert reported["x-mail"] == "someone@app.example"
    assert "Why does [redacted] not open it?" in trace["request"]["body"]


def test_addresses_in_what_people_write_stay_as_they_are(made: Stage) -> None:
    said = "psql postgres://postgres:postgres@127.0.0.1/db?sslkey=of-mine"
    body = {"model": "gemini-up/m1", "max_tokens": 9, "messages": [{"role": "user", "content": said}]}
    trace = made.look.trace(id_of(post(made.gateway.port, "/v1/messages", json.dumps(body).encode())))
    assert said in trace["request"]["body"]


@pytest.mark.parametrize("text", ["a://" * 20_000, "?" * 80_000, "a@" * 40_000, "?key=" * 16_000])
def test_a_header_of_nothing_but_urls_is_looked_at_once(text: str) -> None:
    """Not by a clock: so long a text would take hours if every place of it were tried to its end."""
    scrubber = Scrubber(Redactor(["a-secret-that-is-not-there"]), [("x-long", text)], "/")
    ((name, _),) = scrubber.headers([("x-long", text)])
    assert name == "x-long"
