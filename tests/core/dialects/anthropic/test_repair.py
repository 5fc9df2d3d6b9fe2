"""Calls in streams that pass through: Anthropic's own SDK adds up the right arguments, and all other bytes
stay as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.core.dialects.anthropic.support import (
    MESSAGE_STOP,
    block_delta,
    block_start,
    block_stop,
    message_delta,
    message_start,
    sse,
    text_block,
)
from tests.core.dialects.anthropic.test_tool_input_shapes import SHAPES, events_of
from tests.core.laws.sdks import anthropic_stream
from tests.tiers import rows
from wireglot_core.dialects.anthropic.repair import MessageRepair

FIXTURES = Path(__file__).parents[3] / "fixtures" / "anthropic" / "streams"
ODD: dict[str, tuple[list[str], dict[str, Any]]] = {
    "an object twice": (['{"path":', ' "a.py"}', '{"path": "a.py"}'], {"path": "a.py"}),
    "an object twice in one": (['{"path":"a.py"}{"path":"a.py"}'], {"path": "a.py"}),
    "an empty object first": (["{}", '{"path":', '"a.py"}'], {"path": "a.py"}),
    "a comma too many": (['{"path":"a.py"', ",", "}"], {"path": "a.py"}),
    "a bracket too many": (['{"path":"a.py"', "}", "}"], {"path": "a.py"}),
    "a line end in a string": (['{"path":"a', ".py\n", '"}'], {"path": "a.py\n"}),
}
"""What the deltas of a call say whose start is empty, and what they mean."""


def said(shape: dict[str, Any]) -> bytes:
    return sse(*events_of(shape))


def repaired(data: bytes, size: int = 0) -> tuple[bytes, MessageRepair]:
    """Whole frames, `size` at once (0: all)."""
    repair = MessageRepair()
    frames = [frame + b"\n\n" for frame in data.split(b"\n\n")[:-1]]
    size = size or len(frames)
    pieces = [b"".join(frames[at : at + size]) for at in range(0, len(frames), size)]
    return b"".join(repair.repair(piece) for piece in pieces), repair


def heard(data: bytes) -> dict[str, Any]:
    ((name, arguments),) = anthropic_stream(data).calls
    assert name == "Read"
    value: dict[str, Any] = json.loads(arguments)
    return value


@rows("size", [0, 1, 2])
@rows("shape", SHAPES, ids=[shape["name"] for shape in SHAPES])
def test_every_shape_of_a_call_s_input_reaches_clients_that_add_up_deltas(
    shape: dict[str, Any], size: int
) -> None:
    """[K4] R-AJ-01..09: start only, start and continuation, start and the same again, deltas."""
    out, repair = repaired(said(shape), size)
    assert heard(out) == shape["arguments"]
    assert repair.losses == []


@rows("size", [0, 1, 2])
@rows("name", ODD)
def test_arguments_with_one_mistake_reach_them_repaired(name: str, size: int) -> None:
    """[K4] [X21] And what was changed is reported."""
    deltas, meant = ODD[name]
    out, repair = repaired(said({"start": {}, "deltas": deltas}), size)
    assert heard(out) == meant
    assert [(loss.path, loss.feature, loss.action) for loss in repair.losses] == [
        ("$.content[0].arguments", "tool_call.arguments", "approximated")
    ]


@rows("size", [0, 1, 2])
@rows(
    "deltas",
    [
        ['{"path":', ' "a.py",', ' "line": 3', "}"],
        ["", '{"todos": [', '{"a": 1},', '{"a": 1}', "]}"],
        ["{}"],
        [" {", "}"],
        [],
        ['{"a":1}', '{"a":2}'],
        ['{"path": "/srv/fo'],
        ['{"a": ', "oops", "}"],
        ['{"a":1,', "}", " and more"],
    ],
)
def test_what_needs_no_repair_or_cannot_be_repaired_stays_as_it_is(deltas: list[str], size: int) -> None:
    """[K4] Byte for byte: genuine calls, and mistakes whose meaning is not plain."""
    data = said({"start": {}, "deltas": deltas})
    out, repair = repaired(data, size)
    assert out == data
    assert repair.losses == []


@rows("path", sorted(FIXTURES.glob("*")), ids=lambda path: path.name)
def test_streams_that_are_right_pass_byte_for_byte(path: Path) -> None:
    """[K4]"""
    data = path.read_bytes()
    if b'"input": {"' in data or b'"input":{"' in data:
        pytest.skip("its calls begin with an input")
    assert repaired(data, 1)[0] == data[: data.rfind(b"\n\n") + 2]


def test_only_the_frames_of_the_call_change() -> None:
    """[K4]"""
    before = sse(message_start(), *text_block(0, "I look."))
    start = block_start(1, type="tool_use", id="a", name="Read", input={"path": "a.py"}, x_new=1)
    behind = sse(*text_block(2, "ü"), {"type": "ping"}, message_delta("tool_use"), MESSAGE_STOP)
    out, _ = repaired(before + sse(start, block_stop(1)) + behind)
    assert out.startswith(before)
    assert out.endswith(sse(block_stop(1)) + behind)
    changed = out[len(before) : -len(sse(block_stop(1)) + behind)]
    begun, reported = [json.loads(frame.partition(b"data: ")[2]) for frame in changed.split(b"\n\n") if frame]
    assert begun == {**start, "content_block": {**start["content_block"], "input": {}}}
    assert reported == block_delta(1, "input_json_delta", partial_json='{"path":"a.py"}')


def test_calls_that_interleave_and_calls_without_a_stop_are_repaired_each() -> None:
    """[K4]"""
    first = block_start(0, type="tool_use", id="a", name="Read", input={"path": "a.py"})
    second = block_start(1, type="tool_use", id="b", name="Read", input={})
    events = (
        first,
        second,
        block_delta(1, "input_json_delta", partial_json='{"path":"b.py",'),
        {"type": "ping"},
        block_delta(0, "input_json_delta", partial_json='{"path":"a.py"}'),
        block_delta(1, "input_json_delta", partial_json='"line":1,}'),
        block_stop(1),
        message_delta("tool_use"),
        MESSAGE_STOP,
    )
    for size in (0, 1, 3):
        out, _ = repaired(sse(message_start(), *events), size)
        calls = [json.loads(arguments) for _, arguments in anthropic_stream(out).calls]
        assert calls == [{"path": "a.py"}, {"path": "b.py", "line": 1}]


@pytest.mark.parametrize("odd", [[1, 2], 7, True, "no JSON"])
def test_a_start_that_gives_something_else_stays_as_it_is(odd: Any) -> None:
    """[K4]"""
    data = said({"start": odd, "deltas": []})
    assert repaired(data)[0] == data


def test_any_line_end_will_do() -> None:
    """[K4]"""
    shape = SHAPES[0]
    repair = MessageRepair()
    out = repair.repair(said(shape).replace(b"\n", b"\r\n"))
    assert heard(out) == shape["arguments"]


@pytest.mark.parametrize("junk", [b": ping\n\n", b"data: [DONE]\n\n", b"event: x\ndata: {\n\n", b"\n\n"])
def test_what_is_no_event_passes(junk: bytes) -> None:
    """[K4]"""
    repair = MessageRepair()
    start = sse(block_start(0, type="tool_use", id="a", name="Read", input={}))
    assert repair.repair(start + junk) == start + junk
    assert repair.repair(junk) == junk


@pytest.mark.parametrize("last", ["message_delta", "message_stop", "error"])
def test_a_call_whose_stop_got_lost_is_reported_before_the_answer_ends(last):
    """R-AJ: what only its start gave would be lost with it."""
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {"path": "a.py"}}
    start = sse(message_start(), block_start(0, **call))
    end = sse({"type": last})
    repair = MessageRepair()
    said = repair.repair(start) + repair.repair(end)
    assert said.endswith(end)
    deltas = [json.loads(line[6:]) for line in said.decode().splitlines() if "input_json_delta" in line]
    assert [json.loads(delta["delta"]["partial_json"]) for delta in deltas] == [{"path": "a.py"}]
    assert [delta["index"] for delta in deltas] == [0]


def test_a_second_call_of_the_same_number_ends_the_first():
    """Its stop got lost; its input is its own."""
    first = {"type": "tool_use", "id": "t", "name": "f", "input": {"path": "a.py"}}
    second = {**first, "id": "u", "input": {"path": "b.py"}}
    data = sse(message_start(), block_start(0, **first), block_start(0, **second), block_stop(0))
    said = MessageRepair().repair(data).decode()
    assert said.index("a.py") < said.index('"id":"u"') < said.index("b.py")


@pytest.mark.parametrize("given", [7, [1], "no JSON", "[1]"])
def test_an_input_that_is_none_passes_as_it_came(given):
    call = {"type": "tool_use", "id": "t", "name": "f", "input": given}
    data = sse(
        message_start(), block_start(0, **call), block_stop(0), message_delta("tool_use"), MESSAGE_STOP
    )
    assert MessageRepair().repair(data) == data


@pytest.mark.parametrize("given", [None, ""])
def test_an_input_that_is_not_there_becomes_an_empty_one(given):
    """The SDK adds the deltas to it."""
    call = {"type": "tool_use", "id": "t", "name": "f", "input": given}
    pieces = [block_delta(0, "input_json_delta", partial_json='{"a":1}'), block_stop(0)]
    said = MessageRepair().repair(sse(message_start(), block_start(0, **call), *pieces)).decode()
    assert '"input":{}' in said
    assert '{\\"a\\":1}' in said
