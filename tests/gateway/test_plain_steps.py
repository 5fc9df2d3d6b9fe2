"""The steps that keep no state, each by itself: who is let in, where to, in which turn and for how long."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tiers import rows
from wireglot.gateway.entry.gates import Gates
from wireglot.gateway.errors import RequestError
from wireglot.gateway.process_limits import ProcessLimits
from wireglot.gateway.steps import (
    IdleAnswer,
    Pipeline,
    RequestKind,
    TimeLimit,
    admit,
    enter,
    route,
    route_embedding,
    steps_of,
)
from wireglot_core.dialects.registry import surface
from wireglot_core.wire.json import decode


class Client(SimpleNamespace):
    def model_name(self, asked: str) -> str:
        return asked.removeprefix(self.alias_prefix).removesuffix(self.alias_suffix)


def plain_client(**more: Any) -> Client:
    return Client(**{"alias_prefix": "", "alias_suffix": "", "idle": None, **more})


def made(**more: Any) -> Any:
    """An exchange as far as these steps look at it."""
    client = more.pop("client", plain_client())
    job = SimpleNamespace(
        model="big[1m]", dialect="d", conversation="", body=b"12345", timeout=None, settings="now", content="body",
        context="context", caller=SimpleNamespace(key=None, name=""), asked=SimpleNamespace(operation="generate"),
        surface=SimpleNamespace(client=client, stored=None, embeddings=None),
    )  # fmt: skip
    for name in [name for name in more if name in vars(job)]:
        setattr(job, name, more.pop(name))
    taken: list[Any] = []
    exchange = SimpleNamespace(
        job=job, targets=(), is_large=False, sealed=False, gates=[], tap=None, record=SimpleNamespace(waits=""),
        held=SimpleNamespace(take=taken.append), recall=lambda: taken.append("recalled"), taken=taken,
        request=lambda: taken.append("read"),
    )  # fmt: skip
    for name, value in more.items():
        setattr(exchange, name, value)
    return exchange


def test_who_is_let_in() -> None:
    gates = Gates(ProcessLimits())
    key = SimpleNamespace(models=("big",))
    caller = SimpleNamespace(key=key, name="k")
    long = plain_client(alias_suffix="[1m]")
    admit(gates, made())
    admit(gates, made(caller=caller, client=long))
    with pytest.raises(RequestError, match="may not use the model") as denied:
        admit(gates, made(caller=caller))
    assert denied.value.status == 403
    gates.draining = True
    with pytest.raises(RequestError, match="shutting down") as refused:
        admit(gates, made())
    assert refused.value.status == 503


class Targets:
    """Stands for the router."""

    def __init__(self, *, conditions: bool = False, passes: bool = True) -> None:
        self.asked: list[Any] = []
        self.has_conditions = conditions
        self.found = (SimpleNamespace(dialect="d" if passes else "e", plain=True),)

    def reads_body(self, settings: Any, model: str) -> bool:
        self.asked.append(("reads", settings, model))
        return True

    def targets(self, settings: Any, model: str, dialect: str, exchange: Any) -> Any:
        self.asked.append((settings, model, dialect))
        return self.found

    embedding_targets = targets


def routed(router: Any, exchange: Any) -> list[Any]:
    waiting = route(router, exchange)
    if waiting is not None:
        asyncio.run(_finish(waiting))
    return list(exchange.taken)


async def _finish(waiting: Any) -> None:
    await waiting


@rows(
    ("exchange", "asked"),
    [
        (made(), [("now", "big[1m]", "d")]),
        (made(client=plain_client(alias_suffix="[1m]")), [("now", "big", "d")]),
        (made(model="x/big", client=plain_client(alias_prefix="x/")), [("now", "big", "d")]),
        (made(targets=("before",)), []),
    ],
)
def test_where_a_request_goes(exchange: Any, asked: list[Any]) -> None:
    router = Targets()
    assert routed(router, exchange) == []
    assert router.asked == asked
    assert exchange.targets == (router.found if asked else ("before",))


@rows(
    ("router", "more", "taken"),
    [
        (Targets(), {}, []),
        (Targets(), {"sealed": True}, ["recalled", "read"]),
        (Targets(), {"conversation": "c"}, [5, "recalled", "read"]),
        (Targets(passes=False), {}, [5, "recalled", "read"]),
    ],
)
def test_a_large_body_is_read_where_it_must_be(router: Any, more: dict[str, Any], taken: list[Any]) -> None:
    exchange = made(is_large=True, **more)
    assert routed(router, exchange) == taken
    assert exchange.record.waits == ("body" if taken else "")
    assert exchange.targets == router.found


def test_a_large_body_is_read_before_a_rule_that_looks_into_it() -> None:
    router = Targets(conditions=True)
    exchange = made(is_large=True)
    assert routed(router, exchange) == [5, "recalled", "read"]
    assert router.asked == [("reads", "now", "big[1m]"), ("now", "big[1m]", "d")]
    small = made()
    assert routed(router, small) == []
    known = made(is_large=True)
    known.recall = lambda: setattr(known, "is_large", False)
    assert routed(Targets(conditions=True), known) == [5]


def test_a_body_that_cannot_be_read_is_refused_by_the_step_that_needs_it() -> None:
    def broken() -> None:
        raise RequestError("bad", "no")

    exchange = made(is_large=True, sealed=True, request=broken)
    assert routed(Targets(), exchange) == ["recalled"]


def test_a_request_for_embeddings_holds_no_state() -> None:
    router: Any = Targets()
    exchange = made(sealed=True, client=plain_client(alias_suffix="[1m]"))
    route_embedding(router, exchange)
    assert (exchange.sealed, exchange.targets, router.asked) == (False, router.found, [("now", "big", "d")])


def test_turns_are_taken_at_every_gate_in_their_order() -> None:
    limits = ProcessLimits(requests=1, requests_per_key=1, queue=1)
    passed: list[str] = []
    tap = SimpleNamespace(passed=passed.append)
    caller = SimpleNamespace(key="key", name="k")

    async def work() -> None:
        gates: Any = Gates(limits)
        first = made(caller=caller, tap=tap)
        first.job.settings = SimpleNamespace(limits=limits)
        second = made(caller=caller, tap=tap)
        second.job.settings = first.job.settings
        assert enter(gates, first) is None
        assert first.gates == list(gates.of(caller, limits))
        waiting: Any = enter(gates, second)
        assert (second.gates, second.record.waits, passed) == ([], "", ["store", "store"])
        task = asyncio.create_task(waiting)
        await asyncio.sleep(0)
        assert (second.record.waits, gates.waiting) == ("queue", 1)
        for gate in first.gates:
            gate.leave()
        await task
        assert (second.gates, passed) == (first.gates, ["store", "store", "queue"])
        third = made(caller=caller)
        third.job.settings = first.job.settings
        third.gates = []
        gates.all.leave()
        last: Any = enter(gates, third)
        assert third.gates == [gates.all], "its key has no place left"
        last.close()

    asyncio.run(work())


class Inner:
    def __init__(self, seconds: float = 0.0) -> None:
        self.answered = 0
        self._seconds = seconds

    async def answer(self, exchange: Any) -> None:
        self.answered += 1
        await asyncio.sleep(self._seconds)


def test_a_whole_answer_has_the_time_that_its_caller_gives() -> None:
    inner = Inner()
    asyncio.run(TimeLimit(inner).answer(made(timeout=60.0)))
    assert inner.answered == 1
    with pytest.raises(RequestError) as late:
        asyncio.run(TimeLimit(Inner(3600)).answer(made(timeout=0.0)))
    assert (late.value.status, late.value.error.message) == (504, "no complete answer within 0 seconds")


@rows(
    ("operation", "idle", "embed_idle", "body"),
    [
        ("generate", {"a": 1}, {"b": 2}, {"a": 1}),
        ("embed", {"a": 1}, {"b": 2}, {"b": 2}),
        ("generate", None, {"b": 2}, None),
        ("embed", {"a": 1}, None, None),
    ],
)
def test_what_asks_nothing_of_its_model_is_answered_at_once(
    operation: str, idle: Any, embed_idle: Any, body: Any
) -> None:
    said: list[Any] = []
    noted: list[Any] = []
    exchange = made(
        asked=SimpleNamespace(operation=operation),
        client=plain_client(idle=lambda content, context: idle),
        reply=SimpleNamespace(send=lambda *what: said.append(what)),
        headers=lambda: [("x-request-id", "r")],
        record=SimpleNamespace(answered=noted.append, noted=noted.append),
    )  # fmt: skip
    form = SimpleNamespace(idle=lambda content, context: embed_idle)
    exchange.job.surface.embeddings = SimpleNamespace(forms={"embed_one": form})
    exchange.job.embed_operation = "embed_one"
    inner = Inner()
    asyncio.run(IdleAnswer(inner).answer(exchange))
    assert inner.answered == (body is None)
    if body is None:
        assert said == noted == []
        return
    ((status, headers, data),) = said
    assert (status, headers, decode(data)) == (
        200,
        [("content-type", "application/json"), ("x-request-id", "r")],
        body,
    )
    assert noted == [200, "no model call needed: answered by the gateway"]


def test_only_ollama_has_requests_that_ask_nothing() -> None:
    facts = dict.fromkeys(("has_key", "has_timeout", "is_idempotent", "is_conversation", "is_own"), False)
    for dialect, operation, there in (
        ("ollama", "generate", True),
        ("ollama", "embed", True),
        ("openai-chat", "generate", False),
    ):
        names = [step.name for step in steps_of(RequestKind(surface(dialect), operation, **facts))]
        assert ("IdleAnswer" in names) is there


@rows(
    ("more", "fact"),
    [
        ({}, None),
        ({"caller": SimpleNamespace(key="k")}, "has_key"),
        ({"timeout": 5.0}, "has_timeout"),
        ({"head": SimpleNamespace(headers={"idempotency-key": "k"})}, "is_idempotent"),
        ({"conversation": "c"}, "is_conversation"),
        ({"within": "req_1"}, "is_own"),
    ],
)
def test_the_kind_of_a_request(
    more: dict[str, Any], fact: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: Any = SimpleNamespace()
    pipeline = Pipeline(parts)
    kinds: list[RequestKind] = []
    monkeypatch.setattr(pipeline, "chain", kinds.append)
    within = more.pop("within", "")
    job = {"surface": surface("openai-chat"), "asked": SimpleNamespace(operation="count"), "caller": SimpleNamespace(key=None),
           "timeout": None, "head": SimpleNamespace(headers={}), "conversation": "", **more}  # fmt: skip
    exchange: Any = SimpleNamespace(job=SimpleNamespace(**job), record=SimpleNamespace(within=within))
    pipeline.of(exchange)
    (kind,) = kinds
    assert (kind.surface, kind.operation) == (surface("openai-chat"), "count")
    names = ("has_key", "has_timeout", "is_idempotent", "is_conversation", "is_own")
    assert [name for name in names if getattr(kind, name)] == ([fact] if fact else [])
