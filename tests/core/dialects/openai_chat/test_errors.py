"""Errors of many servers, and ours to Chat clients."""

from typing import get_args

from tests.core.dialects.openai_chat.support import CONTEXT, answer
from tests.tiers import rows
from wireglot_core.dialects.openai_chat import DIALECT
from wireglot_core.ir.errors import ApiError, ErrorKind


def kind(body, status=0):
    error = DIALECT.parse_error(body, status)
    return error and error.kind


def envelope(message="x", **fields):
    return {"error": {"message": message, **fields}}


@rows(
    ("body", "status", "expected"),
    [
        (envelope(type="invalid_request_error", code=None), 400, "invalid_request"),
        (envelope(type="invalid_request_error", code="context_length_exceeded"), 400, "context_overflow"),
        (
            envelope("This model's maximum context length is 8192 tokens", type="invalid_request_error"),
            400,
            "context_overflow",
        ),
        (
            envelope("The total length of all messages is too long.", type="too_many_prompt_tokens"),
            400,
            "context_overflow",
        ),
        (envelope(type="invalid_request_error", code="invalid_api_key"), 401, "auth"),
        (envelope(type="invalid_authentication_error"), 401, "auth"),
        (envelope(type="insufficient_quota", code="insufficient_quota"), 429, "billing"),
        (envelope(type="exceeded_current_quota_error"), 429, "billing"),
        (envelope(type="rate_limit_reached_error"), 429, "rate_limit"),
        (envelope(type="engine_overloaded_error"), 429, "overloaded"),
        (envelope(type="invalid_request_error", code="model_not_found"), 404, "not_found"),
        (envelope(type="resource_not_found_error"), 404, "not_found"),
        (envelope(code="DeploymentNotFound"), 404, "not_found"),
        (envelope(code=502, metadata={}), 200, "server"),
        (envelope(code=429), 200, "rate_limit"),
        (
            envelope(
                "The request was rejected because it was considered high risk", type="invalid_request_error"
            ),
            400,
            "content_policy",
        ),
        ({"error": "Specified model not found"}, 404, "not_found"),
        ({"code": "Client specified an invalid argument", "error": "bad"}, 400, "invalid_request"),
        (
            {"object": "error", "message": "bad", "type": "invalid_request_error", "code": 3000},
            0,
            "invalid_request",
        ),
        ({"detail": [{"loc": ["body"], "msg": "field required"}]}, 422, "invalid_request"),
        ({"errors": [{"message": "no"}]}, 403, "permission"),
        ([{"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}], 400, "invalid_request"),
        ("<html><title>502 Bad Gateway</title></html>", 502, "server"),
        ("upstream connect error", 503, "overloaded"),
        (None, 504, "timeout"),
        ({}, 500, "server"),
        ({"choices": [{"error": {"code": 502, "message": "x"}, "message": {}}]}, 200, "server"),
    ],
)
def test_an_error_is_recognised_however_it_is_wrapped(body, status, expected):
    assert kind(body, status) == expected


def test_an_answer_is_no_error():
    assert kind(answer({"content": "Hi"})) is None
    assert kind(answer({"content": "Hi"}), 200) is None
    assert kind("plain words", 200) is None


def test_messages_are_found_in_every_wrapping():
    def message(body, status=400):
        error = DIALECT.parse_error(body, status)
        assert error is not None
        return error.message

    assert message({"detail": [{"msg": "field required"}]}) == "field required"
    assert (
        message("<html><title>502 Bad Gateway</title>")
        == "the upstream answered with a web page: 502 Bad Gateway"
    )
    assert message({"error": "no"}) == "no"
    assert message(None, 500) == "the upstream answered with status 500"


@rows("name", get_args(ErrorKind))
def test_every_kind_is_reported_so_that_it_is_understood_again(name):
    """The tables mirror each other."""
    body = DIALECT.render_error(ApiError(name, "it failed"), CONTEXT).value
    assert body["error"].keys() == {"message", "type", "param", "code"}
    assert kind(body) == name


@rows("name", get_args(ErrorKind))
@rows("code", ["rate_limit_exceeded", "upstream_error", "UNAVAILABLE", "invalid_api_key"])
def test_a_raw_code_never_changes_the_kind(name, code):
    assert kind(DIALECT.render_error(ApiError(name, "it failed", code=code), CONTEXT).value) == name


@rows(
    ("name", "envelope_type", "code"),
    [
        ("auth", "invalid_request_error", "invalid_api_key"),
        ("rate_limit", "rate_limit_error", "rate_limit_exceeded"),
        ("overloaded", "server_error", "server_is_overloaded"),
        ("server", "server_error", "internal_error"),
        ("timeout", "server_error", "upstream_timeout"),
        ("too_large", "invalid_request_error", "request_too_large"),
    ],
)
def test_envelopes_are_those_of_the_fault_table(name, envelope_type, code):
    error = DIALECT.render_error(ApiError(name, "M", param="$.x"), CONTEXT).value["error"]
    assert error == {"message": "M", "type": envelope_type, "param": "$.x", "code": code}


def test_an_error_of_this_dialect_comes_back_verbatim():
    body = {"error": {"code": 429, "message": "slow", "metadata": {"headers": {"a": "b"}}}, "user_id": "u"}
    error = DIALECT.parse_error(body, 429)
    assert error is not None
    assert DIALECT.render_error(error, CONTEXT).value == body


@rows(
    ("message", "is_one"),
    [
        ("'messages.1' : property 'reasoning_content' is unsupported", True),
        ("Extra inputs are not permitted, field: 'messages[1].reasoning_content'", True),
        ("Unrecognized field messages[3].reasoning", True),
        ("reasoning_content is missing in assistant tool call message at index 2", False),
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", False),
        ("reasoning_effort is not supported with this model", False),
        ("Unknown model: reasoning-1", False),
    ],
)
def test_servers_that_take_no_reasoning_are_known_by_their_words(message: str, is_one: bool) -> None:
    is_refusal = DIALECT.surface.reasoning.is_refusal
    assert is_refusal is not None
    assert is_refusal(ApiError("invalid_request", message, 400)) is is_one
