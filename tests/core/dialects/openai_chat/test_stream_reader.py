"""Streams of many servers, read. Each oddity here has been seen in the wild."""

import pytest

from tests.core.dialects.openai_chat.support import CONTEXT, DONE, chunk, failure, folded, frame, read
from tests.tiers import rows
from wireglot_core.dialects.context import is_minted
from wireglot_core.dialects.openai_chat import DIALECT
from wireglot_core.ir.content import Media, Reasoning, Signature, Text, TokenLogprob, ToolCall
from wireglot_core.ir.stream import (
    Delta,
    Failure,
    Finish,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
    check,
    fold,
)
from wireglot_core.testing.laws import every_cut
from wireglot_core.wire.json import encode

ROLE = chunk({"role": "assistant", "content": ""})
STOP = chunk({}, "stop")
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def call(index=0, identifier=None, name=None, arguments=None, **more):
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    entry = {"index": index, "id": identifier, "function": function, **more}
    return {"tool_calls": [{key: value for key, value in entry.items() if value is not None}]}


def calls(*frames):
    return [part for part in folded(*frames).content if isinstance(part, ToolCall)]


def test_a_plain_stream():
    events = read(ROLE, chunk({"content": "Hi"}), chunk({"content": " you"}), STOP, DONE)
    assert [type(event) for event in events] == [Start, PartStart, Delta, Delta, PartEnd, Finish]
    assert folded(ROLE, chunk({"content": "Hi"}), STOP, DONE).content == (Text("Hi"),)


def test_reasoning_ends_where_the_text_begins():
    events = read(ROLE, chunk({"reasoning_content": "hm"}), chunk({"content": "Hi"}), STOP, DONE)
    assert [type(event).__name__ for event in events[1:-1]] == ["PartStart", "Delta", "PartEnd"] * 2


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_in_either_field_and_content_in_the_same_chunk(field):
    content = folded(ROLE, chunk({field: "hm", "content": "Hi"}), STOP, DONE).content
    assert [part.text for part in content if isinstance(part, Reasoning | Text)] == ["hm", "Hi"]


def test_reasoning_in_both_fields_is_reported_once():
    (thought,) = folded(chunk({"reasoning_content": "hm", "reasoning": "hm"}), STOP, DONE).content
    assert isinstance(thought, Reasoning)
    assert thought.text == "hm"


def test_empty_reasoning_opens_nothing():
    assert folded(chunk({"reasoning_content": "", "content": "Hi"}), STOP, DONE).content == (Text("Hi"),)


def test_details_are_joined_and_their_signature_is_kept():
    """OpenRouter"""

    def detail(text, **more):
        entry = {"type": "reasoning.text", "text": text, "index": 0, **more}
        return chunk({"reasoning": text, "reasoning_details": [entry], "content": ""})

    content = folded(
        detail("h"), detail("m"), detail("", signature="s"), chunk({"content": "Hi"}), STOP, DONE
    ).content
    thought = content[0]
    assert isinstance(thought, Reasoning)
    assert thought.text == "hm"
    assert thought.signature is not None
    assert thought.signature.data == '[{"index":0,"signature":"s","text":"hm","type":"reasoning.text"}]'
    assert thought.signature.origin == CONTEXT.origin("openai-chat")


def test_encrypted_details_alone_are_a_thought_before_the_call():
    entry = {"type": "reasoning.encrypted", "data": "x", "index": 0}
    content = folded(chunk({"reasoning_details": [entry], **call(0, "c1", "f", "{}")}), STOP, DONE).content
    assert [type(part) for part in content] == [Reasoning, ToolCall]


def test_parallel_calls_interleave_by_index():
    """PAINS A5"""
    frames = (
        chunk(call(0, "a", "f", "")),
        chunk(call(1, "b", "g", "")),
        chunk(call(0, arguments='{"x"')),
        chunk(call(1, arguments="{}")),
        chunk(call(0, arguments=":1}")),
        chunk({}, "tool_calls"),
        DONE,
    )
    assert calls(*frames) == [ToolCall("a", "f", '{"x":1}'), ToolCall("b", "g", "{}")]


@pytest.mark.parametrize("repeat", ["a", "", None])
def test_ids_and_names_repeated_or_blank_in_later_chunks_change_nothing(repeat):
    later = call(0, repeat, "f" if repeat else repeat, '"x":1}', type=None)
    assert calls(chunk(call(0, "a", "f", "{", type="function")), chunk(later), STOP, DONE) == [
        ToolCall("a", "f", '{"x":1}')
    ]


