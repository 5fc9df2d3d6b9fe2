"""What several dialects share, directly: a glance at a body, counts of tokens, vectors, errors, options of tools."""

from __future__ import annotations

import math
import struct
from base64 import b64encode
from types import SimpleNamespace
from typing import Any

import pytest

from tests.core.sent_body import SentBody
from tests.tiers import rows
from wireglot_core.dialects import counting, embeddings, hosted_options, openai_shared, rpc_status
from wireglot_core.dialects.argument_stream import ArgumentStream, MendedArguments, MendedCalls
from wireglot_core.dialects.body import (
    BadField,
    RequestGlance,
    glance_body,
    one_answer,
    session_by_cache_key,
    session_in_metadata,
    stated_in,
)
from wireglot_core.dialects.context import Context, Rendered, is_minted, reported_model
from wireglot_core.dialects.faults import wait_in_message
from wireglot_core.dialects.fields import Fields
from wireglot_core.dialects.listed_model import ListedModel, ModelFile, UpstreamModel, read_list
from wireglot_core.dialects.passthrough import (
    RepeatedFrames,
    event_of,
    has_no_answer,
    object_of,
    shaped,
    whole_frames,
)
from wireglot_core.dialects.request_fields import (
    BOOLEAN,
    INTEGER,
    TEXT,
    TEXTS,
    F,
    RequestFields,
)
from wireglot_core.dialects.unknown_fields import UnknownFields, is_hollow, merge, split_blank
from wireglot_core.ir.content import Citation, Extra, Foreign, Media, Text, TokenLogprob, ToolCall
from wireglot_core.ir.embedding import (
    Embedding,
    EmbeddingInput,
    EmbeddingRequest,
    EmbeddingResponse,
    TokenIds,
)
from wireglot_core.ir.errors import ApiError, ClientFault, Unsupported, UpstreamFault, WireglotError
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.request import Grammar, HostedTool, McpServer, Request, Sampling, Tool
from wireglot_core.ir.stream import Delta, Event, PartEnd, PartStart
from wireglot_core.wire.json import BadJson, decode, encode


def sent(**body: Any) -> SentBody:
    return SentBody(encode(body))


def brief(losses: list[Loss]) -> list[tuple[str, str, str]]:
    return [(loss.path, loss.feature, loss.action) for loss in losses]


# --- a body before it is parsed


@rows(
    ("body", "seen"),
    [
        ({}, RequestGlance("", None)),
        ({"model": "m"}, RequestGlance("m", None)),
        ({"model": None, "stream": None}, RequestGlance("", None)),
        ({"model": "m", "stream": True}, RequestGlance("m", True)),
        ({"stream": False}, RequestGlance("", False)),
        ({"model": 7}, "$.model"),
        ({"stream": 1}, "$.stream"),
    ],
)
def test_what_a_body_says_of_model_and_stream(body: dict[str, Any], seen: Any) -> None:
    if type(seen) is RequestGlance:
        assert glance_body(sent(**body)) == seen
        assert one_answer(sent(**body)) == 1
        return
    with pytest.raises(BadField) as refused:
        glance_body(sent(**body))
    assert (refused.value.path, refused.value.code) == (seen, "invalid_type")
    assert BadField("x", "$", "other").code == "other"


CLAUDE = "user_a1_account__session_01234567-89ab-cdef"


@rows(
    ("body", "session", "or_key"),
    [
        ({}, "", ""),
        ({"prompt_cache_key": "k"}, "", "k"),
        ({"prompt_cache_key": 7}, "", ""),
        ({"prompt_cache_key": "k" * 300}, "", "k" * 256),
        ({"metadata": {"session_id": "s"}, "prompt_cache_key": "k"}, "s", "s"),
        ({"metadata": {"session_id": "s" * 300}}, "s" * 256, "s" * 256),
        ({"metadata": {"session_id": "s", "user_id": CLAUDE}}, "s", "s"),
        ({"metadata": {"session_id": 7, "user_id": CLAUDE}}, "01234567-89ab-cdef", "01234567-89ab-cdef"),
        ({"metadata": {"user_id": "user_session_short"}}, "", ""),
        ({"metadata": {"user_id": '{"session_id":"s"}'}}, "s", "s"),
        ({"metadata": {"user_id": '{"session_id":7}'}}, "", ""),
        ({"metadata": {"user_id": '{"session_id":"s"'}}, "", ""),
        ({"metadata": {"user_id": "{}"}}, "", ""),
        ({"metadata": {"user_id": 7}}, "", ""),
        ({"metadata": "s", "prompt_cache_key": "k"}, "", "k"),
        ({"metadata": None}, "", ""),
    ],
)
def test_the_session_that_a_body_names(body: dict[str, Any], session: str, or_key: str) -> None:
    outline = sent(**body).outline
    assert (session_in_metadata(outline), session_by_cache_key(outline)) == (session, or_key)


@rows(
    ("body", "count"),
    [
        ({"b": 2, "a": 1}, 1),
        ({"b": 2}, 2),
        ({"a": 0, "b": 2}, 2),
        ({"a": -1}, 0),
        ({"a": "1", "b": True}, 0),
        ({"a": 1.0}, 0),
    ],
)
def test_the_first_count_that_a_body_states(body: dict[str, Any], count: int) -> None:
    assert stated_in("a", "b")(sent(**body)) == count


# --- counts of tokens


@rows("value", [None, "5", -1, 1.0, True])
def test_an_answer_without_a_count_is_a_fault_of_the_upstream(value: Any) -> None:
    with pytest.raises(UpstreamFault) as fault:
        counting.input_tokens({"input_tokens": value})
    assert fault.value.path == "$.input_tokens"
    with pytest.raises(UpstreamFault):
        counting.input_tokens([])
    assert [counting.input_tokens({"input_tokens": count}) for count in (0, 5)] == [0, 5]


def test_a_question_for_a_count_says_nothing_of_the_answer() -> None:
    asked = Request(
        "m", (), max_tokens=5, stop=("x",), sampling=Sampling(temperature=1), verbosity="low", stream=True,
        user="u", metadata={"a": "b"}, service_tier="flex", cache_key="k",
    )  # fmt: skip
    seen: list[Request] = []

    def render(request: Request, context: Context) -> Rendered[dict[str, Any]]:
        seen.append(request)
        lost = (Loss("$.max_tokens", "max_tokens", "invented"), Loss("$.user", "user", "dropped"))
        return Rendered({"model": "m", "max_tokens": 1, "messages": []}, lost)

    done = counting.counting_only(render, ("model", "messages"))(asked, Context(), "https://e.com")
    assert done == Rendered({"model": "m", "messages": []}, (Loss("$.user", "user", "dropped"),))
    assert seen == [Request("m", ())]


# --- embeddings


def floats(*numbers: float) -> str:
    return b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


