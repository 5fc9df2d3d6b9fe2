"""Streams for clients: the events, their order, and the vendor's SDK reading them."""

import httpx2
import openai
from hypothesis import given

from tests.core.dialects.openai_responses.wire import CONTEXT, parse, read, write
from tests.tiers import rows
from wireglot_core import StreamTranslator
from wireglot_core.dialects.arguments import with_repaired_calls
from wireglot_core.dialects.openai_responses import DIALECT
from wireglot_core.ir.content import Citation, Extra, Foreign, Reasoning, Text, TokenLogprob, ToolCall
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Response, Stop, Usage
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
    fold,
    unfold,
)
from wireglot_core.testing.strategies import event_streams
from wireglot_core.wire.json import decode, encode
from wireglot_core.wire.sse import SseDecoder

START = Start("resp_1", "m", 5)
FINISH = Finish(Stop("end"), Usage(input=1, output=2))


def kinds(events):
    return [event["type"].removeprefix("response.") for event in events]


def text(index, *pieces, **end):
    return [PartStart(index, Text("")), *(Delta(index, piece) for piece in pieces), PartEnd(index, **end)]


def test_a_text_answer_in_full():
    """R-AB-01 to R-AB-09, R-DC-14"""
    events = write([START, *text(0, "Hel", "lo"), FINISH])
    assert kinds(events) == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "output_text.delta",
        "output_text.done", "content_part.done", "output_item.done", "completed",
    ]  # fmt: skip
    assert events[6]["text"] == "Hello"
    last = events[-1]["response"]
    assert last["output"] == [events[-2]["item"]]
    assert last["output"][0]["content"][0]["text"] == "Hello"
    assert last["usage"]["total_tokens"] == 3
    assert events[0]["response"]["status"] == "in_progress"
    assert len({event["item_id"] for event in events if "item_id" in event} | {events[2]["item"]["id"]}) == 1


def test_reasoning_in_full():
    """R-AB-10, R-AB-11, C25"""
    events = write([START, PartStart(0, Reasoning()), Delta(0, "h"), Delta(0, "m"), PartEnd(0), FINISH])
    assert kinds(events)[2:-1] == [
        "output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta",
        "reasoning_summary_text.delta", "reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done",
    ]  # fmt: skip
    assert events[-2]["item"]["summary"] == [{"type": "summary_text", "text": "hm"}]


def test_raw_reasoning_stays_raw_for_its_own_dialect():
    raw = Reasoning(extra=Extra("openai-responses", form={"source": "content"}))
    events = write([START, PartStart(0, raw), Delta(0, "hm"), PartEnd(0), FINISH])
    assert "reasoning_text.delta" in kinds(events)
    assert events[-2]["item"]["content"] == [{"type": "reasoning_text", "text": "hm"}]
    assert events[-2]["item"]["summary"] == []


def test_calls_in_full():
    """R-AB-12, R-AB-13, C25: Codex takes calls from the done item alone."""
    call: list[Event] = [
        PartStart(0, ToolCall("c1", "f", "", namespace="n")),
        Delta(0, '{"a"'),
        Delta(0, ":1}"),
        PartEnd(0),
    ]
    events = write([START, *call, Finish(Stop("tool_calls"))])
    assert kinds(events)[2:-1] == [
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.delta",
        "function_call_arguments.done", "output_item.done",
    ]  # fmt: skip
    assert events[2]["item"]["arguments"] == ""
    item = events[-2]["item"]
    assert {key: item[key] for key in ("call_id", "name", "namespace", "arguments", "status")} == {
        "call_id": "c1", "name": "f", "namespace": "n", "arguments": '{"a":1}', "status": "completed",
    }  # fmt: skip


def test_a_call_without_arguments_says_an_empty_object_everywhere():
    """R-DC-01"""
    events = write([START, PartStart(0, ToolCall("c1", "f", "")), PartEnd(0), Finish(Stop("tool_calls"))])
    assert (
        "".join(event["delta"] for event in events if "delta" in event)
        == events[-2]["item"]["arguments"]
        == "{}"
    )


def test_freeform_calls_are_custom_tool_calls():
    """PAINS A17"""
    call: list[Event] = [
        PartStart(0, ToolCall("c", "apply_patch", "", "custom")),
        Delta(0, "***"),
        PartEnd(0),
    ]
    events = write([START, *call, Finish(Stop("tool_calls"))])
    assert kinds(events)[3:5] == ["custom_tool_call_input.delta", "custom_tool_call_input.done"]
    assert events[-2]["item"]["input"] == "***"


