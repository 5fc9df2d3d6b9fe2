"""Recurring complaints about streams, usage, caches and settings in gateways, each as what must hold instead."""

import json
from typing import Any

import pytest

from tests.core.laws.cases import FIXTURES, MAIN, MAIN_PAIRS
from tests.core.laws.wires import ends_in
from tests.tiers import rows
from wireglot import StreamTranslator, StrictLoss, translate_request, translate_response
from wireglot_core.ir.request import EFFORTS

FAILING = {
    "anthropic": "error_midway.sse",
    "openai-chat": "error_midway.sse",
    "openai-responses": "failed_midway.sse",
    "gemini": "error_midway.sse",
}


def ask(**settings: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "?"}], **settings}


def chat(**settings: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "?"}], **settings}


@rows(("source", "target"), MAIN_PAIRS)
def test_a_failure_in_the_middle_is_an_error_for_the_client(source, target):
    """A6: an upstream failure turned into an empty, successful answer."""
    translator = StreamTranslator(source=source, target=target)
    data = (FIXTURES / source / "streams" / FAILING[source]).read_bytes()
    assert ends_in(target, translator.feed(data) + translator.close()) == "error"


@pytest.mark.parametrize("source", [name for name in MAIN if name != "openai-responses"])
def test_a_responses_stream_always_has_its_terminal_event(source):
    """A7: "stream closed before response.completed"."""
    for path in sorted((FIXTURES / source / "streams").glob("*.sse")):
        for data in (path.read_bytes(), path.read_bytes()[: path.stat().st_size // 2], b""):
            translator = StreamTranslator(source=source, target="openai-responses")
            out = translator.feed(data) + translator.close()
            last = json.loads(out.strip().rsplit(b"data: ", 1)[1])
            assert last["type"] in ("response.completed", "response.incomplete", "response.failed")
            assert last["response"]["object"] == "response"


def test_no_empty_text_block_is_ever_opened():
    """A25: empty text blocks emitted, then refused for ever on replay."""
    data = (
        b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
        b'{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
        b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
        b'{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]},'
        b'"finish_reason":null}]}\n\n'
        b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
        b'{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
    )
    translator = StreamTranslator(source="openai-chat", target="anthropic")
    out = translator.feed(data) + translator.close()
    assert b'"content_block":{"type":"text"' not in out
    blank = {"role": "user", "content": [{"type": "text", "text": "?"}, {"type": "text", "text": ""}]}
    body = translate_request(
        {"model": "m", "messages": [blank]}, source="openai-chat", target="anthropic"
    ).value
    assert '"text": ""' not in json.dumps(body)


def test_cache_markers_cross_where_the_target_has_them_and_are_declared_where_not():
    """A11: prompt caching silently lost; the only symptom is a bill."""
    system = [{"type": "text", "text": "Long.", "cache_control": {"type": "ephemeral"}}]
    responses = translate_request(
        ask(system=system), source="anthropic", target="openai-responses", model="gpt-5.6"
    )
    assert "prompt_cache_breakpoint" in json.dumps(responses.value)
    gemini = translate_request(ask(system=system), source="anthropic", target="gemini")
    assert any(loss.feature == "cache_marker" for loss in gemini.losses)


@rows(("source", "target"), MAIN_PAIRS)
def test_no_cache_marker_is_ever_added(source, target):
    """R-DD-14, A30: caching duplicated by a proxy on top of the client's own."""
    path = FIXTURES / source / "requests" / "plain_text.json"
    rendered = translate_request(path.read_bytes(), source=source, target=target)
    text = json.dumps(rendered.value)
    assert "cache_control" not in text
    assert "prompt_cache" not in text


def test_cached_tokens_are_counted_once():
    """A12: Anthropic's input excludes the cache, OpenAI's and Gemini's totals include it."""
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 200,
        "output_tokens": 50,
    }
    answer = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }
    chat_usage = translate_response(answer, source="anthropic", target="openai-chat").value["usage"]
    assert chat_usage["prompt_tokens"] == 1210
    assert chat_usage["prompt_tokens_details"]["cached_tokens"] == 1000
    assert chat_usage["total_tokens"] == 1260
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
        "usage": chat_usage,
    }
    back = translate_response(body, source="openai-chat", target="anthropic").value["usage"]
    assert {key: back[key] for key in usage} == usage


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "gemini"])
def test_fields_of_the_newest_clients_do_not_reach_other_back_ends(target):
    """A18: "Extra inputs are not permitted"."""
    body = ask(context_management={"edits": [{"type": "clear_tool_uses_20250919"}]}, x_beta_field={"a": 1})
    rendered = translate_request(body, source="anthropic", target=target)
    assert "context_management" not in rendered.value
    assert "x_beta_field" not in rendered.value
    paths = [loss.path for loss in rendered.losses]
    assert "$.x_beta_field" in paths
    assert "$.context_management" in paths


SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


@rows("source", MAIN)
@rows("target", MAIN)
def test_an_output_schema_crosses_in_every_direction(source, target):
    """A21: prose instead of JSON after a fallback."""
    asked: dict[str, dict[str, Any]] = {
        "anthropic": ask(output_config={"format": {"type": "json_schema", "schema": SCHEMA}}),
        "openai-chat": chat(
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "a", "schema": SCHEMA, "strict": True},
            }
        ),
        "openai-responses": {
            "model": "m",
            "input": "?",
            "text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA, "strict": True}},
        },
        "gemini": {
            "contents": [{"role": "user", "parts": [{"text": "?"}]}],
            "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA},
        },
    }
    body = translate_request(asked[source], source=source, target=target, model="model").value
    found = {
        "anthropic": lambda: body["output_config"]["format"]["schema"],
        "openai-chat": lambda: body["response_format"]["json_schema"]["schema"],
        "openai-responses": lambda: body["text"]["format"]["schema"],
        "gemini": lambda: body["generationConfig"]["responseJsonSchema"],
    }[target]()
    assert found["properties"] == SCHEMA["properties"]
    assert found["required"] == ["answer"]


@rows("effort", EFFORTS)
@rows(
    ("target", "model"),
    [
        ("anthropic", "claude-opus-4-8"),
        ("anthropic", "claude-sonnet-4-5"),
        ("gemini", "gemini-2.5-pro"),
        ("gemini", "gemini-3-pro"),
        ("openai-responses", "gpt-5.6"),
    ],
)
def test_an_effort_is_kept_or_its_change_is_declared(effort, target, model):
    """R-DA-14, A23: xhigh silently dropped, budgets wrong or refused."""
    rendered = translate_request(
        chat(reasoning_effort=effort), source="openai-chat", target=target, model=model
    )
    text = json.dumps(rendered.value)
    kept = f'"{effort}"' in text or f'"{effort.upper()}"' in text
    off = effort == "none" and ('"disabled"' in text or '"thinkingBudget": 0' in text)
    declared = any(loss.feature.startswith("thinking.") for loss in rendered.losses)
    assert kept or off or declared


def test_every_dropped_parameter_is_reported():
    """C38, A24: parameters removed without a word."""
    body = chat(seed=1, frequency_penalty=0.5, logit_bias={"1": 2}, stop=["END"], verbosity="low", n=2)
    rendered = translate_request(body, source="openai-chat", target="openai-responses", model="model")
    features = {loss.feature for loss in rendered.losses}
    assert {
        "sampling.seed",
        "sampling.frequency_penalty",
        "stop_sequences",
        "candidates",
        "unknown_field",
    } <= features
    with pytest.raises(StrictLoss):
        translate_request(body, source="openai-chat", target="openai-responses", model="model", strict=True)


def test_a_chained_response_is_declared_where_no_one_keeps_the_chain():
    """C41, A26: previous_response_id unsupported off OpenAI; a gateway keeps the chain, the library says so."""
    body = {"model": "m", "input": "Go on", "previous_response_id": "resp_1"}
    rendered = translate_request(body, source="openai-responses", target="anthropic", model="model")
    assert "$.previous_response_id" in [loss.path for loss in rendered.losses]


def test_every_pair_has_a_pinned_translation():
    """A27: a tool payload broken by a release."""
    for source, target in MAIN_PAIRS:
        pinned = (FIXTURES / "pairs" / source / "requests").glob("*.txt")
        assert any(f"\n# {target}\n" in f"\n{page.read_text(encoding='utf-8')}" for page in pinned)
