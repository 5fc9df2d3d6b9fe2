"""Turns appended and asked again: complete answers, pending calls, repair, cuts, copies, saving."""

from typing import Any

import pytest

from tests.history.support import (
    DIALECTS,
    FIXTURES,
    MODELS,
    assert_presentable,
    gemini_chunk,
    heard,
    stream,
)
from tests.tiers import rows
from wireglot.history import (
    Assistant,
    BadHistory,
    History,
    Media,
    Message,
    NoSuchCall,
    Text,
    ToolCall,
    ToolResult,
    Unfinished,
)
from wireglot_core.ir.content import Extra, Foreign
from wireglot_core.ir.errors import ClientFault, StrictLoss
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.testing.strategies import samples

CALL_ONLY = gemini_chunk({"functionCall": {"id": "fc-1", "name": "read_file", "args": {"path": "a.txt"}}})
PICTURE = Media("image", "image/png", samples.PNG)


def asking() -> History:
    """A conversation in which the model has just called a tool and said nothing."""
    history = History()
    history.system("Be terse.")
    history.user("Read a.txt")
    history.assistant(heard("gemini", stream(CALL_ONLY)))
    return history


def repairs(asked):
    return [(loss.action, loss.path) for loss in asked.losses if loss.feature == "tool_result.pairing"]


# Complete turns.


@rows("dialect", DIALECTS)
def test_a_turn_of_nothing_but_a_call_leaves_no_empty_parts(dialect):
    """R-U-06: kept as text alone, this turn was empty, and the next request failed."""
    history = asking()
    history.result("fc-1", "contents of a")
    body = history.request(dialect, model=MODELS[dialect]).value
    assert_presentable(dialect, body)
    if dialect == "gemini":
        assert [content["parts"] for content in body["contents"]] == [
            [{"text": "Read a.txt"}],
            [
                {
                    "functionCall": {"id": "fc-1", "name": "read_file", "args": {"path": "a.txt"}},
                    "thoughtSignature": "skip_thought_signature_validator",
                }
            ],
            [
                {
                    "functionResponse": {
                        "id": "fc-1",
                        "name": "read_file",
                        "response": {"output": "contents of a"},
                    }
                }
            ],
        ]


def test_the_whole_answer_is_kept_never_its_text_alone():
    """R-U-01, R-U-02, R-U-03, R-W-01, R-W-03: text and calls, each with what it needs."""
    said = {"text": "Let me look."}
    history = History()
    history.user("Read a.txt")
    history.assistant(
        heard("gemini", stream(gemini_chunk(said, *CALL_ONLY["candidates"][0]["content"]["parts"])))
    )
    text, call = history.messages[-1].content
    assert text == Text("Let me look.")
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, call.arguments) == ("fc-1", "read_file", '{"path":"a.txt"}')
    assert history.request("anthropic", model="claude-opus-5").value["messages"][1]["content"] == [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "fc-1", "name": "read_file", "input": {"path": "a.txt"}},
    ]


@rows("dialect", DIALECTS)
def test_the_next_request_includes_the_calls(dialect):
    """R-U-07"""
    history = asking()
    history.result("fc-1", "contents of a")
    body = str(history.request(dialect, model=MODELS[dialect]).value)
    assert "read_file" in body
    assert "a.txt" in body.replace("Read a.txt", "")


def test_an_answer_without_blocks_is_one_text_block():
    """R-U-04"""
    history = History()
    history.user("Hi")
    history.assistant("Hello")
    history.assistant(Response("r", "m", (Text("again"),), Stop("end")))
    assert [message.content for message in history.messages[1:]] == [(Text("Hello"),), (Text("again"),)]


def test_unknown_blocks_are_kept_for_their_own_dialect_and_never_become_empty_text():
    """R-U-05 (C39)"""
    (server_tool,) = (part for part in samples.FOREIGN_ANSWERS if part.dialect == "anthropic")
    history = History()
    history.user("Search.")
    history.append(Message("assistant", (server_tool, Text("Found."))))
    history.user("And?")
    own = history.request("anthropic", model="claude-opus-5")
    assert own.value["messages"][1]["content"][0] == server_tool.value
    other = history.request("openai-chat", model="m")
    assert other.value["messages"][1] == {"role": "assistant", "content": "Found."}
    assert [(loss.path, loss.feature) for loss in other.losses] == [
        ("$.messages[1].content[0]", "foreign_part")
    ]


