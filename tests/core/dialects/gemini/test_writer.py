"""Events -> a Gemini stream."""

import json

import httpx2
import pytest
from google import genai

from tests.tiers import rows
from wireglot_core import StreamTranslator
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.gemini import DIALECT
from wireglot_core.ir.content import Media, Origin, Reasoning, Signature, Text, ToolCall
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
    fold,
)
from wireglot_core.wire.json import encode

CONTEXT = Context()
ARRAY = Context(framing="json-array")
CLAUDE = Signature("EqQB", Origin("anthropic"))

EVENTS: list[Event] = [
    Start("msg_1", "claude"),
    PartStart(0, Reasoning()),
    Delta(0, "Let me "),
    Delta(0, "think."),
    PartEnd(0, CLAUDE),
    PartStart(1, Text("")),
    Delta(1, "I will "),
    Delta(1, "look \u2028ü."),
    PartEnd(1),
    PartStart(2, ToolCall("toolu_1", "f", "", signature=Signature("U0lH", Origin("gemini")))),
    Delta(2, '{"a"'),
    Delta(2, ": 1}"),
    PartEnd(2),
    PartStart(3, ToolCall("toolu_2", "f", "")),
    PartEnd(3),
    UsageReport(Usage(input=9)),
    Finish(Stop("tool_calls"), Usage(input=5, cache_read=2, output=7, reasoning=3)),
]


def write(events, context=CONTEXT):
    writer = DIALECT.stream_writer(context)
    return writer.write(events), writer.losses


def chunks(data):
    assert data.endswith(b"\n\n")
    frames = data.decode().split("\n\n")[:-1]
    assert all(frame.startswith("data: ") for frame in frames)
    return [json.loads(frame[6:]) for frame in frames]


def parts(written):
    return [part for item in written for part in item["candidates"][0]["content"]["parts"]]


def test_each_delta_is_a_whole_response_and_calls_leave_complete():
    """R-C-01, R-AG-13, R-AG-14, R-AG-15"""
    data, losses = write(EVENTS)
    written = chunks(data)
    assert losses == []
    assert [part.get("text") for part in parts(written)] == [
        "Let me ",
        "think.",
        "",
        "I will ",
        "look \u2028ü.",
        None,
        None,
        "",
    ]
    assert [part.get("thought") for part in parts(written)][:4] == [True, True, True, None]
    assert parts(written)[5:7] == [
        {"functionCall": {"id": "toolu_1", "name": "f", "args": {"a": 1}}, "thoughtSignature": "U0lH"},
        {"functionCall": {"id": "toolu_2", "name": "f", "args": {}}},
    ]
    for item in written:
        assert item["modelVersion"] == "claude"
        assert item["responseId"] == "msg_1"
        assert item["candidates"][0]["content"]["role"] == "model"
        assert item["candidates"][0]["index"] == 0


def test_the_last_chunk_has_finish_reason_and_usage_and_nothing_follows():
    """C21, C26, R-AG-16, R-DC-14: no sentinel, no comment, usage in the stream."""
    data, _ = write(EVENTS)
    written = chunks(data)
    assert [item["candidates"][0].get("finishReason") for item in written] == [None] * 7 + ["STOP"]
    assert written[-1]["usageMetadata"] == {
        "promptTokenCount": 7,
        "cachedContentTokenCount": 2,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 3,
        "totalTokenCount": 17,
    }
    assert b"[DONE]" not in data


def test_batches_do_not_matter():
    writer = DIALECT.stream_writer(CONTEXT)
    assert b"".join(writer.write([event]) for event in EVENTS) == write(EVENTS)[0]


def test_a_json_array_is_one_valid_document():
    data, _ = write(EVENTS, ARRAY)
    assert json.loads(data) == chunks(write(EVENTS)[0])


def test_interleaved_calls_leave_in_the_order_they_began():
    """PAINS A5"""
    events = [
        Start("r", "m"),
        PartStart(0, ToolCall("a", "f", "")),
        PartStart(1, ToolCall("b", "g", "")),
        Delta(1, "{}"),
        Delta(0, '{"x":'),
        PartEnd(1),
        PartStart(2, Text("")),
        Delta(2, "later"),
        Delta(0, "1}"),
        PartEnd(0),
        Delta(2, " on"),
        PartEnd(2),
        Finish(Stop("tool_calls")),
    ]
    written = parts(chunks(write(events)[0]))
    assert [part.get("functionCall", {}).get("name", part.get("text")) for part in written] == [
        "f",
        "g",
        "later",
        " on",
        "",
    ]


def test_signed_text_leaves_in_one_piece_with_its_signature():
    events = [
        Start("r", "m"),
        PartStart(0, Text("", signature=Signature("U0lH", Origin("gemini")))),
        Delta(0, "a"),
        Delta(0, "b"),
        PartEnd(0),
        Finish(Stop("end")),
    ]
    assert parts(chunks(write(events)[0]))[0] == {"text": "ab", "thoughtSignature": "U0lH"}


def test_arguments_that_are_no_json_are_wrapped():
    """C10: never invalid JSON downstream."""
    events = [
        Start("r", "m"),
        PartStart(0, ToolCall("a", "f", "")),
        Delta(0, '{"x'),
        PartEnd(0),
        Finish(Stop("tool_calls")),
    ]
    assert parts(chunks(write(events)[0]))[0]["functionCall"]["args"]["_raw"] == '{"x'


