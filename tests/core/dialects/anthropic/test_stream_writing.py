"""Streams toward clients of this dialect: one block after the other, one legal end (groups B, G, DC; C47)."""

import pytest

from tests.core.dialects.anthropic.support import CONTEXT, blocks, features, write
from wireglot_core.dialects.anthropic import DIALECT
from wireglot_core.ir.content import Citation, Extra, Foreign, Media, Reasoning, Text, TokenLogprob, ToolCall
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Stop, Usage
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Failure,
    Finish,
    ForeignEvent,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
)

START = Start("msg_1", "m", usage=Usage(input=3, output=1))
END = Finish(Stop("end"), Usage(input=5, cache_read=2, output=7))


def kinds(wire: list[dict]) -> list[str]:
    return [event["type"] for event in wire]


def text(index: int, *pieces: str) -> list[Event]:
    return [PartStart(index, Text("")), *(Delta(index, piece) for piece in pieces), PartEnd(index)]


def call(index: int, *pieces: str) -> list[Event]:
    return [
        PartStart(index, ToolCall(f"toolu_{index}", "f", "")),
        *(Delta(index, piece) for piece in pieces),
        PartEnd(index),
    ]


def test_text_is_written_in_the_genuine_shape():
    """R-B-02..04, R-B-08, R-B-09, R-B-13, R-DC-14"""
    wire, losses = write([START, *text(0, "Hel", "lo"), END])
    assert kinds(wire) == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert wire[0]["message"] == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "container": None,
        "usage": {
            "input_tokens": 3,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "cache_creation": None,
            "output_tokens": 1,
            "output_tokens_details": None,
            "server_tool_use": None,
            "service_tier": None,
            "inference_geo": None,
        },
    }
    assert wire[1]["content_block"] == {"type": "text", "text": "", "citations": []}
    assert [event["delta"] for event in wire[2:4]] == [
        {"type": "text_delta", "text": "Hel"},
        {"type": "text_delta", "text": "lo"},
    ]
    assert wire[5] == {
        "type": "message_delta",
        "delta": {
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "stop_details": None,
            "container": None,
        },
        "usage": {
            "input_tokens": 5,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 2,
            "output_tokens": 7,
            "output_tokens_details": None,
            "server_tool_use": None,
        },
    }
    assert losses == []


def test_message_start_leaves_at_once_and_pieces_as_they_come():
    """R-B-10"""
    writer = DIALECT.stream_writer(CONTEXT)
    assert writer.write([START]).startswith(b"event: message_start\n")
    writer.write([PartStart(0, Text(""))])
    assert b'"text":"x"' in writer.write([Delta(0, "x")])


def test_how_events_are_handed_over_changes_no_byte():
    events = [START, *text(0, "a", "b"), *call(1, '{"x"', ":1}"), END]
    whole = DIALECT.stream_writer(CONTEXT).write(events)
    writer = DIALECT.stream_writer(CONTEXT)
    assert b"".join(writer.write([event]) for event in events) == whole


def test_parts_that_interleave_are_written_one_after_the_other():
    """R-B-07, R-B-12, R-G-03, C47, PAINS A5"""
    events: list[Event] = [
        START,
        PartStart(0, ToolCall("a", "f", "")),
        PartStart(1, ToolCall("b", "g", "")),
        Delta(1, '{"y":'),
        Delta(0, '{"x":1}'),
        PartStart(2, Text("")),
        Delta(2, "said"),
        Delta(1, "2}"),
        PartEnd(2),
        PartEnd(1),
        PartEnd(0),
        END,
    ]
    wire, losses = write(events)
    content = blocks(wire)
    assert [block.get("id", block["type"]) for block in content] == ["a", "b", "text"]
    assert "".join(delta["partial_json"] for delta in content[1]["deltas"]) == '{"y":2}'
    assert content[2]["deltas"] == [{"type": "text_delta", "text": "said"}]
    assert losses == []


def test_no_block_is_opened_before_it_has_content():
    """PAINS A25"""
    wire, losses = write([START, *text(0), *text(1, ""), *text(2, "x"), END])
    assert [block["type"] for block in blocks(wire)] == ["text"]
    assert losses == []


