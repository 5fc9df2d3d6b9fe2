"""FAULTS 107: one account of the bytes that a process holds, in both directions."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.gateway.faults.faults_kit import Client, ask, every_dialect, figure, is_of, model_at
from tests.gateway.faults.faults_stages import EVERY, PAIRED, A, C, Stage
from tests.waiting import wait_until
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot.wire.json import encode

MOST = 1_000_000


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with ScriptedUpstream() as upstream:
        toml = f"[limits]\nbuffered = {MOST}\n" + every_dialect(upstream)
        with LiveGateway(toml) as gateway:
            yield gateway, upstream


@pytest.fixture(autouse=True)
def _fresh(stage: Stage) -> None:
    stage[1].reset()


def gives_all_back(gateway: LiveGateway) -> None:
    wait_until(lambda: figure(gateway, "buffered_bytes") == 0)


@PAIRED
def test_an_answer_for_which_there_is_no_room_is_shed(stage: Stage, client: Client, source: str) -> None:
    """[A6] In the caller's dialect, saying when to come back; nothing of it stays."""
    gateway, upstream = stage
    before = figure(gateway, "buffered_shed_total")
    upstream.next(Behaviour(body=b'{"x":"%b"}' % (b"x" * (MOST + 1))))
    answered = ask(gateway, client, model_at(source))
    is_of("shed", client, answered)
    assert 1 <= int(answered.headers["retry-after"]) <= 5
    assert len(upstream.requests) == 1, "what is our own fault is not tried again"
    assert figure(gateway, "buffered_shed_total") == before + 1
    gives_all_back(gateway)
    assert ask(gateway, client, model_at(source)).status == 200


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
    """[A6] Decoded and written anew it is there three times; passed through, once."""
    gateway, upstream = stage
    text = "x" * (MOST * 4 // 10)
    is_of("shed", A, ask(gateway, A, model_at("openai-chat"), text))
    assert not upstream.requests
    assert ask(gateway, C, model_at("openai-chat"), text).status == 200
    gives_all_back(gateway)


def test_all_that_is_held_at_once_stays_within_the_account(stage: Stage) -> None:
    """[A6] Twenty large bodies meet twelve large answers: each is answered or told to come back."""
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
    assert len(connection.getresponse().read()) > 800_000
    gives_all_back(gateway)
    connection.close()
