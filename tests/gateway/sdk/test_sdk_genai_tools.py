"""Google's SDK through the gateway: function calls by hand and by itself, thoughts that come back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.genai import types

from tests.gateway.sdk.sdk_kit import MODEL, STRICT, WEATHER, Stage, reasoning_state, stage_fixtures

ASKED = "What is the weather in Rome?"
running, stage = stage_fixtures()
pytestmark = pytest.mark.sampled(each=4)  # of the upstreams, and of other parameters in turn


def get_weather(city: str) -> dict[str, str]:
    """The weather of a city.

    Args:
        city: Its name.
    """
    return {"report": f"18 degrees in {city}"}


def by_hand(**more: Any) -> types.GenerateContentConfig:
    declared = [
        types.FunctionDeclaration(name=name, parameters_json_schema=WEATHER)
        for name in ("get_weather", "get_time")
    ]
    return types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=declared)],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        **more,
    )


def user(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def parts_of(*answers: types.GenerateContentResponse) -> list[types.Part]:
    found: list[types.Part] = []
    for answer in answers:
        content = answer.candidates[0].content if answer.candidates else None
        found += (content.parts or []) if content is not None else []
    return found


def results(calls: list[types.FunctionCall], said: str) -> types.Content:
    parts = [
        types.Part(
            function_response=types.FunctionResponse(
                id=call.id, name=call.name, response={"output": f"{said} {number}"}
            )
        )
        for number, call in enumerate(calls)
    ]
    return types.Content(role="user", parts=parts)


def test_a_tool_loop_by_hand(stage: Stage) -> None:
    first = stage.gemini.models.generate_content(model=MODEL, contents=ASKED, config=by_hand())
    (call,) = first.function_calls or []
    assert call.name == "get_weather"
    assert call.args == {"city": "Rome"}
    assert first.candidates is not None
    assert first.candidates[0].finish_reason == types.FinishReason.STOP
    turn = types.Content(role="model", parts=parts_of(first))
    second = stage.gemini.models.generate_content(
        model=MODEL, contents=[user(ASKED), turn, results([call], "18 degrees")], config=by_hand()
    )
    assert "18 degrees 0" in (second.text or "")


def test_a_streamed_call_is_the_same_call(stage: Stage) -> None:
    whole = stage.gemini.models.generate_content(model=MODEL, contents=ASKED, config=by_hand())
    chunks = list(stage.gemini.models.generate_content_stream(model=MODEL, contents=ASKED, config=by_hand()))
    (call,) = [part.function_call for part in parts_of(*chunks) if part.function_call is not None]
    (same,) = whole.function_calls or []
    assert (call.id, call.name, call.args) == (same.id, same.name, same.args)


@pytest.mark.parametrize("named", [True, False])
def test_calls_in_parallel_stay_apart(stage: Stage, named: bool) -> None:
    """Clients of the older API answer by name and place, without ids."""
    text = "[[demo:tools 3]] The weather and the time in Rome?"
    first = stage.gemini.models.generate_content(model=MODEL, contents=text, config=by_hand())
    calls = first.function_calls or []
    assert [call.args for call in calls] == [{"city": "Rome"}] * 3
    assert {call.name for call in calls} == {"get_weather", "get_time"}
    turn = types.Content(role="model", parts=parts_of(first))
    answers = results(calls, "result")
    if not named:
        for part in (*(turn.parts or []), *(answers.parts or [])):
            for carrier in (part.function_call, part.function_response):
                if carrier is not None:
                    carrier.id = None
    second = stage.gemini.models.generate_content(
        model=MODEL, contents=[user(text), turn, answers], config=by_hand()
    )
    said = second.text or ""
    assert said.index("result 0") < said.index("result 1") < said.index("result 2")


def test_a_tool_may_be_forced(stage: Stage) -> None:
    mode = types.FunctionCallingConfigMode.ANY
    config = by_hand(
        tool_config=types.ToolConfig(
            function_calling_config=types.FunctionCallingConfig(
                mode=mode, allowed_function_names=["get_time"]
            )
        )
    )
    answer = stage.gemini.models.generate_content(model=MODEL, contents=ASKED, config=config)
    assert [call.name for call in answer.function_calls or []] == ["get_time"]


def test_functions_are_called_by_the_sdk_itself(stage: Stage) -> None:
    config = types.GenerateContentConfig(tools=[get_weather])
    answer = stage.gemini.models.generate_content(model=MODEL, contents=ASKED, config=config)
    assert "18 degrees in Rome" in (answer.text or "")
    assert len(stage.upstream.requests) == 2


def test_functions_are_called_by_the_sdk_itself_in_a_streamed_chat(stage: Stage) -> None:
    chat = stage.gemini.chats.create(model=MODEL, config=types.GenerateContentConfig(tools=[get_weather]))
    said = "".join(part.text or "" for chunk in chat.send_message_stream(ASKED) for part in parts_of(chunk))
    assert "18 degrees in Rome" in said


async def called_later(stage: Stage) -> str | None:
    config = types.GenerateContentConfig(tools=[get_weather])
    answer = await stage.gemini.aio.models.generate_content(model=MODEL, contents=ASKED, config=config)
    return answer.text


def test_functions_are_called_by_the_async_client(stage: Stage) -> None:
    assert "18 degrees in Rome" in (asyncio.run(called_later(stage)) or "")


@pytest.mark.parametrize("streaming", [False, True])
def test_thoughts_come_back_to_the_upstream_as_they_left(stage: Stage, streaming: bool) -> None:
    text = f"{STRICT} {ASKED}"
    config = by_hand(thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_budget=1024))
    if streaming:
        chunks = stage.gemini.models.generate_content_stream(model=MODEL, contents=text, config=config)
        parts = parts_of(*chunks)
    else:
        parts = parts_of(stage.gemini.models.generate_content(model=MODEL, contents=text, config=config))
    thought = "".join(part.text or "" for part in parts if part.thought)
    assert thought.startswith("The user writes English")
    calls = [part.function_call for part in parts if part.function_call is not None]
    assert len(calls) == 1
    contents = [user(text), types.Content(role="model", parts=parts), results(calls, "18 degrees")]
    second = stage.gemini.models.generate_content(model=MODEL, contents=contents, config=config)
    assert "18 degrees 0" in (second.text or "")
    assert len(reasoning_state(stage.dialect, stage.sent())) == (0 if stage.dialect == "openai-chat" else 1)


def test_thoughts_are_counted_apart(stage: Stage) -> None:
    config = types.GenerateContentConfig(
        thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_budget=1024)
    )
    answer = stage.gemini.models.generate_content(model=MODEL, contents="[[demo:echo]] Hello", config=config)
    assert answer.text == "Hello"
    assert next(part.thought for part in parts_of(answer)) is True
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.thoughts_token_count


def test_a_chat_with_thoughts_goes_on(stage: Stage) -> None:
    config = types.GenerateContentConfig(thinking_config=types.ThinkingConfig(include_thoughts=True))
    chat = stage.gemini.chats.create(model=MODEL, config=config)
    first = chat.send_message(f"{STRICT} Hello there")
    assert first.text
    assert chat.send_message("[[demo:echo]] And again").text == "And again"
