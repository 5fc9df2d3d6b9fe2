"""The public functions: what they take, what they give, what they refuse."""

import json
from typing import Any

import pytest

import wireglot_core
from tests.tiers import rows
from wireglot_core.dialects.registry import OwnDialect, UnknownDialect
from wireglot_core.providers.spec import UnknownProvider

ASKED: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "hi"}],
}
ANSWER: dict[str, Any] = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "Hello"}]}, "finishReason": "STOP", "index": 0}
    ],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1, "totalTokenCount": 4},
    "modelVersion": "gemini-2.5-pro",
    "responseId": "r1",
}
CUSTOM: dict[str, Any] = {
    "model": "gpt-6",
    "input": "patch it",
    "tools": [
        {
            "type": "custom",
            "name": "apply_patch",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
        },
        {
            "type": "namespace",
            "name": "files",
            "description": "",
            "tools": [{"type": "function", "name": "read"}],
        },
    ],
}


@pytest.mark.parametrize("body", [ASKED, json.dumps(ASKED), json.dumps(ASKED).encode()])
def test_a_body_may_be_an_object_text_or_bytes(body: dict[str, Any] | str | bytes) -> None:
    out = wireglot_core.translate_request(body, source="anthropic", target="gemini", model="gemini-2.5-pro")
    assert out.value["contents"] == [{"role": "user", "parts": [{"text": "hi"}]}]
    assert out.losses == ()


def test_the_input_is_not_changed() -> None:
    before = json.dumps(ASKED)
    for target in ("anthropic", "gemini", "openai-chat", "openai-responses"):
        wireglot_core.translate_request(ASKED, source="anthropic", target=target, model="m")
    assert json.dumps(ASKED) == before


def test_the_same_dialect_changes_the_model_and_nothing_else() -> None:
    body = {**ASKED, "x_unknown": {"a": [1]}, "temperature": None}
    out = wireglot_core.translate_request(body, source="anthropic", target="anthropic", model="claude-opus-5")
    assert out.value == {**body, "model": "claude-opus-5"}
    assert out.losses == ()


def test_underscores_in_a_dialects_name_are_forgiven_and_unknown_ones_named() -> None:
    assert wireglot_core.translate_request(ASKED, source="anthropic", target=OwnDialect("openai_chat")).value[
        "messages"
    ]
    with pytest.raises(UnknownDialect, match="openai-responses"):
        wireglot_core.translate_request(ASKED, source="anthropic", target=OwnDialect("esperanto"))
    with pytest.raises(UnknownProvider, match="kimi"):
        wireglot_core.translate_request(ASKED, source="anthropic", target="openai-chat", provider="nobody")
    assert issubclass(wireglot_core.UnknownProvider, wireglot_core.WireglotError)
    nothing: Any = None
    with pytest.raises(wireglot_core.UnknownDialect, match="expected the name of a dialect, got NoneType"):
        wireglot_core.translate_request(ASKED, source="anthropic", target=nothing)


def test_a_body_without_a_model_gets_a_declared_one() -> None:
    body = {"contents": [{"parts": [{"text": "hi"}]}]}
    out = wireglot_core.translate_request(body, source="gemini", target="openai-chat")
    assert out.value["model"] == "unknown"
    assert ("$.model", "model", "invented") in [(loss.path, loss.feature, loss.action) for loss in out.losses]


@rows(
    ("body", "path"),
    [
        (b"", "$"),
        (b"[]", "$"),
        (b"{", "$"),
        ({}, "$.messages"),
        ({"messages": [{"role": 1}]}, "$.messages[0].role"),
    ],
)
def test_bad_input_names_its_place(body: Any, path: str) -> None:
    with pytest.raises(wireglot_core.ClientFault) as fault:
        wireglot_core.translate_request(body, source="anthropic", target="gemini")
    assert fault.value.path == path
    assert "expected" in fault.value.message


def test_strict_refuses_what_would_be_bent_and_names_it() -> None:
    body = {**ASKED, "top_k": 3}
    kept = wireglot_core.translate_request(ASKED, source="anthropic", target="gemini", model="m", strict=True)
    assert kept.losses == ()
    with pytest.raises(wireglot_core.StrictLoss) as refused:
        wireglot_core.translate_request(
            body, source="anthropic", target="openai-chat", model="m", strict=True
        )
    assert refused.value.path == "$.top_k"
    assert "sampling.top_k" in refused.value.message


