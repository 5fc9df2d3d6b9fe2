"""An upstream that refuses the reasoning of earlier turns is asked once more, without it, before a byte goes out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.faults.faults_kit import Answered, post
from tests.tiers import rows
from wireglot.gateway.relay.refusals import helps, is_about_state, without_opaque_state
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.ir.content import (
    Extra,
    Message,
    Origin,
    Part,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.request import Request, Thinking
from wireglot_core.wire.json import decode, encode

GEMINI_MISSING = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
    "correctly, and missing thought_signature may lead to degraded model performance."
)
GEMINI_CORRUPTED = "Corrupted thought signature."
CLAUDE_SIGNATURE = "messages.1.content.0: Invalid `signature` in `thinking` block"
CLAUDE_LOOP = (
    "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` "
    "is enabled, a final `assistant` message must start with a thinking block."
)
OPENAI_FOREIGN = (
    "The encrypted content gAAA...Zg== could not be verified. Reason: Encrypted content could not be decrypted "
    "or parsed."
)
OPENAI_UNKNOWN = (
    "Item with id 'rs_0123' not found. Items are not persisted when `store` is set to false. Try again with "
    "`store` set to true, or remove this item from your input."
)


@rows(
    "said",
    [
        GEMINI_MISSING,
        GEMINI_CORRUPTED,
        "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed",
        "Thought signature is not valid.",
        CLAUDE_SIGNATURE,
        CLAUDE_LOOP,
        "messages.1.content.1: Invalid `data` in `redacted_thinking` block",
        "messages.1.content.0.thinking.signature: Field required",
        "Invalid signature in thinking block. The block is bound to a different conversation.",
        "messages.5.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
        "modified. These blocks must remain as they were in the original response.",
        "When `thinking` is disabled, an `assistant` message in the final position cannot contain `thinking`.",
        OPENAI_FOREIGN,
        "Encrypted content organization_id did not match the target organization.",
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        OPENAI_UNKNOWN,
    ],
)
def test_what_providers_say_of_state_they_cannot_read_is_understood(said: str) -> None:
    """R-DA-06, PAINS 1, 3, 10"""
    assert is_about_state(ApiError("invalid_request", said, status=400))


@rows(
    "said",
    [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "max_tokens must be greater than thinking.budget_tokens",
        "thinking: adaptive thinking is not supported on this model",
        "Unknown name \"signature\" at 'tools[0]'",
        "Item with id 'msg_1' not found.",
        "Invalid API key",
    ],
)
def test_other_complaints_are_left_alone(said: str) -> None:
    assert not is_about_state(ApiError("invalid_request", said, status=400))


def test_the_code_alone_is_enough() -> None:
    assert is_about_state(ApiError("invalid_request", "", code="invalid_encrypted_content"))


def _signed(by: str) -> Signature:
    return Signature("c2ln", Origin(by))


def _asked(*content: Part, **more: Any) -> Request:
    answer = ToolResult("call_1", (Text("rain"),))
    messages = (
        Message("user", (Text("Weather?"),)),
        Message("assistant", content),
        Message("user", (answer,)),
    )
    return Request("m", messages, **more)


CALL = ToolCall("call_1", "look_up", "{}")


def test_state_is_left_out_and_reported() -> None:
    thoughts = (
        Reasoning("Hm.", _signed("anthropic")),
        Reasoning("", _signed("anthropic"), redacted=True),
        Reasoning("Kimi's own words"),
    )
    text, call = Text("So.", signature=_signed("gemini")), CALL
    stripped = without_opaque_state(_asked(*thoughts, text, call), "gemini")
    assert stripped.request.messages[1].content == (thoughts[2], Text("So."), call)
    assert [(loss.path, loss.feature) for loss in stripped.losses] == [
        ("$.messages[1].content[0]", "reasoning.text"),
        ("$.messages[1].content[1]", "reasoning.redacted"),
        ("$.messages[1].content[3].signature", "reasoning.signature"),
    ]


def test_a_turn_of_nothing_but_state_goes_whole() -> None:
    request = _asked(Reasoning("", _signed("anthropic"), redacted=True))
    assert [message.role for message in without_opaque_state(request, "anthropic").request.messages] == [
        "user",
        "user",
    ]


def test_claude_is_asked_not_to_think_in_a_loop_whose_thinking_is_gone() -> None:
    """Only where it was given a budget to think: adaptive models go on without."""
    request = _asked(Reasoning("Hm.", _signed("anthropic")), CALL, thinking=Thinking("on", budget=2048))
    stripped = without_opaque_state(request, "anthropic")
    assert stripped.request.thinking.mode == "off"
    assert "thinking.mode" in {loss.feature for loss in stripped.losses}
    adaptive = _asked(Reasoning("Hm.", _signed("anthropic")), CALL, thinking=Thinking("auto"))
    assert without_opaque_state(adaptive, "anthropic").request.thinking == Thinking("auto")


def test_openais_items_lose_the_ids_that_their_reasoning_is_missed_by() -> None:
    call = ToolCall(
        "call_1", "f", "{}", extra=Extra("openai-responses", form={"id": "fc_1", "status": "completed"})
    )
    text = Text("So.", extra=Extra("openai-responses", form={"item": {"id": "msg_1", "number": 0}}))
    (one, other) = without_opaque_state(_asked(text, call), "openai-responses").request.messages[1].content
    assert type(one) is Text
    assert type(other) is ToolCall
    assert one.extra == Extra("openai-responses", form={"item": {"number": 0}})
    assert other.extra == Extra("openai-responses", form={"status": "completed"})


def test_what_a_dialect_said_that_nobody_knows_any_more_stays() -> None:
    call = ToolCall("call_1", "f", "{}", extra=Extra("gone", form={"id": "fc_1"}))
    request = _asked(call)
    assert without_opaque_state(request, "openai-responses").request == request


def test_asking_again_helps_only_where_something_changes() -> None:
    plain = _asked(CALL)
    assert not helps(plain, "anthropic", passed_raw=True)
    assert not helps(plain, "openai-responses", passed_raw=True)
    assert helps(plain, "gemini", passed_raw=True)  # the bypass
    assert not helps(plain, "gemini", passed_raw=False)  # it was there
    assert helps(_asked(CALL, thinking=Thinking("on", budget=2048)), "anthropic", passed_raw=True)
    assert helps(_asked(Reasoning("", _signed("anthropic")), CALL), "anthropic", passed_raw=True)


# The gateway


def _error(dialect: str, said: str, code: str = "") -> dict[str, Any]:
    match dialect:
        case "gemini":
            return {"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}
        case "anthropic":
            return {"type": "error", "error": {"type": "invalid_request_error", "message": said}}
    return {"error": {"message": said, "type": "invalid_request_error", "param": None, "code": code or None}}


TOOLS = [{"type": "function", "name": "look_up", "parameters": {"type": "object", "properties": {}}}]


def _body(dialect: str, stream: bool = False, state: bool = True) -> dict[str, Any]:
    """A tool loop in the upstream's own dialect, with state that it will not know."""
    match dialect:
        case "gemini":
            call: dict[str, Any] = {"functionCall": {"id": "a1b2c3d4", "name": "look_up", "args": {}}}
            if state:
                call["thoughtSignature"] = "c2ln"
            answer: dict[str, Any] = {
                "functionResponse": {"id": "a1b2c3d4", "name": "look_up", "response": {"output": "rain"}}
            }
            return {
                "contents": [
                    {"role": "user", "parts": [{"text": "Weather?"}]},
                    {"role": "model", "parts": [call]},
                    {"role": "user", "parts": [answer]},
                ],
                "tools": [{"functionDeclarations": [{"name": "look_up"}]}],
            }
        case "anthropic":
            blocks: list[dict[str, Any]] = [
                {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {}}
            ]
            if state:
                blocks.insert(0, {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"})
            answer = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"}
            return {
                "model": "m",
                "max_tokens": 9000,
                "stream": stream,
                "thinking": {"type": "enabled", "budget_tokens": 2048},
                "tools": [{"name": "look_up", "input_schema": {"type": "object"}}],
                "messages": [
                    {"role": "user", "content": "Weather?"},
                    {"role": "assistant", "content": blocks},
                    {"role": "user", "content": [answer]},
                ],
            }
    items: list[dict[str, Any]] = [
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look_up", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "rain"},
    ]
    if state:
        items.insert(0, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"})
    question = {"type": "message", "role": "user", "content": "Weather?"}
    return {"model": "m", "stream": stream, "store": False, "tools": TOOLS, "input": [question, *items]}


def _path(dialect: str, stream: bool) -> str:
    paths = {
        "gemini": f"/v1beta/models/m:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}",
        "anthropic": "/v1/messages",
    }
    return paths.get(dialect, "/v1/responses")


def _ask(gateway: LiveGateway, dialect: str, body: dict[str, Any], stream: bool, **headers: str) -> Answered:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return post(gateway.port, _path(dialect, stream), encode(body), named)


def _has_state(body: dict[str, Any]) -> bool:
    return any(word in encode(body) for word in (b'"c2ln"', b'"gAAA"', b'"fc_1"', b'"rs_1"'))


REFUSALS = [
    ("gemini", GEMINI_CORRUPTED),
    ("anthropic", CLAUDE_SIGNATURE),
    ("openai-responses", OPENAI_FOREIGN),
]


@rows("stream", [False, True], ids=["whole", "streamed"])
@rows(("dialect", "said"), REFUSALS)
def test_one_more_question_without_the_state_and_the_client_is_informed(
    dialect: str, said: str, stream: bool
) -> None:
    """R-DA-06, R-DA-09"""
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, dialect) as gateway:
        upstream.next(Behaviour(status=400, body=encode(_error(dialect, said)), headers=_JSON), Behaviour())
        answer = _ask(gateway, dialect, _body(dialect, stream), stream)
        assert answer.status == 200
        first, second = upstream.wait_for(2)
        assert _has_state(first.json)
        assert not _has_state(second.json)
        assert "reasoning" in answer.headers["x-wireglot-losses"]
        (line,) = gateway.wait_log()
        assert "reasoning state refused: left out" in line["notes"]


@pytest.mark.parametrize(("dialect", "said"), REFUSALS)
def test_only_once(dialect: str, said: str) -> None:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, dialect) as gateway:
        refusal = Behaviour(status=400, body=encode(_error(dialect, said)), headers=_JSON)
        upstream.next(refusal, refusal, Behaviour())
        answer = _ask(gateway, dialect, _body(dialect), False)
        assert answer.status == 400
        assert said[:20] in answer.body.decode()
        assert len(upstream.wait_for(2)) == 2


def test_gemini_gets_the_documented_bypass() -> None:
    """R-DA-05, R-DA-06: also where the client itself had nothing to send."""
    for state, said in ((True, GEMINI_CORRUPTED), (False, GEMINI_MISSING)):
        with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "gemini") as gateway:
            upstream.next(
                Behaviour(status=400, body=encode(_error("gemini", said)), headers=_JSON), Behaviour()
            )
            assert _ask(gateway, "gemini", _body("gemini", state=state), False).status == 200
            call = upstream.wait_for(2)[1].json["contents"][1]["parts"][0]
            assert call["thoughtSignature"] == "skip_thought_signature_validator"


