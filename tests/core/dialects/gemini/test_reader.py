"""Gemini streams -> events."""

import json

import pytest

from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.gemini import DIALECT
from wireglot_core.ir.content import Citation, Foreign, Reasoning, Text, TokenLogprob, ToolCall
from wireglot_core.ir.stream import (
    Delta,
    Failure,
    Finish,
    PartStart,
    Start,
    UsageReport,
    check,
    fold,
)
from wireglot_core.testing.laws import every_cut

CONTEXT = Context()


def chunk(*parts, finish=None, **more):
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "gemini-3-pro", "responseId": "r1", **more}


def sse(*chunks, end="\r\n\r\n"):
    return "".join(f"data: {json.dumps(item, ensure_ascii=False)}{end}" for item in chunks).encode()


def read(data, pieces=None):
    reader = DIALECT.stream_reader(CONTEXT)
    events = [event for piece in (pieces or [data]) for event in reader.read(piece)]
    return list(check(events + reader.end()))


def content(*chunks):
    return fold(read(sse(*chunks))).content


def deltas(events):
    return [event.text for event in events if isinstance(event, Delta)]


STREAM = sse(
    chunk({"text": "Let me ", "thought": True}, usageMetadata={"promptTokenCount": 5, "totalTokenCount": 5}),
    chunk({"text": "think. \u2028ü", "thought": True}),
    chunk({"text": "I will "}),
    chunk({"text": "look."}),
    chunk(
        {"functionCall": {"id": "a1", "name": "f", "args": {"a": 1}}, "thoughtSignature": "U0lH"},
        {"functionCall": {"name": "f"}},
    ),
    chunk(
        {"text": ""},
        finish="STOP",
        usageMetadata={
            "promptTokenCount": 5,
            "candidatesTokenCount": 2,
            "thoughtsTokenCount": 3,
            "totalTokenCount": 10,
        },
    ),
)


def test_a_stream_of_thoughts_text_and_calls():
    """R-G-03, R-G-04, R-T-05: one open part for a run of text; calls arrive whole."""
    events = read(STREAM)
    response = fold(events)
    thought, text, one, two = response.content
    assert thought == Reasoning("Let me think. \u2028ü")
    assert text == Text("I will look.")
    assert isinstance(one, ToolCall)
    assert isinstance(two, ToolCall)
    assert (one.id, one.name, one.arguments, two.arguments) == ("a1", "f", '{"a":1}', "{}")
    assert one.signature is not None
    assert two.signature is None
    assert response.stop.reason == "tool_calls"
    assert response.usage is not None
    assert response.usage.total == 10
    assert [event.index for event in events if isinstance(event, PartStart)] == [0, 1, 2, 3]


def test_any_cutting_of_the_bytes_gives_the_same_events():
    """R-J-08, R-F-03"""
    expected = read(STREAM)
    for pieces in every_cut(STREAM, random_cuts=30):
        assert read(STREAM, pieces) == expected


@rows(
    "data",
    [
        STREAM.replace(b"\r\n", b"\n"),
        b"\xef\xbb\xbf" + STREAM,
        b": a comment\r\n\r\n" + STREAM,
        STREAM + b"data: [DONE]\n\n",
        STREAM.rstrip(),
        b"[" + b",\n".join(line[6:] for line in STREAM.split(b"\r\n\r\n") if line) + b"]",
        b"\n [\n" + b"\n,\n".join(line[6:] for line in STREAM.split(b"\r\n\r\n") if line) + b"\n]\n",
        STREAM.replace(b"functionCall", b"function_call")
        .replace(b"thoughtSignature", b"thought_signature")
        .replace(b"usageMetadata", b"usage_metadata"),
    ],
)
def test_the_framing_and_spelling_do_not_matter(data):
    """R-DC-06: LF, CRLF, BOM, comments, a sentinel, a JSON array instead of SSE."""
    assert fold(read(data)) == fold(read(STREAM))
    for pieces in every_cut(data, random_cuts=5):
        assert fold(read(data, pieces)) == fold(read(STREAM))


def test_a_signed_piece_of_text_is_a_part_of_its_own():
    """R-DA-03"""
    parts = content(
        chunk({"text": "a"}),
        chunk({"text": "b", "thoughtSignature": "U0lH"}),
        chunk({"text": "c"}),
        chunk(finish="STOP"),
    )
    assert [(part.text, part.signature is not None) for part in parts if isinstance(part, Text)] == [
        ("a", False),
        ("b", True),
        ("c", False),
    ]


