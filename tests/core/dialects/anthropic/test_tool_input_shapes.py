"""The shapes in which hosts of this dialect give a call's input: at the start, as deltas, or both.

R-AJ-16, C12. The named sequences stand in `tests/fixtures/anthropic/tool_input_shapes.ndjson`.
"""

import json
from pathlib import Path

from tests.core.dialects.anthropic.support import (
    MESSAGE_STOP,
    block_delta,
    block_start,
    block_stop,
    hear,
    message_delta,
    message_start,
    read,
    sse,
    write,
)
from tests.tiers import rows
from wireglot_core.dialects.arguments import arguments_object
from wireglot_core.ir.content import ToolCall
from wireglot_core.ir.stream import Delta, PartEnd, PartStart

FIXTURE = Path(__file__).parents[3] / "fixtures" / "anthropic" / "tool_input_shapes.ndjson"
SHAPES = [json.loads(line) for line in FIXTURE.read_text().splitlines()]


def events_of(shape: dict, reason: str = "tool_use") -> list[dict]:
    start = {"input": shape["start"]} if "start" in shape else {}
    return [
        message_start(),
        block_start(0, type="tool_use", id="Read_0", name="Read", **start),
        *(block_delta(0, "input_json_delta", partial_json=piece) for piece in shape["deltas"]),
        block_stop(0),
        message_delta(reason),
        MESSAGE_STOP,
    ]


every_shape = rows("shape", SHAPES, ids=[shape["name"] for shape in SHAPES])


@every_shape
def test_every_shape_ends_in_one_valid_object(shape):
    """C12, R-DC-02, R-AJ-01..09, R-AJ-13..15, R-AJ-17..19"""
    (call,) = hear(*events_of(shape)).content
    assert isinstance(call, ToolCall)
    assert arguments_object(call.arguments) == shape["arguments"]


@every_shape
def test_the_id_is_the_same_from_start_to_end(shape):
    """R-AJ-21, R-AJ-10"""
    events = read(sse(*events_of(shape)))
    starts = [event for event in events if isinstance(event, PartStart)]
    assert [getattr(start.part, "id", "") for start in starts] == ["Read_0"]
    assert [event.index for event in events if isinstance(event, Delta | PartEnd)].count(0) >= 1


@every_shape
def test_calls_make_the_finish_reason_whatever_the_host_says(shape):
    """R-AJ-21, R-AJ-11, R-I-12, C43"""
    stop = hear(*events_of(shape, "end_turn")).stop
    assert (stop.reason, stop.raw) == ("tool_calls", "tool_use")
    assert hear(*events_of(shape, "max_tokens")).stop.reason == "length"


@every_shape
def test_a_client_of_this_dialect_gets_the_same_arguments(shape):
    wire, losses = write(read(sse(*events_of(shape))))
    pieces = [event["delta"]["partial_json"] for event in wire if event["type"] == "content_block_delta"]
    assert arguments_object("".join(pieces)) == shape["arguments"]
    assert losses == []


def test_the_genuine_shape_is_streamed_as_it_arrives():
    """R-B-10, R-DC-02"""
    shape = {"start": {}, "deltas": ['{"a', '": 1', "}"]}
    deltas = [event.text for event in read(sse(*events_of(shape))) if isinstance(event, Delta)]
    assert deltas == ['{"a', '": 1', "}"]


def test_a_start_input_is_never_glued_to_deltas_that_do_not_continue_it():
    """R-AJ-07, R-AJ-08, C10"""
    shape = {"start": {"a": 1}, "deltas": ['{"a": ', "oops"]}
    (call,) = hear(*events_of(shape)).content
    assert isinstance(call, ToolCall)
    assert call.arguments == '{"a": oops'


def test_a_list_given_at_the_start_is_not_lost():
    """[X24] No object, but what the model wrote: it is handed on as the text it is."""
    start = block_start(0, type="tool_use", id="toolu_1", name="f", input=[1, 2])
    said = hear(message_start(), start, block_stop(0), message_delta("tool_use"), MESSAGE_STOP)
    call = said.content[0]
    assert isinstance(call, ToolCall)
    assert call.arguments == "[1,2]"
