"""Streams of upstreams: the regular one, and what real providers make of it."""

import pytest

from tests.core.dialects.openai_responses.wire import CONTEXT, read, sse
from tests.tiers import rows
from wireglot_core.dialects.openai_responses import DIALECT
from wireglot_core.ir.content import Foreign, Media, Reasoning, Text, ToolCall
from wireglot_core.ir.stream import Delta, Failure, Finish, ForeignEvent, PartEnd, PartStart, Start, fold
from wireglot_core.testing.laws import every_cut
from wireglot_core.wire.json import encode

CREATED = {
    "type": "response.created",
    "response": {"id": "resp_1", "model": "gpt", "created_at": 5, "status": "in_progress"},
}
USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}


def done(*output, **more):
    body = {"id": "resp_1", "status": "completed", "output": list(output), "usage": USAGE, **more}
    return {"type": "response.completed", "response": body}


def added(index, item):
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def finished(index, item):
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def message(text, **more):
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
        **more,
    }


def text_delta(text, index=0, number=0):
    return {
        "type": "response.output_text.delta",
        "item_id": "msg_1",
        "output_index": index,
        "content_index": number,
        "delta": text,
    }


def call(arguments="", call_id="c1", **more):
    return {
        "type": "function_call",
        "id": "fc_1",
        "call_id": call_id,
        "name": "f",
        "arguments": arguments,
        **more,
    }


def arguments_delta(text, index=0):
    return {
        "type": "response.function_call_arguments.delta",
        "item_id": "fc_1",
        "output_index": index,
        "delta": text,
    }


OPEN_TEXT = (
    added(0, message("")),
    {
        "type": "response.content_part.added",
        "output_index": 0,
        "content_index": 0,
        "part": {"type": "output_text", "text": ""},
    },
)
WHOLE = sse(
    CREATED,
    *OPEN_TEXT,
    text_delta("Hel"),
    text_delta("lo"),
    finished(0, message("Hello")),
    done(message("Hello")),
)


def folded(*events):
    return fold(read(sse(*events)))


def test_a_regular_stream():
    events = read(WHOLE)
    assert [type(event) for event in events] == [Start, PartStart, Delta, Delta, PartEnd, Finish]
    response = fold(events)
    assert (response.id, response.model, response.created) == ("resp_1", "gpt", 5)
    assert response.usage is not None
    assert response.usage.total_input == 3
    assert response.stop.reason == "end"


def test_cutting_does_not_matter():
    expected = read(WHOLE)
    for pieces in every_cut(WHOLE):
        reader = DIALECT.stream_reader(CONTEXT)
        assert [event for piece in pieces for event in reader.read(piece)] + reader.end() == expected


def test_a_stream_cut_anywhere_ends_in_an_error():
    """R-DC-07, PAINS A7"""
    for end in range(len(WHOLE) - 2):
        last = read(WHOLE[:end])[-1]
        assert isinstance(last, Failure)
        assert last.error.code == "upstream_error" or "cannot be read" in last.error.message


def test_what_the_deltas_did_not_bring_comes_from_the_done_item():
    """PAINS A4"""
    response = folded(
        CREATED,
        *OPEN_TEXT,
        text_delta("Hel"),
        finished(0, message("Hello")),
        added(1, call()),
        finished(1, call('{"a":1}')),
        done(),
    )
    text, made = response.content
    assert isinstance(text, Text)
    assert text.text == "Hello"
    assert isinstance(made, ToolCall)
    assert made.arguments == '{"a":1}'
    assert response.stop.reason == "tool_calls"


def test_a_done_item_that_was_never_announced():
    response = folded(CREATED, finished(0, message("Hello")), finished(1, call("{}")), done())
    assert [type(part) for part in response.content] == [Text, ToolCall]


def test_items_only_the_last_event_has():
    response = folded(CREATED, done(message("Hello"), call("{}")))
    assert [type(part) for part in response.content] == [Text, ToolCall]
    assert response.stop.reason == "tool_calls"


@pytest.mark.parametrize("last", [done(), {"type": "response.completed", "response": {"id": "resp_1"}}])
def test_a_last_event_without_output_erases_nothing(last):
    response = folded(CREATED, *OPEN_TEXT, text_delta("Hello"), finished(0, message("Hello")), last)
    assert [part.text for part in response.content if isinstance(part, Text)] == ["Hello"]