def test_calls_without_index_are_distinguished_by_their_ids():
    several = {
        "tool_calls": [
            call(None, "a", "f", "{}")["tool_calls"][0],
            call(None, "b", "f", "{}")["tool_calls"][0],
        ]
    }
    assert [part.id for part in calls(chunk(several, "tool_calls"), DONE)] == ["a", "b"]


def test_a_fragment_without_index_and_id_belongs_to_the_last_call():
    frames = (chunk(call(None, "a", "f", "{")), chunk(call(None, arguments="}")), STOP, DONE)
    assert calls(*frames) == [ToolCall("a", "f", "{}")]


def test_two_calls_under_one_index_are_two_calls():
    frames = (chunk(call(0, "a", "f", "{}")), chunk(call(0, "b", "g", "{}")), STOP, DONE)
    assert [part.id for part in calls(*frames)] == ["a", "b"]


@pytest.mark.parametrize("index", [-1, 1, 7])
def test_indices_may_start_anywhere(index):
    assert calls(chunk(call(index, "a", "f", "{}")), STOP, DONE) == [ToolCall("a", "f", "{}")]


def test_a_call_waits_for_its_name():
    frames = (chunk(call(0, "a", "", "")), chunk(call(0, None, "f", "{}")), STOP, DONE)
    assert calls(*frames) == [ToolCall("a", "f", "{}")]


def test_a_call_without_id_gets_one():
    (part,) = calls(chunk(call(0, "", "f", "{}")), STOP, DONE)
    assert is_minted(part.id)


def test_null_arguments_and_null_calls_are_nothing():
    entry = {"index": 0, "id": "a", "function": {"name": "f", "arguments": None}}
    frames = (
        chunk({"content": None, "tool_calls": None}),
        chunk({"tool_calls": [entry]}),
        chunk({"tool_calls": []}),
    )
    assert calls(*frames, STOP, DONE) == [ToolCall("a", "f", "")]


def test_a_custom_call_is_one():
    entry = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "p", "input": "*** x"}}
    assert calls(chunk({"tool_calls": [entry]}), STOP, DONE) == [ToolCall("a", "p", "*** x", "custom")]


def test_the_deprecated_function_call_is_a_call():
    frames = (
        chunk({"function_call": {"name": "f", "arguments": ""}}),
        chunk({"function_call": {"arguments": "{}"}}),
        chunk({}, "function_call"),
        DONE,
    )
    response = folded(*frames)
    (part,) = response.content
    assert isinstance(part, ToolCall)
    assert (part.name, part.arguments, response.stop.reason) == ("f", "{}", "tool_calls")


def test_a_call_decides_the_stop_reason_for_the_whole_stream():
    """C2, PAINS A13"""
    response = folded(chunk(call(0, "a", "f", "{}"), "tool_calls"), chunk({"content": ""}, "stop"), DONE)
    assert (response.stop.reason, response.stop.raw) == ("tool_calls", "tool_calls")
    assert folded(chunk(call(0, "a", "f", "{}")), STOP, DONE).stop.reason == "tool_calls"
    assert folded(chunk(call(0, "a", "f", "{")), chunk({}, "length"), DONE).stop.reason == "length"


def test_the_first_chunk_may_be_empty():
    """Azure: no choices, no id, no model"""
    first = frame(
        {"id": "", "model": "", "object": "", "choices": [], "prompt_filter_results": [{"hate": "safe"}]}
    )
    start = read(first, chunk({"content": "Hi"}), STOP, DONE)[0]
    assert isinstance(start, Start)
    assert (start.id, start.model) == ("c1", "m")
    assert start.extra is not None
    assert start.extra.fields == {"prompt_filter_results": [{"hate": "safe"}]}


def test_the_first_id_stays_and_a_missing_one_is_no_fault():
    response = folded(chunk({"content": "Hi"}), chunk({}, "stop", id="other"), DONE)
    assert response.id == "c1"
    body = {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}
    assert folded(frame(body), DONE).content == (Text("Hi"),)


@rows(
    "frames",
    [
        (STOP, frame({"id": "c1", "choices": [], "usage": USAGE})),
        (chunk({}, "stop", usage=USAGE),),
        (
            chunk({"content": ""}, usage={"prompt_tokens": 3, "completion_tokens": 0}),
            chunk({}, "stop", usage=USAGE),
        ),
        (
            frame(
                {"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": USAGE}]}
            ),
        ),
        (chunk({}, "stop", usage=None, x_groq={"id": "r", "usage": USAGE}),),
        (chunk({}, "stop", usage=USAGE), frame({"choices": [], "usage": None})),
    ],
)
def test_usage_is_found_wherever_it_stands(frames):
    """R-DC-04, R-DC-05"""
    usage = folded(ROLE, *frames, DONE).usage
    assert usage is not None
    assert (usage.input, usage.output) == (3, 2)


