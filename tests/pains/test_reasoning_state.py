"""Recurring complaints about reasoning state in gateways, each as what must hold instead."""

from typing import Any

import pytest

from wireglot import Context, translate_request, translate_response
from wireglot_core.dialects.envelope import seal
from wireglot_core.ir.content import Origin, Signature

CLIENTS = ("anthropic", "openai-chat", "openai-responses")
SIGNATURE = "CvABAdHtim8="
WEATHER = {"functionDeclarations": [{"name": "get_weather", "description": "Weather."}]}

GEMINI_ANSWER = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {
                        "functionCall": {"name": "get_weather", "args": {"city": "Bern"}},
                        "thoughtSignature": SIGNATURE,
                    },
                    {"functionCall": {"name": "get_weather", "args": {"city": "Basel"}}},
                ],
            },
            "finishReason": "STOP",
        }
    ],
    "modelVersion": "gemini-3-pro",
    "responseId": "r1",
}


def next_turn(client: str, answer: dict[str, Any]) -> dict[str, Any]:
    """What the client's own agent loop sends after an answer with tool calls."""
    if client == "anthropic":
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "21"}
            for block in answer["content"]
            if block["type"] == "tool_use"
        ]
        turns = [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": results}]
        return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}, *turns]}
    if client == "openai-chat":
        message = answer["choices"][0]["message"]
        chat_results = [
            {"role": "tool", "tool_call_id": call["id"], "content": "21"} for call in message["tool_calls"]
        ]
        return {"model": "m", "messages": [{"role": "user", "content": "?"}, message, *chat_results]}
    outputs = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "21"}
        for item in answer["output"]
        if item["type"] == "function_call"
    ]
    return {"model": "m", "input": [{"role": "user", "content": "?"}, *answer["output"], *outputs]}


def call_ids(client: str, answer: dict[str, Any]) -> list[str]:
    if client == "anthropic":
        return [block["id"] for block in answer["content"] if block["type"] == "tool_use"]
    if client == "openai-chat":
        return [call["id"] for call in answer["choices"][0]["message"]["tool_calls"]]
    return [item["call_id"] for item in answer["output"] if item["type"] == "function_call"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_thought_signature_returns_on_the_very_call_that_carried_it(client):
    """R-DA-02, R-DA-03, C9, A1: 400 on the second tool turn because the signature was not sent back."""
    answer = translate_response(GEMINI_ANSWER, source="gemini", target=client).value
    body = translate_request(
        next_turn(client, answer), source=client, target="gemini", model="gemini-3-pro"
    ).value
    calls = [part for part in body["contents"][1]["parts"] if "functionCall" in part]
    assert [call.get("thoughtSignature") for call in calls] == [SIGNATURE, None]
    assert [call["functionCall"]["args"]["city"] for call in calls] == ["Bern", "Basel"]


@pytest.mark.parametrize("client", CLIENTS)
def test_tool_call_ids_stay_short_and_hold_no_signature(client):
    """R-DB-01, A2: a signature smuggled into a tool-call id breaks every other vendor."""
    answer = translate_response(GEMINI_ANSWER, source="gemini", target=client).value
    ids = call_ids(client, answer)
    assert len(set(ids)) == 2
    assert all(len(identifier) <= 40 and identifier.replace("_", "").isalnum() for identifier in ids)


@pytest.mark.parametrize(
    "signature",
    [
        pytest.param("ErUB-of-another-gateway-or-model", id="foreign account"),
        pytest.param(
            seal(Signature(SIGNATURE, Origin("gemini")), "reasoning", Context().secret), id="sealed Gemini"
        ),
    ],
)
def test_only_the_minter_gets_a_signature_back(signature):
    """A3: "Invalid signature in thinking block" after switching the provider."""
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": signature}
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": [thinking, {"type": "text", "text": "Yes."}]},
            {"role": "user", "content": "Go on"},
        ],
    }
    for target in ("openai-chat", "openai-responses"):
        rendered = translate_request(body, source="anthropic", target=target)
        assert signature not in str(rendered.value)
        assert SIGNATURE not in str(rendered.value)
        assert any(loss.feature.startswith("reasoning.") for loss in rendered.losses)


def test_an_empty_signature_is_never_forged_for_an_anthropic_upstream():
    """A3, R-DA-08."""
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."},
            {"role": "user", "content": "Go on"},
        ],
    }
    rendered = translate_request(body, source="openai-chat", target="anthropic").value
    assert "thinking" not in str(rendered["messages"])
    assert "signature" not in str(rendered["messages"])


