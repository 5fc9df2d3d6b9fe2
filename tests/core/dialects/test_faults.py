"""What errors of all providers have in common, and OpenAI's tables."""

from typing import get_args

import pytest
from msgspec.structs import replace

from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.faults import (
    bare_message,
    is_context_overflow,
    is_page,
    kind_of_message,
    kind_of_status,
    page_message,
    stated_message,
    wait_in_message,
)
from wireglot_core.dialects.openai_shared import kind_of_envelope, stated_wait, type_and_code
from wireglot_core.dialects.registry import NAMES, dialect
from wireglot_core.ir.errors import ApiError, ErrorKind

OVERFLOWS = [
    "prompt is too long: 210000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "Input is too long for requested model.",
    "This model's maximum context length is 128,000 tokens. However, your messages resulted in 140000 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).",
    "prompt token count of 70000 exceeds the limit of 64000",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Please reduce the length of the messages or completion.",
    "the request exceeds the available context size, try increasing it",
    "The number of tokens to keep from the initial prompt is greater than the context length.",
    "invalid params, context window exceeds limit",
    "Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)",
    "The total length of all messages is too long.",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "The input (50000 tokens) is longer than the model's context length (32768 tokens).",
    "Prompt exceeds max length",
    "The request size (31457280 bytes) exceeds 30 MB limit.",
    "The message size 31457280 bytes exceeds 30 MB limit.",
    "prompt too long; exceeded max context length by 12 tokens",
    "prompt has 9000 tokens, but the configured context size is 8192 tokens",
    "Range of input length should be [1, 129024]",
    "Requested tokens (5000) exceed context window of 4096",
    "context_length_exceeded",
    "too many tokens",
    "Token limit exceeded: 9000 of 8192",
    "exceeds the model token limit",
    "more than max tokens allowed",
    "too many prompt tokens",
    "the messages are too long",
    "exceeds the maximum allowed input length",
    "exceeds the max number of input tokens",
    "reached the max input tokens",
    "the context_length is only 4096",
    "context size of 4096",
    "the context window will overflow",
]
OTHERS = [
    "Too many tokens, please wait before trying again.",
    "This request would exceed your organization's rate limit of 30,000 input tokens per minute.",
    "Throttling error: Too many tokens, try again later",
    "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000. Please reduce the length of it.",
    "You exceeded your current quota: the input token count exceeds your plan.",
    "max_tokens: 99999 > 8192, which is the maximum allowed number of output tokens",
    "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64",
    "The long context window is not available for this subscription",
    "max_tokens must be smaller than the context length",
    "messages.3: tool_use ids were found without tool_result blocks",
    "",
]


@rows("message", OVERFLOWS)
def test_an_overflow_is_recognised_in_every_providers_words(message):
    """R-DD-02"""
    assert is_context_overflow(message)
    assert kind_of_message("invalid_request", message) == "context_overflow"


@rows("message", OTHERS)
def test_throttling_and_other_limits_are_no_overflow(message):
    """R-DD-02"""
    assert not is_context_overflow(message)


@rows("kind", sorted(set(get_args(ErrorKind)) - {"invalid_request", "too_large", "server"}))
def test_words_do_not_overrule_a_kind_that_is_certain(kind):
    assert kind_of_message(kind, "prompt is too long; content policy") == kind


@rows("name", NAMES)
def test_a_wrong_key_is_one_also_where_a_host_calls_it_a_bad_request(name):
    """xAI, in its own envelope."""
    said = "Incorrect API key provided: gs***tF. You can obtain an API key from https://console.x.ai."
    body = {"code": "Client specified an invalid argument", "error": said}
    error = dialect(name).parse_error(body, 400)
    assert error is not None
    assert (error.kind, error.message) == ("auth", said)
    quoting = {"error": {"message": "messages[0]: 'Incorrect API key provided' is no content"}}
    other = dialect(name).parse_error(quoting, 400)
    assert other is not None
    assert other.kind == "invalid_request"


