"""Whole answers, both ways."""

import pytest

import wireglot_core
from tests.tiers import rows
from wireglot_core.dialects.context import Context, is_minted
from wireglot_core.dialects.gemini import DIALECT
from wireglot_core.dialects.gemini.errors import parse_error
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Citation, Foreign, Media, Reasoning, Text, TokenLogprob, ToolCall
from wireglot_core.ir.errors import UpstreamFault
from wireglot_core.ir.outcome import Candidate, Response, Stop, Usage
from wireglot_core.ir.stream import Failure, fold
from wireglot_core.translate import StreamTranslator, translate_response
from wireglot_core.wire.json import encode

CONTEXT = Context()


def parse(body):
    return DIALECT.parse_response(body, CONTEXT)


def render(response):
    return DIALECT.render_response(response, CONTEXT)


def comes_back(body):
    rendered = render(parse(body))
    assert rendered.losses == ()
    assert rendered.value == body


def answer(*parts, finish="STOP", **more):
    return {
        "candidates": [
            {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish, "index": 0}
        ],
        **more,
    }


def test_an_answer_in_all_its_parts():
    """R-T-02, R-T-03"""
    body = answer(
        {"text": "hm", "thought": True},
        {"text": "Let me look."},
        {"functionCall": {"id": "x1", "name": "f", "args": {"a": 1}}, "thoughtSignature": "QUJD"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"x_future": {"a": 1}},
        usageMetadata={"promptTokenCount": 1, "totalTokenCount": 1},
        modelVersion="gemini-3-pro",
        responseId="r1",
        createTime="2026-01-02T03:04:05.678Z",
        modelStatus={"modelStage": "STABLE"},
    )
    response = parse(body)
    assert [type(part) for part in response.content] == [
        Reasoning,
        Text,
        ToolCall,
        Media,
        Foreign,
        Foreign,
        Foreign,
    ]
    assert (response.id, response.model, response.created) == ("r1", "gemini-3-pro", 1767323045)
    comes_back(body)


