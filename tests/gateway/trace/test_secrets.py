"""What is scrubbed from a recording, and what that costs."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.faults.faults_kit import post
from tests.gateway.trace.trace_kit import Stage, id_of, stage
from wireglot.gateway.trace.secrets import Scrubber
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


@pytest.mark.parametrize("upstream", ["anthropic-up/m1", "openai-responses-up/m1"])
@pytest.mark.parametrize(
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
    told = dict(trace["request"]["headers"])
    assert told["referer"] == "https://[redacted]@app.example/a?b=c"
    assert told["x-callback"] == "wss://[redacted]@app.example/"
    assert told["link"] == '<https://app.example/?page=2&access_token=[redacted]>; rel="next"'
    assert told["x-mail"] == "someone@app.example"
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