def test_a_provider_narrows_a_request_of_its_own_dialect_too() -> None:
    """R-Q-01, C17, C38"""
    schema = {"type": "object", "properties": {"status": {"enum": ["a", "b"]}}}
    body = {
        "model": "kimi-k3",
        "temperature": 0.2,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
    }
    out = wireglot_core.translate_request(body, source="openai-chat", target="openai-chat", provider="kimi")
    assert "temperature" not in out.value
    sent = out.value["tools"][0]["function"]["parameters"]["properties"]["status"]
    assert sent == {"enum": ["a", "b"], "type": "string"}
    assert [loss.feature for loss in out.losses] == ["sampling.temperature"]


def test_an_answer_works_with_and_without_its_request() -> None:
    bare = wireglot_core.translate_response(ANSWER, source="gemini", target="anthropic")
    asked = wireglot_core.translate_response(ANSWER, source="gemini", target="anthropic", request=ASKED)
    assert bare.value == asked.value
    assert bare.value["content"] == [{"type": "text", "text": "Hello", "citations": []}]
    assert bare.value["stop_reason"] == "end_turn"
    assert (bare.value["usage"]["input_tokens"], bare.value["usage"]["output_tokens"]) == (3, 1)


def test_a_request_in_the_providers_own_dialect_is_understood_as_well() -> None:
    asked = {"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": {"temperature": 0.5}}
    out = wireglot_core.translate_response(ANSWER, source="gemini", target="openai-responses", request=asked)
    assert out.value["temperature"] == 0.5


def test_a_request_nobody_understands_is_the_clients_fault() -> None:
    with pytest.raises(wireglot_core.ClientFault) as fault:
        wireglot_core.translate_response(ANSWER, source="gemini", target="anthropic", request={"messages": 1})
    assert fault.value.path == "$.messages"


def test_tools_come_back_as_the_client_declared_them() -> None:
    """PAINS A17"""
    sent = wireglot_core.translate_request(
        CUSTOM, source="openai-responses", target="gemini", model="gemini-3-pro"
    ).value
    names = [tool["name"] for tool in sent["tools"][0]["functionDeclarations"]]
    assert names == ["apply_patch", "files__read"]
    calls = [
        {"functionCall": {"name": "apply_patch", "args": {"input": "*** Begin Patch"}}},
        {"functionCall": {"name": "files__read", "args": {"path": "a"}}},
    ]
    answer = {
        **ANSWER,
        "candidates": [{"content": {"role": "model", "parts": calls}, "finishReason": "STOP"}],
    }
    out = wireglot_core.translate_response(
        answer, source="gemini", target="openai-responses", request=CUSTOM
    ).value
    patch, read = out["output"]
    assert (patch["type"], patch["name"], patch["input"]) == (
        "custom_tool_call",
        "apply_patch",
        "*** Begin Patch",
    )
    assert (read["type"], read["namespace"], read["name"]) == ("function_call", "files", "read")
    stream = wireglot_core.StreamTranslator(source="gemini", target="openai-responses", request=CUSTOM)
    text = (stream.feed(b"data: " + json.dumps(answer).encode() + b"\n\n") + stream.close()).decode()
    assert '"custom_tool_call"' in text
    assert '"*** Begin Patch"' in text
    assert '"namespace":"files"' in text


