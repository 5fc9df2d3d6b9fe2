"""Errors in every shape they come in."""

import pytest

from tests.core.dialects.openai_responses.wire import CONTEXT
from tests.tiers import rows
from wireglot_core.dialects.openai_responses import DIALECT
from wireglot_core.ir.content import Extra
from wireglot_core.ir.errors import ApiError


def envelope(message="m", type="invalid_request_error", code=None, param=None):
    return {"error": {"message": message, "type": type, "code": code, "param": param}}


@rows(
    ("body", "status", "kind"),
    [
        (envelope(), 400, "invalid_request"),
        (envelope(code="context_length_exceeded"), 400, "context_overflow"),
        (envelope("This model's maximum context length is 8192 tokens"), 400, "context_overflow"),
        (envelope(code="invalid_api_key"), 401, "auth"),
        (envelope(type="insufficient_quota", code="insufficient_quota"), 429, "billing"),
        (envelope(code="model_not_found"), 400, "not_found"),
        (envelope(type="tokens", code="rate_limit_exceeded"), 429, "rate_limit"),
        (envelope(type="server_error", code="server_is_overloaded"), 503, "overloaded"),
        (envelope(type="server_error"), 500, "server"),
        (envelope("your prompt was flagged as violating our usage policy", code="invalid_prompt"), 400, "content_policy"),
        (envelope(code="upstream_timeout", type="server_error"), 504, "timeout"),
        ({"detail": "The model is not supported"}, 400, "invalid_request"),
        ({"error": "Bad credentials"}, 401, "auth"),
        ({"code": "x", "error": "too many"}, 429, "rate_limit"),
        ({"message": "flat"}, 403, "permission"),
        ([{"error": {"message": "in a list", "code": 7}}], 404, "not_found"),
        ("<html>502 Bad Gateway</html>", 502, "server"),
        ("", 504, "timeout"),
        (None, 413, "too_large"),
        ({"id": "resp_1", "status": "failed", "error": {"code": "rate_limit_exceeded", "message": "m"}}, 200, "rate_limit"),
        ({"id": "resp_1", "status": "failed", "error": None}, 200, "server"),
        ({"id": "resp_1", "status": "failed", "error": {"code": "invalid_image", "message": "m"}}, 200, "invalid_request"),
    ],
)  # fmt: skip
def test_errors_are_understood(body, status, kind):
    error = DIALECT.parse_error(body, status)
    assert error is not None
    assert error.kind == kind
    assert error.message
    assert "<html>" not in error.message
    if isinstance(body, dict):
        assert DIALECT.render_error(error, CONTEXT).value == body


@pytest.mark.parametrize(
    "body", [{"id": "resp_1", "error": None, "status": "completed"}, {}, {"status": "incomplete"}, "text"]
)
def test_an_answer_is_no_error(body):
    assert DIALECT.parse_error(body, 200) is None
    assert DIALECT.parse_error(body) is None


@rows(
    ("kind", "type", "code"),
    [
        ("invalid_request", "invalid_request_error", None),
        ("context_overflow", "invalid_request_error", "context_length_exceeded"),
        ("auth", "invalid_request_error", "invalid_api_key"),
        ("billing", "insufficient_quota", "insufficient_quota"),
        ("permission", "permission_error", None),
        ("not_found", "invalid_request_error", "model_not_found"),
        ("conflict", "invalid_request_error", "idempotency_conflict"),
        ("too_large", "invalid_request_error", "request_too_large"),
        ("rate_limit", "rate_limit_error", "rate_limit_exceeded"),
        ("overloaded", "server_error", "server_is_overloaded"),
        ("server", "server_error", "internal_error"),
        ("timeout", "server_error", "upstream_timeout"),
        ("content_policy", "invalid_request_error", "content_policy_violation"),
    ],
)
def test_the_envelope_of_each_kind(kind, type, code):
    error = ApiError(kind, "m", extra=Extra("anthropic", form={"body": {}}))
    assert DIALECT.render_error(error, CONTEXT).value == envelope(type=type, code=code)


def test_the_gateways_own_codes_are_kept():
    assert (
        DIALECT.render_error(ApiError("server", "m", code="upstream_error"), CONTEXT).value["error"]["code"]
        == "upstream_error"
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 7s.", 7.0),
        ("try again in 250ms", 0.25),
        ("try again in 1m30s", 90.0),
        ("later", None),
    ],
)
def test_the_wait_is_read_from_the_message(text, seconds):
    error = DIALECT.parse_error(envelope(text, code="rate_limit_exceeded"), 429)
    assert error is not None
    assert error.retry_after == seconds
