"""What an upstream that speaks Interactions answers: whole, streamed, or with an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.gemini_interactions.stream_reader import InteractionsChunks, InteractionsReader
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Citation, Foreign, Media, Origin, Reasoning, Signature, Text, ToolCall
from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Failure,
    Finish,
    ForeignEvent,
    Start,
    UsageReport,
    check,
    fold,
)
from wireglot_core.testing.laws import read_stream
from wireglot_core.wire.json import decode, encode

OWN = "gemini-interactions"
CODEC = dialect(OWN)
FIXTURES = Path(__file__).parents[3] / "fixtures" / OWN
CONTEXT = Context(provider="google", model="gemini-3.5-flash", account="a1")


def whole(name: str) -> Any:
    return CODEC.parse_response(decode((FIXTURES / "responses" / f"{name}.json").read_bytes()), CONTEXT)


def events(*sent: dict[str, Any] | bytes) -> list[Event]:
    frames = [
        each
        if isinstance(each, bytes)
        else b"event: %b\ndata: %b\n\n" % (each["event_type"].encode(), encode(each))
        for each in sent
    ]
    reader = CODEC.stream_reader(CONTEXT)
    return list(check([*reader.read(b"".join(frames)), *reader.end()]))


def created(**more: Any) -> dict[str, Any]:
    return {
        "event_type": "interaction.created",
        "interaction": {"id": "v1_1", "status": "in_progress", **more},
    }


def start(index: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"event_type": "step.start", "index": index, "step": {"type": kind, **more}}


def delta(index: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"event_type": "step.delta", "index": index, "delta": {"type": kind, **more}}


def stop(index: int, **more: Any) -> dict[str, Any]:
    return {"event_type": "step.stop", "index": index, **more}


def completed(status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"event_type": "interaction.completed", "interaction": {"id": "v1_1", "status": status, **more}}


DONE = b"event: done\ndata: [DONE]\n\n"


# Whole answers


def test_a_thought_is_signed_by_who_answered():
    thought, text = whole("text").content
    assert thought == Reasoning(
        "The user greets me. **Answer** kindly.",
        Signature("CiQB0e2Kb3f9", Origin(OWN, "google", "gemini-3.5-flash", "a1")),
    )
    assert text == Text("Hello! How can I help?")


def test_usage_adds_up_to_what_google_counts():
    usage = whole("search").usage
    assert usage.total_input == 30 + 512
    assert usage.total_output == 19 + 44
    assert whole("text").usage.cache_read == 4


def test_a_citation_counts_characters():
    (citation,) = whole("search").content[-1].citations
    assert (citation.url, citation.start, citation.end) == ("https://example.com/zh", 8, 36)


def test_what_google_ran_is_kept_as_it_came():
    ran = [part for part in whole("search").content if isinstance(part, Foreign)]
    assert [part.type for part in ran] == ["google_search_call", "google_search_result"]


@rows(
    ("name", "reason"),
    [
        ("text", "end"),
        ("tools", "tool_calls"),
        ("calls_completed", "tool_calls"),
        ("length", "length"),
        ("continuation", "paused"),
        ("blocked", "refused"),
        ("cancelled", "other"),
        ("minimal", "end"),
    ],
)
def test_a_status_is_the_reason_of_the_end(name, reason):
    assert whole(name).stop.reason == reason


def test_the_time_of_an_answer_is_in_seconds():
    assert whole("text").created == 1794474930


# Streams


def test_a_stream_starts_with_the_interaction_and_ends_with_its_usage():
    got = events(
        created(model="m"), completed(usage={"total_input_tokens": 3, "total_output_tokens": 2}), DONE
    )
    assert [type(event) for event in got] == [Start, Finish]
    assert isinstance(got[1], Finish)
    assert got[1].usage is not None
    assert (got[1].usage.input, got[1].usage.output) == (3, 2)


def test_arguments_of_the_start_are_not_joined_to_those_of_deltas():
    (call,) = fold(
        events(
            created(),
            start(0, "function_call", id="c1", name="f", arguments={"stale": True}),
            delta(0, "arguments_delta", arguments='{"a":'),
            delta(0, "arguments_delta", arguments="1}"),
            stop(0),
            completed("requires_action"),
        )
    ).content
    assert call == ToolCall("c1", "f", '{"a":1}')


def test_arguments_of_the_start_are_those_of_a_call_without_deltas():
    read = fold(
        events(
            created(),
            start(0, "function_call", id="c1", name="f", arguments={"a": 1}),
            stop(0),
            start(1, "function_call", id="c2", name="g"),
            stop(1),
            completed(),
        )
    )
    first, second = read.content
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert (first.arguments, second.arguments) == ('{"a":1}', "")
    assert read.stop.reason == "tool_calls", "although it says that it is completed"


def test_a_summary_may_be_in_the_start_of_its_thought():
    thought = fold(
        events(
            created(),
            start(0, "thought", summary=[{"type": "text", "text": "Hm"}]),
            delta(0, "thought_summary", content={"type": "text", "text": "."}),
            delta(0, "thought_signature", signature="U0lH"),
            stop(0),
            completed(),
        )
    ).content[0]
    assert isinstance(thought, Reasoning)
    assert (thought.text, thought.signature and thought.signature.data) == ("Hm.", "U0lH")


@rows(
    "deltas", [[], [delta(0, "thought_summary", content={"type": "text", "text": "Hm"})]], ids=["no", "some"]
)
def test_a_signature_may_be_in_the_start_of_its_thought(deltas):
    thought = fold(events(created(), start(0, "thought", signature="U0lH"), *deltas, stop(0), completed()))
    assert thought.content == (Reasoning("Hm" * len(deltas), Signature("U0lH", CONTEXT.origin(OWN))),)


def test_a_thought_that_shows_nothing_is_one():
    (thought,) = fold(
        events(
            created(),
            start(0, "thought"),
            delta(0, "thought_signature", signature="U0lH"),
            stop(0),
            completed(),
        )
    ).content
    assert thought == Reasoning("", Signature("U0lH", CONTEXT.origin(OWN)))


OUTPUT: dict[str, Any] = {"type": "model_output", "content": [{"type": "text", "text": "a"}]}
PICTURE: dict[str, Any] = {"type": "image", "data": "QQ==", "mime_type": "image/png"}


@rows(
    ("holder", "steps", "signed"),
    [
        ("text", [OUTPUT, "sealed"], 0),
        ("media", [{**OUTPUT, "content": [*OUTPUT["content"], PICTURE]}, "sealed"], 1),
        ("call", ["sealed", {"type": "function_call", "id": "c", "name": "f", "arguments": {"a": 1}}], 0),
        (
            "call",
            [OUTPUT, "sealed", {"type": "function_call", "id": "c", "name": "f", "arguments": {"a": 1}}],
            1,
        ),
        ("text", ["sealed", OUTPUT], None),
        ("call", [OUTPUT, "sealed"], None),
    ],
)
def test_a_signature_that_another_gateway_sent_in_a_thought_returns_to_its_part(holder, steps, signed):
    """Whole or streamed. One without its part is no part."""
    signature = Signature("c2ln", Origin("gemini"))
    thought = {"type": "thought", "signature": CONTEXT.seal(signature, holder)}
    steps = [thought if step == "sealed" else step for step in steps]
    read = CODEC.parse_response({"id": "v1_1", "status": "completed", "steps": steps}, CONTEXT)
    assert len(read.content) == sum(len(step.get("content", [0])) for step in steps) - 1
    assert [part.signature for part in read.content if isinstance(part, Text | Media | ToolCall)] == [
        signature if number == signed else None for number in range(len(read.content))
    ]
    sent: list[Any] = []
    for number, step in enumerate(steps):
        sent += [{"event_type": "step.start", "index": number, "step": step}, stop(number)]
    assert fold(events(created(), *sent, completed())).content == read.content


def test_annotations_are_about_the_text_of_their_step():
    note = {"type": "url_citation", "url": "https://x.example/", "start_index": 3, "end_index": 5}
    first, second = fold(
        events(
            created(),
            start(0, "model_output"),
            delta(0, "text", text="ab"),
            stop(0),
            start(1, "model_output"),
            delta(1, "text", text="üb"),
            delta(1, "text", text="er"),
            delta(1, "text_annotation_delta", annotations=[note]),
            stop(1),
            completed(),
        )
    ).content
    assert isinstance(first, Text)
    assert isinstance(second, Text)
    assert first.citations == ()
    assert second.citations == (Citation("https://x.example/", start=2, end=4),)


def test_a_picture_is_between_the_texts_of_its_step():
    read = fold(
        events(
            created(),
            start(0, "model_output"),
            delta(0, "text", text="a"),
            delta(0, "image", data="QQ==", mime_type="image/png"),
            delta(0, "text", text="b"),
            stop(0),
            completed(),
        )
    )
    assert [type(part) for part in read.content] == [Text, Media, Text]


def test_steps_in_the_last_event_are_the_answer_where_none_were_streamed():
    steps = [{"type": "model_output", "content": [{"type": "text", "text": "late"}]}]
    assert fold(events(created(), completed(steps=steps))).content == (Text("late"),)
    streamed = [created(), start(0, "model_output"), delta(0, "text", text="early"), stop(0)]
    assert fold(events(*streamed, completed(steps=steps))).content == (Text("early"),)


def test_usage_on_the_way_is_reported_once():
    usage = {"total_input_tokens": 3, "total_output_tokens": 1}
    got = events(
        created(),
        start(0, "model_output"),
        {**delta(0, "text", text="a"), "metadata": {"total_usage": usage}},
        stop(0, usage=usage),
        completed(),
    )
    assert [event.usage.output for event in got if isinstance(event, UsageReport)] == [1]
    assert fold(got).usage is not None


def test_an_error_event_is_a_failure():
    got = events(
        created(), {"event_type": "error", "error": {"code": "gateway_timeout", "message": "too slow"}}
    )
    assert isinstance(got[-1], Failure)
    assert (got[-1].error.kind, got[-1].error.message) == ("timeout", "too slow")


def test_an_interaction_that_fails_on_the_way_is_a_failure():
    got = events(
        created(),
        start(0, "model_output"),
        delta(0, "text", text="a"),
        stop(0),
        completed("failed", errors=[{"code": "service_unavailable", "message": "busy"}]),
    )
    assert isinstance(got[-1], Failure)
    assert got[-1].error.kind == "overloaded"


def test_one_that_is_blocked_on_the_way_is_refused():
    got = events(created(), completed("failed", errors=[{"code": "content_blocked", "message": "no"}]))
    assert isinstance(got[-1], Finish)
    assert got[-1].stop.reason == "refused"


def test_the_end_mark_alone_is_no_end():
    got = events(created(), start(0, "model_output"), delta(0, "text", text="a"), DONE)
    assert isinstance(got[-1], Failure)


def test_what_is_not_known_passes_on():
    got = events(created(), {"event_type": "interaction.mood", "mood": "good"}, completed())
    assert [event.type for event in got if isinstance(event, ForeignEvent)] == ["interaction.mood"]


def test_events_need_no_name_and_data_no_space():
    data = b"".join(
        b"data:%b\r\n\r\n" % encode(event)
        for event in (created(), start(0, "model_output"), delta(0, "text", text="a"), stop(0), completed())
    )
    assert fold(read_stream(CODEC, [data])).content == (Text("a"),)


def test_pieces_that_only_differ_in_their_text_are_read_alike():
    pieces = [{**delta(0, "text", text=f"w{n} "), "event_id": f"e{n}"} for n in range(50)]
    got = events(created(), start(0, "model_output"), *pieces, stop(0), completed())
    assert [event.text for event in got if isinstance(event, Delta)] == [f"w{n} " for n in range(50)]


@rows(
    ("piece", "text"),
    [
        (delta(0, "text", text="a"), "a"),
        (delta(0, "arguments_delta", arguments="{"), "{"),
        (delta(0, "thought_summary", content={"type": "text", "text": "Hm"}), "Hm"),
        (delta(0, "thought_summary", content={"type": "image", "data": "QQ=="}), None),
        (delta(0, "thought_summary", content={"type": "text", "text": 7}), None),
        (delta(0, "thought_summary", content="Hm"), None),
        (delta(0, "text", text="a", more=1), None),
        (delta(0, "text", text=7), None),
        (delta(0, "arguments_delta", arguments={"a": 1}), None),
        (delta(0, "thought_signature", signature="U0lH"), None),
        ({**delta(0, "text", text="a"), "metadata": {}}, None),
        ({**delta(0, "text", text="a"), "event_type": "step.start"}, None),
        ({"event_type": "step.delta", "delta": "a"}, None),
        ({"event_type": "step.delta", "delta": {"type": ["text"], "text": "a"}}, None),
    ],
)
def test_a_piece_whose_text_alone_is_new_is_known_by_its_form(piece, text):
    place = InteractionsChunks(1 << 20, []).text_place(piece)
    assert (place and place[0][place[1]]) == text


@rows(
    ("sent", "flaw"),
    [
        ([created(), created(), completed()], "second_start"),
        (
            [created(), start(1, "model_output"), stop(1), start(0, "thought"), stop(0), completed()],
            "index_not_growing",
        ),
        ([created(), delta(0, "text", text="a"), completed()], "piece_without_part"),
    ],
)
def test_a_rule_that_is_broken_is_named(sent, flaw):
    data = b"".join(b"event: %b\ndata: %b\n\n" % (each["event_type"].encode(), encode(each)) for each in sent)
    reader = InteractionsReader(CONTEXT)
    reader.read(data)
    assert reader.flaws == [flaw]


def test_another_interaction_inside_the_first_is_a_failure():
    got = events(created(), {"event_type": "interaction.created", "interaction": {"id": "v1_2"}}, completed())
    assert isinstance(got[-1], Failure)


# Errors


@rows(
    ("status", "body", "kind", "code", "wait"),
    [
        (
            400,
            {"error": {"code": "invalid_request", "message": "x"}},
            "invalid_request",
            "invalid_request",
            None,
        ),
        (
            400,
            {"error": {"code": "content_blocked", "message": "x"}},
            "content_policy",
            "content_blocked",
            None,
        ),
        (404, {"error": {"code": "not_found", "message": "x"}}, "not_found", "not_found", None),
        (504, {"error": {"code": "gateway_timeout", "message": "x"}}, "timeout", "gateway_timeout", None),
        (
            429,
            {"error": {"code": "rate_limit_exceeded", "message": "retry in 3s"}},
            "rate_limit",
            "rate_limit_exceeded",
            3,
        ),
        (
            429,
            [
                {
                    "error": {
                        "code": 429,
                        "message": "Quota",
                        "status": "RESOURCE_EXHAUSTED",
                        "details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "7.5s"}],
                    }
                }
            ],
            "rate_limit",
            "resource_exhausted",
            7.5,
        ),
        (
            400,
            {
                "error": {
                    "code": 400,
                    "message": "API key not valid.",
                    "status": "INVALID_ARGUMENT",
                    "details": [{"@type": "google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}],
                }
            },
            "auth",
            "invalid_argument",
            None,
        ),
        (503, "<html>upstream connect error</html>", "overloaded", "", None),
        (
            200,
            {"status": "failed", "errors": [{"code": "api_error", "message": "x"}]},
            "server",
            "api_error",
            None,
        ),
        (200, {"status": "failed", "steps": []}, "server", "", None),
    ],
)
def test_an_error_is_read_in_every_form(status, body, kind, code, wait):
    error = CODEC.parse_error(body, status if status >= 400 else 0)
    assert error is not None
    assert (error.kind, error.code, error.retry_after) == (kind, code, wait)


def test_an_answer_is_no_error():
    for name in ("text", "blocked", "minimal"):
        body = decode((FIXTURES / "responses" / f"{name}.json").read_bytes())
        assert CODEC.parse_error(body) is None


# What passes through


def test_the_tap_hears_usage_and_end():
    tap = CODEC.surface.tap(1 << 20)
    tap.feed((FIXTURES / "streams" / "tools.sse").read_bytes())
    tap.close()
    assert (tap.stop, tap.complete, tap.ended, tap.error) == ("tool_calls", True, True, None)
    assert tap.usage == Usage(input=80, output=31, reasoning=55, raw=tap.usage.raw if tap.usage else None)


def test_the_glance_sees_a_call():
    seen = CODEC.surface.glance((FIXTURES / "responses" / "calls_completed.json").read_bytes())
    assert seen.stop == "tool_calls"


def test_a_forwarded_stream_ends_with_its_last_frame_only():
    tap = CODEC.surface.tap(1 << 20)
    tap.feed(
        b'event: interaction.completed\ndata: {"event_type":"interaction.completed",'
        b'"interaction":{"id":"v1_1","status":"completed"}}\n\n'
    )
    assert (tap.complete, tap.ended) == (True, False)
    tap.feed(b"event: done\ndata: [DONE]\n\n")
    assert (tap.complete, tap.ended) == (True, True)
