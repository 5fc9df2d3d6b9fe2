"""Responses that are made in the background, as the openai SDK asks for them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.gateway.state.background_kit import KEYS, ONCE, client, finished
from tests.waiting import DEADLINE_SECONDS
from wireglot.gateway.state.stored_forms import EVENT
from wireglot.stores.records import UsageQuery
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

UPSTREAMS = ("anthropic", "openai-chat", "openai-responses", "gemini")


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh(upstream: ScriptedUpstream) -> None:
    upstream.reset()


@pytest.fixture(scope="module", params=UPSTREAMS)
def gateway(request: pytest.FixtureRequest, upstream: ScriptedUpstream) -> Iterator[LiveGateway]:
    with LiveGateway.before(upstream, request.param, KEYS, **ONCE) as running:
        yield running


@pytest.fixture(scope="module")
def one_gateway(upstream: ScriptedUpstream) -> Iterator[LiveGateway]:
    with LiveGateway.before(upstream, "gemini", KEYS, **ONCE) as running:
        service = running.process.state.background
        service.lease, service.grace = 0.0, 0.05
        yield running


def test_a_response_is_promised_at_once_and_found_when_it_is_done(
    gateway: LiveGateway, upstream: ScriptedUpstream
) -> None:
    gpt = client(gateway)
    upstream.next(Behaviour(delay=0.2))
    promised = gpt.responses.create(model="m1", input="Hello", background=True, metadata={"for": "me"})
    assert promised.status == "queued"
    assert promised.output == []
    assert promised.background is True
    done = finished(gpt, promised.id)
    assert done.status == "completed"
    assert done.id == promised.id
    assert done.background is True
    assert done.created_at == promised.created_at
    assert done.metadata == {"for": "me"}
    assert done.usage is not None
    plain = gpt.responses.create(model="m1", input="Hello")
    assert done.output_text == plain.output_text
    items = gpt.responses.input_items.list(done.id).data
    assert [item.type for item in items] == ["message"]


def test_its_stream_tells_what_is_stored(gateway: LiveGateway) -> None:
    gpt = client(gateway)
    events = list(gpt.responses.create(model="m1", input="Hello", background=True, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    first, last = events[0], events[-1]
    assert first.type == "response.created"
    assert last.type == "response.completed"
    assert first.response.id == last.response.id
    assert gpt.responses.retrieve(last.response.id).to_dict() == last.response.to_dict()


def test_a_stream_that_was_left_goes_on_where_it_was_left(
    gateway: LiveGateway, upstream: ScriptedUpstream
) -> None:
    """A client that goes away does not stop the work, and comes back to any event."""
    gpt = client(gateway)
    upstream.next(Behaviour(gap=0.02))
    seen: list[Any] = []
    with gpt.responses.create(
        model="m1", input="Hello [[demo:text 30]]", background=True, stream=True
    ) as stream:
        for event in stream:
            seen.append(event)
            if event.sequence_number == 5:
                break
    id = seen[0].response.id
    rest = list(gpt.responses.retrieve(id, stream=True, starting_after=5))
    assert [event.sequence_number for event in (*seen, *rest)] == list(range(len(seen) + len(rest)))
    assert rest[-1].type == "response.completed"
    # After the end it can be heard again, from the beginning or from its middle.
    again = list(gpt.responses.retrieve(id, stream=True))
    assert [event.to_dict() for event in again] == [event.to_dict() for event in (*seen, *rest)]
    assert [event.to_dict() for event in gpt.responses.retrieve(id, stream=True, starting_after=9)] == [
        event.to_dict() for event in again[10:]
    ]
    last = again[-1].sequence_number
    assert list(gpt.responses.retrieve(id, stream=True, starting_after=last)) == []
    assert len(upstream.requests) == 1


def test_a_cancelled_response_lets_the_upstream_go(gateway: LiveGateway, upstream: ScriptedUpstream) -> None:
    gpt = client(gateway)
    upstream.next(Behaviour(fault="stall-midstream"))
    promised = gpt.responses.create(model="m1", input="Hello", background=True)
    request = upstream.wait_for(1)[0]
    cancelled = gpt.responses.cancel(promised.id)
    assert cancelled.status == "cancelled"
    assert request.abandoned.wait(DEADLINE_SECONDS)
    assert gpt.responses.cancel(promised.id).status == "cancelled", "asked twice, it is the same"
    assert gpt.responses.retrieve(promised.id).status == "cancelled"


def test_anyone_who_listens_hears_of_a_cancellation(
    one_gateway: LiveGateway, upstream: ScriptedUpstream
) -> None:
    gpt = client(one_gateway)
    upstream.next(Behaviour(fault="stall-midstream"))
    with gpt.responses.create(model="m1", input="Hello", background=True, stream=True) as stream:
        first = next(iter(stream))
        assert first.type == "response.created"
        gpt.responses.cancel(first.response.id)
        *_, last = stream
    assert last.to_dict()["type"] == "response.cancelled"
    assert last.to_dict()["response"]["status"] == "cancelled"  # type: ignore[index]  # an event the SDK has no type for


def test_a_finished_response_cannot_be_cancelled_and_a_plain_one_never(one_gateway: LiveGateway) -> None:
    gpt = client(one_gateway)
    promised = gpt.responses.create(model="m1", input="Hello", background=True)
    done = finished(gpt, promised.id)
    assert gpt.responses.cancel(promised.id).to_dict() == done.to_dict()
    plain = gpt.responses.create(model="m1", input="Hello")
    with pytest.raises(openai.BadRequestError, match="Cannot cancel a synchronous response"):
        gpt.responses.cancel(plain.id)


def test_only_a_streamed_background_response_can_be_streamed_again(one_gateway: LiveGateway) -> None:
    gpt = client(one_gateway)
    quiet = gpt.responses.create(model="m1", input="Hello", background=True)
    plain = gpt.responses.create(model="m1", input="Hello")
    for id in (quiet.id, plain.id):
        with pytest.raises(openai.BadRequestError, match="stream"):
            gpt.responses.retrieve(id, stream=True)


def test_another_callers_response_is_not_there(one_gateway: LiveGateway) -> None:
    """THREATS T5: nobody learns whether an id exists that is not theirs."""
    theirs = client(one_gateway).responses.create(model="m1", input="Hello", background=True, stream=True)
    id = next(iter(theirs)).to_dict()["response"]["id"]  # type: ignore[index]  # a union of a hundred events
    theirs.close()
    stranger = client(one_gateway, "two")
    reported = []
    for asked in (id, "resp_" + "0" * 48):
        for ask in (
            lambda id: stranger.responses.retrieve(id),
            lambda id: stranger.responses.cancel(id),
            lambda id: stranger.responses.retrieve(id, stream=True),
        ):
            with pytest.raises(openai.NotFoundError) as refused:
                ask(asked)
            reported.append(refused.value.message.replace(asked, "ID"))
    assert reported[:3] == reported[3:]


def test_a_deleted_response_is_no_longer_worked_on_and_stays_deleted(
    one_gateway: LiveGateway, upstream: ScriptedUpstream
) -> None:
    gpt = client(one_gateway)
    upstream.next(Behaviour(fault="stall-midstream"))
    promised = gpt.responses.create(model="m1", input="Hello", background=True)
    request = upstream.wait_for(1)[0]
    gpt.responses.delete(promised.id)
    assert request.abandoned.wait(DEADLINE_SECONDS)
    with pytest.raises(openai.NotFoundError):
        gpt.responses.retrieve(promised.id)


def test_nothing_of_a_deleted_response_stays(one_gateway: LiveGateway) -> None:
    """Its events are the caller's words as much as it is itself."""
    gpt, documents = client(one_gateway), one_gateway.process.state.documents
    *_, last = gpt.responses.create(model="m1", input="Hello", background=True, stream=True)
    assert last.type == "response.completed"
    assert one_gateway.call(documents.pieces("one", EVENT, last.response.id))
    gpt.responses.delete(last.response.id)
    assert not one_gateway.call(documents.pieces("one", EVENT, last.response.id))


