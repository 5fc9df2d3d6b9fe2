"""Two streams beside one another, and marks in a document: the pieces of which links and causes are made."""

from __future__ import annotations

from typing import Any

from tests.tiers import rows
from wireglot_core.ir.content import Media, Message, Reasoning, Signature, Text, ToolCall, ToolResult
from wireglot_core.ir.content import Origin as Minter
from wireglot_core.traces.causes import is_keep_alive, same_unit, units_of, with_causes
from wireglot_core.traces.links import Marker
from wireglot_core.traces.target import TraceTarget
from wireglot_core.traces.trace import TraceFrame, TraceMessage


def stream(*said: str, every: float = 1.0) -> TraceMessage:
    return TraceMessage(
        frames=[
            TraceFrame(at * every, f'data: {{"say": "{each}"}}\n\n' if each else ": ping\n\n")
            for at, each in enumerate(said)
        ]
    )


def causes(got: TraceMessage, came: TraceMessage) -> tuple[str, list[list[int]]]:
    target = TraceTarget(dialect="openai-chat", passthrough=True)
    reported = with_causes(got, came, "openai-chat", target, None)
    return reported.caused_by, [frame.causes for frame in reported.frames]


def test_what_is_reported_already_or_has_nothing_beside_it_stays() -> None:
    target = TraceTarget(dialect="openai-chat")
    one = stream("a")
    known = TraceMessage(frames=one.frames, caused_by="events")
    assert with_causes(known, one, "openai-chat", target, None) is known
    assert with_causes(one, TraceMessage(), "openai-chat", target, None) is one
    assert with_causes(one, one, "openai-chat", target, None) is one
    empty = TraceMessage()
    assert with_causes(empty, one, "openai-chat", target, None) is empty


@rows(
    ("got", "came", "by", "expected"),
    [
        ("abc", "abc", "events", [[0], [1], [2]]),
        ("abc", "axc", "events", [[0], [1], [2]]),
        ("abcd", "axyd", "events", [[0], [1], [2], [3]]),
        ("abc", "ac", "events", [[0], [], [1]]),
        ("ac", "abc", "events", [[0], [2]]),
        ("abbd", "axd", "events", [[0], [1], [1], [2]]),
        ("abd", "axyd", "events", [[0], [1, 2], [3]]),
        ("a", "abc", "events", [[0]]),
        ("a12345678z", "aABCDEFGHz", "times", [[0], *([number] for number in range(1, 10))]),
        ("a1234567z", "aABCDEFGz", "events", [[0], *([number] for number in range(1, 9))]),
        ("a12345678z", "az", "events", [[0], *([] for _ in range(8)), [1]]),
        ("a123456789z", "az", "times", [[0], *([1] for _ in range(10))]),
        ("az", "a12345678z", "events", [[0], [9]]),
        ("az", "a123456789z", "times", [[0], [1]]),
    ],
)
def test_streams_are_aligned_as_far_as_they_agree_again(
    got: str, came: str, by: str, expected: list[list[int]]
) -> None:
    assert causes(stream(*got), stream(*came)) == (by, expected)


def test_a_keep_alive_is_of_nothing_and_times_are_those_of_the_last_read() -> None:
    assert causes(stream("a", "", "b"), stream("a", "b")) == ("events", [[0], [], [1]])
    upstream = TraceMessage(
        frames=[
            TraceFrame(1.0, "data: x\n\n"),
            TraceFrame(2.0, "data: y\n\n"),
            TraceFrame(2.0, "data: z\n\n"),
        ]
    )
    reported = TraceMessage(
        frames=[
            TraceFrame(0.5, "data: one\n\n"),
            TraceFrame(1.5, "data: two\n\n"),
            TraceFrame(1.6, ": ping\n\n"),
            TraceFrame(2.5, "data: three\n\n"),
        ]
    )
    assert causes(reported, upstream) == ("times", [[], [0], [], [1, 2]])


@rows(
    ("one", "other", "same"),
    [
        ("data: {}\n\n", "data:  {}\n\n", True),
        ('data: {"a": 1}\n\n', 'data: {"a": 2}\n\n', True),
        ('data: {"a": 1}\n\n', 'data: {"a": "1"}\n\n', False),
        ('data: {"a": 1}\n\n', 'data: {"b": 1}\n\n', False),
        ('data: {"a": 1, "id": "x", "usage": {}}\n\n', 'data: {"a": 1, "created": 5}\n\n', True),
        ('data: {"a": "x"}\n\n', 'data: {"a": "y"}\n\n', False),
        ('data: {"a": null}\n\n', 'data: {"a": false}\n\n', False),
        ('data: {"a": [1]}\n\n', 'data: {"a": [1, 2]}\n\n', False),
        ('data: {"a": [{"b": "x"}]}\n\n', 'data: {"a": [{"b": "y"}]}\n\n', False),
        ("event: a\ndata: {}\n\n", "event: b\ndata: {}\n\n", False),
        ("data: [DONE]\n\n", "data: [DONE]\r\n\r\n", True),
        ("data: [DONE]\n\n", "data: [STOP]\n\n", False),
        ('{"a": "x"}', '{"a":  "x"}', True),
    ],
)
def test_two_events_say_the_same(one: str, other: str, same: bool) -> None:
    assert same_unit(one, other) is same_unit(other, one) is same


