"""FAULTS 49, 53, 60: what is tried again, at which provider, how often, and when not."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from tests.gateway.faults.faults_kit import (
    CLIENTS,
    UPSTREAMS,
    Client,
    ask,
    every_dialect,
    is_complete,
    is_of,
    logged,
    model_at,
    provider,
    start,
)
from tests.gateway.faults.faults_stages import (
    EVERY,
    NEVER_OPEN,
    PAIRED,
    SOON,
    A,
    C,
    G,
    R,
    Stage,
    behind,
    brief_rests,  # noqa: F401  # a fixture
    one,
    stage_behind,
)
from tests.waiting import wait_until
from wireglot.gateway.setting_tables import BreakerPolicy
from wireglot.gateway.targets.health import Breaker
from wireglot.http.client import dial
from wireglot.http.transport import TransportFault
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, Fault, ScriptedUpstream
from wireglot_core.wire.json import encode


@EVERY
def test_two_more_attempts_and_then_the_client_may_try_itself(client: Client) -> None:
    """[L1] FAULTS 60: three tries of ours within a second are no reason for an agent to give up."""
    with one(SOON + NEVER_OPEN) as (gateway, upstream):
        for status, kind in ((500, "internal"), (503, "shed"), (529, "shed")):
            upstream.reset()
            gateway.process.gateway.health.budgets.clear()
            upstream.otherwise = Behaviour(error=status)
            answered = ask(gateway, client, "mine/m1")
            if client.dialect != "openai-chat":
                is_of(kind, client, answered)
            assert "x-should-retry" not in answered.headers
            assert ("retry-after" in answered.headers) == (answered.status in (503, 529))
            # [A2] A 500 in the same words twice may be about the request: it is not tried a third time.
            attempts = 2 if status == 500 else 3
            assert len(upstream.requests) == attempts
            assert logged(gateway, answered)["attempts"] == attempts


@pytest.mark.parametrize(("status", "times"), [(500, 6), (529, 4)])
def test_an_agent_that_tries_again_survives_an_outage_as_it_does_without_us(status: int, times: int) -> None:
    """[L1] Claude Code's way: again and again, as long as nobody forbids it, after the wait that it is given."""
    lines = SOON + "breaker = { probe_after = 0.02, probe_cap = 0.02 }\n"
    with one(lines, dialect="anthropic") as (gateway, upstream):
        breaker = gateway.process.gateway.health.breakers["mine/m1"]
        upstream.next(*[Behaviour(error=status)] * times)
        for _ in range(times):
            answered = ask(gateway, A, "mine/m1")
            if answered.status == 200:
                break
            assert "x-should-retry" not in answered.headers
            assert answered.status in (status, 503), "its own status, or the rest that our breaker gives it"
            if answered.status != 500:
                assert 1 <= int(answered.headers["retry-after"]) <= 5
            wait_until(lambda: breaker.wait(_now(gateway), "local") == 0)
        assert ask(gateway, A, "mine/m1").status == 200
        assert times < len(upstream.requests) <= times + 2


@pytest.mark.sampled("client.name", "source")
@pytest.mark.usefixtures("brief_rests")
@EVERY
@pytest.mark.parametrize("status", [429, 503, 529])
@pytest.mark.parametrize("source", ["own", "foreign"])
def test_anyone_who_is_asked_to_come_later_is_given_a_time(
    patient: Stage, source: str, status: int, client: Client
) -> None:
    """[L1] FAULTS 59, 60: retry-after on every 429, 503 and 529, whatever the upstream said of it."""
    gateway, upstream = patient
    dialect = client.dialect if client.dialect in UPSTREAMS else "gemini"
    if source == "foreign":
        dialect = "openai-chat" if client.dialect != "openai-chat" else "gemini"
    upstream.reset()
    upstream.otherwise = Behaviour(error=status)
    for stream in (False, True):
        answered = ask(gateway, client, f"{dialect}-up/late-{status}-{client.name}", stream=stream)
        assert answered.status in (429, 503, 529)
        assert 1 <= int(answered.headers["retry-after"]) <= 120
        assert "x-should-retry" not in answered.headers


def test_the_longer_an_upstream_is_overloaded_the_longer_a_client_is_asked_to_wait() -> None:
    """[L1] Claude Code waits exactly as long as it is asked to: a constant would spend its ten tries at once."""
    breaker, policy = Breaker(), BreakerPolicy(consecutive=1000)
    reported = []
    for now in (100.0, 101.0, 103.0, 107.0, 115.0, 200.0):
        breaker.failed(policy, now, "ada")
        reported.append(breaker.advice(now, chance=0.0))
    assert reported == [1.0, 1.0, 3.0, 7.0, 15.0, 30.0]
    assert breaker.advice(107.0, chance=0.99) < 7.0 * 1.5
    breaker.succeeded(policy, 201.0, "ada")
    breaker.failed(policy, 300.0, "ada")
    assert breaker.advice(300.0, chance=0.0) == 1.0