@rows(
    "candidate",
    [
        {},
        {"finishReason": "STOP"},
        {"content": {}, "finishReason": "STOP"},
        {"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0},
        {"content": {"role": "model", "parts": []}, "finishReason": "STOP"},
        {"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"},
        {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"},
        {"content": {"role": "model", "parts": [{"text": "x"}]}},
        {"content": {"role": "model", "parts": [{"text": "x"}]}, "finishReason": 1},
        {
            "content": {"role": "model", "parts": [{"text": "x"}]},
            "finishReason": "STOP",
            "avgLogprobs": -0.5,
            "safetyRatings": [{"a": 1}],
        },
        {
            "content": {"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
            "finishReason": "STOP",
            "finishMessage": "Model generated function call(s).",
        },
    ],
)
def test_odd_candidates_come_back(candidate):
    comes_back({"candidates": [candidate]})


def test_fields_of_the_first_candidate_are_reported_by_their_path():
    extra = parse(
        {"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP", "avgLogprobs": -0.5}]}
    ).extra
    assert extra is not None
    assert extra.fields == {"candidates[0].avgLogprobs": -0.5}


# Why it ended


@rows(
    ("raw", "reason"),
    [
        ("STOP", "end"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "refused"),
        ("RECITATION", "refused"),
        ("BLOCKLIST", "refused"),
        ("PROHIBITED_CONTENT", "refused"),
        ("SPII", "refused"),
        ("IMAGE_SAFETY", "refused"),
        ("IMAGE_PROHIBITED_CONTENT", "refused"),
        ("IMAGE_RECITATION", "refused"),
        ("MALFORMED_FUNCTION_CALL", "malformed_call"),
        ("UNEXPECTED_TOOL_CALL", "paused"),
        ("TOO_MANY_TOOL_CALLS", "paused"),
        ("MALFORMED_RESPONSE", "paused"),
        ("MISSING_THOUGHT_SIGNATURE", "paused"),
        ("ESCALATION", "refused"),
        ("PUP_LIMITED_DISABLED", "refused"),
        ("CONTINUATION", "paused"),
        ("LANGUAGE", "other"),
        ("OTHER", "other"),
        ("IMAGE_OTHER", "other"),
        ("NO_IMAGE", "other"),
        ("FINISH_REASON_UNSPECIFIED", "other"),
        ("BRAND_NEW", "other"),
    ],
)
def test_finish_reasons(raw, reason):
    """Part 3, C1, C16, R-C-04: mapped by table, the raw one kept."""
    body = answer({"text": "x"}, finish=raw)
    assert parse(body).stop == Stop(reason, raw, "gemini")
    comes_back(body)


@rows(
    ("number", "raw"),
    enumerate(
        (
            "FINISH_REASON_UNSPECIFIED",
            "STOP",
            "MAX_TOKENS",
            "SAFETY",
            "RECITATION",
            "OTHER",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "MALFORMED_FUNCTION_CALL",
        )
    ),
)
def test_finish_reasons_as_numbers_are_those_of_vertex(number, raw):
    named, numbered = (parse(answer({"text": "x"}, finish=finish)).stop for finish in (raw, number))
    assert numbered.reason == named.reason
    assert numbered.raw == raw


@pytest.mark.parametrize(
    "raw", ["UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE", "MALFORMED_FUNCTION_CALL"]
)
def test_an_answer_without_words_that_ends_in_a_bad_call_is_malformed(raw):
    """C2"""
    body = answer(finish=raw)
    assert parse(body).stop == Stop("malformed_call", raw, "gemini")
    comes_back(body)


def test_a_missing_thought_signature_is_an_error_of_the_request():
    body = answer(finish="MISSING_THOUGHT_SIGNATURE")
    body["candidates"][0]["finishMessage"] = "at contents[1]"
    error = parse_error(body)
    assert error is not None
    assert (error.kind, error.status) == ("invalid_request", 400)
    assert "at contents[1]" in error.message
    is_refusal = dialect("gemini").surface.reasoning.is_refusal
    assert is_refusal is not None
    assert is_refusal(error)
    reader = dialect("gemini").stream_reader(Context())
    last = [*reader.read(b"data: " + encode(body) + b"\n\n"), *reader.end()][-1]
    assert isinstance(last, Failure)
    assert (last.error.kind, last.error.message) == (error.kind, error.message)
    assert parse_error(answer({"text": "x"}, finish="MISSING_THOUGHT_SIGNATURE")) is None


@rows("target", ["anthropic", "openai-chat", "openai-responses", "gemini"])
@rows(
    "raw", ["UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE"]
)
def test_words_before_a_bad_call_reach_every_client(target, raw):
    """Whole and streamed: the text stands, whatever ended it."""
    body = answer({"text": "So far: 42."}, finish=raw)
    whole = translate_response(body, source="gemini", target=target)
    translator = StreamTranslator(source="gemini", target=target)
    data = translator.feed(b"data: " + encode(body) + b"\n\n") + translator.close()
    spoken = dialect(target)
    reader = spoken.stream_reader(Context())
    for found in (spoken.parse_response(whole.value, Context()), fold([*reader.read(data), *reader.end()])):
        assert [part.text for part in found.content if isinstance(part, Text)] == ["So far: 42."]
        assert found.stop.reason != "malformed_call"


def test_a_call_turns_stop_into_tool_calls_but_not_a_cut_off_answer():
    """C2, C43, R-I-03, R-I-12, PAINS A13"""
    call = {"functionCall": {"name": "f", "args": {}}}
    assert parse(answer(call)).stop.reason == "tool_calls"
    assert parse(answer(call, finish="MAX_TOKENS")).stop.reason == "length"
    assert parse(answer(call, finish="MALFORMED_FUNCTION_CALL")).stop.reason == "malformed_call"


@rows(
    ("stop", "raw", "lost"),
    [
        (Stop("end"), "STOP", []),
        (Stop("length"), "MAX_TOKENS", []),
        (Stop("refused"), "SAFETY", []),
        (Stop("other"), "OTHER", []),
        (Stop("malformed_call"), "MALFORMED_FUNCTION_CALL", []),
        (Stop("stop_sequence", sequence="END"), "STOP", ["stop_sequence", "stop_reason"]),
        (Stop("context_full"), "MAX_TOKENS", ["stop_reason"]),
        (Stop("paused"), "MAX_TOKENS", ["stop_reason"]),
        (Stop("end", "end_turn", "anthropic"), "STOP", []),
    ],
)
def test_stop_reasons_of_other_dialects(stop, raw, lost):
    rendered = render(Response("r", "m", (Text("x"),), stop))
    assert rendered.value["candidates"][0]["finishReason"] == raw
    assert [loss.feature for loss in rendered.losses] == lost


def test_a_blocked_prompt_is_a_refusal_without_content():
    body = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT", "safetyRatings": []},
        "usageMetadata": {"promptTokenCount": 4, "totalTokenCount": 4},
    }
    response = parse(body)
    assert (response.stop.reason, response.content) == ("refused", ())
    comes_back(body)
    comes_back({"candidates": [], "promptFeedback": {"blockReason": "OTHER"}})


