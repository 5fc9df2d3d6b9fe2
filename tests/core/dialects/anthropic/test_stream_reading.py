"""Upstream streams: the genuine shape, and what hosts of this dialect make of it (groups B, F, DC; QUIRKS)."""

import json

from tests.core.dialects.anthropic.support import (
    CONTEXT,
    MESSAGE_STOP,
    block_delta,
    block_start,
    block_stop,
    failure,
    hear,
    message_delta,
    message_start,
    read,
    sse,
    text_block,
)
from tests.tiers import rows
from wireglot_core.dialects.anthropic import DIALECT
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Extra, Foreign, Reasoning, Text, ToolCall
from wireglot_core.ir.stream import (
    Delta,
    Failure,
    Finish,
    ForeignEvent,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
    check,
)
from wireglot_core.testing.laws import every_cut

PLAIN = (message_start(), *text_block(0, "Hel", "lo"), message_delta("end_turn"), MESSAGE_STOP)


def test_the_genuine_stream_is_read():
    """R-DC-03, R-DC-04"""
    response = hear(*PLAIN)
    assert (response.id, response.model, response.content) == ("msg_1", "m", (Text("Hello"),))
    assert (response.stop.reason, response.stop.raw) == ("end", "end_turn")
    assert response.usage is not None
    assert (response.usage.input, response.usage.output) == (5, 7)


def test_a_stream_may_be_cut_anywhere():
    """R-F-03, R-J-08, R-DC-06"""
    data = sse(*PLAIN).replace(b"lo", "\u2028é".encode()).replace(b"\n", b"\r\n")
    whole = read(data)
    for pieces in every_cut(data):
        reader = DIALECT.stream_reader(CONTEXT)
        events = [event for piece in pieces for event in reader.read(piece)] + reader.end()
        assert list(check(events)) == whole


@rows("kept", range(len(PLAIN)))
def test_a_stream_that_stops_short_is_a_failure_unless_it_said_why(kept):
    """R-DC-07, PAINS A6: never a silent stop."""
    last = read(sse(*PLAIN[:kept]))[-1]
    reported = any(event["type"] == "message_delta" for event in PLAIN[:kept])
    assert isinstance(last, Finish if reported else Failure)
    if isinstance(last, Failure):
        assert (last.error.kind, last.error.code) == ("server", "upstream_error")


def test_the_end_without_message_stop_is_an_end():
    assert isinstance(read(sse(*PLAIN[:-1]))[-1], Finish)


def test_message_stop_without_a_reason_is_an_end_of_unknown_kind():
    stop = hear(message_start(), *text_block(0, "x"), MESSAGE_STOP).stop
    assert (stop.reason, stop.raw) == ("other", "")


def test_a_stream_without_message_start_is_read():
    """api.kimi.com"""
    call = block_start(0, type="tool_use", id="toolu_4", name="shell", input=None)
    delta = block_delta(0, "input_json_delta", partial_json='{"command":"ls"}')
    events = [call, delta, block_stop(0), message_delta("tool_use", input_tokens=9), MESSAGE_STOP]
    response = hear(*events)
    assert response.content == (ToolCall("toolu_4", "shell", '{"command":"ls"}'),)
    assert response.id.startswith("msg_")
    assert response.id == hear(*events).id
    assert response.usage is not None
    assert response.usage.input == 9


def test_usage_is_merged_and_the_later_number_wins():
    """R-DC-04; Kimi tells the truth only at the end."""
    start = message_start(
        usage={
            "input_tokens": 812,
            "cache_read_input_tokens": 0,
            "output_tokens": 0,
            "service_tier": "standard",
        }
    )
    end = message_delta(
        "end_turn", input_tokens=44, cache_read_input_tokens=768, cache_creation_input_tokens=None
    )
    response = hear(start, *text_block(0, "x"), end, MESSAGE_STOP)
    assert response.usage is not None
    assert (response.usage.input, response.usage.cache_read, response.usage.output) == (44, 768, 7)
    assert response.service_tier == "standard"


