"""Exchanges that ended in an error, replayed: offline, and by the gateway."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tests.gateway.faults.faults_kit import BY_NAME, ask, post, provider
from tests.gateway.trace.trace_kit import Stage, id_of, stage
from tests.tiers import rows
from wireglot.testing.scripted_upstream import Behaviour, Fault
from wireglot_core.traces.file import read_trace
from wireglot_core.traces.replay import Replayed, replay
from wireglot_core.traces.trace import Trace

PAIRS = (
    ("anthropic", "openai-chat"),
    ("openai-chat", "gemini"),
    ("gemini", "anthropic"),
    ("openai-responses", "openai-responses"),
)
STATUSES = (400, 401, 403, 404, 413, 429, 500, 503)
ONCE = "retry = {retries = 0}\nbreaker = {consecutive = 1000000, minimum = 1000000}\n"


@pytest.fixture(scope="module")
def failing() -> Iterator[Stage]:
    # One for each status: a provider that refuses a key, or asks to wait, is not asked again for a while.
    names = [(upstream, f"{upstream}-{each}") for _, upstream in PAIRS for each in (*STATUSES, "once")]
    with stage(more=lambda up: "".join(provider(name, up, spoken, ONCE) for spoken, name in names)) as made:
        yield made


def exported(made: Stage, id: str) -> Trace:
    made.look.over(id)
    return read_trace(made.look.raw(f"exchanges/{id}/export").body)


def replayed(made: Stage, id: str) -> Replayed:
    return replay(exported(made, id))


@rows("status", STATUSES)
@rows(("name", "upstream"), PAIRS)
def test_an_error_of_the_upstream_is_reported_again(
    failing: Stage, name: str, upstream: str, status: int
) -> None:
    failing.upstream.next(Behaviour(error=status))
    answer = ask(failing.gateway, BY_NAME[name], f"{upstream}-{status}/m1")
    assert answer.status >= 400
    again = replayed(failing, id_of(answer))
    assert again.report() == ""
    assert again.compared == ["request", "answer"]
    assert again.is_same


@rows("fault", ["reset-midstream", "no-terminal", "error-midstream"])
@rows(("name", "upstream"), PAIRS[:3])
def test_a_stream_that_ended_in_an_error_is_reported_again(
    failing: Stage, name: str, upstream: str, fault: Fault
) -> None:
    failing.upstream.next(Behaviour(fault=fault))
    answer = ask(failing.gateway, BY_NAME[name], f"{upstream}-once/m1", stream=True)
    again = replayed(failing, id_of(answer))
    assert again.report() == ""
    assert "answer" in again.compared


def test_a_request_that_was_refused_is_refused_again(failing: Stage) -> None:
    body = (
        b'{"model":"openai-chat-once/m1","max_tokens":5,"messages":[{"role":"user","content":[{"type":7}]}]}'
    )
    id = id_of(post(failing.gateway.port, "/v1/messages", body))
    again = replayed(failing, id)
    assert again.is_same
    assert again.compared == ["answer"]
    trace = exported(failing, id)
    repaired = trace.request.body.replace('{"type":7}', '{"type":"text","text":"x"}')
    now = replay(replace(trace, request=replace(trace.request, body=repaired)))
    assert not now.is_same
    assert "not because of how the request is written" in now.notes[-1]


def test_an_upstream_that_was_not_there_leaves_the_request_to_compare(failing: Stage) -> None:
    failing.upstream.next(Behaviour(fault="garbage"))
    again = replayed(failing, id_of(ask(failing.gateway, BY_NAME["anthropic"], "openai-chat-once/m1")))
    assert again.compared == ["request"]
    assert again.is_same
    assert again.notes[-1] == "the answer was not compared: no answer of the upstream was recorded"


def test_another_error_than_was_reported_is_a_difference(failing: Stage) -> None:
    failing.upstream.next(Behaviour(error=400))
    trace = exported(failing, id_of(ask(failing.gateway, BY_NAME["anthropic"], "openai-chat-once/m1")))
    body = trace.answer.body.replace("invalid_request_error", "not_found_error").replace("scripted", "other")
    again = replay(replace(trace, answer=replace(trace.answer, body=body)))
    assert [each.pointer for each in again.answer] == ["/error/kind", "/error/message"]


@pytest.mark.parametrize("status", [400, 503])
def test_the_gateway_sends_what_failed_again(failing: Stage, status: int) -> None:
    failing.upstream.next(Behaviour(error=status))
    id = id_of(ask(failing.gateway, BY_NAME["anthropic"], "openai-chat-once/m1"))
    failing.look.over(id)
    dry = failing.look.post("replay", {"id": id, "dry": True})
    assert dry["provider"] == "openai-chat-once"
    again = failing.look.post("replay", {"id": id})
    assert again["status"] == 200