def test_a_listener_who_is_far_behind_reads_from_the_store(
    one_gateway: LiveGateway, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only so much of a stream stays in memory."""
    service = one_gateway.process.state.background
    monkeypatch.setattr(service, "held_bytes", 1)
    monkeypatch.setattr(service, "full_bytes", 1)
    gpt = client(one_gateway)
    upstream.next(Behaviour(gap=0.01))
    with gpt.responses.create(
        model="m1", input="Hello [[demo:text 60]]", background=True, stream=True
    ) as stream:
        live = iter(stream)
        first = next(live)
        assert first.type == "response.created"
        for event in live:
            if event.sequence_number == 20:
                break
        late = list(gpt.responses.retrieve(first.response.id, stream=True))
    assert [event.sequence_number for event in late] == list(range(len(late)))
    assert late[-1].type == "response.completed"


def test_a_silent_stream_is_kept_alive(upstream: ScriptedUpstream) -> None:
    upstream.next(Behaviour(fault="stall"))
    body = json.dumps({"model": "m1", "input": "Hello", "background": True, "stream": True})
    with LiveGateway.before(upstream, "gemini", "[limits]\nping = 0.05\n", **ONCE) as gateway:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS)
        connection.request("POST", "/v1/responses", body, {"content-type": "application/json"})
        assert connection.getresponse().readline() == b": ping\n"
        connection.close()


def test_a_conversation_goes_on_after_it(one_gateway: LiveGateway, upstream: ScriptedUpstream) -> None:
    gpt = client(one_gateway)
    talk = gpt.conversations.create()
    promised = gpt.responses.create(
        model="m1", input="My name is Ada.", background=True, conversation=talk.id
    )
    done = finished(gpt, promised.id)
    assert done.conversation is not None
    assert done.conversation.id == talk.id
    roles = [item.to_dict().get("role") for item in gpt.conversations.items.list(talk.id, order="asc")]
    assert roles == ["user", "assistant"]
    chained = gpt.responses.create(
        model="m1", input="Who am I?", background=True, previous_response_id=promised.id
    )
    assert finished(gpt, chained.id).previous_response_id == promised.id
    asked = str(upstream.requests[-1].json)
    assert "My name is Ada." in asked
    assert "Who am I?" in asked


def test_each_has_one_row_in_the_books(one_gateway: LiveGateway) -> None:
    gpt, state = client(one_gateway), one_gateway.process.state
    one_gateway.call(state.ledger.flush(DEADLINE_SECONDS))
    before = one_gateway.call(state.engine.ledger.rows(UsageQuery(), limit=1000))
    id = gpt.responses.create(model="m1", input="Hello", background=True).id
    done = finished(gpt, id)
    one_gateway.call(state.ledger.flush(DEADLINE_SECONDS))
    after = one_gateway.call(state.engine.ledger.rows(UsageQuery(), limit=1000))
    new = [row for row in after if row.id not in {known.id for known in before}]
    assert len(new) == 1
    assert new[0].outcome == "ok"
    assert new[0].caller == "one"
    assert done.usage is not None
    assert new[0].input + new[0].cache_read == done.usage.input_tokens