@pytest.mark.parametrize("model", ["kimi-k3", "some-local-model"])
def test_freeform_calls_come_back_without_the_model_being_named(model: str) -> None:
    """[X14] As README shows it: the client's model name says nothing about who answered."""
    asked = {**CUSTOM, "model": "gpt-5.5"}
    calls = [
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": "apply_patch", "arguments": '{"input": "*** Begin Patch"}'},
        },
        {
            "id": "call_2",
            "type": "function",
            "function": {"name": "files__read", "arguments": '{"path":"a"}'},
        },
    ]
    answer: dict[str, Any] = {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, "tool_calls": calls},
                "finish_reason": "tool_calls",
            }
        ],
    }
    out = wireglot_core.translate_response(
        answer, source="openai-chat", target="openai-responses", request=asked
    )
    patch, read = out.value["output"]
    assert (patch["type"], patch["input"]) == ("custom_tool_call", "*** Begin Patch")
    assert (read["type"], read["namespace"], read["name"]) == ("function_call", "files", "read")

    delta = {"tool_calls": [{"index": number, **call} for number, call in enumerate(calls)]}
    chunk = {
        **answer,
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}],
    }
    stream = wireglot_core.StreamTranslator(source="openai-chat", target="openai-responses", request=asked)
    frames = b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n"
    text = (stream.feed(frames) + stream.close()).decode()
    assert '"custom_tool_call"' in text
    assert '"namespace":"files"' in text


def test_a_request_that_only_refers_to_a_stored_prompt_does_not_hinder_its_answer() -> None:
    asked = {"model": "gpt-6", "prompt": {"id": "pmpt_1"}}
    out = wireglot_core.translate_response(ANSWER, source="gemini", target="openai-responses", request=asked)
    assert out.value["status"] == "completed"


def test_an_error_body_becomes_the_clients_error() -> None:
    body = {"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}
    out = wireglot_core.translate_response(body, source="gemini", target="anthropic")
    assert out.value["type"] == "error"
    assert out.value["error"] == {"type": "rate_limit_error", "message": "slow down"}
    wrapped = wireglot_core.translate_response(json.dumps([body]), source="gemini", target="openai-chat")
    assert wrapped.value["error"]["code"] == "rate_limit_exceeded"


def test_a_stream_cut_short_ends_in_the_clients_error_and_says_so() -> None:
    stream = wireglot_core.StreamTranslator(source="gemini", target="anthropic")
    first = stream.feed(b'data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Hel"}]}}]}\n\n')
    assert b"text_delta" in first
    last = stream.close()
    assert last.startswith(b"event: error\n")
    assert stream.failed
    assert stream.close() == b""
    with pytest.raises(ValueError, match="closed"):
        stream.feed(b"x")


def test_a_json_array_may_be_asked_for_and_read() -> None:
    chat = (
        b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}\n\n'
        b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
        b"data: [DONE]\n\n"
    )
    stream = wireglot_core.StreamTranslator(source="openai-chat", target="gemini", framing="json-array")
    array = stream.feed(chat) + stream.close()
    chunks = json.loads(array)
    assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"
    back = wireglot_core.StreamTranslator(source="gemini", target="openai-chat")
    text = (back.feed(array) + back.close()).decode()
    assert '"content":"Hi"' in text
    assert text.endswith("data: [DONE]\n\n")


