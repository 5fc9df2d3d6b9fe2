"""Tool results of other dialects, as messages of Chat."""

from tests.tiers import rows
from wireglot_core.dialects.openai_chat.render_messages import render_result
from wireglot_core.ir.content import CacheMark, Extra, Foreign, Media, Text, ToolCall, ToolResult
from wireglot_core.ir.loss import Loss

IMAGE = Media("image", "image/png", "iVBO")
SHOWN = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}
POINTED = {"type": "text", "text": "[image: see next message]"}
BREAKPOINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}
CALLS = {"c": ToolCall("c", "f", "{}"), "x": ToolCall("x", "g", "in", kind="custom")}
ERROR = ("$.is_error", "tool_result.error", "approximated")
MOVED = ("$.content[0]", "tool_result.media", "approximated")


@rows(
    ("result", "content", "moved", "losses"),
    [
        (ToolResult("c", ()), "", 0, []),
        (ToolResult("c", (Text(""),)), "", 0, []),
        (ToolResult("c", (Text("a"),)), "a", 0, []),
        (ToolResult("c", (Text("a"),), name="f"), "a", 0, []),
        (ToolResult("c", (Text("a"),), name="g"), "a", 0, [("$.name", "tool_result.name", "dropped")]),
        (ToolResult("n", (Text("a"),), name="f"), "a", 0, [("$.name", "tool_result.name", "dropped")]),
        (ToolResult("c", (Text("a"),), kind="custom"), "a", 0, [("$", "tool.custom", "approximated")]),
        (ToolResult("x", (Text("a"),), kind="custom"), "a", 0, []),
        (ToolResult("n", (Text("a"),), kind="custom"), "a", 0, [("$", "tool.custom", "approximated")]),
        (ToolResult("c", (Text("a"),), is_error=True), "Error: a", 0, [ERROR]),
        (ToolResult("c", (), is_error=True), "Error: the tool failed", 0, [ERROR]),
        (ToolResult("c", (Text("a"),), cache=CacheMark()), [{"type": "text", "text": "a", **BREAKPOINT}], 0, []),
        (ToolResult("c", (), cache=CacheMark()), "", 0, [("$.cache", "cache_marker", "dropped")]),
        (ToolResult("c", (IMAGE,)), POINTED["text"], 2, [MOVED]),
        (
            ToolResult("c", (IMAGE, IMAGE)),
            f"{POINTED['text']}\n\n{POINTED['text']}",
            3,
            [MOVED, ("$.content[1]", "tool_result.media", "approximated")],
        ),
        (
            ToolResult("c", (IMAGE,), extra=Extra("openai-chat", {}, {"content": "parts"})),
            [SHOWN],
            0,
            [],
        ),
        (
            ToolResult("c", (Text("a"), Foreign("openai-chat", "novel", {"type": "novel"}))),
            [{"type": "text", "text": "a"}, {"type": "novel"}],
            0,
            [],
        ),
    ],
)  # fmt: skip
def test_a_result_is_one_message(result, content, moved, losses):
    reported: list[Loss] = []
    message, beside = render_result(result, "$", CALLS, False, reported)
    expected = {"role": "tool", "tool_call_id": result.call_id, "content": content}
    assert message == expected
    assert len(beside) == moved
    assert [(loss.path, loss.feature, loss.action) for loss in reported] == losses
