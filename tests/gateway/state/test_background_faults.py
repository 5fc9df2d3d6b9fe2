"""Background responses when something is wrong: with the request, the upstream, the store, or too many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec
import openai
import pytest

from tests.gateway.state.background_kit import KEYS, ONCE, client, finished
from tests.waiting import wait_until
from wireglot.gateway.state.responses.background_work import Work
from wireglot.gateway.state.tasks import Pace
from wireglot.stores import StoreDown
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh(upstream: ScriptedUpstream) -> None:
    upstream.reset()


@pytest.fixture(scope="module")
def one_gateway(upstream: ScriptedUpstream) -> Iterator[LiveGateway]:
    with LiveGateway.before(upstream, "gemini", KEYS, **ONCE) as running:
        service = running.process.state.background
        service.lease, service.grace = 0.0, 0.05
        yield running


def test_a_process_that_died_with_its_last_word_spoken_has_finished(one_gateway: LiveGateway) -> None:
    """FAULTS 95: between the last event and the response itself lies a moment, too."""
    gpt, held = client(one_gateway), one_gateway.process.state
    *_, last = gpt.responses.create(model="m1", input="Hello", background=True, stream=True)
    assert last.type == "response.completed"
    kept = one_gateway.call(held.responses.load("one", last.response.id))
    assert kept is not None
    left = msgspec.structs.replace(kept, body={**kept.body, "status": "in_progress", "output": []})
    one_gateway.call(held.responses.replace("one", last.response.id, left))
    found = gpt.responses.retrieve(last.response.id)
    assert found.to_dict() == last.response.to_dict()


@pytest.mark.parametrize(
    "trouble", [Behaviour(error=500), Behaviour(fault="error-midstream")], ids=["500", "midstream"]
)
@pytest.mark.parametrize("streamed", [False, True])
def test_what_goes_wrong_becomes_the_response(
    one_gateway: LiveGateway, upstream: ScriptedUpstream, trouble: Behaviour, streamed: bool
) -> None:
    gpt = client(one_gateway)
    upstream.next(trouble)
    if streamed:
        events: list[Any] = []
        with pytest.raises(openai.APIError):  # as the SDK takes an error in a stream
            events.extend(gpt.responses.create(model="m1", input="Hello", background=True, stream=True))
        assert events[0].type == "response.created"
        id = events[0].response.id
        last = list(gpt.responses.retrieve(id, stream=True, starting_after=len(events)))
        assert [event.type for event in last] == ["response.failed"]
        assert last[0].sequence_number == len(events) + 1
    else:
        id = gpt.responses.create(model="m1", input="Hello", background=True).id
    failed = finished(gpt, id)
    assert failed.status == "failed"
    assert failed.error is not None
    assert failed.error.message


def test_what_is_wrong_with_the_request_is_reported_at_once(one_gateway: LiveGateway) -> None:
    gpt, wrong = client(one_gateway), cast(Any, [{"type": "message"}])
    with pytest.raises(openai.BadRequestError, match="store"):
        gpt.responses.create(model="m1", input="Hello", background=True, store=False)
    with pytest.raises(openai.BadRequestError, match="resp_unknown"):
        gpt.responses.create(model="m1", input="Hello", background=True, previous_response_id="resp_unknown")
    with pytest.raises(openai.BadRequestError, match="input"):
        gpt.responses.create(model="m1", input=wrong, background=True)


def test_nothing_is_promised_that_cannot_be_stored(
    one_gateway: LiveGateway, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS 93."""

    async def fail(*values: Any, **more: Any) -> bool:
        raise StoreDown("gone")

    monkeypatch.setattr(one_gateway.process.state.responses, "save", fail)
    with pytest.raises(openai.InternalServerError) as refused:
        client(one_gateway).responses.create(model="m1", input="Hello", background=True)
    assert refused.value.status_code == 503
    assert refused.value.code == "storage_unavailable"
    assert not upstream.requests


def test_what_cannot_be_stored_at_once_is_stored_later(
    one_gateway: LiveGateway, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS 93: a store that comes back gets what was promised."""
    gpt, responses = client(one_gateway), one_gateway.process.state.responses
    real, left = responses.replace, [2]

    async def fail_twice(*values: Any, **more: Any) -> bool:
        if left[0] > 0:
            left[0] -= 1
            raise StoreDown("gone")
        return await real(*values, **more)

    monkeypatch.setattr(responses, "replace", fail_twice)
    id = gpt.responses.create(model="m1", input="Hello", background=True).id
    assert finished(gpt, id).status == "completed"
    assert left == [0]


@pytest.mark.parametrize("step", ["_keep_events", "_store_events"])
def test_events_that_no_store_can_take_cost_neither_the_end_nor_the_books(
    one_gateway: LiveGateway, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """FAULTS 93."""

    async def odd(work: Work) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(Work, step, odd)
    gpt, model = client(one_gateway), f"m-books{step}"
    stream = gpt.responses.create(model=model, input="Hello", background=True, stream=True)
    first = next(iter(stream))
    assert first.type == "response.created"
    stream.close()
    assert finished(gpt, first.response.id).status == "completed"

    def accounted() -> list[dict[str, Any]]:
        return [line for line in one_gateway.log() if line.get("model") == model and line.get("tokens")]

    assert [record["outcome"] for record in wait_until(accounted)] == ["ok"]
    assert not one_gateway.process.state.ledger._open


def test_one_that_waits_for_its_turn_is_not_taken_for_deleted(
    upstream: ScriptedUpstream,
) -> None:
    upstream.next(Behaviour(delay=0.4))
    crowded = "[limits]\nrequests = 1\nqueue_time = 10.0\n"
    pace = Pace(background_look_seconds=0.01)
    with LiveGateway.before(upstream, "gemini", crowded, **ONCE).at(pace) as gateway:
        gpt = client(gateway)
        first = gpt.responses.create(model="m1", input="Hello", background=True)
        second = gpt.responses.create(model="m1", input="Hello", background=True)
        assert finished(gpt, first.id).status == "completed"
        assert finished(gpt, second.id).status == "completed"


def test_there_are_only_so_many_at_once(
    one_gateway: LiveGateway, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpt, other = client(one_gateway), client(one_gateway, "two")
    monkeypatch.setattr(one_gateway.process.state.background, "most_of_a_caller", 1)
    upstream.next(Behaviour(fault="stall"))
    running = gpt.responses.create(model="m1", input="Hello", background=True)
    with pytest.raises(openai.RateLimitError) as refused:
        gpt.responses.create(model="m1", input="Hello", background=True)
    assert refused.value.response.headers["retry-after"] == "10"
    elsewhere = other.responses.create(model="m1", input="Hello", background=True)
    gpt.responses.cancel(running.id)
    another = gpt.responses.create(model="m1", input="Hello", background=True)
    assert finished(other, elsewhere.id).status == finished(gpt, another.id).status == "completed"
