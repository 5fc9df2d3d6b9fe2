"""Where two documents differ."""

from __future__ import annotations

from typing import Any

from tests.tiers import rows
from wireglot_core.ir.content import Foreign, Media, Reasoning, Text, ToolCall
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.traces.diff import Side, differences, outline, shown, sides, words
from wireglot_core.traces.pointer import found, pointer_of, resolve
from wireglot_core.traces.trace import Link, TracedLoss


@rows(
    ("before", "after", "reported"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, ["/a: 1 -> true"]),
        ({"a": 1}, {}, ["/a: 1 -> absent"]),
        ([1], [1, 2], ["/1: absent -> 2"]),
        ({"a/b": {"~": "x"}}, {"a/b": {"~": "y"}}, ['/a~1b/~0: "x" -> "y"']),
        ({"arguments": '{"a":1,"b":2}'}, {"arguments": '{"b": 2, "a": 1}'}, []),
        ("x", {"a": 1}, ['the document: "x" -> {"a":1}']),
        ([{"a": None}], [{}], ["/0/a: null -> absent"]),
        ({"a": "{1}"}, {"a": "{2}"}, ['/a: "{1}" -> "{2}"']),
        ({"a": ' {"b": 1}'}, {"a": "text"}, ['/a: " {\\"b\\": 1}" -> "text"']),
    ],
)
def test_differences_are_reported_by_their_pointers(before: Any, after: Any, reported: list[str]) -> None:
    assert [str(each) for each in differences(before, after)] == reported


@rows(
    ("path", "pointer"),
    [
        ("$", ""),
        ("$.messages[2].content[0]", "/messages/2/content/0"),
        ('$["a/b"].c["~"]', "/a~1b/c/~0"),
        ("messages", ""),
        ("$.a b", ""),
        ('$["\\x"]', ""),
        ("$[0]._a9", "/0/_a9"),
    ],
)
def test_a_path_is_a_pointer(path: str, pointer: str) -> None:
    assert pointer_of(path) == pointer


def test_a_pointer_leads_to_something_or_nowhere() -> None:
    document = {"a/b": [{"~": 1}], "0": "member"}
    assert resolve(document, "/a~1b/0/~0") == 1
    assert resolve(document, "/0") == "member"
    assert resolve(document, "") is document
    assert not found(document, "/a~1b/1")
    assert not found(document, "/a~1b/00")
    assert not found(document, "/0/1")
    assert not found(document, "/a~1b/~0")
    assert found(document, "/a~1b/0")


def test_a_long_value_is_shown_as_far_as_a_person_reads() -> None:
    assert shown("x" * 158) == f'"{"x" * 158}"'
    assert shown("x" * 159) == f'"{"x" * 156}...'
    assert shown([1, 2, 3], 5) == "[1..."


def test_an_outline_is_what_an_answer_says() -> None:
    content = (
        Reasoning("Let me "),
        Reasoning("look."),
        Text("It "),
        ToolCall("c1", "look", '{"at": 1}'),
        ToolCall("c2", "run", "ls -l"),
        Text("snows."),
        Media("image", mime="image/png", data="AAAA"),
        Foreign("anthropic", "odd", {"type": "odd"}),
    )
    said = {
        "text": "It snows.",
        "reasoning": "Let me look.",
        "calls": [{"name": "look", "arguments": {"at": 1}}, {"name": "run", "arguments": "ls -l"}],
        "stop": "end",
        "tokens": {"input": 7, "output": 5},
        "others": ["Media", "Foreign"],
    }
    assert outline(Response("r", "m", content, Stop("end"), Usage(input=7, output=5))) == said
    plain = outline(Response("r", "m", (Text("Yes."),), Stop("length")))
    assert plain == {"text": "Yes.", "reasoning": "", "calls": [], "stop": "length"}


@rows(
    ("value", "said"),
    [
        ({"type": "text", "text": "hello", "role": "user"}, ["hello"]),
        ({"object": "x", "status": "done", "n": [1, True, None]}, ["1", "True"]),
        ({"arguments": '{"city": "Oslo"}'}, ["Oslo"]),
        ({"input": {"city": "Oslo"}}, ["Oslo"]),
        (["b", "a"], ["a", "b"]),
        ("{not json}", ["{not json}"]),
    ],
)
def test_the_words_of_a_value_are_those_of_no_form(value: Any, said: list[str]) -> None:
    assert words(value) == said


def lost(feature: str, action: str, *, document: str = "request", **places: str) -> TracedLoss:
    return TracedLoss(
        feature=feature, action=action, grade="degraded", document=document, path="$.path", **places
    )


def test_each_part_has_its_fate() -> None:
    body = {"model": "m", "messages": [{"content": [{"text": "a"}, {"text": "b"}]}], "top_k": 5}
    sent = {"contents": [{"parts": [{"text": "a"}, {"text": "B"}]}], "extra": {"x": 1}}
    links = [
        Link("/messages/0", "/contents/0"),
        Link("/messages/0/content/0", "/contents/0"),
        Link("/messages/0/content/0", "/contents/0/parts/0"),
        Link("/messages/0/content/1", "/contents/0/parts/1"),
    ]
    losses = [
        lost("sampling.top_k", "dropped", pointer="/top_k"),
        lost("cache", "dropped", pointer="/messages/0/content/1/cache", detail="no such mark"),
        lost("ids", "rewritten"),
        lost("filler", "invented", pointer="/messages/0", upstream="/contents/0"),
        lost("usage", "dropped", pointer="/usage", document="response"),
    ]
    assert sides(body, sent, links, losses) == [
        Side("kept", "/messages/0/content/0", "/contents/0/parts/0"),
        Side("rewritten", "/messages/0/content/1", "/contents/0/parts/1"),
        Side("lost", "/messages/0/content/1/cache", "", "cache dropped: no such mark"),
        Side("lost", "/top_k", "", "sampling.top_k dropped"),
        Side("rewritten", "$.path", "", "ids rewritten"),
        Side("put in", "/messages/0", "/contents/0", "filler invented"),
        Side("put in", "", "/extra"),
    ]
