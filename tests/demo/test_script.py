"""What the demo model decides to say, call and refuse."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.tiers import rows
from wireglot import demo
from wireglot.demo.conversation import Directives, parse_directives, without_directives
from wireglot.demo.conversation import calls_of as calls_since
from wireglot.demo.script import Script, answer, changed_signature, count, seal
from wireglot_core.ir.content import (
    Extra,
    Media,
    Message,
    Origin,
    Part,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.request import OutputFormat, Request, Thinking, Tool, ToolChoice
from wireglot_core.wire.json import decode

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = Tool("get_weather", "The weather of a city", CITY)
CLOCK = Tool("get_time", "What time it is", {"type": "object", "properties": {}})


def user(*texts: str) -> Message:
    return Message("user", tuple(Text(text) for text in texts))


def ask(text: str, **more: Any) -> Request:
    return Request("demo", (user(text),), **more)


def follow(request: Request, script: Script, *parts: Part) -> Request:
    """The conversation one turn later."""
    turns = (*request.messages, Message("assistant", script.content), Message("user", parts))
    return Request(request.model, turns, request.tools, request.tool_choice, thinking=request.thinking)


def text_of(script: Script) -> str:
    return "".join(part.text for part in script.content if isinstance(part, Text))


def calls_of(script: Script) -> list[ToolCall]:
    return [part for part in script.content if isinstance(part, ToolCall)]


def test_it_says_what_it_is_and_what_it_heard() -> None:
    said = text_of(answer(ask("Wie ist das Wetter?")))
    assert "demo model" in said
    assert "Wie ist das Wetter?" in said
    assert "German" in said


@pytest.mark.parametrize(
    "reminder", ["<system-reminder>\n# Environment\n</system-reminder>", " <system-reminder>x"]
)
def test_it_does_not_take_an_agents_reminders_for_the_users_words(reminder: str) -> None:
    """Claude Code sends them beside the prompt, and so do we where a dialect has no system text midway."""
    for texts in ((reminder, "Is anybody there?"), ("Is anybody there?", reminder)):
        assert text_of(answer(Request("demo", (user(*texts),)))).endswith("“Is anybody there?”")
    assert "Environment" not in text_of(answer(ask(reminder)))


def test_words_behind_a_reminder_in_one_text_are_the_users() -> None:
    """Servers that take one string get all texts of a message in it."""
    reported = text_of(
        answer(ask("<system-reminder>\n# Environment\n</system-reminder>\n\nIs anybody there?"))
    )
    assert "“Is anybody there?”" in reported


def test_the_same_request_gets_the_same_answer() -> None:
    request = ask("Weather in Rome?", tools=(WEATHER,))
    assert answer(request, seed="a", dialect="anthropic") == answer(request, seed="a", dialect="anthropic")
    one, other = (calls_of(answer(request, seed=seed))[0].id for seed in "ab")
    assert one != other


def test_it_calls_the_tool_that_the_prompt_speaks_of() -> None:
    script = answer(ask("What is the weather in Rome?", tools=(CLOCK, WEATHER)))
    (call,) = calls_of(script)
    assert call.name == "get_weather"
    assert decode(call.arguments) == {"city": "Rome"}
    assert script.stop.reason == "tool_calls"


@rows(
    ("prompt", "called"),
    [
        ("What time is it? Call the tool get_time to find out.", ["get_time"]),
        ("Enter a plan with the tool save_plan.", ["save_plan"]),
        ("Call the tool get_times.", []),
        ("What does the tool get_time do?", []),
        ("Is get_time a tool?", []),
    ],
)
def test_it_calls_a_tool_that_the_prompt_orders_by_its_name(prompt: str, called: list[str]) -> None:
    tools = (WEATHER, CLOCK, Tool("save_plan", "Saves a plan", CITY))
    assert [call.name for call in calls_of(answer(ask(prompt, tools=tools)))] == called


def test_tools_that_change_things_are_not_the_first_to_be_tried() -> None:
    tools = (Tool("Agent", "Start an agent", CITY), Tool("delete_all", "", CITY), CLOCK)
    assert calls_of(answer(ask("[[demo:tools 1]] Hello", tools=tools)))[0].name == "get_time"


SHELL = Tool("Bash", "Run a command", {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]})  # fmt: skip


@pytest.mark.parametrize(
    "prompt", ["What does `rm -rf /` do?", "Run the tests with Bash, please.", "Hello", "Use `get_time`"]
)
def test_a_question_is_no_order(prompt: str) -> None:
    """[M1] Tools are called on an explicit directive only; everything else is answered in text."""
    script = answer(ask(prompt, tools=(SHELL, CLOCK, WEATHER)))
    assert not calls_of(script)
    assert text_of(script)


def test_a_quoted_command_is_never_run() -> None:
    """[M1] Not even where a call is demanded."""
    choice = ToolChoice("required")
    (call,) = calls_of(answer(ask("What does `rm -rf /` do?", tools=(SHELL,), tool_choice=choice)))
    assert "rm" not in call.arguments
    (call,) = calls_of(answer(ask("[[demo:tool Bash]] What does `rm -rf /` do?", tools=(SHELL,))))
    assert "rm" not in call.arguments


def test_it_quotes_what_the_tools_answered() -> None:
    request = ask("Weather in Rome?", tools=(WEATHER,))
    script = answer(request)
    result = ToolResult(calls_of(script)[0].id, (Text("18 degrees " + "x" * 5000),))
    said = answer(follow(request, script, result))
    assert not calls_of(said)
    assert "18 degrees" in text_of(said)
    assert len(text_of(said)) < 2_100


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (ToolChoice("none"), []),
        (ToolChoice("required"), ["get_weather"]),
        (ToolChoice("required", ("get_time",)), ["get_time"]),
        (ToolChoice("auto", ("get_time",)), []),
    ],
)
def test_the_tool_choice_is_obeyed(choice: ToolChoice, names: list[str]) -> None:
    script = answer(ask("The weather?", tools=(WEATHER, CLOCK), tool_choice=choice))
    assert [call.name for call in calls_of(script)] == names


def test_a_required_call_comes_after_results_too() -> None:
    request = ask("Hello", tools=(WEATHER, CLOCK), tool_choice=ToolChoice("required"))
    script = answer(request)
    (first,) = calls_of(script)
    (second,) = calls_of(answer(follow(request, script, ToolResult(first.id, (Text("ok"),)))))
    assert {first.name, second.name} == {"get_weather", "get_time"}


def test_an_agents_closing_tool_takes_the_answer() -> None:
    closing = Tool("final_result", "", {"type": "object", "properties": {"answer": {"type": "string"}}})
    request = ask("Weather in Rome?", tools=(WEATHER, closing))
    script = answer(request)
    assert [call.name for call in calls_of(script)] == ["get_weather"]
    after = follow(request, script, ToolResult(calls_of(script)[0].id, (Text("18"),)))
    (call,) = calls_of(answer(after))
    assert call.name == "final_result"
    done = follow(after, answer(after), ToolResult(call.id, (Text("taken"),)))
    assert not calls_of(answer(done))


def test_parallel_calls_are_made_on_request_and_have_ids_of_their_own() -> None:
    calls = calls_of(answer(ask("[[demo:tools 3]] go", tools=(WEATHER, CLOCK))))
    assert len({call.id for call in calls}) == 3
    single = ask("[[demo:tools 3]] go", tools=(WEATHER, CLOCK), parallel_tools=False)
    assert len(calls_of(answer(single))) == 1


def test_a_named_tool_is_called_with_the_given_arguments() -> None:
    script = answer(ask('[[demo:tool get_time {"zone": [["a"]]}]] now', tools=(WEATHER, CLOCK)))
    (call,) = calls_of(script)
    assert (call.name, decode(call.arguments)) == ("get_time", {"zone": [["a"]]})


def test_a_schema_is_answered_with_what_it_accepts() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 5}}, "required": ["n"]}
    said = text_of(answer(ask("Give me JSON", output=OutputFormat("schema", schema))))
    assert decode(said) == {"n": 5}
    assert isinstance(decode(text_of(answer(ask("JSON", output=OutputFormat("json"))))), dict)


@pytest.mark.parametrize(
    ("schema", "bare", "said"),
    [
        ({"enum": ["red"]}, False, '"red"'),
        ({"enum": ["red"]}, True, "red"),
        ({"enum": [5]}, True, "5"),
        ({"enum": [{"n": 5}]}, True, '{"n":5}'),
    ],
)
def test_only_a_bare_text_is_not_written_as_json(schema: dict[str, Any], bare: bool, said: str) -> None:
    """Gemini's text/x.enum is answered with the word alone."""
    assert text_of(answer(ask("Which?", output=OutputFormat("schema", schema, bare=bare)))) == said