ENCRYPTED = {
    "id": "resp_1",
    "object": "response",
    "model": "gpt-5",
    "status": "completed",
    "output": [
        {"type": "reasoning", "id": "rs_0123456789abcdef", "summary": [], "encrypted_content": "gAAAAABx=="},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"},
    ],
}


@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "gemini"])
def test_encrypted_reasoning_survives_a_client_of_another_dialect(client):
    """A9: OpenAI reasoning items dropped across bridges, without an error."""
    answer = translate_response(ENCRYPTED, source="openai-responses", target=client).value
    if client == "gemini":
        request: dict[str, Any] = {
            "contents": [
                {"role": "user", "parts": [{"text": "?"}]},
                answer["candidates"][0]["content"],
                {
                    "role": "user",
                    "parts": [{"functionResponse": {"name": "f", "response": {"output": "21"}}}],
                },
            ]
        }
    else:
        request = next_turn(client, answer)
    back = translate_request(request, source=client, target="openai-responses", model="gpt-5").value
    states = [
        (entry["id"], entry["encrypted_content"])
        for entry in back["input"]
        if entry.get("type") == "reasoning"
    ]
    assert states == [("rs_0123456789abcdef", "gAAAAABx==")]


def test_encrypted_reasoning_is_not_sent_to_another_account():
    """A10: 400 because an item minted with one key was sent with another."""
    minted = Context(provider="openai", account="team-a")
    answer = translate_response(
        ENCRYPTED, source="openai-responses", target="anthropic", context=minted
    ).value
    request = next_turn("anthropic", answer)
    there = translate_request(
        request, source="anthropic", target="openai-responses", model="gpt-5", context=minted
    )
    assert "gAAAAABx==" in str(there.value)
    other = Context(provider="openai", account="team-b")
    elsewhere = translate_request(
        request, source="anthropic", target="openai-responses", model="gpt-5", context=other
    )
    assert "gAAAAABx==" not in str(elsewhere.value)
    assert any(loss.feature.startswith("reasoning.") for loss in elsewhere.losses)


@pytest.mark.parametrize("reasoning", ["Two lookups.", ""])
def test_reasoning_goes_back_to_kimi_on_every_tool_turn(reasoning):
    """A8: "reasoning_content is missing in assistant tool call message"."""
    message = {
        "role": "assistant",
        "content": None,
        "reasoning_content": reasoning,
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    body = {
        "model": "kimi-k3",
        "messages": [
            {"role": "user", "content": "?"},
            message,
            {"role": "tool", "tool_call_id": "call_1", "content": "21"},
        ],
    }
    rendered = translate_request(body, source="openai-chat", target="openai-chat", provider="kimi").value
    assert rendered["messages"][1]["reasoning_content"] == reasoning


def test_kimi_reasoning_comes_back_through_an_anthropic_client():
    """A8."""
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "kimi-k3",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": None,
                    "reasoning_content": "Two lookups.",
                    "tool_calls": [
                        {
                            "id": "functions.f:0",
                            "type": "function",
                            "function": {"name": "f", "arguments": "{}"},
                        }
                    ],
                },
            }
        ],
    }
    client = translate_response(answer, source="openai-chat", target="anthropic", provider="kimi").value
    back = translate_request(
        next_turn("anthropic", client),
        source="anthropic",
        target="openai-chat",
        model="kimi-k3",
        provider="kimi",
    ).value
    assert back["messages"][1]["reasoning_content"] == "Two lookups."


@pytest.mark.parametrize("changed", [False, True], ids=["as it came", "changed"])
def test_a_signature_is_not_replayed_beside_a_text_that_changed(changed):
    """A3, [X18]: two thoughts of one answer become one text for a Chat client. It is cut again where they ended;
    where it has been changed, Claude would refuse either signature beside it."""
    thoughts = [{"type": "thinking", "thinking": text, "signature": f"S{text}"} for text in ("one", "two")]
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5",
        "content": [thoughts[0], {"type": "text", "text": "Hm."}, thoughts[1], call],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    answer = translate_response(body, source="anthropic", target="openai-chat")
    assert "content.position" in [loss.feature for loss in answer.losses]
    if changed:
        answer.value["choices"][0]["message"]["reasoning_content"] += " And so on."
    request = translate_request(
        next_turn("openai-chat", answer.value),
        source="openai-chat",
        target="anthropic",
        model="claude-opus-5",
    )
    if changed:
        assert "Sone" not in str(request.value)
        assert "Stwo" not in str(request.value)
        assert "reasoning.text" in [loss.feature for loss in request.losses]
    else:
        assert request.value["messages"][1]["content"][:2] == thoughts
