"""FAULTS 3c: a client that leaves is noticed at once, wherever its request is, and leaves nothing behind."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.faults.faults_kit import (
    CLIENTS,
    UPSTREAMS,
    Call,
    Client,
    ask,
    every_dialect,
    figure,
    is_complete,
    line_of,
    logged,
    model_at,
    provider,
    start,
)
from tests.gateway.faults.faults_stages import (
    OWN_AND_CHAT,
    A,
    C,
    Stage,
    behind,
    frames,
    pair_name,
    recorded,
    stage_behind,
)
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import encode

LONG = "[[demo:text 40]]"
NUMBERS = itertools.count(1)


def _toml(upstream: ScriptedUpstream) -> str:
    return (
        every_dialect(upstream)
        + provider("patient", upstream, "openai-chat", "retry = { retries = 2, base = 30, cap = 60 }\n")
        + provider("advised", upstream, "openai-chat", "retry = { wait_max = 60 }\n")
        + provider("narrow", upstream, "openai-chat", "concurrency = 1\n")
        + "[limits]\nqueue_time = 30\nping = 0.02\n"
    )


stage = stage_behind(_toml)


@pytest.fixture(autouse=True)
def _nothing_is_left(stage: Stage) -> Iterator[None]:
    stage[1].reset()
    yield
    app = stage[0].process.gateway
    wait_until(lambda: app.in_flight == 0 and app.waiting == 0)
    wait_until(lambda: stage[0].process.server.requests == 0)


def begin(stage: Stage, client: Client, source: str, *, stream: bool = True) -> tuple[Call, str]:
    """A request under a model name of its own, by which its log line is found."""
    model = f"{source}/m{next(NUMBERS)}x"
    return start(stage[0], client, model, LONG, stream=stream), model


def until_it_answers(call: Call, client: Client) -> None:
    """Past the keep-alives, which may come before the upstream is asked: Anthropic's hold a brace too."""
    call.until(b"message_start" if client.family == "A" else b"{")


def gone(stage: Stage, model: str) -> dict[str, Any]:
    """Its upstream was let go of, and the log says who ended it."""
    assert stage[1].requests[-1].abandoned.wait(DEADLINE_SECONDS), "the upstream is still being read"
    line = line_of(stage[0], f'"model":"{model}"')
    assert line["outcome"] == "client_abort"
    return line


@pytest.mark.sampled("stream", each=7)
@pytest.mark.parametrize(("client", "source"), OWN_AND_CHAT, ids=pair_name)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_before_the_first_byte(stage: Stage, client: Client, source: str, stream: bool) -> None:
    """FAULTS 41, 43, 44: while the upstream is silent nobody writes, so only a watched socket can tell."""
    stage[1].next(Behaviour(fault="stall"))
    call, model = begin(stage, client, f"{source}-up", stream=stream)
    stage[1].wait_for(1)
    call.leave()
    line = gone(stage, model)
    assert line["status"] in (499, 200)  # 200: keep-alives were out


@pytest.mark.sampled("how", each=7)
@pytest.mark.parametrize(("client", "source"), OWN_AND_CHAT, ids=pair_name)
@pytest.mark.parametrize("how", ["fin", "reset", "half"])
def test_in_the_middle_of_a_stream(stage: Stage, client: Client, source: str, how: str) -> None:
    """FAULTS 42: with the account of what was reported so far."""
    stage[1].next(Behaviour(fault="stall-midstream"))
    call, model = begin(stage, client, f"{source}-up")
    until_it_answers(call, client)
    call.leave(reset=how == "reset", half=how == "half")
    line = gone(stage, model)
    call.leave()
    if source == "anthropic":  # the one dialect that tells its account before its end
        assert line["tokens_source"] == "partial"
        assert line["tokens"]["input"] > 0


@pytest.mark.parametrize(("client", "source"), OWN_AND_CHAT, ids=pair_name)
def test_while_the_upstream_talks(stage: Stage, client: Client, source: str) -> None:
    """FAULTS 42"""
    stage[1].next(Behaviour(gap=0.05))
    call, model = begin(stage, client, f"{source}-up")
    until_it_answers(call, client)
    call.leave()
    gone(stage, model)


@pytest.mark.parametrize("name", ["patient", "advised"])
def test_while_the_gateway_waits_to_try_again(stage: Stage, name: str) -> None:
    """FAULTS 45: nothing is asked after that."""
    gateway, upstream = stage
    upstream.next(Behaviour(error=503) if name == "patient" else Behaviour(error=429, retry_after=30))
    call, model = begin(stage, C, name, stream=False)
    upstream.wait_for(1)[0].done.wait(DEADLINE_SECONDS)
    call.leave()
    assert line_of(gateway, f'"model":"{model}"')["outcome"] == "client_abort"
    wait_until(lambda: gateway.process.gateway.in_flight == 0)
    assert len(upstream.requests) == 1


