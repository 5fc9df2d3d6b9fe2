"""What a client of the Interactions API gets: interactions, streams and errors."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.gemini_interactions import DIALECT
from wireglot_core.dialects.gemini_interactions.errors import owns_error
from wireglot_core.ir.content import (
    Citation,
    Extra,
    Foreign,
    Media,
    Origin,
    Part,
    Reasoning,
    Signature,
    Text,
    ToolCall,
)
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.hosted import HostedCall, HostedResult, RanCall, WebSource
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.stream import Delta, Event, Failure, Finish, PartEnd, PartStart, Start, unfold
from wireglot_core.wire.json import decode
from wireglot_core.wire.sse import SseDecoder

OWN = "gemini-interactions"
CONTEXT = Context(now=1_800_000_000)
FOREIGN = Signature("c2ln", Origin("gemini"))


def shown(*parts: Part, stop: Stop = Stop("end"), **more: Any) -> tuple[dict[str, Any], list[str]]:  # noqa: B008 - it is frozen
    rendered = DIALECT.render_response(Response("x", "m", parts, stop, **more), CONTEXT)
    return rendered.value, [f"{loss.path} {loss.feature} {loss.action}" for loss in rendered.losses]


def written(*events: Event) -> list[dict[str, Any]]:
    """The events of a stream, without their names; the end mark is no event."""
    decoder = SseDecoder()
    frames = decoder.feed(DIALECT.stream_writer(CONTEXT).write(events))
    found = [decode(frame.data) for frame in frames if frame.data != b"[DONE]"]
    assert [event["event_id"] for event in found] == [str(number) for number in range(len(found))]
    assert [frame.event for frame in frames if frame.data != b"[DONE]"] == [
        event["event_type"] for event in found
    ]
    return found


def steps_written(*events: Event) -> list[tuple[str, int, Any]]:
    found = written(Start("x", "m"), *events, Finish(Stop("end")))
    return [
        (event["event_type"], event["index"], event.get("step", event.get("delta")))
        for event in found
        if event["event_type"].startswith("step.")
    ]


def test_an_answer_is_steps():
    body, losses = shown(
        Reasoning("why"), Text("hello"), ToolCall("c", "f", '{"a":1}'), stop=Stop("tool_calls")
    )
    assert body["steps"] == [
        {"type": "thought", "summary": [{"type": "text", "text": "why"}]},
        {"type": "model_output", "content": [{"type": "text", "text": "hello"}]},
        {"type": "function_call", "id": "c", "name": "f", "arguments": {"a": 1}},
    ]
    assert (body["id"], body["object"], body["model"]) == ("v1_x", "interaction", "m")
    assert body["created"] == body["updated"] == "2027-01-15T08:00:00Z"
    assert losses == []


@rows(
    ("stop", "parts", "status", "code"),
    [
        ("end", (Text("a"),), "completed", ""),
        ("stop_sequence", (Text("a"),), "completed", ""),
        ("tool_calls", (ToolCall("c", "f", "{}"),), "requires_action", ""),
        ("end", (ToolCall("c", "f", "{}"),), "requires_action", ""),
        ("paused", (ToolCall("c", "f", "{}"),), "requires_action", ""),
        ("length", (Text("a"),), "incomplete", ""),
        ("context_full", (Text("a"),), "incomplete", ""),
        ("paused", (Text("a"),), "incomplete", ""),
        ("refused", (Text("a"),), "failed", "content_blocked"),
        ("malformed_call", (), "failed", "malformed_function_call"),
        ("other", (Text("a"),), "completed", ""),
    ],
)
def test_statuses(stop, parts, status, code):
    body, losses = shown(*parts, stop=Stop(stop))
    assert body["status"] == status
    assert [error["code"] for error in body.get("errors", [])] == ([code] if code else [])
    again = DIALECT.parse_response(body, CONTEXT)
    assert (again.stop.reason != stop) == bool(losses)


def test_counts_do_not_overlap():
    usage = Usage(input=10, cache_read=4, cache_write=1, tool_prompt=2, output=5, reasoning=3)
    body, losses = shown(Text("a"), usage=usage)
    assert body["usage"] == {
        "total_input_tokens": 15,
        "total_cached_tokens": 4,
        "total_output_tokens": 5,
        "total_thought_tokens": 3,
        "total_tool_use_tokens": 2,
        "total_tokens": 25,
    }
    assert losses == ["$.usage.cache_write usage.detail approximated"]


def test_signatures_of_others_travel_in_thoughts():
    text = Text("a", signature=FOREIGN)
    body, _ = shown(Reasoning("why", FOREIGN), text, ToolCall("c", "f", "{}", signature=FOREIGN))
    assert [step["type"] for step in body["steps"]] == [
        "thought",
        "model_output",
        "thought",
        "thought",
        "function_call",
    ]
    request = {"model": "m", "input": body["steps"]}
    back = [message.content[0] for message in DIALECT.parse_request(request, CONTEXT).messages]
    assert back == [Reasoning("why", FOREIGN), text, ToolCall("c", "f", "{}", signature=FOREIGN)]


def test_googles_own_signature_is_left_as_it_is():
    body, _ = shown(Reasoning("", Signature("b3du", Origin(OWN))))
    assert body["steps"] == [{"type": "thought", "signature": "b3du"}]


def test_offsets_of_citations_are_bytes_on_the_wire():
    cited = Citation("https://e.com", "E", start=1, end=2)
    note = {"type": "url_citation", "url": "https://e.com", "title": "E", "start_index": 2, "end_index": 4}
    body, losses = shown(Text("éé.", citations=(cited,)))
    assert body["steps"][0]["content"][0]["annotations"] == [note]
    assert losses == []
    events: list[Event] = [
        PartStart(0, Text("")),
        Delta(0, "é"),
        Delta(0, "é."),
        PartEnd(0, citations=(cited,)),
    ]
    deltas = [delta for kind, _, delta in steps_written(*events) if kind == "step.delta"]
    assert deltas[-1] == {"type": "text_annotation_delta", "annotations": [note]}


def test_one_step_is_open_at_a_time():
    """Calls that a provider streams side by side come one after the other."""
    found = steps_written(
        PartStart(0, ToolCall("c1", "f", "")),
        PartStart(1, ToolCall("c2", "g", "")),
        Delta(1, '{"b":'),
        Delta(0, '{"a":1}'),
        Delta(1, "2}"),
        PartEnd(1),
        PartEnd(0),
    )
    order = [(kind, index) for kind, index, _ in found]
    assert order == sorted(order, key=lambda each: each[1])
    assert [step["id"] for kind, _, step in found if kind == "step.start"] == ["c1", "c2"]
    for index, whole in ((0, {"a": 1}), (1, {"b": 2})):
        said = [delta["arguments"] for kind, at, delta in found if kind == "step.delta" and at == index]
        assert decode("".join(said)) == whole


def test_a_picture_of_the_same_step_stays_in_it():
    joined = Media("image", "image/png", "AAAA", extra=Extra(OWN, form={"joined": True}))
    found = steps_written(PartStart(0, Text("")), Delta(0, "a"), PartEnd(0), PartStart(1, joined), PartEnd(1))
    assert [(kind, index) for kind, index, _ in found] == [
        ("step.start", 0),
        ("step.delta", 0),
        ("step.delta", 0),
        ("step.stop", 0),
    ]


def test_arguments_are_json_whatever_the_model_writes():
    found = steps_written(PartStart(0, ToolCall("c", "f", "")), Delta(0, '{"a": [1, 2'), PartEnd(0))
    said = "".join(delta["arguments"] for kind, _, delta in found if kind == "step.delta")
    assert isinstance(decode(said), dict)
    custom = steps_written(PartStart(0, ToolCall("c", "f", "", "custom")), Delta(0, "raw"), PartEnd(0))
    assert [delta for kind, _, delta in custom if kind == "step.delta"] == [
        {"type": "arguments_delta", "arguments": '{"input":"raw"}'}
    ]


def test_a_stream_is_the_whole_answer():
    parts = (Reasoning("why", FOREIGN), Text("hello"), ToolCall("c", "f", '{"a":1}'))
    response = Response("x", "m", parts, Stop("tool_calls"), Usage(input=1, output=2))
    found = written(*unfold(response))
    assert [event["event_type"] for event in (*found[:2], found[-1])] == [
        "interaction.created",
        "interaction.status_update",
        "interaction.completed",
    ]
    last = found[-1]["interaction"]
    whole = DIALECT.render_response(response, CONTEXT).value
    assert last == {key: value for key, value in whole.items() if key != "steps"}


def test_a_failure_is_the_last_event():
    found = written(
        Start("x", "m"), PartStart(0, Text("")), Delta(0, "a"), Failure(ApiError("timeout", "slow"))
    )
    assert found[-1]["event_type"] == "error"
    assert found[-1]["error"] == {"code": "gateway_timeout", "message": "slow"}


@rows(
    ("error", "code", "message"),
    [
        (ApiError("invalid_request", "bad", param="tools[0]"), "invalid_request", "tools[0]: bad"),
        (ApiError("invalid_request", "tools[0]: bad", param="tools[0]"), "invalid_request", "tools[0]: bad"),
        (ApiError("invalid_request", "no", code="failed_precondition"), "failed_precondition", "no"),
        (ApiError("not_found", "gone", code="response_not_found"), "not_found", "gone"),
        (ApiError("auth", "who"), "authentication", "who"),
        (ApiError("overloaded", "later"), "service_unavailable", "later"),
    ],
)
def test_errors_have_a_word_for_a_code(error, code, message):
    body = DIALECT.render_error(error, CONTEXT).value
    assert body == {"error": {"code": code, "message": message}}
    assert owns_error(body)
    assert not owns_error({"error": {"code": 400, "message": message}})


def test_an_error_of_a_list_is_read():
    """As hosts before the API send it."""
    body = [{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}]
    error = DIALECT.parse_error(body, 503)
    assert error is not None
    assert (error.kind, error.message) == ("overloaded", "busy")


@pytest.mark.parametrize("kind", ["web_search", "web_fetch"])
def test_hosted_tools_that_the_gateway_runs_are_steps(kind):
    form = DIALECT.surface.client.hosted
    given = {"query": "q"} if kind == "web_search" else {"url": "https://e.com"}
    call = HostedCall(kind, "wg1", input=given)
    result = HostedResult(text="x", sources=(WebSource("https://e.com", "E"),))
    start, end = form.announce(call, 0)
    assert isinstance(start, PartStart)
    assert isinstance(end, PartEnd)
    assert isinstance(start.part, Foreign)
    report = form.report(RanCall("wg1", call, result), 1)[0]
    assert isinstance(report, PartStart)
    assert isinstance(report.part, Foreign)
    assert report.part.value["call_id"] == start.part.value["id"]
    ran, found = form.read(start.part), form.read(report.part)
    assert ran is not None
    assert ran.call == call
    assert found is not None
    assert found.result is not None
    assert [source.url for source in found.result.sources] == ["https://e.com"]
    failed: Any = form.report(RanCall("wg1", call, HostedResult(error="unavailable")), 1)[0]
    assert failed.part.value["is_error"] is True