FAILURES: list[Behaviour] = [
    Behaviour(error=500),
    Behaviour(error=502),
    Behaviour(error=503),
    Behaviour(error=529),
    Behaviour(fault="reset"),
    Behaviour(fault="garbage"),
    Behaviour(fault="html"),
    Behaviour(fault="empty"),
    Behaviour(fault="error-first"),
    Behaviour(fault="huge-headers", size=300_000),
]


patient = stage_behind(lambda upstream: every_dialect(upstream, SOON + NEVER_OPEN))


@pytest.mark.sampled(each=9)
@PAIRED
def test_one_failure_is_not_felt(patient: Stage, client: Client, source: str) -> None:
    """FAULTS 60, 61, 62"""
    gateway, upstream = patient
    for behaviour in FAILURES:
        upstream.reset()
        gateway.process.gateway.health.budgets.clear()
        upstream.next(behaviour)
        answered = ask(gateway, client, model_at(source), stream=True)
        assert is_complete(client, answered), behaviour
        assert len(upstream.requests) == 2
        assert "x-should-retry" not in answered.headers


@pytest.mark.parametrize("status", [400, 404, 409, 413, 422])
def test_a_bad_request_is_asked_once_and_says_nothing_of_the_provider(patient: Stage, status: int) -> None:
    """FAULTS 53, 57, 58"""
    gateway, upstream = patient
    upstream.reset()
    upstream.otherwise = Behaviour(error=status)
    for _ in range(7):
        ask(gateway, A, model_at("openai-chat"))
    assert len(upstream.requests) == 7
    assert not gateway.process.gateway.health.breakers[model_at("openai-chat")].is_open


def test_a_failing_provider_is_not_asked_to_fail_faster() -> None:
    """FAULTS 60: retries are a fifth of the requests that were answered, and three at the start: where all
    fail, no more than those."""
    with one(SOON + NEVER_OPEN) as (gateway, upstream):
        for _ in range(10):
            assert ask(gateway, C, "mine/m1").status == 200
        upstream.reset()
        upstream.otherwise = Behaviour(error=503)
        for _ in range(50):
            assert ask(gateway, C, "mine/m1").status == 503
        assert len(upstream.requests) == 50 + 3 + 10 // 5


def test_a_breaker_opens_answers_at_once_and_closes_after_a_good_probe() -> None:
    """FAULTS 49, 60"""
    lines = "retry = { retries = 0 }\nbreaker = { consecutive = 3, probe_after = 0.1, probe_cap = 0.1 }\n"
    with one(lines) as (gateway, upstream):
        upstream.otherwise = Behaviour(error=500)
        for _ in range(3):
            ask(gateway, A, "mine/m1")
        answered = ask(gateway, A, "mine/m1")
        is_of("upstream_down", A, answered)
        assert 1 <= int(answered.headers["retry-after"]) <= 120
        assert len(upstream.requests) == 3
        breaker = gateway.process.gateway.health.breakers["mine/m1"]
        wait_until(lambda: breaker.wait(_now(gateway), "local") == 0)
        assert ask(gateway, A, "mine/m1").status == 500  # the probe: still broken
        is_of("upstream_down", A, ask(gateway, A, "mine/m1"))
        upstream.otherwise = Behaviour()
        wait_until(lambda: breaker.wait(_now(gateway), "local") == 0)
        assert ask(gateway, A, "mine/m1").status == 200
        wait_until(lambda: not breaker.is_open)


def test_our_own_lack_of_descriptors_is_reported_as_such_and_held_against_no_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(family: object) -> socket.socket:
        raise TransportFault("busy", "no file descriptor is free for a connection", sent=False)

    lines = SOON + "breaker = { consecutive = 1, probe_after = 0.01, probe_cap = 0.01 }\n"
    with one(lines) as (gateway, upstream):
        health = gateway.process.gateway.health
        breaker = health.breakers["mine/m1"]
        with monkeypatch.context() as patch:
            patch.setattr(dial, "_open", full)
            for client in CLIENTS:
                answered = ask(gateway, client, "mine/m1")
                is_of("shed", client, answered)
                assert 1 <= int(answered.headers["retry-after"]) <= 5
                assert logged(gateway, answered)["attempts"] == 1
            assert (health.open_breakers(), upstream.requests) == ([], [])
            gateway.call(_fail(breaker))
            wait_until(lambda: breaker.wait(_now(gateway), "local") == 0)
            is_of("shed", A, ask(gateway, A, "mine/m1"))
            assert health.open_breakers() == ["mine/m1"], "a probe that was not sent closes nothing"
        assert ask(gateway, A, "mine/m1").status == 200
        wait_until(lambda: not breaker.is_open)