def test_claude_goes_on_without_thinking() -> None:
    for state, said in ((True, CLAUDE_SIGNATURE), (False, CLAUDE_LOOP)):
        with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "anthropic") as gateway:
            body = encode(_error("anthropic", said))
            upstream.next(Behaviour(status=400, body=body, headers=_JSON), Behaviour())
            assert _ask(gateway, "anthropic", _body("anthropic", state=state), False).status == 200
            assert upstream.wait_for(2)[1].json["thinking"] == {"type": "disabled"}


@pytest.mark.parametrize(
    ("dialect", "said"),
    [("anthropic", CLAUDE_SIGNATURE), ("openai-responses", "Item 'rs_1' not found.")],
)
def test_where_nothing_would_change_the_refusal_is_the_answer(dialect: str, said: str) -> None:
    body = _body(dialect, state=False)
    if dialect == "anthropic":
        del body["thinking"]
    else:
        del body["input"][1]["id"]
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, dialect) as gateway:
        upstream.next(Behaviour(status=400, body=encode(_error(dialect, said)), headers=_JSON), Behaviour())
        assert _ask(gateway, dialect, body, False).status == 400
        assert len(upstream.wait_for(1)) == 1


def test_an_item_that_is_not_stored_is_a_404_about_state() -> None:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "openai-responses") as gateway:
        body = encode(_error("openai-responses", OPENAI_UNKNOWN))
        upstream.next(Behaviour(status=404, body=body, headers=_JSON), Behaviour())
        assert _ask(gateway, "openai-responses", _body("openai-responses"), False).status == 200
        assert len(upstream.wait_for(2)) == 2


