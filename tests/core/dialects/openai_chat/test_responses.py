"""Whole answers: read from many servers, given to Chat clients."""

from typing import Any

import msgspec
import pytest

from tests.core.dialects.openai_chat.support import CONTEXT, DONE, answer, chunk, folded, frame, understood
from tests.tiers import rows
from wireglot_core import translate_response
from wireglot_core.dialects.context import Context, is_minted
from wireglot_core.dialects.openai_chat import DIALECT
from wireglot_core.ir.content import (
    Citation,
    Foreign,
    Media,
    Origin,
    Reasoning,
    Signature,
    Text,
    TokenLogprob,
    ToolCall,
)
from wireglot_core.ir.errors import UpstreamFault
from wireglot_core.ir.outcome import Candidate, Response, Stop, Usage

CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
TOKEN = {"token": "Hi", "logprob": -0.5, "bytes": [72, 105], "top_logprobs": []}


def shown(*content, stop="end", **more):
    return DIALECT.render_response(Response("r1", "m", content, Stop(stop), **more), CONTEXT)


def message(*content, stop="end"):
    return shown(*content, stop=stop).value["choices"][0]["message"]


@rows(
    ("text", "finish"),
    [
        ({"role": "assistant", "content": "Hi", "refusal": None, "annotations": []}, "stop"),
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, "tool_calls"),
        ({"role": "assistant", "tool_calls": [{**CALL, "index": 1, "type": None}]}, "stop"),
        ({"role": "assistant", "content": "", "tool_calls": None, "function_call": None}, ""),
        ({"role": "assistant", "content": "Hi", "reasoning": "hm", "provider_metadata": {"x": 1}}, None),
        ({"content": "Hi", "reasoning_content": "hm", "reasoning": "hm"}, "eos"),
        ({"role": "assistant", "content": "", "reasoning_content": ""}, "length"),
        ({"role": "assistant", "content": None, "refusal": "No."}, "stop"),
        ({"role": "assistant", "content": {"city": "Ulm"}}, "stop"),
        (
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "a"}, {"type": "reference", "ids": [1]}],
            },
            "stop",
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}],
            },
            "stop",
        ),
        (
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            "function_call",
        ),
        (
            {"role": "assistant", "content": None, "audio": {"id": "a", "data": "UklG", "transcript": "Hi"}},
            "stop",
        ),
        (
            {"role": "assistant", "content": None, "audio": {"id": "a", "data": "", "transcript": "Hi"}},
            "stop",
        ),
        ({"role": "assistant", "content": "Hi", "audio": {"data": "UklG", "transcript": "Hi"}}, "stop"),
        (
            {
                "role": "assistant",
                "content": "Hi",
                "images": [{"type": "image_url", "image_url": {"url": "u"}}],
            },
            "stop",
        ),
        (
            {
                "role": "assistant",
                "content": "",
                "function_call": {"name": "", "arguments": ""},
                "audio": {"id": ""},
            },
            "",
        ),
        (
            {"role": "assistant", "content": None, "tool_calls": [{"id": "", "function": {"arguments": ""}}]},
            "stop",
        ),
    ],
)
def test_an_answer_comes_back_as_it_was(text, finish):
    """R-AD-21, R-AD-22"""
    body = answer(text, finish, system_fingerprint=None, x_new={"a": 1}, service_tier="default")
    rendered = DIALECT.render_response(understood(body), CONTEXT)
    assert rendered.value == body
    assert rendered.losses == ()


def test_odd_and_missing_heads_come_back_too():
    bodies: tuple[dict[str, Any], ...] = (
        {"choices": []},
        {"choices": [{"message": {}}], "id": None, "created": "now", "object": ""},
    )
    for body in bodies:
        assert DIALECT.render_response(understood(body), CONTEXT).value == body


@rows(
    ("finish", "reason"),
    [
        ("stop", "end"),
        ("length", "length"),
        ("tool_calls", "end"),
        ("content_filter", "refused"),
        ("eos", "end"),
        ("", "end"),
        (None, "other"),
        ("brand_new", "other"),
    ],
)
def test_a_finish_reason_without_calls(finish, reason):
    """C16, C24"""
    stop = understood(answer({"role": "assistant", "content": "Hi"}, finish)).stop
    assert (stop.reason, stop.raw) == (reason, finish or "")