def test_parallel_calls_keep_their_index():
    events = write(
        [START, PartStart(0, ToolCall("a", "f", "")), PartStart(1, ToolCall("b", "f", "")), Delta(1, '{"a":1}'),
         Delta(0, '{"a":2}'), PartEnd(0), PartEnd(1), Finish(Stop("tool_calls"))]
    )  # fmt: skip
    assert [event["output_index"] for event in events if event["type"].endswith(".delta")] == [1, 0]
    assert [item["call_id"] for item in events[-1]["response"]["output"]] == ["a", "b"]


def test_texts_next_to_each_other_are_one_message():
    events = write([START, *text(0, "a"), *text(1, "b"), FINISH])
    (item,) = events[-1]["response"]["output"]
    assert [part["text"] for part in item["content"]] == ["a", "b"]
    assert kinds(events).count("output_item.done") == 1


def test_empty_parts_leave_no_trace():
    """PAINS A25"""
    events = write([START, *text(0), FINISH])
    assert kinds(events) == ["created", "in_progress", "completed"]


def test_an_answer_cut_off_is_incomplete():
    """C25"""
    events = write([START, *text(0, "a"), Finish(Stop("length"))])
    assert events[-1]["type"] == "response.incomplete"
    assert events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert events[-2]["item"]["status"] == "incomplete"


def test_a_malformed_call_is_a_failed_response():
    events = write([START, Finish(Stop("malformed_call"))])
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"]["code"] == "server_error"


@rows(
    ("kind", "code", "failed"),
    [
        ("server", "internal_error", "server_error"),
        ("overloaded", "server_is_overloaded", "server_error"),
        ("rate_limit", "rate_limit_exceeded", "rate_limit_exceeded"),
        ("timeout", "upstream_timeout", "server_error"),
        ("context_overflow", "context_length_exceeded", "context_length_exceeded"),
        ("billing", "insufficient_quota", "insufficient_quota"),
    ],
)
def test_a_failure_is_reported_twice(kind, code, failed):
    """[L4] R-DC-07: Codex ignores `error` events, others know only them; it tries again after a
    `server_error`, not after `server_is_overloaded`."""
    for opening in ([], [START], [START, PartStart(0, Text("")), Delta(0, "Hel")]):
        events = write([*opening, Failure(ApiError(kind, "busy"))])
        error, last = events[-2:]
        assert (error["type"], error["code"], error["error"]["code"]) == ("error", code, code)
        assert last["type"] == "response.failed"
        assert (last["response"]["status"], last["response"]["error"]) == (
            "failed",
            {"code": failed, "message": "busy"},
        )


def test_citations_log_probabilities_and_usage():
    token = TokenLogprob("a", -0.5)
    events = write(
        [START, PartStart(0, Text("")), Delta(0, "a", (token,)), UsageReport(Usage(input=9)),
         PartEnd(0, citations=(Citation("https://e.com", "E", start=0, end=1),)), Finish(Stop("end"))]
    )  # fmt: skip
    assert "output_text.annotation.added" in kinds(events)
    assert (
        next(event for event in events if event["type"].endswith("text.delta"))["logprobs"][0]["token"] == "a"
    )
    part = events[-1]["response"]["output"][0]["content"][0]
    assert (part["annotations"][0]["url"], part["logprobs"][0]["logprob"]) == ("https://e.com", -0.5)
    assert events[-1]["response"]["usage"]["input_tokens"] == 9


def test_hosted_items_keep_their_announcement_and_their_progress():
    value = {"type": "web_search_call", "id": "ws_1", "status": "in_progress"}
    final = {**value, "status": "completed"}
    announce = {"type": "response.output_item.added", "output_index": 7, "item": value, "sequence_number": 9}
    progress = {"type": "response.web_search_call.searching", "output_index": 7, "item_id": "ws_1"}
    events = write(
        [START, *text(0, "a"), ForeignEvent("openai-responses", "response.output_item.added", announce),
         ForeignEvent("openai-responses", "response.web_search_call.searching", progress),
         PartStart(1, Foreign("openai-responses", "web_search_call", final)), PartEnd(1), FINISH]
    )  # fmt: skip
    assert [
        event["output_index"] for event in events if "ws_1" in str(event) and "output_index" in event
    ] == [1, 1, 1]
    assert events[-1]["response"]["output"][1] == final
    assert kinds(events).count("output_item.added") == 2


def test_what_others_alone_know_is_declared():
    writer = DIALECT.stream_writer(CONTEXT)
    writer.write(
        [
            START,
            ForeignEvent("anthropic", "x", {}),
            PartStart(0, Foreign("gemini", "y", {})),
            PartEnd(0),
            FINISH,
        ]
    )
    assert [loss.feature for loss in writer.losses] == ["foreign_event", "foreign_part"]