def _first_event(dialect: str, said: str) -> bytes:
    match dialect:
        case "gemini":
            return b"data: " + encode(_error("gemini", said)) + b"\r\n\r\n"
        case "anthropic":
            return b"event: error\ndata: " + encode(_error("anthropic", said)) + b"\n\n"
    event = {"type": "error", "code": "invalid_encrypted_content", "message": said, "param": None}
    return b"event: error\ndata: " + encode({**event, "sequence_number": 0}) + b"\n\n"


@pytest.mark.parametrize(("dialect", "said"), REFUSALS)
def test_a_refusal_as_the_first_event_of_a_stream_is_one_too(dialect: str, said: str) -> None:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, dialect) as gateway:
        stream = (("content-type", "text/event-stream"),)
        upstream.next(Behaviour(pieces=(_first_event(dialect, said),), headers=stream), Behaviour())
        answer = _ask(gateway, dialect, _body(dialect, stream=True), True)
        assert answer.status == 200
        assert said[:20].encode() not in answer.body
        assert not _has_state(upstream.wait_for(2)[1].json)


@pytest.mark.parametrize(("dialect", "said"), REFUSALS)
def test_a_refusal_under_a_good_status_is_one_too(dialect: str, said: str) -> None:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, dialect) as gateway:
        upstream.next(Behaviour(body=encode(_error(dialect, said)), headers=_JSON), Behaviour())
        answer = _ask(gateway, dialect, _body(dialect), False)
        assert answer.status == 200
        assert "error" not in decode(answer.body) or decode(answer.body)["error"] is None
        assert not _has_state(upstream.wait_for(2)[1].json)


