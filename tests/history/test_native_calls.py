"""Native tool-call events, read from Gemini and Code Assist, with ids that are made once."""

import json

import pytest

from tests.history.support import FIXTURES, READ, gemini_chunk, heard, stream
from wireglot.history import Assistant, Call, History, ToolCall, native_calls
from wireglot_core.dialects.context import is_minted
from wireglot_core.ir.content import Reasoning

CALL = {"functionCall": {"id": "fc-1", "name": "read_file", "args": {"path": "a.txt"}}}


def wrapped(chunk: dict) -> dict:
    return {"response": chunk, "traceId": "trace-1"}


def test_parts_are_unwrapped_from_each_object_of_the_stream():
    """R-T-01, R-T-02: `response.candidates[0].content.parts[]`, whose role is `model`."""
    answer = heard("code-assist", (FIXTURES / "code-assist" / "streams" / "tools.sse").read_bytes())
    assert answer.text == "Let me look."
    assert answer.reasoning == "Two lookups."
    assert [(call.id, call.name, call.input) for call in answer.calls] == [
        ("fc-1", "get_weather", {"city": "Zürich"}),
        ("fc-2", "get_time", {}),
    ]
    assert answer.message().role == "assistant"
    history = History()
    history.user("Both, please.")
    history.assistant(answer)
    assert history.request("gemini", model="gemini-3-pro").value["contents"][1]["role"] == "model"


@pytest.mark.parametrize(
    ("dialect", "wrap"), [("code-assist", wrapped), ("code-assist", dict), ("gemini", dict)]
)
def test_wrapped_and_bare_bodies_are_both_taken(dialect, wrap):
    """R-T-04"""
    answer = heard(dialect, stream(wrap(gemini_chunk(CALL))))
    assert native_calls(answer) == [
        {
            "id": "fc-1",
            "type": "function",
            "function": {"name": "read_file", "arguments": '{"path":"a.txt"}'},
        }
    ]


def test_each_function_call_becomes_one_native_event_when_it_is_complete():
    """R-T-03, R-T-05"""
    answer = Assistant.of("gemini")
    events = [
        step.call.native
        for step in answer.steps(
            [stream(gemini_chunk(CALL), gemini_chunk({"functionCall": {"name": "list"}}))]
        )
        if step.call is not None
    ]
    assert events == native_calls(answer) == native_calls(answer.message()) == native_calls(answer.response())
    assert [event["type"] for event in events] == ["function", "function"]
    assert all(isinstance(event["function"]["arguments"], str) for event in events)


def test_a_stream_is_reported_as_plain_events_with_the_calls_of_each_chunk():
    """R-T-05, R-J-09: for agents that pass events on."""
    answer = Assistant.of("gemini")
    chunks = [
        stream(gemini_chunk({"text": "Both."})),
        stream(gemini_chunk(CALL, {"functionCall": {"name": "list"}})),
    ]
    events = list(answer.events(chunks))
    assert events[0] == {"type": "text", "text": "Both."}
    called = [event for event in events if event["type"] == "native_tool_calls"]
    assert [call for event in called for call in event["toolCalls"]] == native_calls(answer)
    assert len(native_calls(answer)) == 2
    assert [event["type"] for event in events] == ["text", "native_tool_calls"]


def test_missing_arguments_are_an_empty_object():
    """R-T-07"""
    answer = heard("gemini", stream(gemini_chunk({"functionCall": {"name": "list"}})))
    (event,) = native_calls(answer)
    assert event["function"]["arguments"] == "{}"
    assert answer.calls[0].input == {}


def test_a_missing_id_is_made_once_and_never_twice_the_same():
    """R-T-03 (C7), R-T-06 (C4), R-U-03, R-W-02 (C40), R-D-04: parallel calls and later turns do not collide."""
    history = History()
    history.user("List it, twice.")
    seen: list[str] = []
    twice = stream(gemini_chunk(*[{"functionCall": {"name": "list", "args": {}}}] * 2))
    for _ in range(3):
        answer = history.request("gemini", model="gemini-3-pro").answer()
        shown = {step.id for step in answer.steps([twice]) if step.id}
        history.assistant(answer)
        assert shown == {call.id for call in answer.calls} == {call.id for call in history.pending}
        for call in history.pending:
            history.result(call.id, "nothing")
        seen += shown
        history.cut(2)
    assert len(set(seen)) == len(seen) == 6
    assert all(map(is_minted, seen))


