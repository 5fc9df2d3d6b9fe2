"""The id of an error: the vendor's OpenAPI document requires the field, which may be null."""

from tests.tiers import rows
from wireglot_core import translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.errors import ApiError

FAILED = {"error": {"message": "slow down", "type": "rate_limit_error", "param": None, "code": None}}


@rows(("identifier", "written"), [("", None), ("req_1", "req_1")])
def test_an_error_names_the_request_or_says_that_its_id_is_unknown(
    identifier: str, written: str | None
) -> None:
    error = ApiError("rate_limit", "slow down", 429, request_id=identifier)
    assert dialect("anthropic").render_error(error, Context()).value["request_id"] == written


def test_an_error_of_another_vendor_has_the_field() -> None:
    told = translate_response(FAILED, source="openai-chat", target="anthropic", status=429).value
    assert told == {
        "type": "error",
        "error": {"type": "rate_limit_error", "message": "slow down"},
        "request_id": None,
    }


def test_an_id_of_null_comes_back_as_none() -> None:
    told = dialect("anthropic").render_error(ApiError("server", "x", 500), Context()).value
    error = dialect("anthropic").parse_error(told, 500)
    assert error is not None
    assert error.request_id == ""
