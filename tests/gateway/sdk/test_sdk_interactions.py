"""Google's SDK and the Interactions API through the gateway, before an upstream of every dialect."""

from __future__ import annotations

from typing import Any

import pytest
from google.genai._gaos.lib.compat_errors import BadRequestError, NotFoundError

from tests.gateway.sdk.sdk_kit import (
    ECHO,
    HEARD,
    MODEL,
    PIXEL,
    STRICT,
    WEATHER,
    Stage,
    reasoning_state,
    stage_fixtures,
)
from tests.tiers import rows
from tests.waiting import wait_until
from wireglot_core.wire.json import decode, encode

running, stage = stage_fixtures()
pytestmark = pytest.mark.sampled(each=4)  # of the upstreams, and of other parameters in turn

TOOL: dict[str, Any] = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": WEATHER,
}
RUNNING = ("queued", "in_progress")
ASKS = '[[demo:tool get_weather {"city":"Paris"}]] weather?'


def api(stage: Stage) -> Any:
    """Untyped: what `create` returns is a union of an answer and a stream."""
    return stage.gemini.interactions


def steps(answer: Any) -> list[str]:
    return [step.type for step in answer.steps]


def call_of(answer: Any) -> Any:
    return next(step for step in answer.steps if step.type == "function_call")


def test_an_interaction_is_created(stage: Stage) -> None:
    answer = api(stage).create(
        model=MODEL,
        input=ECHO,
        system_instruction="You are terse.",
        generation_config={"max_output_tokens": 100},
    )
    assert (answer.output_text, answer.status, answer.object) == (HEARD, "completed", "interaction")
    assert answer.id
    assert answer.created
    assert answer.usage.total_tokens >= answer.usage.total_input_tokens > 0
    assert b"You are terse." in stage.upstream.requests[-1].body


def test_a_stream_says_the_same_as_the_whole_answer(stage: Stage) -> None:
    interactions = api(stage)
    whole = interactions.create(model=MODEL, input=ECHO)
    events = list(interactions.create(model=MODEL, input=ECHO, stream=True))
    kinds = [event.event_type for event in events]
    assert kinds[:3] == ["interaction.created", "interaction.status_update", "step.start"]
    assert kinds[-2:] == ["step.stop", "interaction.completed"]
    texts = [event.delta.text for event in events if event.event_type == "step.delta"]
    assert "".join(texts) == whole.output_text == HEARD
    assert events[-1].interaction.status == whole.status
    assert events[-1].interaction.usage.total_output_tokens == whole.usage.total_output_tokens
    assert events[0].interaction.id == events[-1].interaction.id
    assert interactions.get(events[0].interaction.id).output_text == HEARD


def test_an_answer_that_hits_the_limit_is_incomplete(stage: Stage) -> None:
    config = {"max_output_tokens": 16}
    asked: dict[str, Any] = {"model": MODEL, "input": "[[demo:text 50]]", "generation_config": config}
    whole = api(stage).create(**asked)
    last = list(api(stage).create(**asked, stream=True))[-1]
    assert whole.status == last.interaction.status == "incomplete"


def test_a_picture_is_sent(stage: Stage) -> None:
    content: list[Any] = [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "data": PIXEL, "mime_type": "image/png"},
    ]
    assert api(stage).create(model=MODEL, input=content).status == "completed"
    assert PIXEL.encode() in stage.upstream.requests[-1].body


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_function_is_called_and_its_result_goes_on(stage: Stage, streams: bool) -> None:
    interactions = api(stage)
    if streams:
        events = list(interactions.create(model=MODEL, input=ASKS, tools=[TOOL], stream=True))
        assert events[-1].interaction.status == "requires_action"
        first = interactions.get(events[-1].interaction.id)
    else:
        first = interactions.create(model=MODEL, input=ASKS, tools=[TOOL])
    assert first.status == "requires_action"
    call = call_of(first)
    assert (call.name, call.arguments) == ("get_weather", {"city": "Paris"})
    result = {"type": "function_result", "call_id": call.id, "name": call.name, "result": "18 degrees"}
    second = interactions.create(model=MODEL, previous_interaction_id=first.id, input=[result], tools=[TOOL])
    assert second.status == "completed"
    assert "18 degrees" in second.output_text
    assert second.previous_interaction_id == first.id
    sent = stage.upstream.requests[-1].body
    assert b"weather?" in sent
    assert b"18 degrees" in sent


