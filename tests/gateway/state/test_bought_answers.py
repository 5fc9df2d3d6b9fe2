"""An answer that was bought is delivered, whatever became of the store meanwhile; and a store that hangs costs a
few requests a wait, and all others none."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import openai
import pytest

from proofs.lab.link import Link, Reply
from tests.gateway.state.background_kit import finished
from tests.gateway.state.ledger_kit import ORDERS
from tests.gateway.state.responses_kit import Stage
from tests.stores.troubled import Troubled
from tests.tiers import rows
from tests.waiting import wait_until
from wireglot.gateway.state.responses.background_work import UNSTORED
from wireglot.gateway.state.responses.store import Unstored
from wireglot.gateway.state.tasks import Pace
from wireglot.stores.bounded import FAILURES_TO_OPEN
from wireglot.stores.journal.journal import JournalFull
from wireglot.stores.records import UsageRow
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour

QUICK = '[store]\nurl = "memory:"\ntimeout = 0.05\n'
"""Only what hangs takes as long as that: memory never does."""
NEVER = Pace(store_look_seconds=3600.0)
"""Nobody looks whether the store is back, but for the test."""


def troubled(gateway: LiveGateway, part: str) -> Troubled:
    engine: Any = gateway.process.state.engine
    wrapped = Troubled(getattr(engine.behind, part), "/var/lib/store.db: there is no space left")
    setattr(engine.behind, part, wrapped)
    return wrapped


def ask(
    gateway: LiveGateway, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> Reply:
    async def one() -> Reply:
        link = Link(gateway.port)
        try:
            return await link.ask(method, path, body, headers)
        finally:
            link.close()

    return asyncio.run(one())


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage("openai-chat", QUICK) as running:
        running.gateway.process.state.pace = NEVER
        yield running


@pytest.mark.parametrize("how", ["hangs", "fails"])
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("said", [{}, {"store": True}])
def test_an_answer_that_cannot_be_stored_is_delivered_and_says_so(
    stage: Stage, how: str, streaming: bool, said: dict[str, Any]
) -> None:
    """[A7] FAULTS 93: durable before it is acknowledged, and never thrown away when it is paid for."""
    documents = troubled(stage.gateway, "documents")
    getattr(documents, how).add("put")
    asked = {"model": "m1", "input": "[[demo:echo]] bought-word", **said}
    if streaming:
        events = list(stage.alice.responses.create(**asked, stream=True))
        assert [event.type for event in events].count("response.completed") == 1
        answer = events[-1].response
    else:
        answer = stage.alice.responses.create(**asked)
    assert (answer.status, answer.store) == ("completed", False)
    assert "bought-word" in answer.output_text
    (line,) = stage.gateway.wait_log(1)
    assert (line["status"], line["outcome"]) == (200, "ok")
    reported = json.dumps(line)
    assert "storage" in reported
    documents.hangs.clear()
    documents.fails.clear()

    # The id is nobody's, and anyone who asks for it is shown why.
    with pytest.raises(openai.NotFoundError, match="store: false, because the gateway's store") as caught:
        stage.alice.responses.retrieve(answer.id)
    assert "/var/lib" not in str(caught.value)
    with pytest.raises(openai.NotFoundError, match="store: false"):
        stage.alice.responses.delete(answer.id)
    with pytest.raises(openai.NotFoundError) as other:
        stage.bob.responses.retrieve(answer.id)
    assert "store: false" not in str(other.value)
    stage.gateway.process.state.store_health.trouble = ""
    with pytest.raises(openai.BadRequestError, match="store: false"):
        stage.alice.responses.create(model="m1", input="and then?", previous_response_id=answer.id)
    assert len(stage.upstream.requests) == 1


def test_the_loss_is_serious_and_stands_in_the_head_of_a_whole_answer(stage: Stage) -> None:
    """[A7]"""
    troubled(stage.gateway, "documents").fails.add("put")
    raw = stage.alice.responses.with_raw_response.create(
        model="m1", input="hi", extra_headers={"x-wireglot-loss-details": "1"}
    )
    assert "storage" in raw.headers["x-wireglot-losses"]
    losses = json.loads(raw.headers["x-wireglot-loss-details"])
    (found,) = [loss for loss in losses if loss["feature"] == "storage"]
    assert (found["grade"], found["path"], found["document"]) == ("serious", "$.store", "response")


def test_a_store_that_is_known_to_be_down_is_said_before_anything_is_bought(stage: Stage) -> None:
    """[A7]"""
    troubled(stage.gateway, "documents").fails.add("put")
    assert stage.alice.responses.create(model="m1", input="hi", store=True).store is False
    with pytest.raises(openai.InternalServerError) as caught:
        stage.alice.responses.create(model="m1", input="hi", store=True)
    assert (caught.value.status_code, caught.value.code) == (503, "storage_unavailable")
    assert len(stage.upstream.requests) == 1
    assert stage.alice.responses.create(model="m1", input="hi").store is False


@pytest.mark.parametrize("streaming", [False, True])
def test_a_turn_that_its_session_cannot_hold_is_delivered_with_a_loss(stage: Stage, streaming: bool) -> None:
    """[A7]"""
    documents = troubled(stage.gateway, "documents")
    documents.fails |= {"put", "append"}
    body = {
        "model": "m1",
        "messages": [{"role": "user", "content": "[[demo:echo]] bought-word"}],
        "conversation": "mine",
        "stream": streaming,
    }
    connection = ask(
        stage.gateway,
        "POST",
        "/v1/chat/completions",
        body,
        {"authorization": f"Bearer {stage.alice.api_key}"},
    )
    assert connection.status == 200
    assert b"bought-word" in connection.body
    if streaming:
        assert b"[DONE]" in connection.body
    else:
        assert "storage" in connection.headers["x-wireglot-losses"]
    (line,) = stage.gateway.wait_log(1)
    assert "storage" in json.dumps(line)


def test_what_a_call_that_was_given_up_left_in_the_store_goes_when_it_is_back(stage: Stage) -> None:
    """[A7] A write that nobody waited for to its end may have happened: the client was informed otherwise."""
    documents = troubled(stage.gateway, "documents")
    real = documents.behind.put

    async def put_and_hang(*values: Any, **named: Any) -> bool:
        await real(*values, **named)
        await asyncio.Event().wait()
        return True

    documents.behind.put = put_and_hang
    answer = stage.alice.responses.create(model="m1", input="hi")
    assert answer.store is False
    assert [kept.id for kept in stage.stored("response")] == [answer.id]
    documents.behind.put = real
    state: Any = stage.gateway.process.state
    stage.gateway.call(state._look())
    assert stage.stored("response") == []
    assert state.trouble == ""
    assert stage.alice.responses.create(model="m1", input="hi").store is True


def test_a_background_response_whose_turn_cannot_be_held_has_failed_with_the_reason(stage: Stage) -> None:
    """[A7] There is nobody to deliver it to."""
    conversation = stage.alice.conversations.create()
    documents = troubled(stage.gateway, "documents")
    documents.fails.add("append")
    made = stage.alice.responses.create(model="m1", input="hi", background=True, conversation=conversation.id)
    over = finished(stage.alice, made.id)
    assert over.status == "failed"
    assert over.error is not None
    assert "could not be stored" in over.error.message


def test_a_background_response_whose_end_cannot_be_stored_has_failed_with_the_reason(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A7]"""
    monkeypatch.setattr("wireglot.gateway.state.responses.background_work._AGAIN_SECONDS", ())
    documents, gate = troubled(stage.gateway, "documents"), threading.Event()
    stage.upstream.next(Behaviour(gate=gate))
    made = stage.alice.responses.create(model="m1", input="hi", background=True)
    documents.fails |= {"put", "replace"}
    gate.set()
    stage.gateway.wait_log(1, "background")
    documents.fails.clear()
    state: Any = stage.gateway.process.state
    stage.gateway.call(state._look())
    over = finished(stage.alice, made.id)
    assert over.error is not None
    assert (over.status, over.error.message) == ("failed", UNSTORED)


