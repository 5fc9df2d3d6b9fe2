"""FAULTS 107: one account of the bytes that a process holds, in both directions."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from tests.gateway.faults.faults_kit import (
    ONCE,
    Call,
    Client,
    ask,
    every_dialect,
    figure,
    is_of,
    model_at,
    provider,
    start,
)
from tests.gateway.faults.faults_stages import EVERY, PAIRED, A, C, Stage
from tests.waiting import wait_until
from wireglot.gateway.app import Gateway
from wireglot.http.account import ByteAccount
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import encode

MOST = 1_000_000


def at_limit(upstream: ScriptedUpstream, lines: str = ONCE) -> str:
    flow = provider("flow", upstream, "openai-chat", lines + 'streams = "only"\n')
    return f"[limits]\nbuffered = {MOST}\n" + every_dialect(upstream, lines) + flow


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with ScriptedUpstream() as upstream, LiveGateway(at_limit(upstream)) as gateway:
        yield gateway, upstream


@pytest.fixture(autouse=True)
def _fresh(stage: Stage) -> None:
    stage[1].reset()


WORDS = b"word " * 40_000
SLACK = 100_000
"""For small things: requests, frames."""
PASSED, TRANSLATED, COLLECTED = (C, "openai-chat-up/m1"), (A, "openai-chat-up/m1"), (A, "flow/m1")
WAYS = pytest.mark.parametrize(
    ("client", "model"), [PASSED, TRANSLATED, COLLECTED], ids=["passed", "translated", "collected"]
)


def large(model: str, words: bytes = WORDS, gate: threading.Event | None = None) -> Behaviour:
    """A good answer: whole, or in pieces where its provider only streams."""
    said = {"role": "assistant", "content": words.decode()}
    begin = {"id": "c", "created": 1, "model": "m"}
    if not model.startswith("flow"):
        choice = {"index": 0, "finish_reason": "stop", "message": said}
        return Behaviour(body=encode({**begin, "object": "chat.completion", "choices": [choice]}), gate=gate)
    chunks = [
        {**begin, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, **end}]}
        for delta, end in ((said, {}), ({}, {"finish_reason": "stop"}))
    ]
    frames = b"".join(b"data: %b\n\n" % encode(chunk) for chunk in chunks) + b"data: [DONE]\n\n"
    pieces = tuple(frames[at : at + 16_384] for at in range(0, len(frames), 16_384))
    return Behaviour(pieces=pieces, gap=0.0, gate=gate)


def amounts_held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """All that any account says from now on that it holds."""
    seen: list[int] = []
    kept: Any = vars(ByteAccount)["held"]

    def note(account: ByteAccount, size: int) -> None:
        seen.append(size)
        kept.__set__(account, size)

    monkeypatch.setattr(ByteAccount, "held", property(kept.__get__, note))
    return seen


def owe(gateway: LiveGateway, size: int) -> None:
    """As if clients did not take what is theirs."""

    async def owing() -> None:
        gateway.process.gateway.account.owe(size)

    gateway.call(owing())


@contextmanager
def full(gateway: LiveGateway) -> Iterator[None]:
    owe(gateway, 2 * MOST)
    try:
        yield
    finally:
        owe(gateway, -2 * MOST)


@contextmanager
def waiting_for_room(stage: Stage, client: Client, model: str) -> Iterator[Call]:
    """A request that was sent while there was room, and whose answer finds none."""
    call, go_on = sent(stage, client, model)
    with full(stage[0]):
        waits(stage, go_on)
        yield call


def sent(stage: Stage, client: Client, model: str) -> tuple[Call, threading.Event]:
    gateway, upstream = stage
    go_on = threading.Event()
    upstream.next(large(model, gate=go_on))
    call = start(gateway, client, model)
    wait_until(lambda: upstream.requests)
    return call, go_on


def waits(stage: Stage, go_on: threading.Event) -> None:
    go_on.set()
    wait_until(lambda: stage[0].process.gateway.account.waiting)


def gives_all_back(gateway: LiveGateway) -> None:
    wait_until(lambda: figure(gateway, "buffered_bytes") == 0)


@pytest.mark.sampled(each=8)
@PAIRED
def test_a_request_for_whose_answer_there_is_no_room_is_refused_before_it_is_sent(
    stage: Stage, client: Client, source: str
) -> None:
    """[A6] In the caller's dialect, saying when to come back: nobody pays for it, and nothing of it stays."""
    gateway, upstream = stage
    before = figure(gateway, "buffered_shed_total")
    with full(gateway):
        answered = ask(gateway, client, model_at(source))
    is_of("shed", client, answered)
    assert 1 <= int(answered.headers["retry-after"]) <= 5
    assert not upstream.requests
    assert figure(gateway, "buffered_shed_total") == before + 1
    gives_all_back(gateway)
    assert ask(gateway, client, model_at(source)).status == 200


@WAYS
def test_large_answers_at_once_are_all_given(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, client: Client, model: str
) -> None:
    """[A6] They have been paid for. Held are the limit and one answer at most: as it came, what is made of
    it, and what its client has yet to take."""
    gateway, upstream = stage
    before = figure(gateway, "buffered_shed_total")
    go_on = threading.Event()
    for _ in range(12):
        upstream.next(large(model, gate=go_on))
    with ThreadPoolExecutor(12) as clients:
        waiting = [clients.submit(ask, gateway, client, model) for _ in range(12)]
        wait_until(lambda: len(upstream.requests) == 12)
        held = amounts_held(monkeypatch)
        go_on.set()
        answers = [each.result() for each in waiting]
    assert [each.status for each in answers] == [200] * 12
    assert all(WORDS in each.body for each in answers)
    assert max(held) <= MOST + 3 * len(large(model).body or WORDS) + SLACK
    assert figure(gateway, "buffered_shed_total") == before
    gives_all_back(gateway)