def test_a_call_opens_at_once_with_an_empty_input():
    """R-B-05, R-B-06"""
    wire, _ = write([START, *call(0, '{"a": ', "1}"), Finish(Stop("tool_calls"))])
    (block,) = blocks(wire)
    assert (block["id"], block["name"], block["input"]) == ("toolu_0", "f", {})
    assert "".join(delta["partial_json"] for delta in block["deltas"]) == '{"a": 1}'
    assert wire[-2]["delta"]["stop_reason"] == "tool_use"


def test_broken_arguments_end_as_valid_json_and_are_declared():
    """C10"""
    wire, losses = write([START, *call(0, '{"a": "x', "\n"), Finish(Stop("tool_calls"))])
    (block,) = blocks(wire)
    assert block["deltas"][0]["partial_json"] == '{"a": "x'
    assert features(losses) == [("$.content[0].arguments", "tool_call.arguments", "emulated")]


def test_illegal_ids_are_replaced():
    """R-DB-02"""
    wire, losses = write(
        [
            START,
            PartStart(0, ToolCall("functions.Bash:0", "Bash", "")),
            PartEnd(0),
            Finish(Stop("tool_calls")),
        ]
    )
    assert blocks(wire)[0]["id"].startswith("toolu_")
    assert features(losses) == [("$.content[0].id", "tool_call.id", "emulated")]


def test_citations_follow_the_text_they_support():
    end = PartEnd(0, citations=(Citation("https://e.org"),))
    wire, _ = write([START, PartStart(0, Text("")), Delta(0, "x"), end, END])
    assert [delta["type"] for delta in blocks(wire)[0]["deltas"]] == ["text_delta", "citations_delta"]
    wire, losses = write([START, PartStart(0, Text("")), end, END])
    assert blocks(wire) == []
    assert [feature for _, feature, _ in features(losses)] == ["citations"]


def test_blocks_of_our_own_come_in_the_shape_their_upstream_streams():
    parts: tuple[dict, ...] = (
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
        {"type": "compaction", "content": "so far"},
        {"type": "web_search_tool_result", "content": []},
    )
    events: list[Event] = [START]
    for index, value in enumerate(parts):
        events += [PartStart(index, Foreign("anthropic", value["type"], value)), PartEnd(index)]
    content = blocks(write([*events, END])[0])
    assert content[0]["input"] == {}
    assert content[0]["deltas"] == [{"type": "input_json_delta", "partial_json": '{"query":"q"}'}]
    assert content[1]["deltas"] == [{"type": "compaction_delta", "content": "so far"}]
    assert content[2] == {**parts[2], "deltas": []}


def test_what_has_no_place_is_declared_once():
    events: list[Event] = [
        START,
        PartStart(0, Text("", refusal=True)),
        Delta(0, "a", (TokenLogprob("a", -1.0),)),
        Delta(0, "b", (TokenLogprob("b", -1.0),)),
        PartEnd(0, extra=Extra("gemini", {"x": 1})),
        PartStart(1, Media("image", "image/png", "AA==")),
        PartEnd(1),
        PartStart(2, Foreign("gemini", "executableCode", {})),
        PartEnd(2),
        ForeignEvent("openai-responses", "response.new", {}),
        ForeignEvent("openai-responses", "response.new", {}),
        Finish(Stop("refused", extra=Extra("gemini", {"safety": 1})), extra=Extra("gemini", {"y": 1})),
    ]
    wire, losses = write(events)
    assert [block["type"] for block in blocks(wire)] == ["text"]
    assert features(losses) == [
        ("$.content[0].refusal", "refusal", "approximated"),
        ("$.content[0].logprobs", "logprobs", "dropped"),
        ("$.content[0].x", "unknown_field", "dropped"),
        ("$.content[1]", "image", "dropped"),
        ("$.content[2]", "foreign_part", "dropped"),
        ("$", "foreign_event", "dropped"),
        ("$.stop.safety", "stop_details", "dropped"),
        ("$.y", "response.extra", "dropped"),
    ]