def test_anyone_who_wants_no_losses_gets_the_refusal() -> None:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "gemini") as gateway:
        body = encode(_error("gemini", GEMINI_CORRUPTED))
        upstream.next(Behaviour(status=400, body=body, headers=_JSON), Behaviour())
        answer = _ask(gateway, "gemini", _body("gemini"), False, x_wireglot_loss_policy="strict")
        assert answer.status == 400
        assert "Corrupted" in answer.body.decode()
        assert len(upstream.wait_for(1)) == 1


def test_what_one_upstream_refuses_the_next_may_still_read() -> None:
    """The second one is asked with all of it: it may be the one that minted it."""
    with ScriptedUpstream() as upstream, ScriptedUpstream() as next_one:
        toml = "".join(
            f'[providers.{name}]\ndialect = "gemini"\nbase_url = "{each.url}/v1beta"\napi_key = "key-0123456789"\n'
            "retry = { retries = 0 }\n"
            for name, each in (("one", upstream), ("other", next_one))
        )
        with LiveGateway(f'{toml}[models]\n"m" = ["one/m", "other/m"]\n') as gateway:
            body = encode(_error("gemini", GEMINI_CORRUPTED))
            upstream.next(Behaviour(status=400, body=body, headers=_JSON), Behaviour(error=500))
            assert _ask(gateway, "gemini", _body("gemini"), False).status == 200
            assert not _has_state(upstream.wait_for(2)[1].json)
            assert _has_state(next_one.wait_for(1)[0].json)


_JSON = (("content-type", "application/json"),)
