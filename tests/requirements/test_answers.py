"""Groups Y, AA, AD, AE, AG and AH: thinking, usage and the envelope of an answer, in each client's own shape."""

import pytest

from tests.requirements.wire import (
    blocks_of,
    candidate,
    chat,
    completion,
    frames,
    message,
    reported,
    responses,
    sse,
    streamed,
)

USAGE = {
    "promptTokenCount": 9,
    "cachedContentTokenCount": 4,
    "candidatesTokenCount": 2,
    "thoughtsTokenCount": 3,
    "totalTokenCount": 14,
}
THOUGHT = {"text": "Let me think.", "thought": True}
CALL = {"functionCall": {"name": "f", "args": {}}}
ANSWER = candidate(THOUGHT, {"text": "Hi"}, usageMetadata=USAGE)
STREAM = sse(
    candidate(THOUGHT, finish=None),
    candidate({"text": "Hi"}, finish=None),
    candidate({"text": ""}, usageMetadata=USAGE),
)
WITH_CALL = sse(candidate(THOUGHT, finish=None), candidate(CALL))
CLAUDE = message(
    {"type": "thinking", "thinking": "Let me think.", "signature": "c2ln"},
    {"type": "text", "text": "Hi"},
    usage={
        "input_tokens": 5,
        "cache_read_input_tokens": 4,
        "output_tokens": 5,
        "output_tokens_details": {"thinking_tokens": 3},
    },
)


def deltas(data: bytes) -> list[dict]:
    return [choice["delta"] for chunk in frames(data) for choice in chunk["choices"]]


def streamed_parts(data: bytes) -> list[dict]:
    return [part for chunk in frames(data) for part in chunk["candidates"][0]["content"]["parts"]]


# Thinking


@pytest.mark.parametrize("data", [STREAM, WITH_CALL], ids=["alone", "with a call"])
def test_thinking_is_streamed_to_every_client(data):
    """R-Y-15, R-Y-16, R-Y-21, R-AB-10, R-AB-11, R-AE-08: also where tools are called."""
    wire = frames(streamed(data, "gemini", "openai-responses"))
    said = "".join(event["delta"] for event in wire if event["type"].endswith("summary_text.delta"))
    done = [event["text"] for event in wire if event["type"].endswith("summary_text.done")]
    assert [said] == done == ["Let me think."]
    chats = deltas(streamed(data, "gemini", "openai-chat"))
    assert "".join(delta.get("reasoning_content", "") for delta in chats) == "Let me think."
    assert blocks_of(frames(streamed(data, "gemini", "anthropic")))[0]["type"] == "thinking"


@pytest.mark.parametrize("data", [STREAM, WITH_CALL], ids=["alone", "with a call"])
def test_thinking_is_a_thought_for_gemini_clients(data):
    """R-Y-17, R-Y-20, R-Y-21, R-AG-03, R-AG-14: whole and streamed."""
    claude = streamed(streamed(data, "gemini", "anthropic"), "anthropic", "gemini")
    thoughts = [part["text"] for part in streamed_parts(claude) if part.get("thought")]
    assert "".join(thoughts) == "Let me think."
    parts = reported(CLAUDE, "anthropic", "gemini")["candidates"][0]["content"]["parts"]
    assert (parts[0]["text"], parts[0]["thought"]) == ("Let me think.", True)


@pytest.mark.parametrize("answer", [ANSWER, candidate(THOUGHT, CALL)], ids=["alone", "with a call"])
def test_thinking_stands_in_whole_answers(answer):
    """R-Y-18, R-Y-19, R-Y-22, R-AA-11, R-AD-08"""
    item, *_ = reported(answer, "gemini", "openai-responses")["output"]
    assert (item["type"], item["summary"][0]["text"]) == ("reasoning", "Let me think.")
    chat_message = reported(answer, "gemini", "openai-chat")["choices"][0]["message"]
    assert chat_message["reasoning_content"] == "Let me think."
    block, *_ = reported(answer, "gemini", "anthropic")["content"]
    assert (block["type"], block["thinking"]) == ("thinking", "Let me think.")


def test_the_state_of_thinking_travels_with_every_client():
    """R-Y-23, R-Y-24, R-AA-25, C9: in the field that the dialect echoes, never in one of our own invention."""
    item, *_ = reported(CLAUDE, "anthropic", "openai-responses")["output"]
    assert item["encrypted_content"]
    parts = reported(CLAUDE, "anthropic", "gemini")["candidates"][0]["content"]["parts"]
    assert any("thoughtSignature" in part for part in parts)
    chat_message = reported(CLAUDE, "anthropic", "openai-chat")["choices"][0]["message"]
    assert chat_message["extra_content"]