def test_a_stream_is_cut_at_its_events_or_elements() -> None:
    units = units_of(["data: a\n", "\ndata", ": b\n\nrest"])
    assert [(unit.text, unit.first, unit.frame, unit.end) for unit in units] == [
        ("data: a\n\n", 0, 1, 9),
        ("data: b\n\n", 1, 2, 18),
        ("rest", 2, 2, 22),
    ]
    elements = units_of(['[{"a": "}"', '},\n{"b": {}}', "]"])
    assert [(unit.text, unit.first, unit.frame) for unit in elements] == [
        ('{"a": "}"}', 0, 1),
        ('{"b": {}}', 1, 1),
    ]


@rows(
    ("text", "quiet"),
    [
        ("", True), ("\n\n", True), (": ping\n\n", True), ("event: ping\ndata: {}\n\n", True), (" \n", True),
        ("event: pings\n\n", False), ("data: x\n\n", False), (": ping\ndata: x\n\n", False),
    ],
)  # fmt: skip
def test_what_says_nothing_keeps_a_stream_alive(text: str, quiet: bool) -> None:
    assert is_keep_alive(text) is quiet


# Marks.


@rows(
    ("marked", "real", "same"),
    [
        ({"a": [1, "x"]}, {"a": [2, "y"]}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": [1]}, {"a": [1, 2]}, False),
        ({"a": {}}, {"a": []}, False),
        ({"a": []}, {"a": {}}, False),
        ({"a": "x"}, {"a": {}}, False),
        ({"a": {}}, {"a": "x"}, False),
        ({"a": 1}, {"a": None}, True),
        ({"a": "1"}, {"a": 1}, False),
        ([{"a": 1}], [{"a": 1}], True),
    ],
)
def test_marks_change_no_shape(marked: Any, real: Any, same: bool) -> None:
    assert Marker(real).same_shape(marked, real) is same


def test_a_mark_is_a_word_that_stands_nowhere_yet_and_is_found_again() -> None:
    marker = Marker({"a": "Waa000001, Wab999999 and Wac alone"})
    signed = Signature("sig", Minter("x"))
    content = (
        Text("hello"),
        Text(" "),
        ToolCall("c", "n", '{"k": 1}'),
        ToolCall("c", "n", ""),
        ToolCall("c", "n", "free", "custom"),
        Media("image", data="QUJD"),
        Media("image", url="http://u"),
        Media("document", text="t"),
        Media("image", file_id="f"),
        Reasoning("thought"),
        Reasoning("", signed),
        Reasoning("", signed, redacted=True),
        ToolResult("c", (Text("one"), Text(""))),
    )
    (whole,) = marker.marked([Message("user", content)], blank=True, opaque=True)
    marks = [f"Wac{number:06}" for number in range(len(marker.places))]
    text, blank, call, empty, free, data, url, document, file, thought, sealed, redacted, result = (
        whole.content
    )
    assert (text, blank) == (Text(f"{marks[0]}hello"), Text(f"{marks[1]} "))
    assert call == ToolCall("c", "n", f'{{"{marks[2]}":0,"k": 1}}')
    assert empty == ToolCall("c", "n", f'{{"{marks[3]}":0}}')
    assert free == ToolCall("c", "n", f"{marks[4]}free", "custom")
    assert url == Media("image", url=f"http://u#{marks[6]}")
    assert document == Media("document", text=f"{marks[7]}t")
    assert file == Media("image", file_id=f"f{marks[8]}")
    assert thought == Reasoning(f"{marks[9]}thought")
    assert isinstance(sealed, Reasoning)
    assert isinstance(redacted, Reasoning)
    assert sealed.signature == Signature(f"{marks[10]}sig", Minter("x"))
    assert redacted.signature == Signature(f"{marks[11]}sig", Minter("x"))
    assert result == ToolResult("c", (Text(f"{marks[12]}one"), Text(marks[13])))
    assert isinstance(data, Media)
    found = marker.found({"x": [data.data, {marks[2]: 0}], "y": f"{marks[0]} {marks[13]}", "z": "Wac999999"})
    assert found == {
        (0, 5, -1): [("x", 0)],
        (0, 2, -1): [("x", 1)],
        (0, 0, -1): [("y",)],
        (0, 12, 1): [("y",)],
    }


def test_what_says_nothing_or_is_opaque_is_left_alone_where_a_dialect_looks_into_it() -> None:
    marker = Marker({})
    content = (Text(" "), Reasoning("", Signature("s", Minter("x"))), Reasoning("", redacted=True), Text("x"))
    (whole,) = marker.marked([Message("user", content)], blank=False, opaque=False)
    assert whole.content[:3] == content[:3]
    assert marker.places == [(0, 3, -1)]
