"""`/v1/conversations` and the `conversation` of a response, with OpenAI's SDK, over every upstream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

from tests.gateway.state.responses_kit import BOB, TOOLS, Stage, stage_fixtures, texts
from tests.tiers import rows

running, stage = stage_fixtures()


@pytest.fixture(scope="module")
def one() -> Iterator[Stage]:
    """Where no upstream matters."""
    with Stage("openai-chat") as stage:
        yield stage


def said(stage: Stage, conversation: str) -> list[str]:
    return texts(item.to_dict() for item in stage.alice.conversations.items.list(conversation, order="asc"))


def test_a_conversation_remembers_its_turns(stage: Stage) -> None:
    """R-Z-14, R-Y-32, C41"""
    conversation = stage.alice.conversations.create()
    response: Any = None
    for turn in range(3):
        response = stage.alice.responses.create(
            model="m1",
            input=f"[[demo:echo]] word-{turn}.",
            instructions=f"rule-{turn}",
            conversation=conversation.id if turn % 2 else {"id": conversation.id},
        )
        assert response.conversation is not None
        assert response.conversation.id == conversation.id
    sent = stage.sent_text()
    assert [word in sent for word in ("word-0", "word-1", "rule-0", "rule-1", "rule-2")] == [
        True,
        True,
        False,
        False,
        True,
    ]
    assert [text.removeprefix("[[demo:echo]] ") for text in said(stage, conversation.id)] == [
        "word-0.",
        "word-0.",
        "word-1.",
        "word-1.",
        "word-2.",
        "word-2.",
    ]
    if stage.dialect == "openai-responses":
        assert "conversation" not in stage.sent()
    last = [item.id for item in response.output]
    ids = [item.id for item in stage.alice.conversations.items.list(conversation.id)]
    assert ids[: len(last)] == last[::-1]  # the ids that the client saw


def test_a_streamed_turn_is_held_before_its_end_is_reported(stage: Stage) -> None:
    conversation = stage.alice.conversations.create()
    with stage.alice.responses.stream(model="m1", input="streamed", conversation=conversation.id) as stream:
        for event in stream:
            if event.type == "response.completed":
                assert len(said(stage, conversation.id)) == 2


def test_thoughts_and_calls_are_held(stage: Stage) -> None:
    """R-U-01, R-U-06"""
    conversation = stage.alice.conversations.create()
    asked: Any = {
        "model": "m1",
        "tools": TOOLS,
        "reasoning": {"effort": "low"},
        "conversation": conversation.id,
    }
    first = stage.alice.responses.create(
        **asked, input="[[demo:strict]] [[demo:think]] [[demo:tool get_weather]] The weather?"
    )
    (call,) = [item for item in first.output if item.type == "function_call"]
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "18 degrees"}
    assert "18 degrees" in stage.alice.responses.create(**asked, input=[result]).output_text
    kinds = [item.type for item in stage.alice.conversations.items.list(conversation.id, order="asc")]
    assert kinds.count("function_call") == kinds.count("function_call_output") == 1
    if stage.dialect != "openai-chat":
        assert "reasoning" in kinds


def test_what_is_not_stored_still_belongs_to_its_conversation(stage: Stage) -> None:
    conversation = stage.alice.conversations.create()
    response = stage.alice.responses.create(
        model="m1", input="not stored", store=False, conversation=conversation.id
    )
    assert response.store is False
    assert said(stage, conversation.id)[0] == "not stored"
    with pytest.raises(openai.NotFoundError):
        stage.alice.responses.retrieve(response.id)


def test_a_response_of_a_conversation_can_be_gone_on_with_by_its_id(stage: Stage) -> None:
    conversation = stage.alice.conversations.create(
        items=[{"type": "message", "role": "user", "content": "begun-with"}]
    )
    first = stage.alice.responses.create(model="m1", input="first", conversation=conversation.id)
    stage.alice.responses.create(model="m1", input="later", conversation=conversation.id)
    stage.alice.responses.create(model="m1", input="branch", previous_response_id=first.id)
    sent = stage.sent_text()
    assert ("begun-with" in sent, "first" in sent, "later" in sent) == (True, True, False)
    assert "branch" not in "".join(said(stage, conversation.id))


def test_a_conversation_is_made_shown_changed_and_deleted(one: Stage) -> None:
    client = one.alice.conversations
    before = {document.id for document in one.stored("item")}
    made = client.create(
        metadata={"topic": "demo"}, items=[{"type": "message", "role": "user", "content": "Hello!"}]
    )
    assert (made.object, made.metadata) == ("conversation", {"topic": "demo"})
    assert client.retrieve(made.id) == made
    assert client.update(made.id, metadata={"topic": "other"}).metadata == {"topic": "other"}
    assert client.retrieve(made.id).metadata == {"topic": "other"}
    deleted = client.delete(made.id)
    assert (deleted.id, deleted.object, deleted.deleted) == (made.id, "conversation.deleted", True)
    with pytest.raises(openai.NotFoundError):
        client.retrieve(made.id)
    with pytest.raises(openai.NotFoundError) as caught:
        one.alice.responses.create(model="m1", input="x", conversation=made.id)
    assert caught.value.param == "conversation"
    assert {document.id for document in one.stored("item")} == before


def test_items_are_added_listed_shown_and_deleted(one: Stage) -> None:
    client = one.alice.conversations
    conversation = client.create()
    items: Any = [
        {"role": "user", "content": "What is the weather?"},
        {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "18 degrees"},
        {"role": "assistant", "content": "18 degrees."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Thanks"}]},
    ]
    added = client.items.create(conversation.id, items=items)
    assert [item.type for item in added.data] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
        "message",
    ]
    ids = [item.id for item in added.data]
    assert all(ids)
    assert (added.first_id, added.last_id, added.has_more) == (ids[0], ids[-1], False)
    assert [item.id for item in client.items.list(conversation.id)] == ids[::-1]
    page = client.items.list(conversation.id, order="asc", limit=2)
    assert ([item.id for item in page.data], page.has_more) == (ids[:2], True)
    assert [item.id for item in page] == ids  # over all pages
    assert [item.id for item in client.items.list(conversation.id, after=str(ids[1]))] == [ids[0]]
    shown = client.items.retrieve(str(ids[1]), conversation_id=conversation.id)
    assert shown == added.data[1]
    assert client.items.delete(str(ids[4]), conversation_id=conversation.id).id == conversation.id
    with pytest.raises(openai.NotFoundError):
        client.items.retrieve(str(ids[4]), conversation_id=conversation.id)
    one.alice.responses.create(model="m1", input="And now?", tools=TOOLS, conversation=conversation.id)
    assert "18 degrees" in one.sent_text()
    assert "Thanks" not in one.sent_text()


@rows(
    ("body", "param"),
    [
        ({"items": [{"role": "user", "content": "x"}] * 21}, "items"),
        ({"items": "x"}, "items"),
        ({"items": [{"role": "nobody", "content": "x"}]}, "items[0].role"),
        ({"items": [{"type": "item_reference", "id": "x"}]}, "items[0]"),
        ({"metadata": {str(number): "x" for number in range(17)}}, "metadata"),
        ({"metadata": {"k" * 65: "x"}}, "metadata"),
        ({"metadata": {"k": "x" * 513}}, "metadata"),
        ({"metadata": {"k": 1}}, "metadata"),
        ({"metadata": []}, "metadata"),
    ],
)
def test_limits_of_conversations_are_kept(one: Stage, body: dict[str, Any], param: str) -> None:
    status, answer = one.ask("POST", "/v1/conversations", body)
    assert (status, answer["error"]["param"], answer["error"]["type"]) == (
        400,
        param,
        "invalid_request_error",
    )


def test_another_callers_conversation_looks_like_one_that_never_was(one: Stage) -> None:
    """T5"""
    conversation = one.alice.conversations.create()
    items = one.alice.conversations.items.create(
        conversation.id, items=[{"role": "user", "content": "of alice"}]
    )
    unknown = "conv_" + "0" * 32
    paths: tuple[tuple[str, str, Any], ...] = (
        ("GET", "", None),
        ("POST", "", {"metadata": {}}),
        ("DELETE", "", None),
        ("GET", "/items", None),
        ("POST", "/items", {"items": [{"role": "user", "content": "x"}]}),
        ("GET", f"/items/{items.data[0].id}", None),
        ("DELETE", f"/items/{items.data[0].id}", None),
    )
    for method, rest, body in paths:
        status, foreign = one.ask(method, f"/v1/conversations/{conversation.id}{rest}", body, key=BOB)
        assert status == 404
        _, never = one.ask(method, f"/v1/conversations/{unknown}{rest}", body, key=BOB)
        assert json.dumps(foreign).replace(conversation.id, unknown) == json.dumps(never)
    with pytest.raises(openai.NotFoundError):
        one.bob.responses.create(model="m1", input="x", conversation=conversation.id)
    assert said(one, conversation.id) == ["of alice"]


def test_turns_that_come_at_once_stay_whole(one: Stage) -> None:
    """Each request's items stand together, no matter who is first."""
    conversation = one.alice.conversations.create()

    def turn(number: int) -> None:
        one.alice.responses.create(
            model="m1", input=f"[[demo:echo]] turn-{number:02}.", conversation=conversation.id
        )

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(turn, range(24)))
    held = [text[-8:-1] for text in said(one, conversation.id)]
    assert len(held) == 48
    assert held[::2] == held[1::2]
    assert sorted(held[::2]) == [f"turn-{number:02}" for number in range(24)]


def test_two_callers_and_their_conversations_never_mix(one: Stage) -> None:
    """C29, R-Y-31: nothing of a request is kept but where it belongs."""
    places = [
        (client, client.conversations.create().id, name)
        for client, name in ((one.alice, "alice"), (one.bob, "bob"))
        for _ in range(2)
    ]
    for turn in range(50):
        client, conversation, name = places[turn * 3 % 4]
        own = f"{name}-{conversation[-8:]}"
        response = client.responses.create(
            model="m1", input=f"[[demo:echo]] {own} turn-{turn}.", conversation=conversation
        )
        assert response.output_text == f"{own} turn-{turn}."
        sent = one.sent_text()
        others = [f"{whose}-{id[-8:]}" for _, id, whose in places if id != conversation]
        assert not [other for other in others if other in sent]
        turns = [before for before in range(turn + 1) if before * 3 % 4 == turn * 3 % 4]
        assert all(f"{own} turn-{before}." in sent for before in turns)