def test_neighbouring_texts_run_together_and_say_so():
    events = [
        Start("r", "m"),
        PartStart(0, Text("")),
        Delta(0, "a"),
        PartEnd(0),
        PartStart(1, Text("")),
        Delta(1, "b"),
        PartEnd(1),
        Finish(Stop("end")),
    ]
    assert [loss.feature for loss in write(events)[1]] == ["content.position"]


def test_an_image_leaves_whole():
    events = [
        Start("r", "m"),
        PartStart(0, Media("image", "image/png", "AAAA")),
        PartEnd(0),
        Finish(Stop("end")),
    ]
    assert parts(chunks(write(events)[0]))[0] == {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}


def test_a_malformed_call_is_reported_in_geminis_own_words():
    events = [Start("r", "m"), Finish(Stop("malformed_call"))]
    assert chunks(write(events)[0])[-1]["candidates"][0]["finishReason"] == "MALFORMED_FUNCTION_CALL"


def test_events_of_other_dialects_are_declared():
    events = [Start("r", "m"), ForeignEvent("anthropic", "x", {}), Finish(Stop("end"))]
    assert [loss.feature for loss in write(events)[1]] == ["foreign_event"]


@rows(
    ("error", "code", "status"),
    [
        (ApiError("server", "cut", code="upstream_error"), 503, "UNAVAILABLE"),
        (ApiError("overloaded", "busy"), 503, "UNAVAILABLE"),
        (ApiError("rate_limit", "slow down"), 429, "RESOURCE_EXHAUSTED"),
        (ApiError("timeout", "late"), 504, "DEADLINE_EXCEEDED"),
        (ApiError("server", "ours", code="internal_error"), 500, "INTERNAL"),
    ],
)
def test_a_failure_is_one_error_chunk(error, code, status):
    """FAULTS 2: `error` is the first key, the code an integer, CRLF CRLF, nothing after it."""
    data, _ = write([Start("r", "m"), PartStart(0, Text("")), Delta(0, "a"), Failure(error)])
    last = data.rpartition(b"\n\ndata: ")[2]
    assert last.startswith(b'{"error":{"code":')
    assert last.endswith(b"\r\n\r\n")
    body = json.loads(last)["error"]
    assert (body["code"], body["status"], body["message"]) == (code, status, error.message)


def test_a_failure_leaves_the_array_valid():
    """FAULTS 2"""
    assert (
        json.loads(
            write(
                [Start("r", "m"), PartStart(0, Text("")), Delta(0, "a"), Failure(ApiError("server", "x"))],
                ARRAY,
            )[0]
        )[-1]["error"]["code"]
        == 503
    )
    assert json.loads(write([Failure(ApiError("server", "x"))], ARRAY)[0])[0]["error"]["code"] == 503


# The vendor's own SDK


def client(data, status=200):
    transport = httpx2.MockTransport(
        lambda request: httpx2.Response(status, content=data, headers={"content-type": "text/event-stream"})
    )
    options = genai.types.HttpOptions(httpx_client=httpx2.Client(transport=transport))
    return genai.Client(api_key="k", http_options=options)


def test_googles_sdk_reads_the_same_content():
    """The SDK law."""
    data, _ = write(EVENTS)
    texts: dict[bool, str] = {True: "", False: ""}
    calls = []
    for item in client(data).models.generate_content_stream(model="m", contents="x"):
        for part in item.candidates[0].content.parts:
            if part.function_call:
                calls.append((part.function_call.id, part.function_call.name, part.function_call.args))
            elif part.text:
                texts[bool(part.thought)] += part.text
    thought, text, *_ = fold(EVENTS).content
    assert isinstance(thought, Reasoning)
    assert isinstance(text, Text)
    assert texts == {True: thought.text, False: text.text}
    assert calls == [("toolu_1", "f", {"a": 1}), ("toolu_2", "f", {})]


def test_googles_sdk_raises_our_errors():
    data, _ = write(
        [Start("r", "m"), PartStart(0, Text("")), Delta(0, "a"), Failure(ApiError("overloaded", "busy"))]
    )
    with pytest.raises(genai.errors.ServerError, match="busy"):
        list(client(data).models.generate_content_stream(model="m", contents="x"))


def test_arguments_that_had_to_be_wrapped_are_declared():
    events = [
        Start("r", "m"),
        PartStart(0, ToolCall("call_1", "f", "")),
        Delta(0, '{"a"'),
        Delta(0, ": "),
        PartEnd(0),
        Finish(Stop("tool_calls")),
    ]
    _, losses = write(events)
    assert [(loss.path, loss.feature, loss.action) for loss in losses] == [
        ("$.content[0].arguments", "tool_call.arguments", "emulated")
    ]


def test_a_kind_of_foreign_event_is_declared_once():
    foreign = [
        ForeignEvent("openai-responses", kind, {"type": kind, "delta": str(number)})
        for number in range(3)
        for kind in ("code.delta", "audio.delta")
    ]
    _, losses = write([Start("r", "m"), *foreign, Finish(Stop("end"))])
    assert [loss.detail for loss in losses] == [
        "code.delta of openai-responses",
        "audio.delta of openai-responses",
    ]


@pytest.mark.parametrize("key", ["parts", "self", "more", "index"])
def test_a_field_of_a_candidate_may_have_any_name(key):
    candidate = {"content": {"parts": [{"text": "Hi."}], "role": "model"}, "finishReason": "STOP", key: [1]}
    translator = StreamTranslator(source="gemini", target="gemini")
    data = b"data: " + encode({"candidates": [candidate]}) + b"\n\n"
    assert translator.feed(data) + translator.close()
    assert not translator.failed