def test_old_gemini_gets_its_schema_in_the_field_it_knows() -> None:
    tool = {
        "name": "f",
        "input_schema": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
    }
    body = {**ASKED, "tools": [tool]}
    old = wireglot_core.translate_request(
        body, source="anthropic", target="gemini", model="gemini-1.5-pro"
    ).value
    new = wireglot_core.translate_request(
        body, source="anthropic", target="gemini", model="gemini-3-pro"
    ).value
    assert old["tools"][0]["functionDeclarations"][0]["parameters"]["type"] == "OBJECT"
    assert new["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["type"] == "object"


def test_a_gemini_client_after_another_provider_sends_the_bypass_where_gemini_demands_a_signature() -> None:
    """R-DA-05: its history holds another provider's state in our envelope."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    claude = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5",
        "content": [{"type": "thinking", "thinking": "hm", "signature": "EqQB"}, call],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    answer = wireglot_core.translate_response(claude, source="anthropic", target="gemini").value
    content = answer["candidates"][0]["content"]
    result = {"functionResponse": {"name": "f", "response": {"output": "ok"}}}
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": "go"}]},
            content,
            {"role": "user", "parts": [result]},
        ]
    }
    out = wireglot_core.translate_request(body, source="gemini", target="gemini", model="gemini-3-pro")
    called = next(part for part in out.value["contents"][1]["parts"] if "functionCall" in part)
    assert called["thoughtSignature"] == "skip_thought_signature_validator"
    assert {loss.feature for loss in out.losses} >= {"reasoning.signature"}


def test_what_cannot_be_asked_at_all_names_its_place_in_the_body() -> None:
    """[X25]"""
    body = {"model": "m", "instructions": "i", "input": [{"type": "item_reference", "id": "msg_1"}]}
    with pytest.raises(wireglot_core.Unsupported) as refused:
        wireglot_core.translate_request(body, source="openai-responses", target="openai-chat")
    assert refused.value.path == "$.input[0]"


def test_a_gemini_history_with_its_own_signatures_is_sent_unchanged() -> None:
    called = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "EqQB"}
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "model", "parts": [{"text": "I look."}, called]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "ok"}}}]},
        ]
    }
    out = wireglot_core.translate_request(body, source="gemini", target="gemini", model="gemini-3-pro")
    assert out.value == body
    assert out.losses == ()


LEAKED = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0"
    '<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>'
)


@rows(
    ("leaks", "provider", "model", "is_call"),
    [
        (True, None, "m", True),
        (("kimi",), None, "m", True),
        (("deepseek",), None, "m", False),
        (False, "openrouter", "moonshotai/kimi-k2", False),
        (None, "openrouter", "moonshotai/kimi-k2", True),
        (None, "openrouter", "openai/gpt-6", False),
        (None, None, "moonshotai/kimi-k2", False),
    ],
)
def test_calls_in_the_text_are_read_where_the_caller_or_the_catalog_says_so(
    leaks: Any, provider: str | None, model: str, is_call: bool
) -> None:
    asked = {**ASKED, "tools": [{"name": "weather", "input_schema": {"type": "object"}}]}
    chunk = {"id": "c", "created": 1, "model": model}
    message = {"role": "assistant", "content": LEAKED}
    answer = {
        **chunk,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    how: Any = {"provider": provider, "model": model, "leaks_calls": leaks, "request": asked}
    out = wireglot_core.translate_response(answer, source="openai-chat", target="anthropic", **how).value
    assert out["stop_reason"] == ("tool_use" if is_call else "end_turn")
    assert [part["type"] for part in out["content"]] == ["tool_use" if is_call else "text"]
    stream = wireglot_core.StreamTranslator(source="openai-chat", target="anthropic", **how)
    delta = {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": "stop"}]}
    frames = b"data: " + json.dumps(delta).encode() + b"\n\ndata: [DONE]\n\n"
    text = (stream.feed(frames) + stream.close()).decode()
    assert ('"tool_use"' in text) is is_call


def test_a_stream_reports_the_losses_of_the_whole_answer() -> None:
    ran = {"executableCode": {"language": "PYTHON", "code": "1 + 1"}}
    content = {"role": "model", "parts": [ran, {"text": "2"}]}
    answer = {**ANSWER, "candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}
    whole = wireglot_core.translate_response(answer, source="gemini", target="anthropic")
    assert [(loss.path, loss.feature, loss.action) for loss in whole.losses] == [
        ("$.content[0]", "foreign_part", "emulated")
    ]
    stream = wireglot_core.StreamTranslator(source="gemini", target="anthropic")
    assert stream.losses == []
    stream.feed(b"data: " + json.dumps(answer).encode() + b"\n\n")
    stream.close()
    assert [(loss.path, loss.feature, loss.detail) for loss in stream.losses] == [
        ("$.content", "foreign_part", whole.losses[0].detail)
    ]


@pytest.mark.parametrize("target", ["anthropic", "gemini", "openai-responses", "openai-chat"])
def test_a_cut_call_becomes_an_error_unless_the_dialect_stays(target: Any) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": '}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    answer = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
    }
    out = wireglot_core.translate_response(answer, source="openai-chat", target=target).value
    assert bool(out.get("error")) is (target != "openai-chat"), out
    if target == "openai-chat":
        assert out["choices"][0]["message"]["tool_calls"] == [call]


def test_a_stream_that_ends_well_has_not_failed() -> None:
    stream = wireglot_core.StreamTranslator(source="gemini", target="anthropic")
    assert not stream.failed
    text = stream.feed(b"data: " + json.dumps(ANSWER).encode() + b"\n\n") + stream.close()
    assert b"message_stop" in text
    assert not stream.failed
