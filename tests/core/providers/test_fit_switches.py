"""Switches that only the client's dialect knows."""

from typing import Any

from tests.tiers import rows
from wireglot_core import translate_request
from wireglot_core.dialects.registry import DialectName

BODIES: dict[str, dict[str, Any]] = {
    "anthropic": {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "?"}]},
    "openai-chat": {"model": "m", "messages": [{"role": "user", "content": "?"}]},
    "openai-responses": {"model": "m", "input": "?"},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "?"}]}]},
}
PAIRS = [(source, target) for source in BODIES for target in BODIES if source != target]


def lost(source: DialectName, target: DialectName, **more: object) -> list[str]:
    sent = translate_request({**BODIES[source], **more}, source=source, target=target, model="m")
    return [loss.path for loss in sent.losses if loss.feature == "unknown_field"]


@rows(("source", "target"), PAIRS)
@rows("value", [True, False, 0, ""], ids=repr)
def test_an_unknown_switch_is_declared_whichever_way_it_is_set(source, target, value):
    """[X9] Off is an answer too: `false`, `0` and "" are declared like `true`."""
    assert lost(source, target, x_new_switch=value) == ["$.x_new_switch"]


@rows(("source", "target"), PAIRS)
@rows("value", [None, [], {}], ids=repr)
def test_a_null_and_an_empty_list_say_nothing(source, target, value):
    """[X9] Nulls stay silent: SDKs write them for what nobody set."""
    assert lost(source, target, x_new_switch=value) == []


def test_switches_inside_messages_parts_and_tools_are_declared_where_they_stand():
    """[X9] ... at any depth."""
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "?", "x_part": False}], "x_message": 0}
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}, "x_tool": ""}],
    }
    sent = translate_request(body, source="openai-chat", target="gemini")
    assert sorted(loss.path for loss in sent.losses if loss.feature == "unknown_field") == [
        "$.messages[0].content[0].x_part",
        "$.messages[0].x_message",
        "$.tools[0].x_tool",
    ]


def test_what_everybody_knows_is_no_loss_where_it_is_empty():
    """[X9] The empty text beside Chat's calls, Gemini's mark that a part is no thought."""
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chat = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "x"},
    ]
    assert lost("openai-chat", "anthropic", messages=chat) == []
    gemini = [{"role": "user", "parts": [{"text": "?", "thought": False}]}]
    assert lost("gemini", "anthropic", contents=gemini) == []