def test_ids_that_rotate_do_not_matter():
    """Copilot gives every event another item id."""
    events = [
        CREATED,
        *OPEN_TEXT,
        {**text_delta("Hi"), "item_id": "other"},
        finished(0, message("Hi", id="third")),
        done(message("Hi", id="fourth")),
    ]
    assert len(folded(*events).content) == 1


def test_a_stream_without_its_beginning():
    response = folded(text_delta("Hi"), arguments_delta("ignored", 7), done())
    assert [part.text for part in response.content if isinstance(part, Text)] == ["Hi"]


def test_parallel_calls_interleave():
    """PAINS A5"""
    one, two = call(id="fc_1"), call(call_id="c2", id="fc_2")
    response = folded(
        CREATED, added(0, one), added(1, two), arguments_delta('{"a"', 0), arguments_delta('{"b"', 1),
        arguments_delta(":1}", 0), arguments_delta(":2}", 1),
        finished(1, {**two, "arguments": '{"b":2}'}), finished(0, {**one, "arguments": '{"a":1}'}), done(),
    )  # fmt: skip
    assert [(part.id, part.arguments) for part in response.content if isinstance(part, ToolCall)] == [
        ("c1", '{"a":1}'),
        ("c2", '{"b":2}'),
    ]


def test_a_call_that_names_itself_late():
    late = {"type": "function_call", "id": "fc_1", "arguments": ""}
    response = folded(CREATED, added(0, late), arguments_delta('{"a'), finished(0, call('{"a":1}')), done())
    (made,) = response.content
    assert isinstance(made, ToolCall)
    assert made.arguments == '{"a":1}'


def test_freeform_calls():
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "apply_patch", "input": ""}
    delta = {"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": "*** Be"}
    response = folded(CREATED, added(0, item), delta, finished(0, {**item, "input": "*** Begin"}), done())
    (made,) = response.content
    assert isinstance(made, ToolCall)
    assert (made.kind, made.arguments) == ("custom", "*** Begin")


def test_summary_parts_are_paragraphs_of_one_reasoning():

    def summary(text, number):
        return {
            "type": "response.reasoning_summary_text.delta",
            "output_index": 0,
            "summary_index": number,
            "delta": text,
        }

    entries = [{"type": "summary_text", "text": text} for text in ("one", "two")]
    item = {"type": "reasoning", "id": "rs_1", "summary": []}
    final = {**item, "summary": entries, "encrypted_content": "gAAA"}
    response = folded(
        CREATED,
        added(0, {**item, "encrypted_content": "part"}),
        summary("one", 0),
        summary("tw", 1),
        summary("o", 1),
        finished(0, final),
        done(final),
    )
    (reasoning,) = response.content
    assert isinstance(reasoning, Reasoning)
    assert reasoning.text == "one\n\ntwo"
    assert reasoning.signature is not None
    assert (reasoning.signature.data, reasoning.signature.id) == ("gAAA", "rs_1")
    assert DIALECT.render_response(response, CONTEXT).value["output"][0]["summary"] == entries


