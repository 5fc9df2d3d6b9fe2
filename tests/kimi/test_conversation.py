"""Conversations: what was said before goes back as Kimi wants it."""

import pytest

from tests.kimi.kit import TOOL, Http, ask, ask_with_tools, call, message
from wireglot_core.ir.content import Message, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.errors import ClientFault

QUESTION = {"role": "user", "content": "The weather in Rome?"}


def answered(result, text="Sunny."):
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": text}
        for block in result.blocks
        if block["type"] == "tool_use"
    ]
    return [QUESTION, {"role": "assistant", "content": result.blocks}, {"role": "user", "content": results}]


@pytest.mark.parametrize("reasoning", ["I should look.", "", None])
def test_reasoning_goes_back_on_every_turn_with_calls_even_an_empty_one(reasoning):
    more = {} if reasoning is None else {"reasoning_content": reasoning}
    http = Http(message(None, [call()], **more), message("It is sunny."))
    result = ask_with_tools(http, [TOOL], None, messages=[QUESTION])
    final = ask_with_tools(http, [TOOL], None, messages=answered(result))
    assert final.text == "It is sunny."
    turn, answer = http.body["messages"][1:]
    assert turn["reasoning_content"] == (reasoning or "")
    assert turn["tool_calls"] == [call()]
    assert not turn.get("content")
    assert answer == {"role": "tool", "tool_call_id": "functions.get_weather:0", "content": "Sunny."}


def test_ids_that_recur_in_every_turn_are_distinguished():
    first = call(identifier="get_weather:0")
    http = Http(message(None, [first]), message(None, [first]), message("Done."))
    messages = answered(ask_with_tools(http, [TOOL], None, messages=[QUESTION]), "one")
    second = ask_with_tools(http, [TOOL], None, messages=messages)
    messages = [*messages, *answered(second, "two")[1:]]
    ask_with_tools(http, [TOOL], None, messages=messages)
    ids = [turn["tool_calls"][0]["id"] for turn in http.body["messages"] if "tool_calls" in turn]
    reported = {
        turn["tool_call_id"]: turn["content"] for turn in http.body["messages"] if turn["role"] == "tool"
    }
    assert len(set(ids)) == 2
    assert [reported[identifier] for identifier in ids] == ["one", "two"]


def test_the_k2_family_gets_ids_in_the_form_it_was_trained_on():
    messages = [
        QUESTION,
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "Sunny."}]},
    ]
    http = Http()
    ask_with_tools(http, [TOOL], None, messages=messages, model="kimi-k2.6")
    assert http.body["messages"][1]["tool_calls"][0]["id"] == "functions.get_weather:0"
    assert http.body["messages"][2]["tool_call_id"] == "functions.get_weather:0"


def test_neutral_messages_and_anthropics_may_stand_side_by_side():
    messages = [
        QUESTION,
        Message("assistant", (Reasoning("Hm."), ToolCall("c1", "get_weather", '{"city":"Rome"}'))),
        Message("user", (ToolResult("c1", (Text("Sunny."),)),)),
        {"role": "assistant", "content": "It is sunny."},
    ]
    http = Http()
    ask(http, "And tomorrow?", messages=messages, system="Be brief.")
    assert [turn["role"] for turn in http.body["messages"]] == [
        "system", "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
    assert http.body["messages"][2]["reasoning_content"] == "Hm."
    assert http.body["messages"][-1]["content"] == "And tomorrow?"


def test_a_failed_result_is_reported_as_failed():
    messages = answered(ask_with_tools(Http(message(None, [call()])), [TOOL]))
    messages[2]["content"][0] |= {"content": "no such city", "is_error": True}
    http = Http()
    ask_with_tools(http, [TOOL], None, messages=messages)
    assert "no such city" in http.body["messages"][2]["content"]


def test_a_message_that_is_none_is_the_callers_fault_and_names_its_place():
    with pytest.raises(ClientFault, match=r"\$\.messages\[0\]\.role"):
        ask(Http(), None, messages=[{"role": "tool", "content": "x"}])


def test_the_answer_of_a_turn_can_be_appended_as_it_is():
    http = Http(message("One.", reasoning_content="Hm."), message("Two."))
    result = ask(http, "1?")
    ask(
        http,
        "2?",
        messages=[{"role": "user", "content": "1?"}, {"role": "assistant", "content": result.blocks}],
    )
    assert [turn["content"] for turn in http.body["messages"]] == ["1?", "One.", "2?"]
