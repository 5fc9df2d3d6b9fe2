"""Google's SDK through the gateway, before an upstream of every dialect: text, streams, chats, counts."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from typing import Any

import pytest
from google.genai import errors, types

from tests.gateway.sdk.sdk_kit import ECHO, HEARD, MODEL, NAMED, PIXEL, UNLISTED, Place, Stage, stage_fixtures

GOOGLE = ("gemini", "code-assist")
running, stage = stage_fixtures()
pytestmark = pytest.mark.sampled(each=4)  # of the upstreams, and of other parameters in turn


def finish_of(answer: types.GenerateContentResponse) -> types.FinishReason | None:
    return answer.candidates[0].finish_reason if answer.candidates else None


def counts(answer: types.GenerateContentResponse) -> dict[str, int]:
    usage = answer.usage_metadata
    assert usage is not None
    found = usage.model_dump(exclude_none=True)
    return {name: value for name, value in found.items() if isinstance(value, int) and value}


def test_content_is_generated(stage: Stage) -> None:
    config = types.GenerateContentConfig(system_instruction="You are terse.", max_output_tokens=100)
    answer = stage.gemini.models.generate_content(model=MODEL, contents=ECHO, config=config)
    assert answer.text == HEARD
    assert answer.model_version == MODEL
    assert answer.response_id
    assert finish_of(answer) == types.FinishReason.STOP
    assert answer.candidates is not None
    assert answer.candidates[0].content is not None
    assert answer.candidates[0].content.role == "model"
    assert counts(answer)["total_token_count"] >= counts(answer)["prompt_token_count"] > 0
    assert b"You are terse." in stage.upstream.requests[-1].body


def test_a_stream_says_the_same_as_the_whole_answer(stage: Stage) -> None:
    whole = stage.gemini.models.generate_content(model=MODEL, contents=ECHO)
    chunks = list(stage.gemini.models.generate_content_stream(model=MODEL, contents=ECHO))
    assert len(chunks) > 3
    assert "".join(chunk.text or "" for chunk in chunks) == whole.text
    assert finish_of(chunks[-1]) == finish_of(whole)
    assert all(finish_of(chunk) is None for chunk in chunks[:-1])
    assert counts(chunks[-1]) == counts(whole)
    assert {chunk.model_version for chunk in chunks} == {MODEL}
    assert len({chunk.response_id for chunk in chunks}) == 1


def test_an_answer_that_hits_the_limit_says_so(stage: Stage) -> None:
    config = types.GenerateContentConfig(max_output_tokens=16)
    whole = stage.gemini.models.generate_content(model=MODEL, contents="[[demo:text 50]]", config=config)
    chunks = list(
        stage.gemini.models.generate_content_stream(model=MODEL, contents="[[demo:text 50]]", config=config)
    )
    assert finish_of(whole) == finish_of(chunks[-1]) == types.FinishReason.MAX_TOKENS
    assert "".join(chunk.text or "" for chunk in chunks) == whole.text


def test_a_refusal_stops_for_safety(stage: Stage) -> None:
    whole = stage.gemini.models.generate_content(model=MODEL, contents="[[demo:refuse]] x")
    chunks = list(stage.gemini.models.generate_content_stream(model=MODEL, contents="[[demo:refuse]] x"))
    assert finish_of(whole) == finish_of(chunks[-1]) == types.FinishReason.SAFETY


def test_pictures_reach_the_upstream(stage: Stage) -> None:
    picture = types.Part.from_bytes(data=b64decode(PIXEL), mime_type="image/png")
    answer = stage.gemini.models.generate_content(
        model=MODEL, contents=[picture, "[[demo:echo]] What is this?"]
    )
    assert answer.text == "What is this?"
    # Google's own servers take both alphabets of base64, and its SDK sends the other one.
    spelled = PIXEL.translate(str.maketrans("+/", "-_")) if stage.dialect in GOOGLE else PIXEL
    assert spelled.encode() in stage.upstream.requests[-1].body


def test_structured_output_is_parsed(stage: Stage) -> None:
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Place)
    answer = stage.gemini.models.generate_content(model=MODEL, contents="Where is it?", config=config)
    assert isinstance(answer.parsed, Place)
    chunks = list(
        stage.gemini.models.generate_content_stream(model=MODEL, contents="Where is it?", config=config)
    )
    assert Place.model_validate_json("".join(chunk.text or "" for chunk in chunks)) == answer.parsed


def test_structured_output_may_be_a_list(stage: Stage) -> None:
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=list[Place])
    answer = stage.gemini.models.generate_content(model=MODEL, contents="Where is it?", config=config)
    parsed: Any = answer.parsed
    assert isinstance(parsed, list)
    assert [type(place) for place in parsed] == [Place]


def test_a_chat_remembers(stage: Stage) -> None:
    chat = stage.gemini.chats.create(model=MODEL)
    first = chat.send_message("[[demo:echo]] My name is Ada.")
    second = chat.send_message("[[demo:echo]] Say it again.")
    assert (first.text, second.text) == ("My name is Ada.", "Say it again.")
    assert [content.role for content in chat.get_history()] == ["user", "model", "user", "model"]
    assert b"My name is Ada." in stage.upstream.requests[-1].body
    assert counts(second)["cached_content_token_count"] > 0


def test_a_chat_streams(stage: Stage) -> None:
    chat = stage.gemini.chats.create(model=MODEL)
    said = "".join(chunk.text or "" for chunk in chat.send_message_stream(ECHO))
    again = "".join(chunk.text or "" for chunk in chat.send_message_stream("[[demo:echo]] And again"))
    assert (said, again) == (HEARD, "And again")


def test_tokens_are_counted(stage: Stage) -> None:
    few = stage.gemini.models.count_tokens(model=MODEL, contents="hello").total_tokens
    many = stage.gemini.models.count_tokens(model=MODEL, contents="hello " * 500).total_tokens
    assert few is not None
    assert many is not None
    assert 0 < few < 100 < many


def test_models_are_described(stage: Stage) -> None:
    found = [model.name for model in stage.gemini.models.list()]
    listed = stage.dialect != "code-assist"  # which has no lists
    assert (found[0], "models/mine/demo" in found) == (f"models/{NAMED}", listed)
    assert stage.gemini.models.get(model=MODEL).name == f"models/{MODEL}"
    with pytest.raises(errors.ClientError) as caught:
        stage.gemini.models.get(model=UNLISTED)
    assert caught.value.code == 404


async def answered_twice(stage: Stage) -> tuple[str | None, str]:
    client = stage.gemini.aio
    whole = await client.models.generate_content(model=MODEL, contents=ECHO)
    streamed = ""
    async for chunk in await client.models.generate_content_stream(model=MODEL, contents=ECHO):
        streamed += chunk.text or ""
    return whole.text, streamed


def test_the_async_client_is_answered(stage: Stage) -> None:
    assert asyncio.run(answered_twice(stage)) == (HEARD, HEARD)