async def _fail(breaker: Breaker) -> None:
    policy = BreakerPolicy(consecutive=1, probe_after=0.01)
    breaker.failed(policy, asyncio.get_running_loop().time(), "local")


def _now(gateway: LiveGateway) -> float:
    return gateway._loop.time()


def test_a_probe_whose_client_leaves_leaves_room_for_the_next() -> None:
    """FAULTS 41, 60"""
    lines = "retry = { retries = 0 }\nbreaker = { consecutive = 1, probe_after = 0.05, probe_cap = 0.05 }\n"
    with one(lines) as (gateway, upstream):
        upstream.next(Behaviour(error=500), Behaviour(fault="stall"))
        ask(gateway, A, "mine/m1")
        breaker = gateway.process.gateway.health.breakers["mine/m1"]
        wait_until(lambda: breaker.wait(_now(gateway), "local") == 0)
        probe = start(gateway, A, "mine/m1")
        upstream.wait_for(2)
        assert ask(gateway, A, "mine/m1").status == 503, "one probe at a time"
        probe.leave()
        wait_until(lambda: breaker.wait(_now(gateway), "local") == 0)
        assert ask(gateway, A, "mine/m1").status == 200


CHAIN = '[models]\n"m" = ["one/a", "two/b", "three/c"]\n'


def chained(upstream: ScriptedUpstream) -> str:
    lines = "retry = { retries = 0 }\n" + NEVER_OPEN
    return (
        provider("one", upstream, "anthropic", lines)
        + provider("two", upstream, "openai-chat", lines)
        + provider("three", upstream, "gemini", lines)
        + CHAIN
    )


@EVERY
def test_a_chain_is_followed_to_the_first_that_answers(client: Client) -> None:
    """FAULTS 49, 56, 57, 59, 60, 61, 62: whatever is wrong with the ones before, but for the request."""
    with behind(chained) as (gateway, upstream):
        failures = [Behaviour(error=status) for status in (401, 402, 403, 404, 429, 500, 529)]
        for number, first in enumerate([*failures, Behaviour(fault="empty"), Behaviour(fault="error-first")]):
            upstream.reset()
            gateway.process.gateway.health._rejected.clear()
            gateway.process.gateway.health._cool.clear()
            upstream.next(first, Behaviour(fault="garbage"))
            answered = ask(gateway, client, "m", stream=True)
            assert is_complete(client, answered), number
            assert answered.headers["x-wireglot-route"] == "three/c"
            assert logged(gateway, answered)["fallbacks"] == ["one/a", "two/b"]


def test_a_request_that_is_bad_is_bad_everywhere() -> None:
    """FAULTS 53"""
    with behind(chained) as (gateway, upstream):
        upstream.next(Behaviour(error=400))
        assert ask(gateway, G, "m").status == 400
        assert len(upstream.requests) == 1


def test_the_last_ones_error_is_reported() -> None:
    """FAULTS 59, 60"""
    with behind(chained) as (gateway, upstream):
        upstream.next(Behaviour(error=500), Behaviour(error=401), Behaviour(error=429, retry_after=9))
        answered = ask(gateway, R, "m")
        is_of("rate", R, answered)
        assert answered.headers["retry-after"] == "9"
        assert "x-should-retry" not in answered.headers


def test_the_fixed_schedule_is_kept() -> None:
    """FAULTS 60: three more tries after 0.1, 0.2 and 0.4 s; a broken connection is not tried again."""
    with one('retry = "fixed-100ms"\n' + NEVER_OPEN) as (gateway, upstream):
        for _ in range(40):  # that went before, so that retries may be made
            gateway.process.gateway.health.budgets["mine"].answered()
        upstream.otherwise = Behaviour(error=429, retry_after=3600)
        began = time.monotonic()
        assert ask(gateway, A, "mine/m1").status == 429
        assert time.monotonic() - began >= 0.7
        assert len(upstream.requests) == 4
        upstream.reset()
        upstream.next(Behaviour(fault="garbage"))
        assert ask(gateway, A, "mine/m1").status == 502
        assert len(upstream.requests) == 1


