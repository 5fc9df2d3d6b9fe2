"""Who counts the tokens of a request: the provider where it can, else an estimate that says that it is one."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.gateway.faults.faults_kit import post
from tests.waiting import DEADLINE_SECONDS
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import decode, encode

PATH = "/v1/messages/count_tokens"
ESTIMATE = "x-wireglot-estimate"


class Counting(NamedTuple):
    upstream: ScriptedUpstream
    gateway: LiveGateway

    def ask(self, model: str, path: str = PATH, body: dict[str, Any] | None = None) -> tuple[int, Any, bool]:
        asked = body or {"model": model, "messages": [{"role": "user", "content": "Hello, how are you?"}]}
        answer = post(self.gateway.port, path, encode(asked), {"x-api-key": "any"})
        return answer.status, decode(answer.body), ESTIMATE in answer.headers

    def asked(self) -> list[tuple[str, Any]]:
        """What the provider was asked since the last look."""
        found = [(request.path, request.json) for request in self.upstream.requests]
        self.upstream.reset()
        return found


@pytest.fixture
def counting() -> Iterator[Counting]:
    with ScriptedUpstream() as upstream:
        config = f"""
            [providers.anthropic]
            base_url = "{upstream.url}"
            api_key = "upstream-key-0123456789"
            [providers.mine]
            dialect = "anthropic"
            base_url = "{upstream.url}"
            api_key = "upstream-key-0123456789"
            [models]
            known = "anthropic/claude-sonnet-5"
            odd = "mine/odd-model"
        """
        with LiveGateway(config) as gateway:
            yield Counting(upstream, gateway)


def test_a_provider_that_counts_is_asked_for_the_model_that_it_knows(counting: Counting) -> None:
    counting.upstream.next(Behaviour(body=b'{"input_tokens": 4711}'))
    assert counting.ask("known") == (200, {"input_tokens": 4711}, False)
    ((path, body),) = counting.asked()
    assert path == PATH
    assert body["model"] == "claude-sonnet-5"
    assert body["messages"] == [{"role": "user", "content": "Hello, how are you?"}]


def test_another_dialect_is_counted_by_the_same_provider(counting: Counting) -> None:
    counting.upstream.next(Behaviour(body=b'{"input_tokens": 4711}'))
    body = {"contents": [{"role": "user", "parts": [{"text": "Hello, how are you?"}]}]}
    status, answer, is_estimate = counting.ask("", "/v1beta/models/known:countTokens", body)
    assert (status, answer["totalTokens"], is_estimate) == (200, 4711, False)
    ((path, asked),) = counting.asked()
    assert (path, asked["model"]) == (PATH, "claude-sonnet-5")


def test_a_server_without_a_counter_is_asked_once_and_estimated_then(counting: Counting) -> None:
    counting.upstream.next(Behaviour(status=404, body=b'{"error": {"message": "no such path"}}'))
    status, answer, is_estimate = counting.ask("odd")
    assert (status, is_estimate) == (200, True)
    assert 1 < answer["input_tokens"] < 50
    assert len(counting.asked()) == 1
    assert counting.ask("odd")[2]
    assert counting.asked() == []
    counting.upstream.next(Behaviour(body=b'{"input_tokens": 7}'))
    assert counting.ask("known") == (200, {"input_tokens": 7}, False)


@pytest.mark.parametrize("body", [b'{"input_tokens": "many"}', b"{}", b"<html>"])
def test_what_cannot_be_read_is_estimated_and_asked_again(counting: Counting, body: bytes) -> None:
    for _ in range(2):
        counting.upstream.next(Behaviour(body=body))
        assert counting.ask("odd")[2]
        assert len(counting.asked()) == 1


def test_a_provider_that_fails_is_estimated_and_asked_again(counting: Counting) -> None:
    for _ in range(2):
        counting.upstream.next(Behaviour(status=500, body=b'{"error": {"message": "oops"}}'))
        assert counting.ask("odd")[2]
        assert counting.asked()


def test_a_fault_of_the_request_is_the_clients(counting: Counting) -> None:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "messages: too odd"}}
    counting.upstream.next(Behaviour(status=400, body=encode(error)))
    status, answer, is_estimate = counting.ask("known")
    assert (status, is_estimate) == (400, False)
    assert "messages: too odd" in answer["error"]["message"]


def test_the_log_says_what_was_counted_and_why_it_is_an_estimate(counting: Counting) -> None:
    counting.upstream.next(Behaviour(body=b'{"input_tokens": 4711}'))
    counting.ask("known")
    counting.upstream.next(Behaviour(status=500, body=b'{"error": {"message": "oops"}}'))
    estimate = counting.ask("odd")[1]["input_tokens"]
    counted, estimated = counting.gateway.wait_log(2)
    assert counted["tokens"]["input"] == 4711
    assert "tokens_source" not in counted
    assert (estimated["tokens"]["input"], estimated["tokens_source"]) == (estimate, "estimated")
    assert estimated["notes"] == ["counting failed: oops"]


def test_a_client_that_leaves_ends_the_question_to_the_provider(counting: Counting) -> None:
    never = threading.Event()
    counting.upstream.next(Behaviour(pieces=(b'{"input_', b'tokens": 7}'), gate=never, after=1))
    leaving = http.client.HTTPConnection("127.0.0.1", counting.gateway.port)
    body = {"model": "known", "messages": [{"role": "user", "content": "Hello"}]}
    leaving.request("POST", PATH, encode(body), {"x-api-key": "any", "content-type": "application/json"})
    (asked,) = counting.upstream.wait_for()
    leaving.close()
    try:
        assert asked.abandoned.wait(DEADLINE_SECONDS)
    finally:
        never.set()