@rows(
    ("given", "vector"),
    [
        ([1, 2.5], (1, 2.5)),
        ([2**53, -(2**53)], (2**53, -(2**53))),
        (floats(0.5, -2), (0.5, -2.0)),
        ([], ("expected numbers, got an array", "$.v")),
        (7, ("expected numbers, got an integer", "$.v")),
        ([1, "2"], ("expected a number, got a string", "$.v[1]")),
        ([True], ("expected a number, got a boolean", "$.v[0]")),
        ([0, 2**53 + 1], ("expected a number in the range of float32", "$.v[1]")),
        ([-(2**53) - 1], ("expected a number in the range of float32", "$.v[0]")),
        ("", ("expected base64 of float32 numbers", "$.v")),
        ("QUJD", ("expected base64 of float32 numbers", "$.v")),
        ("no!", ("expected base64", "$.v")),
        (floats(1, math.nan), ("expected finite numbers", "$.v")),
    ],
)
def test_a_vector_is_numbers_or_base64(given: Any, vector: tuple[Any, ...]) -> None:
    if not isinstance(vector[0], str):
        assert embeddings.read_vector(given, "$.v") == vector
        assert embeddings.read_vector(embeddings.packed(vector, "$.v"), "$") == vector
        assert embeddings.plain_vectors([given], "$.v") == (Embedding(vector),)
        return
    with pytest.raises(UpstreamFault) as fault:
        embeddings.read_vector(given, "$.v")
    assert (fault.value.message, fault.value.path) == vector


def test_what_cannot_be_packed_and_what_are_no_vectors() -> None:
    for odd in (1e39, math.inf, math.nan):
        with pytest.raises(UpstreamFault, match="range of float32"):
            embeddings.packed([0.0, odd], "$.v")
    with pytest.raises(UpstreamFault, match="expected an array, got null"):
        embeddings.plain_vectors(None, "$.v")
    with pytest.raises(UpstreamFault) as fault:
        embeddings.plain_vectors([[1.0], [None]], "$.v")
    assert fault.value.path == "$.v[1][0]"


def test_the_text_of_an_input_and_what_is_lost_of_it() -> None:
    losses: list[Loss] = []
    assert embeddings.text_of(EmbeddingInput("a"), "$.i", losses) == "a"
    assert embeddings.text_of(EmbeddingInput((Text("a"),)), "$.i", losses) == "a"
    embeddings.lose_task(EmbeddingInput("a"), "$.i", losses)
    assert losses == []
    assert embeddings.text_of(EmbeddingInput((Text("a"), Text("b"))), "$.i", losses) == "a\nb"
    embeddings.lose_task(EmbeddingInput("a", task="T"), "$.i", losses)
    assert brief(losses) == [
        ("$.i.content", "content.position", "approximated"),
        ("$.i.task", "embedding.task", "dropped"),
    ]
    for content, path in ((TokenIds((1,)), "$.i"), ((Text("a"), Media("image")), "$.i.content[1]")):
        with pytest.raises(Unsupported) as refused:
            embeddings.text_of(EmbeddingInput(content), "$.i", losses)
        assert refused.value.path == path


def test_dimensions_are_one_number_above_zero() -> None:
    def asked(*dimensions: int | None) -> EmbeddingRequest:
        return EmbeddingRequest("m", tuple(EmbeddingInput("a", dimensions=each) for each in dimensions))

    assert [embeddings.read_dimensions(value, "$.d") for value in (None, 1)] == [None, 1]
    for odd in (0, -1):
        with pytest.raises(ClientFault, match="above 0"):
            embeddings.read_dimensions(odd, "$.d")
    assert [embeddings.same_dimensions(asked(*each)) for each in ((), (None,), (3, 3))] == [None, None, 3]
    with pytest.raises(Unsupported) as refused:
        embeddings.same_dimensions(asked(3, 3, None))
    assert refused.value.path == "$.inputs[2].dimensions"
    assert embeddings.no_inputs("$.input").path == "$.input"


@rows(
    ("path", "flat_one", "flat_two", "listed"),
    [
        ("$.model", "$.model", "$.model", "$.model"),
        ("$.inputs[0]", "$.input", "$.input[0]", "$.requests[0].input"),
        ("$.inputs[1].content", "$.input", "$.input[1]", "$.requests[1].input"),
        ("$.inputs[1].content[2].x", "$.input[2].x", "$.input[1][2].x", "$.requests[1].input[2].x"),
        ("$.inputs[1].task", "$.task", "$.task", "$.requests[1].task"),
        ("$.inputs[1].dimensions", "$.size", "$.size", "$.requests[1].size"),
    ],
)  # fmt: skip
def test_where_an_input_stands_in_a_clients_request(
    path: str, flat_one: str, flat_two: str, listed: str
) -> None:
    names = {"content": "input", "dimensions": "size"}
    one, two = (EmbeddingRequest("m", (EmbeddingInput("a"),) * count) for count in (1, 2))
    flat = embeddings.by_name(names)
    found = (flat(path, one), flat(path, two), embeddings.by_name(names, "requests")(path, two))
    assert found == (flat_one, flat_two, listed)


def test_the_endpoint_that_takes_so_many_inputs() -> None:
    def chosen(inputs: int, *limits: int) -> int:
        forms: Any = [("embed", SimpleNamespace(max_inputs=limit)) for limit in limits]
        return embeddings.fitting_form(forms, inputs)[1].max_inputs

    assert [chosen(2, 1, 2, 9), chosen(3, 1, 2, 9), chosen(9, 1, 0), chosen(10, 1, 9, 2)] == [2, 9, 0, 9]


def test_answers_to_parts_of_a_request_are_one() -> None:
    vectors = [Embedding((float(number),)) for number in range(3)]
    first = EmbeddingResponse("m", tuple(vectors[:2]), Usage(input=2))
    second = EmbeddingResponse("m", tuple(vectors[2:]), Usage(input=1))
    whole = embeddings.joined_embeddings([first, second], [2, 1])
    assert (whole.embeddings, whole.usage) == (tuple(vectors), Usage(input=3))
    with pytest.raises(UpstreamFault, match="1 vectors for 2 inputs"):
        embeddings.joined_embeddings([first, second], [2, 2])


# --- google.rpc.Status


