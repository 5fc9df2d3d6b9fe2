"""[A2] What a breaker counts: requests and not attempts, outages and not what a request brings upon itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.gateway.faults.faults_kit import Answered, ask, logged, provider, reported, start
from tests.gateway.faults.faults_stages import SOON, A, C, R, Stage, behind, digest_of
from tests.waiting import wait_until
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, Recorded, ScriptedUpstream
from wireglot_core.wire.json import encode

CALLERS = ("ada", "bob", "eve")
MODEL = "mine/m1"
POISON = "look at this image"


def keyed(name: str) -> str:
    return f"a-key-of-{name}-0123456789"


def team(upstream: ScriptedUpstream, lines: str = SOON) -> str:
    keys = "".join(f'{name} = "{digest_of(keyed(name))}"\n' for name in CALLERS)
    return provider("mine", upstream, "openai-chat", lines) + f"[keys]\n{keys}"


def asked_by(name: str, stage: Stage, text: str = "hi") -> Answered:
    return ask(stage[0], A, MODEL, text, headers={"authorization": f"Bearer {keyed(name)}"})


def is_open(gateway: LiveGateway) -> bool:
    return gateway.process.gateway.health.breakers[MODEL].is_open


def saying(status: int, message: str) -> Behaviour:
    error = {"error": {"code": status, "message": message, "type": "server_error"}}
    return Behaviour(status=status, body=encode(error), headers=(("content-type", "application/json"),))


def blind(message: str) -> ScriptedUpstream:
    """A server that takes text, and answers whatever speaks of an image with 500."""

    def decide(request: Recorded) -> Behaviour | None:
        return saying(500, message) if POISON.encode() in request.body else None

    return ScriptedUpstream(decide=decide)


def test_the_attempts_of_one_request_count_once() -> None:
    """[A2] Three attempts each would open a breaker of five with the second request."""
    with behind(lambda upstream: provider("mine", upstream, "openai-chat", SOON)) as (gateway, upstream):
        upstream.otherwise = Behaviour(error=503)
        for number in range(4):
            gateway.process.gateway.health.budgets.clear()
            assert ask(gateway, C, MODEL, f"request {number}").status == 503
        assert len(upstream.requests) == 12
        assert not is_open(gateway)
        assert ask(gateway, C, MODEL, "the fifth").status == 503
        assert is_open(gateway)


def test_a_request_that_was_answered_at_last_counts_as_answered() -> None:
    """[A2] A success resets."""
    with behind(lambda upstream: provider("mine", upstream, "openai-chat", SOON)) as (gateway, upstream):
        for _ in range(4):
            gateway.process.gateway.health.budgets.clear()
            upstream.next(*[Behaviour(error=503)] * 3)
            ask(gateway, C, MODEL)
        upstream.next(Behaviour(error=503))
        assert ask(gateway, C, MODEL).status == 200
        upstream.next(*[Behaviour(error=503)] * 3)
        ask(gateway, C, MODEL)
        assert not is_open(gateway)


@pytest.mark.parametrize(
    "message", ["image input is not supported - hint: you may need to provide the mmproj", "boom"]
)
def test_a_text_only_server_that_answers_images_with_500_stays_there_for_everybody(message: str) -> None:
    """[A2] Whether it says so, or is only known by refusing the same body the same way twice."""
    with blind(message) as upstream, LiveGateway(team(upstream)) as gateway:
        stage = gateway, upstream
        for turn in range(20):
            refused = asked_by("eve", stage, f"{POISON} {turn}")
            assert refused.status in (400, 500)
            if not turn % 5:
                assert asked_by("ada", stage).status == 200
                assert asked_by("bob", stage).status == 200
        assert not is_open(gateway)
        assert asked_by("ada", stage).status == 200


def test_what_a_server_says_it_cannot_do_is_asked_once_and_reported_as_the_requests_fault() -> None:
    """[A2] llama.cpp answers an image with 500 where the model cannot see."""
    with blind("image input is not supported") as upstream:
        lines = provider("mine", upstream, "openai-chat", SOON)
        with LiveGateway(lines) as gateway:
            for number in range(10):
                answered = ask(gateway, A, MODEL, f"{POISON} {number}")
                assert (answered.status, reported(A, answered).type) == (400, "invalid_request_error")
                assert answered.headers["x-should-retry"] == "false"
                assert "image input is not supported" in reported(A, answered).message
            assert len(upstream.requests) == 10
            own = ask(gateway, C, MODEL, POISON)
            assert (own.status, own.headers["x-should-retry"]) == (500, "false"), "in its own words"
            assert not is_open(gateway)


def test_what_one_server_cannot_do_the_next_of_a_chain_is_asked() -> None:
    """[A2]"""
    with blind("image input is not supported") as upstream, ScriptedUpstream() as seeing:
        chain = '[models]\n"m" = ["mine/m1", "seeing/m2"]\n'
        lines = provider("mine", upstream, "openai-chat", SOON) + provider("seeing", seeing, "gemini", SOON)
        with LiveGateway(lines + chain) as gateway:
            answered = ask(gateway, A, "m", POISON)
            assert (answered.status, answered.headers["x-wireglot-route"]) == (200, "seeing/m2")
            assert len(upstream.requests) == 1


def test_the_same_body_refused_the_same_way_twice_is_not_tried_again_nor_counted() -> None:
    """[A2] Whether it counts shows in what one caller alone can do: fifty in a row are no outage."""
    with blind("boom") as upstream, LiveGateway(provider("mine", upstream, "openai-chat", SOON)) as gateway:
        for number in range(50):
            gateway.process.gateway.health.budgets.clear()
            answered = ask(gateway, A, MODEL, f"{POISON} {number}")
            assert answered.status == 500
            assert "x-should-retry" not in answered.headers, "it may be an outage after all"
            assert logged(gateway, answered)["attempts"] == 2
        assert not is_open(gateway)


@pytest.mark.parametrize("status", [502, 503, 504, 529])
def test_an_outage_says_the_same_every_time_and_counts(status: int) -> None:
    """[A2] Only a 500 can be about a request: these are about the server."""
    with behind(lambda upstream: provider("mine", upstream, "openai-chat", SOON)) as (gateway, upstream):
        upstream.otherwise = saying(status, "boom")
        for _ in range(5):
            ask(gateway, A, MODEL)
        assert is_open(gateway)


def test_an_outage_whose_500s_cannot_be_tried_again_counts() -> None:
    """[A2] Where most fail the budget of retries is soon spent, and what was asked once proves nothing."""
    with behind(lambda upstream: provider("mine", upstream, "openai-chat", SOON)) as (gateway, upstream):
        upstream.otherwise = saying(500, "boom")
        for _ in range(12):
            ask(gateway, A, MODEL)
        assert is_open(gateway)


def test_one_callers_failures_close_the_model_for_that_caller_alone() -> None:
    """[A2] Five in a row of one caller: it is asked to wait, and nobody else is."""
    slow = "retry = { retries = 0 }\n"

    def decide(request: Recorded) -> Behaviour | None:
        return Behaviour(error=503) if POISON.encode() in request.body else None

    with ScriptedUpstream(decide=decide) as upstream, LiveGateway(team(upstream, slow)) as gateway:
        stage = gateway, upstream
        for number in range(5):
            asked_by("eve", stage, f"{POISON} {number}")
        assert is_open(gateway)
        refused = asked_by("eve", stage, "hi")
        assert (refused.status, len(upstream.requests)) == (503, 5), "eve is asked to wait"
        assert asked_by("ada", stage).status == 200
        wait_until(lambda: not is_open(gateway))
        assert asked_by("eve", stage).status == 200, "and ada's answer shows that the server is well"


def test_failures_of_several_callers_close_it_for_all() -> None:
    """[A2]"""
    with behind(lambda upstream: team(upstream, "retry = { retries = 0 }\n")) as stage:
        upstream = stage[1]
        upstream.otherwise = Behaviour(error=503)
        for name in ("eve", "eve", "eve", "bob", "bob"):
            asked_by(name, stage)
        upstream.otherwise = Behaviour()
        assert asked_by("ada", stage).status == 503
        assert len(upstream.requests) == 5


def test_a_deadline_of_the_callers_own_is_not_held_against_the_provider() -> None:
    """[A2] Anyone who gives it a hundredth of a second takes nothing from others."""
    lines = SOON + "breaker = { consecutive = 2 }\n"
    with behind(lambda upstream: provider("mine", upstream, "openai-chat", lines)) as (gateway, upstream):
        upstream.otherwise = Behaviour(fault="stall")
        for _ in range(4):
            assert ask(gateway, A, MODEL, headers={"x-wireglot-timeout": "0.02"}).status == 504
        assert not is_open(gateway)
        upstream.otherwise = Behaviour()
        assert ask(gateway, R, MODEL).status == 200


def test_a_probe_that_the_server_refuses_for_what_it_asks_costs_the_others_no_time() -> None:
    """[A2] One such request a minute kept a model down: it was the probe, and failed."""
    lines = SOON + "breaker = { consecutive = 1, probe_after = 0.05, probe_cap = 1000 }\n"
    with blind("boom") as upstream, LiveGateway(provider("mine", upstream, "openai-chat", lines)) as gateway:
        breaker = gateway.process.gateway.health.breakers[MODEL]
        upstream.next(*[Behaviour(error=503)] * 3)
        assert ask(gateway, C, MODEL).status == 503
        assert is_open(gateway)
        for number in range(3):
            wait_until(lambda: breaker.wait(gateway._loop.time(), "local") == 0)
            gateway.process.gateway.health.budgets.clear()
            assert ask(gateway, A, MODEL, f"{POISON} {number}").status == 500
            assert is_open(gateway), "it proves nothing"
        assert breaker.wait(gateway._loop.time(), "local") == 0
        assert ask(gateway, A, MODEL).status == 200
        wait_until(lambda: not is_open(gateway))


def test_anyone_who_leaves_while_it_is_tried_again_counts_for_nothing() -> None:
    """[A2] FAULTS 45"""
    lines = "retry = { retries = 2, base = 1000, cap = 1000 }\nbreaker = { consecutive = 1 }\n"
    with behind(lambda upstream: provider("mine", upstream, "openai-chat", lines)) as (gateway, upstream):
        upstream.otherwise = Behaviour(error=503)
        call = start(gateway, A, MODEL)
        upstream.wait_for(1)
        call.leave()
        wait_until(lambda: gateway.process.gateway.in_flight == 0)
        assert not is_open(gateway)


def test_a_storm_of_clients_makes_no_storm_of_attempts_and_passes_when_the_provider_is_well() -> None:
    """TESTPLAN R10, in small: `python -m proofs.lab.storm` is the whole of it."""
    lines = SOON + "breaker = { probe_after = 0.02, probe_cap = 0.02 }\n"
    with behind(lambda upstream: team(upstream, lines)) as stage, ThreadPoolExecutor(20) as clients:
        gateway, upstream = stage
        names = [CALLERS[number % 3] for number in range(200)]
        upstream.otherwise = Behaviour(error=503)
        failed = list(clients.map(lambda name: asked_by(name, stage), names))
        assert {answered.status for answered in failed} <= {503, 529}
        assert all("retry-after" in answered.headers for answered in failed)
        assert len(upstream.requests) <= 1.2 * len(names) + 3
        upstream.reset()
        wait_until(lambda: asked_by("ada", stage).status == 200)
        well = list(clients.map(lambda name: asked_by(name, stage), names))
        assert [answered.status for answered in well] == [200] * len(names)
        assert not is_open(gateway)
