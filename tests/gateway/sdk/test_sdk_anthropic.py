"""Anthropic's SDK through the gateway, before an upstream of every dialect: text, streams, media, counts."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import pytest
from anthropic.types import MessageParam, TextBlock, TextBlockParam

from tests.gateway.sdk.sdk_kit import ECHO, HEARD, MODEL, NAMED, PIXEL, UNLISTED, Place, Stage, stage_fixtures

HELLO: list[MessageParam] = [{"role": "user", "content": ECHO}]
running, stage = stage_fixtures()
pytestmark = pytest.mark.sampled(each=4)  # of the upstreams, and of other parameters in turn


def text_of(message: anthropic.types.Message) -> str:
    return "".join(block.text for block in message.content if isinstance(block, TextBlock))


def test_a_message_is_answered(stage: Stage) -> None:
    answer = stage.claude.messages.create(model=MODEL, max_tokens=100, messages=HELLO)
    assert answer.type == "message"
    assert answer.role == "assistant"
    assert answer.model == MODEL
    assert answer.id.startswith("msg_")
    assert text_of(answer) == HEARD
    assert answer.stop_reason == "end_turn"
    assert answer.stop_sequence is None
    assert answer.usage.input_tokens > 0
    assert answer.usage.output_tokens > 0


def test_a_stream_says_the_same_as_the_whole_answer(stage: Stage) -> None:
    whole = stage.claude.messages.create(model=MODEL, max_tokens=100, messages=HELLO)
    with stage.claude.messages.stream(model=MODEL, max_tokens=100, messages=HELLO) as stream:
        pieces = list(stream.text_stream)
        final = stream.get_final_message()
    assert len(pieces) > 3
    assert "".join(pieces) == text_of(final) == text_of(whole)
    assert final.stop_reason == whole.stop_reason
    assert final.usage.input_tokens == whole.usage.input_tokens
    assert final.usage.output_tokens == whole.usage.output_tokens
    assert final.id.startswith("msg_")
    assert final.model == MODEL


def test_the_events_of_a_stream_come_in_their_order(stage: Stage) -> None:
    kinds: list[str] = [
        event.type
        for event in stage.claude.messages.create(model=MODEL, max_tokens=100, messages=HELLO, stream=True)
    ]
    runs = [kind for before, kind in zip(["", *kinds], kinds, strict=False) if kind != before]
    assert [kind for kind in runs if kind != "ping"] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_an_answer_that_hits_the_limit_says_so(stage: Stage) -> None:
    words: list[MessageParam] = [{"role": "user", "content": "[[demo:text 50]]"}]
    answer = stage.claude.messages.create(model=MODEL, max_tokens=5, messages=words)
    assert answer.stop_reason == "max_tokens"
    with stage.claude.messages.stream(model=MODEL, max_tokens=5, messages=words) as stream:
        final = stream.get_final_message()
    assert final.stop_reason == "max_tokens"
    assert text_of(final) == text_of(answer)


def test_a_stop_sequence_stops(stage: Stage) -> None:
    raw = stage.claude.messages.with_raw_response.create(
        model=MODEL,
        max_tokens=100,
        messages=[{"role": "user", "content": "[[demo:echo]] one two three"}],
        stop_sequences=["two"],
    )
    answer = raw.parse()
    assert text_of(answer) == "one "
    if stage.dialect == "openai-responses":  # it takes none: the answer was cut here
        assert raw.headers["x-wireglot-losses"] == "stop_sequences"
    tells = stage.dialect in ("anthropic", "openai-responses")
    reported = ("stop_sequence", "two") if tells else ("end_turn", None)
    assert (answer.stop_reason, answer.stop_sequence) == reported


def test_a_refusal_stops_as_one(stage: Stage) -> None:
    asked: list[MessageParam] = [{"role": "user", "content": "[[demo:refuse]] x"}]
    answer = stage.claude.messages.create(model=MODEL, max_tokens=50, messages=asked)
    with stage.claude.messages.stream(model=MODEL, max_tokens=50, messages=asked) as stream:
        final = stream.get_final_message()
    assert answer.stop_reason == final.stop_reason == "refusal"
    assert text_of(answer) == text_of(final) != ""


def test_system_prompts_may_be_blocks(stage: Stage) -> None:
    system: list[TextBlockParam] = [
        {"type": "text", "text": "You are terse."},
        {"type": "text", "text": "You never lie.", "cache_control": {"type": "ephemeral"}},
    ]
    answer = stage.claude.messages.create(model=MODEL, max_tokens=100, system=system, messages=HELLO)
    assert text_of(answer) == HEARD
    body = stage.upstream.requests[-1].body
    assert b"You are terse." in body
    assert b"You never lie." in body


def test_pictures_reach_the_upstream(stage: Stage) -> None:
    content: list[Any] = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "text", "text": "[[demo:echo]] What is this?"},
    ]
    answer = stage.claude.messages.create(
        model=MODEL, max_tokens=100, messages=[{"role": "user", "content": content}]
    )
    assert text_of(answer) == "What is this?"
    assert PIXEL.encode() in stage.upstream.requests[-1].body
    assert b"image/png" in stage.upstream.requests[-1].body


def test_structured_output_is_parsed(stage: Stage) -> None:
    parsed = stage.claude.messages.parse(
        model=MODEL,
        max_tokens=100,
        messages=[{"role": "user", "content": "Where is the Colosseum?"}],
        output_format=Place,
    )
    assert isinstance(parsed.parsed_output, Place)
    assert parsed.stop_reason == "end_turn"


def test_structured_output_is_parsed_from_a_stream(stage: Stage) -> None:
    with stage.claude.messages.stream(
        model=MODEL,
        max_tokens=100,
        messages=[{"role": "user", "content": "Where is the Colosseum?"}],
        output_format=Place,
    ) as stream:
        final = stream.get_final_message()
    assert isinstance(final.parsed_output, Place)


def test_tokens_are_counted(stage: Stage) -> None:
    few = stage.claude.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "hello"}])
    many = stage.claude.messages.count_tokens(
        model=MODEL, messages=[{"role": "user", "content": "hello " * 500}], system="Be brief."
    )
    assert 0 < few.input_tokens < 100 < many.input_tokens


def test_a_count_that_is_an_estimate_says_so(stage: Stage) -> None:
    raw = stage.claude.messages.with_raw_response.count_tokens(
        model=MODEL, messages=[{"role": "user", "content": "hello"}]
    )
    guessed = stage.dialect in ("openai-chat", "gemini-interactions")  # those without an endpoint for it
    assert ("x-wireglot-estimate" in raw.headers) is guessed


def test_models_are_described(stage: Stage) -> None:
    found = [model.id for model in stage.claude.models.list()]
    listed = stage.dialect != "code-assist"  # which has no lists
    assert (found[0], "mine/demo" in found) == (NAMED, listed), "ours, then what the upstream lists itself"
    described = stage.claude.models.retrieve(MODEL)
    assert described.id == MODEL
    assert described._request_id, "the SDK shows people this id"
    with pytest.raises(anthropic.NotFoundError):
        stage.claude.models.retrieve(UNLISTED)


async def answered_twice(stage: Stage) -> tuple[str, str]:
    async with stage.async_claude() as client:
        whole = await client.messages.create(model=MODEL, max_tokens=100, messages=HELLO)
        async with client.messages.stream(model=MODEL, max_tokens=100, messages=HELLO) as stream:
            streamed = "".join([piece async for piece in stream.text_stream])
    return text_of(whole), streamed


def test_the_async_client_is_answered(stage: Stage) -> None:
    assert asyncio.run(answered_twice(stage)) == (HEARD, HEARD)