@rows(
    ("code", "name", "reason", "message", "kind"),
    [
        (400, "INVALID_ARGUMENT", "", "x", "invalid_request"),
        (413, "INVALID_ARGUMENT", "", "x", "too_large"),
        (502, "UNAVAILABLE", "", "x", "server"),
        (503, "UNAVAILABLE", "", "x", "overloaded"),
        (400, "INVALID_ARGUMENT", "", "API key not valid. Pass one.", "auth"),
        (400, "INVALID_ARGUMENT", "", "The api_key expired", "auth"),
        (403, "PERMISSION_DENIED", "", "api key not found", "permission"),
        (403, "PERMISSION_DENIED", "", "Enable billing for it", "billing"),
        (429, "RESOURCE_EXHAUSTED", "", "Your prepay credits are depleted", "billing"),
        (400, "FAILED_PRECONDITION", "", "The billing account is closed", "billing"),
        (404, "NOT_FOUND", "", "enable billing", "not_found"),
        (400, "INVALID_ARGUMENT", "", "prompt is too long", "context_overflow"),
        *(
            (400, "INVALID_ARGUMENT", reason, "x", kind)
            for reason, kind in (
                ("CONTEXT_LENGTH_EXCEEDED", "context_overflow"), ("API_KEY_INVALID", "auth"), ("API_KEY_EXPIRED", "auth"),
                ("ACCESS_TOKEN_EXPIRED", "auth"), ("BILLING_DISABLED", "billing"), ("REQUEST_TOO_LARGE", "too_large"),
                ("CONTENT_POLICY_VIOLATION", "content_policy"), ("OTHER", "invalid_request"),
            )
        ),
        *(
            (0, name, "", "x", kind)
            for name, kind in (
                ("OUT_OF_RANGE", "invalid_request"), ("UNAUTHENTICATED", "auth"), ("ABORTED", "conflict"),
                ("ALREADY_EXISTS", "conflict"), ("DEADLINE_EXCEEDED", "timeout"), ("INTERNAL", "server"),
                ("CANCELLED", "server"), ("UNKNOWN", "server"), ("UNIMPLEMENTED", "server"), ("DATA_LOSS", "server"),
            )
        ),
    ],
)  # fmt: skip
def test_what_a_status_of_google_is(code: int, name: str, reason: str, message: str, kind: str) -> None:
    assert rpc_status.kind_of_rpc(code, name, reason, message) == kind


DETAILS: list[dict[str, Any]] = [
    {"@type": "google.rpc.ErrorInfo", "reason": 7},
    {"@type": "google.rpc.ErrorInfo", "reason": "R"},
    {"@type": 7, "fieldViolations": []},
    {"fieldViolations": [{"field": "f"}]},
    {"fieldViolations": [{"field": "g"}]},
]


def test_what_the_details_of_a_status_say() -> None:
    assert rpc_status.rpc_details({"details": [7, *DETAILS]}) == DETAILS
    assert rpc_status.rpc_details({"details": "x"}) == rpc_status.rpc_details({}) == []
    assert rpc_status.detail_text(DETAILS, "ErrorInfo", "reason") == "R"
    assert rpc_status.detail_text(DETAILS, "Other", "reason") == ""
    assert rpc_status.field_violation(DETAILS) == "f"
    assert rpc_status.field_violation([{"fieldViolations": [7]}, {"fieldViolations": [{}]}]) == ""


@rows(
    ("delay", "seconds"),
    [
        ("7s", 7.0), ("7.5s", 7.5), ("7", 7.0), ({"seconds": 3}, 3.0), ({"seconds": "4"}, 4.0), ({"seconds": 1.5}, 1.5),
        ({}, 0.0), ({"seconds": [1]}, 2.0), ("soon", 2.0), (7, 2.0), (None, 2.0),
    ],
)  # fmt: skip
def test_how_long_a_status_asks_to_wait(delay: Any, seconds: float) -> None:
    assert rpc_status.rpc_wait([{}, {"retryDelay": delay}], "try again in 2s") == seconds


@rows(
    ("message", "seconds"),
    [
        ("try again in 1h2m3s", 3723.0), ("retry after 5 seconds", 5.0), ("Retry in 1500 MS", 1.5), ("try again in 2h", 7200.0),
        ("try again in 30m", 1800.0), ("try again in 30ms", 0.03), ("try again in 1 second", 1.0), ("retry in 3 moons", None),
    ],
)  # fmt: skip
def test_how_long_a_message_asks_to_wait(message: str, seconds: float | None) -> None:
    assert wait_in_message(message) == seconds


# --- OpenAI's two dialects


def test_marks_citations_and_probabilities_of_openai() -> None:
    assert openai_shared.breakpoint_value("") == {"mode": "explicit"}
    assert openai_shared.breakpoint_value("short", "auto") == {"mode": "auto", "ttl": "30m"}
    assert openai_shared.breakpoint_value("long") == {"mode": "explicit", "ttl": "12h"}
    assert openai_shared.TTLS == {"30m": "short", "12h": "long"}
    entry = {
        "token": "é",
        "logprob": -0.5,
        "top_logprobs": [{"token": "e", "logprob": -1}, {"token": "x"}, 7],
    }
    read = openai_shared.parse_logprob(entry)
    assert read == TokenLogprob("é", -0.5, (("e", -1),))
    assert openai_shared.render_logprobs((read,)) == [
        {
            "token": "é", "logprob": -0.5, "bytes": [195, 169],
            "top_logprobs": [{"token": "e", "logprob": -1, "bytes": [101]}],
        }
    ]  # fmt: skip
    assert openai_shared.parse_logprob({"token": "a", "logprob": 0, "top_logprobs": 7}) == TokenLogprob(
        "a", 0
    )
    for odd in (
        None,
        {},
        {"token": "a"},
        {"logprob": 1},
        {"token": "a", "logprob": "x"},
        {"token": 7, "logprob": 1},
    ):
        assert openai_shared.parse_logprob(odd) is None


@rows(
    ("start", "end", "own", "span"),
    [
        (1, 2, False, (1, 2)), (0, 0, False, (0, 0)), (None, None, True, (None, None)), (None, None, False, (0, 9)),
        (3, None, False, (3, 9)), (None, 4, False, (0, 4)), (3, None, True, (3, None)),
    ],
)  # fmt: skip
def test_a_citation_without_offsets_cites_the_whole_text(start: Any, end: Any, own: bool, span: Any) -> None:
    losses: list[Loss] = []
    found = openai_shared.cited_span(Citation("u", start=start, end=end), 9, own, "$.c", losses)
    assert found == span
    invented = [("$.c", "citations", "invented")]
    assert brief(losses) == (invented if not own and None in (start, end) else [])


@rows(
    ("shape", "grammar"),
    [
        ({"type": "grammar", "syntax": "lark", "definition": "d"}, Grammar("lark", "d")),
        ({"type": "grammar", "grammar": {"syntax": "regex", "definition": "d"}}, Grammar("regex", "d")),
        ({"type": "grammar", "definition": "d"}, Grammar("usual", "d")),
        ({"type": "grammar", "syntax": 7, "definition": "d"}, None),
        ({"type": "grammar", "syntax": "lark"}, None),
        ({"type": "text", "syntax": "lark", "definition": "d"}, None),
    ],
)
def test_the_grammar_of_a_freeform_tool(shape: dict[str, Any], grammar: Grammar | None) -> None:
    assert openai_shared.grammar_of(shape, "usual") == grammar
    if "syntax" not in shape and "grammar" not in shape:
        assert openai_shared.grammar_of(shape) is None