def test_the_history_can_be_sent_instead_of_named(stage: Stage) -> None:
    interactions = api(stage)
    first = interactions.create(model=MODEL, input=ASKS, tools=[TOOL], store=False)
    call = call_of(first)
    result = {"type": "function_result", "call_id": call.id, "name": call.name, "result": {"degrees": 18}}
    asked = {"type": "user_input", "content": [{"type": "text", "text": ASKS}]}
    history = [asked, *(step.model_dump(exclude_none=True) for step in first.steps), result]
    second = interactions.create(model=MODEL, input=history, tools=[TOOL], store=False)
    assert second.status == "completed"
    assert "18" in second.output_text
    with pytest.raises(NotFoundError):
        interactions.get(first.id)


@pytest.mark.parametrize("stored", [True, False])
def test_signed_reasoning_goes_back_to_the_upstream_that_signed_it(stage: Stage, stored: bool) -> None:
    interactions = api(stage)
    asked = f"{STRICT} [[demo:think]] {ASKS}"
    first = interactions.create(model=MODEL, input=asked, tools=[TOOL], store=stored)
    call = call_of(first)
    result: Any = {"type": "function_result", "call_id": call.id, "name": call.name, "result": "18 degrees"}
    if stored:
        more: dict[str, Any] = {"previous_interaction_id": first.id, "input": [result]}
    else:
        turn = {"type": "user_input", "content": [{"type": "text", "text": asked}]}
        returned = [step.model_dump(exclude_none=True) for step in first.steps]
        more = {"input": [turn, *returned, result]}
    second = interactions.create(model=MODEL, tools=[TOOL], store=stored, **more)
    assert second.status == "completed", second
    if stage.dialect != "openai-chat":
        assert reasoning_state(stage.dialect, stage.sent())


def test_instructions_and_tools_are_not_inherited(stage: Stage) -> None:
    interactions = api(stage)
    first = interactions.create(
        model=MODEL, input="Hello", system_instruction="You are a pirate.", tools=[TOOL]
    )
    interactions.create(model=MODEL, input="And again", previous_interaction_id=first.id)
    sent = stage.upstream.requests[-1].body
    assert b"Hello" in sent
    assert b"pirate" not in sent
    assert b"get_weather" not in sent


def test_an_interaction_is_shown_with_its_input_and_deleted(stage: Stage) -> None:
    interactions = api(stage)
    made = interactions.create(model=MODEL, input=ECHO)
    shown = interactions.get(made.id)
    assert steps(shown) == ["user_input", *steps(made)]
    assert shown.input is None
    assert shown.output_text == HEARD
    (asked,) = interactions.get(made.id, include_input=True).input
    assert asked.content[0].text == ECHO
    interactions.delete(made.id)
    for use in (interactions.get, interactions.delete, interactions.cancel):
        with pytest.raises(NotFoundError, match="Interaction with id"):
            use(made.id)
    with pytest.raises(NotFoundError, match="previous_interaction_id"):
        interactions.create(model=MODEL, input="x", previous_interaction_id=made.id)


