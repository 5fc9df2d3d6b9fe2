"""The response object: every key, echoes of the request, items, stop reasons, usage."""

from typing import Any

from msgspec.structs import replace

from tests.core.dialects.openai_responses.wire import CONTEXT, answer_comes_back, parse
from tests.tiers import rows
from wireglot_core.dialects.openai_responses import DIALECT
from wireglot_core.dialects.openai_responses.outcome import parse_usage
from wireglot_core.ir.content import Citation, Extra, Foreign, Media, Reasoning, Text, TokenLogprob, ToolCall
from wireglot_core.ir.loss import Loss, losses_of_extra
from wireglot_core.ir.outcome import Candidate, Response, Stop, Usage
from wireglot_core.translate import translate_request, translate_response

REQUIRED = {
    "id", "object", "created_at", "status", "completed_at", "error", "incomplete_details", "instructions",
    "max_output_tokens", "model", "output", "parallel_tool_calls", "previous_response_id", "reasoning", "store",
    "temperature", "text", "tool_choice", "tools", "top_p", "truncation", "usage", "user", "metadata",
}  # fmt: skip

REAL = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1757604033,
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "model": "gpt-5-2025-08-07",
    "output": [],
    "metadata": {},
    "service_tier": "default",
    "tools": [{"type": "function", "name": "f"}],
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": 150,
    },
    "content_filters": [{"blocked": False}],
}


def rendered(response, request=None):
    return DIALECT.render_response(response, CONTEXT, request).value


def losses(response):
    return [
        (loss.path, loss.feature, loss.action) for loss in DIALECT.render_response(response, CONTEXT).losses
    ]


def answer(*content, stop="end", **more):
    return Response("msg_1", "m", content, Stop(stop), **more)


def test_every_client_finds_every_key():
    """R-AA-01 to R-AA-07, R-AA-15 to R-AA-21"""
    body = rendered(answer(Text("hi")))
    assert body.keys() >= REQUIRED
    assert body["id"] == "resp_msg_1"
    assert (body["object"], body["status"], body["error"]) == ("response", "completed", None)
    assert (body["temperature"], body["top_p"], body["truncation"]) == (1.0, 1.0, "disabled")
    assert body["created_at"] == body["completed_at"] == CONTEXT.now
    assert body["store"] is False


def test_the_request_is_echoed():
    """C24, R-AA-08, R-AA-09, R-AA-12 to R-AA-21, R-AA-23, R-AA-24, C42"""
    asked = {
        "model": "m",
        "input": "hi",
        "instructions": "Be brief.",
        "max_output_tokens": 9,
        "parallel_tool_calls": False,
        "previous_response_id": "resp_0",
        "reasoning": {"effort": "low", "summary": "detailed"},
        "store": True,
        "temperature": 0.3,
        "top_p": 0.9,
        "text": {"format": {"type": "json_object"}, "verbosity": "low"},
        "tools": [
            {
                "type": "function",
                "name": "f",
                "description": None,
                "parameters": {"type": "object"},
                "strict": True,
            }
        ],
        "tool_choice": {"type": "function", "name": "f"},
        "truncation": "auto",
        "user": "u",
        "metadata": {"a": "b"},
        "prompt_cache_key": "k",
    }
    body = rendered(answer(Text("x")), parse(asked))
    changed = ("model", "input", "store")
    assert {key: body[key] for key in asked if key not in changed} == {
        key: value for key, value in asked.items() if key not in changed
    }
    assert body["store"] is False, "nobody has stored it"


@rows(
    "item",
    [
        {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": []},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "phase": None,
            "x_new": {"a": 1},
            "content": [
                {"type": "output_text", "text": "a", "annotations": [], "y": 1},
                {"type": "refusal", "refusal": "no"},
                {"type": "output_text", "text": "b"},
            ],
        },
        {"type": "message", "id": "m", "role": "user", "content": [{"type": "input_text", "text": "kept"}]},
        {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "some_future_type", "x": 1}]},
        {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "message", "text": "odd"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None, "content": None},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
            "encrypted_content": "gAAA",
            "status": "completed",
        },
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "raw"}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "short"}],
            "content": [{"type": "reasoning_text", "text": "long"}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{", "status": "incomplete"},
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}", "namespace": "n", "caller": {}},
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "f", "input": "x", "status": "completed"},
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aGk=", "output_format": "webp"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}},
        {"type": "some_future_type", "id": "x"},
    ],
)  # fmt: skip
def test_an_answer_comes_back_as_it_was(item):
    answer_comes_back({**REAL, "output": [item]})