def test_freeform_tools_have_names_of_their_kind() -> None:
    hosted = HostedTool("web_search", Foreign("x", "custom", {}))
    assert openai_shared.custom_names((Tool("f"), Tool("g", kind="custom"), hosted)) == {"g"}


@rows(
    ("body", "is_own"),
    [
        ({"error": {"message": "m", "type": None}}, True),
        ({"error": {"message": "m", "code": "c"}}, True),
        ({"error": {"message": "m", "code": 404, "status": "NOT_FOUND"}}, False),
        ({"error": {"message": "m"}}, False),
        ({"error": {"message": 7, "type": "x"}}, False),
        ({"error": {"message": "m", "type": "x"}, "type": "error"}, False),
        ({"error": "m"}, False),
        ([], False),
    ],
)
def test_whose_envelope_an_error_is(body: Any, is_own: bool) -> None:
    assert openai_shared.owns_error(body) is is_own


@rows(
    ("error", "reported"),
    [
        (ApiError("server", "m", code="mine"), ("server_error", "mine")),
        (ApiError("server", "m", code="500"), ("server_error", "internal_error")),
        (ApiError("server", "m", code="Mine"), ("server_error", "internal_error")),
        (ApiError("server", "m", code="no-word"), ("server_error", "internal_error")),
        (ApiError("server", "m", code="é"), ("server_error", "internal_error")),
        (ApiError("server", "m", 501), ("server_error", "unsupported")),
        (ApiError("timeout", "m", 501), ("server_error", "upstream_timeout")),
        (ApiError("overloaded", "m", code="mine"), ("server_error", "server_is_overloaded")),
        (ApiError("overloaded", "m", code="slow_down"), ("server_error", "slow_down")),
        (ApiError("invalid_request", "m", code="slow_down"), ("invalid_request_error", None)),
        (ApiError("invalid_request", "m", code="mine"), ("invalid_request_error", "mine")),
        (ApiError("billing", "m", code="mine"), ("insufficient_quota", "mine")),
        (ApiError("permission", "m", code="mine"), ("permission_error", "mine")),
        (ApiError("rate_limit", "m", code="mine"), ("rate_limit_error", "mine")),
        (ApiError("auth", "m", code="mine"), ("invalid_request_error", "invalid_api_key")),
    ],
)
def test_the_type_and_code_of_an_error(error: ApiError, reported: tuple[str, str | None]) -> None:
    assert openai_shared.type_and_code(error) == reported


def test_an_error_object_both_ways() -> None:
    given = {"message": "m", "type": "rate_limit_error", "param": "p", "retry_after": 3}
    read = openai_shared.stated_error(given, "m", 429, "c", None, "req_1")
    expected = ApiError(
        "rate_limit", "m", 429, "rate_limit_error", "c", "p", retry_after=3.0, request_id="req_1"
    )
    assert read == expected
    assert openai_shared.envelope_object(read, "t", None) == {
        "message": "m",
        "type": "t",
        "param": "p",
        "code": None,
    }
    assert openai_shared.envelope_object(ApiError("auth", "m"), "t", "c")["param"] is None
    waits = [
        openai_shared.stated_wait({"retry_after": value}, "")
        for value in (0, 2**31 - 1, 2**31, -1, "3", True)
    ]
    assert waits == [0.0, 2.0**31 - 1, None, None, None, None]


COUNTS = {"input": 10, "output": 5}


@rows(
    ("counts", "problems"),
    [
        (COUNTS, []),
        ({**COUNTS, "read": 6, "written": 4}, []),
        ({**COUNTS, "read": 6, "written": 5}, ["cached_exceeds_input"]),
        ({"input": 1, "read": 2}, ["cached_exceeds_input"]),
        ({"read": 2, "output": 5, "total": 9}, []),
        ({**COUNTS, "total": 15, "reasoning": 5}, []),
        ({**COUNTS, "total": 16}, ["total_is_not_the_sum"]),
        ({**COUNTS, "total": 18, "reasoning": 3}, []),
        ({**COUNTS, "total": 21, "reasoning": 6}, []),
        ({**COUNTS, "reasoning": 6}, ["reasoning_exceeds_output"]),
        ({**COUNTS, "total": 15, "reasoning": 6}, ["reasoning_exceeds_output"]),
        ({**COUNTS, "total": 20, "reasoning": 6}, ["reasoning_exceeds_output", "total_is_not_the_sum"]),
    ],
)
def test_which_numbers_of_openai_agree(counts: dict[str, int], problems: list[str]) -> None:
    assert openai_shared.check_numbers(counts) == problems


# --- options of tools that a provider runs


def test_options_are_those_that_say_something() -> None:
    native = Foreign("x", "search", {})
    given = {"known": 1, "more": 2, "also": [1], "none": None, "empty": [], "blank": {}, "zero": 0}
    made = hosted_options.hosted_tool("web_search", native, {"a": 1, "b": None, "c": []}, given, ("known",))
    assert made == HostedTool("web_search", native, options={"a": 1}, untold=("also", "more", "zero"))


@rows(
    ("value", "place"),
    [
        ({"city": "C", "country": "", "timezone": 7, "other": "x"}, {"city": "C"}),
        ({"type": "approximate", "approximate": {"region": "R", "timezone": "T"}, "city": "C"}, {"region": "R", "timezone": "T"}),
        ({"approximate": 7, "country": "X"}, {"country": "X"}),
        ({}, {}),
        ("C", None),
    ],
)  # fmt: skip
def test_where_the_user_is_in_any_spelling(value: Any, place: dict[str, str] | None) -> None:
    assert hosted_options.place_of(value) == place


@rows(
    ("server", "action"),
    [
        (None, "dropped"),
        (McpServer("s", "u", rest=("more",)), "approximated"),
        (McpServer("s", "u"), "emulated"),
    ],
)
def test_the_server_of_a_tool(server: McpServer | None, action: str) -> None:
    losses: list[Loss] = []
    tool = HostedTool("mcp", Foreign("x", "mcp", {}), server)
    assert hosted_options.server_of(tool, "$.t", "as that", losses) is server
    assert brief(losses) == [("$.t", "hosted_tool", action)]


def test_what_of_a_tool_has_no_place() -> None:
    ids = {
        "vector_store_ids": ["v"],
        "deep": {"file_ids": ["f"], "size": 1},
        "empty": {"file_id": ""},
        "size": 3,
    }
    native = Foreign("x", "search", {**ids, "inner": {"container": "c", "list": [{"skill_id": "s"}]}})
    options = {"taken": 1, "size": 3, "deep": 1, "empty": 1}
    untold = ("vector_store_ids", "container", "list", "elsewhere")
    losses: list[Loss] = []
    hosted_options.lose_options(
        HostedTool("s", native, options=options, untold=untold), ("taken",), "$.t", losses
    )
    held, plain = ("file_reference", "dropped"), ("hosted_tool", "approximated")
    assert brief(losses) == [
        ("$.t.size", *plain), ("$.t.deep", *held), ("$.t.empty", *plain), ("$.t.vector_store_ids", *held),
        ("$.t.container", *held), ("$.t.list", *held), ("$.t.elsewhere", *plain),
    ]  # fmt: skip
    search = HostedTool("tool_search", native)
    assert brief([hosted_options.not_run(search, "$.t", "x")]) == [("$.t", "tool.deferred", "dropped")]
    other = hosted_options.not_run(HostedTool("search", native), "$.t", "x")
    assert (other.feature, other.action, other.detail) == ("hosted_tool", "dropped", "x")