@rows("finish", ["stop", "tool_calls", "tool_call", "function_call", "eos", "", None])
def test_where_there_is_a_call_the_model_stopped_for_it(finish):
    """R-I-12, PAINS A13"""
    assert understood(answer({"content": None, "tool_calls": [CALL]}, finish)).stop.reason == "tool_calls"


def test_length_wins_over_calls():
    """C43"""
    assert understood(answer({"content": None, "tool_calls": [CALL]}, "length")).stop.reason == "length"


def test_text_stands_before_the_calls_and_reasoning_before_both():
    """R-Q-05, R-Q-08"""
    second = {**CALL, "id": "call_2"}
    body = answer({"content": "Hi", "reasoning_content": "hm", "tool_calls": [CALL, second]})
    assert understood(body).content == (
        Reasoning("hm"),
        Text("Hi"),
        ToolCall("call_1", "look", "{}"),
        ToolCall("call_2", "look", "{}"),
    )


def test_a_call_without_id_gets_one_that_stays():
    """R-DB-01"""
    body = answer({"content": None, "tool_calls": [{"function": {"name": "f", "arguments": None}}]})
    (call,) = understood(body).content
    assert isinstance(call, ToolCall)
    assert is_minted(call.id)
    assert understood(body) == understood(body)


def test_a_google_signature_names_gemini_and_the_account_it_came_from():
    body = answer({"tool_calls": [{**CALL, "extra_content": {"google": {"thought_signature": "s"}}}]})
    (call,) = DIALECT.parse_response(body, Context("google", "gemini-3", "key-1")).content
    assert isinstance(call, ToolCall)
    assert call.signature == Signature("s", Origin("gemini", "google", "gemini-3", "key-1"))


def test_annotations_are_citations_of_the_text():
    note = {
        "type": "url_citation",
        "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 2},
    }
    (text,) = understood(
        answer({"content": "Hi", "annotations": [note, {"type": "file", "file": {}}]})
    ).content
    assert isinstance(text, Text)
    first, second = text.citations
    assert (first.url, first.title, first.start, first.end) == ("u", "t", 0, 2)
    assert second.native == Foreign("openai-chat", "file", {"type": "file", "file": {}})


def test_logprobs_of_a_refusal_stand_apart_from_those_of_the_text():
    said = Text("No.", refusal=True, logprobs=(TokenLogprob("No.", -0.5),))
    rendered = DIALECT.render_response(Response("r", "m", (said,), Stop("end")), CONTEXT)
    reported = rendered.value["choices"][0]["logprobs"]
    assert reported["content"] is None
    assert [token["token"] for token in reported["refusal"]] == ["No."]


def test_logprobs_belong_to_the_text():
    """R-AD-12"""
    body = answer({"content": "Hi"})
    body["choices"][0]["logprobs"] = {"content": [TOKEN], "refusal": None}
    assert understood(body).content == (Text("Hi", logprobs=(TokenLogprob("Hi", -0.5),)),)
    assert DIALECT.render_response(understood(body), CONTEXT).value == body


def test_further_choices_are_further_candidates():
    body = answer({"content": "a"})
    body["choices"].append({"index": 1, "message": {"content": "b", "x": 1}, "finish_reason": "length"})
    response = understood(body)
    assert response.others[0].content == (Text("b"),)
    assert response.others[0].stop.reason == "length"
    assert DIALECT.render_response(response, CONTEXT).value == body


