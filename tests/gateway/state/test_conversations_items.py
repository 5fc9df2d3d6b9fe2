"""Messages of any dialect as the items of a conversation."""

from __future__ import annotations

import msgspec
import pytest

from wireglot.gateway.state.conversations.items import as_wire, items_of, turns_of
from wireglot.gateway.state.stored_forms import KeptItem
from wireglot_core.dialects.context import Context
from wireglot_core.ir.content import Media, Message, Origin, Reasoning, Signature, Text, ToolCall, ToolResult

CONTEXT = Context(seed="test")

SIGNED = Message(
    "assistant",
    (
        Reasoning("thought", Signature("c2ln", Origin("anthropic", "a", "m"))),
        Text("one"),
        Media("image", "image/png", data="aGk="),
        ToolCall("call_1", "get_weather", "{}", signature=Signature("c2ln", Origin("gemini", "g", "m"))),
        ToolCall("call_2", "get_time", "{}"),
    ),
)
RESULTS = Message(
    "user", (ToolResult("call_1", (Text("18"),)), ToolResult("call_2", (Text("noon"),)), Text("so?"))
)


@pytest.mark.parametrize("message", [SIGNED, RESULTS])
def test_a_message_is_the_same_after_it_was_cut_into_items(message: Message) -> None:
    items = items_of([Message("user", (Text("before"),)), message], CONTEXT)
    kept = msgspec.msgpack.decode(msgspec.msgpack.encode(items), type=list[KeptItem])
    assert turns_of(kept, CONTEXT, "openai-chat") == ([Message("user", (Text("before"),)), message], ())


def test_items_of_any_dialect_are_shown_as_openai_shows_them() -> None:
    shown = [as_wire(item, CONTEXT) for item in items_of([SIGNED, RESULTS], CONTEXT)]
    kinds = [item["type"] for item in shown]
    assert kinds == [
        "reasoning",
        "message",
        "image_generation_call",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "message",
    ]
    assert len({item["id"] for item in shown}) == len(shown)
    assert shown[1]["content"][0]["text"] == "one"
    assert (shown[3]["call_id"], shown[5]["output"], shown[7]["content"][0]["text"]) == (
        "call_1",
        "18",
        "so?",
    )
