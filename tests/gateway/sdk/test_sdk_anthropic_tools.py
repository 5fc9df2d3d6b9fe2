"""Anthropic's SDK through the gateway: tool loops by hand and by its runner, and thinking that comes back."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import pytest
from anthropic import beta_async_tool, beta_tool
from anthropic.types import Message, MessageParam, TextBlock, ThinkingBlock, ToolParam, ToolUseBlock

from tests.gateway.sdk.sdk_kit import LEGAL_ID, MODEL, STRICT, WEATHER, Stage, reasoning_state, stage_fixtures

TOOLS: list[ToolParam] = [
    {"name": "get_weather", "description": "The weather of a city.", "input_schema": WEATHER},
    {"name": "get_time", "description": "The time in a city.", "input_schema": WEATHER},
]
ASKED: MessageParam = {"role": "user", "content": "What is the weather in Rome?"}
running, stage = stage_fixtures()
pytestmark = pytest.mark.sampled(each=4)  # of the upstreams, and of other parameters in turn


@beta_tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"18 degrees in {city}"


@beta_async_tool
async def get_weather_later(city: str) -> str:
    """The weather of a city."""
    return f"18 degrees in {city}"


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def calls_of(message: Message) -> list[ToolUseBlock]:
    return [block for block in message.content if isinstance(block, ToolUseBlock)]


def results(message: Message, said: str) -> list[MessageParam]:
    """The turn of a model and what its tools said to it."""
    return [
        {"role": "assistant", "content": message.content},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": call.id, "content": f"{said} {number}"}
                for number, call in enumerate(calls_of(message))
            ],
        },
    ]


def test_a_tool_loop_by_hand(stage: Stage) -> None:
    first = stage.claude.messages.create(model=MODEL, max_tokens=500, tools=TOOLS, messages=[ASKED])
    assert first.stop_reason == "tool_use"
    (call,) = calls_of(first)
    assert call.name == "get_weather"
    assert call.input == {"city": "Rome"}
    assert LEGAL_ID.fullmatch(call.id)
    second = stage.claude.messages.create(
        model=MODEL, max_tokens=500, tools=TOOLS, messages=[ASKED, *results(first, "18 degrees")]
    )
    assert second.stop_reason == "end_turn"
    assert "18 degrees 0" in text_of(second)
    assert second.usage.cache_read_input_tokens


def test_a_streamed_call_is_the_same_call(stage: Stage) -> None:
    whole = stage.claude.messages.create(model=MODEL, max_tokens=500, tools=TOOLS, messages=[ASKED])
    with stage.claude.messages.stream(model=MODEL, max_tokens=500, tools=TOOLS, messages=[ASKED]) as stream:
        snapshots = [event.snapshot for event in stream if event.type == "input_json"]
        final = stream.get_final_message()
    assert snapshots[-1] == {"city": "Rome"}
    (call,), (same,) = calls_of(final), calls_of(whole)
    assert (call.id, call.name, call.input) == (same.id, same.name, same.input)
    assert final.stop_reason == "tool_use"
    assert (final.usage.input_tokens, final.usage.output_tokens) == (
        whole.usage.input_tokens,
        whole.usage.output_tokens,
    )


@pytest.mark.parametrize("streaming", [False, True])
def test_calls_in_parallel_stay_apart(stage: Stage, streaming: bool) -> None:
    asked: MessageParam = {"role": "user", "content": "[[demo:tools 3]] The weather and the time in Rome?"}
    if streaming:
        with stage.claude.messages.stream(
            model=MODEL, max_tokens=500, tools=TOOLS, messages=[asked]
        ) as stream:
            first: Message = stream.get_final_message()
    else:
        first = stage.claude.messages.create(model=MODEL, max_tokens=500, tools=TOOLS, messages=[asked])
    calls = calls_of(first)
    assert len(calls) == 3
    assert len({call.id for call in calls}) == 3
    assert all(LEGAL_ID.fullmatch(call.id) for call in calls)
    assert all(call.input == {"city": "Rome"} for call in calls)
    assert {call.name for call in calls} == {"get_weather", "get_time"}
    second = stage.claude.messages.create(
        model=MODEL, max_tokens=500, tools=TOOLS, messages=[asked, *results(first, "result")]
    )
    said = text_of(second)
    assert said.index("result 0") < said.index("result 1") < said.index("result 2")


def test_one_call_at_a_time_is_asked_for(stage: Stage) -> None:
    first = stage.claude.messages.create(
        model=MODEL,
        max_tokens=500,
        tools=TOOLS,
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        messages=[{"role": "user", "content": "[[demo:tools 3]] The weather in Rome?"}],
    )
    # Gemini has no such wish: it is reported as a loss, in the header.
    googles = ("gemini", "code-assist", "gemini-interactions")
    assert len(calls_of(first)) == (3 if stage.dialect in googles else 1)


def test_a_tool_may_be_forced(stage: Stage) -> None:
    first = stage.claude.messages.create(
        model=MODEL,
        max_tokens=500,
        tools=TOOLS,
        tool_choice={"type": "tool", "name": "get_time"},
        messages=[{"role": "user", "content": "The weather in Rome?"}],
    )
    assert [call.name for call in calls_of(first)] == ["get_time"]


def test_a_tool_that_failed_is_reported_to_the_model(stage: Stage) -> None:
    first = stage.claude.messages.create(model=MODEL, max_tokens=500, tools=TOOLS, messages=[ASKED])
    (call,) = calls_of(first)
    failed: Any = {"type": "tool_result", "tool_use_id": call.id, "content": "no network", "is_error": True}
    second = stage.claude.messages.create(
        model=MODEL,
        max_tokens=500,
        tools=TOOLS,
        messages=[
            ASKED,
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [failed]},
        ],
    )
    assert "no network" in text_of(second)


def test_the_runner_goes_on_without_threads(stage: Stage) -> None:
    runner = stage.claude.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=500,
        tools=[get_weather],
        messages=[{"role": "user", "content": "What is the weather in Rome?"}],
    )
    final = runner.until_done()
    assert "18 degrees in Rome" in text_of(final)
    answered = [request.json for request in stage.upstream.requests if "thread" not in request.json]
    assert len(answered) == 2, "each turn is answered once its thread has been refused"


def test_the_runner_goes_on_without_threads_while_streaming(stage: Stage) -> None:
    runner = stage.claude.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=500,
        tools=[get_weather],
        stream=True,
        messages=[{"role": "user", "content": "What is the weather in Rome?"}],
    )
    finals = [stream.get_final_message() for stream in runner]
    assert [final.stop_reason for final in finals] == ["tool_use", "end_turn"]
    assert "18 degrees in Rome" in text_of(finals[-1])


def test_a_thread_is_refused_in_the_words_the_sdk_knows(stage: Stage) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        stage.claude.messages.create(
            model=MODEL, max_tokens=500, messages=[ASKED], extra_body={"thread": {"type": "create"}}
        )
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["details"] == {
        "error_code": "thread_unsupported_request",
        "unsupported": ["thread"],
    }
    assert caught.value.request_id


async def run_later(stage: Stage) -> str:
    async with stage.async_claude() as client:
        runner = client.beta.messages.tool_runner(
            model=MODEL,
            max_tokens=500,
            tools=[get_weather_later],
            messages=[{"role": "user", "content": "What is the weather in Rome?"}],
        )
        return text_of(await runner.until_done())


def test_the_async_runner_completes_too(stage: Stage) -> None:
    assert "18 degrees in Rome" in asyncio.run(run_later(stage))


@pytest.mark.parametrize("streaming", [False, True])
def test_thinking_comes_back_to_the_upstream_as_it_left(stage: Stage, streaming: bool) -> None:
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}
    asked: MessageParam = {"role": "user", "content": f"{STRICT} What is the weather in Rome?"}
    if streaming:
        with stage.claude.messages.stream(
            model=MODEL, max_tokens=4000, tools=TOOLS, messages=[asked], thinking=thinking
        ) as stream:
            first: Message = stream.get_final_message()
    else:
        first = stage.claude.messages.create(
            model=MODEL, max_tokens=4000, tools=TOOLS, messages=[asked], thinking=thinking
        )
    thoughts = [block for block in first.content if isinstance(block, ThinkingBlock)]
    assert thoughts
    assert thoughts[0].thinking.startswith("The user writes English")
    assert first.content.index(thoughts[0]) == 0
    second = stage.claude.messages.create(
        model=MODEL,
        max_tokens=4000,
        tools=TOOLS,
        thinking=thinking,
        messages=[asked, *results(first, "18 degrees")],
    )
    assert "18 degrees 0" in text_of(second)
    assert len(reasoning_state(stage.dialect, stage.sent())) == (0 if stage.dialect == "openai-chat" else 1)


def test_thinking_is_streamed_by_its_own_events(stage: Stage) -> None:
    with stage.claude.messages.stream(
        model=MODEL,
        max_tokens=4000,
        messages=[{"role": "user", "content": "[[demo:echo]] Hello"}],
        thinking={"type": "enabled", "budget_tokens": 1024},
    ) as stream:
        thought = "".join(event.thinking for event in stream if event.type == "thinking")
        final = stream.get_final_message()
    block, text = final.content
    assert isinstance(block, ThinkingBlock)
    assert isinstance(text, TextBlock)
    assert block.thinking == thought != ""
    assert text.text == "Hello"


def test_thinking_of_a_turn_without_tools_is_accepted_again(stage: Stage) -> None:
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}
    first = stage.claude.messages.create(
        model=MODEL,
        max_tokens=4000,
        thinking=thinking,
        messages=[{"role": "user", "content": f"{STRICT} Hello there"}],
    )
    second = stage.claude.messages.create(
        model=MODEL,
        max_tokens=4000,
        thinking=thinking,
        messages=[
            {"role": "user", "content": f"{STRICT} Hello there"},
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": "[[demo:echo]] And again"},
        ],
    )
    assert text_of(second) == "And again"