def test_an_answer_of_nothing_leaves_no_turn():
    """R-U-06"""
    history = History()
    history.user("Hi")
    history.assistant(Response("r", "m", (Text(""),), Stop("end")))
    history.assistant("")
    assert len(history) == 1


def test_a_turn_of_reasoning_alone_is_not_sent_and_that_is_reported():
    streamed = (FIXTURES / "anthropic" / "streams" / "thinking_and_tools.sse").read_bytes()
    thought = heard("anthropic", streamed).message().content[0]
    history = History()
    history.user("Think.")
    history.append(Message("assistant", (thought,)))
    history.user("And?")
    asked = history.request("anthropic", model="claude-opus-5", max_tokens=9)
    assert [message["role"] for message in asked.value["messages"]] in (["user"], ["user", "user"])
    assert [(loss.path, loss.action) for loss in asked.losses] == [("$.messages[1].content[0]", "dropped")]


def test_an_answer_that_failed_is_not_taken_for_a_turn():
    history = History()
    history.user("Hi")
    answer = history.request("gemini", model="gemini-3-pro").answer()
    list(answer.steps([stream(gemini_chunk({"text": "Hel"}, finish=""))]))
    assert answer.failed is not None
    with pytest.raises(Unfinished, match="ended before it was complete"):
        history.assistant(answer)
    history.assistant(answer.message(partial=True))
    assert history.messages[-1].content == (Text("Hel"),)


def test_turns_that_say_nothing_are_refused():
    history = History()
    for say in (history.user, history.system):
        with pytest.raises(ValueError):
            say(" ")
    with pytest.raises(ValueError):
        history.assistant(Message("user", (Text("Hi"),)))
    with pytest.raises(ClientFault, match="nothing is asked"):
        history.request("gemini", model="gemini-3-pro")


# Results and repair.


def test_pending_calls_are_those_of_the_last_turn_without_a_result():
    history = History()
    history.user("Go")
    history.append(Message("assistant", (ToolCall("a", "x", "{}"), ToolCall("b", "y", "{}"))))
    history.result("b", "two")
    assert [call.id for call in history.pending] == ["a"]
    history.result(history.pending[0], "one")
    assert history.pending == ()
    assert len(history) == 3, "results of one turn stand together"
    body = history.request("anthropic", model="claude-opus-5").value
    assert [block["tool_use_id"] for block in body["messages"][2]["content"]] == ["a", "b"]


def test_a_result_for_no_call_or_for_an_answered_one_is_refused():
    history = asking()
    with pytest.raises(NoSuchCall, match="'other'"):
        history.result("other", "x")
    history.result("fc-1", "x")
    with pytest.raises(NoSuchCall):
        history.result("fc-1", "again")


def test_ids_that_recur_in_every_turn_are_answered_turn_by_turn():
    """R-E-03 (C46): the name comes from the history itself, and Kimi's ids begin again."""
    history = History()
    for turn, name in enumerate(("read", "list")):
        history.user(f"Question {turn}")
        history.append(Message("assistant", (ToolCall("functions.x:0", name, "{}"),)))
        history.result("functions.x:0", f"answer {turn}")
    asked = history.request("openai-chat", model="m")
    assert_presentable("openai-chat", asked.value)
    reported = [message["content"] for message in asked.value["messages"] if message["role"] == "tool"]
    assert reported == ["answer 0", "answer 1"]
    gemini = history.request("gemini", model="gemini-2.5-flash").value["contents"]
    names = [
        part["functionResponse"]["name"]
        for turn in gemini
        for part in turn["parts"]
        if "functionResponse" in part
    ]
    assert names == ["read", "list"]


@rows("dialect", DIALECTS)
def test_lost_results_are_put_in_place_as_errors_and_reported(dialect):
    history = asking()
    history.user("Never mind.")
    asked = history.request(dialect, model=MODELS[dialect])
    assert_presentable(dialect, asked.value)
    assert ("invented", "$.messages[2].content[0]") in repairs(asked)


@rows("dialect", DIALECTS)
def test_results_without_calls_are_left_out_and_reported(dialect):
    history = History()
    history.append(Message("user", (ToolResult("gone", (Text("x"),)), Text("Hi"))))
    asked = history.request(dialect, model=MODELS[dialect])
    assert_presentable(dialect, asked.value)
    assert repairs(asked) == [("dropped", "$.messages[0].content[0]")]


def test_strict_refuses_what_would_be_repaired():
    with pytest.raises(StrictLoss, match=r"tool_result\.pairing would be invented"):
        asking().request("openai-chat", model="m", strict=True)