@rows("name", NAMES)
@rows("message", [OVERFLOWS[0], OVERFLOWS[3], OVERFLOWS[5]])
@rows("status", [400, 413, 500])
def test_every_dialect_recognises_the_overflow_of_every_other(name, message, status):
    for body in ({"error": {"message": message}}, {"message": message}, message):
        error = dialect(name).parse_error(body, status)
        assert error is not None
        assert (error.kind, error.message) == ("context_overflow", message)


@rows(
    ("status", "kind"),
    [
        (0, "server"),
        (200, "server"),
        (400, "invalid_request"),
        (401, "auth"),
        (402, "billing"),
        (403, "permission"),
        (404, "not_found"),
        (405, "invalid_request"),
        (408, "timeout"),
        (409, "conflict"),
        (413, "too_large"),
        (415, "invalid_request"),
        (418, "invalid_request"),
        (422, "invalid_request"),
        (429, "rate_limit"),
        (499, "server"),
        (500, "server"),
        (502, "server"),
        (503, "overloaded"),
        (504, "timeout"),
        (524, "timeout"),
        (529, "overloaded"),
        (599, "server"),
    ],
)
def test_a_status_alone_tells_the_kind(status, kind):
    """R-DD-01"""
    assert kind_of_status(status) == kind


PAGES = [
    ("<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><center><h1>x</h1>", "502 Bad Gateway"),
    ("\ufeff<!DOCTYPE html><h1 class='a'>Too <b>busy</b> &amp; tired</h1><p>more", "Too busy & tired"),
    ("<html><head><title>502</title></head><body>Bad Gateway</body></html>", "502 Bad Gateway"),
    ("<html><style>b{}</style><body>Down<script>go('<b>')</script><!-- no --> today</body>", "Down today"),
    ("<html><body>Down<script>never closed", "Down"),
    (
        "<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>No</Message></Error>",
        "AccessDenied No",
    ),
]


@rows("name", NAMES)
@rows(("page", "reported"), PAGES)
def test_a_page_of_a_proxy_becomes_a_readable_message(page, reported, name):
    """R-DD-06"""
    assert is_page(page)
    assert page_message(page) == f"the upstream answered with a web page: {reported}"
    error = dialect(name).parse_error(page, 502)
    assert error is not None
    assert (error.kind, error.message) == ("server", page_message(page))


def test_a_page_that_says_nothing_or_too_much_is_still_one_short_line():
    assert page_message("<html></html>") == "the upstream answered with a web page"
    for page in (
        "<html>" + "words " * 99_999,
        "<title>" * 50_000,
        "<html>" + "<script" * 50_000,
        "<" * 99_999,
    ):
        assert len(page_message(page)) < 300
        assert "<" not in page_message(page)


@rows(
    ("markup", "shown"),
    [
        ("a <b>c</b>", "a c"),
        *[
            (f"a {opened}hidden{closed} b", "a b" if closed else "a")
            for opened, closed in (
                ("<script>", "</script>"), ("<SCRIPT src='x'>", "</Script >"), ("<style>", "</style>"), ("<!--", "-->"),
                ("<!-- <p>", "</p> -->"), ("<script>", ""), ("<style>", ""), ("<!--", ""), ("<script>", "</style>x</script>"),
            )
        ],
    ],
)  # fmt: skip
def test_what_a_page_does_not_show_is_not_reported(markup, shown):
    assert page_message(f"<html>{markup}") == f"the upstream answered with a web page: {shown}"


@rows("text", ["", "upstream <html> error", "<upstream> is down", "{}", "<header-like>"])
def test_text_that_only_looks_like_markup_is_no_page(text):
    assert not is_page(text)


@rows(
    ("body", "message"),
    [
        ("  busy ", "busy"),
        (b"bytes \xff", "bytes �"),
        ("", "the upstream answered with status 503"),
        (None, "the upstream answered with status 503"),
        ([], "the upstream answered with status 503"),
        (["a"], '["a"]'),
    ],
)
def test_a_body_that_is_no_object_has_a_message(body, message):
    assert bare_message(body, 503) == message


