"""Whole messages and their account, both ways (groups B, I; Part 3; mapping 10 and 11)."""

from typing import Any

import msgspec
import pytest

from tests.core.dialects.anthropic.support import CONTEXT, features
from tests.tiers import rows
from wireglot_core.dialects.anthropic import DIALECT
from wireglot_core.dialects.anthropic.outcome import parse_usage, render_usage
from wireglot_core.dialects.context import Context
from wireglot_core.ir.content import Citation, Extra, Foreign, Media, Text, ToolCall
from wireglot_core.ir.errors import UpstreamFault
from wireglot_core.ir.outcome import Candidate, Response, Stop, StopReason, Usage
from wireglot_core.ir.request import Request

USAGE = {"input_tokens": 5, "output_tokens": 7}


def message(**changes: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "hello"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": USAGE,
        **changes,
    }


def render(response: Response, context: Context = CONTEXT, request: Request | None = None):
    rendered = DIALECT.render_response(response, context, request)
    return rendered.value, features(rendered.losses)


@rows(
    "changes",
    [
        {},
        {"content": []},
        {"content": None},
        {"content": [{"type": "text", "text": ""}]},
        {"usage": None, "id": "chatcmpl-6a5e"},
        {"stop_reason": None},
        {"stop_reason": "compaction"},
        {"stop_reason": "stop_sequence", "stop_sequence": "END"},
        {"stop_details": None, "container": {"id": "c"}, "context_management": {"applied_edits": []}},
        {
            "stop_reason": "refusal",
            "stop_details": {"type": "refusal", "category": "cyber", "explanation": "no"},
        },
        {
            "usage": {
                **USAGE,
                "service_tier": "standard",
                "inference_geo": "not_available",
                "iterations": [{"a": 1}],
            }
        },
        {"usage": {**USAGE, "cache_creation": {"ephemeral_5m_input_tokens": 0, "x": 1}, "prompt_tokens": 9}},
        {"content": [], "cost": "0", "base_resp": {}},
        {"content": [{"type": "thinking", "thinking": "hm", "signature": ""}]},
        {
            "content": [
                {"type": "tool_use", "id": "t", "name": "f", "input": {}, "caller": {"type": "direct"}}
            ]
        },
        {"content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}]},
        {"content": [{"type": "compaction", "content": "so far"}, {"type": "brand_new", "x": [None]}]},
    ],
)
def test_an_answer_comes_back_as_it_was(changes):
    body = message(**changes)
    assert render(DIALECT.parse_response(body, CONTEXT)) == (body, [])


def test_missing_fields_stay_missing():
    body = {"content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn"}
    assert render(DIALECT.parse_response(body, CONTEXT)) == (body, [])


@rows(
    "body",
    [
        {"input_tokens": 5},
        {"type": "error", "error": {}},
        {"type": "error", "error": {}, "content": [], "stop_reason": None},
        {"content": 5},
        {"content": [1]},
    ],
)
def test_what_is_no_message_is_the_upstreams_fault(body):
    with pytest.raises(UpstreamFault):
        DIALECT.parse_response(body, CONTEXT)


@rows(
    ("raw", "reason"),
    [
        ("end_turn", "end"),
        ("max_tokens", "length"),
        ("stop_sequence", "stop_sequence"),
        ("tool_use", "tool_calls"),
        ("pause_turn", "paused"),
        ("refusal", "refused"),
        ("model_context_window_exceeded", "context_full"),
    ],
)
def test_stop_reasons_have_one_word_on_each_side(raw, reason: StopReason):
    """Part 3, R-I-12"""
    stop = DIALECT.parse_response(message(stop_reason=raw), CONTEXT).stop
    assert (stop.reason, stop.raw) == (reason, raw)
    body, losses = render(Response("i", "m", (), Stop(reason, "OTHER", "gemini")))
    assert (body["stop_reason"], losses) == (raw, [])


def test_a_compaction_that_ends_the_turn_is_a_pause():
    """The client sends the summary back, and the answer follows."""
    stop = DIALECT.parse_response(message(stop_reason="compaction"), CONTEXT).stop
    assert (stop.reason, stop.raw) == ("paused", "compaction")


def test_an_unknown_reason_is_kept_and_reported_as_a_legal_one():
    """C16, R-I-06"""
    assert DIALECT.parse_response(message(stop_reason="later"), CONTEXT).stop == Stop(
        "other", "later", "anthropic"
    )
    body, losses = render(Response("i", "m", (), Stop("other", "LANGUAGE", "gemini")))
    assert body["stop_reason"] == "end_turn"
    assert losses == [("$.stop.reason", "stop_reason", "approximated")]


def test_calls_make_an_end_a_call_for_tools_but_not_a_cut():
    """R-I-03, C2, C43, PAINS A13"""
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    for raw, reason in (
        ("end_turn", "tool_calls"),
        (None, "tool_calls"),
        ("max_tokens", "length"),
        ("refusal", "refused"),
    ):
        assert DIALECT.parse_response(message(content=[call], stop_reason=raw), CONTEXT).stop.reason == reason


def test_a_malformed_call_is_an_error():
    body, _ = render(Response("i", "m", (), Stop("malformed_call", "MALFORMED_FUNCTION_CALL", "gemini")))
    assert body["type"] == "error"
    assert body["error"]["type"] == "api_error"


@rows(
    ("raw", "usage"),
    [
        (USAGE, Usage(input=5, output=7)),
        (
            {
                "input_tokens": 1,
                "cache_read_input_tokens": 2,
                "cache_creation_input_tokens": 3,
                "output_tokens": 4,
            },
            Usage(input=1, cache_read=2, cache_write=3, output=4),
        ),
        (
            {
                "cache_creation_input_tokens": 30,
                "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
                "output_tokens": 9,
                "output_tokens_details": {"thinking_tokens": 4},
            },
            Usage(cache_write=10, cache_write_long=20, output=5, reasoning=4),
        ),
        (
            {"cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20}},
            Usage(cache_write=10, cache_write_long=20),
        ),
        ({"input_tokens": None, "output_tokens": "x"}, Usage()),
    ],
)
def test_usage_never_overlaps(raw, usage):
    """mapping 11, PAINS A12"""
    found = DIALECT.parse_response(message(usage=raw), CONTEXT).usage
    assert found is not None
    assert msgspec.structs.replace(found, raw=None) == usage


def test_an_account_of_another_dialect_adds_up():
    usage = Usage(
        input=10, cache_read=20, cache_write=30, cache_write_long=40, tool_prompt=5, output=7, reasoning=3
    )
    body, losses = render(Response("i", "m", (), Stop("end"), usage))
    assert body["usage"] == {
        "input_tokens": 15,
        "cache_creation_input_tokens": 70,
        "cache_read_input_tokens": 20,
        "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 40},
        "output_tokens": 10,
        "output_tokens_details": {"thinking_tokens": 3},
        "server_tool_use": None,
        "service_tier": None,
        "inference_geo": None,
    }
    assert losses == [("$.usage.tool_prompt", "usage.detail", "approximated")]


def test_raw_numbers_that_no_longer_hold_are_not_used():
    raw = Extra("anthropic", form={"input_tokens": 1, "output_tokens": 1, "x": 1})
    body, _ = render(Response("i", "m", (), Stop("end"), Usage(input=9, output=9, raw=raw)))
    assert body["usage"]["input_tokens"] == 9


def test_answers_of_other_dialects_are_reported_in_blocks():
    """R-G-01, R-D-02"""
    response = Response(
        "resp_1",
        "",
        (
            Text(""),
            Text("words", citations=(Citation("https://e.org", "t", start=0),)),
            ToolCall("functions.Bash:0", "Bash", '{"a": 1}'),
            ToolCall("call_1", "Bash", "{oops"),
            Media("image", "image/png", "AA=="),
            Foreign("gemini", "executableCode", {}),
        ),
        Stop("tool_calls"),
        service_tier="flex",
        others=(Candidate((), Stop("end")),),
        extra=Extra("gemini", {"modelStatus": 1}),
    )
    body, losses = render(response, Context(model="alias"))
    text, first, second = body["content"]
    assert (body["id"], body["model"], body["stop_reason"]) == ("msg_resp_1", "alias", "tool_use")
    assert text["citations"] == [
        {
            "type": "web_search_result_location",
            "cited_text": "",
            "url": "https://e.org",
            "title": "t",
            "encrypted_index": "",
        }
    ]
    assert first["id"].startswith("toolu_")
    assert first["input"] == {"a": 1}
    assert second["input"]["_raw"] == "{oops"
    assert losses == [
        ("$.content[1].citations[0]", "citations", "approximated"),
        ("$.content[2].id", "tool_call.id", "emulated"),
        ("$.content[3].arguments", "tool_call.arguments", "emulated"),
        ("$.content[4]", "image", "dropped"),
        ("$.content[5]", "foreign_part", "dropped"),
        ("$.service_tier", "service_tier", "dropped"),
        ("$.modelStatus", "response.extra", "dropped"),
        ("$.others", "candidates", "dropped"),
    ]


def test_an_illegal_call_id_is_replaced_by_the_same_one_every_time():
    """R-DB-02, PAINS A29; two answers that both call `Bash:0` stay apart."""
    one = render(Response("r1", "m", (ToolCall("Bash:0", "Bash", ""),), Stop("tool_calls")))[0]["content"][0][
        "id"
    ]
    same = render(Response("r1", "m", (ToolCall("Bash:0", "Bash", ""),), Stop("tool_calls")))[0]["content"][
        0
    ]["id"]
    other = render(Response("r2", "m", (ToolCall("Bash:0", "Bash", ""),), Stop("tool_calls")))[0]["content"][
        0
    ]["id"]
    assert one == same != other


def test_more_thinking_than_output_was_counted_beside_it() -> None:
    """[X10] A part cannot be larger than its whole: both are paid for."""
    raw = {"input_tokens": 9, "output_tokens": 18, "output_tokens_details": {"thinking_tokens": 137}}
    usage = parse_usage(raw)
    assert (usage.output, usage.reasoning, usage.total_output) == (18, 137, 155)
    assert render_usage(usage, "$.usage", []) == raw


def test_citations_of_a_text_that_is_not_there_are_reported_as_lost():
    """As in a stream: no empty text block is reported, so nothing is left that they could support."""
    answer = Response("r", "m", (Text("", citations=(Citation("https://example.org"),)),), Stop("end"))
    rendered = DIALECT.render_response(answer, Context(), None)
    assert rendered.value["content"] == []
    assert [(loss.path, loss.feature, loss.action) for loss in rendered.losses] == [
        ("$.content[0].citations", "citations", "dropped")
    ]


A, B = Citation("https://a.example"), Citation("https://b.example")


def at(citation: Citation, start: int | None, end: int | None) -> Citation:
    return msgspec.structs.replace(citation, start=start, end=end)


@rows(
    ("text", "citations", "blocks"),
    [
        ("It is high.", [at(A, 6, 10)], [("It is ", ""), ("high", "a"), (".", "")]),
        ("It is high.", [at(A, 0, 11)], [("It is high.", "a")]),
        ("It is high.", [at(A, 0, 5), at(B, 6, 10)], [("It is ", "a"), ("high", "b"), (".", "")]),
        ("It is high.", [at(B, 6, 10), at(A, 0, 5)], [("It is ", "a"), ("high", "b"), (".", "")]),
        ("It is high.", [at(A, 3, 10), at(B, 6, 11)], [("It ", ""), ("is high.", "ab")]),
        ("It is high.", [at(A, 3, 10), at(B, 3, 10)], [("It ", ""), ("is high", "ab"), (".", "")]),
        (" high ", [at(A, 1, 5)], [(" high ", "a")]),
        ("It is high.", [at(A, 3, 5), at(B, None, None)], [("It is high.", "ab")]),
        ("It is high.", [at(A, 3, 50)], [("It is high.", "a")]),
        ("It is high.", [at(A, 0, 5), at(B, 5, 6)], [("It is high.", "ab")]),
    ],
)
def test_a_text_is_cut_where_it_is_cited(
    text: str, citations: list[Citation], blocks: list[tuple[str, str]]
) -> None:
    answer = Response("r", "m", (Text(text, citations=tuple(citations)),), Stop("end"))
    content = render(answer)[0]["content"]
    cited = [[each["url"][8] for each in block.get("citations", ())] for block in content]
    assert [
        (block["text"], "".join(sources)) for block, sources in zip(content, cited, strict=True)
    ] == blocks
    assert "".join(block["text"] for block in content) == text


def test_a_text_that_is_cut_loses_no_places() -> None:
    answer = Response("r", "m", (Text("It is high.", citations=(at(A, 6, 10),)),), Stop("end"))
    assert render(answer)[1] == []