def test_our_own_events_pass_verbatim():
    event = {"type": "brand_new", "x": 1}
    wire, losses = write([START, ForeignEvent("anthropic", "brand_new", event), END])
    assert wire[1] == event
    assert losses == []


def test_an_unknown_delta_keeps_its_block():
    delta = {"type": "content_block_delta", "index": 1, "delta": {"type": "new_delta", "x": 1}}
    events = [
        START,
        *text(0),
        PartStart(1, Text("")),
        Delta(1, "x"),
        ForeignEvent("anthropic", "content_block_delta", delta),
        PartEnd(1),
        END,
    ]
    (block,) = blocks(write(events)[0])
    assert block["deltas"][-1] == {"type": "new_delta", "x": 1}


@pytest.mark.parametrize("before", [[], [START], [START, *text(0, "x")[:-1]]])
def test_a_failure_is_one_terminal_error(before):
    """R-DC-07, FAULTS 2, PAINS A6"""
    wire, _ = write([*before, Failure(ApiError("overloaded", "busy", request_id="req_1"))])
    assert wire[-1] == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "busy"},
        "request_id": "req_1",
    }
    assert "message_stop" not in kinds(wire)
    assert kinds(wire).count("content_block_stop") == 0


def test_a_malformed_call_is_a_terminal_error():
    wire, _ = write([START, Finish(Stop("malformed_call", "MALFORMED_FUNCTION_CALL", "gemini"))])
    assert kinds(wire) == ["message_start", "error"]


def test_the_last_usage_known_is_reported():
    wire, _ = write([START, UsageReport(Usage(input=9, output=4)), Finish(Stop("length"))])
    assert wire[-2]["usage"]["input_tokens"] == 9
    assert wire[-2]["delta"]["stop_reason"] == "max_tokens"
    wire, _ = write([Start("", "m"), Finish(Stop("end"))])
    assert wire[-2]["usage"]["output_tokens"] == 0
    assert wire[0]["message"]["id"].startswith("msg_")


def test_an_estimate_of_cache_writes_is_taken_back():
    start = Start("i", "m", usage=Usage(cache_write=10, reasoning=3))
    wire, _ = write([start, Finish(Stop("end"), Usage(input=1))])
    assert wire[-2]["usage"]["cache_creation"] == {
        "ephemeral_5m_input_tokens": 0,
        "ephemeral_1h_input_tokens": 0,
    }
    assert wire[-2]["usage"]["output_tokens_details"] == {"thinking_tokens": 0}


def test_freeform_calls_are_wrapped_whole():
    events: list[Event] = [
        START,
        PartStart(0, ToolCall("a", "patch", "", "custom")),
        Delta(0, "*** Begin"),
        PartEnd(0),
        Finish(Stop("tool_calls")),
    ]
    wire, losses = write(events)
    assert blocks(wire)[0]["deltas"] == [
        {"type": "input_json_delta", "partial_json": '{"input":"*** Begin"}'}
    ]
    assert features(losses) == [("$.content[0].arguments", "tool.custom", "emulated")]


def test_a_freeform_call_that_had_to_wait_is_written_once():
    events: list[Event] = [
        START,
        PartStart(0, ToolCall("a", "patch", "", "custom")),
        PartStart(1, ToolCall("b", "patch", "", "custom")),
        Delta(1, "*** "),
        Delta(0, "one"),
        Delta(1, "two"),
        PartEnd(1),
        PartEnd(0),
        END,
    ]
    wire, _ = write(events)
    inputs = [event["delta"]["partial_json"] for event in wire if event["type"] == "content_block_delta"]
    assert inputs == ['{"input":"one"}', '{"input":"*** two"}']


def test_empty_reasoning_is_still_reasoning():
    wire, _ = write([START, PartStart(0, Reasoning()), PartEnd(0), *text(1, "x"), END])
    assert [block["type"] for block in blocks(wire)] == ["thinking", "text"]


def test_a_call_reports_an_unknown_field_once():
    part = ToolCall("toolu_0", "f", "", extra=Extra("openai-chat", {"x": 1}))
    _, losses = write([START, PartStart(0, part), Delta(0, "{}"), PartEnd(0), END])
    assert [loss.path for loss in losses] == ["$.content[0].x"]
