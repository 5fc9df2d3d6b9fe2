"""The policy `as-is`: a request passes as it came, and the provider judges it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.relay.as_is_kit import ASKED, CONFIG, Stage, always_sunny
from tests.tiers import rows
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import decode, encode

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
STRICT = {**WEATHER, "function": {**WEATHER["function"], "strict": True}}  # type: ignore[dict-item]  # mypy joins the values of the table to object
CALL = {"id": "call_01", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}

DEMANDED: dict[str, dict[str, Any]] = {
    # what Moonshot's verifier asks of the one that serves Kimi, in shapes of our own
    "fixed sampling, wrong": {"temperature": 1.1, "top_p": 0.8, "n": 2, "presence_penalty": 0.5},
    "fixed sampling, right": {"temperature": 1.0, "top_p": 0.95, "n": 1},
    "thinking with an effort": {"thinking": {"type": "enabled", "keep": "all", "effort": "high"}},
    "thinking that is off": {"thinking": {"type": "disabled", "keep": "none", "effort": "high"}},
    "two efforts": {"thinking": {"type": "enabled", "effort": "low"}, "reasoning_effort": "max"},
    "thinking of open weights": {"chat_template_kwargs": {"thinking": False}},
    "tools on the way": {
        "messages": [{"role": "system", "content": "", "tools": [WEATHER]}, ASKED],
        "tool_choice": "required",
    },
    "tools on the way of no kind": {
        "messages": [{"role": "system", "content": "", "tools": [{"type": "nonsense"}]}, ASKED]
    },
    "tools on the way that are no list": {
        "messages": [{"role": "system", "content": "", "tools": {"type": "function"}}, ASKED]
    },
    "tools on the way of the user": {"messages": [{**ASKED, "tools": [WEATHER]}]},
    "strict": {"tools": [STRICT]},
    "a choice of nothing": {"tools": [], "tool_choice": "required"},
    "a choice nobody knows": {"tools": [WEATHER], "tool_choice": "bogus"},
    "a choice by name": {
        "tools": [WEATHER],
        "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
    },
    "a schema that is none": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "w", "schema": "x"}}
    },
    "a schema": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "w", "schema": {"type": "object", "properties": {"a": {"enum": [True]}}}},
        }
    },
    "a prefill": {"messages": [ASKED, {"role": "assistant", "content": "It is", "partial": True}]},
    "a result without its id": {"messages": [{"role": "tool", "content": "Sunny"}, ASKED]},
    "a turn without its reasoning": {
        "messages": [
            ASKED,
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "call_01", "content": "Sunny"},
        ]
    },
    "a field from tomorrow": {"warp": 9},
}


def sent_as(case: str, **more: Any) -> bytes:
    """A body with spaces and an order of its own: bytes are compared."""
    body = {"messages": [ASKED], "model": "kimi-k3", "max_tokens": 64, **DEMANDED[case], **more}
    return encode(body).replace(b',"model"', b' ,\n "model"')


KEY = "wg-key-of-the-verifier-0123456789"


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with (
        ScriptedUpstream(decide=always_sunny) as upstream,
        LiveGateway(CONFIG.format(url=upstream.url)) as gateway,
    ):
        yield Stage(gateway, upstream)


@rows("stream", [False, True])
@rows("case", DEMANDED)
def test_a_body_arrives_unchanged(stage: Stage, case: str, stream: bool) -> None:
    """[K9] Asked by header: not a byte is repaired, whatever stands in it."""
    body = sent_as(case, stream=stream)
    status, headers, _ = stage.post("/v1/chat/completions", body, x_wireglot_loss_policy="as-is")
    assert status == 200
    assert stage.arrived() == body
    assert "x-wireglot-losses" not in headers


@rows("case", DEMANDED)
def test_by_default_only_what_is_named_is_bent(stage: Stage, case: str) -> None:
    """[K9] Without the policy a body arrives as it came, or with named losses, or is refused by its field."""
    body = sent_as(case)
    before = len(stage.upstream.requests)
    status, headers, answer = stage.post("/v1/chat/completions", body)
    if status == 400:
        assert len(stage.upstream.requests) == before
        assert decode(answer)["error"]["param"]
        return
    assert status == 200
    said = {key for key in decode(body) if key not in ("model", "messages", "max_tokens")}
    missing = said - decode(stage.arrived()).keys()
    assert not missing or "x-wireglot-losses" in headers or missing == {"tools"}


def test_a_route_may_say_so(stage: Stage) -> None:
    """[K9] By route: of the body only the model's name changes."""
    body = sent_as("fixed sampling, wrong", model="verified")
    status, _, _ = stage.post("/v1/chat/completions", body)
    assert status == 200
    assert stage.arrived() == body.replace(b'"verified"', b'"kimi-k3"')