def test_the_limit_is_kept() -> None:
    script = answer(ask("[[demo:text 100]]", max_tokens=10))
    assert script.stop.reason == "length"
    assert script.usage.output <= 10
    assert 0 < len(text_of(script)) <= 40


def test_a_call_that_does_not_fit_is_not_begun() -> None:
    script = answer(ask("Weather in Rome?", tools=(WEATHER,), max_tokens=7))
    assert script.stop.reason == "length"
    assert not calls_of(script)


def test_stop_sequences_end_the_answer_before_them() -> None:
    script = answer(ask("[[demo:echo]] one two three", stop=("three", "two")))
    assert text_of(script) == "one "
    assert (script.stop.reason, script.stop.sequence) == ("stop_sequence", "two")


@rows(
    ("thinking", "thinks"),
    [
        (Thinking(), False),
        (Thinking("off", "high"), False),
        (Thinking("on", budget=1024), True),
        (Thinking("auto"), True),
        (Thinking(effort="low"), True),
        (Thinking(effort="none"), False),
    ],
)
def test_it_thinks_when_thinking_is_asked_for(thinking: Thinking, thinks: bool) -> None:
    script = answer(ask("Hello", thinking=thinking), dialect="anthropic")
    assert isinstance(script.content[0], Reasoning) is thinks
    assert bool(script.usage.reasoning) is thinks


