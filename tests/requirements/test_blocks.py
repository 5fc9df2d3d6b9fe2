"""Groups B, F, G and C: indexed blocks of an Anthropic stream, made of another upstream's parts."""

import json

import pytest

import wireglot
from tests.requirements.wire import blocks_of, candidate, events, frames, sse, streamed

PARTS = (
    {"text": "Let me", "thought": True},
    {"text": " think.", "thought": True},
    {"text": "I will"},
    {"text": " look."},
    {"functionCall": {"name": "f", "args": {"a": 1}}},
    {"functionCall": {"name": "f", "args": {"a": 2}}},
    {"text": "Done."},
)
USAGE = {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 3, "totalTokenCount": 10}
STREAM = sse(*(candidate(part, finish=None) for part in PARTS), candidate({"text": ""}, usageMetadata=USAGE))


def wire() -> list[dict]:
    return frames(streamed(STREAM, "gemini", "anthropic"))


def test_every_frame_names_its_event():
    """R-B-01"""
    for frame in streamed(STREAM, "gemini", "anthropic").decode().strip().split("\n\n"):
        event, data = frame.split("\n")
        assert event == f"event: {json.loads(data.removeprefix('data: '))['type']}"


def test_a_stream_begins_and_ends_as_it_must():
    """R-B-02, R-B-08, R-B-09, R-B-13, R-DC-14: start with an id, end with reason and usage, then nothing."""
    first, *_, last, end = wire()
    assert first["type"] == "message_start"
    assert first["message"]["id"].startswith("msg_")
    assert (first["message"]["model"], first["message"]["role"]) == ("gemini-3-pro", "assistant")
    assert (last["type"], last["delta"]["stop_reason"]) == ("message_delta", "tool_use")
    assert (last["usage"]["input_tokens"], last["usage"]["output_tokens"]) == (5, 5)
    assert end == {"type": "message_stop"}


def test_parts_become_blocks_in_their_order():
    """R-B-11, R-B-12, R-C-03, R-G-01..05, R-N-03, C47: indices from 0, one block open at a time, runs joined."""
    blocks = blocks_of(wire())
    assert [block["type"] for block in blocks] == ["thinking", "text", "tool_use", "tool_use", "text"]
    assert (blocks[1]["text"], blocks[2]["input"]) == ("", {})  # R-B-03, R-B-05
    texts = [[delta["text"] for delta in block["deltas"]] for block in blocks if block["type"] == "text"]
    assert texts == [["I will", " look."], ["Done."]]  # R-B-04
    thoughts = [delta["thinking"] for delta in blocks[0]["deltas"] if delta["type"] == "thinking_delta"]
    assert "".join(thoughts) == "Let me think."
    calls = [block for block in blocks if block["type"] == "tool_use"]
    assert [json.loads("".join(delta["partial_json"] for delta in call["deltas"])) for call in calls] == [
        {"a": 1},
        {"a": 2},
    ]  # R-B-06
    assert len({call["id"] for call in calls}) == 2


def test_every_block_is_stopped_under_its_index():
    """R-B-07"""
    stops = [event["index"] for event in wire() if event["type"] == "content_block_stop"]
    starts = [event["index"] for event in wire() if event["type"] == "content_block_start"]
    assert stops == starts == [0, 1, 2, 3, 4]


def test_arguments_that_are_streamed_are_passed_on_as_they_come():
    """R-B-10: a client can show them while they are written."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def piece(**function: str) -> bytes:
        call = {"index": 0, "id": "c1", "type": "function", "function": function}
        return sse(
            {**head, "choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}
        )

    translator = wireglot.StreamTranslator(source="openai-chat", target="anthropic")
    assert b'"name":"f"' in translator.feed(piece(name="f", arguments=""))
    assert b"command" in translator.feed(piece(name="f", arguments='{"command": "l'))


def test_streamed_arguments_are_held_for_a_client_that_wants_whole_calls():
    """R-C-01, R-F-01, R-F-02: id, name and text are kept together until the call is over."""
    start = {"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": {}}}
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    opened = {"type": "content_block_start", "index": 0, "content_block": call}
    translator = wireglot.StreamTranslator(source="anthropic", target="gemini")
    translator.feed(events(start, opened))
    for piece in ('{"a": {"b"', ": 1}", ', "c": 2', "}"):
        delta = {"type": "input_json_delta", "partial_json": piece}
        assert b"functionCall" not in translator.feed(
            events({"type": "content_block_delta", "index": 0, "delta": delta})
        )
    said = translator.feed(events({"type": "content_block_stop", "index": 0}))
    (part,) = frames(said)[0]["candidates"][0]["content"]["parts"]
    assert part["functionCall"]["name"] == "f"
    assert part["functionCall"]["args"] == {"a": {"b": 1}, "c": 2}


@pytest.mark.parametrize("arguments", ['{"a": 1]', "oops", '["a"]'])
def test_arguments_that_never_parse_end_in_an_object_and_come_back_raw(arguments):
    """R-F-04, C10: forced to an end when the call is over; neither raised nor lost."""
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    data = sse(
        {**head, "choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    )
    (block,) = blocks_of(frames(streamed(data, "openai-chat", "anthropic")))
    given = json.loads("".join(delta["partial_json"] for delta in block["deltas"]))
    assert isinstance(given, dict)
    turn = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": block["id"], "name": "f", "input": given}],
    }
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}, turn]}
    sent = wireglot.translate_request(body, source="anthropic", target="openai-chat").value
    assert sent["messages"][1]["tool_calls"][0]["function"]["arguments"] == arguments
