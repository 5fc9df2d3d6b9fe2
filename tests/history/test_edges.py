"""The corners of a history: an answer at each moment, parts that others go on changing, places for a cut."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tiers import rows
from wireglot.history import Assistant, BadHistory, History, Unfinished, native_calls
from wireglot.history.ask import tools_of
from wireglot.history.pairs import boundaries, cut_place, leading_system, open_calls, pending_calls
from wireglot_core.ir.content import (
    CacheMark,
    Citation,
    Extra,
    Foreign,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    TokenLogprob,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import ApiError, ClientFault
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.request import HostedTool, Tool
from wireglot_core.ir.stream import (
    BrokenGrammar,
    Delta,
    Failure,
    Finish,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
    fold,
)

CALL = ToolCall("call_1", "read", '{"a": 1}')
EVENTS = (
    Start("resp_1", "m", usage=Usage(input=3), created=7, service_tier="flex"),
    PartStart(0, Reasoning("")),
    Delta(0, "hm"),
    PartEnd(0),
    PartStart(1, Text("")),
    Delta(1, "Good "),
    Delta(1, "day", (TokenLogprob("day", -0.5),)),
    PartEnd(1),
    PartStart(2, ToolCall("call_1", "read", "")),
    Delta(2, '{"a": 1}'),
    UsageReport(Usage(input=3, output=4)),
    PartEnd(2),
    Finish(Stop("tool_calls"), Usage(input=3, output=5)),
)


def test_an_answer_can_be_asked_at_every_moment() -> None:
    answer = Assistant()
    assert (answer.id, answer.model, answer.text, answer.reasoning) == ("", "", "", "")
    assert (answer.calls, answer.stop, answer.usage, answer.done) == ((), None, None, False)
    seen = []
    for event in EVENTS:
        answer.feed(event)
        seen.append((answer.reasoning, answer.text, len(answer.calls), answer.usage, answer.done))
        if event is not EVENTS[-1]:
            with pytest.raises(Unfinished, match="has not ended"):
                answer.message()
            with pytest.raises(Unfinished, match="has not ended"):
                answer.response()
    started, counted, ended = Usage(input=3), Usage(input=3, output=4), Usage(input=3, output=5)
    assert seen == [
        ("", "", 0, started, False),
        ("", "", 0, started, False),
        ("hm", "", 0, started, False),
        ("hm", "", 0, started, False),
        ("hm", "", 0, started, False),
        ("hm", "Good ", 0, started, False),
        ("hm", "Good day", 0, started, False),
        ("hm", "Good day", 0, started, False),
        ("hm", "Good day", 1, started, False),
        ("hm", "Good day", 1, started, False),
        ("hm", "Good day", 1, counted, False),
        ("hm", "Good day", 1, counted, False),
        ("hm", "Good day", 1, ended, True),
    ]
    assert (answer.id, answer.model, answer.stop) == ("resp_1", "m", Stop("tool_calls"))
    assert answer.response() == fold(EVENTS)
    # Probabilities are of the answer: a later request cannot say them.
    assert answer.message().content == (Reasoning("hm"), Text("Good day"), CALL)
    assert native_calls(answer) == [answer.calls[0].native]


def test_a_call_is_partial_until_its_end() -> None:
    answer = Assistant()
    for event in EVENTS[:10]:
        answer.feed(event)
    (call,) = answer.calls
    assert (call.id, call.name, call.arguments, call.partial) == ("call_1", "read", '{"a": 1}', True)
    assert native_calls(answer) == []
    # Half of a call is no part of a turn; what was said is.
    assert answer.message(partial=True).content == (Reasoning("hm"), Text("Good day"))
    answer.feed(EVENTS[11])
    assert not answer.calls[0].partial
    assert answer.message(partial=True).content == (Reasoning("hm"), Text("Good day"), CALL)


def test_half_a_text_is_part_of_a_turn_and_half_a_thought_is_not() -> None:
    answer = Assistant()
    answer.feed(
        (EVENTS[0], PartStart(0, Reasoning("")), Delta(0, "hm"), PartStart(1, Text("")), Delta(1, "Go"))
    )
    assert answer.message(partial=True).content == (Text("Go"),)


def test_steps_say_of_which_part_and_call_they_are() -> None:
    answer = Assistant()
    steps = answer.feed(EVENTS)
    assert [(step.kind, step.index, step.delta, step.partial, step.id, step.name) for step in steps] == [
        ("reasoning", 0, "", True, "", ""),
        ("reasoning", 0, "hm", True, "", ""),
        ("reasoning", 0, "", False, "", ""),
        ("text", 1, "", True, "", ""),
        ("text", 1, "Good ", True, "", ""),
        ("text", 1, "day", True, "", ""),
        ("text", 1, "", False, "", ""),
        ("call", 2, "", True, "call_1", "read"),
        ("call", 2, '{"a": 1}', True, "call_1", "read"),
        ("call", 2, "", False, "call_1", "read"),
    ]
    assert [step.call is not None for step in steps] == [False] * 9 + [True]
    assert steps[6].part == Text("Good day", logprobs=(TokenLogprob("day", -0.5),))


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ((EVENTS[1],), "outside of an answer"),
        ((EVENTS[0], EVENTS[0]), "second Start"),
        ((EVENTS[0], PartStart(1, Text(""))), "part 1 started, 0 was next"),
        ((EVENTS[0], Delta(0, "x")), "part 0 is not open"),
        ((EVENTS[0], Delta(-1, "x")), "part -1 is not open"),
        ((EVENTS[0], EVENTS[1], PartEnd(0), PartEnd(0)), "part 0 is not open"),
        ((EVENTS[0], EVENTS[1], EVENTS[-1]), "open parts"),
        ((EVENTS[0], EVENTS[-1], EVENTS[-1]), "outside of an answer"),
        ((Failure(ApiError("server", "no")), EVENTS[0]), "outside of an answer"),
    ],
)
def test_events_out_of_order_are_named(events: Any, problem: str) -> None:
    with pytest.raises(BrokenGrammar, match=problem):
        Assistant().feed(events)


def test_an_answer_that_failed_says_why() -> None:
    answer = Assistant()
    answer.feed((EVENTS[0], Failure(ApiError("overloaded", "too much"))))
    assert answer.done
    assert answer.end() == []
    with pytest.raises(Unfinished, match="the answer failed: too much"):
        answer.response()
    with pytest.raises(TypeError, match="events only"):
        answer.read(b"")


def test_a_response_that_came_whole_stays_as_it_is() -> None:
    whole = Response("r", "m", (Text("hi"), Text("")), Stop("end"))
    answer = Assistant.from_response(whole)
    assert answer.response() is whole
    assert answer.message().content == (Text("hi"),)


PARTS: tuple[Part, ...] = (
    Text("a", extra=Extra("x", {"f": {}})),
    Text("a", cache=CacheMark(extra=Extra("x", {"f": {}}))),
    Text("a", citations=(Citation("u", extra=Extra("x", {"f": {}})),)),
    Reasoning("a", extra=Extra("x", {"f": {}})),
    ToolCall("c", "n", "{}", extra=Extra("x", {"f": {}})),
    ToolCall("c", "n", "{}", cache=CacheMark(extra=Extra("x", {"f": {}}))),
    Media("image", url="u", extra=Extra("x", {"f": {}})),
    Media("image", url="u", cache=CacheMark(extra=Extra("x", {"f": {}}))),
    Foreign("x", "t", {"f": {}}),
    ToolResult("c", (), extra=Extra("x", {"f": {}})),
    ToolResult("c", (), cache=CacheMark(extra=Extra("x", {"f": {}}))),
    ToolResult("c", (Foreign("x", "t", {"f": {}}),)),
)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_what_others_go_on_changing_is_copied(part: Part) -> None:
    history = History([Message("assistant", (part,))])
    (kept,) = history.messages[0].content
    assert kept == part
    assert kept is not part


def test_what_cannot_change_is_shared() -> None:
    plain = (Text("a"), Reasoning("b"), CALL, Media("image", url="u"), ToolResult("c", (Text("d"),)))
    message = Message("assistant", plain)
    assert History([message]).messages[0] is message
    marked = Message("user", (Text("a"),), extra=Extra("x", {"f": {}}))
    kept = History([marked]).messages[0]
    assert kept == marked
    assert kept.extra is not marked.extra


def asked(*ids: str) -> Message:
    return Message("assistant", tuple(ToolCall(id, "read", "{}") for id in ids))


def given(*ids: str) -> Message:
    return Message("user", tuple(ToolResult(id, ()) for id in ids))


SAID = Message("user", (Text("go on"),))


@pytest.mark.parametrize(
    ("messages", "open", "pending", "places"),
    [
        ((), [], [], []),
        ((SAID,), [], [], [0]),
        ((SAID, asked("a"), given("a"), SAID), [], [], [0, 1, 3]),
        ((SAID, asked("a", "b"), given("b"), SAID), ["a"], ["a"], [0, 1]),
        ((asked("a"), SAID, asked("b")), ["a", "b"], ["b"], [0, 1, 2]),
        ((asked("a"), asked("b"), SAID), ["a", "b"], ["a", "b"], [0]),
        ((asked("a"), SAID, asked("a"), given("a"), given("a")), [], [], [0]),
        ((asked("a", "a"), given("a")), ["a"], ["a"], [0]),
        ((given("a"), asked("a"), SAID), ["a"], ["a"], [0]),
        ((given("z"), SAID), [], [], [0, 1]),
    ],
)
def test_calls_and_results_pair_and_are_never_parted(
    messages: tuple[Message, ...], open: list[str], pending: list[str], places: list[int]
) -> None:
    assert [call.id for call in open_calls(messages)] == open
    assert [call.id for call in pending_calls(messages)] == pending
    assert boundaries(messages) == places


def test_a_cut_falls_where_the_user_speaks_or_else_between_two_steps() -> None:
    system = Message("system", (Text("s"),))
    messages = (system, SAID, asked("a"), given("a"), SAID, asked("b"), given("b"), asked("c"), given("c"))
    assert leading_system(messages) == 1
    assert cut_place(messages, lambda left: True) == 1
    assert cut_place(messages, lambda left: len(left) <= 8) == 4
    assert cut_place(messages, lambda left: len(left) <= 6) == 4
    assert cut_place(messages, lambda left: len(left) <= 5) == 5
    assert cut_place(messages, lambda left: len(left) <= 3) == 7
    assert cut_place(messages, lambda left: False) == 7
    assert cut_place((system,), lambda left: False) == 1
    history = History(messages)
    assert history.cut(5) == messages[1:4]
    assert list(history) == [system, *messages[4:]]
    assert history.cut(lambda left: len(left) <= 3) == messages[4:7]
    assert list(history) == [system, *messages[7:]]


@pytest.mark.parametrize(
    ("data", "problem", "path"),
    [
        (b"{", "not JSON", "$"),
        (b"[]", "expected a saved history", "$.wireglot_history"),
        (b'{"wireglot_history": true}', "expected a saved history", "$.wireglot_history"),
        (b'{"wireglot_history": 2}', "version 2: this release reads version 1", "$.wireglot_history"),
        (b'{"wireglot_history": 1, "turns": "x", "messages": []}', "Expected `int`", "$.turns"),
        (b'{"wireglot_history": 1}', "missing required field", "$"),
    ],
)
def test_what_is_no_saved_history_is_named_by_its_place(data: bytes, problem: str, path: str) -> None:
    with pytest.raises(BadHistory, match=problem) as reported:
        History.load(data)
    assert (reported.value.path, reported.value.code) == (path, "BAD_HISTORY")


def test_a_history_equals_one_that_has_said_as_much() -> None:
    one, other = History([SAID]), History([SAID])
    assert one == other
    other.user("more")
    other.cut(1)
    assert one != other
    assert one != [SAID]
    assert (len(one), list(one)) == (1, [SAID])
    assert repr(History([SAID, asked("a")])) == "History(2 messages, 1 calls pending)"


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ({"type": "function", "function": {"name": "f"}}, "f"),
        ({"type": "custom", "custom": {"name": "f"}}, "f"),
        ({"functionDeclarations": [{"name": "f"}]}, "f"),
        ({"function_declarations": [{"name": "f"}]}, "f"),
        ({"name": "f", "input_schema": {"type": "object"}}, "f"),
        ({"type": "function", "name": "f", "parameters": {}}, "f"),
        ({"type": "custom", "name": "f"}, "f"),
        ({"type": "web_search_20250305", "name": "web_search"}, "web_search_20250305"),
        ({"type": "web_search"}, "web_search"),
        ({"googleSearch": {}}, "googleSearch"),
    ],
)
def test_a_tool_is_read_by_the_dialect_it_is_written_in(tool: dict[str, Any], name: str) -> None:
    (found,) = tools_of([tool])
    assert (found.name if isinstance(found, Tool) else found.native.type) == name


@rows(
    ("tool", "written_in", "kind"),
    [
        ({"type": "google_search"}, "gemini-interactions", "web_search"),
        ({"type": "url_context"}, "gemini-interactions", "web_fetch"),
        ({"type": "code_execution"}, "gemini-interactions", "code_execution"),
        ({"type": "google_maps"}, "gemini-interactions", "google_maps"),
        ({"type": "computer_use"}, "gemini-interactions", "computer"),
        ({"type": "mcp_server", "name": "a", "url": "https://a.example/"}, "gemini-interactions", "mcp"),
        ({"type": "retrieval"}, "gemini-interactions", "retrieval"),
        ({"type": "file_search", "file_search_store_names": ["a"]}, "gemini-interactions", "file_search"),
        ({"type": "file_search", "vector_store_ids": ["a"]}, "openai-responses", "file_search"),
        ({"type": "code_execution_20250825", "name": "code_execution"}, "anthropic", "code_execution"),
    ],
)
def test_a_hosted_tool_is_read_by_the_dialect_it_is_written_in(
    tool: dict[str, Any], written_in: str, kind: str
) -> None:
    (found,) = tools_of([tool])
    assert isinstance(found, HostedTool)
    assert (found.native.dialect, found.kind) == (written_in, kind)


@pytest.mark.parametrize("tool", [{}, {"a": 1}, {"a": {}, "b": {}}, {"name": "f"}])
def test_what_is_no_tool_is_refused_by_its_place(tool: dict[str, Any]) -> None:
    with pytest.raises(ClientFault, match="no known form") as reported:
        tools_of([Tool("fine"), tool])
    assert reported.value.path == "$.tools[1]"


def test_calls_without_a_result_are_answered_by_an_error() -> None:
    request = History([SAID, asked("a", "b")]).request("anthropic", model="m")
    results = request.value["messages"][-1]["content"]
    assert [(each["tool_use_id"], each["is_error"]) for each in results] == [("a", True), ("b", True)]
    assert [
        (loss.feature, loss.action) for loss in request.losses if loss.feature.startswith("tool_result")
    ] == [
        ("tool_result.pairing", "invented"),
        ("tool_result.pairing", "invented"),
    ]