def test_an_empty_signed_part_is_kept():
    """R-DA-01"""
    parts = content(chunk({"text": "a"}), chunk({"text": "", "thoughtSignature": "U0lH"}, finish="STOP"))
    assert [(part.text, part.signature is not None) for part in parts if isinstance(part, Text)] == [
        ("a", False),
        ("", True),
    ]


def test_signed_thoughts_are_kept_with_their_signature():
    (thought, _) = content(
        chunk({"text": "hm", "thought": True, "thoughtSignature": "U0lH"}),
        chunk({"text": "x"}, finish="STOP"),
    )
    assert isinstance(thought, Reasoning)
    assert thought.signature is not None


def test_parts_and_usage_may_follow_the_finish_reason():
    """R-DC-04: Finish waits for the end of the bytes."""
    reader = DIALECT.stream_reader(CONTEXT)
    early = reader.read(
        sse(
            chunk({"text": "a"}, finish="STOP"),
            chunk({"text": "b"}),
            {"usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2}},
        )
    )
    assert not any(isinstance(event, Finish) for event in early)
    response = fold(early + reader.end())
    assert response.content == (Text("ab"),)
    assert response.usage is not None
    assert response.usage.output == 2


def test_the_last_finish_reason_wins():
    assert (
        fold(
            read(sse(chunk({"text": "a"}, finish="STOP"), {"candidates": [{"finishReason": "RECITATION"}]}))
        ).stop.reason
        == "refused"
    )


def test_a_call_in_an_earlier_chunk_than_the_finish_reason_still_means_tool_calls():
    """C2"""
    call = chunk({"functionCall": {"name": "f", "args": {}}})
    assert fold(read(sse(call, chunk({"text": ""}, finish="STOP")))).stop.reason == "tool_calls"
    assert fold(read(sse(call, chunk({"text": ""}, finish="MAX_TOKENS")))).stop.reason == "length"
    assert (
        fold(read(sse(call, chunk({"text": ""}, finish="MALFORMED_FUNCTION_CALL")))).stop.reason
        == "malformed_call"
    )


def test_a_stream_cut_before_its_finish_reason_ends_in_an_error():
    """R-DC-07, PAINS A6: never a clean stop; what was paid is reported."""
    events = read(sse(chunk({"text": "a"}, usageMetadata={"promptTokenCount": 7})))
    assert isinstance(events[-1], Failure)
    assert events[-1].error.code == "upstream_error"
    assert isinstance(events[-2], UsageReport)
    assert events[-2].usage.input == 7


def test_a_stream_cut_anywhere_is_complete_or_an_error():
    whole = fold(read(STREAM)).content
    for end in range(len(STREAM)):
        events = read(STREAM[:end])
        if isinstance(events[-1], Finish):
            assert fold(events).content == whole
        else:
            assert isinstance(events[-1], Failure)


def test_a_blocked_prompt_is_a_refusal():
    response = fold(
        read(
            sse(
                {
                    "promptFeedback": {"blockReason": "SAFETY"},
                    "usageMetadata": {"promptTokenCount": 3},
                    "responseId": "r1",
                }
            )
        )
    )
    assert (response.stop.reason, response.content) == ("refused", ())


ERROR = {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}


@rows(
    "data",
    [
        sse(chunk({"text": "a"}), ERROR),
        sse(chunk({"text": "a"}), [ERROR]),
        sse(ERROR),
        json.dumps(ERROR, indent=2).encode(),
        json.dumps([ERROR]).encode(),
        json.dumps([chunk({"text": "a"}), ERROR]).encode(),
    ],
)
def test_an_error_in_the_stream_is_a_failure(data):
    events = read(data)
    assert isinstance(events[-1], Failure)
    assert (events[-1].error.kind, events[-1].error.message) == ("overloaded", "overloaded")


def test_an_answer_that_was_not_streamed_is_read_all_the_same():
    body = json.dumps(chunk({"text": "a"}, finish="STOP")).encode()
    assert fold(read(body)).content == (Text("a"),)


@rows(
    "data",
    [
        b"",
        b"<html>Bad gateway</html>",
        b"data: {broken\n\n",
        b"{",
        b"[",
        b"data: 5\n\n",
        b"{}",
        b'data: {"candidates": 5}\n\n',
        b"\xff\xfe",
        b'data: {"candidates":[{"content":{"parts":[5]}}]}\n\n',
    ],
)
def test_garbage_is_a_failure(data):
    events = read(data)
    assert isinstance(events[-1], Failure)
    assert events[-1].error.kind == "server"


def test_nothing_comes_after_the_end():
    reader = DIALECT.stream_reader(CONTEXT)
    reader.read(sse(ERROR))
    assert reader.read(STREAM) == []
    assert reader.end() == []


def test_arguments_that_come_in_pieces_are_put_together():
    """C31"""
    pieces = [
        {"functionCall": {"name": "book", "id": "c1", "willContinue": True}, "thoughtSignature": "U0lH"},
        {
            "functionCall": {
                "partialArgs": [{"jsonPath": "$.city", "stringValue": "Zü", "willContinue": True}],
                "willContinue": True,
            }
        },
        {
            "functionCall": {
                "partialArgs": [{"jsonPath": "$.city", "stringValue": "rich"}],
                "willContinue": True,
            }
        },
        {
            "functionCall": {
                "partialArgs": [
                    {"jsonPath": "$.rooms[0].beds", "numberValue": 2},
                    {"jsonPath": "$.rooms[1]['sea view']", "boolValue": True},
                ],
                "willContinue": True,
            }
        },
        {
            "functionCall": {
                "partialArgs": [{"jsonPath": "$.note", "nullValue": "NULL_VALUE"}],
                "willContinue": True,
            }
        },
        {"functionCall": {}},
        {"functionCall": {"name": "done", "args": {}}},
    ]
    book, done = content(*(chunk(piece) for piece in pieces), chunk(finish="STOP"))
    assert isinstance(book, ToolCall)
    assert isinstance(done, ToolCall)
    assert json.loads(book.arguments) == {
        "city": "Zürich",
        "rooms": [{"beds": 2}, {"sea view": True}],
        "note": None,
    }
    assert (book.id, book.name) == ("c1", "book")
    assert book.signature is not None
    assert (done.name, done.arguments) == ("done", "{}")


def test_two_strings_on_one_path_are_joined_only_while_it_goes_on():
    pieces = [
        {
            "functionCall": {
                "name": "f",
                "partialArgs": [{"jsonPath": "$.a", "stringValue": text}],
                "willContinue": True,
            }
        }
        if first
        else {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": text}]}}
        for first, text in ((True, "x"), (False, "y"))
    ]
    (call,) = content(*(chunk(piece) for piece in pieces), chunk(finish="STOP"))
    assert isinstance(call, ToolCall)
    assert call.arguments == '{"a":"y"}'


def test_a_call_cut_off_by_the_limit_is_no_call():
    events = read(
        sse(chunk({"functionCall": {"name": "f", "willContinue": True}}), chunk(finish="MAX_TOKENS"))
    )
    assert fold(events).content == ()
    assert fold(events).stop.reason == "length"


@pytest.mark.parametrize(
    "after",
    [
        chunk(finish="STOP"),
        chunk({"functionCall": {"name": "g", "args": {}}}, finish="STOP"),
        chunk({"functionCall": {"name": "g", "willContinue": True}}, finish="STOP"),
    ],
    ids=["the end", "a call", "a call in pieces"],
)
def test_a_call_that_something_else_follows_before_it_is_whole_is_an_error(after):
    """[X7] What came of its arguments is handed to nobody."""
    piece = {"partialArgs": [{"jsonPath": "$.a", "stringValue": "/srv/fo", "willContinue": True}]}
    opened = {"functionCall": {"name": "f", **piece, "willContinue": True}}
    events = read(sse(chunk(opened), after))
    assert type(events[-1]) is Failure
    assert not any(type(event) is PartStart for event in events)


def test_sources_count_characters_of_the_streamed_text():
    grounding = {
        "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
        "groundingSupports": [
            {"segment": {"startIndex": 4, "endIndex": 9, "text": "schön"[:4]}, "groundingChunkIndices": [0]}
        ],
    }
    last = chunk({"text": "hön."}, finish="STOP")
    last["candidates"][0]["groundingMetadata"] = grounding
    (text,) = content(chunk({"text": "Na, sc"}), last)
    assert isinstance(text, Text)
    assert text.citations == (Citation("https://a.example", "A", "schö", 4, 8),)


def test_log_probabilities_come_with_their_delta():
    first = chunk({"text": "Hi"})
    first["candidates"][0]["logprobsResult"] = {"chosenCandidates": [{"token": "Hi", "logProbability": -0.5}]}
    events = read(sse(first, chunk(finish="STOP")))
    assert [event.logprobs for event in events if isinstance(event, Delta)] == [(TokenLogprob("Hi", -0.5),)]


def test_a_second_candidate_is_an_answer_of_its_own():
    """[X17]"""
    two = chunk({"text": "a"}, finish="STOP")
    two["candidates"].append({"content": {"parts": [{"text": "b"}]}, "index": 1})
    events = read(sse(two))
    assert fold(events).content == (Text("a"),)
    assert [other.content for other in fold(events).others] == [(Text("b"),)]


@pytest.mark.parametrize("finish", [None, "STOP"])
def test_a_call_that_a_further_candidate_leaves_open_is_no_call(finish):
    """It was an exception of ours. The first answer is whole, and none of the other's arguments is reported."""
    piece = {"partialArgs": [{"jsonPath": "$.a", "stringValue": "/srv/fo", "willContinue": True}]}
    opened = {"functionCall": {"name": "f", **piece, "willContinue": True}}
    two = chunk({"text": "a"}, finish="STOP")
    other = {"content": {"parts": [{"text": "b"}, opened]}, "index": 1}
    two["candidates"].append(other if finish is None else {**other, "finishReason": finish})
    whole = fold(read(sse(two)))
    assert whole.content == (Text("a"),)
    assert [other.content for other in whole.others] == [(Text("b"),)]
    assert [other.stop.reason for other in whole.others] == ["malformed_call"]


def test_unknown_parts_and_fields_survive():
    """R-DC-13"""
    events = read(
        sse(chunk({"executableCode": {"code": "1"}}), chunk({"x_new": 1}, finish="STOP", x_future=5))
    )
    response = fold(events)
    assert response.content == (
        Foreign("gemini", "executableCode", {"executableCode": {"code": "1"}}),
        Foreign("gemini", "x_new", {"x_new": 1}),
    )
    assert response.extra is not None
    assert response.extra.fields == {"x_future": 5}


def test_early_usage_reaches_the_start():
    events = read(STREAM)
    assert isinstance(events[0], Start)
    assert events[0].usage is not None
    assert events[0].usage.input == 5


def test_enums_may_be_numbers():
    assert fold(read(sse(chunk({"text": "a"}, finish=2)))).stop.reason == "length"


FINISHED = chunk({"text": "Hel"}, finish="STOP")
CHANGED = {"candidates": [{"finishReason": "RECITATION", "index": 0}]}


@pytest.mark.parametrize("end", ["\r\n\r\n", "\n\n", "\r\r"])
def test_a_stream_cut_inside_its_last_frame_is_an_error_though_an_earlier_one_said_why_it_ends(end):
    first, data = sse(FINISHED, end=end), sse(FINISHED, CHANGED, end=end)
    whole = len(data) - len(end)  # the blank line behind a frame may be missing
    for at in range(len(first) + 1, len(data) + 1):
        last = read(data[:at])[-1]
        if at < whole:
            assert isinstance(last, Failure), data[:at]
            assert last.error.code == "upstream_error"
        else:
            assert last.stop.raw == "RECITATION"


def test_a_comment_after_the_last_frame_cuts_nothing():
    for tail in (b": bye", b": bye\n", b"\n", b"data: [DONE]"):
        assert isinstance(read(sse(FINISHED) + tail)[-1], Finish)


def test_an_array_that_is_never_closed_was_cut():
    data = b"[" + b",\n".join(json.dumps(item).encode() for item in (FINISHED, CHANGED)) + b"]"
    for at in range(1, len(data)):
        last = read(data[:at])[-1]
        assert isinstance(last, Failure), data[:at]
        assert last.error.code == "upstream_error"
    assert read(data)[-1].stop.raw == "RECITATION"


@pytest.mark.parametrize("behind", ["[", "data: {}", "x", "]"])
def test_what_follows_an_array_breaks_it_however_it_is_cut(behind):
    data = f"[{json.dumps(chunk({'text': 'Hi.'}, finish='STOP'))}]\n{behind}".encode()
    whole = read(data)
    assert type(whole[-1]) is Failure
    for pieces in every_cut(data, random_cuts=2):
        assert read(data, pieces) == whole


def test_a_hollow_error_of_a_chunk_does_not_outlive_it():
    """Beside candidates it is nothing; in the last chunk of a blocked prompt, without any, it is an error."""
    feedback = {"blockReason": "SAFETY"}
    blocked = {"candidates": [], "error": {"code": 0, "message": ""}, "promptFeedback": feedback}
    events = read(sse(blocked))
    assert isinstance(events[-1], Finish)
    assert isinstance(read(DIALECT.stream_writer(CONTEXT).write(events))[-1], Finish)
