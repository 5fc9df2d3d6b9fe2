"""OpenAI's SDK and Chat Completions through the gateway, before an upstream of every dialect."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionMessageFunctionToolCall,
    ChatCompletionMessageParam,
)
from pydantic import BaseModel

from tests.gateway.sdk.sdk_kit import (
    ECHO,
    HEARD,
    LEGAL_ID,
    MODEL,
    NAMED,
    PIXEL,
    STRICT,
    UNLISTED,
    WEATHER,
    Place,
    Stage,
    reasoning_state,
    stage_fixtures,
)

HELLO: list[ChatCompletionMessageParam] = [
    {"role": "system", "content": "You are terse."},
    {"role": "user", "content": ECHO},
]
ASKED: ChatCompletionMessageParam = {"role": "user", "content": "What is the weather in Rome?"}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}},
    {"type": "function", "function": {"name": "get_time", "parameters": WEATHER}},
]


class GetWeather(BaseModel):
    """The weather of a city."""

    city: str


running, stage = stage_fixtures()
pytestmark = pytest.mark.sampled(each=4)  # of the upstreams, and of other parameters in turn


def calls_of(completion: ChatCompletion) -> list[ChatCompletionMessageFunctionToolCall]:
    calls = completion.choices[0].message.tool_calls or []
    return [call for call in calls if isinstance(call, ChatCompletionMessageFunctionToolCall)]


def results(completion: ChatCompletion, said: str) -> list[Any]:
    """The turn of a model and what its tools said to it."""
    return [
        completion.choices[0].message.model_dump(exclude_none=True),
        *(
            {"role": "tool", "tool_call_id": call.id, "content": f"{said} {number}"}
            for number, call in enumerate(calls_of(completion))
        ),
    ]


def test_a_completion_is_answered(stage: Stage) -> None:
    answer = stage.gpt.chat.completions.create(model=MODEL, messages=HELLO)
    (choice,) = answer.choices
    assert answer.object == "chat.completion"
    assert answer.model == MODEL
    assert answer.id.startswith("chatcmpl")
    assert answer.created > 1_700_000_000
    assert choice.message.role == "assistant"
    assert choice.message.content == HEARD
    assert choice.finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    assert b"You are terse." in stage.upstream.requests[-1].body


def test_a_stream_says_the_same_as_the_whole_answer(stage: Stage) -> None:
    whole = stage.gpt.chat.completions.create(model=MODEL, messages=HELLO)
    with stage.gpt.chat.completions.stream(
        model=MODEL, messages=HELLO, stream_options={"include_usage": True}
    ) as stream:
        pieces = [event.delta for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion()
    assert len(pieces) > 3
    assert "".join(pieces) == final.choices[0].message.content == whole.choices[0].message.content
    assert final.choices[0].finish_reason == whole.choices[0].finish_reason == "stop"
    assert final.usage is not None
    assert whole.usage is not None
    assert final.usage.model_dump(exclude_none=True) == whole.usage.model_dump(exclude_none=True)


def test_usage_is_streamed_only_if_asked_for(stage: Stage) -> None:
    silent = list(stage.gpt.chat.completions.create(model=MODEL, messages=HELLO, stream=True))
    assert all(chunk.usage is None for chunk in silent)
    assert all(chunk.choices for chunk in silent)
    asked = list(
        stage.gpt.chat.completions.create(
            model=MODEL, messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
    )
    assert asked[-1].usage is not None
    assert asked[-1].choices == []
    assert len({chunk.id for chunk in asked}) == 1
    assert {chunk.model for chunk in asked} == {MODEL}


def test_an_answer_that_hits_the_limit_says_so(stage: Stage) -> None:
    words: list[ChatCompletionMessageParam] = [{"role": "user", "content": "[[demo:text 50]]"}]
    answer = stage.gpt.chat.completions.create(model=MODEL, messages=words, max_completion_tokens=5)
    assert answer.choices[0].finish_reason == "length"
    chunks = list(
        stage.gpt.chat.completions.create(model=MODEL, messages=words, max_completion_tokens=5, stream=True)
    )
    assert [c.choices[0].finish_reason for c in chunks if c.choices[0].finish_reason] == ["length"]
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert said == answer.choices[0].message.content


def test_pictures_reach_the_upstream(stage: Stage) -> None:
    content: list[Any] = [
        {"type": "text", "text": "[[demo:echo]] What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
    ]
    answer = stage.gpt.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": content}])
    assert answer.choices[0].message.content == "What is this?"
    assert PIXEL.encode() in stage.upstream.requests[-1].body


def test_a_tool_loop(stage: Stage) -> None:
    first = stage.gpt.chat.completions.create(model=MODEL, messages=[ASKED], tools=TOOLS)
    assert first.choices[0].finish_reason == "tool_calls"
    (call,) = calls_of(first)
    assert call.function.name == "get_weather"
    assert call.function.arguments == '{"city":"Rome"}'
    assert LEGAL_ID.fullmatch(call.id)
    second = stage.gpt.chat.completions.create(
        model=MODEL, messages=[ASKED, *results(first, "18 degrees")], tools=TOOLS
    )
    assert "18 degrees 0" in (second.choices[0].message.content or "")
    assert second.choices[0].finish_reason == "stop"
    assert second.usage is not None
    assert second.usage.prompt_tokens_details is not None
    assert second.usage.prompt_tokens_details.cached_tokens


def test_a_streamed_call_is_the_same_call(stage: Stage) -> None:
    whole = stage.gpt.chat.completions.create(model=MODEL, messages=[ASKED], tools=TOOLS)
    with stage.gpt.chat.completions.stream(model=MODEL, messages=[ASKED], tools=TOOLS) as stream:
        done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
        final = stream.get_final_completion()
    (call,), (same,) = calls_of(final), calls_of(whole)
    assert (call.id, call.function.name) == (same.id, same.function.name)
    assert call.function.arguments == same.function.arguments
    assert [event.name for event in done] == ["get_weather"]
    assert final.choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize("streaming", [False, True])
def test_calls_in_parallel_stay_apart(stage: Stage, streaming: bool) -> None:
    asked: ChatCompletionMessageParam = {
        "role": "user",
        "content": "[[demo:tools 3]] The weather and the time in Rome?",
    }
    first: ChatCompletion
    if streaming:
        with stage.gpt.chat.completions.stream(model=MODEL, messages=[asked], tools=TOOLS) as stream:
            first = stream.get_final_completion()
    else:
        first = stage.gpt.chat.completions.create(model=MODEL, messages=[asked], tools=TOOLS)
    calls = calls_of(first)
    assert [call.function.arguments for call in calls] == ['{"city":"Rome"}'] * 3
    assert len({call.id for call in calls}) == 3
    assert {call.function.name for call in calls} == {"get_weather", "get_time"}
    second = stage.gpt.chat.completions.create(
        model=MODEL, messages=[asked, *results(first, "result")], tools=TOOLS
    )
    said = second.choices[0].message.content or ""
    assert said.index("result 0") < said.index("result 1") < said.index("result 2")


def test_a_tool_may_be_forced(stage: Stage) -> None:
    answer = stage.gpt.chat.completions.create(
        model=MODEL,
        messages=[ASKED],
        tools=TOOLS,
        tool_choice={"type": "function", "function": {"name": "get_time"}},
    )
    assert [call.function.name for call in calls_of(answer)] == ["get_time"]


def test_structured_output_is_parsed(stage: Stage) -> None:
    parsed = stage.gpt.chat.completions.parse(
        model=MODEL, messages=[{"role": "user", "content": "Where is it?"}], response_format=Place
    )
    assert isinstance(parsed.choices[0].message.parsed, Place)
    with stage.gpt.chat.completions.stream(
        model=MODEL, messages=[{"role": "user", "content": "Where is it?"}], response_format=Place
    ) as stream:
        assert stream.get_final_completion().choices[0].message.parsed == parsed.choices[0].message.parsed


def test_tools_are_parsed(stage: Stage) -> None:
    parsed = stage.gpt.chat.completions.parse(
        model=MODEL, messages=[ASKED], tools=[openai.pydantic_function_tool(GetWeather)]
    )
    (call,) = parsed.choices[0].message.tool_calls or []
    assert call.function.parsed_arguments == GetWeather(city="Rome")


def test_a_json_object_may_be_asked_for(stage: Stage) -> None:
    answer = stage.gpt.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Answer in JSON."}],
        response_format={"type": "json_object"},
    )
    assert answer.choices[0].message.content


def test_effort_is_a_wish_to_think(stage: Stage) -> None:
    answer = stage.gpt.chat.completions.create(model=MODEL, messages=HELLO, reasoning_effort="high")
    assert answer.choices[0].message.content == HEARD
    assert answer.usage is not None
    assert answer.usage.completion_tokens_details is not None
    assert answer.usage.completion_tokens_details.reasoning_tokens


@pytest.mark.parametrize("streaming", [False, True])
def test_reasoning_comes_back_to_the_upstream_as_it_left(stage: Stage, streaming: bool) -> None:
    """Chat has no field for it: it travels beside the calls, for clients that send messages back whole."""
    asked: ChatCompletionMessageParam = {"role": "user", "content": f"{STRICT} What is the weather in Rome?"}
    options: dict[str, Any] = {"model": MODEL, "tools": TOOLS, "reasoning_effort": "high"}
    first: ChatCompletion
    if streaming:
        with stage.gpt.chat.completions.stream(messages=[asked], **options) as stream:
            first = stream.get_final_completion()
    else:
        first = stage.gpt.chat.completions.create(messages=[asked], **options)
    assert len(calls_of(first)) == 1
    again = [asked, *results(first, "18 degrees")]
    second = stage.gpt.chat.completions.create(messages=again, **options)
    assert "18 degrees 0" in (second.choices[0].message.content or "")
    assert len(reasoning_state(stage.dialect, stage.sent())) == (0 if stage.dialect == "openai-chat" else 1)


def test_a_refusal_is_an_answer_and_a_filter_a_broken_one(stage: Stage) -> None:
    asked: list[ChatCompletionMessageParam] = [{"role": "user", "content": "[[demo:refuse]] x"}]
    (choice,) = stage.gpt.chat.completions.create(model=MODEL, messages=asked).choices
    chunks = list(stage.gpt.chat.completions.create(model=MODEL, messages=asked, stream=True))
    streamed = "".join(chunk.choices[0].delta.refusal or "" for chunk in chunks)
    if stage.dialect.startswith("openai"):
        assert streamed == choice.message.refusal != ""
        assert choice.finish_reason == chunks[-1].choices[0].finish_reason == "stop"
    else:  # there is no telling a refusal from a filter
        assert choice.finish_reason == chunks[-1].choices[0].finish_reason == "content_filter"


def test_models_are_described(stage: Stage) -> None:
    found = [model.id for model in stage.gpt.models.list()]
    listed = stage.dialect != "code-assist"  # which has no lists
    assert (found[0], "mine/demo" in found) == (NAMED, listed)
    assert stage.gpt.models.retrieve(MODEL).id == MODEL
    with pytest.raises(openai.NotFoundError):
        stage.gpt.models.retrieve(UNLISTED)


async def answered_twice(stage: Stage) -> tuple[str | None, str | None]:
    async with stage.async_gpt() as client:
        whole = await client.chat.completions.create(model=MODEL, messages=HELLO)
        async with client.chat.completions.stream(model=MODEL, messages=HELLO) as stream:
            final = await stream.get_final_completion()
    return whole.choices[0].message.content, final.choices[0].message.content


def test_the_async_client_is_answered(stage: Stage) -> None:
    assert asyncio.run(answered_twice(stage)) == (HEARD, HEARD)
