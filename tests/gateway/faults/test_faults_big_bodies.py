"""FAULTS 23: nobody waits for another's large body."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from proofs.lab.monsters import DIALECTS, answer, path, properties, request, said, text, tool_turns
from tests.gateway.faults.faults_kit import ONCE, Answered, post, provider
from tests.gateway.faults.faults_stages import Stage
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.gateway.app import Gateway
from wireglot.gateway.relay import delivery, preparation
from wireglot.gateway.request import worker_thread
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, Recorded, ScriptedUpstream
from wireglot_core.ir.verdict import accept
from wireglot_core.translate import plan
from wireglot_core.wire.json import decode, encode

PAIRS = [(source, target) for source in DIALECTS for target in DIALECTS]
OTHERS = [(source, target) for source, target in PAIRS if source != target]
WORDS = "ok"


class Answers:
    words = WORDS

    def decide(self, asked: Recorded) -> Behaviour:
        ending = asked.path.rpartition("/")[2]
        dialect = next(name for name in DIALECTS if path(name, "m1").rpartition("/")[2] == ending)
        return Behaviour(body=encode(answer(dialect, self.words)))


ANSWERS = Answers()


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with ScriptedUpstream(decide=ANSWERS.decide) as upstream:
        toml = "".join(provider(f"{name}-up", upstream, name, ONCE) for name in DIALECTS)
        with LiveGateway(toml) as gateway:
            yield gateway, upstream


@pytest.fixture(autouse=True)
def _fresh(stage: Stage) -> None:
    stage[1].reset()
    ANSWERS.words = WORDS


def sent(stage: Stage, source: str, target: str, body: dict[str, Any]) -> Answered:
    model = f"{target}-up/m1"
    if source != "gemini":
        body = {**body, "model": model}
    return post(stage[0].port, path(source, model), encode(body))


def threads_of(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, original: Callable[..., Any]
) -> set[str]:
    """The names of the threads in which a function of a module runs from now on."""
    seen: set[str] = set()

    def spy(*given: Any, **more: Any) -> Any:
        seen.add(threading.current_thread().name.partition("_")[0])
        return original(*given, **more)

    monkeypatch.setattr(module, name, spy)
    return seen


@pytest.mark.sampled("source")
@pytest.mark.parametrize(("source", "target"), OTHERS)
def test_a_large_body_is_translated_beside_the_loop(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, source: str, target: str
) -> None:
    """[A5]"""
    seen = threads_of(monkeypatch, preparation, "plan", plan)
    assert sent(stage, source, target, request(source, tool_turns(1200))).status == 200
    assert seen == {worker_thread.THREAD_NAME}


@pytest.mark.sampled("source")
@pytest.mark.parametrize(("source", "target"), OTHERS)
def test_a_large_answer_is_translated_beside_the_loop(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, source: str, target: str
) -> None:
    """[A5]"""
    ANSWERS.words = text(worker_thread.LARGE_BYTES)
    seen = threads_of(monkeypatch, delivery, "accept", accept)
    answered = sent(stage, source, target, request(source, said("hi")))
    assert answered.status == 200
    assert ANSWERS.words.encode() in answered.body
    assert seen == {worker_thread.THREAD_NAME}


@pytest.mark.sampled("source")
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_beside_the_loop_the_same_comes_of_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, source: str, target: str
) -> None:
    """[A5] What goes out, what comes back, what is reported about losses."""
    body = request(source, tool_turns(1200), properties(300))
    ANSWERS.words = text(worker_thread.LARGE_BYTES)
    found = []
    for most in (worker_thread.LARGE_BYTES, 10**9):
        for module in ("app.LARGE_BYTES", "relay.delivery.LARGE_BYTES", "request.exchange.LARGE_BYTES"):
            monkeypatch.setattr(f"wireglot.gateway.{module}", most)
        answered = sent(stage, source, target, body)
        reported = {key: value for key, value in answered.headers.items() if key.startswith("x-wireglot-lo")}
        found.append((answered.status, _without_ids(answered.body), reported, stage[1].requests[-1].body))
    assert found[0] == found[1]
    assert found[0][0] == 200


def _without_ids(body: bytes) -> Any:
    """Ids that are minted hang on the request's own."""
    if isinstance(document := decode(body), dict):
        return {
            key: value
            for key, value in document.items()
            if key not in ("id", "created", "created_at", "completed_at", "output")
        }
    return document


@pytest.mark.sampled(each=1)
@pytest.mark.parametrize("kind", ["60,000 properties", "20,000 tool turns"])
def test_others_are_answered_while_a_monster_is_translated(
    stage: Stage, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A5] It does not go on before they are: on the loop itself, nobody would be answered."""
    gateway, upstream = stage
    many = tool_turns(20_000) if kind.startswith("20") else said("hi")
    schema = properties(60_000) if kind.startswith("60") else properties(1)
    body = request("openai-chat", many, schema)
    begun, go_on = threading.Event(), threading.Event()

    def held(*given: Any, **more: Any) -> Any:
        begun.set()
        assert go_on.wait(DEADLINE_SECONDS)
        return plan(*given, **more)

    monkeypatch.setattr(preparation, "plan", held)
    link = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS / 2)
    with ThreadPoolExecutor(1) as client:
        monster = client.submit(sent, stage, "openai-chat", "anthropic", body)
        assert begun.wait(DEADLINE_SECONDS)
        for _ in range(5):
            link.request("GET", "/healthz")
            assert link.getresponse().read() is not None
        assert not upstream.requests
        go_on.set()
        assert monster.result().status == 200
    link.close()


def test_a_client_that_leaves_meanwhile_leaves_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """[A5] Nobody is asked for it, and nothing of it stays on the account."""
    gateway, upstream = stage
    begun, go_on = threading.Event(), threading.Event()

    def slow(*given: Any, **more: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return plan(*given, **more)

    monkeypatch.setattr(preparation, "plan", slow)
    model = "anthropic-up/m1"
    body = encode({**request("openai-chat", tool_turns(1200)), "model": model})
    link = http.client.HTTPConnection("127.0.0.1", gateway.port)
    link.request("POST", path("openai-chat", model), body, {"content-type": "application/json"})
    assert begun.wait(60)
    inside: Gateway = gateway.process.gateway
    link.close()
    wait_until(lambda: inside.in_flight == 0 and gateway.process.server.buffered == 0)
    go_on.set()
    monkeypatch.undo()
    assert sent(stage, "openai-chat", "anthropic", request("openai-chat", tool_turns(1200))).status == 200
    assert len(upstream.requests) == 1
    wait_until(lambda: gateway.process.server.buffered == 0)