def test_usage_in_the_first_chunk_is_known_from_the_start():
    """vLLM writes the tokens of the prompt into every chunk, if the client wants them."""
    start, *rest = read(
        chunk({"content": "Hi"}, usage={"prompt_tokens": 3, "completion_tokens": 0}), STOP, DONE
    )
    assert isinstance(start, Start)
    assert start.usage is not None
    assert start.usage.input == 3
    assert not any(isinstance(event, UsageReport) for event in rest)
    finish, first = rest[-1], read(chunk({"content": "Hi"}), STOP, DONE)[0]
    assert isinstance(finish, Finish)
    assert finish.usage is not None
    assert finish.usage.input == 3
    assert isinstance(first, Start)
    assert first.usage is None


def test_a_finish_reason_without_done_is_an_end():
    assert folded(chunk({"content": "Hi"}), STOP).stop.reason == "end"


def test_done_without_a_finish_reason_is_an_end_of_unknown_reason():
    assert folded(chunk({"content": "Hi"}), DONE).stop.reason == "other"
    assert folded(chunk({"content": "Hi"}, ""), DONE).stop.reason == "end"


@rows(
    "frames",
    [
        (),
        (ROLE,),
        (ROLE, chunk({"content": "Hi"})),
        (ROLE, chunk({"content": "Hi"}, "")),
        (DONE,),
        (b": ping\n\n",),
    ],
)
def test_an_end_without_either_is_a_failure(frames):
    """R-DC-07, PAINS A6"""
    assert failure(*frames).code == "upstream_error"


def test_a_cut_stream_never_ends_well():
    """The truncation law"""
    data = ROLE + chunk({"content": "Hi"}) + chunk(call(0, "a", "f", "{}")) + chunk({}, "tool_calls") + DONE
    whole = data.index(b'"tool_calls"}]}') + len(b'"tool_calls"}]}')
    for at in range(whole):
        reader = DIALECT.stream_reader(CONTEXT)
        events = list(check([*reader.read(data[:at]), *reader.end()]))
        assert isinstance(events[-1], Failure), data[:at]


def test_content_after_the_finish_reason_is_kept():
    assert folded(chunk({"content": "Hi"}, "stop"), chunk({"content": " you"}), DONE).content == (
        Text("Hi you"),
    )


def test_nothing_is_read_after_the_end():
    reader = DIALECT.stream_reader(CONTEXT)
    reader.read(ROLE + STOP + DONE + chunk({"content": "late"}))
    assert reader.read(chunk({"content": "later"})) == []
    assert reader.end() == []


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"error": {"message": "slow down", "type": "rate_limit_error"}}, "rate_limit"),
        ({"error": {"message": "x", "type": "server_error"}, "choices": []}, "server"),
        ({"error": "boom"}, "server"),
        (
            {
                "choices": [
                    {
                        "index": 0,
                        "delta": {},
                        "finish_reason": "error",
                        "error": {"code": 502, "message": "x"},
                    }
                ]
            },
            "server",
        ),
    ],
)
def test_an_error_in_the_stream_is_its_end(body, kind):
    events = read(ROLE, chunk({"content": "Hi"}), frame(body), DONE)
    last = events[-1]
    assert isinstance(last, Failure)
    assert last.error.kind == kind


def test_event_lines_comments_and_crlf_do_not_matter():
    """R-DC-06"""
    data = (
        b": ping\r\n\r\nevent: message\r\n"
        + chunk({"content": "Hi"}).replace(b"\n", b"\r\n")
        + STOP
        + b"data:[DONE]"
    )
    assert folded(data).content == (Text("Hi"),)


@pytest.mark.parametrize(
    "data", [b"data: {\n\n", b"data: 5\n\n", b"data: [1]\n\n", b'data: {"choices":[{"delta":\n\n']
)
def test_a_broken_frame_is_a_failure(data):
    assert failure(ROLE, data).kind == "server"


def test_odd_but_harmless_frames_are_skipped():
    """R-DC-13"""
    frames = (b"data: null\n\n", b"data: \n\n", chunk(None), frame({"choices": [None, {"index": 0}]}))
    assert folded(ROLE, *frames, chunk({"content": "Hi"}), STOP, DONE).content == (Text("Hi"),)