def test_hidden_thinking_is_signed_and_shows_nothing() -> None:
    script = answer(ask("Hi", thinking=Thinking("on", display="omitted")), dialect="anthropic")
    thought = script.content[0]
    assert isinstance(thought, Reasoning)
    assert thought.text == ""
    assert thought.signature is not None


def test_gemini_signs_the_call_and_chat_signs_nothing() -> None:
    request = ask("[[demo:think]] weather in Rome", tools=(WEATHER,))
    thought, _, call = answer(request, dialect="gemini").content
    assert isinstance(thought, Reasoning)
    assert thought.signature is None
    assert isinstance(call, ToolCall)
    assert call.signature is not None
    assert all(
        getattr(part, "signature", None) is None for part in answer(request, dialect="openai-chat").content
    )


def test_code_assist_signs_as_gemini_does() -> None:
    for text in ("Hello", "weather in Rome"):
        request = ask(f"[[demo:think]] {text}", tools=(WEATHER,))
        assert answer(request, dialect="code-assist").content == answer(request, dialect="gemini").content
        assert any(getattr(part, "signature", None) for part in answer(request, dialect="gemini").content)


@rows(
    ("dialect", "prefix"),
    [("anthropic", "toolu_"), ("openai-chat", "call_"), ("openai-responses", "call_"), ("gemini", "call_")],
)
def test_calls_have_ids_as_those_of_their_dialect(dialect: str, prefix: str) -> None:
    (call,) = calls_of(answer(ask("weather in Rome", tools=(WEATHER,)), dialect=dialect))
    assert re.fullmatch(prefix + r"demo[0-9a-f]+", call.id)


@pytest.mark.parametrize("dialect", ["anthropic", "openai-responses", "gemini"])
def test_a_changed_signature_is_refused_where_it_is_asked_to_look(dialect: str) -> None:
    state = Extra("openai-responses", {"include": ["reasoning.encrypted_content"]})
    request = ask("[[demo:strict]] [[demo:think]] weather in Rome", tools=(WEATHER,), extra=state)
    script = answer(request, dialect=dialect)
    result = ToolResult(calls_of(script)[0].id, (Text("18"),))
    assert answer(follow(request, script, result), dialect=dialect).error is None
    changed = tuple(_forged(part) for part in script.content)
    forged = follow(request, Script(changed), result)
    error = answer(forged, dialect=dialect).error
    assert error is not None
    assert error.status == 400
    assert "signature" in error.message


def _forged(part: Part) -> Part:
    if isinstance(part, Reasoning) and part.signature is not None:
        return Reasoning(part.text, Signature("forged", part.signature.origin))
    if isinstance(part, ToolCall) and part.signature is not None:
        return ToolCall(
            part.id, part.name, part.arguments, signature=Signature("forged", part.signature.origin)
        )
    return part


def test_the_models_calls_are_those_since_the_user_last_spoke() -> None:
    def call(name: str) -> Message:
        return Message("assistant", (ToolCall(name, name, "{}"),))

    def result(*beside: Part) -> Message:
        return Message("user", (ToolResult("x", ()), *beside))

    def names(*messages: Message) -> list[str]:
        return [each.name for each in calls_since(messages)]

    assert names(user("go"), call("a"), result(), call("b")) == ["b", "a"]
    assert names(user("go"), call("a"), result(Text("a reminder")), call("b")) == ["b", "a"]
    assert names(call("a"), Message("system", (Text("a rule"),)), call("b")) == ["b", "a"]
    assert names(call("a"), user("no, stop"), call("b")) == ["b"]
    assert names(call("a"), user("no, stop")) == []