def test_a_clients_own_deadline_holds() -> None:
    """FAULTS 65"""
    with one("") as (gateway, upstream):
        upstream.next(Behaviour(fault="stall"))
        answered = ask(gateway, A, "mine/m1", headers={"x-wireglot-timeout": "0.05"})
        is_of("upstream_timeout", A, answered)
        bad = ask(gateway, A, "mine/m1", headers={"x-wireglot-timeout": "soon"})
        assert bad.status == 400


@pytest.mark.sampled(each=9)
@PAIRED
def test_a_deadline_in_the_body_holds_in_every_dialect(patient: Stage, client: Client, source: str) -> None:
    """[X20] R-Z-15, R-AC-10: it is ours, no upstream is reported, and nothing is lost by it."""
    gateway, upstream = patient
    upstream.reset()
    upstream.next(Behaviour(fault="stall"))
    is_of("upstream_timeout", client, ask(gateway, client, model_at(source), timeout=0.05))
    upstream.reset()  # on a busy machine the time may be over before it was asked
    answered = ask(gateway, client, model_at(source), timeout=20)
    assert answered.status == 200
    assert "x-wireglot-losses" not in answered.headers
    assert b"timeout" not in upstream.requests[-1].body
    for bad in (0, "soon", True, [1], 1e30):
        refused = ask(gateway, client, model_at(source), timeout=bad)
        assert (refused.status, b"timeout: expected" in refused.body) == (400, True)
        assert b"more than 0 and at most 86400" in refused.body


def test_the_credential_of_one_provider_never_goes_to_another() -> None:
    """FAULTS 63: nor does the client's own."""
    with behind(chained) as (gateway, upstream):
        upstream.next(Behaviour(error=500), Behaviour(error=500))
        ask(gateway, C, "m", headers={"authorization": "Bearer the-clients-own", "cookie": "a=b"})
        raw = b"".join(request.raw for request in upstream.requests)
        assert len(upstream.requests) == 3
        assert b"the-clients-own" not in raw
        assert b"cookie" not in raw.lower()


@pytest.mark.parametrize("fault", ["stall", "html", "error-midstream"])
def test_a_provider_of_its_own_limit_is_waited_for_and_then_full(fault: Fault) -> None:
    """FAULTS 108: also where it is the second of a chain."""

    def toml(upstream: ScriptedUpstream) -> str:
        chain = '[models]\n"m" = ["one/a", "mine/b"]\n[limits]\nqueue_time = 0.05\n'
        lines = "retry = { retries = 0 }\n" + NEVER_OPEN
        return (
            provider("one", upstream, "anthropic", lines)
            + provider("mine", upstream, "openai-chat", lines + "concurrency = 1\n")
            + chain
        )

    with behind(toml) as (gateway, upstream):
        upstream.next(Behaviour(error=500), Behaviour(fault="stall"), Behaviour(error=500))
        first = start(gateway, A, "m")
        upstream.wait_for(2)
        upstream.next(Behaviour(fault=fault))
        answered = ask(gateway, A, "m")
        is_of("shed", A, answered)
        assert len(upstream.requests) == 3
        first.leave()
        wait_until(lambda: gateway.process.gateway.in_flight == 0)


def test_an_error_that_only_looks_like_json_is_still_reported(patient: Stage) -> None:
    """FAULTS 53, 61"""
    gateway, upstream = patient
    for body in (
        b"",
        b"<html>no</html>",
        b"[]",
        b'{"error": 5}',
        encode({"detail": "no such thing"}),
        b"\xff",
    ):
        upstream.reset()
        upstream.next(Behaviour(status=404, body=body, headers=(("content-type", "text/html"),)))
        answered = ask(gateway, A, model_at("openai-chat"))
        is_of("not_found", A, answered)


@EVERY
def test_a_status_that_blames_the_request_is_not_tried_again_whatever_its_type_says(client: Client) -> None:
    """Servers put `server_error` under a 400: the same request would be refused the same way."""
    errors = {
        "anthropic": {"type": "error", "error": {"type": "api_error", "message": "bad field"}},
        "gemini": {"error": {"code": 400, "status": "INTERNAL", "message": "bad field"}},
    }
    for dialect in ("anthropic", "openai-chat", "openai-responses", "gemini"):
        usual = {"error": {"type": "server_error", "code": None, "message": "bad field"}}
        with one(SOON + NEVER_OPEN, dialect=dialect) as (gateway, upstream):
            upstream.otherwise = Behaviour(status=400, body=encode(errors.get(dialect, usual)))
            answered = ask(gateway, client, "mine/m1")
            assert answered.status == 400
            assert len(upstream.requests) == 1