def test_the_request_is_echoed_from_the_first_event_on():
    request = parse(
        {"model": "m", "input": "x", "temperature": 0.2, "tools": [{"type": "custom", "name": "c"}]}
    )
    for event in write([START, FINISH], request):
        assert event["response"]["temperature"] == 0.2
        assert event["response"]["tools"] == [{"type": "custom", "name": "c"}]


def test_ids_are_the_same_in_a_stream_and_in_a_document():
    response = Response(
        "resp_1", "m", (Reasoning("hm"), Text("a"), ToolCall("c", "f", "{}")), Stop("tool_calls")
    )
    whole = DIALECT.render_response(response, CONTEXT).value
    assert write(list(unfold(response)))[-1]["response"]["output"] == whole["output"]


def client(data: bytes) -> openai.OpenAI:
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, content=data, headers={"content-type": "text/event-stream"})
    )
    return openai.OpenAI(
        api_key="k", base_url="http://test/v1", http_client=httpx2.Client(transport=transport), max_retries=0
    )


@given(event_streams())
def test_the_sdk_accumulates_what_we_fold(events):
    """R-DC-01: The SDK law, on the helper that insists most."""
    expected = fold(events)
    prose = "".join(part.text for part in expected.content if isinstance(part, Text) and not part.refusal)
    data = DIALECT.stream_writer(CONTEXT).write(events)
    with client(data).responses.stream(model="m", input="x") as stream:
        heard = list(stream)
        assert "".join(event.delta for event in heard if event.type == "response.output_text.delta") == prose
        for event in heard:
            if event.type == "response.function_call_arguments.delta":
                assert not event.snapshot.startswith("{}{")
        if heard[-1].type != "response.completed":
            return
        final = stream.get_final_response()
    assert final.output_text == prose
    calls = [
        (item.call_id, item.name, item.arguments) for item in final.output if item.type == "function_call"
    ]
    assert calls == [
        (part.id, part.name, part.arguments or "{}")
        for part in with_repaired_calls(expected.content, "$", [])
        if isinstance(part, ToolCall) and part.kind == "function"
    ]


def test_our_reader_reads_our_writer():
    events = [
        START,
        *text(0, "a", "b"),
        PartStart(1, ToolCall("c", "f", "")),
        Delta(1, "{}"),
        PartEnd(1),
        Finish(Stop("tool_calls")),
    ]
    data = DIALECT.stream_writer(CONTEXT).write(events)
    assert [part.text for part in fold(read(data)).content if isinstance(part, Text)] == ["ab"]


def test_a_failed_response_holds_what_came_of_the_open_items():
    opening: list[Event] = [
        START, PartStart(0, Reasoning()), Delta(0, "hm"), PartEnd(0), PartStart(1, Text("")), Delta(1, "Hel"),
        Delta(1, "lo"),
    ]  # fmt: skip
    _, text = write([*opening, Failure(ApiError("server", "cut"))])[-1]["response"]["output"]
    assert (text["status"], text["content"][0]["text"]) == ("incomplete", "Hello")
    opening = [
        START,
        PartStart(0, ToolCall("c1", "f", "")),
        Delta(0, '{"a"'),
        PartStart(1, Reasoning()),
        Delta(1, "h"),
    ]
    call, reasoning = write([*opening, Failure(ApiError("server", "cut"))])[-1]["response"]["output"]
    assert (call["status"], call["arguments"]) == ("incomplete", '{"a"')
    assert reasoning["summary"] == [{"type": "summary_text", "text": "h"}]


def test_a_kind_of_foreign_event_is_declared_once():
    foreign = [ForeignEvent("gemini", kind, {"n": number}) for number in range(3) for kind in ("one", "two")]
    writer = DIALECT.stream_writer(CONTEXT)
    writer.write([START, *foreign, FINISH])
    assert [loss.detail for loss in writer.losses] == ["one of gemini", "two of gemini"]


@rows("kind", ['x_"quoted"', "x_two\nlines", "x_\r\n\r\ndata: {}", "x_\\"])
@rows("more", [{}, {"a": 1}])
def test_an_event_of_any_name_is_one_frame_that_can_be_read(kind, more):
    event = encode({"type": kind, **more})
    data = (
        b'data: {"type":"response.created","response":{"id":"resp_1","model":"m"}}\n\ndata: '
        + event
        + b"\n\n"
    )
    translator = StreamTranslator(source="openai-responses", target="openai-responses")
    frames = SseDecoder().feed(translator.feed(data))
    assert kind in [decode(frame.data)["type"] for frame in frames]