def test_content_lists_are_text_and_thinking():
    """Mistral"""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    frames = (
        chunk({"content": [thinking]}),
        chunk({"content": [{"type": "text", "text": "Hi"}]}),
        STOP,
        DONE,
    )
    assert [part.text for part in folded(*frames).content if isinstance(part, Reasoning | Text)] == [
        "hm",
        "Hi",
    ]


def test_perplexity_repeats_the_whole_message_and_it_is_not_doubled():
    def both(delta, whole, finish=None):
        choice = {
            "index": 0,
            "delta": {"content": delta},
            "message": {"content": whole},
            "finish_reason": finish,
        }
        return frame({"id": "c1", "model": "m", "object": "chat.completion.done", "choices": [choice]})

    assert folded(both("Hi", "Hi"), both(" you", "Hi you"), both("", "Hi you", "stop"), DONE).content == (
        Text("Hi you"),
    )


def test_further_choices_are_answers_of_their_own():
    """[X17]"""

    def other(text, finish=None):
        choice = {"index": 1, "delta": {"content": text}, "finish_reason": finish}
        return frame({"id": "c1", "model": "m", "choices": [choice]})

    events = read(ROLE, other("b"), chunk({"content": "a"}), other("!", "stop"), STOP, DONE)
    (second,) = fold(events).others
    assert (second.content, second.stop.reason) == ((Text("b!"),), "end")


def test_refusals_annotations_images_and_logprobs():
    note = {"type": "url_citation", "url_citation": {"url": "u", "title": "t"}}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}, "index": 0}
    tokens = {"content": [{"token": "Hi", "logprob": -0.5, "top_logprobs": []}], "refusal": None}
    choice = {"index": 0, "delta": {"content": "Hi"}, "logprobs": tokens, "finish_reason": None}
    frames = (
        frame({"id": "c1", "model": "m", "choices": [choice]}),
        chunk({"annotations": [note]}),
        chunk({"images": [image]}),
        chunk({"refusal": "No."}),
        STOP,
        DONE,
    )
    text, picture, refusal = folded(*frames).content
    assert isinstance(text, Text)
    assert text.logprobs == (TokenLogprob("Hi", -0.5),)
    assert [citation.url for citation in text.citations] == ["u"]
    assert picture == Media("image", "image/png", "iVBO")
    assert refusal == Text("No.", refusal=True)


def test_a_google_signature_on_a_streamed_call():
    """R-DA-01"""
    entry = call(0, "a", "f", "{}", extra_content={"google": {"thought_signature": "s"}})
    (part,) = calls(chunk(entry), STOP, DONE)
    assert part.signature == Signature("s", CONTEXT.origin("gemini"))


def test_unknown_fields_are_kept_and_obfuscation_is_not():
    response = folded(
        chunk({"content": "Hi", "x_delta": 1}, system_fingerprint="fp", obfuscation="zzz"),
        frame({"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "native": "end"}]}),
        DONE,
    )
    assert response.extra is not None
    assert response.extra.fields == {"system_fingerprint": "fp", "choice.native": "end", "message.x_delta": 1}


def test_a_whole_answer_instead_of_a_stream():
    body = {"id": "c1", "choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]}
    assert folded(encode(body)).content == (Text("Hi"),)
    assert failure(encode({"error": {"message": "x", "code": "invalid_api_key"}})).kind == "auth"
    assert "web page" in failure(b"<!DOCTYPE html><html>").message
    assert failure(b"{not json").kind == "server"


def test_any_cutting_gives_the_same_events():
    data = (
        ROLE
        + chunk({"content": "Zürich\u2028"})
        + chunk(call(0, "a", "f", "{}"))
        + chunk({}, "tool_calls")
        + DONE
    )
    expected = read(data)
    for pieces in every_cut(data):
        reader = DIALECT.stream_reader(CONTEXT)
        events = [event for piece in pieces for event in reader.read(piece)]
        assert events + reader.end() == expected


def test_a_tier_beside_the_usage_is_the_tier_of_the_answer():
    """[X11] Groq tells it in its last chunk, which has no choices."""
    last = frame({"id": "c1", "choices": [], "usage": {"prompt_tokens": 3}, "service_tier": "on_demand"})
    assert folded(chunk({"content": "Hi"}), STOP, last, DONE).service_tier == "on_demand"


def test_a_chunk_with_an_error_says_nothing_else():
    said = {"error": {"message": "no room"}, "id": "c1", "model": "m", "usage": {"prompt_tokens": 1},
            "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]}  # fmt: skip
    reader = DIALECT.stream_reader(CONTEXT)
    events = reader.read(b"data: " + encode(said) + b"\n\n")
    assert [type(event) for event in events] == [Failure]
    assert reader.end() == []