@rows(
    ("raw", "usage"),
    [
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 7,
                "total_tokens": 17,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
            (4, 4, 2, 2, 5),
        ),
        ({"prompt_tokens": 10, "completion_tokens": 7, "cached_tokens": 4}, (6, 4, 0, 7, None)),
        ({"prompt_tokens": 10, "completion_tokens": 7, "prompt_cache_hit_tokens": 4}, (6, 4, 0, 7, None)),
        (  # xAI: reasoning beside the completion
            {
                "prompt_tokens": 10,
                "completion_tokens": 7,
                "total_tokens": 37,
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            (10, 0, 0, 7, 20),
        ),
        (  # [X10] more reasoning than completion cannot be within it, whatever the total says
            {
                "prompt_tokens": 21,
                "completion_tokens": 107,
                "total_tokens": 128,
                "completion_tokens_details": {"reasoning_tokens": 118},
            },
            (21, 0, 0, 107, 118),
        ),
        (  # [X10] and no total at all
            {
                "prompt_tokens": 9,
                "completion_tokens": 18,
                "completion_tokens_details": {"reasoning_tokens": 137},
            },
            (9, 0, 0, 18, 137),
        ),
        ({"prompt_tokens": -1, "completion_tokens": 10**12, "total_tokens": None}, (0, 0, 0, 0, None)),
    ],
)
def test_usage_is_one_account_without_overlap(raw, usage):
    """R-AD-14 to R-AD-18, R-DC-05, PAINS A12"""
    response = understood(answer({"content": "Hi"}, usage=raw))
    read = response.usage
    assert read is not None
    assert (read.input, read.cache_read, read.cache_write, read.output, read.reasoning) == usage
    assert DIALECT.render_response(response, CONTEXT).value["usage"] == raw


def test_usage_of_others_is_reported_in_totals():
    """R-AD-16"""
    usage = Usage(input=3, cache_read=4, cache_write=2, cache_write_long=1, output=5, reasoning=6)
    rendered = shown(Text("Hi"), usage=usage)
    assert rendered.value["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 11,
        "total_tokens": 21,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 6},
    }
    assert [loss.feature for loss in rendered.losses] == ["usage.detail"]


@rows("body", [{}, {"choices": None}, {"choices": {}}, {"choices": ["x"]}, {"error": {"message": "x"}}])
def test_what_is_no_answer_is_the_upstreams_fault(body):
    with pytest.raises(UpstreamFault):
        understood(body)


# Out


def test_the_envelope_is_chats():
    """R-AD-01 to R-AD-06, R-AD-13"""
    body = shown(Text("Hi")).value
    assert (body["id"], body["object"], body["created"], body["model"]) == (
        "chatcmpl-r1",
        "chat.completion",
        1700000000,
        "m",
    )
    assert body["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hi", "refusal": None, "annotations": []},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]


def test_an_answer_without_id_gets_one():
    body = DIALECT.render_response(Response("", "m", (Text("Hi"),), Stop("end")), CONTEXT).value
    assert body["id"].startswith("chatcmpl-")


@rows(
    ("reason", "finish", "features"),
    [
        ("end", "stop", []),
        ("length", "length", []),
        ("refused", "content_filter", []),
        ("stop_sequence", "stop", ["stop_reason"]),
        ("context_full", "length", ["stop_reason"]),
        ("paused", "length", ["stop_reason"]),
        ("other", "stop", ["stop_reason"]),
    ],
)
def test_every_reason_has_a_legal_name(reason, finish, features):
    """R-AD-13, C24, Part 3"""
    rendered = shown(Text("Hi"), stop=reason)
    assert rendered.value["choices"][0]["finish_reason"] == finish
    assert [loss.feature for loss in rendered.losses] == features


def test_a_malformed_call_is_an_error():
    """Part 3"""
    assert shown(stop="malformed_call").value["error"]["type"] == "server_error"