# --- streamed arguments


@rows(
    ("text", "passed", "end", "form", "state"),
    [
        ('{"a":"open', '{"a":"open', '",', 'wrapped', 'o'),
        ('{"a":"back\\', '{"a":"back\\', '\\",', 'wrapped', 'o'),
        ('{"a":"uni\\u12', '{"a":"uni\\u12', '00",', 'wrapped', 'o'),
        ('{"k\\', '{"k\\', '\\":null,', 'wrapped', 'o'),
        ('{"a":tru', '{"a":tru', 'e,', 'wrapped', 'o'),
        ('{"a":fals', '{"a":fals', 'e,', 'wrapped', 'o'),
        ('{"a":n', '{"a":n', 'ull,', 'wrapped', 'o'),
        ('{"a":-', '{"a":-', '0,', 'wrapped', 'o'),
        ('{"a":1.', '{"a":1.', '0,', 'wrapped', 'o'),
        ('{"a":1e+', '{"a":1e+', '0,', 'wrapped', 'o'),
        ('{"a":12', '{"a":12', ',', 'wrapped', 'o'),
        ('{"a":true', '{"a":true', ',', 'wrapped', 'o'),
        ('{"a":[1,', '{"a":[1', '],', 'wrapped', 'ow'),
        ('{"a":{"b":1,', '{"a":{"b":1', '},', 'wrapped', 'ow'),
        ('{"a":{"b"', '{"a":{"b"', ':null},', 'wrapped', 'o'),
        ('{"a"', '{"a"', ':null,', 'wrapped', 'o'),
        ('{"a":', '{"a":', 'null,', 'wrapped', 'o'),
        ('{"a":1,', '{"a":1', ',', 'wrapped', 'ow'),
        ('{', '{', '', 'wrapped', 'o'),
        ('{"a":[', '{"a":[', '],', 'wrapped', 'o'),
        ('{"a":{', '{"a":{', '},', 'wrapped', 'o'),
        ('{"a":[{', '{"a":[{', '}],', 'wrapped', 'o'),
        ('{"a":[[1],{"b":[2', '{"a":[[1],{"b":[2', ']}],', 'wrapped', 'o'),
        ('{}x', '{', '', 'wrapped', 'obw'),
        ('{"a":1}x', '{"a":1', ',', 'wrapped', 'obw'),
        ('{"a":1}{"b":2}', '{"a":1', ',', 'wrapped', 'obw'),
        ('null', '', '', '', 'bw'),
        (' null\n', '', '', '', 'bw'),
        ('', '', '', '', ''),
        ('  ', '', '', '', ''),
        ('[1]', '', '{', 'wrapped', 'bw'),
        ('x', '', '{', 'wrapped', 'bw'),
        ('{"a":1,\x01"b":2}', '{"a":1,"b":2', '}', 'repaired', 'obw'),
        ('{"a":[1,\x01\x022]}', '{"a":[1,2]', '}', 'repaired', 'obw'),
        ('\x01{"a":1}', '{"a":1', '}', 'repaired', 'obw'),
        (' {"a":1} ', '{"a":1', '}', '', 'o'),
        ('{"a":01}', '{"a":0', ',', 'wrapped', 'obw'),
        ('{"a":1,}', '{"a":1', '}', 'repaired', 'obw'),
        ('{"a":[1, ] }', '{"a":[1] ', '}', 'repaired', 'obw'),
        ('{}{"a":1}', '{', '"a":1}', 'repaired', 'obw'),
        ('{"a":{"b":[]}}', '{"a":{"b":[]}', '}', '', 'o'),
        ('{"a":{},"b":[ ]}', '{"a":{},"b":[ ]', '}', '', 'o'),
        ('{"a":1e5}', '{"a":1e5', '}', '', 'o'),
        ('{"a":-0.5E-3 }', '{"a":-0.5E-3 ', '}', '', 'o'),
        ('{"a":"\\u00e9\\n"}', '{"a":"\\u00e9\\n"', '}', '', 'o'),
        ('{"a":"\\x"}', '{"a":"\\', '\\",', 'wrapped', 'obw'),
        ('{"a":nul1}', '{"a":nul', 'l,', 'wrapped', 'obw'),
        ('{"a":+1}', '{"a":', 'null,', 'wrapped', 'obw'),
        ('{"a" 1}', '{"a" ', ':null,', 'wrapped', 'obw'),
        ('{"a":1 2}', '{"a":1 ', ',', 'wrapped', 'obw'),
        ('{"a":[1}', '{"a":[1', '],', 'wrapped', 'obw'),
        ('{a}', '{', '', 'wrapped', 'obw'),
        ('{"a":"x\ny"}', '{"a":"x\\u000ay"', '}', 'repaired', 'obw'),
        ('{"a":1}}', '{"a":1', '}', 'repaired', 'obw'),
    ],
)  # fmt: skip
def test_streamed_arguments_are_brought_to_a_valid_end(
    text: str, passed: str, end: str, form: str, state: str
) -> None:
    """`state`: whether they are opened, bent, and wait. `end`: without what wraps the raw text."""
    whole = ArgumentStream()
    assert whole.feed(text) == passed
    assert [whole.opened, whole.is_bent, whole.waits] == [letter in state for letter in "obw"]
    rest = whole.finish()
    assert (rest.partition('"_parse_error"')[0], whole.form, whole.raw) == (end, form, text)
    if form == "wrapped":
        assert decode(passed + rest)["_raw"] == text
    else:
        assert rest == end
    cut = ArgumentStream()
    assert "".join(map(cut.feed, text)) + cut.finish() == passed + rest
    assert (cut.form, cut.raw) == (form, text)


HELD = (
    "connector_id", "container", "container_id", "file_id", "file_ids", "file_search_store_names", "fileSearchStoreNames",
    "ragCorpora", "ragResources", "rag_resources", "skill_id", "vector_store_ids",
)  # fmt: skip


@rows("name", [*HELD, "other_ids"])
@rows(("value", "says"), [("x", True), (["x"], True), ("", False), ([], False), ({}, False), (7, False)])
def test_an_option_that_names_what_its_vendor_holds(name: str, value: Any, says: bool) -> None:
    losses: list[Loss] = []
    tool = HostedTool("s", Foreign("x", "search", {name: value}), untold=(name,))
    hosted_options.lose_options(tool, (), "$.t", losses)
    feature = "file_reference" if says and name in HELD else "hosted_tool"
    assert [(loss.path, loss.feature) for loss in losses] == [(f"$.t.{name}", feature)]


