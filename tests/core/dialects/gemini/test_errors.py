"""Errors, both ways."""

from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.gemini import DIALECT
from wireglot_core.ir.errors import ApiError

CONTEXT = Context()
INFO = "type.googleapis.com/google.rpc.ErrorInfo"


def body(code, status, message="m", details=None):
    error = {"code": code, "message": message, "status": status}
    return {"error": error if details is None else {**error, "details": details}}


@rows(
    ("given", "kind"),
    [
        (body(400, "INVALID_ARGUMENT"), "invalid_request"),
        (body(400, "INVALID_ARGUMENT", details=[{"@type": INFO, "reason": "API_KEY_INVALID"}]), "auth"),
        (body(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."), "auth"),
        (
            body(
                400,
                "INVALID_ARGUMENT",
                "The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).",
            ),
            "context_overflow",
        ),
        (body(400, "FAILED_PRECONDITION", "Please enable billing on your project."), "billing"),
        (body(401, "UNAUTHENTICATED"), "auth"),
        (body(403, "PERMISSION_DENIED"), "permission"),
        (body(404, "NOT_FOUND"), "not_found"),
        (body(409, "ABORTED"), "conflict"),
        (body(413, "INVALID_ARGUMENT"), "too_large"),
        (
            body(
                429,
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota, please check your plan and billing details.",
            ),
            "rate_limit",
        ),
        (body(499, "CANCELLED"), "server"),
        (body(500, "INTERNAL"), "server"),
        (body(502, "UNAVAILABLE"), "server"),
        (body(503, "UNAVAILABLE"), "overloaded"),
        (body(504, "DEADLINE_EXCEEDED"), "timeout"),
        ({"error": {"message": "only this"}}, "server"),
        ({"error": "invalid_grant", "error_description": "Bad Request"}, "server"),
        ([body(503, "UNAVAILABLE")], "overloaded"),
    ],
)
def test_errors_of_every_kind_are_distinguished_and_come_back(given, kind):
    """Mapping 12, R-DD-02"""
    error = DIALECT.parse_error(given)
    assert error is not None
    assert error.kind == kind
    assert DIALECT.render_error(error, CONTEXT).value == given


def test_a_retry_delay_is_read():
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"}
    error = DIALECT.parse_error(body(429, "RESOURCE_EXHAUSTED", details=[retry]))
    assert error is not None
    assert error.retry_after == 7.5
    error = DIALECT.parse_error(body(429, "RESOURCE_EXHAUSTED", "Please retry in 12s."))
    assert error is not None
    assert error.retry_after == 12


@rows(
    ("given", "status", "kind", "message"),
    [
        (
            "<html><head><title>502</title></head><body>Bad Gateway</body></html>",
            502,
            "server",
            "the upstream answered with a web page: 502 Bad Gateway",
        ),
        ("upstream connect error", 503, "overloaded", "upstream connect error"),
        ({"message": "flat"}, 400, "invalid_request", "flat"),
        (None, 500, "server", "the upstream answered with status 500"),
        ([], 404, "not_found", "the upstream answered with status 404"),
        (b"bytes", 429, "rate_limit", "bytes"),
    ],
)
def test_bodies_that_are_no_error_of_google_are_read_by_their_status(given, status, kind, message):
    """R-DD-06"""
    error = DIALECT.parse_error(given, status)
    assert error is not None
    assert (error.kind, error.message) == (kind, message)


@rows("given", [{"candidates": []}, {}, None, "text", [], {"error": None}])
def test_what_is_no_error_is_none(given):
    assert DIALECT.parse_error(given) is None
    assert DIALECT.parse_error(given, 200) is None


@rows(
    ("error", "code", "status"),
    [
        (ApiError("invalid_request", "m"), 400, "INVALID_ARGUMENT"),
        (ApiError("invalid_request", "m", 415), 415, "INVALID_ARGUMENT"),
        (ApiError("context_overflow", "m"), 400, "INVALID_ARGUMENT"),
        (ApiError("auth", "m"), 400, "INVALID_ARGUMENT"),
        (ApiError("billing", "m"), 429, "RESOURCE_EXHAUSTED"),
        (ApiError("permission", "m"), 403, "PERMISSION_DENIED"),
        (ApiError("not_found", "m"), 404, "NOT_FOUND"),
        (ApiError("conflict", "m"), 409, "ABORTED"),
        (ApiError("too_large", "m"), 413, "INVALID_ARGUMENT"),
        (ApiError("rate_limit", "m", retry_after=3), 429, "RESOURCE_EXHAUSTED"),
        (ApiError("overloaded", "m"), 503, "UNAVAILABLE"),
        (ApiError("server", "m"), 500, "INTERNAL"),
        (ApiError("server", "m", 502), 502, "UNAVAILABLE"),
        (ApiError("timeout", "m"), 504, "DEADLINE_EXCEEDED"),
        (ApiError("content_policy", "m"), 400, "INVALID_ARGUMENT"),
    ],
)
def test_errors_of_other_dialects_keep_their_kind(error, code, status):
    """FAULTS 1: exact code and status; the reason tells kinds of one status apart."""
    rendered = DIALECT.render_error(error, CONTEXT).value
    assert (rendered["error"]["code"], rendered["error"]["status"]) == (code, status)
    again = DIALECT.parse_error(rendered)
    assert again is not None
    assert (again.kind, again.message, again.retry_after) == (error.kind, error.message, error.retry_after)


def test_a_bad_key_is_reported_as_google_tells_it():
    """FAULTS 1, AUTH"""
    rendered = DIALECT.render_error(ApiError("auth", "m"), CONTEXT).value
    assert rendered["error"]["details"][0]["reason"] == "API_KEY_INVALID"


def test_param_and_request_id_have_their_place():
    error = ApiError("invalid_request", "m", param="$.tools", request_id="req_1")
    again = DIALECT.parse_error(DIALECT.render_error(error, CONTEXT).value)
    assert again is not None
    assert (again.param, again.request_id) == ("$.tools", "req_1")
