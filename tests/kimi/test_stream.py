"""Streams: native events as they arrive, and an exception where they do not."""

import asyncio

import pytest

from tests.kimi.kit import (
    TOOL,
    Http,
    Lines,
    Sleeps,
    asynchronous,
    chunk,
    error,
    message,
    quiet,
    sse,
    streamed,
)
from wireglot import kimi
from wireglot_core.ir.content import Reasoning, Text, ToolCall
from wireglot_core.ir.stream import Delta, Finish, PartStart, Start, check, fold

CHUNKS = (
    chunk({"role": "assistant", "reasoning_content": "Hm."}),
    chunk({"content": "Let me "}),
    chunk({"content": "look."}),
    chunk({"tool_calls": [{"index": 0, "id": "functions.get_weather:0", "type": "function", "function": {"name": "get_weather", "arguments": ""}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"city":"Rome"}'}}]}),
    chunk({}, "tool_calls", usage={"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}),
)  # fmt: skip


async def collect(events):
    return [event async for event in events]


@asynchronous
async def test_a_stream_yields_native_events_that_fold_to_the_answer():
    lines = Lines()
    http = Http(streamed(*sse(*CHUNKS)))
    events = await collect(kimi.stream_with_tools("Hi", [TOOL], **quiet(http, {"log": lines})))
    assert list(check(events)) == events
    whole = fold(events)
    assert whole.content == (
        Reasoning("Hm."),
        Text("Let me look."),
        ToolCall("functions.get_weather:0", "get_weather", '{"city":"Rome"}'),
    )
    assert whole.stop.reason == "tool_calls"
    assert http.body["stream"] is True
    assert http.body["stream_options"] == {"include_usage": True}
    assert http.headers["accept"] == "text/event-stream"
    assert lines[0].startswith("[kimi] model=kimi-k3 prompt_tokens=7 completion_tokens=5 latency_ms=")
    assert len(lines) == 1


@asynchronous
async def test_the_way_the_bytes_are_cut_changes_nothing():
    whole = b"".join(sse(*CHUNKS))
    reported = []
    for pieces in ([whole], [whole[at : at + 1] for at in range(len(whole))]):
        reported.append(await collect(kimi.stream("Hi", **quiet(Http(streamed(*pieces)), {}))))
    assert reported[0] == reported[1]


@asynchronous
async def test_an_event_is_there_before_the_next_piece_arrives():
    gate = asyncio.Event()

    async def body():
        yield b"".join(sse(*CHUNKS[:2], done=False))
        await gate.wait()
        yield b"".join(sse(*CHUNKS[2:]))

    events = kimi.stream("Hi", **quiet(Http((200, {}, body())), {}))
    early = []
    async for event in events:
        early.append(event)
        if isinstance(event, Delta) and event.text == "Let me ":
            gate.set()
    assert isinstance(early[0], Start)
    assert isinstance(early[-1], Finish)


@asynchronous
async def test_a_stream_cut_short_raises_and_is_logged_as_failed():
    lines = Lines()
    http = Http(streamed(*sse(*CHUNKS[:3], done=False)))
    seen = []

    async def follow():
        async for event in kimi.stream("Hi", **quiet(http, {"log": lines})):
            seen.append(event)

    with pytest.raises(kimi.KimiApiError, match="broke off") as caught:
        await follow()
    assert any(isinstance(event, Delta) for event in seen)
    assert (caught.value.code, caught.value.attempts, len(http.requests)) == ("KIMI_API_ERROR", 1, 1)
    assert [line.split()[1] for line in lines] == ["error=KIMI_API_ERROR"]


@asynchronous
async def test_an_error_event_in_the_stream_raises():
    http = Http(streamed(*sse(*CHUNKS[:2], error("engine_overloaded_error", "busy"))))
    with pytest.raises(kimi.KimiApiError, match="busy") as caught:
        await collect(kimi.stream("Hi", **quiet(http, {"retry": "modern"})))
    assert (caught.value.kind, len(http.requests)) == ("overloaded", 1)


@asynchronous
async def test_a_connection_lost_midway_raises_without_a_status():
    async def body():
        yield sse(CHUNKS[0])[0]
        raise ConnectionResetError("gone")

    with pytest.raises(kimi.KimiApiError, match="gone") as caught:
        await collect(kimi.stream("Hi", **quiet(Http((200, {}, body())), {"retry": "modern"})))
    assert caught.value.status is None


@asynchronous
async def test_a_refused_stream_is_tried_again_on_the_schedule():
    """R-R-13."""
    sleeps = Sleeps()
    http = Http((429, {}), (503, {}), streamed(*sse(*CHUNKS)))
    assert await collect(kimi.stream("Hi", **quiet(http, {"sleep": sleeps})))
    assert sleeps == [0.1, 0.2]


@asynchronous
async def test_a_whole_answer_in_place_of_a_stream_is_reported_as_events():
    events = await collect(kimi.stream("Hi", **quiet(Http(message("Hello.")), {})))
    assert fold(events).content == (Text("Hello."),)


@asynchronous
async def test_leaving_early_closes_the_body():
    closed = asyncio.Event()

    async def body():
        try:
            for piece in sse(*CHUNKS):
                yield piece
        finally:
            closed.set()

    events = kimi.stream("Hi", **quiet(Http((200, {}, body())), {}))
    async for _ in events:
        break
    await events.aclose()
    assert closed.is_set()


@asynchronous
async def test_what_a_consumer_throws_is_not_taken_for_the_networks_fault():
    events = kimi.stream("Hi", **quiet(Http(streamed(*sse(*CHUNKS))), {}))
    await anext(events)
    with pytest.raises(KeyError):
        await events.athrow(KeyError("mine"))


@asynchronous
async def test_a_server_that_lingers_behind_the_end_is_not_waited_for():
    async def body():
        yield b"".join(sse(*CHUNKS))
        await asyncio.Event().wait()

    events = await collect(kimi.stream("Hi", **quiet(Http((200, {}, body())), {})))
    assert isinstance(events[-1], Finish)


@asynchronous
async def test_a_renamed_tool_streams_under_its_own_name():
    tool = {"name": "files/read.text", "input_schema": {"type": "object"}}
    probe = Http()
    await kimi.complete_with_tools("Hi", [tool], **quiet(probe, {}))
    alias = probe.body["tools"][0]["function"]["name"]
    said = {"index": 0, "id": "c", "type": "function", "function": {"name": alias, "arguments": "{}"}}
    http = Http(streamed(*sse(chunk({"tool_calls": [said]}), chunk({}, "tool_calls"))))
    events = await collect(kimi.stream_with_tools("Hi", [tool], **quiet(http, {})))
    (part,) = [event.part for event in events if isinstance(event, PartStart)]
    assert isinstance(part, ToolCall)
    assert part.name == "files/read.text"