# Usage


def test_usage_is_reported_in_whole_answers():
    """R-Y-34, R-Y-36, R-Y-37, R-AA-22, R-AD-14..18, R-AH-02, C26: thoughts are output, the cache is input."""
    assert reported(ANSWER, "gemini", "openai-chat")["usage"] == {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    usage = reported(ANSWER, "gemini", "openai-responses")["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (9, 5, 14)
    assert usage["input_tokens_details"]["cached_tokens"] == 4
    assert usage["output_tokens_details"]["reasoning_tokens"] == 3
    claude = reported(ANSWER, "gemini", "anthropic")["usage"]
    assert (claude["input_tokens"], claude["cache_read_input_tokens"], claude["output_tokens"]) == (5, 4, 5)


def test_usage_for_a_gemini_client():
    """R-Y-34, R-Y-36, R-Y-37, R-AG-08..12, R-AH-04, C26"""
    assert reported(CLAUDE, "anthropic", "gemini")["usageMetadata"] == USAGE


def test_usage_is_reported_at_the_end_of_every_stream():
    """R-Y-35, C26, R-DC-14"""
    *_, last = frames(streamed(STREAM, "gemini", "openai-responses"))
    assert last["response"]["usage"]["total_tokens"] == 14
    claude = frames(streamed(STREAM, "gemini", "anthropic"))[-2]["usage"]
    assert claude["output_tokens"] == 5
    *_, chunk = frames(streamed(streamed(STREAM, "gemini", "anthropic"), "anthropic", "gemini"))
    assert chunk["usageMetadata"]["totalTokenCount"] == 14


@pytest.mark.parametrize("asks", [True, False])
def test_chats_usage_comes_before_the_sentinel_if_it_is_asked_for(asks):
    """R-AC-07, R-AE-13, R-AE-14, R-AH-01"""
    request = chat(stream=True, **({"stream_options": {"include_usage": True}} if asks else {}))
    data = streamed(STREAM, "gemini", "openai-chat", request=request)
    assert data.endswith(b"data: [DONE]\n\n")
    last = frames(data)[-1]
    assert (last["choices"] == [] and last["usage"]["total_tokens"] == 14) is asks


def test_the_events_of_responses_are_numbered_and_a_call_ends_with_its_name():
    """C25, C21: and no sentinel follows."""
    data = streamed(WITH_CALL, "gemini", "openai-responses")
    wire = frames(data)
    assert b"[DONE]" not in data
    assert [event["sequence_number"] for event in wire] == list(range(len(wire)))
    (done,) = (event for event in wire if event["type"] == "response.function_call_arguments.done")
    assert done["name"] == "f"


@pytest.mark.parametrize(
    ("chunks", "last"),
    [
        ([candidate({"text": "Hi"}, finish="MAX_TOKENS")], "response.incomplete"),
        ([candidate({"text": "Hi"}, finish=None)], "response.failed"),
    ],
)
def test_responses_streams_have_an_end_for_every_outcome(chunks, last):
    """C25, R-DC-07, R-DC-14"""
    assert frames(streamed(sse(*chunks), "gemini", "openai-responses"))[-1]["type"] == last


# Envelopes


def test_the_envelope_of_a_chat_answer():
    """R-AD-01..06"""
    body = reported(ANSWER, "gemini", "openai-chat")
    assert body["id"].startswith("chatcmpl-")
    assert (body["object"], body["model"], type(body["created"])) == ("chat.completion", "gemini-3-pro", int)
    (choice,) = body["choices"]
    assert (choice["index"], choice["message"]["role"], choice["message"]["content"]) == (
        0,
        "assistant",
        "Hi",
    )


def test_a_call_alone_has_no_content():
    """R-AD-07"""
    assert reported(candidate(CALL), "gemini", "openai-chat")["choices"][0]["message"]["content"] is None


def test_the_envelope_of_a_gemini_answer():
    """R-AG-01, R-AG-02, R-AG-05, R-AG-07, R-T-02"""
    body = reported(message({"type": "text", "text": "Hi"}), "anthropic", "gemini")
    (only,) = body["candidates"]
    assert only["content"] == {"role": "model", "parts": [{"text": "Hi"}]}
    assert body["modelVersion"] == "claude"


def test_a_gemini_stream_is_whole_objects_and_no_sentinel():
    """R-AG-13, R-AG-15, R-AG-16, C21: the official paths; only the simplified form has a sentinel."""
    data = streamed(streamed(STREAM, "gemini", "anthropic"), "anthropic", "gemini")
    chunks = frames(data)
    assert all("candidates" in chunk for chunk in chunks)
    assert [chunk["candidates"][0].get("finishReason") for chunk in chunks][-2:] == [None, "STOP"]
    assert b"[DONE]" not in data


@pytest.mark.parametrize(
    "field",
    [
        "system_fingerprint",  # R-AD-21, R-AH-09
        "service_tier",  # R-AD-22, R-AH-10
    ],
)
def test_a_cosmetic_field_of_chat_survives_on_its_own_dialect(field):
    body = completion({"content": "Hi"}, **{field: "x"})
    assert reported(body, "openai-chat", "openai-chat")[field] == "x"


@pytest.mark.parametrize("field", ["accepted_prediction_tokens", "rejected_prediction_tokens"])
def test_counts_of_predictions_survive_on_their_own_dialect(field):
    """R-AD-19, R-AD-20"""
    usage = {
        "prompt_tokens": 1,
        "completion_tokens": 2,
        "total_tokens": 3,
        "completion_tokens_details": {field: 1},
    }
    body = completion({"content": "Hi"}, usage=usage)
    assert reported(body, "openai-chat", "openai-chat")["usage"] == usage


def test_log_probabilities_reach_a_client_that_has_a_place_for_them():
    """R-AD-12, R-AE-12"""
    token = {"token": "Hi", "logprob": -0.5, "bytes": None, "top_logprobs": []}
    body = completion({"content": "Hi"})
    body["choices"][0]["logprobs"] = {"content": [token], "refusal": None}
    (item,) = reported(body, "openai-chat", "openai-responses")["output"]
    assert item["content"][0]["logprobs"][0]["token"] == "Hi"
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    delta = {"index": 0, "delta": {"content": "Hi"}, "logprobs": {"content": [token]}, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    data = sse({**chunk, "choices": [delta]}, {**chunk, "choices": [end]})
    said = [
        choice for each in frames(streamed(data, "openai-chat", "openai-chat")) for choice in each["choices"]
    ]
    assert any((choice.get("logprobs") or {}).get("content") for choice in said)


ECHOED = {
    "instructions": "Be brief.",  # R-AA-08
    "max_output_tokens": 9,  # R-AA-09
    "parallel_tool_calls": False,  # R-AA-12
    "previous_response_id": "resp_0",  # R-AA-13
    "reasoning": {"effort": "low", "summary": "detailed"},  # R-AA-14
    "temperature": 0.3,  # R-AA-16
    "text": {"format": {"type": "json_object"}},  # R-AA-17
    "tool_choice": "required",  # R-AA-18
    "tools": [
        {
            "type": "function",
            "name": "f",
            "description": None,
            "parameters": {"type": "object", "properties": {}},
            "strict": True,
        }
    ],  # R-AA-19
    "top_p": 0.9,  # R-AA-20
    "truncation": "auto",  # R-AA-21
    "user": "u",  # R-AA-23
    "metadata": {"a": "b"},  # R-AA-24
}


@pytest.mark.parametrize("upstream", ["openai-chat", "gemini", "anthropic"])
def test_a_response_echoes_what_was_asked(upstream):
    """R-AA-08, R-AA-09, R-AA-12..14, R-AA-16..21, R-AA-23, R-AA-24, R-Z-11..13, R-Z-18, C24: no matter who answers."""
    answers = {"openai-chat": completion({"content": "Hi"}), "gemini": ANSWER, "anthropic": CLAUDE}
    body = reported(answers[upstream], upstream, "openai-responses", request=responses(**ECHOED))
    assert {name: body[name] for name in ECHOED} == ECHOED


def test_a_response_without_wishes_has_the_defaults():
    """R-AA-01..07, R-AA-10, R-AA-15..21, R-AA-23, R-AA-24"""
    body = reported(ANSWER, "gemini", "openai-responses", request=responses())
    assert body["id"].startswith("resp_")
    assert (body["object"], body["status"], body["error"], body["incomplete_details"]) == (
        "response",
        "completed",
        None,
        None,
    )
    assert type(body["created_at"]) is type(body["completed_at"]) is int
    assert (body["model"], body["temperature"], body["top_p"]) == ("gemini-3-pro", 1.0, 1.0)
    assert (body["tools"], body["tool_choice"], body["parallel_tool_calls"]) == ([], "auto", True)
    assert (body["metadata"], body["user"], body["truncation"]) == ({}, None, "disabled")
    assert body["text"] == {"format": {"type": "text"}}