def test_raw_reasoning_text():
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "content": []}
    delta = {"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "hm"}
    final = {**item, "content": [{"type": "reasoning_text", "text": "hmm"}]}
    (reasoning,) = folded(CREATED, added(0, item), delta, finished(0, final), done()).content
    assert isinstance(reasoning, Reasoning)
    assert reasoning.text == "hmm"


def test_refusals_and_citations():
    part = {"type": "refusal", "refusal": ""}
    note = {"type": "url_citation", "url": "https://e.com", "title": "E", "start_index": 0, "end_index": 1}
    response = folded(
        CREATED, *OPEN_TEXT, text_delta("Hi"),
        {"type": "response.output_text.annotation.added", "output_index": 0, "content_index": 0, "annotation": note},
        {"type": "response.content_part.added", "output_index": 0, "content_index": 1, "part": part},
        {"type": "response.refusal.delta", "output_index": 0, "content_index": 1, "delta": "no"},
        {"type": "response.refusal.done", "output_index": 0, "content_index": 1, "refusal": "no!"},
        done(),
    )  # fmt: skip
    text, refusal = response.content
    assert isinstance(text, Text)
    assert [citation.url for citation in text.citations] == ["https://e.com"]
    assert isinstance(refusal, Text)
    assert (refusal.text, refusal.refusal) == ("no!", True)
    assert response.stop.reason == "refused"


def test_hosted_tools_are_foreign_parts_and_their_progress_foreign_events():
    item = {"type": "web_search_call", "id": "ws_1", "status": "in_progress"}
    final = {**item, "status": "completed", "action": {"type": "search"}}
    progress = {"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws_1"}
    image = {"type": "image_generation_call", "id": "ig_1", "result": "aGk=", "output_format": "png"}
    events = read(sse(CREATED, added(0, item), progress, finished(0, final), finished(1, image), done()))
    assert [event.type for event in events if isinstance(event, ForeignEvent)] == [
        "response.output_item.added",
        "response.web_search_call.searching",
    ]
    assert [type(part) for part in fold(events).content] == [Foreign, Media]


def test_length_and_filter_end_incomplete():
    for reason, expected in (("max_output_tokens", "length"), ("content_filter", "refused")):
        last = done(status="incomplete", incomplete_details={"reason": reason})
        assert (
            folded(CREATED, *OPEN_TEXT, text_delta("Hi"), {**last, "type": "response.incomplete"}).stop.reason
            == expected
        )


def test_error_and_failed_are_one_failure():
    error = {"code": "rate_limit_exceeded", "message": "try again in 7s"}
    failed = {"type": "response.failed", "response": {"id": "resp_1", "status": "failed", "error": error}}
    for events in (
        [failed],
        [{"type": "error", **error}, failed],
        [{"type": "error", "error": error}, failed],
    ):
        last = read(sse(CREATED, *events))[-1]
        assert isinstance(last, Failure)
        assert (last.error.kind, last.error.retry_after) == ("rate_limit", 7.0)


def test_noise_is_ignored():
    """R-DC-06, R-DC-13"""
    noisy = (
        b": OPENROUTER PROCESSING\n\n"
        + sse(
            {"type": "ping"},
            {"type": "keepalive"},
            {"type": "codex.rate_limits", "x": 1},
            {"type": "response.queued"},
        )
        + WHOLE.replace(b"\n", b"\r\n")
        + sse({"type": "response.cost"})
        + b"data: [DONE]\n\n"
    )
    events = read(noisy)
    assert fold(events).content == fold(read(WHOLE)).content
    assert [event.type for event in events if isinstance(event, ForeignEvent)] == ["codex.rate_limits"]


def test_a_document_instead_of_a_stream():
    body = {"id": "resp_1", "status": "completed", "output": [message("Hello")]}
    assert [part.text for part in fold(read(encode(body))).content if isinstance(part, Text)] == ["Hello"]
    for data in (encode({"error": {"message": "no", "code": "invalid_api_key"}}), b"<html></html>", b" [1]"):
        assert isinstance(read(data)[-1], Failure)


@rows(
    "event",
    [
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {"type": "function_call", "name": 3},
        },
        {"type": "response.output_item.added", "output_index": [], "item": 3},
        {"type": "response.output_text.delta", "output_index": {}, "content_index": [], "delta": 3},
        {"type": "response.completed", "response": [], "x": 1},
        {"type": ["a"]},
    ],
)
def test_events_of_wrong_types_never_raise(event):
    list(read(sse(CREATED, *OPEN_TEXT) + b"data: " + encode(event) + b"\n\n"))


def test_a_broken_frame_is_the_upstreams_fault():
    last = read(sse(CREATED) + b"data: {broken\n\n")[-1]
    assert isinstance(last, Failure)
    assert last.error.kind == "server"


def test_a_second_response_inside_the_first_is_an_error():
    """[X8] Nobody could say whose items are whose; the same one reported again is ignored."""
    created = {"type": "response.created", "response": {"id": "resp_1", "model": "m"}}
    other = {"type": "response.created", "response": {"id": "resp_2", "model": "m"}}
    assert type(read(sse(created, created, done(message("hi"))))[-1]) is Finish
    last = read(sse(created, other, done(message("hi"))))[-1]
    assert type(last) is Failure
    assert "second response" in last.error.message
