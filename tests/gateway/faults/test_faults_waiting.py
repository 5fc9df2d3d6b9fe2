"""[A3] Waiting for a connection to a provider is waiting: bounded, counted, gone round, and reported."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from tests.gateway.faults.faults_kit import CLIENTS, Call, ask, is_of, logged, provider, start
from tests.gateway.faults.faults_stages import A, C, Stage, behind
from tests.waiting import wait_until
from wireglot.gateway.process_limits import ProcessLimits
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

LIMITS = "[limits]\npool = 1\nqueue_time = 0.05\n"


def queued(gateway: LiveGateway) -> int:
    """The metric, as anyone who scrapes it sees it."""
    with urllib.request.urlopen(f"{gateway.url}/metrics") as page:
        found = re.search(rb"^wireglot_queue (\d+)", page.read(), re.MULTILINE)
    assert found is not None
    return int(found[1])


@contextmanager
def full(limits: str, more: str = "") -> Iterator[tuple[Stage, Call]]:
    """A gateway all of whose connections to `mine` are in use."""

    def toml(upstream: ScriptedUpstream) -> str:
        return provider("mine", upstream, "openai-chat") + more + limits

    with behind(toml) as stage:
        upstream = stage[1]
        upstream.next(Behaviour(fault="stall"))
        holding = start(stage[0], A, "mine/m1")
        upstream.wait_for(1)
        yield stage, holding
        holding.leave()
        wait_until(lambda: stage[0].process.gateway.in_flight == 0)


def test_anyone_who_finds_no_free_connection_is_asked_to_come_back() -> None:
    """[A3] FAULTS 108: in every dialect, with a wait, and the provider was not asked."""
    with full(LIMITS) as ((gateway, upstream), _):
        for client in CLIENTS:
            for stream in (False, True):
                answered = ask(gateway, client, "mine/m1", stream=stream)
                is_of("shed", client, answered)
                assert 1 <= int(answered.headers["retry-after"]) <= 5
                assert "x-should-retry" not in answered.headers
                assert logged(gateway, answered)["attempts"] == 1
        assert len(upstream.requests) == 1
        assert not gateway.process.gateway.health.open_breakers()


def test_the_next_target_of_a_chain_is_asked_instead() -> None:
    """[A3]"""
    with ScriptedUpstream() as other:
        chain = provider("other", other, "gemini") + '[models]\n"m" = ["mine/m1", "other/m2"]\n'
        with full(LIMITS, chain) as ((gateway, _), _):
            answered = ask(gateway, A, "m")
            assert (answered.status, answered.headers["x-wireglot-route"]) == (200, "other/m2")
            assert logged(gateway, answered)["fallbacks"] == ["mine/m1"]


def test_anyone_who_waits_for_a_connection_is_in_the_queue() -> None:
    """[A3] The metric said 0 while everybody waited; and who waits is served when one is free."""
    with full("[limits]\npool = 1\nqueue_time = 60\n") as ((gateway, upstream), holding):
        assert queued(gateway) == 0
        second = start(gateway, C, "mine/m1")
        wait_until(lambda: queued(gateway) == 1)
        assert gateway.process.gateway.waiting == 1
        holding.leave()
        assert second.rest().status == 200
        assert queued(gateway) == 0
        assert len(upstream.requests) == 2


def test_anyone_who_leaves_while_waiting_for_a_connection_is_forgotten() -> None:
    """[A3] FAULTS 45"""
    with full("[limits]\npool = 1\nqueue_time = 60\n") as ((gateway, upstream), _):
        second = start(gateway, A, "mine/m1")
        wait_until(lambda: queued(gateway) == 1)
        second.leave()
        wait_until(lambda: queued(gateway) == 0)
        assert len(upstream.requests) == 1


def test_there_are_as_many_connections_to_a_provider_as_requests_at_once() -> None:
    """[A3] Whatever is let in finds a connection, unless someone says otherwise."""
    limits = ProcessLimits()
    assert limits.pool >= limits.requests
