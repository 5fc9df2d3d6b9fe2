"""What nearly all requests and answers are made of, and what lies just beside it."""

from typing import Any

from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.openai_chat.render_request import render_request
from wireglot_core.dialects.openai_chat.response import parse_response
from wireglot_core.ir.content import CacheMark, Extra, Message, Text, ToolCall, ToolResult
from wireglot_core.ir.request import Request, Tool

SPELLING = Extra("anthropic", form={"content": "string"})
CALL = ToolCall("c", "f", "{}")
TURNS: dict[str, tuple[Message, list[dict[str, Any]]]] = {
    "instructions": (Message("system", (Text("a"),)), [{"role": "system", "content": "a"}]),
    "a text": (Message("user", (Text("a"),)), [{"role": "user", "content": "a"}]),
    "a text in another spelling": (
        Message("user", (Text("a"),), extra=SPELLING),
        [{"role": "user", "content": "a"}],
    ),
    "an empty text": (Message("user", (Text(""),)), [{"role": "user", "content": ""}]),
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


ASKED = Message("assistant", (CALL,))
"""What a result in a turn answers."""


def render(turn: Message, *joined: str, native: bool = False) -> list[dict[str, Any]]:
    """What a turn is written as, behind a call."""
    form: dict[str, Any] = {"joined": list(joined)} | ({"native": True} if native else {})
    rendered = render_request(Request("m", (ASKED, turn), extra=Extra("openai-chat", {}, form)), Context())
    assert rendered.losses == ()
    messages: list[dict[str, Any]] = rendered.value["messages"]
    return messages[1:]


@rows("name", {name: turn for name, turn in TURNS.items() if turn[0].role != "assistant"})
@rows("native", [False, True])
def test_a_usual_turn(name, native):
    turn, messages = TURNS[name]
    if native and turn.content[0] == Text(""):
        return  # a client of this dialect gets it back as it came
    if native and turn.content[0] != Text("a") and type(turn.content[0]) is ToolResult:
        messages = [{**messages[0], "name": "f"}, *messages[1:]]
    assert render(turn, native=native) == messages


@rows("name", {name: turn for name, turn in TURNS.items() if turn[0].role == "assistant"})
def test_a_usual_answer_in_a_conversation(name):
    turn, messages = TURNS[name]
    rendered = render_request(Request("m", (turn,)), Context())
    assert (rendered.value["messages"], rendered.losses) == (messages, ())


def test_texts_become_one_where_an_endpoint_wants_it():
    assert render(Message("user", (Text("a"), Text("b"))), "user") == [{"role": "user", "content": "a\n\nb"}]
    marked = Message("user", (Text("a"), Text("b", cache=CacheMark())))
    assert type(render(marked, "user")[0]["content"]) is list
    calling = Message("assistant", (Text("a"), Text("b"), CALL), name="n")
    assert render(calling, "assistant")[0]["content"] == "a\n\nb"


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
def test_an_answer_of_one_text(more, said, beside):
    message = {"role": "assistant", "content": "hi", **said}
    choice = {"index": 0, "message": message, "finish_reason": "stop", **beside}
    body = {"id": "i", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    answer = parse_response(
        {**body, "usage": {"prompt_tokens": 1, "completion_tokens": 2}, **more}, Context()
    )
    assert answer.content == (Text("hi"),)
    assert answer.stop.reason == "end"
    assert answer.extra is not None
    assert answer.extra.fields == more | {f"message.{key}": value for key, value in said.items()} | (
        {"choice.logprobs": None} if beside else {}
    )


def test_a_function_is_declared_the_short_way():
    assert Tool("f").is_plain()
    assert Tool("f", "d", {"type": "object"}, True).is_plain()