@rows("streaming", [False, True])
@rows("order", ORDERS)
def test_where_the_books_are_required_a_request_is_refused_before_it_is_asked_and_never_after(
    monkeypatch: pytest.MonkeyPatch, streaming: bool, order: str
) -> None:
    """[A7] What was bought is delivered, also where the journal takes its completion no more."""
    toml = f'[providers.demo]\n[store]\nledger_required = true\nsync = "{order}"\n'
    with LiveGateway(toml) as gateway:
        journal = gateway.process.state.ledger.journal
        append = journal.append

        def full(*_: Any, **__: Any) -> int:
            raise JournalFull("the journal is full")

        def full_for_completions(row: UsageRow, leave: int = 0, *, gather: bool = False) -> int:
            return full() if row.outcome else append(row, leave, gather=gather)

        monkeypatch.setattr(journal, "append", full_for_completions)
        body = {"model": "demo", "messages": [{"role": "user", "content": "hi"}], "stream": streaming}
        bought = ask(gateway, "POST", "/v1/chat/completions", body)
        assert bought.status == 200
        assert (b"[DONE]" in bought.body) == streaming
        monkeypatch.setattr(journal, "append", full)
        refused = ask(gateway, "POST", "/v1/chat/completions", body)
        assert refused.status == 503
        assert b"usage cannot be recorded" in refused.body


