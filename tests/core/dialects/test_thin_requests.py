"""Requests with little or nothing to answer in them, and what stands twice in them."""

from typing import Any

import pytest

from tests.tiers import rows
from wireglot_core import ClientFault, translate_request

TARGETS = ("anthropic", "openai-chat", "openai-responses", "gemini")
EMPTY: dict[str, tuple[dict[str, Any], str]] = {
    "anthropic": ({"model": "m", "max_tokens": 5, "messages": []}, "$.messages"),
    "openai-chat": ({"model": "m", "messages": []}, "$.messages"),
    "openai-responses": ({"model": "m", "input": []}, "$.input"),
    "gemini": ({"contents": []}, "$.contents"),
}
CONVERSATION = {
    "anthropic": "messages",
    "openai-chat": "messages",
    "openai-responses": "input",
    "gemini": "contents",
}


@rows("target", TARGETS)
@rows("source", EMPTY)
def test_a_conversation_without_a_message_is_refused_by_the_name_of_its_field(source, target):
    """[X24] Empty `messages` are not forwarded for the upstream to complain about."""
    body, path = EMPTY[source]
    with pytest.raises(ClientFault) as refused:
        translate_request(body, source=source, target=target)
    assert refused.value.path == path


SILENT: list[tuple[str, dict[str, Any]]] = [
    ("anthropic", {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": []}]}),
    ("anthropic", {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": ""}]}),
    ("openai-chat", {"model": "m", "messages": [{"role": "user", "content": ""}]}),
    ("openai-chat", {"model": "m", "messages": [{"role": "assistant"}]}),
    ("openai-responses", {"model": "m", "input": ""}),
    ("gemini", {"contents": [{"role": "user", "parts": []}]}),
    ("gemini", {"contents": [{"role": "user", "parts": [{"text": ""}]}]}),
    ("gemini", {"contents": [{"role": "user"}]}),
]


@rows("target", TARGETS)
@rows(("source", "body"), SILENT)
def test_a_conversation_in_which_nothing_is_said_is_not_sent_empty(source, body, target):
    """[X24] Its turns stay empty where the target takes them; what is put in their place elsewhere is
    declared."""
    sent = translate_request(body, source=source, target=target)
    if source == target:
        assert sent.value[CONVERSATION[target]] == body[CONVERSATION[target]]
        return
    assert sent.value[CONVERSATION[target]]
    invented = "[empty message]" in str(sent.value) or "Continue." in str(sent.value)
    reported = [loss.grade for loss in sent.losses if loss.feature in ("content.empty", "content.position")]
    assert reported[-1:] == (["degraded"] if invented else [])
    assert invented or target.startswith("openai")


@pytest.mark.parametrize("target", TARGETS)
def test_a_developer_only_request_still_asks_something(target):
    """[X24] Legal on Chat; everybody else gets a conversation that is not empty."""
    body = {"model": "m", "messages": [{"role": "developer", "content": "Say hello."}]}
    sent = translate_request(body, source="openai-chat", target=target).value
    assert sent[CONVERSATION[target]]
    assert "Say hello." in str(sent)


def test_of_two_results_for_one_call_the_later_one_stands():
    """[X24] Later ones correct earlier ones; the earlier is declared."""
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "interrupted"},
            {"role": "tool", "tool_call_id": "call_1", "content": "21 degrees"},
            {"role": "user", "content": "!"},
        ],
    }
    sent = translate_request(body, source="openai-chat", target="anthropic", model="m")
    (result, _) = sent.value["messages"][2]["content"]
    assert result["content"] == "21 degrees"
    assert [(loss.path, loss.action) for loss in sent.losses if loss.feature == "tool_result.pairing"] == [
        ("$.messages[2]", "dropped")
    ]


@pytest.mark.parametrize("target", ["openai-responses", "openai-chat"])
def test_a_flat_freeform_tool_is_a_freeform_tool(target):
    """[X24] Cursor writes Chat tools as Responses does: nothing is nested."""
    grammar = {"type": "grammar", "syntax": "lark", "definition": 'start: "x"'}
    flat = {"type": "custom", "name": "apply_patch", "description": "Patch.", "format": grammar}
    body = {"model": "m", "messages": [{"role": "user", "content": "?"}], "tools": [flat]}
    sent = translate_request(body, source="openai-chat", target=target)
    assert sent.value["tools"] == [flat]
    assert not sent.losses


def test_a_flat_freeform_tool_becomes_a_function_where_there_are_only_functions():
    """[X24] ... and is no hosted tool."""
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "?"}],
        "tools": [{"type": "custom", "name": "apply_patch", "description": "Patch."}],
    }
    sent = translate_request(body, source="openai-chat", target="anthropic")
    assert [tool["name"] for tool in sent.value["tools"]] == ["apply_patch"]


@rows("target", TARGETS)
@rows("source", ["openai-chat", "openai-responses", "gemini"])
def test_a_negative_limit_is_no_limit_elsewhere(source, target):
    """Servers that speak Chat take -1 for none; no other dialect takes it for anything."""
    bodies: dict[str, dict[str, Any]] = {
        "openai-chat": {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": -1},
        "openai-responses": {"input": "Hi.", "max_output_tokens": -1},
        "gemini": {"contents": [{"parts": [{"text": "Hi."}]}], "generationConfig": {"maxOutputTokens": -1}},
    }
    body = bodies[source] if source == "gemini" else {"model": "m", **bodies[source]}
    sent = translate_request(body, source=source, target=target)
    if source == target:
        assert sent.value == body
    else:
        assert "-1" not in str(sent.value)
        reported = [loss.action for loss in sent.losses if loss.feature == "max_tokens"]
        assert reported == (["dropped", "invented"] if target == "anthropic" else ["dropped"])
