"""Stored responses over every upstream, with OpenAI's SDK: created, fetched, chained, deleted."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from tests.gateway.state.responses_kit import BOB, TOOLS, Stage, stage_fixtures, texts
from wireglot.gateway.state.stored_forms import KeptResponse
from wireglot.testing.scripted_upstream import Behaviour

running, stage = stage_fixtures()


def test_a_response_is_stored_and_given_back_as_the_client_got_it(stage: Stage) -> None:
    """R-Z-07, R-DE-05, R-X-08, C42, R-AA-01, R-AA-08, R-AA-15: the echoes are those of the request."""
    made = stage.alice.responses.create(
        model="m1",
        input="hello",
        instructions="Be brief.",
        temperature=0.5,
        top_p=0.9,
        max_output_tokens=200,
        metadata={"topic": "x"},
        user="u-1",
    )
    assert (made.store, made.status, made.instructions) == (True, "completed", "Be brief.")
    assert (made.temperature, made.top_p, made.max_output_tokens) == (0.5, 0.9, 200)
    assert made.id.startswith("resp_")
    assert len(made.id) >= 37
    assert stage.alice.responses.retrieve(made.id).to_dict() == made.to_dict()
    if stage.dialect == "openai-responses":
        assert stage.sent()["store"] is False
        assert "previous_response_id" not in stage.sent()


@pytest.mark.parametrize("wish", ["", "[[demo:think]] ", "[[demo:tool get_weather]] ", "[[demo:tools 3]] "])
def test_what_was_streamed_is_what_is_stored(stage: Stage, wish: str) -> None:
    """The last event and GET agree in every id and letter, also for thoughts, calls and their carriers."""
    asked: Any = {"model": "m1", "input": f"{wish}hello", "tools": TOOLS}
    with stage.alice.responses.stream(
        **asked, instructions="Be brief.", reasoning={"effort": "low"}
    ) as stream:
        events = list(stream)
    last = events[-1]
    assert last.type == "response.completed"
    got = stage.alice.responses.retrieve(last.response.id).to_dict()
    reported = json.loads(last.response.to_json())
    for item in (item for response in (got, reported) for item in response["output"]):
        for part in item.get("content") or ():
            part.pop("parsed", None)  # the SDK's own
        item.pop("parsed_arguments", None)
    assert got == reported
    first = events[0]
    assert first.type == "response.created"
    assert (first.response.id, first.response.store) == (last.response.id, True)


def test_a_chain_of_twenty_keeps_every_turn_and_only_the_last_instructions(stage: Stage) -> None:
    """R-Z-11, C41, R-U-07: instructions replace, they never accumulate."""
    previous = None
    for turn in range(20):
        response = stage.alice.responses.create(
            model="m1",
            input=f"[[demo:echo]] word-{turn:02}.",
            instructions=f"rule-{turn:02}",
            **({"previous_response_id": previous} if previous else {}),
        )
        assert response.previous_response_id == previous
        previous = response.id
    sent = stage.sent_text()
    assert [turn for turn in range(20) if f"rule-{turn:02}" in sent] == [19]
    places = [sent.index(f"word-{turn:02}") for turn in range(20)]
    assert places == sorted(places)
    assert all(sent.count(f"word-{turn:02}") == 2 for turn in range(19))  # asked and answered


def test_a_chain_goes_on_without_a_word(stage: Stage) -> None:
    first = stage.alice.responses.create(model="m1", input="only-word")
    then = stage.alice.responses.create(model="m1", previous_response_id=first.id)
    assert then.status == "completed"
    assert "only-word" in stage.sent_text()
    assert list(stage.alice.responses.input_items.list(then.id)) == []


def test_a_chain_branches(stage: Stage) -> None:
    root = stage.alice.responses.create(model="m1", input="root-word")
    one = stage.alice.responses.create(model="m1", input="one-word", previous_response_id=root.id)
    two = stage.alice.responses.create(model="m1", input="two-word", previous_response_id=root.id)
    assert "root-word" in stage.sent_text()
    assert "one-word" not in stage.sent_text()
    stage.alice.responses.create(model="m1", input="more", previous_response_id=one.id)
    assert "one-word" in stage.sent_text()
    assert "two-word" not in stage.sent_text()
    assert one.id != two.id


def test_a_tool_conversation_is_chained_by_its_results_alone(stage: Stage) -> None:
    """R-U-01, R-U-03, R-U-07: the calls, their ids and the thoughts before them come from the store."""
    first = stage.alice.responses.create(
        model="m1",
        input="[[demo:strict]] [[demo:think]] [[demo:tools 2]] The weather?",
        tools=TOOLS,
        reasoning={"effort": "low"},
    )
    calls = [item for item in first.output if item.type == "function_call"]
    assert len(calls) == 2
    results: Any = [
        {"type": "function_call_output", "call_id": call.call_id, "output": f"{number} degrees"}
        for number, call in enumerate(calls)
    ]
    second = stage.alice.responses.create(
        model="m1", input=results, tools=TOOLS, previous_response_id=first.id, reasoning={"effort": "low"}
    )
    assert "0 degrees" in second.output_text
    assert "1 degrees" in second.output_text


def test_items_are_referred_to_by_their_ids(stage: Stage) -> None:
    first = stage.alice.responses.create(model="m1", input="remember-this")
    (said,) = [item for item in first.output if item.type == "message"]
    references: Any = [{"type": "item_reference", "id": said.id}, {"id": said.id}]
    for reference in references:
        stage.alice.responses.create(
            model="m1", store=False, input=[reference, {"role": "user", "content": "go on"}]
        )
        assert stage.sent_text().count("remember-this") == 1  # in the answer's own words
    with pytest.raises(openai.NotFoundError) as caught:
        stage.bob.responses.create(model="m1", input=references[:1])
    assert caught.value.param == "input[0].id"


@pytest.mark.parametrize("id", [{"type": "reasoning"}, ["x"], 7, None])
def test_a_reference_whose_id_is_no_string_is_reported_where_it_stands(stage: Stage, id: Any) -> None:
    """Found by fuzzing: what cannot be hashed was an internal error."""
    for reference in ({"id": id, "content": "x"}, {"type": "item_reference", "id": id}):
        with pytest.raises(openai.BadRequestError) as caught:
            stage.alice.responses.create(model="m1", input=[{"role": "user", "content": "a"}, reference])
        assert caught.value.param == "input[1].id"
        assert "input[1].id: expected a string" in caught.value.message


def test_the_items_of_a_request_are_listed(stage: Stage) -> None:
    items: Any = [{"role": "user", "content": f"item-{number}"} for number in range(5)]
    made = stage.alice.responses.create(model="m1", input=items)
    listing = stage.alice.responses.input_items
    newest_first = [item.to_dict() for item in listing.list(made.id)]
    assert texts(newest_first) == [f"item-{number}" for number in (4, 3, 2, 1, 0)]
    assert len({item["id"] for item in newest_first}) == 5
    page = listing.list(made.id, order="asc", limit=2)
    assert page.has_more
    assert [item.id for item in page] == [item["id"] for item in reversed(newest_first)]  # all pages
    after = listing.list(made.id, order="asc", after=str(newest_first[1]["id"]))
    assert texts(item.to_dict() for item in after) == ["item-4"]
    string = stage.alice.responses.create(
        model="m1", input="a string", include=["reasoning.encrypted_content"]
    )
    assert texts(item.to_dict() for item in listing.list(string.id)) == ["a string"]


@pytest.mark.parametrize(
    ("field", "value"), [("order", "up"), ("limit", "0"), ("limit", "101"), ("after", "x")]
)
def test_a_list_is_asked_for_properly(stage: Stage, field: str, value: str) -> None:
    made = stage.alice.responses.create(model="m1", input="hi")
    status, body = stage.ask("GET", f"/v1/responses/{made.id}/input_items?{field}={value}")
    assert (status, body["error"]["param"]) == (400, field)


def test_a_deleted_response_is_gone_and_ends_its_chain(stage: Stage) -> None:
    first = stage.alice.responses.create(model="m1", input="one")
    second = stage.alice.responses.create(model="m1", input="two", previous_response_id=first.id)
    assert stage.ask("DELETE", f"/v1/responses/{first.id}") == (
        200,
        {"id": first.id, "object": "response.deleted", "deleted": True},
    )
    with pytest.raises(openai.NotFoundError):
        stage.alice.responses.retrieve(first.id)
    with pytest.raises(openai.NotFoundError):
        stage.alice.responses.delete(first.id)
    assert stage.alice.responses.retrieve(second.id).previous_response_id == first.id
    asked = len(stage.upstream.requests)
    with pytest.raises(openai.BadRequestError) as caught:  # half a conversation is not answered as a whole
        stage.alice.responses.create(model="m1", input="three", previous_response_id=second.id)
    assert caught.value.code == "previous_response_not_found"
    assert len(stage.upstream.requests) == asked


def test_another_callers_response_looks_like_one_that_never_was(stage: Stage) -> None:
    """T5: equal in status, shape and words."""
    made = stage.alice.responses.create(model="m1", input="secret-of-alice")
    unknown = "resp_" + "0" * 32
    for method, rest in (("GET", ""), ("DELETE", ""), ("GET", "/input_items"), ("POST", "/cancel")):
        status, foreign = stage.ask(method, f"/v1/responses/{made.id}{rest}", key=BOB)
        assert status == 404
        assert foreign["error"]["type"] == "invalid_request_error"
        _, never = stage.ask(method, f"/v1/responses/{unknown}{rest}", key=BOB)
        assert json.dumps(foreign).replace(made.id, unknown) == json.dumps(never)
    with pytest.raises(openai.BadRequestError) as caught:
        stage.bob.responses.create(model="m1", input="x", previous_response_id=made.id)
    assert caught.value.body == {
        "message": f"Previous response with id '{made.id}' not found.",
        "type": "invalid_request_error",
        "param": "previous_response_id",
        "code": "previous_response_not_found",
    }
    assert stage.alice.responses.retrieve(made.id).id == made.id


def test_what_is_not_to_be_stored_is_not(stage: Stage) -> None:
    """C42: not as a response, not as anything else."""
    before = {kind: len(stage.stored(kind)) for kind in ("response", "reference", "conversation", "item")}
    made = stage.alice.responses.create(model="m1", input="hi", store=False)
    assert made.store is False
    assert {kind: len(stage.stored(kind)) for kind in before} == before
    with pytest.raises(openai.NotFoundError):
        stage.alice.responses.retrieve(made.id)
    with pytest.raises(openai.BadRequestError) as caught:
        stage.alice.responses.create(model="m1", input="x", previous_response_id=made.id)
    assert caught.value.code == "previous_response_not_found"


def test_what_is_not_stored_may_go_on_with_what_is(stage: Stage) -> None:
    first = stage.alice.responses.create(model="m1", input="first-word")
    then = stage.alice.responses.create(model="m1", input="x", store=False, previous_response_id=first.id)
    assert "first-word" in stage.sent_text()
    assert (then.store, then.previous_response_id) == (False, first.id)
    with pytest.raises(openai.NotFoundError):
        stage.alice.responses.retrieve(then.id)


def test_an_incomplete_response_is_stored_and_gone_on_with(stage: Stage) -> None:
    cut = stage.alice.responses.create(model="m1", input="[[demo:text 300]]", max_output_tokens=20)
    assert cut.status == "incomplete"
    assert stage.alice.responses.retrieve(cut.id).status == "incomplete"
    stage.alice.responses.create(model="m1", input="go on", previous_response_id=cut.id)
    assert "[[demo:text 300]]" in stage.sent_text()


def test_a_response_that_is_not_finished_cannot_be_gone_on_with(stage: Stage) -> None:
    responses = stage.gateway.process.state.responses
    running = KeptResponse({"id": "resp_running", "status": "in_progress", "output": []})
    stage.gateway.call(responses.save("alice", "resp_running", running))
    with pytest.raises(openai.BadRequestError) as caught:
        stage.alice.responses.create(model="m1", input="x", previous_response_id="resp_running")
    assert caught.value.param == "previous_response_id"
    stage.alice.responses.delete("resp_running")


def test_what_failed_is_not_stored(stage: Stage) -> None:
    before = len(stage.stored("response"))
    stage.upstream.next(Behaviour(error=400))
    with pytest.raises(openai.BadRequestError):
        stage.alice.responses.create(model="m1", input="x")
    stage.upstream.next(Behaviour(fault="error-midstream"))
    stream = stage.alice.responses.create(model="m1", input="x " * 99, stream=True)
    with pytest.raises(openai.APIError):
        list(stream)
    assert len(stage.stored("response")) == before


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"previous_response_id": "resp_1", "conversation": "conv_1"}, "previous_response_id"),
        ({"previous_response_id": 7}, "previous_response_id"),
        ({"store": "yes"}, "store"),
        ({"conversation": 7}, "conversation"),
        ({"conversation": {"name": "x"}}, "conversation"),
        ({"conversation": ""}, "conversation"),
        ({"conversation": "x" * 300}, "conversation"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(stage: Stage, more: dict[str, Any], param: str) -> None:
    status, body = stage.ask("POST", "/v1/responses", {"model": "m1", "input": "x", **more})
    assert (status, body["error"]["param"]) == (400, param)
    assert not stage.upstream.requests


def test_tokens_are_counted_with_the_history(stage: Stage) -> None:
    first = stage.alice.responses.create(model="m1", input="word " * 400)
    count = stage.alice.responses.input_tokens.count
    assert count(model="m1", input="x").input_tokens < 100
    assert count(model="m1", input="x", previous_response_id=first.id).input_tokens > 300


def test_a_client_may_refer_to_every_item_of_an_answer(stage: Stage) -> None:
    """So do agents that leave storing on: thoughts and calls by reference, only the results in words."""
    asked: Any = {"model": "m1", "tools": TOOLS, "reasoning": {"effort": "low"}}
    text = "[[demo:strict]] [[demo:think]] [[demo:tools 2]] The weather?"
    first = stage.alice.responses.create(**asked, input=text)
    references = [{"type": "item_reference", "id": item.id} for item in first.output]
    results = [
        {"type": "function_call_output", "call_id": item.call_id, "output": f"{number} degrees"}
        for number, item in enumerate(first.output)
        if item.type == "function_call"
    ]
    again = stage.alice.responses.create(
        **asked, input=[{"role": "user", "content": text}, *references, *results]
    )
    assert again.output_text.count("degrees") == 2