def test_only_so_many_ids_are_remembered() -> None:
    """[A7]"""
    unstored = Unstored(most=3)
    for number in range(5):
        unstored.add("alice", f"resp_{number}")
    assert [number for number in range(5) if ("alice", f"resp_{number}") in unstored] == [2, 3, 4]
    assert ("bob", "resp_4") not in unstored
    unstored.cleared(("alice", "resp_4"))
    assert unstored.doubtful() == [("alice", "resp_2"), ("alice", "resp_3")]
    assert ("alice", "resp_4") in unstored


THINKING = {
    "model": "demo-gemini",
    "messages": [
        {"role": "user", "content": "[[demo:think]] hi"},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "[[demo:think]] again"},
    ],
}


def test_a_vault_that_hangs_costs_a_few_turns_a_wait_and_the_rest_none() -> None:
    """[A7] A hung Redis added seconds to every turn to a thinking model, for the whole outage."""
    with LiveGateway(f"[providers.demo]\n{QUICK}").at(NEVER) as gateway:
        vault, documents = troubled(gateway, "vault"), troubled(gateway, "documents")
        vault.hangs |= {"keep", "recall"}
        documents.hangs.add("put")  # of losses, by and by
        for _ in range(4 * FAILURES_TO_OPEN):
            assert ask(gateway, "POST", "/v1/chat/completions", THINKING).status == 200
        assert vault.asked.count("recall") == FAILURES_TO_OPEN
        assert 1 <= vault.asked.count("keep") <= FAILURES_TO_OPEN
        ready = ask(gateway, "GET", "/readyz")
        assert (ready.status, ready.json()["status"]) == (200, "degraded")
        metrics = ask(gateway, "GET", "/metrics").body.decode()
        assert 'wireglot_store_breaker_open{part="store",calls="reads"} 1' in metrics
        assert 'wireglot_store_breaker_open{part="store",calls="writes"} 1' in metrics
        assert 'wireglot_store_refused_total{part="store",calls="reads"} 9' in metrics

        vault.hangs.clear()
        documents.hangs.clear()
        state: Any = gateway.process.state
        gateway.call(state._look())
        assert ask(gateway, "GET", "/readyz").json()["status"] == "ready"
        asked = len(vault.asked)
        assert ask(gateway, "POST", "/v1/chat/completions", THINKING).status == 200
        assert len(vault.asked) == asked + 2


def test_a_database_that_another_process_has_locked_costs_no_answer(tmp_path: Path) -> None:
    """[A7] FAULTS 94, with a file that is really locked."""
    with Stage("openai-chat", "[store]\ntimeout = 1.0\n", folder=tmp_path) as stage:
        first = stage.alice.responses.create(model="m1", input="before")
        assert first.store is True
        (file,) = tmp_path.rglob("wireglot.db")
        other = apsw.Connection(str(file))
        other.execute("BEGIN IMMEDIATE")
        locked = [
            stage.alice.responses.create(model="m1", input=f"[[demo:echo]] word-{number}")
            for number in range(3)
        ]
        assert [answer.store for answer in locked] == [False] * 3
        assert [f"word-{number}" in answer.output_text for number, answer in enumerate(locked)] == [True] * 3
        assert stage.alice.responses.retrieve(first.id).id == first.id  # it can be read as ever
        other.execute("ROLLBACK")
        other.close()
        wait_until(lambda: stage.alice.responses.create(model="m1", input="after").store)
        for answer in locked:
            with pytest.raises(openai.NotFoundError, match="store: false"):
                stage.alice.responses.retrieve(answer.id)
        stage.restart()  # nor is anything of them found by the one that comes next
        assert stage.alice.responses.retrieve(first.id).id == first.id
        for answer in locked:
            with pytest.raises(openai.NotFoundError):
                stage.alice.responses.retrieve(answer.id)