def test_usage_that_comes_before_the_reason_is_reported():
    interim = {"type": "message_delta", "usage": {"input_tokens": 250, "output_tokens": 166}}
    events = read(sse(message_start(), interim, MESSAGE_STOP))
    assert [event.usage.input for event in events if isinstance(event, UsageReport)] == [250]


def test_a_second_message_start_says_nothing_new():
    response = hear(message_start(), *PLAIN)
    assert response.content == (Text("Hello"),)


def test_blocks_may_interleave_and_leave_gaps():
    """PAINS A5"""
    response = hear(
        message_start(),
        block_start(1, type="tool_use", id="a", name="f", input={}),
        block_start(4, type="tool_use", id="b", name="g", input={}),
        block_delta(4, "input_json_delta", partial_json='{"x":'),
        block_delta(1, "input_json_delta", partial_json='{"y":1}'),
        block_delta(4, "input_json_delta", partial_json="2}"),
        block_stop(4),
        block_stop(1),
        message_delta("tool_use"),
        MESSAGE_STOP,
    )
    assert response.content == (ToolCall("a", "f", '{"y":1}'), ToolCall("b", "g", '{"x":2}'))


def test_a_block_whose_stop_is_missing_is_closed():
    response = hear(
        message_start(),
        *text_block(0, "a")[:-1],
        *text_block(1, "b")[:-1],
        message_delta("max_tokens"),
        MESSAGE_STOP,
    )
    assert response.content == (Text("a"), Text("b"))
    response = hear(
        message_start(),
        *text_block(0, "a")[:-1],
        *text_block(0, "b"),
        message_delta("end_turn"),
        MESSAGE_STOP,
    )
    assert response.content == (Text("a"), Text("b"))


def test_deltas_of_a_block_that_never_started_are_not_lost():
    response = hear(
        message_start(),
        block_delta(0, "thinking_delta", thinking="hm"),
        block_stop(0),
        block_delta(1, "text_delta", text="x"),
        message_delta("end_turn"),
        MESSAGE_STOP,
    )
    assert [type(part) for part in response.content] == [Reasoning, Text]
    (event,) = [
        e
        for e in read(
            sse(
                message_start(),
                block_delta(7, "input_json_delta", partial_json="{}"),
                message_delta("end_turn"),
            )
        )
        if isinstance(e, ForeignEvent)
    ]
    assert event.type == "content_block_delta"


def test_a_call_without_arguments_is_an_empty_object():
    shape = [
        block_start(0, type="tool_use", id="a", name="f", input={}),
        block_delta(0, "input_json_delta", partial_json=""),
    ]
    response = hear(message_start(), *shape, block_stop(0), message_delta("tool_use"), MESSAGE_STOP)
    assert response.content == (ToolCall("a", "f", "{}"),)


def test_a_call_without_an_id_gets_one():
    """R-DB-01, R-DB-03"""
    shape = [
        message_start(),
        block_start(0, type="tool_use", name="f", input={}),
        block_stop(0),
        message_delta("tool_use"),
    ]
    (one,), (two,) = hear(*shape).content, hear(*shape).content
    assert isinstance(one, ToolCall)
    assert one.id
    assert one == two
    unary = {"id": "msg_1", "content": [{"type": "tool_use", "name": "f", "input": {}}]}
    assert DIALECT.parse_response(unary, CONTEXT).content == (one,)


def test_thinking_keeps_its_text_and_its_signature():
    response = hear(
        message_start(),
        block_start(0, type="thinking", thinking="", signature=""),
        block_delta(0, "thinking_delta", thinking="hm"),
        block_delta(0, "signature_delta", signature="S1"),
        block_stop(0),
        block_start(1, type="thinking", thinking="", signature=""),
        block_delta(1, "signature_delta", signature="S2"),
        block_stop(1),
        block_start(2, type="redacted_thinking", data="D"),
        block_stop(2),
        message_delta("end_turn"),
        MESSAGE_STOP,
    )
    found = [
        (part.text, part.signature.data, part.redacted)
        for part in response.content
        if isinstance(part, Reasoning) and part.signature is not None
    ]
    assert found == [("hm", "S1", False), ("", "S2", False), ("", "D", True)]


