"""A provider that breaks a rule of its dialect: the answer arrives, and the rule is counted by provider."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.faults.faults_kit import BY_NAME, CLIENTS, Client, ask, is_complete, logged, model_at
from tests.gateway.faults.faults_stages import frames, repeated
from tests.gateway.trace.trace_kit import Stage, id_of, stage
from wireglot.testing.scripted_upstream import Behaviour
from wireglot_core.ir.stream import FLAWS

SOURCES = {
    # The dialect of the provider, which of its events comes twice, and the rule that breaks.
    "anthropic": (b"message_start", "second_start"),
    "openai-chat": (b'"finish_reason":"', "second_end"),
    "openai-responses": (b"response.created", "second_start"),
    "gemini": (b'"finishReason"', "second_end"),
}


@pytest.fixture(scope="module")
def traced() -> Iterator[Stage]:
    with stage() as made:
        yield made


@pytest.mark.sampled("source", each=2)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "client", [client for client in CLIENTS if not client.is_array], ids=lambda client: client.name
)
def test_a_broken_rule_is_counted_logged_and_traced(traced: Stage, client: Client, source: str) -> None:
    mark, flaw = SOURCES[source]
    gateway, upstream = traced.gateway, traced.upstream
    usual = ask(gateway, client, model_at(source), stream=True)
    assert "flaws" not in logged(gateway, usual)
    pieces = frames(repeated(upstream))
    at = next(number for number, piece in enumerate(pieces) if mark in piece)
    upstream.next(Behaviour(pieces=(*pieces[:at], pieces[at], *pieces[at:])))
    counted, labels = gateway.process.observer.metrics.stream_flaws, (f"{source}-up", flaw)
    before = counted.value(labels)
    answered = ask(gateway, client, model_at(source), stream=True)
    assert is_complete(client, answered)
    assert flaw in logged(gateway, answered)["flaws"]
    assert counted.value(labels) == before + 1
    notes = traced.look.trace(id_of(answered))["notes"]
    assert any(FLAWS[flaw] in note for note in notes), notes


def test_numbers_that_do_not_add_up_are_in_the_log_line_and_the_trace(traced: Stage) -> None:
    body = (
        b'{"id":"c","object":"chat.completion","created":1,"model":"m1","choices":[{"index":0,"message":'
        b'{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,'
        b'"completion_tokens":1,"total_tokens":9}}'
    )
    traced.upstream.next(Behaviour(body=body, headers=(("content-type", "application/json"),)))
    answered = ask(traced.gateway, BY_NAME["anthropic"], model_at("openai-chat"))
    assert answered.status == 200
    assert logged(traced.gateway, answered)["flaws"] == ["total_is_not_the_sum"]
    assert any("total_is_not_the_sum" in note for note in traced.look.trace(id_of(answered))["notes"])
