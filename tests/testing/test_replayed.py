"""`wireglot.testing.replay`: an exported trace as a test."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.core.traces.conversations import conversation
from tests.traces.recorded import recorded
from wireglot.testing import replay
from wireglot.testing.live_gateway import LiveGateway
from wireglot_core.traces.file import BadTrace, read_trace, write_trace
from wireglot_core.traces.trace import Trace


def test_a_file_that_is_translated_as_it_was_passes(tmp_path: Path) -> None:
    path = tmp_path / "one.wgtrace.json"
    path.write_bytes(write_trace(recorded("anthropic", "gemini", conversation("anthropic"), stream=True)))
    assert replay(path).compared == replay(str(path)).compared == ["request", "answer"]
    assert replay(b"\n" + path.read_bytes()).compared == ["request", "answer"]


def test_what_is_different_is_reported_by_its_place(tmp_path: Path) -> None:
    trace = recorded("anthropic", "openai-chat", conversation("anthropic"))
    attempt = trace.attempts[0]
    assert attempt.request is not None
    body = attempt.request.body.replace('"max_completion_tokens":300', '"max_completion_tokens":400')
    attempt = replace(attempt, request=replace(attempt.request, body=body))
    path = tmp_path / "one.wgtrace.json"
    path.write_bytes(write_trace(replace(trace, attempts=[attempt])))
    with pytest.raises(AssertionError) as failed:
        replay(path)
    assert str(failed.value) == (
        f"{path}: translated otherwise than it was recorded (was -> is)\n"
        "  upstream request /max_completion_tokens: 400 -> 300"
    )


def test_a_trace_of_which_nothing_can_be_compared_does_not_pass() -> None:
    trace = recorded("anthropic", "openai-chat", conversation("anthropic"))
    with pytest.raises(
        AssertionError, match=r"req_\w+: nothing of it can be replayed\n  note: nothing was sent"
    ):
        replay(replace(trace, attempts=[]))


def test_a_file_that_is_no_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text("{}")
    with pytest.raises(BadTrace, match="this is no exported trace"):
        replay(path)


@pytest.fixture(scope="module")
def gateway():
    """The demo model, which says the same each time."""
    with LiveGateway('[providers.demo]\n[trace]\nmode = "all"\n') as found:
        yield found


def demonstrated(gateway: LiveGateway, **more: Any) -> Trace:
    """What the gateway records of a request to its demo model."""
    body = {
        "model": "demo-gemini",
        "max_tokens": 90,
        "messages": [{"role": "user", "content": "Say three words."}],
    }
    headers = {"content-type": "application/json", "x-api-key": "a-secret-0123456789"}
    asked = urllib.request.Request(f"{gateway.url}/v1/messages", json.dumps(body | more).encode(), headers)
    with urllib.request.urlopen(asked) as answer:
        id = answer.headers["x-wireglot-request-id"]
        answer.read()
    with urllib.request.urlopen(f"{gateway.url}/inspector/api/exchanges/{id}/export") as exported:
        return read_trace(exported.read())


@pytest.mark.parametrize("stream", [False, True])
def test_a_trace_is_sent_to_a_gateway_and_answered_as_it_was(gateway: LiveGateway, stream: bool) -> None:
    trace = demonstrated(gateway, stream=stream)
    assert replay(trace).compared == ["request", "answer"]
    assert replay(trace, gateway=gateway.url).compared == ["answer"]
    other = replace(trace.request, body=trace.request.body.replace("three words", "something else"))
    with pytest.raises(AssertionError, match=r"answered otherwise .*\n  client answer /content/\d/"):
        replay(replace(trace, request=other), gateway=gateway.url)


def test_what_a_gateway_refuses_is_a_difference_of_the_status(gateway: LiveGateway) -> None:
    trace = demonstrated(gateway)
    other = replace(trace.request, body=trace.request.body.replace("demo-gemini", "nobody/x"))
    with pytest.raises(AssertionError, match=r"/status: 200 -> 404 .*nobody"):
        replay(replace(trace, request=other), gateway=gateway.url)


def test_a_gateway_that_is_not_there_fails_the_test_and_a_wrong_address_is_named(
    gateway: LiveGateway,
) -> None:
    trace = demonstrated(gateway)
    with pytest.raises(AssertionError, match="does not answer"):
        replay(trace, gateway="http://127.0.0.1:1")
    with pytest.raises(ValueError, match="gateway: expected a URL"):
        replay(trace, gateway="127.0.0.1")