def test_citations_are_collected():
    page = {"type": "page_location", "cited_text": "q", "document_index": 0}
    response = hear(
        message_start(),
        block_start(0, type="text", text="", citations=[]),
        block_delta(0, "citations_delta", citation=page),
        block_delta(0, "text_delta", text="x"),
        block_stop(0),
        message_delta("end_turn"),
        MESSAGE_STOP,
    )
    (text,) = response.content
    assert isinstance(text, Text)
    assert [citation.native for citation in text.citations] == [Foreign("anthropic", "page_location", page)]


def test_unknown_blocks_arrive_whole():
    response = hear(
        message_start(),
        block_start(0, type="server_tool_use", id="s", name="web_search", input={}),
        block_delta(0, "input_json_delta", partial_json='{"query":'),
        block_delta(0, "input_json_delta", partial_json='"q"}'),
        block_stop(0),
        block_start(1, type="compaction", content=None),
        block_delta(1, "compaction_delta", content="so far"),
        block_stop(1),
        block_start(2, type="brand_new", x=[1]),
        block_stop(2),
        message_delta("pause_turn"),
        MESSAGE_STOP,
    )
    assert response.content == (
        Foreign(
            "anthropic",
            "server_tool_use",
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
        ),
        Foreign("anthropic", "compaction", {"type": "compaction", "content": "so far"}),
        Foreign("anthropic", "brand_new", {"type": "brand_new", "x": [1]}),
    )
    assert response.stop.reason == "paused"


def test_unknown_events_pass_and_pings_vanish():
    """R-DC-13"""
    new = {"type": "brand_new", "error": {"not": "fatal"}}
    events = read(sse(message_start(), {"type": "ping", "cost": "0"}, new, *PLAIN[1:]))
    assert [event for event in events if isinstance(event, ForeignEvent)] == [
        ForeignEvent("anthropic", "brand_new", new)
    ]


def test_what_follows_the_end_is_not_heard():
    events = read(sse(*PLAIN, {"type": "ping", "cost": "0"}, *text_block(1, "more")))
    assert isinstance(events[-1], Finish)


def test_extra_fields_of_the_end_belong_to_the_answer():
    end = {**message_delta("refusal"), "context_management": {"applied_edits": [1]}}
    end["delta"] = {
        **end["delta"],
        "container": {"id": "c"},
        "stop_details": {"type": "refusal", "category": "cyber"},
    }
    stop = {**MESSAGE_STOP, "amazon-bedrock-invocationMetrics": {"inputTokenCount": 5}}
    response = hear(message_start(container=None), *text_block(0, "x"), end, stop)
    assert response.extra is not None
    assert response.extra.fields == {"container": {"id": "c"}, "context_management": {"applied_edits": [1]}}
    assert response.stop.extra == Extra(
        "anthropic", {"stop_details": {"type": "refusal", "category": "cyber"}}
    )


def test_content_in_message_start_comes_first_or_is_repeated():
    given = [{"type": "text", "text": "before"}]
    response = hear(
        message_start(content=given), *text_block(1, "x"), message_delta("end_turn"), MESSAGE_STOP
    )
    assert response.content == (Text("before"), Text("x"))
    response = hear(
        message_start(content=given), *text_block(0, "x"), message_delta("end_turn"), MESSAGE_STOP
    )
    assert response.content == (Text("x"),)
    response = hear(message_start(content=given, stop_reason="end_turn"), MESSAGE_STOP)
    assert (response.content, response.stop.reason) == ((Text("before"),), "end")


def test_frames_without_an_event_line_and_without_a_space_are_read():
    data = (
        b"".join(b"data:" + json.dumps(event).encode() + b"   \n\n" for event in PLAIN) + b"data: [DONE]\n\n"
    )
    assert isinstance(read(b": comment\n\n" + data)[-1], Finish)


def test_an_error_event_is_a_failure_of_its_kind():
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    failed = failure(sse(*PLAIN[:3], error))
    assert (failed.error.kind, failed.error.message) == ("overloaded", "busy")
    assert failure(sse(error)).error.kind == "overloaded"
    assert failure(b'data: {"error": {"message": "no"}}\n\n').error.message == "no"