def test_a_response_and_an_interaction_go_on_from_each_other(stage: Stage) -> None:
    interactions, responses = api(stage), stage.gpt.responses
    first = interactions.create(model=MODEL, input="I am Ada.")
    second = responses.create(model=MODEL, input="And Bob.", previous_response_id=first.id)
    assert b"I am Ada." in stage.upstream.requests[-1].body
    third = interactions.create(model=MODEL, input="Who?", previous_interaction_id=second.id)
    assert third.status == "completed"
    sent = stage.upstream.requests[-1].body
    assert b"I am Ada." in sent
    assert b"And Bob." in sent
    with pytest.raises(NotFoundError):
        interactions.get(second.id)


@rows(
    ("fields", "named"),
    [
        ({"input": 5}, "input"),
        ({"input": []}, "input"),
        ({"generation_config": {"max_output_tokens": "many"}}, "generation_config.max_output_tokens"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"store": "yes"}, "store"),
        ({"previous_interaction_id": 5}, "previous_interaction_id"),
        ({"background": True, "store": False}, "background"),
        ({"agent": 5, "model": None}, "agent"),
        ({"input": [{"type": "text", "text": "a"}, {"type": "user_input"}]}, "input[1]"),
        ({"input": [{"type": "function_result", "result": "x"}]}, "input[0].call_id"),
    ],
)
def test_what_is_wrong_names_its_field(stage: Stage, fields: dict[str, Any], named: str) -> None:
    body = {"model": MODEL, "input": "x", **fields}
    body = {key: value for key, value in body.items() if value is not None}
    answer = stage.post("/v1/interactions", encode(body))
    assert answer.status == 400
    error = decode(answer.body)["error"]
    assert error["code"] in ("invalid_request", "failed_precondition")
    assert named in error["message"]


def test_what_only_google_can_do_is_refused_elsewhere(stage: Stage) -> None:
    asked: dict[str, Any] = {"model": MODEL, "input": "x", "environment": "env_1", "store": False}
    if stage.dialect == "gemini-interactions":
        assert api(stage).create(**asked).status == "completed"
    else:
        with pytest.raises(BadRequestError, match="environment"):
            api(stage).create(**asked)


def ended(interactions: Any, id: str) -> Any:
    """An interaction in the background, once it has ended."""
    return wait_until(lambda: (found := interactions.get(id)).status not in RUNNING and found)


def test_an_interaction_is_made_in_the_background_and_gone_on_with(stage: Stage) -> None:
    interactions = api(stage)
    first = interactions.create(model=MODEL, input=ECHO, background=True)
    assert first.status in RUNNING
    made = ended(interactions, first.id)
    assert (made.status, made.output_text) == ("completed", HEARD)
    assert steps(made) == ["user_input", "model_output"]
    second = interactions.create(model=MODEL, input="And then?", previous_interaction_id=first.id)
    assert second.status == "completed"
    assert HEARD.splitlines()[1].encode() in stage.upstream.requests[-1].body


def test_a_stream_of_the_background_is_resumed_after_an_event(stage: Stage) -> None:
    interactions = api(stage)
    events = list(interactions.create(model=MODEL, input=ECHO, background=True, stream=True))
    id, last = events[0].interaction.id, events[-1]
    assert (last.event_type, last.interaction.status) == ("interaction.completed", "completed")
    again = list(interactions.get(id, stream=True, last_event_id=events[3].event_id))
    assert [each.model_dump() for each in again] == [each.model_dump() for each in events[4:]]
    assert ended(interactions, id).output_text == HEARD


def test_what_runs_in_the_background_is_cancelled(stage: Stage) -> None:
    interactions = api(stage)
    made = interactions.create(model=MODEL, input="[[demo:hang]]", background=True)
    assert interactions.cancel(made.id).status == "cancelled"
    assert interactions.get(made.id).status == "cancelled"


def test_an_error_in_the_background_is_told_by_the_interaction(stage: Stage) -> None:
    interactions = api(stage)
    made = interactions.create(model=MODEL, input="[[demo:fail 400]] x", background=True)
    over = ended(interactions, made.id)
    assert over.status == "failed"
    assert over.errors[0].message