def test_a_call_alone_has_null_content():
    """R-AD-07"""
    reported = message(ToolCall("c1", "look", ""), stop="tool_calls")
    assert reported["content"] is None
    assert reported["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    ]


def test_invalid_arguments_are_forwarded_as_the_model_wrote_them():
    """C10"""
    reported = message(ToolCall("c1", "look", '{"a":'), stop="tool_calls")
    assert reported["tool_calls"][0]["function"]["arguments"] == '{"a":'


def test_a_refusal_has_its_own_field():
    """R-AD-10"""
    reported = message(Text("No.", refusal=True), stop="refused")
    assert (reported["content"], reported["refusal"]) == (None, "No.")


def test_citations_count_from_the_start_of_the_answer():
    rendered = shown(Text("one "), Text("two", citations=(Citation("u", "t", start=0, end=3),)))
    reported = rendered.value["choices"][0]["message"]
    assert reported["content"] == "one two"
    assert reported["annotations"][0]["url_citation"] == {
        "url": "u",
        "title": "t",
        "start_index": 4,
        "end_index": 7,
    }
    assert [loss.path for loss in rendered.losses] == ["$.content[1]"]


def test_a_citation_without_offsets_covers_its_text():
    """The SDK's types demand both."""
    rendered = shown(Text("one "), Text("two", citations=(Citation("u", "t"), Citation("u", "t", start=1))))
    reported = rendered.value["choices"][0]["message"]["annotations"]
    offsets = [(note["url_citation"]["start_index"], note["url_citation"]["end_index"]) for note in reported]
    assert offsets == [(4, 7), (5, 7)]
    assert [loss.action for loss in rendered.losses if loss.feature == "citations"] == ["invented"] * 2


def test_what_a_citation_quotes_reaches_clients_that_are_reported_quotes():
    """OpenRouter quotes the page in `content`."""
    nested = {"url": "https://e.org", "title": "t", "content": "So it is.", "start_index": 0, "end_index": 2}
    note = {"type": "url_citation", "url_citation": nested}
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hi", "annotations": [note]}}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    (text,) = DIALECT.parse_response(body, CONTEXT).content
    assert isinstance(text, Text)
    assert (text.citations[0].quote, text.citations[0].start) == ("So it is.", 0)
    assert DIALECT.render_response(DIALECT.parse_response(body, CONTEXT), CONTEXT).value == body


def test_a_citation_of_no_address_is_declared_and_not_reported():
    rendered = shown(Text("two", citations=(Citation("", "t", start=0, end=3),)))
    assert rendered.value["choices"][0]["message"]["annotations"] == []
    assert [(loss.feature, loss.action) for loss in rendered.losses] == [("citations", "dropped")]


def test_foreign_signatures_travel_sealed_and_come_back():
    """R-DA-04"""
    thought = Reasoning("hm", Signature("s1", Origin("anthropic", "anthropic", "claude")))
    call = ToolCall("c1", "look", "{}", signature=Signature("s2", Origin("openai-responses"), "rs_1"))
    rendered = shown(thought, Text("Hi"), call, stop="tool_calls")
    assert rendered.losses == ()
    assert understood(rendered.value).content == (thought, Text("Hi"), call)


def test_a_gemini_signature_stands_in_googles_field():
    call = ToolCall("c1", "look", "{}", signature=Signature("s", Origin("gemini")))
    reported = message(call, stop="tool_calls")
    assert reported["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s"}}


def test_generated_images_are_shown_and_other_media_declared():
    rendered = shown(Text("see"), Media("image", "image/png", "iVBO"), Media("video", "video/mp4", "AAAA"))
    (image,) = rendered.value["choices"][0]["message"]["images"]
    assert image["image_url"]["url"] == "data:image/png;base64,iVBO"
    assert [loss.feature for loss in rendered.losses] == ["video"]


def test_candidates_are_choices():
    rendered = shown(Text("a"), others=(Candidate((Text("b"),), Stop("length")),))
    assert [choice["message"]["content"] for choice in rendered.value["choices"]] == ["a", "b"]
    assert rendered.losses == ()


def test_usage_inside_the_choice_is_counted_and_stays_there():
    """Kimi's older deployments; R-DC-05"""
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "kimi-k2",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "hi"},
                "finish_reason": "stop",
                "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
            }
        ],
    }
    response = DIALECT.parse_response(body, Context())
    assert response.usage is not None
    assert (response.usage.total_input, response.usage.total_output) == (7, 2)
    assert DIALECT.render_response(response, Context()).value == body