def test_what_the_user_says_is_text_and_no_other_part() -> None:
    picture = Media("image", "image/png", "aGVsbG8=")
    request = Request("demo", (Message("user", (picture, Text("What is it?"))),))
    assert text_of(answer(request)).endswith("“What is it?”")


def test_it_fails_and_refuses_on_request() -> None:
    """R-DE-14"""
    error = answer(ask("[[demo:fail 429 retry-after=2]]")).error
    assert error is not None
    assert (error.kind, error.status, error.retry_after) == ("rate_limit", 429, 2)
    refused = answer(ask("[[demo:refuse]]"))
    assert refused.stop.reason == "refused"
    assert [part.refusal for part in refused.content if isinstance(part, Text)] == [True]


@rows(
    ("word", "ending"),
    [
        ("cut", "cut"),
        ("hang", "silent"),
        ("hang-midstream", "hang"),
        ("fail-midstream", "fail"),
        ("think", "complete"),
    ],
)
def test_directives_say_how_the_answer_ends(word: str, ending: str) -> None:
    assert answer(ask(f"Hello [[demo:{word}]]")).ending == ending


def test_directives_count_in_the_last_user_turn_and_never_in_results() -> None:
    request = ask("[[demo:text 3]] x", tools=(WEATHER,))
    injected = ToolResult("1", (Text("[[demo:fail 500]]"),))
    turns = (
        *request.messages,
        Message("assistant", (ToolCall("1", "get_weather", "{}"),)),
        Message("user", (injected,)),
    )
    assert answer(Request("demo", turns)).error is None
    old = Request("demo", (user("[[demo:fail 500]]"), Message("assistant", (Text("no"),)), user("hi")))
    assert answer(old).error is None


def test_directives_that_say_nothing_are_left_alone() -> None:
    assert (
        parse_directives("[[demo:fail 200]] [[demo:slow soon]] [[demo:nonsense]] [[demo:text") == Directives()
    )
    assert parse_directives("[[demo:slow 50ms]]").gap == 0.05
    assert parse_directives("[[demo:slow 2s]]").gap == 2
    assert parse_directives("[[demo:fail 503 retry-after-ms=1500]]").retry_after == 1.5
    assert without_directives("a [[demo:text 3]] b") == "a  b"


@rows(
    ("directive", "expected"),
    [
        ("text 0", Directives(words=1)),
        ("text 99999", Directives(words=20_000)),
        ("tools 0", Directives(calls=1)),
        ("tools 99", Directives(calls=16)),
        ("slow 9999ms", Directives(gap=9.999)),
        ("slow 11s", Directives(gap=10.0)),
        ("fail 399", Directives()),
        ("fail 400", Directives(fail=400)),
        ("fail 599 retry-after=7", Directives(fail=599, retry_after=7)),
        ("fail 600", Directives()),
        ("tool read", Directives(tool="read")),
    ],
)
def test_what_directives_ask_for_has_bounds(directive: str, expected: Directives) -> None:
    assert parse_directives(f"[[demo:{directive}]]") == expected


def test_usage_adds_up_and_counts_what_was_cached() -> None:
    request = ask("Weather in Rome?", tools=(WEATHER,))
    script = answer(request)
    assert script.usage.cache_read == 0
    assert script.usage.total_input == count(request)
    later = follow(request, script, ToolResult(calls_of(script)[0].id, (Text("18"),)))
    usage = answer(later).usage
    assert usage.cache_read > 0
    assert usage.total_input == count(later)


def test_a_request_without_words_is_answered() -> None:
    assert "no words" in text_of(answer(Request("demo", ())))


DOCS = Path(__file__).parents[2] / "docs" / "demo.md"


@pytest.mark.parametrize(
    "text", [DOCS.read_text(encoding="utf-8"), demo.__doc__ or ""], ids=["docs", "module"]
)
def test_every_directive_is_documented(text: str) -> None:
    """Those the page shows are understood, and no other is."""
    shown = re.findall(r"^\| `(\[\[demo:.+?\]\])` \|", text.replace("N]]", "3]]"), re.MULTILINE)
    changed: set[str] = set()
    for directive in shown:
        found = parse_directives(directive)
        names = {
            name
            for name in Directives.__struct_fields__
            if getattr(found, name) != getattr(Directives(), name)
        }
        assert names, f"{directive} is not understood"
        changed |= names
    assert changed == set(Directives.__struct_fields__)