def test_an_answer_that_does_not_say_why_it_ended_ended():
    assert parse({"candidates": [{"content": {"parts": [{"text": "x"}]}}]}).stop.reason == "end"
    assert parse({}).stop.reason == "other"


# What it cost


def test_usage_is_one_account_without_overlap():
    """C26, R-AG-08..12, PAINS A12: cached tokens are inside the prompt, thoughts outside the candidates."""
    raw = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 30,
        "toolUsePromptTokenCount": 5,
        "totalTokenCount": 142,
    }
    usage = parse(answer({"text": "x"}, usageMetadata=raw)).usage
    assert usage is not None
    assert (usage.input, usage.cache_read, usage.tool_prompt, usage.output, usage.reasoning) == (
        40,
        60,
        5,
        7,
        30,
    )
    assert (usage.total_input, usage.total_output, usage.total) == (105, 37, 142)
    rendered = render(
        Response(
            "r", "m", (), Stop("end"), Usage(input=40, cache_read=60, tool_prompt=5, output=7, reasoning=30)
        )
    )
    assert rendered.value["usageMetadata"] == raw


def test_strings_and_nonsense_in_usage_are_numbers_or_nothing():
    """int64 is a string in proto-JSON."""
    raw = {"promptTokenCount": "12", "candidatesTokenCount": -3, "totalTokenCount": None}
    usage = parse(answer({"text": "x"}, usageMetadata=raw)).usage
    assert usage is not None
    assert (usage.input, usage.output, usage.reasoning) == (12, 0, None)
    comes_back(answer({"text": "x"}, usageMetadata=raw))


def test_the_providers_own_numbers_come_back_unless_the_account_changed():
    from msgspec.structs import replace

    raw = {
        "promptTokenCount": 5,
        "totalTokenCount": 99,
        "trafficType": "ON_DEMAND",
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 5}],
    }
    response = parse(answer({"text": "x"}, usageMetadata=raw))
    assert render(response).value["usageMetadata"] == raw
    assert response.usage is not None
    changed = replace(response, usage=replace(response.usage, output=3))
    assert render(changed).value["usageMetadata"] == {
        "promptTokenCount": 5,
        "candidatesTokenCount": 3,
        "totalTokenCount": 8,
    }


def test_cache_writes_count_as_prompt_and_say_so():
    rendered = render(
        Response(
            "r", "m", (Text("x"),), Stop("end"), Usage(input=10, cache_write=4, cache_write_long=2, output=1)
        )
    )
    assert rendered.value["usageMetadata"]["promptTokenCount"] == 16
    assert [loss.feature for loss in rendered.losses] == ["usage.detail", "usage.detail"]


# Beside the text


def test_grounding_counts_bytes_and_citations_count_characters():
    text = "Zürich ist schön. Ja."
    grounding = {
        "groundingChunks": [
            {"web": {"uri": "https://a.example", "title": "A"}},
            {"retrievedContext": {"uri": "gs://b", "title": "B"}},
        ],
        "groundingSupports": [
            {"segment": {"endIndex": 19, "text": "Zürich ist schön."}, "groundingChunkIndices": [0, 1]}
        ],
        "webSearchQueries": ["zürich"],
    }
    body = answer({"text": text})
    body["candidates"][0]["groundingMetadata"] = grounding
    (part,) = parse(body).content
    assert isinstance(part, Text)
    assert part.citations == (
        Citation("https://a.example", "A", "Zürich ist schön.", 0, 17),
        Citation("gs://b", "B", "Zürich ist schön.", 0, 17),
    )
    comes_back(body)


def test_a_citation_of_another_dialect_becomes_grounding_and_comes_back():
    text = Text("Über alles", citations=(Citation("https://a.example", "A", start=0, end=4),))
    rendered = render(Response("r", "m", (text,), Stop("end")))
    assert rendered.losses == ()
    assert rendered.value["candidates"][0]["groundingMetadata"]["groundingSupports"] == [
        {"segment": {"startIndex": 0, "endIndex": 5}, "groundingChunkIndices": [0]}
    ]
    assert parse(rendered.value).content == (text,)


