"""Group AJ as a tool sees it: what a host says twice must not reach it twice."""

import json

import pytest

from tests.requirements.wire import events, frames, streamed

START = {"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": {}}}
END = (
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
)


def stream(start: object, *pieces: str) -> bytes:
    block = {"type": "tool_use", "id": "Read_0", "name": "Read", "input": start}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return events(
        START,
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        *END,
    )


def called(data: bytes) -> tuple[str, str, str]:
    """Id, arguments and reason, as a Chat client puts them together."""
    chunks = [
        choice for chunk in frames(streamed(data, "anthropic", "openai-chat")) for choice in chunk["choices"]
    ]
    calls = [choice["delta"]["tool_calls"][0] for choice in chunks if "tool_calls" in choice["delta"]]
    arguments = "".join(call["function"]["arguments"] for call in calls)
    (name,) = {call["id"] for call in calls if "id" in call}
    return name, arguments, chunks[-1]["finish_reason"]


def read(arguments: str) -> str:
    """A tool, which runs on one object and on nothing else."""
    return str(json.loads(arguments)["path"])


@pytest.mark.parametrize(
    ("start", "pieces"),
    [
        ({"path": "a.py"}, ('{"path": "a.py"}',)),
        ({}, ('{"path"', ': "a.py"}')),
        ({"path": "a.py"}, ()),
        (None, ('{"path": "a.py"}',)),
    ],
)
def test_a_tool_runs_on_what_it_is_given(start, pieces):
    """R-AJ-20, R-AJ-10, R-AJ-11, R-AJ-21, R-I-12: on the host's words glued together it would fail."""
    name, arguments, reason = called(stream(start, *pieces))
    assert (name, reason) == ("Read_0", "tool_calls")
    assert read(arguments) == "a.py"
    if start is not None and pieces:
        with pytest.raises(json.JSONDecodeError):
            read(json.dumps(start) + "".join(pieces))


def test_what_is_no_json_says_why():
    """R-AJ-22, C10: a client that wants an object gets one that names the problem."""
    (part,) = (
        part
        for chunk in frames(streamed(stream({}, '{"path": oops}'), "anthropic", "gemini"))
        for part in chunk["candidates"][0]["content"]["parts"]
        if "functionCall" in part
    )
    given = part["functionCall"]["args"]
    assert given["_parse_error"].startswith("invalid tool arguments JSON: ")
    assert given["_raw"] == '{"path": oops}'
