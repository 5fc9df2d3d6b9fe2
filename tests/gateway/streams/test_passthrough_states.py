"""The states of a stream that passes through: held, going out, over."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.laws.cases import MAIN
from tests.gateway.streams.fed import SeenClient, passthrough
from tests.repeated_frames_kit import frames_of
from wireglot.gateway.streams.passthrough import FRAMES, OPENING, OVER, Passthrough
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Text, ToolCall
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Response, Stop, StopReason, Usage
from wireglot_core.ir.stream import Delta, Event, Finish, PartEnd, PartStart, Start
from wireglot_core.ir.verdict import NoAnswer
from wireglot_core.wire.json import decode, encode

EVENTS: list[Event] = [
    Start("id_1", "m"), PartStart(0, Text("")), Delta(0, "Good"), Delta(0, " day"), PartEnd(0), Finish(Stop("end")),
]  # fmt: skip


def fed(
    name: str, *, keeps: bool = False, expects: bool = True
) -> tuple[Passthrough, SeenClient, list[bytes]]:
    """One that has been fed a whole answer, its client, and the answer."""
    client = SeenClient()
    feeder = passthrough(name, client, judged=True, keeps=keeps, own_usage=False)
    ending: Any = feeder._exchange.ending
    ending.expects = lambda data, whole: expects
    frames = frames_of(name, EVENTS)
    for frame in frames:
        feeder.feed(frame)
    feeder.finish()
    return feeder, client, frames


def written(client: SeenClient) -> bytes:
    return b"".join(each[0] for each in client.seen if each != "end")


@pytest.mark.parametrize("name", MAIN)
def test_nothing_goes_out_before_a_part_of_an_answer(name: str) -> None:
    client = SeenClient()
    feeder = passthrough(name, client, judged=True, keeps=False, own_usage=False)
    frames = frames_of(name, EVENTS)
    first = next(place for place, frame in enumerate(frames) if b"Good" in frame)
    for frame in frames[:first]:
        feeder.feed(frame)
    assert (feeder._state, client.seen) == (OPENING, [])
    feeder.feed(frames[first])
    assert (feeder._state, written(client)) == (FRAMES, b"".join(frames[: first + 1]))


@pytest.mark.parametrize("name", MAIN)
def test_after_its_end_nothing_more_goes_out(name: str) -> None:
    feeder, client, frames = fed(name)
    assert (feeder._state, feeder.ended, written(client)) == (OVER, True, b"".join(frames))
    seen = list(client.seen)
    assert seen.count("end") == 1
    feeder.feed(frames[-1])
    feeder.fail(ApiError("server", "too late"))
    feeder.abandon()
    feeder.finish()
    feeder.release()
    assert (client.seen, feeder.failure) == (seen, None)


@pytest.mark.parametrize("name", MAIN)
def test_the_end_waits_where_the_answer_is_kept(name: str) -> None:
    feeder, client, frames = fed(name, keeps=True)
    assert feeder.holds_end
    assert "end" not in client.seen
    assert len(written(client)) < len(b"".join(frames))
    response = feeder.response()
    assert response is not None
    assert [part.text for part in response.content if type(part) is Text] == ["Good day"]
    feeder.release()
    assert (written(client), client.seen[-1]) == (b"".join(frames), "end")


@pytest.mark.parametrize("name", MAIN)
def test_the_end_does_not_wait_where_there_is_nothing_to_keep(name: str) -> None:
    feeder, client, frames = fed(name, keeps=True, expects=False)
    assert not feeder.holds_end
    assert (written(client), client.seen[-1]) == (b"".join(frames), "end")


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize(
    ("pieces", "meant"),
    [
        (['{"a"', ":1", "}", "}"], '{"a":1}'),
        (['{"a"', ":[1", ",]", "}"], '{"a":[1]}'),
        (['{"a":', '{"a":', "1}}"], '{"a":{"a":1}}'),
    ],
)
def test_pieces_of_arguments_are_never_taken_for_frames_that_repeat(
    pieces: list[str], meant: str, judged: bool
) -> None:
    """One read for each: what repairs them looks at every one, also of a vendor that no one judges."""
    item = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": ""}
    done = {**item, "arguments": "".join(pieces), "status": "completed"}
    response = {"id": "r", "object": "response", "model": "m", "output": []}
    delta = {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}},
        *({**delta, "delta": piece} for piece in pieces),
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": {**response, "status": "completed", "output": [done]}},
    ]
    client = SeenClient()
    feeder = passthrough("openai-responses", client, judged=judged, keeps=False, own_usage=False)
    for number, event in enumerate(events):
        data = encode({**event, "sequence_number": number})
        feeder.feed(b"event: %b\ndata: %b\n\n" % (event["type"].encode(), data))
    sent = [decode(line[6:]) for line in written(client).splitlines() if line.startswith(b"data: ")]
    assert "".join(each["delta"] for each in sent if each["type"] == delta["type"]) == meant


def cut_call(stop: StopReason) -> list[Event]:
    call: list[Event] = [PartStart(0, ToolCall("c1", "f", "")), Delta(0, '{"a":'), PartEnd(0)]
    return [Start("id_1", "m"), *call, Finish(Stop(stop))]


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses", "gemini"])
def test_a_cut_call_is_asked_for_again_only_where_nothing_has_gone_out(name: str) -> None:
    frames = frames_of(name, cut_call("tool_calls"))
    client = SeenClient()
    feeder = passthrough(name, client, judged=True, keeps=False, own_usage=False)
    with pytest.raises(NoAnswer):
        feeder.feed(b"".join(frames))
    assert client.seen == []
    begun = passthrough(name, client, judged=True, keeps=False, own_usage=False)
    for frame in frames:
        begun.feed(frame)
    assert begun.failure is not None
    assert begun.failure.code == "truncated_tool_call"
    assert client.seen[-1] == "end"


@pytest.mark.parametrize("stop", ["length", "refused"])
def test_a_call_that_would_be_cut_again_is_not_asked_for_again(stop: StopReason) -> None:
    """The limit or a filter ended it: the same request would end there too, and the client sees why."""
    client = SeenClient()
    feeder = passthrough("openai-chat", client, judged=True, keeps=False, own_usage=False)
    frames = b"".join(frames_of("openai-chat", cut_call(stop)))
    feeder.feed(frames)
    assert (feeder.failure, written(client), client.seen[-1]) == (None, frames, "end")


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("gap", [b"\n\n", b"\n", b""])
def test_a_chat_stream_without_its_last_frame_gets_it(gap: bytes, keeps: bool) -> None:
    """Some servers close the connection after the finish reason; clients wait for `[DONE]`."""
    client = SeenClient()
    feeder = passthrough("openai-chat", client, judged=True, keeps=keeps, own_usage=False)
    ending: Any = feeder._exchange.ending
    ending.expects = lambda data, whole: True
    *frames, done = frames_of("openai-chat", EVENTS)
    assert done == b"data: [DONE]\n\n"
    for frame in frames[:-1]:
        feeder.feed(frame)
    feeder.feed(frames[-1].rstrip() + gap)
    feeder.finish()
    if keeps:
        feeder.release()
    found = [each for each in written(client).split(b"\n\n") if each.strip()]
    assert [each.strip() for each in found] == [frame.strip() for frame in (*frames, done)]
    assert (client.seen[-1], client.seen.count("end")) == ("end", 1)


def test_a_chat_stream_that_breaks_after_its_end_gets_its_last_frame() -> None:
    client = SeenClient()
    feeder = passthrough("openai-chat", client, judged=True, keeps=False, own_usage=False)
    *frames, done = frames_of("openai-chat", EVENTS)
    for frame in frames:
        feeder.feed(frame)
    feeder.fail(ApiError("server", "reset"))
    assert (written(client), feeder.failure) == (b"".join((*frames, done)), None)


@pytest.mark.parametrize("name", MAIN)
def test_a_stream_without_any_part_goes_out_once_where_it_is_an_answer(name: str) -> None:
    """A vendor's own word is taken, whatever it says."""
    client = SeenClient()
    feeder = passthrough(name, client, judged=False, keeps=False, own_usage=False)
    frames = frames_of(name, [Start("id_1", "m"), Finish(Stop("end"))])
    for frame in frames:
        feeder.feed(frame)
    feeder.finish()
    assert (feeder._state, feeder.ended, written(client)) == (OVER, True, b"".join(frames))
    seen = list(client.seen)
    feeder.fail(ApiError("server", "too late"))
    feeder.abandon()
    assert (client.seen, feeder.failure) == (seen, None)


@pytest.mark.parametrize("name", MAIN)
def test_a_whole_answer_in_place_of_a_stream_is_kept_too(name: str) -> None:
    client = SeenClient()
    feeder = passthrough(name, client, judged=True, keeps=True, own_usage=False)
    answer = Response("id_1", "m", (Text("Good day"),), Stop("end"), Usage(input=1, output=2))
    feeder.feed(encode(dialect(name).render_response(answer, Context()).value))
    feeder.finish()
    kept = feeder.response()
    assert kept is not None
    assert [part.text for part in kept.content if type(part) is Text] == ["Good day"]
    feeder.release()
    assert b"Good day" in written(client)
    assert client.seen[-1] == "end"
