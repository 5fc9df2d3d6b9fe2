"""Tools and calls, both ways, and what Kimi of today demands beyond the contract."""

import json

import pytest

from tests.kimi.kit import TOOL, Http, ask, ask_with_tools, call, message
from wireglot import kimi
from wireglot.kimi import call as kimi_call
from wireglot.kimi.options import CallLimits


def test_text_beside_calls_becomes_the_leading_block():
    """R-Q-05, R-Q-07, R-Q-08: then every call, in its order."""
    calls = [
        call(identifier="functions.get_weather:0"),
        call("other", '{"a":1}', "functions.other:1"),
        call("other", "", "c"),
    ]
    result = ask_with_tools(Http(message("Let me look.", calls)), [TOOL])
    assert json.loads(result.content) == [
        {"type": "text", "text": "Let me look.", "citations": []},
        {
            "type": "tool_use",
            "id": "functions.get_weather:0",
            "name": "get_weather",
            "input": {"city": "Rome"},
        },
        {"type": "tool_use", "id": "functions.other:1", "name": "other", "input": {"a": 1}},
        {"type": "tool_use", "id": "c", "name": "other", "input": {}},
    ]
    assert (result.text, result.stop_reason) == ("Let me look.", "tool_use")


@pytest.mark.parametrize("content", ["", None])
def test_no_text_means_no_text_block(content):
    """R-Q-05."""
    result = ask_with_tools(Http(message(content, [call()])), [TOOL])
    assert [block["type"] for block in result.blocks] == ["tool_use"]


def test_a_text_alone_is_a_plain_string():
    """R-Q-06: even one that looks like blocks."""
    text = '[{"type":"text","text":"x"}]'
    result = ask(Http(message(text)))
    assert result.content == result.text == text
    assert result.blocks == [{"type": "text", "text": text, "citations": []}]


@pytest.mark.parametrize("identifier", ["functions.get_weather:0", "get_weather:12", "call_1", "toolu_x"])
def test_the_id_of_a_call_is_kept(identifier):
    """R-Q-02: whatever its letters, for it goes back to Kimi."""
    result = ask_with_tools(Http(message(None, [call(identifier=identifier)])), [TOOL])
    assert result.blocks[0]["id"] == identifier


def test_arguments_keep_the_reason_and_the_raw_text_where_they_do_not_parse():
    """R-Q-03, R-Q-04."""
    result = ask_with_tools(Http(message(None, [call(arguments='{"city": "Ro')])), [TOOL])
    assert result.blocks[0]["input"] == {
        "_parse_error": "invalid tool arguments JSON: the text ends too early (byte 12)",
        "_raw": '{"city": "Ro',
    }


def test_broken_arguments_go_back_as_the_model_wrote_them():
    """R-Q-04, R-P-12: C10."""
    http = Http(message(None, [call(arguments="{oops")]), message())
    result = ask_with_tools(http, [TOOL])
    ask_with_tools(
        http,
        [TOOL],
        None,
        messages=[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": result.blocks}],
    )
    assert http.body["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{oops"


def test_a_call_cut_by_the_limit_is_reported_as_cut():
    """R-P-13: C43."""
    assert (
        ask_with_tools(Http(message(None, [call(arguments='{"a')], "length")), [TOOL]).stop_reason
        == "max_tokens"
    )


def test_calls_that_end_with_stop_are_calls_all_the_same():
    """R-P-13."""
    assert ask_with_tools(Http(message(None, [call()], "stop")), [TOOL]).stop_reason == "tool_use"


def test_a_property_without_a_type_gets_the_one_it_means():
    """R-Q-01: Kimi answers 400 to a property that states none (C17); the rest of the schema stays."""
    tool = {
        "name": "t",
        "input_schema": {
            "type": "object",
            "properties": {"status": {"enum": ["a", "b"]}, "n": {"type": "integer", "minimum": 1}},
        },
    }
    http = Http()
    ask_with_tools(http, [tool])
    assert http.body["tools"][0]["function"]["parameters"]["properties"] == {
        "status": {"type": "string", "enum": ["a", "b"]},
        "n": {"type": "integer", "minimum": 1},
    }


@pytest.mark.parametrize(
    ("model", "choice", "sent", "bent"),
    [
        ("kimi-k3", {"type": "auto"}, "auto", False),
        ("kimi-k3", {"type": "any"}, "required", False),
        ("kimi-k3", {"type": "tool", "name": "get_weather"}, "required", False),  # the only tool there is
        ("kimi-k2.6", {"type": "any"}, "auto", True),
        ("kimi-k2.6", {"type": "tool", "name": "get_weather"}, "auto", True),
    ],
)
def test_only_a_tool_choice_that_a_thinking_model_takes_is_sent(model, choice, sent, bent):
    http = Http()
    result = ask_with_tools(http, [TOOL], model=model, fields={"tool_choice": choice})
    assert http.body["tool_choice"] == sent
    assert [loss.feature for loss in result.losses] == ["tool_choice"] * bent


def test_a_model_that_need_not_think_can_be_forced():
    http = Http()
    fields = {"tool_choice": {"type": "any"}, "thinking": {"type": "disabled"}}
    ask_with_tools(http, [TOOL], model="kimi-k2.6", fields=fields)
    assert (http.body["tool_choice"], http.body["thinking"]) == ("required", {"type": "disabled"})


def test_sampling_that_the_model_fixes_is_not_sent_and_declared():
    http = Http()
    result = ask(http, fields={"temperature": 0.2, "top_p": 0.5})
    assert not {"temperature", "top_p"} & http.body.keys()
    assert {loss.feature for loss in result.losses} == {"sampling.temperature", "sampling.top_p"}
    assert ask(http, model="moonshot-v1-8k", fields={"temperature": 0.2}).losses == ()
    assert http.body["temperature"] == 0.2


def test_a_tool_whose_name_kimi_refuses_comes_back_under_its_own():
    name = "files/read.text"
    http = Http()
    ask_with_tools(http, [{"name": name, "input_schema": {"type": "object"}}])
    alias = http.body["tools"][0]["function"]["name"]
    assert alias != name
    result = ask_with_tools(
        Http(message(None, [call(alias, "{}")])), [{"name": name, "input_schema": {"type": "object"}}]
    )
    assert result.blocks[0]["name"] == name


def test_usage_inside_the_choice_is_read():
    """Older deployments of Kimi put it there."""
    answer = message()
    answer["choices"][0]["usage"] = answer.pop("usage")
    result = ask(Http(answer))
    assert (result.prompt_tokens, result.completion_tokens) == (7, 5)
    del answer["choices"][0]["usage"]
    assert ask(Http(answer)).prompt_tokens == 0


def test_a_long_answer_is_read_up_to_the_limit(monkeypatch):
    text = "x" * (1024 * 1024)
    assert ask(Http(message(text))).content == text
    monkeypatch.setattr(kimi_call, "LIMITS", CallLimits(response=len(text)))
    with pytest.raises(kimi.KimiApiError, match="the answer is too large"):
        ask(Http(message(text)))


def test_reasoning_is_distinguished_from_text():
    result = ask_with_tools(Http(message("Look.", [call()], reasoning_content="Hm.")), [TOOL])
    assert (result.reasoning, result.text) == ("Hm.", "Look.")
    assert [block["type"] for block in result.blocks] == ["thinking", "text", "tool_use"]
    assert [block["type"] for block in json.loads(result.content)] == ["text", "tool_use"]
