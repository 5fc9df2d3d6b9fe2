"""`GET /v1/requests/{id}/losses`: all that could not cross of a request, for its caller, for an hour."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anthropic
import pytest

from tests.gateway.state.responses_kit import ALICE, BOB, Stage
from tests.waiting import wait_until
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.state.losses import shelf
from wireglot.gateway.state.losses.shelf import ENTRY_BYTES, KEPT_SECONDS, LossShelf
from wireglot.gateway.state.stored_forms import LOSSES
from wireglot.stores.base import Documents, StoreDown
from wireglot.stores.memory import MemoryEngine
from wireglot.stores.memory.engine import MemoryDocuments
from wireglot.stores.records import Document
from wireglot.testing.live_gateway import BASES, LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot_core.ir.loss import Loss

BENT: dict[str, Any] = {
    "model": "m1",
    "max_tokens": 100,
    "extra_body": {"top_k": 5},
    "metadata": {"user_id": "u"},
    "messages": [{"role": "user", "content": "Hi"}],
    "tools": [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        {"name": "f", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}},
    ],
}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage("openai-chat") as stage:
        yield stage


def claude(stage: Stage, key: str = ALICE) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=stage.gateway.url, api_key=key, max_retries=0)


def asked(stage: Stage, headers: dict[str, str] | None = None, **more: Any) -> Any:
    with claude(stage) as client:
        return client.messages.with_raw_response.create(**BENT, **more, extra_headers=headers or {})


def page(stage: Stage, id: str, key: str = ALICE) -> tuple[int, Any]:
    return stage.ask("GET", f"/v1/requests/{id}/losses", key=key)


def test_all_losses_of_a_request_are_reported_at_their_places_in_its_body(stage: Stage) -> None:
    """[X25]"""
    answer = asked(stage)
    id = answer.headers["x-wireglot-request-id"]
    status, reported = page(stage, id)
    assert status == 200
    assert (reported["request_id"], reported["route"], reported["unreported"]) == (id, "mine/m1", 0)
    found = {loss["feature"]: loss for loss in reported["losses"]}
    assert found["hosted_tool"]["path"] == "$.tools[0]"
    assert found["hosted_tool"]["grade"] == "serious"
    assert found["sampling.top_k"]["path"] == "$.top_k"
    assert found["cache_marker"]["path"] == "$.tools[1].cache_control"
    assert all(loss["document"] == "request" for loss in reported["losses"])
    grades = ["serious", "degraded", "harmless"]
    assert [loss["grade"] for loss in reported["losses"]] == sorted(
        (loss["grade"] for loss in reported["losses"]), key=grades.index
    )
    assert answer.headers["x-wireglot-losses"].split(",") == list(found)
    assert "x-wireglot-loss-details" not in answer.headers


def test_details_come_with_the_answer_where_they_are_asked_for(stage: Stage) -> None:
    """[X25]"""
    answer = asked(stage, {"x-wireglot-loss-details": "1"})
    _, reported = page(stage, answer.headers["x-wireglot-request-id"])
    assert json.loads(answer.headers["x-wireglot-loss-details"]) == reported["losses"]


def test_losses_of_a_stream_are_there_after_its_end(stage: Stage) -> None:
    """[X25] Those of its answer too, which nobody knew when the headers went out."""
    body = {
        "model": "m1",
        "stream": True,
        "messages": [{"role": "user", "content": "Hi"}],
        "stop": ["a"],
        "seed": 1,
    }
    with Stage("anthropic") as other:
        stream = other.alice.chat.completions.with_raw_response.create(**body)
        for _ in stream.parse():
            pass
        id = stream.headers["x-wireglot-request-id"]
        status, reported = page(other, id)
        assert status == 200
        places = {(loss["document"], loss["path"]) for loss in reported["losses"]}
        assert ("request", "$.seed") in places
        assert ("response", "$.choices[0].finish_reason") in places


def test_nobody_else_is_reported(stage: Stage) -> None:
    """[X25] Not even that there is something: it reads like an id that nobody has."""
    id = asked(stage).headers["x-wireglot-request-id"]
    status, error = page(stage, id, BOB)
    unknown_status, unknown = page(stage, "req_" + "0" * 24, BOB)
    assert (status, unknown_status) == (404, 404)
    assert str(error).replace(id, "*") == str(unknown).replace("req_" + "0" * 24, "*")


def test_an_unknown_id_is_reported_in_the_callers_dialect(stage: Stage) -> None:
    """[X25]"""
    status, error = stage.ask("GET", "/v1/requests/req_1/losses", headers={"anthropic-version": "2023-06-01"})
    assert (status, error["type"], error["error"]["type"]) == (404, "error", "not_found_error")
    status, error = stage.ask("GET", "/v1/requests/req_1/losses")
    assert (status, error["error"]["code"]) == (404, "losses_not_found")


def test_a_request_without_losses_leaves_nothing(stage: Stage) -> None:
    """[X25] It costs nothing: there is nothing to ask for."""
    before = len(stage.stored(LOSSES))
    body = {"model": "m1", "messages": [{"role": "user", "content": "Hi"}]}
    answer = stage.alice.chat.completions.with_raw_response.create(**body)
    assert "x-wireglot-losses" not in answer.headers
    assert page(stage, answer.headers["x-wireglot-request-id"])[0] == 404
    assert len(stage.stored(LOSSES)) == before


def test_the_log_line_has_them_whole(stage: Stage) -> None:
    """[X25]"""
    id = asked(stage).headers["x-wireglot-request-id"]
    wait_until(lambda: any(line.get("id") == id for line in stage.gateway.wait_log()))
    (line,) = [line for line in stage.gateway.wait_log() if line.get("id") == id]
    _, reported = page(stage, id)
    assert line["loss_details"] == reported["losses"]
    assert line["losses"][0] == "hosted_tool"


def test_strict_names_the_worst_one_at_its_place(stage: Stage) -> None:
    """[X25] And some of the others."""
    with claude(stage) as client, pytest.raises(anthropic.BadRequestError) as refused:
        client.messages.create(**BENT, extra_headers={"x-wireglot-loss-policy": "strict"})
    assert "tools[0]: hosted_tool would be dropped" in refused.value.message
    assert "sampling.top_k at top_k" in refused.value.message
    assert refused.value.response.headers["x-wireglot-losses"].startswith("hosted_tool")


def test_they_lie_in_the_store_sealed_and_end_by_themselves(stage: Stage) -> None:
    """[X25]"""
    id = asked(stage).headers["x-wireglot-request-id"]
    wait_until(lambda: any(document.id == id for document in stage.stored(LOSSES)))
    (document,) = [document for document in stage.stored(LOSSES) if document.id == id]
    assert b"hosted_tool" not in document.body
    assert document.expires - document.created == KEPT_SECONDS * 1000


def test_another_worker_finds_them(tmp_path: Path) -> None:
    """[X25] Also right after the answer, and after a restart."""
    with ScriptedUpstream() as upstream, ExitStack() as stack:
        toml = (
            f'[server]\nworkers = 2\n[providers.mine]\ndialect = "openai-chat"\n'
            f'base_url = "{upstream.url}{BASES["openai-chat"]}"\n[models]\n"*" = "mine/*"\n'
        )
        one, other = (stack.enter_context(LiveGateway(toml, folder=tmp_path)) for _ in range(2))
        with anthropic.Anthropic(base_url=one.url, api_key="x", max_retries=0) as client:
            id = client.messages.with_raw_response.create(**BENT).headers["x-wireglot-request-id"]
        with anthropic.Anthropic(base_url=other.url, api_key="x", max_retries=0) as client:
            reported: Any = client.get(f"/v1/requests/{id}/losses", cast_to=object)
        assert reported["losses"][0]["feature"] == "hosted_tool"


# The shelf itself.


def notes(level: str, event: str, **fields: Any) -> None: ...


def record(id: str, *losses: Loss, caller: str = "alice") -> ExchangeRecord:
    return ExchangeRecord(
        id, 0.0, dialect="anthropic", caller=caller, losses=list(losses) or [Loss("$.a", "user", "dropped")]
    )


def test_after_an_hour_they_are_gone() -> None:
    """[X25]"""

    async def run() -> None:
        now = [1_000_000.0]
        kept = LossShelf(MemoryDocuments(lambda: int(now[0] * 1000)), notes, clock=lambda: now[0])
        kept.keep(record("req_1"))
        await kept.close()
        assert await kept.find("alice", "req_1") is not None
        now[0] += KEPT_SECONDS + 1
        assert await kept.find("alice", "req_1") is None
        kept.keep(record("req_2"))
        await kept.close()
        assert [written.id for written in kept._written] == ["req_2"]

    asyncio.run(run())


def ids(documents: Documents) -> list[str]:
    async def read() -> list[str]:
        return [d.id for who in ("alice", "bob") for d in await documents.recent(who, LOSSES, limit=100)]

    return asyncio.run(read())


def test_of_too_many_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """[X25] All processes together hold no more than was promised: each keeps to its share."""
    monkeypatch.setattr(shelf, "MAX_KEPT", 10)
    documents = MemoryEngine().documents

    async def run() -> None:
        kept = LossShelf(documents, notes, peers=lambda: 2)
        for number in range(25):
            kept.keep(record(f"req_{number}", caller="alice" if number % 2 else "bob"))
        await kept.close()

    asyncio.run(run())
    assert sorted(ids(documents)) == [f"req_{number}" for number in range(20, 25)]


def test_one_request_takes_no_more_than_its_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """[X25] And all together no more than theirs."""
    many = [Loss(f"$.m{n // 2}[{n % 2}]", "reasoning.text", "dropped", "x" * 900) for n in range(1000)]
    serious = Loss("$.tools[0]", "hosted_tool", "dropped")
    body = shelf.entry(record("req_1", *many, serious), 1)
    reported = json.loads(body)
    assert len(body) <= ENTRY_BYTES
    assert reported["losses"][0] == serious.as_dict()
    assert {loss["count"] for loss in reported["losses"][1:]} == {2}
    assert reported["unreported"] == reported["untold"] == 2 * (501 - len(reported["losses"]))
    monkeypatch.setattr(shelf, "KEPT_BYTES", 3 * ENTRY_BYTES)
    documents = MemoryEngine().documents

    async def run() -> None:
        kept = LossShelf(documents, notes)
        for number in range(9):
            kept.keep(record(f"req_{number}", *many))
        await kept.close()
        assert kept._written_bytes == sum(written.size for written in kept._written) <= 3 * ENTRY_BYTES

    asyncio.run(run())
    assert sorted(ids(documents)) == ["req_6", "req_7", "req_8"]


def test_what_is_not_written_yet_is_reported_and_forgotten_with_its_caller() -> None:
    """[X25]"""

    async def run() -> None:
        kept = LossShelf(MemoryEngine().documents, notes)
        kept.keep(record("req_1"))
        kept.keep(record("req_2", caller="bob"))
        assert await kept.find("alice", "req_1") is not None
        assert await kept.find("bob", "req_1") is None
        assert kept.forget("alice") == 1
        assert await kept.find("alice", "req_1") is None

    asyncio.run(run())


def test_work_in_the_background_is_reported_under_the_id_that_its_client_knows(stage: Stage) -> None:
    """[X25]"""
    body = {"model": "m1", "input": "Hi", "background": True, "max_tool_calls": 3}
    started = stage.alice.responses.with_raw_response.create(**body)
    id = started.headers["x-wireglot-request-id"]
    wait_until(lambda: stage.alice.responses.retrieve(started.parse().id).status == "completed")
    wait_until(lambda: page(stage, id)[0] == 200)
    _, reported = page(stage, id)
    assert reported["request_id"] == id
    assert {"max_tool_calls"} <= {loss["path"].removeprefix("$.") for loss in reported["losses"]}


def test_a_store_that_is_away_gets_them_later() -> None:
    """[X25] Meanwhile they are reported from memory."""

    class Away:
        down = True

        def __init__(self) -> None:
            self.behind = MemoryEngine().documents

        async def put(self, documents: list[Document], *, new: bool = False) -> bool:
            if self.down:
                raise StoreDown("away")
            return await self.behind.put(documents, new=new)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.behind, name)

    async def run() -> None:
        away: Any = Away()
        kept = LossShelf(away, notes)
        kept.keep(record("req_1"))
        with pytest.raises(StoreDown):
            await kept._flush()
        assert await kept.find("alice", "req_1") is not None
        away.down = False
        await kept.close()
        assert [document.id for document in await away.get("alice", LOSSES, ["req_1"])] == ["req_1"]

    asyncio.run(run())


def test_what_a_client_wrote_at_length_is_not_held_for_others() -> None:
    """The key of an unknown field is part of a place, and may be as long as a body."""
    shelf._written_once.cache_clear()
    short = Loss("$.a", "unknown_field", "dropped", "x")
    longs = [
        Loss(f"$.{'k' * 100_000}", "unknown_field", "dropped", "x"),
        Loss("$.a", "unknown_field", "dropped", "x" * 100_000),
    ]
    for _ in range(2):
        reported = json.loads(shelf.entry(record("req_1", short, longs[1]), 1))
        assert [len(loss["detail"]) for loss in reported["losses"]] == [1, 512]
        assert json.loads(shelf.entry(record("req_1", longs[0]), 1))["untold"] == 1
    assert shelf._written_once.cache_info().currsize == 1
