"""Error bodies, both ways (FAULTS 1 and 2, mapping 12)."""

from tests.core.dialects.anthropic.support import CONTEXT, features
from tests.tiers import rows
from wireglot_core.dialects.anthropic import DIALECT
from wireglot_core.ir.errors import ApiError


def envelope(kind: str, message: str = "why", **more) -> dict:
    return {"type": "error", "error": {"type": kind, "message": message}, **more}


@rows(
    ("status", "body", "kind"),
    [
        (400, envelope("invalid_request_error"), "invalid_request"),
        (
            400,
            envelope("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
            "context_overflow",
        ),
        (
            400,
            envelope(
                "invalid_request_error", "input length and `max_tokens` exceed context limit: 1 + 2 > 3"
            ),
            "context_overflow",
        ),
        (400, envelope("invalid_request_error", "The request was considered high risk"), "content_policy"),
        (401, envelope("authentication_error"), "auth"),
        (402, envelope("billing_error"), "billing"),
        (403, envelope("permission_error"), "permission"),
        (404, envelope("not_found_error"), "not_found"),
        (409, envelope("conflict_error"), "conflict"),
        (413, envelope("request_too_large"), "too_large"),
        (429, envelope("rate_limit_error", request_id="req_1"), "rate_limit"),
        (429, envelope("exceeded_current_quota_error"), "billing"),
        (500, envelope("api_error"), "server"),
        (504, envelope("timeout_error"), "timeout"),
        (529, envelope("overloaded_error"), "overloaded"),
        (0, envelope("overloaded_error"), "overloaded"),
        (418, envelope("brand_new_error"), "invalid_request"),
    ],
)
def test_our_own_envelope_is_understood_and_comes_back_verbatim(status, body, kind):
    error = DIALECT.parse_error(body, status)
    assert error is not None
    assert (error.kind, error.status, error.type) == (kind, status, body["error"]["type"])
    assert DIALECT.render_error(error, CONTEXT).value == body


@rows(
    ("status", "body", "kind", "message"),
    [
        (403, {"message": "Signature expired"}, "permission", "Signature expired"),
        (400, {"Message": "no"}, "invalid_request", "no"),
        (500, {"error": "broken"}, "server", "broken"),
        (0, {"error": "broken"}, "server", "broken"),
        (
            429,
            {"error": {"message": "slow down", "type": "rate_limit_reached_error"}},
            "rate_limit",
            "slow down",
        ),
        (400, [{"error": {"message": "in a list"}}], "invalid_request", "in a list"),
        (
            502,
            "<!DOCTYPE html><html>Bad gateway</html>",
            "server",
            "the upstream answered with a web page: Bad gateway",
        ),
        (503, "upstream connect error", "overloaded", "upstream connect error"),
        (503, "", "overloaded", "the upstream answered with status 503"),
        (500, None, "server", "the upstream answered with status 500"),
        (500, {}, "server", "the upstream answered with status 500"),
        (
            400,
            {"type": "error", "error": {"type": 5, "message": None}},
            "invalid_request",
            "the upstream answered with status 400",
        ),
    ],
)
def test_whatever_stands_in_its_place_is_understood(status, body, kind, message):
    error = DIALECT.parse_error(body, status)
    assert error is not None
    assert (error.kind, error.message) == (kind, message)


@rows("body", [{"type": "message", "content": []}, {"input_tokens": 5}, "words", [], None, 5])
def test_what_is_no_error_is_none(body):
    assert DIALECT.parse_error(body, 200) is None
    assert DIALECT.parse_error(body) is None


@rows(
    ("kind", "written"),
    [
        ("invalid_request", "invalid_request_error"),
        ("auth", "authentication_error"),
        ("billing", "billing_error"),
        ("permission", "permission_error"),
        ("not_found", "not_found_error"),
        ("conflict", "invalid_request_error"),
        ("too_large", "request_too_large"),
        ("rate_limit", "rate_limit_error"),
        ("overloaded", "overloaded_error"),
        ("server", "api_error"),
        ("timeout", "timeout_error"),
        ("content_policy", "invalid_request_error"),
    ],
)
def test_errors_of_others_take_our_words(kind, written):
    rendered = DIALECT.render_error(ApiError(kind, "why", request_id="req_1"), CONTEXT)
    assert rendered.value == envelope(written, request_id="req_1")
    assert rendered.losses == ()


def test_a_context_overflow_is_reported_in_the_words_clients_heal_by():
    """wire 9: Claude Code compacts when it reads `prompt is too long`."""
    said = "This model's maximum context length is 128,000 tokens. However, your messages resulted in 140000 tokens."
    rendered = DIALECT.render_error(
        ApiError("context_overflow", said, code="context_length_exceeded"), CONTEXT
    )
    told = envelope("invalid_request_error", "prompt is too long: 140000 tokens > 128000 maximum")
    assert rendered.value == {**told, "request_id": None}
    assert features(rendered.losses) == [
        ("$.message", "error.detail", "approximated"),
        ("$.code", "error.detail", "dropped"),
    ]
    vague = DIALECT.render_error(ApiError("context_overflow", "too much"), CONTEXT).value
    assert vague["error"]["message"] == "prompt is too long: too much"
