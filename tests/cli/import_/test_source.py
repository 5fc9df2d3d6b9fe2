"""Values of a source: their kinds, their numbers, and where reading them ends."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.cli.import_.test_json5 import plain
from tests.tiers import rows
from wireglot.cli.import_ import source
from wireglot.cli.import_.source import SourceNode, UnreadableSource, kind, read_json5, read_yaml


@rows(
    ("value", "number"),
    [
        (True, None),
        (None, None),
        (3, 3.0),
        (2.5, 2.5),
        (10**12, None),
        (10**12 - 1, 1e12 - 1),
        (-(10**12), None),
        (math.nan, None),
        ("1e-6", 1e-6),
        (" 7 ", 7.0),
        ("-.5", -0.5),
        ("1e6", 1e6),
        ("1e600", None),
        ("x", None),
        ("", None),
    ],
)
def test_a_number_may_be_written_as_text(value: Any, number: float | None):
    assert SourceNode(value, "a", 1).number == number


@rows(
    ("value", "words", "nothing"),
    [
        ({}, "a table", False),
        ([], "a list", False),
        (None, "nothing", True),
        (False, "a switch", False),
        (0, "a number", False),
        (1.5, "a number", False),
        ("x", "text", False),
        ("", "empty text", True),
    ],
)
def test_kinds_of_values(value: Any, words: str, nothing: bool):
    node = SourceNode(value, "a", 1)
    assert (kind(node), node.is_nothing) == (words, nothing)


def test_the_first_field_that_says_something():
    root = read_json5('{a: null, b: "", c: 0, d: [{e: {}}, 1], f: []}')
    assert root.get("a", "b") is None
    found = root.get("a", "b", "c", "d")
    assert found is not None
    assert found.path == "c"
    assert [node.path for node in root.leaves()] == ["a", "b", "c", "d[0].e", "d[1]", "f"]
    assert (root.items, root.fields["d"].fields, root.text) == ([], {}, "")


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@rows("read", [read_json5, lambda text: read_yaml(text)[0]], ids=["json5", "yaml"])
def test_values_are_nested_at_most_64_deep(read: Any):
    assert plain(read(nested(65))) is not None
    with pytest.raises(UnreadableSource, match="too deep"):
        read(nested(66))


def test_a_file_has_at_most_200_000_values(monkeypatch: pytest.MonkeyPatch):
    assert source._MAX_NODES == 200_000
    monkeypatch.setattr(source, "_MAX_NODES", 5)
    assert plain(read_yaml("[1, 2, 3, 4]")[0]) == [1, 2, 3, 4]
    with pytest.raises(UnreadableSource, match="line 2: too many values"):
        read_yaml("[1, 2, 3, 4,\n5]")


def test_tables_that_merge_each_other_are_read_up_to_200_000_values(monkeypatch: pytest.MonkeyPatch):
    doubling = "t0: &t0 {k: 1}\n" + "".join(
        f"t{at}: &t{at} {{<<: [*t{at - 1}, *t{at - 1}]}}\n" for at in range(1, 60)
    )
    with pytest.raises(UnreadableSource, match="too many values"):
        read_yaml(doubling)
    monkeypatch.setattr(source, "_MAX_NODES", 9)
    merged = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}"
    assert plain(read_yaml(merged)[0]) == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}}
    with pytest.raises(UnreadableSource, match="too many values"):
        read_yaml(merged + "\nc: {<<: [*a, *a, *a, *a]}")


@rows(
    ("text", "value"),
    [
        (r'"\ud7ff"', "\ud7ff"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\ud800\udc00"', "\U00010000"),
        (r'"\udbff\udfff"', "\U0010ffff"),
        (r'"\udc00\udc00"', "\ufffd\ufffd"),
        (r'"\udfff"', "\ufffd"),
        (r'"\ue000"', "\ue000"),
        (r'"\ud800\ud800"', "\ufffd\ufffd"),
        (r'"\b\f\n\r\t\v\0"', "\b\f\n\r\t\v\0"),
        ("'a\\\r\nb'", "ab"),
        ("'a\\\u2028b'", "ab"),
        ("0Xff", 255),
        ("+0x1", 1),
        ("-Infinity", -math.inf),
        ("false", False),
    ],
)
def test_letters_and_numbers_of_json5(text: str, value: Any):
    found = read_json5(text).value
    assert (found, type(found)) == (value, type(value))


def test_a_number_that_is_none_is_a_number():
    assert math.isnan(read_json5("-NaN").number or read_json5("NaN").value)  # type: ignore[arg-type]  # a float


@rows(
    ("text", "line"),
    [("\n\n{a:\n/* two\nlines */ !}", 5), ("['a',\n\n'b' 'c']", 3), ("{'a\\\nb': 1\n", 3)],
)
def test_lines_are_counted_through_comments_and_texts(text: str, line: int):
    with pytest.raises(UnreadableSource, match=rf"^line {line}: not JSON"):
        read_json5(text)


def test_values_of_an_included_file_name_it():
    root, overridden = read_yaml("a:\n  b: 1\n  b: 2\n", "other.yaml")
    assert {root.file, root.fields["a"].fields["b"].file, overridden[0].file} == {"other.yaml"}
    assert (root.line, root.fields["a"].fields["b"].line) == (1, 3)