# --- arguments that are fixed on their way


@rows(
    ("pieces", "passed", "form"),
    [
        (['{"a":', "1}"], ['{"a":', "1}", ""], ""),
        (['{"a":1', ",", "}"], ['{"a":1', "", "", "}"], "repaired"),
        (['{"a":1}', "}"], ['{"a":1}', "", ""], "repaired"),
        (['{"a":1}', " \n"], ['{"a":1}', " \n", ""], ""),
        (["{}", '{"a":1}'], ["", "", '{"a":1}'], "repaired"),
        (["{}"], ["", "{}"], ""),
        (['{"a":1', ",", '"b":2}'], ['{"a":1', "", ',"b":2}', ""], ""),
        (['{"a":1}', '{"b":2}'], ['{"a":1}', "", '{"b":2}'], ""),
        (["no", " words"], ["", "", "no words"], ""),
        (['{"a":"x', "\n", '"}'], ['{"a":"x', "", "", '\\u000a"}'], "repaired"),
        (["\n", '{"a":1,}'], ["\n", "", '{"a":1}'], "repaired"),
    ],
)  # fmt: skip
def test_arguments_pass_until_they_may_be_too_much(pieces: list[str], passed: list[str], form: str) -> None:
    arguments = MendedArguments()
    assert [*(arguments.feed(piece) for piece in pieces), arguments.finish()] == passed
    assert arguments.form == form


def test_calls_of_a_stream_are_fixed_and_nothing_else() -> None:
    losses: list[Loss] = []
    calls = MendedCalls(losses)
    untouched: list[Event] = [Delta(0, "x"), PartEnd(0)]
    assert calls.events(untouched) is untouched
    custom = PartStart(1, ToolCall("c", "f", '{"a":1,}', "custom"))
    came: list[Event] = [
        PartStart(0, ToolCall("c", "f", '{"a":1,')), custom, Delta(1, "{,}"), Delta(0, ""), Delta(0, " "), PartStart(2, Text("")),
        Delta(2, "{,}"), Delta(0, "}"), PartEnd(1), PartEnd(2), PartEnd(0),
    ]  # fmt: skip
    assert list(calls.events(iter(came))) == [
        PartStart(0, ToolCall("c", "f", "")), custom, Delta(1, "{,}"), Delta(0, ""), PartStart(2, Text("")), Delta(2, "{,}"), PartEnd(1), PartEnd(2),
        Delta(0, '{"a":1}'), PartEnd(0),
    ]  # fmt: skip
    assert brief(losses) == [("$.content[0].arguments", "tool_call.arguments", "approximated")]
    cut: list[Event] = [PartStart(3, ToolCall("c", "f", "")), Delta(3, "{,"), PartEnd(3, cut=True)]
    assert list(calls.events(cut))[1:] == [Delta(3, "{,"), PartEnd(3, cut=True)]
    assert calls.events(untouched) is untouched


# --- what passes through


@rows(
    ("data", "frames"),
    [
        (b"data: 1\n\n", [b"data: 1\n\n"]),
        (b"data: 1\n\ndata: 2\n\n", [b"data: 1\n\n", b"data: 2\n\n"]),
        (b"data: 1\n\ndata: 2", [b"data: 1\n\n", b"data: 2"]),
        (b"data: 1\r\n\r\n", [b"data: 1\r\n\r\n"]),
        (b"data: 1\r\n\r\ndata: 2\r\n\r\n", [b"data: 1\r\n\r\n", b"data: 2\r\n\r\n"]),
        (b"data: 1\r\rdata: 2\r\r", [b"data: 1\r\r", b"data: 2\r\r"]),
        (b"data: 1\r\n\r\ndata: 2\n\ndata: 3\r\r", [b"data: 1\r\n\r\n", b"data: 2\n\n", b"data: 3\r\r"]),
    ],
)
def test_frames_are_cut_behind_their_blank_lines(data: bytes, frames: list[bytes]) -> None:
    assert whole_frames(data) == frames


@rows(
    ("frame", "data"),
    [
        (b"data: 1\n\n", b"1"), (b"data:1\n\n", b"1"), (b"event: e\ndata: 1\n\n", b"1"), (b"data: 1\r\n\r\n", b"1"),
        (b"event: e\r\ndata: 1\r\n\r\n", b"1"), (b"data: 1\ndata: 2\n\n", b"1\n2"), (b"data: 1\r\ndata: 2\r\n\r\n", b"1\n2"),
        (b": ping\n\n", b""), (b"data: 1\nid: 2\n\n", b"1"), (b"id: 2\ndata: 1\n\n", b"1"), (b": data: 1\n\n", b""),
        (b"data: 1\r\r", b"1"), (b"event: data: 1\n\n", b""), (b"data: 1\r2\n\n", b"1"), (b"data: 1\n2\r\n\r\n", b"1"),
    ],
)  # fmt: skip
def test_the_data_of_a_frame(frame: bytes, data: bytes) -> None:
    assert event_of(frame) == data


def test_what_is_no_object_tells_nothing() -> None:
    assert [object_of(data) for data in (b'{"a":1}', b"[1]", b"{")] == [{"a": 1}, {}, {}]
    assert shaped(b'{"a":1}', lambda body: 7) == 7

    def wrong(body: bytes) -> int:
        raise RecursionError

    assert shaped(b'{"a":1}', wrong) is None
    for body in (b"[1]", b"{"):
        with pytest.raises(BadJson):
            shaped(body, wrong)
    places = (
        b'{"choices":[{',
        b'"content": "',
        b'"output":[',
        b'"steps":{',
        b'"candidates":[',
        b'"promptFeedback"',
    )
    assert [has_no_answer(place) for place in (*places, b'{"choices":[]}', b'"content":null')] == [
        False
    ] * 6 + [True] * 2


def frame_of(text: str, number: int = 1) -> bytes:
    return b'data: {"sequence_number":%d,"delta":"%b"}\n\n' % (number, text.encode())


@rows(
    ("data", "is_held"),
    [
        (frame_of("b", 22), True),
        (frame_of("b", 22) + frame_of("c", 23), True),
        (frame_of("b\\n\\u00e9é", 2), True),
        (frame_of("", 2), True),
        (frame_of("b\\x", 2), False),
        (frame_of("b\\u12", 2), False),
        (frame_of('b","more":"c', 2), False),
        (frame_of("\t", 2), False),
        (frame_of("\u2028", 2), True),
        (frame_of("b" * 200), False),
        (b'data: {"sequence_number":2,"delta":"\xff"}\n\n', False),
        (b'data: {"sequence_number":"2","delta":"b"}\n\n', False),
        (b'data: {"delta":"b","sequence_number":2}\n\n', False),
        (frame_of("b", 2)[:-1], False),
    ],
)
def test_a_frame_that_differs_in_its_words_only_is_known(data: bytes, is_held: bool) -> None:
    frames = RepeatedFrames(100)
    assert not frames.hold(data)
    frames.learn(frame_of("first") + frame_of("a"))
    assert frames.hold(data) is is_held