def test_an_unknown_part_beside_a_text_stays_inside_a_message():
    text, odd = {"type": "output_text", "text": "a", "annotations": []}, {"type": "message", "text": "odd"}
    message = {"type": "message", "id": "m", "role": "assistant", "content": [text, odd]}
    read = DIALECT.parse_response({**REAL, "output": [message]}, CONTEXT)
    said, reported = DIALECT.render_response(read, CONTEXT, None).value["output"]
    assert said["content"] == [text]
    assert reported == {"type": "message", "role": "assistant", "content": [odd]}


@rows(
    "change",
    [
        {"id": "gen-123", "created_at": 1757604033.5},
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        {"status": "incomplete", "incomplete_details": None},
        {"status": "complete"},
        {"status": "queued", "usage": None},
        {"service_tier": None},
        {"usage": {"input_tokens": 1, "output_tokens": 2, "cost_in_usd_ticks": 5}},
        {"output_text": "", "x_later": [1]},
    ],
)
def test_odd_answers_come_back_as_they_were(change):
    answer_comes_back({**REAL, **change})


def test_a_bare_answer_comes_back_bare():
    answer_comes_back(
        {
            "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
            ]
        }
    )
    answer_comes_back({})


def test_echoes_are_no_information():
    response = DIALECT.parse_response(REAL, CONTEXT)
    assert response.extra is not None
    assert set(response.extra.fields) == {"content_filters"}


def test_usage_numbers_do_not_overlap():
    """C26"""
    usage = parse_usage(REAL["usage"])
    assert usage is not None
    assert replace(usage, raw=None) == Usage(input=30, cache_read=60, cache_write=10, output=30, reasoning=20)
    assert (usage.total_input, usage.total_output) == (100, 50)


def test_usage_has_every_number():
    usage = Usage(input=1, cache_read=2, cache_write=3, cache_write_long=4, output=5)
    assert rendered(answer(usage=usage))["usage"] == {
        "input_tokens": 10,
        "input_tokens_details": {
            "cached_tokens": 2,
            "cache_write_tokens": 7,
            "cache_write_tokens_details": {"ttl_30m_tokens": 3, "ttl_12h_tokens": 4},
        },
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    assert rendered(answer())["usage"]["total_tokens"] == 0


@rows(
    ("stop", "status", "details"),
    [
        ("end", "completed", None),
        ("stop_sequence", "completed", None),
        ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("context_full", "incomplete", {"reason": "max_output_tokens"}),
        ("refused", "incomplete", {"reason": "content_filter"}),
        ("paused", "incomplete", {"reason": "max_output_tokens"}),
        ("other", "completed", None),
        ("malformed_call", "failed", None),
    ],
)
def test_stop_reasons_become_statuses(stop, status, details):
    """Part 3, C1, C24"""
    body = rendered(answer(Text("x"), stop=stop))
    assert (body["status"], body["incomplete_details"]) == (status, details)
    assert (body["error"] is not None) == (status == "failed")


@rows(
    ("change", "reason"),
    [
        ({}, "end"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "refused"),
        ({"status": "incomplete", "incomplete_details": {"reason": "steered"}}, "other"),
        ({"output": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]}, "tool_calls"),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
             "output": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{"}]},
            "length",
        ),
        ({"output": [{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}]}, "refused"),
        ({"status": "cancelled"}, "other"),
    ],
)  # fmt: skip
def test_statuses_become_stop_reasons(change, reason):
    """Part 3, C43, R-I-12"""
    assert DIALECT.parse_response({**REAL, **change}, CONTEXT).stop.reason == reason


def test_a_call_the_model_was_cut_off_in_is_incomplete():
    """C43"""
    body = rendered(answer(Text("x"), ToolCall("c", "f", '{"a'), stop="length"))
    assert [item["status"] for item in body["output"]] == ["completed", "incomplete"]


def test_items_of_each_kind_have_ids_with_their_prefix():
    body = rendered(
        answer(Reasoning("hm"), Text("a"), ToolCall("c1", "f", "{}"), ToolCall("c2", "g", "x", "custom"),
               Media("image", "image/png", "aGk="), stop="tool_calls")
    )  # fmt: skip
    assert [(item["type"], item["id"].partition("_")[0]) for item in body["output"]] == [
        ("reasoning", "rs"),
        ("message", "msg"),
        ("function_call", "fc"),
        ("custom_tool_call", "ctc"),
        ("image_generation_call", "ig"),
    ]
    assert body["output"][0]["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert body == rendered(
        answer(Reasoning("hm"), Text("a"), ToolCall("c1", "f", "{}"), ToolCall("c2", "g", "x", "custom"),
               Media("image", "image/png", "aGk="), stop="tool_calls")
    )  # fmt: skip


def test_neighbouring_texts_share_one_message():
    body = rendered(answer(Text("a"), Text("b"), ToolCall("c", "f", ""), Text("d"), stop="tool_calls"))
    assert [len(item.get("content", ())) for item in body["output"]] == [2, 0, 1]
    assert body["output"][1]["arguments"] == "{}"