@rows(
    "data",
    [
        b"",
        b"event: message_start\ndata: {broken\n\n",
        b"<html>gateway</html>",
        b"data: [1]\n\n",
        b'{"type": "error", "error": {"type": "api_error", "message": "x"}}',
        b'{"half": ',
        b"\xff\xfe\x00garbage",
        b'data: {"type":"content_block_start","index":0,"content_block":5}\n\n',
        b'data: {"type":"content_block_delta","index":[],"delta":{"type":"text_delta","text":"x"}}\n\n',
    ],
)
def test_what_is_no_stream_is_a_failure(data):
    failure(data)


def test_a_whole_answer_instead_of_a_stream_is_read():
    body = {
        "id": "msg_1",
        "type": "message",
        "model": "m",
        "content": [{"type": "text", "text": "x"}],
        "stop_reason": "end_turn",
    }
    events = read(b" \n" + json.dumps(body).encode())
    assert [type(event) for event in events[:3]] == [Start, PartStart, Delta]
    listed = read(json.dumps(list(PLAIN)).encode())
    assert isinstance(listed[-1], Finish)


def test_signatures_are_stamped_with_the_upstream():
    context = Context(provider="kimi", model="kimi-k3", account="a")
    data = sse(
        message_start(),
        block_start(0, type="thinking", thinking=""),
        block_delta(0, "signature_delta", signature="S"),
        block_stop(0),
        message_delta("end_turn"),
    )
    (signature,) = [event.signature for event in read(data, context) if isinstance(event, PartEnd)]
    assert signature is not None
    assert signature.origin == context.origin("anthropic", "m")


def test_a_second_message_inside_the_first_is_an_error():
    """[X8] Both count their blocks from 0: the calls of the one would be cut by the other's."""
    data = sse(
        message_start(id="msg_1"), *text_block(0, "Hel"), message_start(id="msg_2"), *text_block(0, "lo")
    )
    assert "second message" in failure(data).error.message


def test_the_same_message_begun_again_goes_on():
    """[X8] Some hosts say it twice."""
    heard = hear(
        message_start(id="msg_1"),
        message_start(id="msg_1"),
        *text_block(0, "Hel", "lo"),
        message_delta("end_turn"),
        MESSAGE_STOP,
    )
    assert heard.content == (Text("Hello"),)


def test_a_message_that_begins_late_is_no_second_one():
    """[X8] Hosts that leave the start out, or send it behind the first block."""
    heard = hear(
        *text_block(0, "Hel"),
        message_start(id="msg_1"),
        *text_block(1, "lo"),
        message_delta("end_turn"),
        MESSAGE_STOP,
    )
    assert heard.content == (Text("Hel"), Text("lo"))


def test_two_calls_without_arguments_that_are_open_at_once_both_end():
    data = sse(
        message_start(),
        block_start(0, type="tool_use", id="toolu_a", name="a", input={}),
        block_start(1, type="tool_use", id="toolu_b", name="b", input={}),
        block_stop(0),
        block_stop(1),
        message_delta("tool_use"),
        MESSAGE_STOP,
    )
    assert [event.index for event in read(data) if isinstance(event, PartEnd)] == [0, 1]


def test_how_far_hidden_thinking_has_come_is_passed_on_and_changes_nothing():
    """anthropic-sdk-python 2.9.0: an increment of an estimate, for a progress bar."""
    events = read(
        sse(
            message_start(),
            block_start(0, type="thinking", thinking="", signature=""),
            block_delta(0, "thinking_delta", thinking="", estimated_tokens=128),
            block_delta(0, "thinking_delta", thinking="", estimated_tokens=None),
            block_delta(0, "signature_delta", signature="c2ln"),
            block_stop(0),
            *text_block(1, "Hi"),
            message_delta("end_turn"),
            MESSAGE_STOP,
        )
    )
    hints = [event for event in events if isinstance(event, ForeignEvent)]
    assert [hint.value["delta"]["estimated_tokens"] for hint in hints] == [128]
    writer = dialect("openai-chat").stream_writer(CONTEXT, None)
    writer.write(events)
    assert ("foreign_event", "dropped") in {(loss.feature, loss.action) for loss in writer.losses}
