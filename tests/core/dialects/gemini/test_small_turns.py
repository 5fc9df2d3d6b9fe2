"""What one word, one number or one order in Gemini's codec decides."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.core.dialects.gemini.requests import CONTEXT, features, parse, render
from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.gemini import DIALECT
from wireglot_core.dialects.gemini.assist import ASSIST
from wireglot_core.dialects.gemini.citations import Span, grounding_metadata
from wireglot_core.dialects.gemini.code_assist import DIALECT as CODE_ASSIST
from wireglot_core.dialects.gemini.code_assist import find
from wireglot_core.dialects.gemini.errors import parse_error, render_stream_error
from wireglot_core.dialects.gemini.outcome import check_usage
from wireglot_core.dialects.gemini.simple import DIALECT as SIMPLE
from wireglot_core.dialects.gemini.tap import GeminiTap, glance
from wireglot_core.dialects.google_shared import ByteOffsets
from wireglot_core.dialects.listed_model import ListedModel
from wireglot_core.ir.content import (
    Citation,
    Extra,
    Foreign,
    Media,
    Message,
    Origin,
    Reasoning,
    Signature,
    Text,
    TokenLogprob,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.request import OutputFormat, Request, Sampling, Thinking
from wireglot_core.ir.stream import Delta, Finish, PartEnd, PartStart, Start, fold, unfold

SIGNED = Signature("s", Origin("anthropic"))


# Errors


@rows(
    ("delay", "seconds"),
    [
        ({}, 0.0),
        ({"seconds": 7}, 7.0),
        ({"seconds": "8"}, 8.0),
        ({"seconds": 1.5}, 1.5),
        ({"seconds": []}, None),
        ("2.5s", 2.5),
        ("3", 3.0),
        ("soon", None),
        (7, None),
    ],
)
def test_a_delay_is_read_in_any_of_its_shapes(delay, seconds):
    error = parse_error({"error": {"code": 429, "message": "m", "details": [{"retryDelay": delay}]}})
    assert error is not None
    assert error.retry_after == seconds


@pytest.mark.parametrize(("seconds", "reported"), [(0.0, "0s"), (0.5, "0.5s"), (-1.0, None), (None, None)])
def test_a_delay_is_reported_unless_there_is_none(seconds, reported):
    body = DIALECT.render_error(ApiError("rate_limit", "m", 429, retry_after=seconds), CONTEXT).value["error"]
    delays = [detail["retryDelay"] for detail in body.get("details", ())]
    assert delays == ([] if reported is None else [reported])


@rows(
    ("status", "name", "message", "kind"),
    [
        (429, "RESOURCE_EXHAUSTED", "Your credits are depleted.", "billing"),
        (403, "PERMISSION_DENIED", "Please enable billing.", "billing"),
        (400, "FAILED_PRECONDITION", "It requires billing to be enabled.", "billing"),
        (404, "NOT_FOUND", "There is no billing account.", "not_found"),
        (400, "INVALID_ARGUMENT", "API key not valid. Please pass one.", "auth"),
        (403, "PERMISSION_DENIED", "API key expired.", "permission"),
        (413, "INVALID_ARGUMENT", "m", "too_large"),
        (413, "", "m", "too_large"),
        (502, "UNAVAILABLE", "m", "server"),
        (503, "UNAVAILABLE", "m", "overloaded"),
        (599, "", "m", "server"),
    ],
)
def test_an_error_is_reported_by_its_status_and_its_words(status, name, message, kind):
    error = parse_error({"error": {"code": status, "message": message, "status": name}})
    assert error is not None
    assert (error.kind, error.status) == (kind, status)


@rows(("code", "status"), [(99, 418), (100, 100), (599, 599), (600, 418), ("400", 418)])
def test_a_code_in_a_body_counts_where_it_is_one(code, status):
    error = parse_error({"error": {"code": code, "message": "m"}}, 418)
    assert error is not None
    assert error.status == status


def test_an_error_without_anything_in_it_beside_an_answer_is_none():
    assert parse_error({"error": {}, "candidates": []}) is None
    assert parse_error({"error": {"message": ""}, "candidates": []}) is None
    assert parse_error({"error": {"message": "m"}, "candidates": []}) is not None


def test_an_error_of_words_is_reported_with_its_description():
    error = parse_error({"error": "no", "error_description": "at all"}, 400)
    assert error is not None
    assert error.message == "no: at all"
    for described in ("", 7):
        plain = parse_error({"error": "no", "error_description": described}, 400)
        assert plain is not None
        assert plain.message == "no"
    other = parse_error({"error": 7}, 400)
    assert other is not None
    assert other.message == "unknown error"


@rows(
    ("error", "code", "name"),
    [
        (ApiError("server", "m", 500), 500, "INTERNAL"),
        (ApiError("server", "m", 501), 501, "UNIMPLEMENTED"),
        (ApiError("server", "m", 0), 503, "UNAVAILABLE"),
        (ApiError("server", "m", 0, code="internal_error"), 500, "INTERNAL"),
        (ApiError("timeout", "m", 0), 504, "DEADLINE_EXCEEDED"),
        (ApiError("server", "m", extra=Extra("gemini", {"error": {"code": 7}})), 7, None),
        (ApiError("server", "m", extra=Extra("gemini", {"error": {"code": "7"}})), 503, "UNAVAILABLE"),
        (
            ApiError("server", "m", extra=Extra("gemini", {"x": 1, "error": {"code": 7}})),
            503,
            "UNAVAILABLE",
        ),
        (ApiError("server", "m", extra=Extra("gemini", {"error": "m"})), 503, "UNAVAILABLE"),
    ],
)
def test_the_last_chunk_of_a_failed_stream_says_whether_to_try_again(error, code, name):
    body = render_stream_error(error)
    assert next(iter(body)) == "error"
    assert (body["error"]["code"], body["error"].get("status")) == (code, name)


# Taps


def chunk(*parts: Any, finish: str = "STOP") -> bytes:
    content = {"content": {"parts": list(parts)}, "finishReason": finish}
    return json.dumps({"candidates": [content], "usageMetadata": {"promptTokenCount": 3}}).encode()


@pytest.mark.parametrize(
    ("parts", "finish", "stop"),
    [
        ([{"text": "a"}], "STOP", "end"),
        ([{"functionCall": {"name": "f"}}], "STOP", "tool_calls"),
        ([{"functionCall": {"name": "f"}}], "MAX_TOKENS", "length"),
    ],
)
def test_a_tap_and_a_glance_tell_the_end_of_prose_from_that_of_a_call(parts, finish, stop):
    tap = GeminiTap(1 << 20)
    tap.feed(b"data: " + chunk(*parts, finish=finish) + b"\n\n")
    assert (tap.stop, tap.complete, tap.ended, tap.next_event) == (stop, True, False, 0)
    reported = glance(chunk(*parts, finish=finish))
    assert reported.stop == stop
    assert reported.usage is not None
    assert reported.usage.input == 3


def test_a_call_in_an_earlier_chunk_is_remembered():
    tap = GeminiTap(1 << 20)
    tap.feed(b'data: {"candidates":[{"content":{"parts":[{"function_call":{"name":"f"}}]}}]}\n\n')
    assert (tap.stop, tap.complete) == ("", False)
    assert tap.usage is None
    tap.feed(b"data: " + chunk({"text": "a"}) + b"\n\n")
    assert tap.stop == "tool_calls"


@pytest.mark.parametrize("body", [b'{"promptFeedback":{"blockReason":"SAFETY"}}', b"{}"])
def test_a_glance_at_no_answer_finds_what_there_is(body):
    reported = glance(body)
    # The reason a prompt was blocked is no finish reason; all that counts is that it did not end well.
    assert reported.stop == ("refused" if b"SAFETY" in body else "")
    assert reported.usage is None


# Over HTTP


def test_code_assist_is_asked_by_post_and_a_few_things_by_get():
    def found(method: str, path: str) -> tuple[str, str] | None:
        match = find(method, path)
        return (match.operation, match.verb) if match is not None else None

    setting = "getCodeAssistGlobalUserSetting"
    assert found("GET", f"/v1internal:{setting}") == ("assist", setting)
    assert found("POST", f"/v1internal:{setting}") == ("assist", setting)
    assert found("GET", "/v1internal:loadCodeAssist") is None
    assert found("POST", "/v1internal:loadCodeAssist") == ("assist", "loadCodeAssist")
    assert found("POST", "/v1internal:generateContent") == ("generate", "generateContent")
    assert found("PUT", "/v1internal:loadCodeAssist") is None
    assert found("GET", "/v1internal/operations/onboarding") == ("operation", "operations/onboarding")
    assert found("POST", "/v1internal/operations/onboarding") is None
    assert found("POST", "/v2internal:loadCodeAssist") is None
    for verb, streams in (("generateContent", False), ("streamGenerateContent", True)):
        match = find("POST", f"/v1internal:{verb}")
        assert match is not None
        assert match.stream is streams


def test_quotas_are_reported_for_geminis_models_only():
    models = [ListedModel("gemini-3", "p"), ListedModel("gpt-5", "p")]
    assert ASSIST.answer("retrieveUserQuota", {}, models) == {
        "buckets": [{"modelId": "gemini-3", "tokenType": "REQUESTS", "remainingFraction": 1}]
    }
    assert ASSIST.operation("operations/onboarding") == ASSIST.answer("onboardUser", {}, ())
    assert ASSIST.operation("operations/other") is None
    assert ASSIST.answer("onboardUser", {"cloudaicompanionProject": "mine"}, ()) == {
        "name": "operations/onboarding",
        "done": True,
        "response": {"cloudaicompanionProject": {"id": "mine", "name": "mine"}},
    }


@rows(
    ("query", "ids", "after"),
    [
        ({}, 50, "m49"),
        ({"pageSize": ["0"]}, 50, "m49"),
        ({"pageSize": ["2"]}, 2, "m1"),
        ({"pageSize": ["2"], "pageToken": ["m57"]}, 2, None),
        ({"pageToken": ["m9"]}, 50, None),
        ({"pageToken": ["m8"]}, 50, "m58"),
    ],
)
def test_models_are_listed_in_pages(query, ids, after):
    models = DIALECT.surface.models
    assert models is not None
    body = models.render_list([ListedModel(f"m{number}", "p") for number in range(60)], query)
    assert (len(body["models"]), body.get("nextPageToken")) == (ids, after)


@rows(
    ("numbers", "problems"),
    [
        ({"promptTokenCount": 3, "cachedContentTokenCount": 3}, ()),
        ({"promptTokenCount": 3, "cachedContentTokenCount": 4}, ("cached_exceeds_input",)),
        ({"cachedContentTokenCount": 1}, ("cached_exceeds_input",)),
        ({"promptTokenCount": 0}, ()),
        ({"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}, ()),
        ({"prompt_token_count": 1, "total_token_count": 3}, ("total_is_not_the_sum",)),
        ({"total_token_count": 3}, ("total_is_not_the_sum",)),
        ({"prompt_token_count": 1, "candidates_token_count": 2, "totalTokenCount": 3}, ()),
        (
            {
                "promptTokenCount": 1,
                "thoughtsTokenCount": 2,
                "toolUsePromptTokenCount": 4,
                "totalTokenCount": 7,
            },
            (),
        ),
    ],
)
def test_an_account_that_does_not_add_up_is_noticed(numbers, problems):
    assert check_usage(Extra("gemini", {}, numbers)) == problems


# Sources


def test_a_text_that_is_no_unicode_can_be_cited():
    odd = "a\ud800b"
    assert Span(0, 0, 3, Citation("u")).on(ByteOffsets(odd)).end == 3
    assert Span(0, 0, 1, Citation("u", quote=odd)).on(ByteOffsets("xa"), 1).end is None
    assert Span(0, 0, 2, Citation("u")).on(ByteOffsets("aü")).end == 1
    source = Citation("u", start=2, end=3)
    (support,) = grounding_metadata([(0, odd, (source,), "$.content[0]")], [])["groundingSupports"]
    assert support["segment"] == {"startIndex": 2, "endIndex": 3}


@rows(
    ("citation", "segment", "lost"),
    [
        (Citation("u", start=0, end=3), {"startIndex": 0, "endIndex": 3}, False),
        (Citation("u", start=3, end=3), {"startIndex": 3, "endIndex": 3}, False),
        (Citation("u", start=2, end=1), {"startIndex": 2, "endIndex": 1}, True),
        (Citation("u", start=0, end=4), {"startIndex": 0, "endIndex": 3}, True),
        (Citation("u", end=2), {"startIndex": 0, "endIndex": 2}, True),
        (Citation("u", start=2), {"startIndex": 2, "endIndex": 3}, True),
        (Citation("u", quote="b", start=1, end=2), {"startIndex": 1, "endIndex": 2, "text": "b"}, False),
    ],
)
def test_a_source_is_reported_by_its_bytes(citation, segment, lost):
    losses: list[Any] = []
    body = grounding_metadata([(0, "abc", (citation,), "$.content[0]")], losses)
    assert body["groundingSupports"][0]["segment"] == segment
    assert [(loss.path, loss.feature, loss.action) for loss in losses] == (
        [("$.content[0].citations[0]", "citations", "approximated")] if lost else []
    )


def cited(*events: Any) -> list[tuple[str, str]]:
    writer = DIALECT.stream_writer(CONTEXT)
    writer.write([Start("r", "m"), *events, Finish(Stop("end"))])
    return [(loss.path, loss.feature) for loss in writer.losses]


def test_sources_of_the_last_text_are_reported_in_time_and_those_of_others_late():
    source = (Citation("u", start=0, end=1),)
    text = [PartStart(0, Text("")), Delta(0, "a"), PartEnd(0, None, source)]
    other = [PartStart(1, Text("")), Delta(1, "b"), PartEnd(1)]
    thought = [PartStart(1, Reasoning("")), Delta(1, "b"), PartEnd(1)]
    call = [PartStart(1, ToolCall("c", "f", "")), Delta(1, "{}"), PartEnd(1)]
    late = ("$.content[0].citations", "citations")
    assert cited(*text) == []
    assert late in cited(*text, *other)
    assert late in cited(*text, *thought)
    assert late in cited(*text, *call)
    signed = [PartStart(0, Text("", signature=SIGNED)), Delta(0, "a"), PartEnd(0, None, source)]
    assert late in cited(*signed)


def test_a_thought_without_words_runs_into_the_one_before_it():
    thought = [PartStart(0, Reasoning("")), Delta(0, "a"), PartEnd(0)]
    silent = [PartStart(1, Reasoning("")), PartEnd(1)]
    assert cited(*thought, *silent) == [("$.content[1]", "content.position")]
    assert cited(*silent[:0], PartStart(0, Reasoning("")), PartEnd(0)) == []


def test_a_signature_of_another_provider_ends_the_thought_it_follows():
    answer = Response("r", "m", (Text("x"), Reasoning("a", SIGNED), Text("b")), Stop("end"))
    reader = DIALECT.stream_reader(CONTEXT)
    data = DIALECT.stream_writer(CONTEXT).write(list(unfold(answer)))
    whole = fold([*reader.read(data), *reader.end()])
    assert [getattr(part, "text", "") for part in whole.content] == ["x", "a", "b"]
    assert getattr(whole.content[1], "signature", None) is not None


# Requests and answers


def test_a_request_in_an_envelope_goes_to_the_model_that_it_was_sent_on_to():
    body = {"model": "models/m", "project": "p", "request": {"contents": [{"parts": [{"text": "a"}]}]}}
    request = CODE_ASSIST.parse_request(body, CONTEXT)
    for model, sent in (("m", "models/m"), ("other", "other")):
        rendered = CODE_ASSIST.render_request(replace(request, model=model), CONTEXT).value
        assert rendered["model"] == sent
        assert "model" not in rendered["request"]


def test_what_a_result_cannot_carry_is_declared():
    content = (
        Media("image", "image/png", "AAAA", signature=SIGNED, detail="high"),
        Text("a", signature=SIGNED, citations=(Citation("u"),), logprobs=(TokenLogprob("a", -1.0),)),
        Media("document", text="b", name="n"),
        Foreign("anthropic", "x", {}),
        Media("image", file_id="f"),
    )
    call = Message("assistant", (ToolCall("c", "f", "{}"),))
    rendered = render(Request("m", (call, Message("user", (ToolResult("c", content),)))))
    answer = rendered.value["contents"][1]["parts"][0]["functionResponse"]
    assert answer["response"] == {"output": "a\nn\n\nb"}
    assert answer["parts"] == [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]
    place = "$.messages[1].content[0].content"
    assert features(rendered) == [
        (f"{place}[0].detail", "image.detail", "dropped"),
        (f"{place}[0].signature", "reasoning.signature", "dropped"),
        (f"{place}[1].citations", "citations", "dropped"),
        (f"{place}[1].logprobs", "logprobs", "dropped"),
        (f"{place}[1].signature", "reasoning.signature", "dropped"),
        (f"{place}[2]", "document", "approximated"),
        (f"{place}[3]", "foreign_part", "dropped"),
        (f"{place}[4]", "file_reference", "dropped"),
        (place, "content.position", "approximated"),
    ]


@rows(
    ("detail", "sent", "lost"),
    [
        ("", None, False),
        ("auto", None, False),
        ("low", "MEDIA_RESOLUTION_LOW", False),
        ("original", "MEDIA_RESOLUTION_ULTRA_HIGH", False),
        ("tiny", None, True),
    ],
)
def test_a_detail_is_a_resolution(detail, sent, lost):
    media = Media("image", "image/png", "AAAA", detail=detail)
    rendered = render(Request("m", (Message("user", (media,)),)))
    part = rendered.value["contents"][0]["parts"][0]
    assert part.get("mediaResolution") == ({"level": sent} if sent else None)
    assert bool(rendered.losses) is lost


def test_log_probabilities_of_a_later_text_are_reported_in_one_list():
    first, second = Text("a"), Text("b", logprobs=(TokenLogprob("b", -1.0),))
    for content, lost in (((second,), 0), ((first, second), 1), ((second, second), 1)):
        answer = DIALECT.render_response(Response("r", "m", content, Stop("end"), Usage()), CONTEXT)
        assert [loss.feature for loss in answer.losses] == ["logprobs"] * lost
        assert len(answer.value["candidates"][0]["logprobsResult"]["chosenCandidates"]) == lost + 1 - (
            content[0] is first
        )


def test_the_simple_form_declares_what_it_has_no_field_for():
    history = (
        Message("user", (Text("a"),)),
        Message("assistant", (ToolCall("c", "f", "{}"), Text("b"))),
    )
    turn = Message(
        "user",
        (
            Text("d", extra=Extra("gemini", {"x": 1}), signature=Signature("s", Origin("gemini"))),
            ToolResult("c", (Text("e"),)),
            Media("image", "image/png", "AAAA"),
            Media("image", file_id="f"),
            Foreign("gemini", "x", {"x": 1}),
            Text("f"),
        ),
        name="n",
    )
    request = Request(
        "m",
        (*history, turn),
        sampling=Sampling(
            frequency_penalty=1.0, presence_penalty=1.0, seed=1, candidates=2, logprobs=True, top_logprobs=1
        ),
        thinking=Thinking("on", "low", 7, "summary", extra=Extra("openai", {"x": 1})),
        output=OutputFormat("json"),
        verbosity="low",
        user="u",
        service_tier="flex",
        cache_key="k",
        metadata={"a": "b"},
        parallel_tools=False,
    )
    rendered = SIMPLE.render_request(request, CONTEXT)
    result = {"functionResponse": {"name": "f", "response": {"output": "e"}}}
    assert rendered.value == {"model": "m", "input": "d\n\nf", "tool_results": [result]}
    place = "$.messages[2]"
    assert features(rendered) == [
        ("$.messages[0].content[0]", "content.position", "dropped"),
        ("$.messages[1].content[0]", "content.position", "dropped"),
        ("$.messages[1].content[1]", "content.position", "dropped"),
        (f"{place}.name", "message.name", "dropped"),
        (f"{place}.content[0].x", "unknown_field", "dropped"),
        (f"{place}.content[0].signature", "reasoning.signature", "dropped"),
        (f"{place}.content[1]", "content.position", "approximated"),
        (f"{place}.content[1].call_id", "tool_call.id", "dropped"),
        (f"{place}.content[2]", "image", "dropped"),
        (f"{place}.content[3]", "file_reference", "dropped"),
        (f"{place}.content[4]", "foreign_part", "dropped"),
        ("$.messages", "content.position", "approximated"),
        ("$.sampling.frequency_penalty", "sampling.frequency_penalty", "dropped"),
        ("$.sampling.presence_penalty", "sampling.presence_penalty", "dropped"),
        ("$.sampling.seed", "sampling.seed", "dropped"),
        ("$.sampling.candidates", "candidates", "dropped"),
        ("$.sampling.logprobs", "logprobs", "dropped"),
        ("$.sampling.top_logprobs", "logprobs", "dropped"),
        ("$.thinking.x", "unknown_field", "dropped"),
        ("$.thinking.effort", "thinking.effort", "dropped"),
        ("$.thinking.budget", "thinking.budget", "dropped"),
        ("$.thinking.mode", "thinking.mode", "dropped"),
        ("$.thinking.display", "thinking.display", "dropped"),
        ("$.output", "output_format", "dropped"),
        ("$.verbosity", "verbosity", "dropped"),
        ("$.user", "user", "dropped"),
        ("$.service_tier", "service_tier", "dropped"),
        ("$.cache_key", "cache_key", "dropped"),
        ("$.metadata", "metadata", "dropped"),
        ("$.parallel_tools", "parallel_tools", "dropped"),
    ]


def test_the_simple_form_has_nothing_to_declare_of_what_is_usual():
    request = Request(
        "m",
        (Message("user", (Text("a"),)),),
        sampling=Sampling(candidates=1),
        output=OutputFormat("text"),
        parallel_tools=True,
    )
    rendered = SIMPLE.render_request(request, Context())
    assert rendered.value == {"model": "m", "input": "a"}
    assert rendered.losses == ()


def test_a_tier_without_an_account_has_no_place():
    answer = Response("r", "m", (Text("a"),), Stop("end"), service_tier="flex")
    lost = [("$.service_tier", "service_tier", "dropped")]
    assert features(DIALECT.render_response(answer, CONTEXT)) == lost
    writer = DIALECT.stream_writer(CONTEXT)
    writer.write(list(unfold(answer)))
    assert [(loss.path, loss.feature, loss.action) for loss in writer.losses] == lost


@pytest.mark.parametrize(("kind", "field"), [("OBJECT", "responseSchema"), ("object", "responseJsonSchema")])
def test_a_schema_in_capitals_is_googles_own(kind, field):
    output = OutputFormat("schema", {"type": kind})
    config = render(Request("m", (Message("user", (Text("a"),)),), output=output)).value["generationConfig"]
    assert config == {"responseMimeType": "application/json", field: {"type": kind}}


def test_tools_stand_as_they_did_unless_one_came_or_went():
    heaps = [
        {"functionDeclarations": [{"name": "a"}]},
        {"functionDeclarations": [{"name": "b"}], "googleSearch": {}, "urlContext": None},
    ]
    request = parse({"contents": [{"parts": [{"text": "x"}]}], "tools": heaps})
    assert render(request).value["tools"] == heaps
    a, b, search = request.tools
    usual = {"functionDeclarations": [{"name": "a"}]}
    assert render(replace(request, tools=(a, search))).value["tools"] == [usual, {"googleSearch": {}}]
    assert render(replace(request, tools=(a, b))).value["tools"] == [
        {"functionDeclarations": [{"name": "a"}, {"name": "b"}]}
    ]


@pytest.mark.parametrize("status", [405, 408, 415, 426])
def test_a_status_that_tells_more_than_bad_request_is_reported(status):
    error = ApiError("invalid_request", "m", status)
    assert DIALECT.render_error(error, CONTEXT).value["error"]["code"] == status
    assert DIALECT.surface.status(error) == status
    for other in (status - 1, status + 1):
        plain = ApiError("invalid_request", "m", other)
        assert DIALECT.render_error(plain, CONTEXT).value["error"]["code"] == 400


@rows(
    ("reason", "kind"),
    [
        ("API_KEY_INVALID", "auth"),
        ("API_KEY_EXPIRED", "auth"),
        ("ACCESS_TOKEN_EXPIRED", "auth"),
        ("BILLING_DISABLED", "billing"),
        ("CONTEXT_LENGTH_EXCEEDED", "context_overflow"),
        ("CONTENT_POLICY_VIOLATION", "content_policy"),
        ("REQUEST_TOO_LARGE", "too_large"),
        ("SOMETHING_ELSE", "invalid_request"),
    ],
)
def test_a_reason_says_more_than_the_status(reason, kind):
    details = [7, {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]
    body = {"code": 400, "message": "m", "status": "INVALID_ARGUMENT", "details": details}
    error = parse_error({"error": body})
    assert error is not None
    assert (error.kind, error.code) == (kind, reason)


@rows(
    ("status", "kind"),
    [
        ("INVALID_ARGUMENT", "invalid_request"),
        ("FAILED_PRECONDITION", "invalid_request"),
        ("OUT_OF_RANGE", "invalid_request"),
        ("UNIMPLEMENTED", "server"),
        ("UNAUTHENTICATED", "auth"),
        ("PERMISSION_DENIED", "permission"),
        ("NOT_FOUND", "not_found"),
        ("ABORTED", "conflict"),
        ("ALREADY_EXISTS", "conflict"),
        ("RESOURCE_EXHAUSTED", "rate_limit"),
        ("UNAVAILABLE", "overloaded"),
        ("DEADLINE_EXCEEDED", "timeout"),
        ("CANCELLED", "server"),
        ("INTERNAL", "server"),
        ("UNKNOWN", "server"),
        ("DATA_LOSS", "server"),
    ],
)
def test_a_status_by_name_counts_more_than_its_number(status, kind):
    """But for a number that blames the request: the same request would be refused again."""
    for number, meant in ((500, kind), (400, "invalid_request" if kind == "server" else kind)):
        error = parse_error({"error": {"code": number, "message": "m", "status": status}})
        assert error is not None
        assert error.kind == meant


@pytest.mark.parametrize(
    ("mode", "budget", "lost"), [("on", 1, False), ("on", 0, True), (None, 1, True), ("auto", 7, True)]
)
def test_a_budget_says_that_thinking_is_on(mode, budget, lost):
    thinking = Thinking(mode, None, budget)
    rendered = render(Request("m", (Message("user", (Text("a"),)),), thinking=thinking))
    assert rendered.value["generationConfig"] == {"thinkingConfig": {"thinkingBudget": budget}}
    assert features(rendered) == ([("$.thinking.mode", "thinking.mode", "approximated")] if lost else [])


def test_a_turn_of_the_simple_form_is_history_for_its_citations():
    text = Text("a", citations=(Citation("u"),), logprobs=(TokenLogprob("a", -1.0),))
    rendered = SIMPLE.render_request(Request("m", (Message("user", (text,)),)), CONTEXT)
    assert [loss.feature for loss in rendered.losses] == ["citations", "logprobs"]