def test_frames_are_not_learned_in_vain_for_ever() -> None:
    frames = RepeatedFrames(100)
    for odd in (b": ping\n\n", b'data: {"a":1}\n\n', b"data: {"):
        frames.learn(odd)
    assert frames.shape is None
    frames.learn(frame_of("a"))
    assert frames.hold(frame_of("b"))
    for _ in range(4):
        frames.learn(frame_of("a", 3))
    frames.shape = None
    frames.learn(frame_of("a"))
    assert frames.shape is None, "four in a row that nothing was held by"
    crlf = RepeatedFrames(100)
    crlf.learn(frame_of("a").replace(b"\n", b"\r\n"))
    assert crlf.hold(frame_of("b").replace(b"\n", b"\r\n"))


# --- fields that nobody knows


def test_unknown_fields_stay_with_their_object() -> None:
    plain, deep = UnknownFields("d"), UnknownFields("d", deep=True)
    known = frozenset({"a", "b"})
    assert plain.keep({"a": 1}, known) is None
    assert plain.keep({"a": None, "x": 2}, known) == Extra("d", {"a": None, "x": 2})
    assert plain.keep({"a": ""}, known, blanks=("a", "b")) == Extra("d", {}, {"blank": {"a": ""}})
    assert plain.keep({"a": 0}, known, blanks=("a",)) is None
    assert plain.keep({"a": 1}, known, {"f": 1}, always=("a", "b")) == Extra(
        "d", {}, {"f": 1, "without": ["b"]}
    )
    inner = ({"y": 1, "a": 2}, frozenset({"a"}))
    assert plain.keep({"a": 1}, known, nested={"n": inner}) == Extra("d", {"n.y": 1})
    assert plain.keep({"a": 1}, known, nested={"n": ({"a": 2}, frozenset({"a"}))}) is None
    assert plain.keep({"a": 1}, known, nested={"n": ({"a": None}, frozenset({"a"}))}) == Extra(
        "d", {"n.a": None}
    )
    assert plain.keep({"x": {"y": []}}, known) == Extra("d", {"x": {"y": []}})
    assert deep.keep({"x": {"y": []}, "z": {"y": 1}, "w": {}}, known) == Extra(
        "d", {"z": {"y": 1}, "w": {}}, {"rest": {"x": {"y": []}}}
    )


@rows(
    ("out", "extra", "shallow", "deep"),
    [
        ({"a": 1}, Extra("d", {"x": 2}), {"a": 1, "x": 2}, {"a": 1, "x": 2}),
        ({"a": 1}, Extra("d", {"a": 2}), {"a": 1}, {"a": 1}),
        (
            {"a": {"b": 1}},
            Extra("d", {"a": {"b": 2, "c": 3}}),
            {"a": {"b": 1, "c": 3}},
            {"a": {"b": 1, "c": 3}},
        ),
        ({"a": {"b": 1}}, Extra("d", {"a.c": 3}), {"a": {"b": 1}, "a.c": 3}, {"a": {"b": 1, "c": 3}}),
        ({"a": {"b": {}}}, Extra("d", {"a.b.c": 3}), {"a": {"b": {}}, "a.b.c": 3}, {"a": {"b": {"c": 3}}}),
        ({"a": 1}, Extra("d", {"a.c": 3}), {"a": 1, "a.c": 3}, {"a": 1, "a.c": 3}),
        ({"a": 1, "type": "t", "b": ""}, Extra("d", {}, {"without": ["a", "type", "b"]}), {"a": 1}, {"a": 1}),
        ({"a": ""}, Extra("d", {}, {"blank": {"a": [], "b": []}}), {"a": "", "b": []}, {"a": [], "b": []}),
        (
            {"a": 1},
            Extra("d", {}, {"rest": {"x": {"y": []}}}),
            {"a": 1, "x": {"y": []}},
            {"a": 1, "x": {"y": []}},
        ),
        ({"a": 1}, Extra("d", {}, {"blank": 7}), {"a": 1}, {"a": 1}),
        ({"a": 1}, Extra("e", {"x": 2}), {"a": 1}, {"a": 1}),
        ({"a": 1}, None, {"a": 1}, {"a": 1}),
    ],
)
def test_what_was_kept_is_put_back(out: dict[str, Any], extra: Extra | None, shallow: Any, deep: Any) -> None:
    copies = [
        {key: dict(value) if type(value) is dict else value for key, value in out.items()} for _ in range(2)
    ]
    assert UnknownFields("d").put_back(copies[0], extra) == shallow
    if out != {"a": {"b": {}}}:
        assert UnknownFields("d", deep=True, over_blanks=True).put_back(copies[1], extra) == deep


def test_objects_are_joined_and_blank_ones_told_apart() -> None:
    assert merge({"a": 1, "o": {"x": 1}}, {"a": 2, "b": 3, "o": {"x": 2, "y": 3}}) == {
        "a": 1, "b": 3, "o": {"x": 1, "y": 3},
    }  # fmt: skip
    assert merge({"o": 1}, {"o": {"x": 2}}) == {"o": 1}
    hollow: tuple[Any, ...] = (None, "", 0, [], {}, {"a": [{}, ""]}, [None, {"b": False}])
    assert all(map(is_hollow, hollow))
    assert not any(map(is_hollow, ("x", 1, [0, 1], {"a": {"b": "c"}}, True)))
    assert split_blank({"a": 1, "b": None, "c": [], "d": "x"}) == ({"a": 1, "d": "x"}, {"b": None, "c": []})


# --- regular fields of requests

TABLE = RequestFields(
    F("model", "model", TEXT),
    F("max", "max_tokens", INTEGER, also=("most",)),
    F("stop", "stop", TEXTS),
    F("stream", "stream", BOOLEAN, apart=True),
    F("parallel", "parallel_tools", BOOLEAN, usual=True),
    F("seed", "sampling.seed", INTEGER),
    inside="config.",
)


