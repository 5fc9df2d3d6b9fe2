"""Calls that a stream tells once more, whole: once is enough for clients, who add up what they get."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.core.dialects.openai_chat.support import DONE, chunk, folded
from tests.core.laws.sdks import chat_stream
from tests.tiers import rows
from wireglot_core.dialects.openai_chat.repeated_calls import CallRepair
from wireglot_core.ir.content import ToolCall

FIXTURES = Path(__file__).parents[3] / "fixtures" / "openai-chat" / "streams"


def call(arguments: str, index: int | None = 0, **more: Any) -> dict[str, Any]:
    place = {} if index is None else {"index": index}
    return {**place, "function": {"arguments": arguments}, **more}


def first(arguments: str = "", index: int = 0, name: str = "f") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": f"call_{index}", "type": "function", "function": function}


def delta(*calls: dict[str, Any], finish: str | None = None) -> bytes:
    return chunk({"tool_calls": list(calls)}, finish)


END = chunk({}, "tool_calls") + DONE
REPEATED: dict[str, tuple[bytes, ...]] = {
    "with the finish reason": (
        delta(first()),
        delta(call('{"a":')),
        delta(call("1}")),
        delta(first('{"a":1}'), finish="tool_calls"),
        DONE,
    ),
    "spelled otherwise": (delta(first('{"a":1}')), delta(first('{ "a": 1 }'), finish="tool_calls"), DONE),
    "without a name": (delta(first('{"a":1}')), delta(call('{"a":1}')), END),
    "twice": (delta(first('{"a":1}')), delta(call('{"a":1}')), delta(call('{"a":1}')), END),
}
PARALLEL = (
    delta(first('{"a":', 0)),
    delta(first('{"b":', 1)),
    delta(call("1}", 0)),
    delta(call("2}", 1)),
    delta(first('{"a":1}', 0), first('{"b":2}', 1), finish="tool_calls"),
    DONE,
)
GENUINE: dict[str, tuple[bytes, ...]] = {
    "objects in a list": (
        delta(first('{"a":[')),
        *(delta(call(piece)) for piece in ('{"b":1}', ",", '{"b":1}', "]", "}")),
        END,
    ),
    "two calls of the same": (delta(first('{"a":1}', 0)), delta(first('{"a":1}', 1)), END),
    "an object inside": (delta(first('{"a":')), delta(call('{"a":1}')), delta(call("}")), END),
    "another object": (delta(first('{"a":1}')), delta(call('{"a":2}')), END),
    "cut": (delta(first('{"a":')), delta(call('{"a":1}')), END),
}


def repaired(frames: tuple[bytes, ...], at_once: bool) -> bytes:
    repair = CallRepair()
    return repair.repair(b"".join(frames)) if at_once else b"".join(repair.repair(frame) for frame in frames)


def heard(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(arguments) for _, arguments in chat_stream(data).calls]


@pytest.mark.parametrize("name", REPEATED)
def test_a_call_that_is_repeated_whole_is_read_once(name: str) -> None:
    """[K4] Where the stream is translated."""
    (made,) = folded(*REPEATED[name]).content
    assert isinstance(made, ToolCall)
    assert json.loads(made.arguments) == {"a": 1}


@rows("at_once", [True, False])
@rows("name", REPEATED)
def test_a_call_that_is_repeated_whole_passes_once(name: str, at_once: bool) -> None:
    """[K4] Where the stream passes through: OpenAI's SDK finds one object, and one id."""
    frames = REPEATED[name]
    out = repaired(frames, at_once)
    assert heard(out) == [{"a": 1}]
    assert out.startswith(frames[0])
    assert b'"call_0call_0"' not in out
    assert (b'"finish_reason":"tool_calls"' in out) is True


def test_each_of_several_calls_is_reported_once() -> None:
    """[K4]"""
    assert heard(repaired(PARALLEL, at_once=False)) == [{"a": 1}, {"b": 2}]
    assert [
        json.loads(part.arguments) for part in folded(*PARALLEL).content if isinstance(part, ToolCall)
    ] == [
        {"a": 1},
        {"b": 2},
    ]


@rows("at_once", [True, False])
@rows("name", GENUINE)
def test_what_only_looks_like_it_stays_as_it_is(name: str, at_once: bool) -> None:
    """[K4] Byte for byte."""
    frames = GENUINE[name]
    assert repaired(frames, at_once) == b"".join(frames)
    made = [part.arguments for part in folded(*frames).content if isinstance(part, ToolCall)]
    pieces = [json.loads(frame[6:])["choices"][0]["delta"] for frame in frames if b'tool_calls":[' in frame]
    reported = [call["function"]["arguments"] for piece in pieces for call in piece["tool_calls"]]
    assert "".join(made) == "".join(reported)


@rows("path", sorted(FIXTURES.glob("*")), ids=lambda path: path.name)
def test_streams_that_are_right_pass_byte_for_byte(path: Path) -> None:
    """[K4]"""
    data = path.read_bytes()
    assert CallRepair().repair(data) == data


def test_a_fix_is_reported_at_the_place_of_its_call_and_once() -> None:
    repair = CallRepair()
    pieces = (delta(first('{"a":1}', 0)), delta(first('{"b":1,', 1)), delta(call("}", 1)), END)
    out = b"".join(repair.repair(piece) for piece in pieces)
    assert [(loss.path, loss.action) for loss in repair.losses] == [
        ("$.choices[0].message.tool_calls[1].function.arguments", "approximated")
    ]
    assert [part.arguments for part in folded(out).content if isinstance(part, ToolCall)] == [
        '{"a":1}',
        '{"b":1}',
    ]
    assert repair.leaves(chunk({"content": "x"}))
    assert not repair.leaves(delta(first('{"a"')))
    # What comes after the end of its calls is another answer, and begins again.
    assert repair.repair(delta(first('{"c":2}'))) == delta(first('{"c":2}'))
    assert repair.repair(END) == END
    assert len(repair.losses) == 1


def test_the_rest_of_a_call_that_has_begun_names_its_index() -> None:
    repair = CallRepair()
    pieces = (
        delta(first('{"a":1}', 0)),
        delta(first('{"b":', 1)),
        delta(call("1,", 1)),
        delta(call("}", 1)),
        END,
    )
    out = b"".join(repair.repair(piece) for piece in pieces)
    assert [part.arguments for part in folded(out).content if isinstance(part, ToolCall)] == [
        '{"a":1}',
        '{"b":1}',
    ]
    assert out.startswith(pieces[0] + pieces[1])
    rest = out[len(pieces[0] + pieces[1]) :].partition(b"\n\n")[0]
    (said,) = json.loads(rest.removeprefix(b"data: "))["choices"][0]["delta"]["tool_calls"]
    assert said == {"index": 1, "function": {"arguments": "1}"}}
    assert len(repair.losses) == 1