def test_a_history_that_was_saved_goes_on_counting():
    """R-E-05, R-T-06 (C4): after a restart made-up ids are still new ones."""
    history = History()
    history.user("List it.")
    once = stream(gemini_chunk({"functionCall": {"name": "list", "args": {}}}))
    ids = []
    for _ in range(2):
        answer = history.request("gemini", model="gemini-3-pro").answer()
        list(answer.steps([once]))
        history.assistant(answer)
        ids += [call.id for call in answer.calls]
        history.result(ids[-1], "nothing")
        history.cut(1)
        history = History.load(history.save())
    assert len(set(ids)) == 2


def test_a_call_in_anthropic_form_has_the_same_id_name_and_parsed_input():
    """R-T-08, R-W-03: complete calls are not partial."""
    history = History()
    history.user("Read it.")
    history.assistant(heard("gemini", stream(gemini_chunk(CALL))))
    (call,) = history.pending
    assert call.partial is False
    blocks = history.request("anthropic", model="claude-opus-5").value["messages"][1]["content"]
    assert blocks == [
        {"type": "tool_use", "id": "fc-1", "name": "read_file", "input": {"path": "a.txt"}},
    ]


@pytest.mark.parametrize("arguments", ['{"path": "a', "nothing", "[1]", "3"])
def test_arguments_that_do_not_parse_are_wrapped_and_never_raise(arguments):
    """R-T-09 (C10)"""
    call = Call("c", "read", arguments)
    assert call.input == {"_parse_error": call.problem, "_raw": arguments}
    assert call.problem.startswith("invalid tool arguments JSON: ")
    assert call.native["function"]["arguments"] == arguments


@pytest.mark.parametrize("arguments", ["", "{}", "null", '{"_parse_error": "x", "_raw": "y"}'])
def test_arguments_that_do_parse_have_no_problem(arguments):
    assert Call("c", "read", arguments).problem == ""


def test_a_freeform_call_has_its_own_native_event():
    call = Call("c", "apply_patch", "*** Begin", kind="custom")
    assert call.native == {
        "id": "c",
        "type": "custom",
        "custom": {"name": "apply_patch", "input": "*** Begin"},
    }
    assert (call.input, call.problem) == ({"input": "*** Begin"}, "")


def test_renamed_tools_come_back_under_their_own_names():
    """R-E-03: the way back is rebuilt from the request itself."""
    long = {**READ["function"], "name": "mcp__" + "files_" * 20 + "read"}
    history = History()
    history.user("Read it.")
    asked = history.request("openai-chat", model="m", tools=[{"type": "function", "function": long}])
    sent = asked.value["tools"][0]["function"]["name"]
    assert sent != long["name"]
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": sent, "arguments": "{}"}}
    chunk = {
        "id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}],
    }  # fmt: skip
    streamed, whole = asked.answer(), asked.answer()
    list(streamed.steps([stream(chunk), b"data: [DONE]\n\n"]))
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    whole.whole(json.dumps({**chunk, "object": "chat.completion", "choices": [choice]}))
    assert streamed.calls[0].name == whole.calls[0].name == long["name"]


def test_signatures_of_calls_and_thoughts_are_part_of_the_turn():
    """R-U-01, C9"""
    signed = {**CALL, "thoughtSignature": "CvAB"}
    answer = heard(
        "gemini", stream(gemini_chunk({"text": "Hm.", "thought": True}, signed)), "gemini", "gemini-3-pro"
    )
    thought, call = answer.message().content
    assert isinstance(thought, Reasoning)
    assert isinstance(call, ToolCall)
    assert call.signature is not None
    assert (call.signature.data, call.signature.origin.provider) == ("CvAB", "gemini")
