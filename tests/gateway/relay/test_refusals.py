"""Which answers of 500 are about the request."""

from typing import Any

import pytest

from tests.tiers import rows
from wireglot.gateway.relay.refusals import is_same, judged
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.failures import AttemptFailed, of_error, of_stream


def failed(message: str, status: int = 500, **more: Any) -> AttemptFailed:
    return of_error(ApiError("server", message, **more), status)


@rows(
    "message",
    [
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        "This model does not support tools",
        "Unsupported content part type: input_audio",
        "Failed to parse messages: expected a string",
        "Failed to parse grammar",
        "kimi is not a multimodal model",
        "Invalid JSON schema in response_format",
        "tool_choice is not implemented",
    ],
)
def test_servers_that_say_what_they_cannot_do_refuse_the_request(message: str) -> None:
    """[A2] llama.cpp, vLLM, SGLang, Ollama: their words under 500."""
    refused = judged(failed(message))
    assert (refused.blame, refused.error.kind, refused.error.status) == ("refused", "invalid_request", 400)
    assert refused.error.message == message


@rows(
    "message",
    [
        "The server had an error while processing your request. Sorry about that!",
        "Internal server error",
        "An internal error has occurred. Please retry or report it.",
        "Invalid response from the model",
        "Streaming is not supported while the backend restarts, try again later",
        "Invalid request: upstream connection closed",
        "Failed to load model",
    ],
)
def test_words_of_an_outage_are_one(message: str) -> None:
    """[A2]"""
    assert judged(failed(message)).blame == "upstream"


@pytest.mark.parametrize("message", ["no", "images are not supported", "not on this backend"])
def test_what_is_not_implemented_is_refused_under_its_own_status(message: str) -> None:
    """A repetition does not help, and the upstream is well; its clients know 501 as such."""
    refused = judged(failed(message, 501))
    assert (refused.blame, refused.error.kind, refused.error.status) == ("refused", "server", 501)
    assert judged(failed(message, 501, retry_after=1.0)).blame == "upstream"


@pytest.mark.parametrize("status", [502, 503, 504, 529])
def test_another_status_is_about_the_server_whatever_it_says(status: int) -> None:
    """[A2]"""
    assert judged(failed("images are not supported", status)).blame == "upstream"


def test_an_error_in_place_of_a_stream_is_judged_by_its_own_status() -> None:
    """[A2]"""
    said = ApiError("server", "images are not supported", status=500)
    assert judged(of_stream(said)).blame == "refused"
    assert judged(of_stream(ApiError("server", "images are not supported"))).blame == "upstream"


def test_the_same_words_twice_are_the_same_refusal_and_no_others() -> None:
    """[A2]"""
    assert is_same(failed("boom"), failed("boom"))
    assert not is_same(None, failed("boom"))
    assert not is_same(failed("boom"), failed("bang"))
    assert not is_same(failed("boom (request 1)"), failed("boom (request 2)"))
    assert not is_same(failed("boom", 503), failed("boom", 503))
    assert not is_same(failed("boom", retry_after=1.0), failed("boom", retry_after=1.0))
