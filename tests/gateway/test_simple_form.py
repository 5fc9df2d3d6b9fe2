"""`POST /v1/gemini`, the simplified form, through the gateway."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from typing import Any

import pytest

from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import decode, encode

RESULT = {"name": "get_weather", "response": {"output": "12 degrees"}}


@pytest.fixture(scope="module", params=["gemini", "anthropic", "openai-chat"])
def stage(request: pytest.FixtureRequest) -> Iterator[tuple[LiveGateway, ScriptedUpstream]]:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, request.param) as gateway:
        yield gateway, upstream


def ask(gateway: LiveGateway, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS)
    try:
        connection.request("POST", "/v1/gemini", encode(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


@rows("words", [{}, {"input": "And in Lima?"}])
def test_results_reach_the_model_with_the_calls_they_answer(stage, words):
    """R-AF-05: the calls are put back as far as they are known, and that is said."""
    gateway, upstream = stage
    status, headers, _ = ask(gateway, {"model": "m1", "tool_results": [RESULT], **words})
    assert status == 200
    sent = upstream.requests[-1].body
    assert b"12 degrees" in sent
    assert sent.count(b"get_weather") >= 1
    assert "tool_result.pairing" in headers["x-wireglot-losses"]


def test_its_timeout_is_kept_and_is_no_loss(stage):
    """R-AF-08"""
    gateway, upstream = stage
    upstream.next(Behaviour(fault="stall"))
    status, _, body = ask(gateway, {"model": "m1", "input": "hi", "timeout": 0.2})
    assert status == 504
    assert decode(body)["error"]["status"] == "DEADLINE_EXCEEDED"
    status, headers, _ = ask(gateway, {"model": "m1", "input": "hi", "timeout": 20})
    assert status == 200
    assert "unknown_field" not in headers.get("x-wireglot-losses", "")


@rows("timeout", [0, -1, "soon", [1]])
def test_a_timeout_that_is_none_is_refused(stage, timeout):
    status, _, body = ask(stage[0], {"model": "m1", "input": "hi", "timeout": timeout})
    assert status == 400
    assert "timeout" in decode(body)["error"]["message"]


def test_its_stream_has_no_sentinel(stage):
    """R-AG-16, C21"""
    status, headers, body = ask(stage[0], {"model": "m1", "input": "hi", "stream": True})
    assert status == 200
    assert headers["content-type"].startswith("text/event-stream")
    assert b"[DONE]" not in body
    assert b'"finishReason":"STOP"' in body
