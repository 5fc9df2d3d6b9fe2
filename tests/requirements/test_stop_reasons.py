"""Group I: why an answer ended, from each upstream to each client, by one table."""

import pytest

import wireglot
from tests.requirements.wire import candidate, completion, frames, message, reported, sse, streamed
from tests.tiers import rows

CALL = {"functionCall": {"name": "f", "args": {}}}
TOOL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TEXT = {"text": "Hi"}


@rows(
    ("part", "finish", "stop"),
    [
        (TEXT, "STOP", "end_turn"),  # R-I-01
        (TEXT, "MAX_TOKENS", "max_tokens"),  # R-I-02
        (CALL, "STOP", "tool_use"),  # R-I-03
        (CALL, "MAX_TOKENS", "max_tokens"),  # C2, C43
        (TEXT, "SAFETY", "refusal"),  # R-I-04, C1
        (TEXT, "RECITATION", "refusal"),  # R-I-05, C1
        (TEXT, "BRAND_NEW", "end_turn"),  # R-I-06
    ],
)
def test_a_reason_of_gemini_for_an_anthropic_client(part, finish, stop):
    """R-C-04: whole and streamed alike."""
    assert reported(candidate(part, finish=finish), "gemini", "anthropic")["stop_reason"] == stop
    wire = frames(streamed(sse(candidate(part, finish=finish)), "gemini", "anthropic"))
    assert wire[-2]["delta"]["stop_reason"] == stop


def test_a_call_in_an_earlier_chunk_is_remembered():
    """C2: the reason comes in a chunk without the call."""
    data = sse(candidate(CALL, finish=None), candidate({"text": ""}))
    assert frames(streamed(data, "gemini", "anthropic"))[-2]["delta"]["stop_reason"] == "tool_use"


def test_an_unknown_reason_is_reported_as_a_loss_with_its_name():
    """R-I-06, R-I-11, C16: a legal word on the wire, the raw one in the declaration."""
    out = wireglot.translate_response(
        candidate(TEXT, finish="BRAND_NEW"), source="gemini", target="anthropic"
    )
    (loss,) = (loss for loss in out.losses if loss.feature == "stop_reason")
    assert "BRAND_NEW" in loss.detail
    odd = wireglot.translate_response(
        completion({"content": "Hi"}, "brand_new"), source="openai-chat", target="anthropic"
    )
    assert odd.value["stop_reason"] == "end_turn"
    assert any("brand_new" in loss.detail for loss in odd.losses)
    same = reported(completion({"content": "Hi"}, "brand_new"), "openai-chat", "openai-chat")
    assert same["choices"][0]["finish_reason"] == "brand_new"


@pytest.mark.parametrize(
    ("answer", "finish", "stop"),
    [
        ({"content": "Hi"}, "stop", "end_turn"),  # R-I-07
        ({"content": None, "tool_calls": [TOOL]}, "tool_calls", "tool_use"),  # R-I-08
        ({"content": "Hi"}, "length", "max_tokens"),  # R-I-09
        ({"content": "Hi"}, "content_filter", "refusal"),  # R-I-10
    ],
)
def test_a_reason_of_chat_for_an_anthropic_client(answer, finish, stop):
    assert reported(completion(answer, finish), "openai-chat", "anthropic")["stop_reason"] == stop


@pytest.mark.parametrize(
    ("stop", "finish", "status", "gemini"),
    [
        ("end_turn", "stop", ("completed", None), "STOP"),
        ("max_tokens", "length", ("incomplete", "max_output_tokens"), "MAX_TOKENS"),
        ("tool_use", "tool_calls", ("completed", None), "STOP"),
        ("refusal", "content_filter", ("incomplete", "content_filter"), "SAFETY"),
    ],
)
def test_each_client_gets_the_whole_range_of_its_own_words(stop, finish, status, gemini):
    """R-I-12, R-I-13, R-I-14, R-AD-13, R-AG-06, R-AA-04, R-AA-07, C24: not only an end and a call."""
    block = (
        {"type": "tool_use", "id": "t", "name": "f", "input": {}}
        if stop == "tool_use"
        else {"type": "text", "text": "x"}
    )
    answer = message(block, stop=stop)
    assert reported(answer, "anthropic", "openai-chat")["choices"][0]["finish_reason"] == finish
    whole = reported(answer, "anthropic", "openai-responses")
    assert (whole["status"], (whole["incomplete_details"] or {}).get("reason")) == status
    assert reported(answer, "anthropic", "gemini")["candidates"][0]["finishReason"] == gemini


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"])
def test_a_call_that_is_none_is_an_error_and_never_an_end(reason):
    """C2"""
    body = candidate(finish=reason)
    assert reported(body, "gemini", "anthropic")["type"] == "error"
    assert reported(body, "gemini", "openai-responses")["status"] == "failed"
    assert "error" in reported(body, "gemini", "openai-chat")