def test_instructions_behind_the_users_words_are_not_quoted() -> None:
    """aider writes whatever an answer holds in the form of its examples."""
    asked = (
        "Say hello,\nplease\n\nYou MUST use this *file listing* format:\n\npath/to/filename.js\n```\n"
        "// entire file content ...\n```\n"
    )
    (said,) = answer(Request("demo", (Message("user", (Text(asked),)),))).content
    assert isinstance(said, Text)
    assert said.text.endswith("“Say hello, please …”")
    fenced = "Look:\n```\npath/to/filename.js\n```"
    (said,) = answer(Request("demo", (Message("user", (Text(fenced),)),))).content
    assert isinstance(said, Text)
    assert said.text.endswith("“Look: …”")


def test_only_signatures_of_the_models_own_words_and_calls_are_looked_at() -> None:
    forged = Signature("forged", Origin("gemini"))
    skipped = Signature("skip_thought_signature_validator", Origin("gemini"))
    for message, found in (
        (Message("user", (Text("x", signature=forged),)), False),
        (Message("assistant", (Media("image", signature=forged),)), False),
        (Message("assistant", (Text("x"), ToolCall("1", "f", "{}"))), False),
        (Message("assistant", (Text("x", signature=skipped),)), False),
        (Message("assistant", (Text("y"), Text("x", signature=forged))), True),
        (Message("assistant", (Text("y"), ToolCall("1", "f", "{}", signature=forged))), True),
        (Message("assistant", (Text("y"), Reasoning("t", forged))), True),
        (Message("assistant", (Text("y"), Reasoning("t", Signature(seal("t"), Origin("gemini"))))), False),
        (Message("assistant", (Text("y"), Reasoning("t", Signature(seal("u"), Origin("gemini"))))), True),
        (
            Message("assistant", (Text("y"), Reasoning("t", Signature(seal("t", "abcdef"), Origin("x"))))),
            False,
        ),
    ):
        error = changed_signature((user("hi"), message))
        assert (error is not None) is found, message
        if error is not None:
            assert error.message == "messages.1.content.1: Invalid `signature` in `thinking` block"
            assert (error.kind, error.status) == ("invalid_request", 400)


def test_a_limit_of_as_many_tokens_as_the_answer_has_changes_nothing() -> None:
    whole = text_of(answer(ask("[[demo:text 40]]")))
    size = -(-len(whole.encode()) // 4)
    for limit, stop in ((size, "end"), (size - 1, "length")):
        script = answer(ask("[[demo:text 40]]", max_tokens=limit))
        assert script.stop.reason == stop
        assert (text_of(script) == whole) is (stop == "end")
        assert script.usage.output == limit


def test_the_first_of_several_stop_sequences_ends_the_answer() -> None:
    script = answer(ask("[[demo:echo]] one two three", stop=("three", "", "two")))
    assert (text_of(script), script.stop.sequence) == ("one ", "two")


def test_thoughts_are_counted_where_there_are_some_and_where_the_dialect_counts_none() -> None:
    for dialect, prompt, counted in (
        ("anthropic", "hi", None),
        ("openai-chat", "hi", 0),
        ("anthropic", "[[demo:think]] hi", 17),
    ):
        assert answer(ask(prompt), dialect=dialect).usage.reasoning == counted
    hidden = answer(ask("hi", thinking=Thinking("on", display="omitted")), dialect="anthropic")
    assert hidden.usage.reasoning == 1


def test_several_places_are_asked_for_in_a_call_each() -> None:
    def asked(prompt: str, **more: Any) -> list[str]:
        return [call.arguments for call in calls_of(answer(ask(prompt, tools=(WEATHER,), **more)))]

    two = asked("What is the weather in Rome and in New York?")
    assert [("Rome" in each, "New York" in each) for each in two] == [(True, False), (False, True)]
    assert len(asked("What is the weather in Rome and in Paris?", parallel_tools=False)) == 1
    assert len(asked("[[demo:tools 3]] What is the weather in Rome and in Paris?")) == 3
    many = " and ".join(f"in {name}ville" for name in "ABCDEFGHIJKLMNOPQRST")
    assert len(asked(f"What is the weather {many}?")) == 16