def test_a_key_may_say_so() -> None:
    """[K9] By key."""
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    keys = f'\n[keys]\nverifier = {{ hash = "sha256:{digest}", losses = "as-is" }}\n'
    with (
        ScriptedUpstream(decide=always_sunny) as upstream,
        LiveGateway(CONFIG.format(url=upstream.url) + keys) as gateway,
    ):
        stage = Stage(gateway, upstream)
        body = sent_as("fixed sampling, wrong")
        status, _, _ = stage.post("/v1/chat/completions", body, authorization=f"Bearer {KEY}")
        assert status == 200
        assert stage.arrived() == body


def test_the_providers_refusal_is_the_answer() -> None:
    """[K9] The provider judges: its own words come back."""
    refusal = encode(
        {"error": {"message": "invalid temperature: only 1 is allowed", "type": "invalid_request_error"}}
    )
    with ScriptedUpstream() as upstream, LiveGateway(CONFIG.format(url=upstream.url)) as gateway:
        upstream.next(Behaviour(status=400, body=refusal))
        body = sent_as("fixed sampling, wrong")
        answered = Stage(gateway, upstream).post("/v1/chat/completions", body, x_wireglot_loss_policy="as-is")
        assert answered[0] == 400
        assert b"only 1 is allowed" in answered[2]


def test_a_provider_of_another_dialect_cannot_be_asked_so(stage: Stage) -> None:
    """[K9] What would have to be translated is refused, by name."""
    before = len(stage.upstream.requests)
    body = encode({"model": "gpt", "messages": [ASKED]})
    status, _, answer = stage.post("/v1/chat/completions", body, x_wireglot_loss_policy="as-is")
    assert status == 400
    assert b"mine" in answer
    assert b"gemini" in answer
    assert len(stage.upstream.requests) == before


def test_an_unknown_policy_is_reported(stage: Stage) -> None:
    """[K9] The header's words are listed."""
    status, _, answer = stage.post("/v1/chat/completions", sent_as("strict"), x_wireglot_loss_policy="as is")
    assert status == 400
    assert b"as-is" in answer


SPOILED = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant",'
    b'"model":"kimi-k3-0911","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}\n\n',
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use",'
    b'"id":"t:0","name":"f","input":{"a":1}}}\n\n',
    b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"tool_use"},'
    b'"usage":{"output_tokens":2}}\n\n',
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
)


def test_an_answer_comes_back_as_it_is_too() -> None:
    """[K9] What Kimi says wrongly is seen as it said it: no call is repaired, no name of a model changed, and
    an answer of leaked tokens is one."""
    leaked = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "kimi-k3",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "<|tool_calls_section_begin|>"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    events = (("content-type", "text/event-stream"),)
    with ScriptedUpstream() as upstream, LiveGateway(CONFIG.format(url=upstream.url)) as gateway:
        stage = Stage(gateway, upstream)
        upstream.next(Behaviour(body=encode(leaked), headers=(("content-type", "application/json"),)))
        _, _, answer = stage.post("/v1/chat/completions", sent_as("strict"), x_wireglot_loss_policy="as-is")
        assert answer == encode(leaked)
        upstream.next(Behaviour(pieces=SPOILED, headers=events))
        body = encode({"model": "kimi-k3", "max_tokens": 9, "stream": True, "messages": [ASKED]})
        _, _, answer = stage.post("/v1/messages", body, x_wireglot_loss_policy="as-is")
        assert answer == b"".join(SPOILED)
        assert len(upstream.requests) == 2