def test_citation_metadata_is_read_and_comes_back():
    body = answer({"text": "äbc"})
    body["candidates"][0]["citationMetadata"] = {
        "citationSources": [{"startIndex": 2, "endIndex": 4, "uri": "https://a.example", "license": "MIT"}]
    }
    (part,) = parse(body).content
    assert isinstance(part, Text)
    assert [(cited.url, cited.start, cited.end) for cited in part.citations] == [("https://a.example", 1, 3)]
    comes_back(body)


def test_log_probabilities_both_ways():
    body = answer({"text": "Hi"})
    body["candidates"][0]["logprobsResult"] = {
        "topCandidates": [
            {
                "candidates": [
                    {"token": "Hi", "tokenId": 1, "logProbability": -0.1},
                    {"token": "Ho", "logProbability": -2},
                ]
            }
        ],
        "chosenCandidates": [{"token": "Hi", "tokenId": 1, "logProbability": -0.1}],
    }
    (part,) = parse(body).content
    assert isinstance(part, Text)
    assert part.logprobs == (TokenLogprob("Hi", -0.1, (("Hi", -0.1), ("Ho", -2.0))),)
    comes_back(body)
    rendered = render(Response("r", "m", (part,), Stop("end")))
    assert parse(rendered.value).content == (part,)


def test_second_candidates_come_back():
    body = {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": index}
            for index, text in enumerate("ab")
        ]
    }
    assert parse(body).others == (
        Candidate((Text("b"),), Stop("end", "STOP", "gemini"), parse(body).others[0].extra),
    )
    comes_back(body)


def test_calls_without_an_id_get_one_that_depends_on_the_call_alone():
    """R-T-06, C4, C40, R-W-02: unique among parallel calls, the same each time, hidden from Gemini's own clients."""
    body = answer(
        {"functionCall": {"name": "f", "args": {}}},
        {"functionCall": {"name": "f", "args": {}}},
        responseId="r1",
    )
    one, two = (part.id for part in parse(body).content if isinstance(part, ToolCall))
    assert one != two
    assert is_minted(one)
    assert parse(body) == parse(body)
    comes_back(body)


def test_another_providers_call_id_reaches_a_gemini_client():
    rendered = render(Response("r", "m", (ToolCall("toolu_1", "f", '{"a":1}'),), Stop("tool_calls")))
    assert rendered.value["candidates"][0]["content"]["parts"] == [
        {"functionCall": {"id": "toolu_1", "name": "f", "args": {"a": 1}}}
    ]


def test_an_empty_answer_is_still_a_candidate_with_a_part():
    rendered = render(Response("r", "m", (), Stop("end")))
    assert rendered.value["candidates"] == [
        {"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": "STOP", "index": 0}
    ]


def test_a_refusal_is_text_and_says_so():
    rendered = render(Response("r", "m", (Text("No.", refusal=True),), Stop("refused")))
    assert [loss.feature for loss in rendered.losses] == ["refusal"]


@pytest.mark.parametrize(
    "body", [{"candidates": {}}, {"candidates": [5]}, {"candidates": [{"content": 5}]}, {"usageMetadata": 5}]
)
def test_nonsense_is_the_upstreams_fault(body):
    with pytest.raises(UpstreamFault):
        parse(body)


def test_arguments_that_had_to_be_wrapped_are_declared():
    call = ToolCall("call_1", "f", '{"a": ')
    rendered = render(Response("r", "m", (call,), Stop("tool_calls")))
    assert [(loss.path, loss.feature, loss.action) for loss in rendered.losses] == [
        ("$.content[0].arguments", "tool_call.arguments", "emulated")
    ]
    assert parse(rendered.value).content[0].arguments == call.arguments


@rows("reason", ["SAFETY", "BLOCKLIST", "SPII", "IMAGE_RECITATION", "MODEL_ARMOR"])
def test_a_filter_of_theirs_is_a_refusal_for_others(reason):
    body = {"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": reason}]}
    out = wireglot_core.translate_response(body, source="gemini", target="openai-chat")
    assert out.value["choices"][0]["finish_reason"] == "content_filter"
