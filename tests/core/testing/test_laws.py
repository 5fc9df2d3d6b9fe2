"""The pieces of the laws: how a codec is run, what it sealed is opened, and what differs is reported."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.core.testing.toy_dialect import CUT_OFF, NAME, TOY, Reader, Writer, frame, wire
from tests.tiers import rows
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.envelope import Holder, seal
from wireglot_core.dialects.registry import register, unregister
from wireglot_core.ir.content import (
    FOREIGN,
    UNSIGNED,
    Extra,
    Media,
    Message,
    Origin,
    Part,
    Reasoning,
    Signature,
    Text,
    ToolCall,
)
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import BrokenGrammar, Delta, Event, Failure, Finish, Start, unfold
from wireglot_core.testing.laws import (
    crossed_request,
    crossed_response,
    differences,
    ending,
    opened,
    read_stream,
    write_stream,
)

RESPONSE = Response("id", "m", (Text("hello"),), Stop("end"), Usage(input=1, output=2))
EVENTS = list(unfold(RESPONSE))


# --- streams


def test_a_stream_is_read_piece_by_piece_and_to_its_end():
    data = wire(EVENTS)
    assert read_stream(TOY, [data[:7], data[7:40], data[40:]]) == EVENTS
    assert read_stream(TOY, [frame(EVENTS[0])]) == [EVENTS[0], CUT_OFF]
    assert read_stream(TOY, []) == [CUT_OFF]


def test_events_out_of_order_are_a_broken_grammar():
    with pytest.raises(BrokenGrammar):
        read_stream(TOY, [wire([EVENTS[0], Delta(3, "x"), EVENTS[-1]])])


def test_readers_and_writers_are_given_their_context():
    contexts: list[Context] = []
    requests: list[Request | None] = []

    def reader(context: Context) -> Reader:
        contexts.append(context)
        return Reader(context)

    def writer(context: Context, request: Request | None = None, /) -> Writer:
        contexts.append(context)
        requests.append(request)
        return Writer(context)

    codec = replace(TOY, stream_reader=reader, stream_writer=writer)
    asked, mine = Request("m", ()), Context(seed="mine")
    read_stream(codec, [wire(EVENTS)])
    read_stream(codec, [wire(EVENTS)], mine)
    write_stream(codec, EVENTS)
    write_stream(codec, EVENTS, mine, asked)
    assert contexts == [Context(), mine, Context(), mine]
    assert requests == [None, asked]


def test_what_a_writer_could_not_say_is_reported_with_its_bytes():
    loss = Loss("$", "citations", "dropped")

    class Grumbling(Writer):
        def report(self, event: Event) -> Event:
            self.losses.append(loss)
            return event

    written = write_stream(replace(TOY, stream_writer=Grumbling), EVENTS)
    assert written == Rendered(wire(EVENTS), (loss,) * len(EVENTS))


def test_a_stream_ends_in_a_finish_or_a_failure():
    assert ending(EVENTS) is Finish
    assert ending([CUT_OFF]) is Failure
    with pytest.raises(AssertionError, match="must not end in Start"):
        ending([Start("id", "m")])


# --- crossing


def test_what_fitting_and_rendering_lose_is_reported_together():
    """At neutral places: the name is nothing that Anthropic has, and its limit of tokens is made up."""
    body = {
        "model": "gpt-5",
        "messages": [{"role": "user", "content": "hi", "name": "ann"}],
        "seed": 5,
        "n": 2,
    }
    crossed = crossed_request(body, "openai-chat", "anthropic", model="claude-sonnet-4-5")
    assert crossed.value["model"] == "claude-sonnet-4-5"
    assert crossed.value["messages"] == [{"role": "user", "content": "hi"}]
    assert {(loss.path, loss.feature) for loss in crossed.losses} == {
        ("$.messages[0].name", "message.name"),
        ("$.sampling.seed", "sampling.seed"),
        ("$.sampling.candidates", "candidates"),
        ("$.max_tokens", "max_tokens"),
    }


def test_an_answer_that_is_an_error_crosses_as_one():
    error = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
    crossed = crossed_response(error, "anthropic", "openai-chat")
    assert crossed.value["error"]["message"] == "slow down"


def cut_call(stop: str = "tool_calls") -> dict[str, Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": '}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": stop}],
    }


def test_an_answer_is_judged_before_it_crosses_but_not_toward_its_own_dialect():
    """[X6] A call that was cut is no call: the other client is given an error; its own gets what came."""
    assert "error" in crossed_response(cut_call(), "openai-chat", "anthropic", judged=True).value
    same = crossed_response(cut_call(), "openai-chat", "openai-chat", judged=True)
    assert same.value["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == '{"at": '


def test_what_judging_changes_is_among_the_losses():
    """A call that reached the limit is left out of the answer, and that is declared."""
    crossed = crossed_response(cut_call("length"), "openai-chat", "anthropic", judged=True)
    assert crossed.value["content"] == []
    assert "tool_call.arguments" in {loss.feature for loss in crossed.losses}


def test_anyone_who_only_compares_gets_what_came():
    crossed = crossed_response(cut_call("length"), "openai-chat", "anthropic")
    assert [block["type"] for block in crossed.value["content"]] == ["tool_use"]


def test_calls_that_are_made_up_begin_as_the_clients_expect():
    body = {
        "candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "a", "args": {}}}]}}]
    }
    assert crossed_response(body, "gemini", "anthropic").value["content"][0]["id"].startswith("toolu_")
    chat = crossed_response(body, "gemini", "openai-chat").value["choices"][0]["message"]
    assert chat["tool_calls"][0]["id"].startswith("call_")


def test_a_malformed_call_crosses_as_the_reason_why_it_ended():
    register(TOY)
    try:
        body = {"id": "i", "model": "m", "content": [], "stop": {"reason": "malformed_call"}}
        crossed = crossed_response(body, NAME, "gemini", judged=True).value
        assert crossed["candidates"][0]["finishReason"] == "MALFORMED_FUNCTION_CALL"
    finally:
        unregister(NAME)


# --- envelopes

SECRET = b"a secret"
STATE = Signature("state", Origin("acme", "acme.com"), "item")
OTHER = Signature("other state", Origin("acme"))
UNSEEN = Signature("state", Origin("acme"), FOREIGN)
UNWRITTEN = Signature("state", Origin("acme"), UNSIGNED)


def sealed(holder: Holder, state: Signature = STATE, secret: bytes = SECRET) -> Signature:
    return Signature(seal(state, holder, secret), Origin("toy"))


def parts(*content: Part) -> tuple[Part, ...]:
    return opened(replace(RESPONSE, content=content), SECRET).content


CALL = ToolCall("1", "look", "{}")
PICTURE = Media("image", data="aGk=")


@rows(
    ("reported", "meant"),
    [
        ([Text("a"), CALL, Reasoning("b")], [Text("a"), CALL, Reasoning("b")]),
        # In the place that it belongs to.
        ([Text("a", signature=sealed("text"))], [Text("a", signature=STATE)]),
        ([replace(CALL, signature=sealed("call"))], [replace(CALL, signature=STATE)]),
        ([replace(PICTURE, signature=sealed("media"))], [replace(PICTURE, signature=STATE)]),
        ([Reasoning("b", sealed("reasoning"))], [Reasoning("b", STATE)]),
        ([Reasoning("shown", sealed("redacted"))], [Reasoning("", STATE, redacted=True)]),
        ([Reasoning("b", sealed("unsigned"))], [Reasoning("b")]),
        # Without a word for it, or without a signature: nobody sees it, or its writer's name.
        ([Reasoning("b", sealed("reasoning", UNSEEN)), Text("a")], [Text("a")]),
        ([Reasoning("b", sealed("reasoning", UNWRITTEN))], [Reasoning("b")]),
        ([Reasoning("b", UNSEEN)], []),
        ([Text("a", signature=UNSEEN)], [Text("a", signature=UNSEEN)]),
        # In a thought before what it belongs to: the thought is there for its sake, or has words of its own.
        ([Reasoning("", sealed("text")), Text("a")], [Text("a", signature=STATE)]),
        ([Reasoning("", sealed("call")), CALL], [replace(CALL, signature=STATE)]),
        ([Reasoning("", sealed("media")), PICTURE], [replace(PICTURE, signature=STATE)]),
        ([Reasoning("b", sealed("call")), CALL], [Reasoning("b"), replace(CALL, signature=STATE)]),
        ([Reasoning("", sealed("call")), Text("a"), CALL], [Text("a"), replace(CALL, signature=STATE)]),
        ([Reasoning("", sealed("call")), CALL, CALL], [replace(CALL, signature=STATE), CALL]),
        (
            [Reasoning("", sealed("call")), Reasoning("b"), CALL],
            [Reasoning("b"), replace(CALL, signature=STATE)],
        ),
        (
            [Reasoning("", sealed("text", OTHER)), Reasoning("", sealed("call")), CALL, Text("a")],
            [replace(CALL, signature=STATE), Text("a", signature=OTHER)],
        ),
        # Behind the text that it signs, as an empty part of its own.
        ([Text("a"), Text("", signature=sealed("text"))], [Text("a", signature=STATE)]),
        ([Text("a"), Text("", signature=STATE)], [Text("a", signature=STATE)]),
        ([Reasoning("b"), Reasoning("", sealed("reasoning"))], [Reasoning("b", STATE)]),
        ([Reasoning("b"), Text("", signature=STATE)], [Reasoning("b"), Text("", signature=STATE)]),
        ([CALL, Text("", signature=STATE)], [CALL, Text("", signature=STATE)]),
        ([Text("", signature=STATE)], [Text("", signature=STATE)]),
        ([Text("a"), Text("b", signature=STATE)], [Text("a"), Text("b", signature=STATE)]),
        ([Text("a"), Text("")], [Text("a"), Text("")]),
        (
            [Text("a", signature=OTHER), Text("", signature=STATE)],
            [Text("a", signature=OTHER), Text("", signature=STATE)],
        ),
    ],
)
def test_what_was_sealed_is_opened_and_put_where_it_belongs(reported, meant):
    assert parts(*reported) == tuple(meant)


def test_an_envelope_of_another_secret_stays_unreadable():
    other = sealed("text", secret=b"another")
    (part,) = parts(Text("a", signature=other))
    assert isinstance(part, Text)
    assert part.signature == Signature(other.data, Origin("unreadable"))


def test_nothing_else_of_an_answer_is_touched_by_opening_it():
    assert opened(RESPONSE) == RESPONSE
    default = replace(RESPONSE, content=(Text("a", signature=sealed("text", secret=Context().secret)),))
    assert opened(default).content == (Text("a", signature=STATE),)


# --- differences


@rows(
    ("one", "other", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1.5}, {"a": 2}, ["$.a: 1.5 != 2"]),
        ({"a": 1}, {"a": True}, ["$.a: 1 != True"]),
        ({"a": 0}, {"a": False}, ["$.a: 0 != False"]),
        ({"a": 1.0}, {"a": True}, ["$.a: 1.0 != True"]),
        ({"a": "1"}, {"a": 1}, ["$.a: '1' != 1"]),
        ({"a": None}, {}, ["$.a: None != absent"]),
        ({}, {"a": None}, ["$.a: absent != None"]),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ["$.a.b: 1 != 2"]),
        ({"a": [1, 2]}, {"a": [1, 3]}, ["$.a[1]: 2 != 3"]),
        ({"a": [1]}, {"a": [1, 2]}, ["$.a: 1 items != 2: [1] != [1, 2]"]),
        ([1, 2], (1, 2), []),
        ({}, [], ["$: {} != []"]),
        (["a", "b"], ["b", "a"], ["$[0]: 'a' != 'b'", "$[1]: 'b' != 'a'"]),
        ("x" * 198, "y", ["$: '" + "x" * 198 + "' != 'y'"]),
        ("x" * 199, "y", ["$: '" + "x" * 199 + "... != 'y'"]),
    ],
)
def test_where_two_values_differ(one, other, found):
    assert differences(one, other) == found


def test_differences_of_our_own_values_are_reported_by_their_fields():
    one = Message("user", (Text("a", extra=Extra("toy", {"b": 1})),))
    other = Message("user", (Text("a", extra=Extra("toy", {"b": 2})),))
    assert differences(one, other, "$.messages[3]") == ["$.messages[3].content[0].extra.fields.b: 1 != 2"]
    assert differences(ApiError("server", "a"), ApiError("server", "b")) == ["$.message: 'a' != 'b'"]