def test_stream_options_go_and_come_with_the_stream():
    asked = {
        "model": "m",
        "messages": [{"role": "user", "content": "?"}],
        "stream": True,
        "stream_options": {"include_usage": False},
    }
    request = DIALECT.parse_request(asked, Context())
    assert DIALECT.render_request(request, Context()).value == asked
    whole = msgspec.structs.replace(request, stream=False)
    assert "stream_options" not in DIALECT.render_request(whole, Context()).value
    plain = DIALECT.parse_request({"model": "m", "messages": [{"role": "user", "content": "?"}]}, Context())
    streamed = msgspec.structs.replace(plain, stream=True)
    assert DIALECT.render_request(streamed, Context()).value["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("target", ["anthropic", "openai-responses", "gemini"])
def test_the_id_of_a_spoken_answer_without_its_sound_is_reported_as_lost(target):
    """[X11] The transcript is the text; what a later turn would name the recording by has no place."""
    audio = {"id": "audio_1", "data": "", "transcript": "Hi there!", "expires_at": 1}
    body = answer({"role": "assistant", "content": None, "audio": audio})
    losses = translate_response(body, source="openai-chat", target=target).losses
    assert [loss.detail for loss in losses if "id:" in loss.detail] == ["id: openai-chat only"]


SCORED = [{"token": "Yes", "logprob": -0.5, "bytes": [89, 101, 115], "top_logprobs": []}]


@pytest.mark.parametrize(
    ("message", "logprobs"),
    [
        (
            {"content": [{"type": "text", "text": "Y"}, {"type": "text", "text": "es"}], "refusal": "No"},
            SCORED,
        ),
        ({"content": "Yes", "refusal": "No"}, [{"odd": 1}]),
    ],
    ids=["of two texts", "in another form"],
)
def test_log_probabilities_are_kept_whole_where_half_of_them_has_no_place(message, logprobs):
    """Those of the refusal have one; those of the content went unsaid."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", **message},
        "logprobs": {"content": logprobs, "refusal": SCORED},
        "finish_reason": "stop",
    }
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    again = translate_response(body, source="openai-chat", target="openai-chat")
    assert again.value["choices"][0]["logprobs"] == choice["logprobs"]
    reported = translate_response(body, source="openai-chat", target="gemini").losses
    assert any("logprobs" in f"{loss.path} {loss.detail}" for loss in reported)


def test_a_tier_by_its_neutral_name_is_no_loss():
    choice = {"index": 0, "message": {"role": "assistant", "content": "A"}, "finish_reason": "stop"}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    body = {**head, "choices": [choice], "service_tier": "standard"}
    assert DIALECT.render_response(DIALECT.parse_response(body, CONTEXT), CONTEXT).value == body
    told = translate_response(body, source="openai-chat", target="anthropic")
    assert told.value["usage"]["service_tier"] == "standard"
    assert [loss for loss in told.losses if "service_tier" in f"{loss.path} {loss.detail}"] == []


@rows("field", ["stop_reason", "matched_stop"])  # vLLM, SGLang
@rows(
    ("matched", "finish", "stop"),
    [
        ("</tool>", "stop", Stop("stop_sequence", "stop", "openai-chat", "</tool>")),
        (128009, "stop", Stop("end", "stop", "openai-chat")),
        (None, "stop", Stop("end", "stop", "openai-chat")),
        ("eos", "stop", Stop("end", "stop", "openai-chat")),
        ("</tool>", "length", Stop("length", "length", "openai-chat")),
    ],
)
def test_a_server_may_report_the_stop_sequence_that_matched(field, matched, finish, stop):
    body = answer({"role": "assistant", "content": "Hi"}, finish)
    body["choices"][0][field] = matched
    assert understood(body).stop == stop
    last = {"index": 0, "delta": {}, "finish_reason": finish, field: matched}
    frames = (chunk({"content": "Hi"}), frame({"id": "c", "model": "m", "choices": [last]}), DONE)
    assert folded(*frames).stop == stop


def test_what_vllm_has_written_to_its_cache_is_counted():
    details = {"cached_tokens": 80, "created_cache_tokens": 10}
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": details}
    read = understood(answer({"role": "assistant", "content": "Hi"}, usage=usage)).usage
    assert read is not None
    assert (read.input, read.cache_read, read.cache_write) == (10, 80, 10)