@WAYS
def test_an_answer_larger_than_the_account_is_given_alone(stage: Stage, client: Client, model: str) -> None:
    """[A6]"""
    gateway, upstream = stage
    words = WORDS * (MOST // len(WORDS) + 1)
    upstream.next(large(model, words))
    answered = ask(gateway, client, model)
    assert answered.status == 200
    assert words in answered.body
    gives_all_back(gateway)


@WAYS
def test_an_answer_goes_on_when_there_is_room_again(stage: Stage, client: Client, model: str) -> None:
    """[A6]"""
    with waiting_for_room(stage, client, model) as call:
        pass
    answered = call.rest()
    assert answered.status == 200
    assert WORDS in answered.body
    gives_all_back(stage[0])


@WAYS
def test_a_client_that_leaves_while_its_answer_waits_leaves_nothing(
    stage: Stage, client: Client, model: str
) -> None:
    """[A6] Its provider is let go, and the one that comes next is answered."""
    gateway, upstream = stage
    inside: Gateway = gateway.process.gateway
    with waiting_for_room(stage, client, model) as call:
        call.leave()
        wait_until(lambda: inside.in_flight == 0 and not inside.account.waiting)
        wait_until(upstream.requests[0].done.is_set)
    gives_all_back(gateway)
    assert ask(gateway, client, model).status == 200


def test_an_answer_that_waits_is_not_taken_for_silent() -> None:
    """[A6] Nothing comes because nobody reads: no time between two reads ends it, and when the time for all of
    it is over, the fault is the gateway's own."""
    patience = ONCE + "timeouts = { idle = 0.5, total = 2 }\n"
    with ScriptedUpstream() as upstream, LiveGateway(at_limit(upstream, patience)) as gateway:
        go_on = threading.Event()
        calls = []
        for client, model in (PASSED, TRANSLATED, COLLECTED):
            upstream.next(large(model, gate=go_on))
            calls.append((client, start(gateway, client, model)))
            wait_until(lambda: len(upstream.requests) == len(calls))
        with full(gateway):
            go_on.set()
            wait_until(lambda: figure(gateway, "buffered_waiting") == len(calls))
            for client, call in calls:
                is_of("shed", client, call.rest())
        assert figure(gateway, "buffered_shed_total") == len(calls)
        gives_all_back(gateway)


@WAYS
def test_a_gateway_that_goes_down_does_not_wait_for_room(client: Client, model: str) -> None:
    """[A6]"""
    with ScriptedUpstream() as upstream:
        gateway = LiveGateway(at_limit(upstream).replace("[limits]", "[limits]\ndrain = 0.1")).start()
        call, go_on = sent((gateway, upstream), client, model)
        owe(gateway, 2 * MOST)
        waits((gateway, upstream), go_on)
        gateway.stop()
        is_of("shed", client, call.rest())


@EVERY
def test_a_body_for_which_there_is_no_room_is_shed_in_its_dialect(stage: Stage, client: Client) -> None:
    """[A6]"""
    gateway, upstream = stage
    answered = ask(gateway, client, model_at("openai-chat"), "x" * MOST)
    is_of("shed", client, answered)
    assert 1 <= int(answered.headers["retry-after"]) <= 5
    assert not upstream.requests
    gives_all_back(gateway)


def test_what_is_made_of_a_body_counts_too(stage: Stage) -> None:
    """[A6] Decoded and written again it is there three times; passed through, once."""
    gateway, upstream = stage
    text = "x" * (MOST * 4 // 10)
    is_of("shed", A, ask(gateway, A, model_at("openai-chat"), text))
    assert not upstream.requests
    assert ask(gateway, C, model_at("openai-chat"), text).status == 200
    gives_all_back(gateway)


def test_all_that_is_held_at_once_stays_within_the_account(stage: Stage) -> None:
    """[A6] Twenty large bodies meet twelve large answers: each is answered or asked to come back."""
    gateway, upstream = stage
    go_on = threading.Event()
    for _ in range(32):
        upstream.next(Behaviour(gate=go_on))
    with ThreadPoolExecutor(32) as clients:
        waiting = [
            clients.submit(ask, gateway, A, model_at("openai-chat"), "x" * (MOST // 12)) for _ in range(20)
        ]
        refused = wait_until(lambda: [each for each in waiting if each.done()] or None)
        wait_until(lambda: len(upstream.requests) + sum(each.done() for each in waiting) == 20)
        assert figure(gateway, "buffered_bytes") <= MOST
        assert all(each.result().status == 529 for each in refused)
        go_on.set()
        statuses = [each.result().status for each in waiting]
    assert set(statuses) == {200, 529}
    assert statuses.count(200) == len(upstream.requests)
    gives_all_back(gateway)


def test_an_answer_that_its_client_does_not_take_counts_until_it_is_taken(stage: Stage) -> None:
    """[A6]"""
    gateway, upstream = stage
    large = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "x" * 800_000}}
    ]}  # fmt: skip
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port)
    connection.connect()
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    upstream.next(Behaviour(body=encode(large)))
    model = model_at("openai-chat")
    connection.request(
        "POST", C.path(model, False), encode(C.body(model, "hi", False)), {"content-type": "application/json"}
    )
    wait_until(lambda: upstream.requests and upstream.requests[0].done.is_set())
    wait_until(lambda: figure(gateway, "buffered_bytes") > 0)
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)  # or it takes 20 seconds
    assert len(connection.getresponse().read()) > 800_000
    gives_all_back(gateway)
    connection.close()