@rows(
    ("error", "message"),
    [
        ({"message": "a", "detail": "b"}, "a"),
        ({"message": "", "Message": "b"}, "b"),
        ({"detail": [{"loc": ["body"], "msg": "field required"}]}, "field required"),
        ({"detail": {"why": 1}}, '{"why":1}'),
        ({"message": 5, "title": "t"}, "t"),
        ({}, ""),
    ],
)
def test_a_message_is_found_under_any_of_its_names(error, message):
    assert stated_message(error) == message


@rows(
    ("text", "seconds"),
    [
        ("Please try again in 7s.", 7.0),
        ("try again in 250ms", 0.25),
        ("try again in 1m30s", 90.0),
        ("try again in 2m", 120.0),
        ("try again in 1h0m1.5s", 3601.5),
        ("Please retry in 12s.", 12.0),
        ("Please retry after 26 seconds.", 26.0),
        ("please try again after 1 seconds", 1.0),
        ("try again in 5 sessions", None),
        ("try again later", None),
        ("", None),
    ],
)
def test_the_wait_is_read_from_the_message(text, seconds):
    assert wait_in_message(text) == seconds


@rows(
    ("error", "seconds"),
    [
        ({"retry_after": 3}, 3.0),
        ({"resets_in_seconds": 60}, 60.0),
        ({"retry_after": -1}, 7.0),
        ({"retry_after": True}, 7.0),
        ({"retry_after": "soon"}, 7.0),
        ({}, 7.0),
    ],
)
def test_a_stated_wait_wins_over_words_if_it_makes_sense(error, seconds):
    assert stated_wait(error, "try again in 7s") == seconds


@rows(
    ("type_name", "code", "status", "kind"),
    [
        ("invalid_request_error", "", 404, "not_found"),
        ("invalid_request_error", "", 500, "invalid_request"),
        ("invalid_request_error", "", 0, "invalid_request"),
        ("rate_limit_error", "insufficient_quota", 429, "billing"),
        ("engine_overloaded_error", "", 429, "overloaded"),
        ("", "DeploymentNotFound", 400, "not_found"),
        ("unheard_of", "unheard_of", 401, "auth"),
    ],
)
def test_code_then_type_then_status_tell_what_an_openai_error_is(type_name, code, status, kind):
    assert kind_of_envelope(type_name, code, status, "") == kind


@rows("kind", get_args(ErrorKind))
@rows("code", ["", "rate_limit_exceeded", "upstream_error", "UNAVAILABLE", "invalid_api_key"])
def test_what_the_openai_envelope_tells_is_understood_again(kind, code):
    """The tables mirror each other, and a raw code never changes the kind."""
    type_name, reported = type_and_code(ApiError(kind, "m", code=code))
    assert kind_of_envelope(type_name, reported or "", 0, "m") == kind


# --- what an upstream does not support

UNSUPPORTED = {
    "anthropic": {
        "type": "error",
        "error": {"type": "not_supported", "message": "no"},
        "request_id": None,
    },
    "openai-chat": {"error": {"message": "no", "type": "server_error", "code": "unsupported", "param": None}},
    "openai-responses": {
        "error": {"message": "no", "type": "server_error", "code": "unsupported", "param": None}
    },
    "gemini": {"error": {"code": 501, "message": "no", "status": "UNIMPLEMENTED"}},
}


@pytest.mark.parametrize("target", UNSUPPORTED)
@pytest.mark.parametrize("source", UNSUPPORTED)
def test_what_is_not_implemented_is_a_501_in_every_dialect(source, target):
    error = dialect(source).parse_error(UNSUPPORTED[source], 501)
    assert error is not None
    assert (error.kind, error.status) == ("server", 501)
    assert dialect(target).surface.status(error) == 501
    rendered = dialect(target).render_error(replace(error, extra=None), Context()).value
    rendered["error"].pop("details", None)  # Google has a place for the code of others
    assert rendered == UNSUPPORTED[target]


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
def test_what_is_not_implemented_is_known_without_its_status(name):
    """Streams have none. OpenAI's envelope has a code for it, which is no promise of a status."""
    body = (
        UNSUPPORTED[name] if name == "anthropic" else {"error": {"message": "no", "status": "UNIMPLEMENTED"}}
    )
    error = dialect(name).parse_error(body, 0)
    assert error is not None
    assert (error.kind, error.status) == ("server", 501)
