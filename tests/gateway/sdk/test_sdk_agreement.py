"""The same question in every SDK, whole and streamed, before every upstream: the answers must agree."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from google.genai import types

from tests.gateway.sdk.sdk_kit import MODEL, WEATHER, Stage, stage_fixtures
from wireglot.testing.scripted_upstream import Behaviour, Fault

TEXT = "What is the weather in Rome?"
FOREIGN = "functions.get_weather:0"
"""An id as Kimi makes them, which Anthropic's and OpenAI's APIs would refuse."""

ODD_WRITERS: tuple[Fault, ...] = ("byte-chunks", "gzip", "unframed", "wrong-type", "json-for-stream")


class Said(msgspec.Struct, frozen=True):
    """What an SDK has heard: text, thought, calls as (id, name, arguments), why it ended, what it cost."""

    text: str
    thought: str
    calls: tuple[tuple[str, str, Any], ...]
    stop: str
    usage: tuple[int, int]


running, stage = stage_fixtures()


def heard_by_claude(stage: Stage, model: str, stream: bool) -> Said:
    asked: Any = {
        "model": model,
        "max_tokens": 4000,
        "messages": [{"role": "user", "content": TEXT}],
        "tools": [{"name": "get_weather", "input_schema": WEATHER}],
        "thinking": {"type": "enabled", "budget_tokens": 2048},
    }
    if stream:
        with stage.claude.messages.stream(**asked) as events:
            answer: Any = events.get_final_message()
    else:
        answer = stage.claude.messages.create(**asked)
    blocks = answer.content
    usage = answer.usage
    return Said(
        "".join(block.text for block in blocks if block.type == "text"),
        "".join(block.thinking for block in blocks if block.type == "thinking"),
        tuple((block.id, block.name, block.input) for block in blocks if block.type == "tool_use"),
        answer.stop_reason,
        (usage.input_tokens + (usage.cache_read_input_tokens or 0), usage.output_tokens),
    )


def heard_by_chat(stage: Stage, model: str, stream: bool) -> Said:
    asked: Any = {
        "model": model,
        "messages": [{"role": "user", "content": TEXT}],
        "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}],
        "reasoning_effort": "high",
    }
    if stream:
        with stage.gpt.chat.completions.stream(**asked, stream_options={"include_usage": True}) as events:
            answer: Any = events.get_final_completion()
    else:
        answer = stage.gpt.chat.completions.create(**asked)
    (choice,) = answer.choices
    calls = choice.message.tool_calls or []
    return Said(
        choice.message.content or "",
        getattr(choice.message, "reasoning_content", None) or "",
        tuple((call.id, call.function.name, parsed(call.function.arguments)) for call in calls),
        choice.finish_reason,
        (answer.usage.prompt_tokens, answer.usage.completion_tokens),
    )


def heard_by_responses(stage: Stage, model: str, stream: bool) -> Said:
    asked: Any = {
        "model": model,
        "input": TEXT,
        "tools": [{"type": "function", "name": "get_weather", "parameters": WEATHER, "strict": False}],
        "reasoning": {"effort": "high", "summary": "auto"},
        "store": False,
    }
    if stream:
        with stage.gpt.responses.stream(**asked) as events:
            answer: Any = events.get_final_response()
    else:
        answer = stage.gpt.responses.create(**asked)
    items = answer.output
    thoughts = [item for item in items if item.type == "reasoning"]
    calls = [item for item in items if item.type == "function_call"]
    return Said(
        answer.output_text,
        "".join(part.text for thought in thoughts for part in thought.summary),
        tuple((call.call_id, call.name, parsed(call.arguments)) for call in calls),
        answer.status,
        (answer.usage.input_tokens, answer.usage.output_tokens),
    )


def heard_by_genai(stage: Stage, model: str, stream: bool) -> Said:
    declared = types.FunctionDeclaration(name="get_weather", parameters_json_schema=WEATHER)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])],
        thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_budget=2048),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    asked: Any = {"model": model, "contents": TEXT, "config": config}
    answers: list[Any]
    if stream:
        answers = list(stage.gemini.models.generate_content_stream(**asked))
    else:
        answers = [stage.gemini.models.generate_content(**asked)]
    parts = [part for answer in answers for part in answer.candidates[0].content.parts or []]
    calls = [part.function_call for part in parts if part.function_call is not None]
    usage = answers[-1].usage_metadata
    return Said(
        "".join(part.text for part in parts if part.text and not part.thought),
        "".join(part.text for part in parts if part.text and part.thought),
        tuple((call.id, call.name, call.args) for call in calls),
        answers[-1].candidates[0].finish_reason.value,
        (usage.prompt_token_count, (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)),
    )


def parsed(arguments: str) -> Any:
    return msgspec.json.decode(arguments)


HEARD: dict[str, Callable[[Stage, str, bool], Said]] = {
    "anthropic": heard_by_claude,
    "openai-chat": heard_by_chat,
    "openai-responses": heard_by_responses,
    "gemini": heard_by_genai,
}
ENDS = {
    "anthropic": "tool_use",
    "openai-chat": "tool_calls",
    "openai-responses": "completed",
    "gemini": "STOP",
}
LEGAL = {
    "anthropic": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "openai-chat": re.compile(r"[\w.:-]{1,64}"),
    "openai-responses": re.compile(r"[\w.:-]{1,64}"),
    "gemini": re.compile(r"[\w.:-]{1,64}"),
}


@pytest.mark.sampled("sdk", each=3)
@pytest.mark.parametrize("sdk", HEARD)
def test_streamed_and_whole_answers_agree_in_everything(stage: Stage, sdk: str) -> None:
    whole = HEARD[sdk](stage, MODEL, False)
    assert HEARD[sdk](stage, MODEL, True) == whole
    assert whole.text == "Let me use get_weather."
    assert whole.thought.startswith("The user writes English")
    ((identifier, name, arguments),) = whole.calls
    assert (name, arguments) == ("get_weather", {"city": "Rome"})
    assert LEGAL[sdk].fullmatch(identifier or "")
    assert whole.stop == ENDS[sdk]


def test_every_sdk_hears_the_same(stage: Stage) -> None:
    heard = [ask(stage, MODEL, False) for ask in HEARD.values()]
    assert len({said.text for said in heard}) == 1
    assert len({said.thought for said in heard}) == 1
    assert len({said.usage for said in heard}) == 1


@pytest.mark.sampled("sdk", "provider", each=2)
@pytest.mark.parametrize("sdk", HEARD)
@pytest.mark.parametrize("provider", ["streamer", "waiter"])
def test_an_upstream_with_one_way_to_answer_serves_both(stage: Stage, sdk: str, provider: str) -> None:
    """One that only streams is folded, one that never does is unfolded."""
    usual = HEARD[sdk](stage, MODEL, False)
    for stream in (False, True):
        said = HEARD[sdk](stage, f"{provider}/{MODEL}", stream)
        assert said == usual
        assert asked_to_stream(stage) is (provider == "streamer")
        # OpenAI refuses options for a stream where there is none.
        assert asked_to_stream(stage) or "stream_options" not in stage.sent()


@pytest.mark.sampled("sdk")
@pytest.mark.parametrize("sdk", HEARD)
def test_how_an_upstream_writes_its_bytes_changes_nothing(stage: Stage, sdk: str) -> None:
    for stream in (False, True):
        usual = HEARD[sdk](stage, MODEL, stream)
        for fault in ODD_WRITERS:
            stage.upstream.next(Behaviour(fault=fault))
            assert HEARD[sdk](stage, MODEL, stream) == usual, fault


def asked_to_stream(stage: Stage) -> bool:
    seen = stage.upstream.requests[-1]
    return "streamGenerateContent" in seen.path or bool(seen.json.get("stream"))


CALLED = {
    "openai-chat": b'{"id":"c","object":"chat.completion","created":1,"model":"m1","choices":[{"index":0,'
    b'"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"ID",'
    b'"type":"function","function":{"name":"get_weather","arguments":"{\\"city\\":\\"Rome\\"}"}}]}}]}',
    "openai-responses": b'{"id":"resp_1","object":"response","status":"completed","model":"m1","output":[{'
    b'"type":"function_call","id":"fc_1","call_id":"ID","name":"get_weather","arguments":"{\\"city\\":\\"Rome\\"}",'
    b'"status":"completed"}]}',
    "gemini": b'{"candidates":[{"index":0,"finishReason":"STOP","content":{"role":"model","parts":[{"functionCall":'
    b'{"id":"ID","name":"get_weather","args":{"city":"Rome"}}}]}}]}',
}


def test_an_id_that_a_client_could_not_send_is_exchanged_for_good(stage: Stage) -> None:
    """What the upstream called it is lost, which is reported; call and result still belong together."""
    if stage.dialect not in CALLED:
        pytest.skip("its ids are legal everywhere")
    tools: Any = [{"name": "get_weather", "input_schema": WEATHER}]
    asked: Any = {"role": "user", "content": TEXT}
    stage.upstream.next(Behaviour(body=CALLED[stage.dialect].replace(b"ID", FOREIGN.encode())))
    raw = stage.claude.messages.with_raw_response.create(
        model=MODEL, max_tokens=99, tools=tools, messages=[asked]
    )
    assert "tool_call.id" in raw.headers["x-wireglot-losses"].split(",")
    first = raw.parse()
    (call,) = first.content
    assert call.type == "tool_use"
    assert LEGAL["anthropic"].fullmatch(call.id)
    again: Any = [
        asked,
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "18"}]},
    ]
    second = stage.claude.messages.create(model=MODEL, max_tokens=99, tools=tools, messages=again)
    assert second.stop_reason == "end_turn"
    # Gemini pairs by name and place where an id is not its own.
    expected = 0 if stage.dialect == "gemini" else 2
    assert stage.upstream.requests[-1].body.count(call.id.encode()) == expected
