"""An exchange that is over is freed at once: nothing of it waits in a circle for the collector, which looks at
what is old only now and then. Bodies and answers of hours would stay until it does."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.gateway.faults.faults_kit import (
    CLIENTS,
    UPSTREAMS,
    Call,
    Client,
    ask,
    every_dialect,
    model_at,
    post,
    start,
)
from tests.gateway.faults.faults_stages import (  # noqa: F401  # a fixture
    A,
    C,
    R,
    Stage,
    brief_rests,
    pair_name,
    stage_behind,
)
from tests.waiting import wait_until
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot.testing.scripted_upstream.behaviour import Fault
from wireglot_core.wire.json import encode

TIMES = 3
LONG = "[[demo:text 40]]"


def _toml(upstream: ScriptedUpstream) -> str:
    return every_dialect(upstream) + "[providers.demo]\n"


stage = stage_behind(_toml)


@pytest.fixture(autouse=True, scope="module")
def _older_objects_are_spared() -> None:
    """Each look would go through all modules and SDKs; what the gateway makes from here on is looked at."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _fresh(stage: Stage) -> None:
    stage[1].reset()


@contextmanager
def nothing_waits(stage: Stage) -> Iterator[None]:
    app, server = stage[0].process.gateway, stage[0].process.server
    gc.collect()
    gc.disable()
    try:
        yield
        wait_until(lambda: app.in_flight == 0 and app.waiting == 0 and server.requests == 0)
        wait_until(lambda: not (ours := _circles()) or pytest.fail(f"these wait for the collector: {ours}"))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def _circles() -> dict[str, int]:
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    found = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.garbage)
    gc.garbage.clear()
    return {
        name: many for name, many in found.items() if name.startswith(("wireglot.gateway", "wireglot.http"))
    }


@pytest.mark.sampled("client.name", "source")
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("source", UPSTREAMS)
@pytest.mark.parametrize("client", CLIENTS, ids=pair_name)
def test_of_an_answer(stage: Stage, client: Client, source: str, stream: bool) -> None:
    with nothing_waits(stage):
        for _ in range(TIMES):
            assert ask(stage[0], client, model_at(source), LONG, stream=stream).status == 200


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("text", ["[[demo:tool look {}]]", "[[demo:think]] [[demo:echo]]"])
@pytest.mark.parametrize("client", [A, C, R], ids=pair_name)
def test_of_a_call_and_of_thoughts(stage: Stage, client: Client, text: str, stream: bool) -> None:
    with nothing_waits(stage):
        for _ in range(TIMES):
            ask(stage[0], client, "demo/demo-gemini", text, stream=stream)


@pytest.mark.sampled(each=12)
@pytest.mark.usefixtures("brief_rests")
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    "behaviour",
    [
        Behaviour(error=400),
        Behaviour(error=429),
        Behaviour(error=503),
        Behaviour(fault="reset-midstream"),
        Behaviour(fault="reset"),
        Behaviour(body=b"no answer"),
    ],
    ids=["400", "429", "503", "reset within", "reset", "unreadable"],
)
@pytest.mark.parametrize("source", ["openai-chat", "anthropic"])
def test_of_a_failure(stage: Stage, source: str, behaviour: Behaviour, stream: bool) -> None:
    with nothing_waits(stage):
        for _ in range(TIMES):
            stage[1].next(behaviour)
            ask(stage[0], C, model_at(source), LONG, stream=stream)


LARGE = 200_000
"""Bytes of a body that is read in a worker thread."""
BAD_BODIES = {
    "no JSON": lambda body: encode(body)[:-1],
    "too many members": lambda body: encode({**body, "metadata": {"numbers": [0] * 600_000}}),
    "no conversation": lambda body: encode(dict.fromkeys(body, 7)),
    "a part of no type": lambda body: encode(body).replace(b'"hi', b'[{"type":7}],"more":"'),
    "no such model": lambda body: encode({**body, "model": "nowhere/m1"}),
}


@pytest.mark.sampled("client.name", "bad", "size")
@pytest.mark.parametrize("size", [0, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("bad", BAD_BODIES)
@pytest.mark.parametrize("client", CLIENTS, ids=pair_name)
def test_of_a_body_that_is_refused(stage: Stage, client: Client, bad: str, size: int) -> None:
    model = model_at("anthropic" if client.dialect == "openai-chat" else "openai-chat")
    body = BAD_BODIES[bad](client.body(model, "hi" + "x" * size, stream=False))
    path = client.path("nowhere/m1" if bad == "no such model" else model, stream=False)
    with nothing_waits(stage):
        for _ in range(TIMES):
            assert post(stage[0].port, path, body).status >= 400


@pytest.mark.parametrize("size", [0, LARGE], ids=["small", "large"])
def test_of_a_background_request_that_is_refused(stage: Stage, size: int) -> None:
    turn = {"role": "user", "content": 7}
    body = {"model": model_at("openai-chat"), "background": True, "input": [turn], "user": "x" * size}
    with nothing_waits(stage):
        for _ in range(TIMES):
            assert post(stage[0].port, R.path("", stream=False), encode(body)).status == 400


@pytest.mark.usefixtures("brief_rests")
@pytest.mark.parametrize(
    "behaviour",
    [
        Behaviour(error=400),
        Behaviour(error=503),
        Behaviour(body=b"x" * LARGE),
        Behaviour(body=encode({"choices": 7, "content": 7, "padding": "x" * LARGE})),
        Behaviour(body=encode({"error": {"message": "x" * LARGE}})),
    ],
    ids=["400", "503", "no JSON", "unreadable", "an error"],
)
@pytest.mark.parametrize("source", ["openai-chat", "anthropic"])
def test_of_a_large_body_that_fails(stage: Stage, source: str, behaviour: Behaviour) -> None:
    with nothing_waits(stage):
        for _ in range(TIMES):
            stage[1].next(behaviour)
            assert ask(stage[0], C, model_at(source), "x" * LARGE).status >= 400


@pytest.mark.parametrize("fault", ["stall", "stall-midstream"])
@pytest.mark.parametrize("source", ["openai-chat", "anthropic"])
def test_of_a_client_that_left(stage: Stage, source: str, fault: Fault) -> None:
    with nothing_waits(stage):
        for number in range(1, TIMES + 1):
            stage[1].next(Behaviour(fault=fault))
            call: Call = start(stage[0], C, model_at(source), LONG, stream=True)
            stage[1].wait_for(number)
            if fault == "stall-midstream":
                call.until(b"{")
            call.leave()