def test_citations_and_log_probabilities():
    token = TokenLogprob("é", -0.5, (("é", -0.5),))
    text = Text("é", citations=(Citation("https://e.com", "E", start=0, end=1),), logprobs=(token,))
    part = rendered(answer(text))["output"][0]["content"][0]
    assert part["annotations"] == [
        {"type": "url_citation", "start_index": 0, "end_index": 1, "url": "https://e.com", "title": "E"}
    ]
    assert part["logprobs"][0]["bytes"] == [195, 169]
    assert losses(answer(text)) == []


def test_citations_of_another_kind_come_back_or_are_declared():
    note = {"type": "file_citation", "file_id": "f", "filename": "n", "index": 3}
    item = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "a", "annotations": [note]}],
    }
    answer_comes_back({**REAL, "output": [item]})
    pages = Citation(native=Foreign("anthropic", "page_location", {}))
    assert losses(answer(Text("a", citations=(pages,)))) == [
        ("$.content[0].citations[0]", "citations", "dropped")
    ]


def test_what_this_wire_cannot_say_is_declared():
    response = answer(
        Text("x"),
        Foreign("anthropic", "server_tool_use", {}),
        Media("audio", "audio/wav", "aGk="),
        stop="paused",
        usage=Usage(tool_prompt=3),
        service_tier="batch",
        others=(Candidate((Text("y"),), Stop("end")),),
        extra=Extra("gemini", {"modelStatus": {"x": 1}}),
    )
    assert {feature for _, feature, _ in losses(response)} == {
        "foreign_part", "audio", "stop_reason", "usage.detail", "service_tier", "candidates", "response.extra",
    }  # fmt: skip


def test_unknown_fields_of_a_message_item_are_declared_under_a_readable_path():
    item = {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "a", "annotations": []}],
        "x_new": {"a": 1},
    }
    response = DIALECT.parse_response({"id": "resp_1", "output": [item]}, CONTEXT)
    (text,) = response.content
    assert isinstance(text, Text)
    assert text.extra is not None
    assert text.extra.fields == {"item.x_new": {"a": 1}}
    assert DIALECT.render_response(response, CONTEXT).value["output"] == [item]


def test_counts_that_contradict_each_other_are_declared_elsewhere_and_come_back():
    """[X10] Reasoning above the output is no contradiction: it was counted beside it, and is added."""
    usage = {
        "input_tokens": 18,
        "input_tokens_details": {"cached_tokens": 20},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 8},
        "total_tokens": 23,
    }
    body = {"id": "resp_1", "model": "m", "object": "response", "status": "completed", "usage": usage}
    response = DIALECT.parse_response(body, CONTEXT)
    assert response.usage is not None
    assert (response.usage.cache_read, response.usage.output, response.usage.reasoning) == (18, 5, 8)
    out: list[Loss] = []
    losses_of_extra(response.extra, "gemini", "$", out, "response.extra")
    assert [(loss.path, loss.feature) for loss in out] == [
        ("$.usage.input_tokens_details.cached_tokens", "usage.detail"),
    ]
    again = DIALECT.render_response(response, CONTEXT).value
    assert again["usage"] == usage
    assert not any(key.startswith("usage.") for key in again)


def test_a_tool_without_a_type_is_reported_back_as_it_was():
    tool = {"name": "freely"}
    request = DIALECT.parse_request({"model": "m", "input": "Hi.", "tools": [tool]}, CONTEXT)
    answer = Response("resp_1", "m", (Text("Hi."),), Stop("end"))
    assert DIALECT.render_response(answer, CONTEXT, request).value["tools"] == [tool]


def test_stop_sequences_end_a_whole_answer_although_the_upstream_takes_none() -> None:
    asked: dict[str, Any] = {
        "model": "m",
        "max_tokens": 9,
        "stream": False,
        "stop_sequences": ["</block>"],
        "messages": [{"role": "user", "content": "hi"}],
    }
    sent = translate_request(asked, source="anthropic", target="openai-responses")
    losses = {loss.feature: loss.action for loss in sent.losses}
    assert losses["stop_sequences"] == "emulated"
    streamed = translate_request({**asked, "stream": True}, source="anthropic", target="openai-responses")
    assert [loss.action for loss in streamed.losses if loss.feature == "stop_sequences"] == ["emulated"]
    text = {"type": "output_text", "text": "<block>no</block> since", "annotations": []}
    item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [text]}
    body = {"id": "r1", "object": "response", "status": "completed", "model": "m", "output": [item]}
    reported = translate_response(body, source="openai-responses", target="anthropic", request=asked).value
    assert [block["text"] for block in reported["content"]] == ["<block>no"]
    assert (reported["stop_reason"], reported["stop_sequence"]) == ("stop_sequence", "</block>")
