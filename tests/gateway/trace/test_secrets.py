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
