"""OpenAI's SDK and Responses through the gateway, before an upstream of every dialect."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from openai.types.responses import (
    CustomToolParam,
    FunctionToolParam,
    Response,
    ResponseCustomToolCall,
    ResponseFunctionToolCall,
    ResponseReasoningItem,
)

from proofs.lab.forms import open_envelope
from tests.gateway.sdk.sdk_kit import (
    ECHO,
    HEARD,
    LEGAL_ID,
    MODEL,
    PIXEL,
    STRICT,
    WEATHER,
    Place,
    Stage,
    reasoning_state,
    stage_fixtures,
)

ASKED = "What is the weather in Rome?"
TOOLS: list[FunctionToolParam] = [
    {"type": "function", "name": "get_weather", "parameters": WEATHER, "strict": True},
    {"type": "function", "name": "get_time", "parameters": WEATHER, "strict": False},
]
PATCH: list[CustomToolParam] = [
    {"type": "custom", "name": "apply_patch", "description": "Applies a patch: *** Begin Patch ..."}
]
running, stage = stage_fixtures()
pytestmark = pytest.mark.sampled(each=4)  # of the upstreams, and of other parameters in turn


def calls_of(response: Response) -> list[ResponseFunctionToolCall]:
    return [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]


def echoed(response: Response) -> list[Any]:
    """The items of an answer as a stateless client sends them again."""
    return [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]


def results(response: Response, said: str) -> list[Any]:
    return [
        *echoed(response),
        *(
            {"type": "function_call_output", "call_id": call.call_id, "output": f"{said} {number}"}
            for number, call in enumerate(calls_of(response))
        ),
    ]


def asked(text: str = ASKED) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_a_response_is_answered(stage: Stage) -> None:
    answer = stage.gpt.responses.create(model=MODEL, input=ECHO, instructions="You are terse.")
    assert answer.object == "response"
    assert answer.status == "completed"
    assert answer.error is None
    assert answer.incomplete_details is None
    assert answer.model == MODEL
    assert answer.id.startswith("resp_")
    assert answer.output_text == HEARD
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens > 0
    assert b"You are terse." in stage.upstream.requests[-1].body


def test_a_stream_says_the_same_as_the_whole_answer(stage: Stage) -> None:
    whole = stage.gpt.responses.create(model=MODEL, input=ECHO)
    with stage.gpt.responses.stream(model=MODEL, input=ECHO) as stream:
        pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert len(pieces) > 3
    assert "".join(pieces) == final.output_text == whole.output_text
    assert final.status == "completed"
    assert final.usage is not None
    assert whole.usage is not None
    assert final.usage.model_dump() == whole.usage.model_dump()


def test_the_events_of_a_stream_are_numbered_and_nested(stage: Stage) -> None:
    events = list(stage.gpt.responses.create(model=MODEL, input=ECHO, stream=True))
    kinds = [event.type for event in events]
    runs = [kind for before, kind in zip(["", *kinds], kinds, strict=False) if kind != before]
    assert runs == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))


def test_an_answer_that_hits_the_limit_is_incomplete(stage: Stage) -> None:
    answer = stage.gpt.responses.create(model=MODEL, input="[[demo:text 50]]", max_output_tokens=16)
    events = list(
        stage.gpt.responses.create(model=MODEL, input="[[demo:text 50]]", max_output_tokens=16, stream=True)
    )
    last = events[-1]
    assert last.type == "response.incomplete"
    for response in (answer, last.response):
        assert response.status == "incomplete"
        assert response.incomplete_details is not None
        assert response.incomplete_details.reason == "max_output_tokens"
        assert response.output_text == answer.output_text != ""


def test_pictures_reach_the_upstream(stage: Stage) -> None:
    content: list[Any] = [
        {"type": "input_text", "text": "[[demo:echo]] What is this?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"},
    ]
    answer = stage.gpt.responses.create(model=MODEL, input=[{"role": "user", "content": content}])
    assert answer.output_text == "What is this?"
    assert PIXEL.encode() in stage.upstream.requests[-1].body


def test_a_tool_loop(stage: Stage) -> None:
    first = stage.gpt.responses.create(model=MODEL, input=ASKED, tools=TOOLS)
    (call,) = calls_of(first)
    assert call.name == "get_weather"
    assert call.arguments == '{"city":"Rome"}'
    assert LEGAL_ID.fullmatch(call.call_id)
    assert first.status == "completed"
    again: Any = [asked(), *results(first, "18 degrees")]
    second = stage.gpt.responses.create(model=MODEL, input=again, tools=TOOLS)
    assert "18 degrees 0" in second.output_text
    assert second.usage is not None
    assert second.usage.input_tokens_details.cached_tokens


def test_a_streamed_call_is_the_same_call(stage: Stage) -> None:
    whole = stage.gpt.responses.create(model=MODEL, input=ASKED, tools=TOOLS)
    with stage.gpt.responses.stream(model=MODEL, input=ASKED, tools=TOOLS) as stream:
        done = [event for event in stream if event.type == "response.function_call_arguments.done"]
        final = stream.get_final_response()
    (call,), (same,) = calls_of(final), calls_of(whole)
    assert (call.call_id, call.name, call.arguments) == (same.call_id, same.name, same.arguments)
    assert [event.arguments for event in done] == [call.arguments]


@pytest.mark.parametrize("streaming", [False, True])
def test_calls_in_parallel_stay_apart(stage: Stage, streaming: bool) -> None:
    text = "[[demo:tools 3]] The weather and the time in Rome?"
    first: Response
    if streaming:
        with stage.gpt.responses.stream(model=MODEL, input=text, tools=TOOLS) as stream:
            first = stream.get_final_response()
    else:
        first = stage.gpt.responses.create(model=MODEL, input=text, tools=TOOLS)
    calls = calls_of(first)
    assert [call.arguments for call in calls] == ['{"city":"Rome"}'] * 3
    assert len({call.call_id for call in calls}) == 3
    again: Any = [asked(text), *results(first, "result")]
    said = stage.gpt.responses.create(model=MODEL, input=again, tools=TOOLS).output_text
    assert said.index("result 0") < said.index("result 1") < said.index("result 2")


@pytest.mark.parametrize("streaming", [False, True])
def test_a_freeform_tool_is_called_with_plain_text(stage: Stage, streaming: bool) -> None:
    text = "[[demo:tool apply_patch]] Patch the file."
    first: Response
    if streaming:
        with stage.gpt.responses.stream(model=MODEL, input=text, tools=PATCH) as stream:
            kinds = [event.type for event in stream]
            first = stream.get_final_response()
        assert "response.custom_tool_call_input.delta" in kinds
        assert "response.custom_tool_call_input.done" in kinds
    else:
        first = stage.gpt.responses.create(model=MODEL, input=text, tools=PATCH)
    (call,) = [item for item in first.output if isinstance(item, ResponseCustomToolCall)]
    assert call.name == "apply_patch"
    assert call.input.startswith("*** Begin Patch\n")
    again: Any = [
        asked(text),
        *echoed(first),
        {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "Done: 1 file"},
    ]
    second = stage.gpt.responses.create(model=MODEL, input=again, tools=PATCH)
    assert "Done: 1 file" in second.output_text


@pytest.mark.parametrize("streaming", [False, True])
def test_reasoning_comes_back_to_the_upstream_as_it_left(stage: Stage, streaming: bool) -> None:
    text = f"{STRICT} {ASKED}"
    options: dict[str, Any] = {
        "model": MODEL,
        "tools": TOOLS,
        "reasoning": {"effort": "high", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
    }
    first: Response
    if streaming:
        with stage.gpt.responses.stream(input=text, **options) as stream:
            first = stream.get_final_response()
    else:
        first = stage.gpt.responses.create(input=text, **options)
    thought = first.output[0]
    assert isinstance(thought, ResponseReasoningItem)
    assert thought.summary[0].text.startswith("The user writes English")
    assert first.usage is not None
    assert first.usage.output_tokens_details.reasoning_tokens
    again: Any = [asked(text), *results(first, "18 degrees")]
    second = stage.gpt.responses.create(input=again, **options)
    assert "18 degrees 0" in second.output_text
    signed = stage.dialect != "openai-chat"  # it signs nothing
    carried = [state for item in first.output if (state := getattr(item, "encrypted_content", None))]
    # Beside what is signed there is the name of who wrote a thought that nobody signed.
    sealed = [state for state in carried if (open_envelope(state) or [""])[0] != "unsigned"]
    assert len(sealed) == (1 if signed else 0)
    assert len(reasoning_state(stage.dialect, stage.sent())) == (1 if signed else 0)


def test_structured_output_is_parsed(stage: Stage) -> None:
    parsed = stage.gpt.responses.parse(model=MODEL, input="Where is it?", text_format=Place)
    assert isinstance(parsed.output_parsed, Place)
    with stage.gpt.responses.stream(model=MODEL, input="Where is it?", text_format=Place) as stream:
        assert stream.get_final_response().output_parsed == parsed.output_parsed


def test_a_refusal_is_an_answer_and_a_filter_a_broken_one(stage: Stage) -> None:
    answer = stage.gpt.responses.create(model=MODEL, input="[[demo:refuse]] x")
    last = list(stage.gpt.responses.create(model=MODEL, input="[[demo:refuse]] x", stream=True))[-1]
    assert last.type in ("response.completed", "response.incomplete")
    for response in (answer, last.response):
        (item,) = response.output
        assert item.type == "message"
        if stage.dialect.startswith("openai"):
            assert [part.type for part in item.content] == ["refusal"]
            assert response.status == "completed"
        else:  # there is no telling a refusal from a filter
            assert response.status == "incomplete"
            assert response.incomplete_details is not None
            assert response.incomplete_details.reason == "content_filter"


def test_a_turn_whose_beginning_is_elsewhere_is_put_before_it(stage: Stage) -> None:
    """R-Z-11, C41"""
    first = stage.gpt.responses.create(model=MODEL, input=ASKED, tools=TOOLS)
    (call,) = calls_of(first)
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "18 degrees"}
    chained: dict[str, Any] = {
        "model": MODEL,
        "tools": TOOLS,
        "previous_response_id": first.id,
        "input": [result],
    }
    assert "18 degrees" in stage.gpt.responses.create(**chained).output_text
    with pytest.raises(openai.BadRequestError) as caught:
        stage.gpt.responses.create(**{**chained, "previous_response_id": "resp_nobody"})
    assert caught.value.param == "previous_response_id"
    assert len(stage.upstream.requests) == 2


def test_tokens_are_counted(stage: Stage) -> None:
    few = stage.gpt.responses.input_tokens.count(model=MODEL, input="hello")
    many = stage.gpt.responses.input_tokens.count(model=MODEL, input="hello " * 500, tools=TOOLS)
    assert 0 < few.input_tokens < 100 < many.input_tokens
    assert few.object == "response.input_tokens"


async def answered_twice(stage: Stage) -> tuple[str, str]:
    async with stage.async_gpt() as client:
        whole = await client.responses.create(model=MODEL, input=ECHO)
        async with client.responses.stream(model=MODEL, input=ECHO) as stream:
            final = await stream.get_final_response()
    return whole.output_text, final.output_text


def test_the_async_client_is_answered(stage: Stage) -> None:
    assert asyncio.run(answered_twice(stage)) == (HEARD, HEARD)