@rows(
    ("given", "settings", "known", "written"),
    [
        ({}, {"model": ""}, set(), {}),
        ({"model": "m", "max": 5, "stop": ["x"], "stream": True, "seed": 1},
         {"model": "m", "max_tokens": 5, "stop": ("x",), "stream": True, "seed": 1}, {"model", "stop"},
         {"model": "m", "max": 5, "stop": ["x"], "seed": 1}),
        ({"model": "", "stop": [], "max": None, "parallel": True, "other": 1}, {"model": ""}, set(), {}),
        ({"parallel": False, "max": 5.0}, {"model": "", "parallel_tools": False, "max_tokens": 5}, {"parallel"},
         {"parallel": False, "max": 5}),
    ],
)  # fmt: skip
def test_regular_fields_both_ways(
    given: Any, settings: Any, known: set[str], written: dict[str, Any]
) -> None:
    seen: set[str] = set()
    read = TABLE.read(Fields(given), seen)
    sampling = read.pop("sampling")
    seed = {"seed": sampling.seed} if sampling.seed is not None else {}
    assert ({**read, **seed}, seen) == (settings, known)
    out: dict[str, Any] = {}
    TABLE.write(Request(messages=(), sampling=sampling, **read), out)
    assert out == written


def test_a_table_of_fields_knows_their_places() -> None:
    assert TABLE.names == {"model", "max", "stop", "stream", "parallel", "seed"}
    assert TABLE.known == {"max", "stream", "seed"}
    assert TABLE.places == {
        "model": ("config.model",), "max_tokens": ("config.max", "config.most"), "stop": ("config.stop",),
        "stream": ("config.stream",), "parallel_tools": ("config.parallel",), "sampling.seed": ("config.seed",),
    }  # fmt: skip
    assert RequestFields(F("model", "model", TEXT)).places == {}
    out: dict[str, Any] = {}
    TABLE.write(Request("m", (), parallel_tools=True), out, {"model": "name"})
    assert out == {"name": "m"}
    with pytest.raises(WireglotError):
        TABLE.read(Fields({"max": "many"}), set())


# --- ids and names


def test_ids_that_are_made_up_here() -> None:
    one, other = Context(seed="a"), Context(seed="b")
    made = one.new_id("call", "x", "y")
    assert made == one.new_id("call", "x", "y")
    assert (
        len({made, other.new_id("call", "x", "y"), one.new_id("call", "xy"), one.new_id("toolu", "x", "y")})
        == 4
    )
    assert one.lasting_id("call", "x") == other.lasting_id("call", "x") != one.lasting_id("call", "y")
    assert made.startswith("call_wg")
    assert len(made) == len("call_wg") + 22
    assert is_minted(made)
    assert not any(map(is_minted, (made + "0", made[:-1], made.upper(), "wg", made.replace("call", ""))))


def test_the_model_that_an_answer_names() -> None:
    asked = Request("asked", ())
    assert reported_model("own", Context(model="c"), asked) == "own"
    assert reported_model("", Context(model="c"), asked) == "asked"
    assert (
        reported_model("", Context(model="c"), Request("", ()))
        == reported_model("", Context(model="c"), None)
        == "c"
    )


# --- lists of models


DETAILED = {
    "name": "qwen3:8b", "model": "qwen3:8b", "modified_at": "2026-01-02T03:04:05Z", "size": 5, "digest": "d" * 300,
    "capabilities": ["completion", "tools", "vision", 7],
    "details": {
        "format": "gguf", "family": "qwen3", "parameter_size": "8.2B", "quantization_level": "Q4", "context_length": 40960,
        "embedding_length": 4096,
    },
}  # fmt: skip


@rows(
    ("entry", "model"),
    [
        ({"id": "a"}, UpstreamModel("a")),
        ({"name": "models/a", "displayName": "A", "inputTokenLimit": 5, "outputTokenLimit": 6}, UpstreamModel("a", "A", 5, 6)),
        ({"name": "models/a", "supportedGenerationMethods": ["generateContent"]}, UpstreamModel("a")),
        ({"name": "models/a", "supportedGenerationMethods": ["embedContent"]}, None),
        ({"id": "a", "name": "The A"}, UpstreamModel("a", "The A")),
        ({"id": "a", "display_name": "B" * 300, "displayName": "C"}, UpstreamModel("a", "B" * 256)),
        ({"id": "a", "display_name": "a", "displayName": 7, "name": ""}, UpstreamModel("a")),
        ({"id": "a b", "name": "c"}, UpstreamModel("c")),
        ({"id": "a\n", "model": "c"}, UpstreamModel("c")),
        *(({"id": "a", key: 7}, UpstreamModel("a", context=7)) for key in (
            "context_length", "context_window", "max_model_len", "max_context_length", "max_input_tokens", "inputTokenLimit",
        )),
        *(({"id": "a", key: 7}, UpstreamModel("a", output=7)) for key in (
            "max_output_tokens", "max_completion_tokens", "outputTokenLimit", "max_tokens",
        )),
        ({"id": "a", "context_length": 0, "context_window": 8, "max_tokens": True, "max_output_tokens": "9"},
         UpstreamModel("a", context=8)),
        *(({"id": "a", "type": kind}, None) for kind in (
            "embedding", "embeddings", "rerank", "moderation", "image", "audio", "video",
        )),
        ({"id": "a", "type": "model"}, UpstreamModel("a")),
        ({"id": "a", "type": 7, "capabilities": ["fast"]}, UpstreamModel("a")),
        ({"id": "a", "capabilities": {"completion": True}, "details": 7}, UpstreamModel("a")),
        ({"id": "a", "capabilities": ["embedding"]}, UpstreamModel("a", can=frozenset({"embedding"}))),
        (DETAILED, UpstreamModel(
            "qwen3:8b", "", 40960, 0, 4096, frozenset({"completion", "tools", "vision"}),
            ModelFile(5, "d" * 256, "2026-01-02T03:04:05Z", "gguf", "qwen3", "8.2B", "Q4"),
        )),
        ({**DETAILED, "context_length": 9, "size": "5", "digest": 7, "details": {"family": 7}, "capabilities": None},
         UpstreamModel("qwen3:8b", context=9, file=ModelFile(modified="2026-01-02T03:04:05Z"))),
    ],
)  # fmt: skip
def test_what_a_server_says_of_a_model(entry: dict[str, Any], model: UpstreamModel | None) -> None:
    for document in ([entry], {"data": [entry], "models": []}, {"models": [entry]}):
        assert read_list(document, 1) == (() if model is None else (model,))


@rows(
    ("can", "embeds", "media", "thinks", "calls"),
    [
        (None, False, (), True, True),
        ({"completion", "tools", "vision", "audio"}, False, ("image", "audio"), False, True),
        ({"embedding"}, True, (), False, False),
        ({"embedding", "completion", "thinking"}, False, (), True, False),
    ],
)
def test_what_a_model_can(can: set[str] | None, embeds: bool, media: Any, thinks: bool, calls: bool) -> None:
    words = None if can is None else frozenset(can)
    listed = UpstreamModel("a", can=words)
    assert (listed.embeds, listed.media) == (embeds, media)
    shown = ListedModel("a", "p", thinking="on", can=words)
    assert (shown.thinks, shown.calls_tools) == (thinks, calls)
    assert not ListedModel("a", "p", embeds=True).calls_tools
    assert not ListedModel("a", "p").thinks
