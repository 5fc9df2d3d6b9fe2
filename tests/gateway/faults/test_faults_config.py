"""FAULTS 90, 91, 92: a configuration that changes under running requests."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from tests.gateway.faults.faults_kit import (
    Answered,
    Client,
    ask,
    is_complete,
    is_of,
    provider,
    reported,
    start,
)
from tests.gateway.faults.faults_stages import EVERY, A, C, Stage, digest_of
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.gateway.settings import Settings
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

LONG = "[[demo:text 12]]"


@pytest.fixture
def stage() -> Iterator[Stage]:
    with ScriptedUpstream() as upstream, LiveGateway(both(upstream)) as gateway:
        yield gateway, upstream


def both(upstream: ScriptedUpstream) -> str:
    return provider("one", upstream, "anthropic") + provider("two", upstream, "openai-chat")


def reloaded(gateway: LiveGateway, toml: str) -> None:
    before = gateway.process.gateway.settings
    gateway.reconfigure(toml)
    wait_until(partial(_differs, gateway, before))


@EVERY
def test_a_running_stream_outlives_its_provider(stage: Stage, client: Client) -> None:
    """FAULTS 91, 92"""
    gateway, upstream = stage
    upstream.next(Behaviour(gap=0.01))
    call = start(gateway, client, "one/m1", LONG, stream=True)
    begun = call.until(b"{")
    reloaded(gateway, provider("two", upstream, "openai-chat"))
    is_of("not_found", client, ask(gateway, client, "one/m1"))
    rest = call.rest()
    assert is_complete(client, Answered(200, {}, begun + rest.body, rest.whole))
    assert ask(gateway, client, "two/m1").status == 200


BROKEN = {
    "no toml": "[providers.one\n",
    "unknown field": "[providers.one]\nbase_urll = 'x'\n",
    "wrong type": "[limits]\nping = 'often'\n",
    "empty target": '[models]\n"a" = []\n',
    "a loop": '[models]\n"a" = "b"\n"b" = "a"\n',
    "half written": '[providers.one]\ndialect = "anth',
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_changes_nothing_and_is_reported(stage: Stage, name: str) -> None:
    """FAULTS 91, 31"""
    gateway, _ = stage
    gateway.reconfigure(BROKEN[name])
    lines = gateway.wait_log(1, "reload refused")
    assert lines[0]["level"] == "error"
    assert ask(gateway, A, "one/m1").status == 200
    assert b"wireglot_config_reload_failures_total 1" in _metrics(gateway)


def _metrics(gateway: LiveGateway) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS)
    connection.request("GET", "/metrics")
    try:
        return connection.getresponse().read()
    finally:
        connection.close()


def test_a_hundred_reloads_under_load_fail_no_request(stage: Stage) -> None:
    """FAULTS 91"""
    gateway, upstream = stage
    app = gateway.process.gateway
    toml = both(upstream)
    stop = threading.Event()
    bad: list[Answered] = []
    answered = [0]

    def load() -> None:
        while not stop.is_set():
            reply = ask(gateway, C, "one/m1", stream=True)
            answered[0] += 1
            if not is_complete(C, reply):
                bad.append(reply)

    worker = threading.Thread(target=load)
    worker.start()
    try:
        for number in range(100):
            settings = app.settings
            if number % 2:
                refused = len(gateway.log("reload refused"))
                gateway.reconfigure("" if number % 4 == 1 else "[")
                gateway.wait_log(refused + 1, "reload refused")
                assert app.settings is settings
                continue
            gateway.reconfigure(f"{toml}# {number}\n")
            wait_until(partial(_differs, gateway, settings))
    finally:
        stop.set()
        worker.join()
    assert not bad
    assert answered[0] > 10


def _differs(gateway: LiveGateway, settings: Settings) -> bool:
    return gateway.process.gateway.settings is not settings


def test_a_key_that_was_taken_back_is_refused_while_its_stream_ends_well() -> None:
    """FAULTS 90"""
    first, other = digest_of("key-of-the-first-team"), digest_of("key-of-the-other-team")
    headers = {"x-api-key": "key-of-the-first-team"}
    with ScriptedUpstream() as upstream:
        toml = both(upstream)
        with LiveGateway(toml + f'[keys]\nfirst = "{first}"\n') as gateway:
            upstream.next(Behaviour(gap=0.01))
            call = start(gateway, A, "one/m1", LONG, stream=True, headers=headers)
            begun = call.until(b"{")
            reloaded(gateway, toml + f'[keys]\nother = "{other}"\n')
            is_of("auth", A, ask(gateway, A, "one/m1", headers=headers))
            assert b"message_stop" in begun + call.rest().body


def test_a_providers_limit_survives_a_reload() -> None:
    """FAULTS 91, 108"""
    with ScriptedUpstream() as upstream:
        lines = "retry = { retries = 0 }\nconcurrency = 1\n"
        toml = provider("one", upstream, "anthropic", lines) + "[limits]\nqueue_time = 0.05\n"
        with LiveGateway(toml) as gateway:
            assert ask(gateway, A, "one/m1").status == 200
            reloaded(gateway, toml + "# again\n")
            upstream.next(Behaviour(fault="stall"))
            first = start(gateway, A, "one/m1")
            upstream.wait_for(2)
            answered = ask(gateway, A, "one/m1")
            is_of("shed", A, answered)
            reported(A, answered)
            reloaded(gateway, toml.replace("concurrency = 1", "concurrency = 2"))
            assert ask(gateway, A, "one/m1").status == 200, "the new limit holds for who comes next"
            first.leave()
            wait_until(lambda: gateway.process.gateway.in_flight == 0)