def test_the_same_history_begins_every_later_request_the_same():
    """R-D-03: results are sent verbatim, and nothing before them changes."""
    history = asking()
    history.result("fc-1", '  {"verbatim": true}\n')
    first = history.request("openai-chat", model="m").value["messages"]
    assert first[-1]["content"] == '  {"verbatim": true}\n'
    history.assistant("Done.")
    history.user("Thanks.")
    assert history.request("openai-chat", model="m").value["messages"][: len(first)] == first


# Cuts.


def test_a_cut_falls_where_the_user_asks():
    history = asking()
    history.result("fc-1", "x")
    history.assistant("It says x.")
    history.user("And b?")
    history.assistant("No idea.")
    removed = history.cut(3)
    assert [message.role for message in removed] == ["user", "assistant", "user", "assistant"]
    assert [message.role for message in history.messages] == ["system", "user", "assistant"]


def test_inside_one_long_answer_the_cut_falls_between_two_steps():
    history = History()
    history.user("Go")
    for step in range(4):
        history.append(Message("assistant", (ToolCall(f"c{step}", "x", "{}"),)))
        history.result(f"c{step}", "x")
    history.cut(5)
    assert [part.id for m in history for part in m.content if isinstance(part, ToolCall)] == ["c2", "c3"]
    asked = history.request("anthropic", model="claude-opus-5", max_tokens=9)
    assert repairs(asked) == []


def test_a_pending_call_is_never_cut():
    history = asking()
    history.cut(0)
    assert [call.id for call in history.pending] == ["fc-1"]


def test_a_predicate_decides_when_it_is_short_enough():
    history = History()
    for number in range(9):
        history.user(f"{number}" * 10)
        history.assistant("ok")
    history.cut(lambda messages: sum(len(str(message.content)) for message in messages) < 1500)
    assert 0 < len(history) < 18
    assert history.messages[0].role == "user"
    assert history.cut(lambda messages: True) == ()


# Keeping.


def test_what_was_given_and_what_is_handed_out_may_change_without_changing_the_history():
    value: dict[str, Any] = {"type": "x", "deep": {"list": [1]}}
    extra = Extra("anthropic", {"field": {"a": 1}})
    history = History()
    history.append(Message("user", (Foreign("anthropic", "x", value), Text("Hi", extra=extra)), extra=extra))
    kept = history.save()
    value["deep"]["list"].append(2)
    extra.fields["field"]["a"] = 2
    assert history.save() == kept
    body = history.request("anthropic", model="claude-opus-5").value
    body["messages"][0]["content"][0]["deep"]["list"].append(3)
    body["messages"].clear()
    assert history.save() == kept


def test_an_unknown_version_or_another_document_is_refused():
    good = asking().save()
    assert History.load(good.decode()) == asking()
    for bad, reason in (
        (b"{", "not JSON"),
        (b"[]", "expected a saved history"),
        (b"{}", "expected a saved history"),
        (good.replace(b'"wireglot_history":1', b'"wireglot_history":2'), "version 2"),
        (good.replace(b'"role":"system"', b'"role":"king"'), "king"),
    ):
        with pytest.raises(BadHistory, match=reason):
            History.load(bad)


def test_a_bad_document_is_blamed_by_its_path():
    with pytest.raises(BadHistory) as caught:
        History.load(asking().save().replace(b'"role":"system"', b'"role":"king"'))
    assert caught.value.path == "$.messages[0].role"


@rows("dialect", ["anthropic", "openai-chat", "openai-responses", "gemini", "code-assist"])
def test_a_conversation_can_begin_as_a_request_of_any_dialect(dialect):
    body = asking().request(dialect, model=MODELS[dialect]).value
    history = History.of(dialect, body)
    assert [message.role for message in history] == ["system", "user", "assistant", "user"]
    history.user("And?")
    for target in DIALECTS:
        assert_presentable(target, history.request(target, model=MODELS[target]).value)


def test_an_answer_is_fed_by_hand_or_from_a_whole_response():
    answer = Assistant()
    with pytest.raises(TypeError, match=r"Assistant\.of"):
        answer.read(b"")
    with pytest.raises(Unfinished, match="has not ended"):
        answer.message()
    response = Response("r", "m", (Text("Hi"), ToolCall("a", "x", "{}")), Stop("tool_calls"))
    assert Assistant.from_response(response).response() is response
