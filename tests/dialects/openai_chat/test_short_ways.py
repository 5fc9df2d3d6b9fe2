"""What nearly all requests and answers are made of goes the short way: the thorough one is slow."""

from typing import Any

from tests.tiers import rows
from wireglot.dialects.openai_chat.parse_plain import parse_plain
from wireglot.dialects.openai_chat.render_plain import plain_turn
from wireglot.dialects.openai_chat.tools import _is_plain
from wireglot.ir.content import CacheMark, Extra, Message, Text, ToolCall, ToolResult
from wireglot.ir.request import Tool

SPELLING = Extra("anthropic", form={"content": "string"})
CALL = ToolCall("c", "f", "{}")
TURNS: dict[str, tuple[Message, list[dict[str, Any]]]] = {
    "instructions": (Message("system", (Text("a"),)), [{"role": "system", "content": "a"}]),
    "a text": (Message("user", (Text("a"),)), [{"role": "user", "content": "a"}]),
    "a text in another spelling": (
        Message("user", (Text("a"),), extra=SPELLING),
        [{"role": "user", "content": "a"}],
    ),
    "an empty text": (Message("user", (Text(""),)), []),
    "texts with a mark": (
        Message("user", (Text("a"), Text("b", cache=CacheMark()))),
        [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "a"},
                    {"type": "text", "text": "b", "prompt_cache_breakpoint": {"mode": "explicit"}},
                ],
            }
        ],
    ),
    "an answer": (Message("assistant", (Text("a"),)), [{"role": "assistant", "content": "a"}]),
    "an answer that calls": (
        Message("assistant", (Text("a"), ToolCall("d", "g", ""))),
        [
            {
                "role": "assistant",
                "content": "a",
                "tool_calls": [{"id": "d", "type": "function", "function": {"name": "g", "arguments": "{}"}}],
            }
        ],
    ),
    "a result and a text": (
        Message("user", (ToolResult("c", (Text("x"), Text("y")), name="f", extra=SPELLING), Text("a"))),
        [{"role": "tool", "tool_call_id": "c", "content": "x\n\ny"}, {"role": "user", "content": "a"}],
    ),
}


@rows("name", TURNS)
def test_a_plain_turn_is_rendered_the_short_way(name):
    turn, messages = TURNS[name]
    assert plain_turn(turn, {"c": CALL}) == messages


def test_texts_become_one_where_an_endpoint_wants_it():
    turn = Message("user", (Text("a"), Text("b")))
    assert plain_turn(turn, {}, frozenset({"user"})) == [{"role": "user", "content": "a\n\nb"}]
    marked = Message("user", (Text("a"), Text("b", cache=CacheMark())))
    rendered = plain_turn(marked, {}, frozenset({"user"}))
    assert rendered is not None
    assert type(rendered[0]["content"]) is list
    calling = Message("assistant", (Text("a"), Text("b"), CALL))
    assert plain_turn(calling, {}, frozenset({"assistant"}))[0]["content"] == "a\n\nb"  # type: ignore[index]


@rows(
    "more",
    [
        {},
        {"system_fingerprint": "fp"},
        {"system_fingerprint": None, "novelty": 0},
    ],
)
@rows("said", [{}, {"refusal": None}, {"refusal": None, "annotations": []}, {"annotations": None}])
@rows("beside", [{}, {"logprobs": None}])
def test_an_answer_of_one_text_is_read_the_short_way(more, said, beside):
    message = {"role": "assistant", "content": "hi", **said}
    choice = {"index": 0, "message": message, "finish_reason": "stop", **beside}
    body = {"id": "i", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    answer = parse_plain({**body, "usage": {"prompt_tokens": 1, "completion_tokens": 2}, **more})
    assert answer is not None
    assert answer.content == (Text("hi"),)


def test_a_function_is_declared_the_short_way():
    assert _is_plain(Tool("f"))
    assert _is_plain(Tool("f", "d", {"type": "object"}, True))