def test_what_a_request_holds_shows_in_the_metrics_and_is_given_back(stage: Stage) -> None:
    gateway, upstream = stage
    held = ("permits", "tasks", "requests_waiting")
    before = [figure(gateway, name) for name in held]
    upstream.next(Behaviour(fault="stall"))
    first, _ = begin(stage, C, "narrow", stream=False)
    upstream.wait_for(1)
    second, _ = begin(stage, C, "narrow", stream=False)
    wait_until(lambda: figure(gateway, "requests_waiting") == 1)
    assert all(figure(gateway, name) > was for name, was in zip(held, before, strict=True))
    first.leave()
    second.leave()
    wait_until(lambda: [figure(gateway, name) for name in held] == before)


def test_while_it_waits_for_its_turn(stage: Stage) -> None:
    """FAULTS 45: its place in the queue goes to the next."""
    gateway, upstream = stage
    upstream.next(Behaviour(fault="stall"))
    first, _ = begin(stage, C, "narrow", stream=False)
    upstream.wait_for(1)
    second, model = begin(stage, C, "narrow", stream=False)
    third, _ = begin(stage, C, "narrow", stream=False)
    wait_until(lambda: gateway.process.server.requests == 3)
    second.leave()
    assert line_of(gateway, f'"model":"{model}"')["outcome"] == "client_abort"
    first.leave()
    assert third.rest().status == 200
    assert len(upstream.requests) == 2


def test_after_the_last_event_it_is_no_abort(stage: Stage) -> None:
    """FAULTS 47: all was reported, whatever the upstream still does with its connection."""
    gateway, upstream = stage
    answers = []
    for source in ("anthropic", "openai-chat", "openai-responses"):
        pieces = tuple(frames(recorded(upstream, source, "hi")))
        for client in CLIENTS:
            upstream.next(Behaviour(pieces=pieces, fault="stall-midstream", after=len(pieces)))
            call, _ = begin(stage, client, f"{source}-up")
            answers.append(call.rest())
            assert is_complete(client, answers[-1])
    assert all(logged(gateway, answered)["outcome"] == "ok" for answered in answers)


def test_a_client_that_never_reads_is_cut_off_and_its_upstream_is_not_drained(stage: Stage) -> None:
    """FAULTS 11"""

    def toml(upstream: ScriptedUpstream) -> str:
        return provider("mine", upstream, "openai-chat") + "[limits]\nwrite_stall = 0.2\n"

    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m1"}
    piece = (
        b"data: " + encode({**chunk, "choices": [{"index": 0, "delta": {"content": "x" * 60_000}}]}) + b"\n\n"
    )
    with behind(toml) as (gateway, upstream):
        for client in (A, C):  # translated, and passed through
            upstream.next(Behaviour(pieces=(piece,) * 400))
            call = start(gateway, client, "mine/m1", stream=True)
            assert upstream.wait_for(1 + (client is C))[-1].abandoned.wait(DEADLINE_SECONDS), (
                "all of it was read"
            )
            wait_until(lambda: gateway.process.gateway.in_flight == 0)
            call.leave()
        assert [line["outcome"] for line in gateway.wait_log(2)] == ["client_abort"] * 2


def test_many_at_random_points(stage: Stage) -> None:
    """FAULTS 46, 52: nobody is left inside, and no answer reaches another client."""
    gateway, upstream = stage
    dice = random.Random(46)
    app = gateway.process.gateway
    for number in range(120):
        upstream.otherwise = Behaviour(gap=0.002)
        source = dice.choice(UPSTREAMS)
        client = dice.choice(CLIENTS)
        nonce = f"nonce{number}z"
        call = start(gateway, client, model_at(source), f"[[demo:echo]] {nonce} " * 3, stream=True)
        match dice.randrange(4):
            case 0:
                call.leave()
            case 1:
                call.until(b"{")
                call.leave(reset=dice.random() < 0.5)
            case _:
                answered = call.rest()
                assert is_complete(client, answered)
                found = answered.body.split(b"nonce")[1:]
                assert all(word.startswith(f"{number}z".encode()) for word in found)
                assert found
    wait_until(lambda: app.in_flight == 0 and gateway.process.server.requests == 0)
    upstream.reset()
    assert ask(gateway, A, model_at("gemini"), stream=True).status == 200
    wait_until(lambda: gateway.process._http.open_connections == gateway.process._http.idle_connections)
