"""Errors of the gateway's own making: their status, code and headers."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from tests.tiers import rows
from wireglot.gateway.errors import (
    ErrorClass,
    RequestError,
    cleaned,
    error_headers,
    invalid_value,
    refusal,
    with_request_errors,
)
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Extra
from wireglot_core.ir.errors import ApiError, ClientFault, Unsupported
from wireglot_core.wire.json import decode

CLASSES: dict[str, tuple[str, int, str]] = {
    "bad": ("invalid_request", 400, ""),
    "auth": ("auth", 401, "invalid_api_key"),
    "permission": ("permission", 403, ""),
    "not_found": ("not_found", 404, "model_not_found"),
    "conflict": ("conflict", 409, "idempotency_conflict"),
    "too_large": ("too_large", 413, "request_too_large"),
    "media": ("invalid_request", 415, "unsupported_media_type"),
    "rate": ("rate_limit", 429, "rate_limit_exceeded"),
    "shed": ("overloaded", 503, "server_is_overloaded"),
    "internal": ("server", 500, "internal_error"),
    "upstream_bad": ("server", 502, "upstream_error"),
    "upstream_down": ("server", 503, "upstream_unavailable"),
    "upstream_timeout": ("timeout", 504, "upstream_timeout"),
    "upstream_auth": ("server", 502, "upstream_auth_failed"),
}


def test_a_field_that_is_wrong_is_named() -> None:
    error = invalid_value("limit", "a number").error
    assert (error.message, error.code, error.param) == ("limit: expected a number", "invalid_value", "limit")


@rows("kind", get_args(ErrorClass))
def test_each_class_has_its_status_and_code(kind: Any) -> None:
    error = RequestError(kind, "why").error
    assert (error.kind, error.status, error.code) == CLASSES[kind]
    assert RequestError(kind, "why", code="mine").error.code == "mine"


@rows(
    ("error", "status", "headers"),
    [
        (ApiError("server", "x"), 500, {}),
        (ApiError("rate_limit", "x"), 429, {"retry-after": "1"}),
        (ApiError("overloaded", "x"), 503, {"retry-after": "2"}),
        (ApiError("overloaded", "x"), 529, {"retry-after": "2"}),
        (ApiError("server", "x", retry_after=0.2), 500, {"retry-after": "1"}),
        (ApiError("server", "x", retry_after=2.6), 500, {"retry-after": "3"}),
        (ApiError("rate_limit", "x", retry_after=119), 429, {"retry-after": "119"}),
        (ApiError("rate_limit", "x", retry_after=121), 429, {"retry-after": "120"}),
        (
            ApiError("rate_limit", "x", retry_after=9999, code="insufficient_quota"),
            429,
            {"retry-after": "9999"},
        ),
        (ApiError("auth", "x"), 401, {"www-authenticate": "Bearer", "x-should-retry": "false"}),
        (ApiError("server", "x"), 501, {"x-should-retry": "false"}),
    ],
)
def test_what_the_headers_of_an_error_say(error: ApiError, status: int, headers: dict[str, str]) -> None:
    assert dict(error_headers(error, status)) == headers
    assert dict(error_headers(error, status, final=True)) == {**headers, "x-should-retry": "false"}


def test_a_refusal_is_in_the_words_of_its_dialect() -> None:
    made = refusal(RequestError("shed", "no room").error, "anthropic", "req_1", close=True)
    assert (made.status, made.close) == (529, True)
    assert decode(made.body)["request_id"] == "req_1"
    assert made.headers[0] == ("content-type", "application/json")
    chat = refusal(RequestError("bad", "no", param="p").error, "openai-chat")
    assert (chat.status, chat.close, decode(chat.body)["error"]["param"]) == (400, False, "p")
    own = refusal(ApiError("server", "x", request_id="theirs"), "anthropic", "req_1")
    assert decode(own.body)["request_id"] == "theirs"


def test_every_field_of_an_error_is_cleaned() -> None:
    error = ApiError("server", "a", type="b", code="c", param="d", extra=Extra("x", {"y": 1}))
    made = cleaned(error, lambda text: f"<{text}>")
    assert (made.message, made.type, made.code, made.param, made.extra) == ("<a>", "<b>", "<c>", "<d>", None)


@rows(
    ("fault", "code", "message", "param"),
    [
        (Unsupported("no audio", "$.messages[0]"), "unsupported", "messages[0]: no audio", "messages[0]"),
        (ClientFault("no number", "$.n"), "invalid_value", "n: no number", "n"),
        (ClientFault("no object", "$"), "invalid_value", "no object", ""),
        (RecursionError(), "json_too_deep", "", ""),
    ],
)
def test_what_is_wrong_with_a_request_names_its_place(
    fault: Exception, code: str, message: str, param: str
) -> None:
    def action() -> None:
        raise fault

    with pytest.raises(RequestError) as raised:
        with_request_errors(action)
    error = raised.value.error
    assert (error.status, error.code, error.param) == (400, code, param)
    assert error.message == message or not message
    assert with_request_errors(lambda: 7) == 7


def test_another_status_for_what_http_has_a_word_for() -> None:
    error = RequestError("bad", "no").with_status(426)
    assert (error.error.status, error.error.message) == (426, "no")


@pytest.mark.parametrize(
    "code",
    [
        *("session_not_found", "losses_not_found", "exchange_not_found", "not_recorded", "no_picture"),
        *("unknown_url", "not_served"),
    ],
)
def test_what_another_gateway_of_ours_does_not_have_is_not_found(code: str) -> None:
    refused = RequestError("not_found", "m", code=code).error
    for name in ("openai-chat", "openai-responses"):
        read = dialect(name).parse_error({"error": {"code": refused.code, "message": "m", "type": "x"}}, 500)
        assert read is not None
        assert read.kind == refused.kind == "not_found"
