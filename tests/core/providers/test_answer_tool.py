"""A JSON schema by a function that the model must call, and the answer made of its arguments."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.providers.asks import assistant, features, fitted, request, user
from wireglot_core import translate_request, translate_response
from wireglot_core.ir.content import Extra, Foreign, Part, Reasoning, Text, ToolCall
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Candidate, Response, Stop, StopReason, Usage
from wireglot_core.ir.request import HostedTool, OutputFormat, Thinking, Tool, ToolChoice
from wireglot_core.ir.stream import Delta, Event, PartEnd, PartStart, check, fold, unfold
from wireglot_core.providers.emulation import AnswerFilter, Emulation
from wireglot_core.providers.limits import ChoiceName, Limits
from wireglot_core.wire.json import decode

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
FORMAT = OutputFormat("schema", SCHEMA)
NONE = Limits(output_formats=())
OWN = Tool("look_up", schema={"type": "object"})
AUTO: tuple[ChoiceName, ...] = ("auto", "none")
WEB = HostedTool("web_search", Foreign("anthropic", "web_search", {}))


def test_the_schema_becomes_the_one_function_that_must_be_called() -> None:
    outcome = fitted(request(output=FORMAT), NONE)
    (tool,) = outcome.request.tools
    assert isinstance(tool, Tool)
    assert (tool.name, tool.schema) == ("answer", SCHEMA)
    assert outcome.request.tool_choice == ToolChoice("required", ("answer",))
    assert outcome.request.output is None
    assert outcome.emulation == Emulation(answer_tool="answer")
    assert features(outcome) == [("output_format", "emulated")]


def test_the_function_has_the_formats_name_and_description_and_is_strict_where_that_holds() -> None:
    named = msgspec.structs.replace(FORMAT, name="CityLocation", description="Where it is.", strict=True)
    outcome = fitted(request(output=named), NONE)
    (tool,) = outcome.request.tools
    assert isinstance(tool, Tool)
    assert tool.name == "CityLocation"
    assert tool.description is not None
    assert tool.description.startswith("Where it is.")
    assert tool.strict is True
    loose = fitted(request(output=named), Limits(output_formats=(), strict_tools=False))
    assert ("output_format.strict", "dropped") in features(loose)


def test_its_name_is_none_of_the_clients() -> None:
    tools = (Tool("answer", schema={"type": "object"}), Tool("answer_2", schema={"type": "object"}))
    outcome = fitted(request(output=FORMAT, tools=tools), NONE)
    assert outcome.emulation == Emulation(answer_tool="answer_3")


def test_beside_the_clients_tools_any_call_is_demanded() -> None:
    outcome = fitted(request(output=FORMAT, tools=(OWN,)), NONE)
    assert outcome.request.tool_choice == ToolChoice("required")
    assert [tool.name for tool in outcome.request.tools if isinstance(tool, Tool)] == ["look_up", "answer"]
    none = fitted(request(output=FORMAT, tools=(OWN,), tool_choice=ToolChoice("none")), NONE)
    assert none.request.tool_choice == ToolChoice("required", ("answer",))


@pytest.mark.parametrize(
    ("limits", "more"),
    [
        (Limits(output_formats=(), tool_choices=AUTO), {}),
        (
            Limits(output_formats=(), tool_choices_thinking=AUTO, thinking="budget"),
            {"thinking": Thinking("on")},
        ),
        (NONE, {"tools": (OWN,), "tool_choice": ToolChoice("required")}),
        (NONE, {"tools": (OWN,), "tool_choice": ToolChoice("auto", ("look_up",))}),
        (NONE, {"tools": (WEB,)}),
    ],
    ids=[
        "not accept a forced choice",
        "none while it thinks",
        "a call is wanted",
        "a narrow choice",
        "a hosted tool",
    ],
)
def test_where_no_call_can_be_demanded_the_format_is_asked_for_in_words(limits: Limits, more: dict) -> None:
    outcome = fitted(request(output=FORMAT, **more), limits)
    assert outcome.emulation is None
    assert ("output_format", "approximated") in features(outcome)


def test_an_answer_that_the_client_began_is_not_made_a_call() -> None:
    outcome = fitted(request(user(Text("hi")), assistant(Text("{")), output=FORMAT), NONE)
    assert outcome.emulation is None


def test_any_other_root_is_wrapped_and_taken_off_again() -> None:
    outcome = fitted(request(output=OutputFormat("schema", {"type": "array"})), NONE)
    assert outcome.aliases.unwraps
    assert ("output_format.schema", "emulated") in features(outcome)


def test_what_only_the_clients_dialect_says_of_the_format_is_reported() -> None:
    own = msgspec.structs.replace(FORMAT, extra=Extra("openai-chat", {"colour": "blue"}))
    outcome = fitted(request(output=own), NONE)
    assert ("unknown_field", "dropped") in features(outcome)


def answer(*parts: Part, reason: StopReason = "tool_calls", others: tuple[Candidate, ...] = ()) -> Response:
    return Response("r", "m", parts, Stop(reason), Usage(input=1, output=1), others=others)


CALL = ToolCall("c1", "answer", '{"a":"b"}')
CLIENTS = ToolCall("c2", "look_up", "{}")
DOCUMENT = Text('{"a":"b"}')


@pytest.mark.parametrize(
    ("came", "goes", "lost"),
    [
        (answer(CALL), answer(DOCUMENT, reason="end"), []),
        (answer(Reasoning("t"), CALL), answer(Reasoning("t"), DOCUMENT, reason="end"), []),
        (answer(Text("Here:"), CALL, Text("Done.")), answer(DOCUMENT, reason="end"), ["text outside"]),
        (answer(Text("\n"), CALL), answer(DOCUMENT, reason="end"), []),
        (answer(CALL, CALL), answer(DOCUMENT, reason="end"), ["a second"]),
        (answer(CALL, CLIENTS), answer(DOCUMENT, CLIENTS), []),
        (answer(Text("Wait."), CLIENTS), answer(Text("Wait."), CLIENTS), []),
        (answer(Text("{}"), reason="end"), answer(Text("{}"), reason="end"), []),
        (answer(Text("No.", refusal=True), reason="refused"), answer(Text("No.", refusal=True), reason="refused"), []),
        (answer(ToolCall("c1", "answer", '{"a'), reason="length"), answer(Text('{"a'), reason="length"), []),
    ],
)  # fmt: skip
def test_the_arguments_are_the_answer(came: Response, goes: Response, lost: list[str]) -> None:
    losses: list[Loss] = []
    assert Emulation(answer_tool="answer").response(came, losses) == goes
    assert [loss.detail[: len(said)] for loss, said in zip(losses, lost, strict=True)] == lost


def test_further_answers_are_made_of_arguments_too() -> None:
    other = Candidate((Text("x"), CALL), Stop("tool_calls"))
    losses: list[Loss] = []
    made = Emulation(answer_tool="answer").response(answer(CALL, others=(other,)), losses)
    assert made.others == (Candidate((DOCUMENT,), Stop("end")),)
    assert len(losses) == 1


_PARTS = st.lists(st.sampled_from([Text("Hm."), Text(" "), Reasoning("t"), CALL, CLIENTS]), max_size=6)


@given(_PARTS, st.integers(1, 5))
def test_a_stream_comes_to_what_the_whole_answer_is(parts: list[Part], size: int) -> None:
    came = answer(*parts)
    answers = AnswerFilter("answer")
    events = [piece for event in unfold(came) for piece in _cut(event, size)]
    passed = [out for event in events for out in answers.events([event])]
    assert list(check(passed)) == passed
    losses: list[Loss] = []
    assert fold(passed) == Emulation(answer_tool="answer").response(came, losses)
    assert answers.losses == losses


def _cut(event: Event, size: int) -> list[Event]:
    if not isinstance(event, Delta):
        return [event]
    return [Delta(event.index, event.text[at : at + size]) for at in range(0, len(event.text), size)]


def test_arguments_are_passed_on_as_they_come() -> None:
    answers = AnswerFilter("answer")
    answers.events([next(unfold(answer()))])
    assert answers.events([PartStart(0, ToolCall("c", "answer", ""))]) == [PartStart(0, Text(""))]
    assert answers.events([Delta(0, '{"a')]) == [Delta(0, '{"a')]
    assert answers.events([PartEnd(0)]) == [PartEnd(0)]


def test_the_library_makes_the_answer_of_the_arguments() -> None:
    body = {
        "model": "claude-3-5-haiku-latest",
        "messages": [{"role": "user", "content": "hi"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA}},
    }
    asked = translate_request(body, source="openai-chat", target="anthropic", provider="anthropic")
    assert asked.value["tool_choice"] == {"type": "tool", "name": "city"}
    came = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-3-5-haiku-latest",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "city", "input": {"a": "b"}}],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    made = translate_response(
        came, source="anthropic", target="openai-chat", request=body, provider="anthropic"
    ).value
    (choice,) = made["choices"]
    assert decode(choice["message"]["content"]) == {"a": "b"}
    assert choice["finish_reason"] == "stop"
    assert "tool_calls" not in choice["message"]
