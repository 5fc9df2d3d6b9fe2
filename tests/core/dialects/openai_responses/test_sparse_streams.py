"""Streams of servers that leave events out: what any one event tells is enough."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.core.dialects.openai_responses.wire import CONTEXT, read, sse
from tests.tiers import rows
from wireglot_core.dialects.openai_responses import DIALECT
from wireglot_core.ir.content import Message, Text
from wireglot_core.ir.request import Request, Sampling
from wireglot_core.ir.stream import Finish, fold

CREATED = {"type": "response.created", "response": {"id": "resp_1", "model": "m"}}
ENDED = {"type": "response.completed", "response": {"id": "resp_1", "status": "completed"}}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": ""}
CUSTOM = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "f", "input": ""}
NOTE = {"type": "url_citation", "url": "https://example.com", "title": "x", "start_index": 0, "end_index": 1}


def added(item: Any, **more: Any) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": 0, "item": item, **more}


def at(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "item_id": "x_1", "output_index": 0, "content_index": 0, **more}


def content(*events: dict[str, Any]) -> list[Any]:
    return list(fold(read(sse(CREATED, *events, ENDED))).content)


@rows(
    ("events", "text", "refusal"),
    [
        ([at("output_text.delta", delta="a")], "a", False),
        ([at("output_text.done", text="ab")], "ab", False),
        ([at("output_text.delta", delta="a"), at("output_text.done", text="ab")], "ab", False),
        ([at("output_text.delta", delta="b"), at("output_text.done", text="ac")], "b", False),
        ([at("output_text.delta", delta=""), at("output_text.delta", delta=7)], None, False),
        ([at("output_text.done", text=""), at("output_text.done", text=7)], None, False),
        ([at("refusal.delta", delta="n"), at("refusal.delta", delta="o")], "no", True),
        ([at("refusal.done", refusal="no")], "no", True),
        ([at("content_part.done", part={"type": "output_text", "text": "ab"})], "ab", False),
        ([at("content_part.done", part={"type": "refusal", "refusal": "no"})], "no", True),
        ([at("content_part.done", part=7), at("content_part.done", part={"type": "x"})], None, False),
        (
            [
                at("content_part.added", part={"type": "refusal", "refusal": ""}),
                at("output_text.delta", delta="n"),
            ],
            "n",
            True,
        ),
        ([at("content_part.added", part={"type": "text"}), at("output_text.delta", delta="a")], "a", False),
        ([{**at("output_text.delta", delta="a"), "output_index": None, "item_id": None}], "a", False),
    ],
)
def test_a_text_is_what_its_events_tell(events, text, refusal):
    parts = content(*events)
    if text is None:
        assert all(getattr(part, "text", "") == "" for part in parts)
    else:
        assert [(part.text, part.refusal) for part in parts] == [(text, refusal)]


@pytest.mark.parametrize("kind", ["output_text.annotation.added", "output_text_annotation.added"])
def test_a_citation_belongs_to_the_text_that_is_open(kind):
    (part,) = content(at("output_text.delta", delta="a"), at(kind, annotation=NOTE), at(kind, annotation=7))
    assert [citation.url for citation in part.citations] == ["https://example.com"]
    assert content(at(kind, annotation=NOTE)) == []


@pytest.mark.parametrize(
    ("item", "name", "key"),
    [(CALL, "function_call_arguments", "arguments"), (CUSTOM, "custom_tool_call_input", "input")],
)
def test_a_call_is_what_its_events_tell(item, name, key):
    delta, done = at(f"{name}.delta", delta="{}"), at(f"{name}.done", **{key: "{ }"})
    for events, arguments in (
        ([delta], "{}"),
        ([done], "{ }"),
        ([at(f"{name}.delta", delta="{"), done], "{ }"),
        ([at(f"{name}.done", **{key: 7}), delta], "{}"),
        ([at(f"{name}.delta", delta=7), delta], "{}"),
    ):
        (part,) = content(added(item), *events)
        assert (part.id, part.name, part.arguments) == ("c", "f", arguments)


@pytest.mark.parametrize("gap", [{"call_id": ""}, {"name": ""}, {"call_id": None}, {"name": 7}])
def test_a_call_that_is_not_named_yet_waits_until_it_is_done(gap):
    done = {"type": "response.output_item.done", "output_index": 0, "item": {**CALL, "arguments": "{}"}}
    (part,) = content(added({**CALL, **gap}), at("function_call_arguments.delta", delta="{"), done)
    assert (part.id, part.name, part.arguments) == ("c", "f", "{}")


@rows(
    ("events", "text"),
    [
        ([at("reasoning_text.delta", delta="a")], "a"),
        ([at("reasoning_summary_text.delta", delta="a", summary_index=0)], "a"),
        (
            [
                at("reasoning_summary_text.delta", delta="a", summary_index=0),
                at("reasoning_summary_text.delta", delta="b", summary_index=1),
            ],
            "a\n\nb",
        ),
        (
            [
                at("reasoning_summary_text.delta", delta="a", summary_index=0),
                at("reasoning_text.delta", delta="b"),
            ],
            "a",
        ),
        ([at("reasoning_summary_text.delta", delta="b", summary_index=1)], "b"),
        ([at("reasoning_text.delta", delta=""), at("reasoning_text.delta", delta="a")], "a"),
    ],
)
def test_thoughts_are_what_their_events_tell(events, text):
    (part,) = content(*events)
    assert part.text == text


@rows(
    "event",
    [
        at("output_text.delta", delta="x"),
        at("output_text.done", text="x"),
        at("content_part.added", part={"type": "output_text", "text": ""}),
        at("content_part.done", part={"type": "output_text", "text": "x"}),
        at("reasoning_text.delta", delta="x"),
    ],
)
def test_an_event_about_another_kind_of_item_says_nothing(event):
    done = {"type": "response.output_item.done", "output_index": 0, "item": {**CALL, "arguments": "{}"}}
    for events in ((added(CALL), event, done), (added(CALL), done, event)):
        (part,) = content(*events)
        assert (part.name, part.arguments) == ("f", "{}")


@pytest.mark.parametrize(
    "event",
    [
        at("output_text.delta", delta="x"),
        at("output_text.done", text="bx"),
        at("content_part.done", part={"type": "output_text", "text": "bx"}),
        at("function_call_arguments.delta", delta="x"),
    ],
)
def test_nothing_is_added_to_an_item_that_is_done(event):
    item = {
        "type": "message",
        "id": "x_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "b"}],
    }
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    assert [part.text for part in content(done, event)] == ["b"]


@pytest.mark.parametrize("event", [added(7), {"type": "response.output_item.done", "output_index": 0}])
def test_an_item_that_is_none_says_nothing(event):
    assert content(event) == []


def test_an_answer_without_an_output_has_one_when_something_is_said():
    """A plugin may put words into an answer that had none."""
    empty = DIALECT.parse_response({"id": "r", "model": "m", "status": "completed"}, CONTEXT)
    assert "output" not in DIALECT.render_response(empty, CONTEXT).value
    spoken = DIALECT.render_response(replace(empty, content=(Text("a"),)), CONTEXT).value
    assert spoken["output"][0]["content"][0]["text"] == "a"


@rows(
    ("event", "stop"),
    [
        ({"type": "response.done", "response": {}}, "end"),
        ({"type": "response.completed", "response": {"status": "in_progress"}}, "end"),
        ({"type": "response.incomplete", "response": {"status": "queued"}}, "length"),
        ({"type": "response.completed", "response": 7}, "end"),
        (
            {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "content_filter"}}},
            "refused",
        ),
    ],
)
def test_the_last_event_tells_why_it_ended_where_the_answer_does_not(event, stop):
    last = read(sse(CREATED, at("output_text.delta", delta="a"), event))[-1]
    assert isinstance(last, Finish)
    assert last.stop.reason == stop


@pytest.mark.parametrize("kind", ["ping", "keepalive", "response.keepalive", "response.heartbeat"])
def test_signs_of_life_say_nothing(kind):
    assert [type(event).__name__ for event in read(sse(CREATED, {"type": kind}, ENDED))] == [
        "Start",
        "Finish",
    ]


@rows(
    ("status", "stop"),
    [
        ("completed", "end"),
        ("complete", "end"),
        ("", "end"),
        (None, "end"),
        ("cancelled", "other"),
        ("incomplete", "length"),
    ],
)
def test_clones_spell_a_status_in_their_own_ways(status, stop):
    body = {"id": "r", "model": "m", "status": status, "output": []}
    assert DIALECT.parse_response(body, CONTEXT).stop.reason == stop


def test_a_request_of_another_dialect_asks_for_its_log_probabilities():
    request = Request("m", (Message("user", (Text("x"),)),), sampling=Sampling(logprobs=True))
    sent = DIALECT.render_request(request, CONTEXT).value["include"]
    assert sent == ["reasoning.encrypted_content", "message.output_text.logprobs"]
    own = {"model": "m", "input": "x", "include": ["message.output_text.logprobs"]}
    assert DIALECT.parse_request(own, CONTEXT).sampling.logprobs is True


def test_an_end_that_names_no_output_is_written_with_it():
    """Nothing was said, and the end does not say so: it was a KeyError of ours."""
    events = read(sse(CREATED, ENDED))
    written = DIALECT.stream_writer(CONTEXT).write(events)
    assert isinstance(read(written)[-1], Finish)
    assert b'"output":[]' in written.rpartition(b"response.completed")[2]
