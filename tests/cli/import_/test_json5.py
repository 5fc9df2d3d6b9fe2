"""JSON as claude-code-router reads it, and where each value stood."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot.cli.import_.source import SourceNode, UnreadableSource, read_json5


def plain(node: SourceNode) -> Any:
    if isinstance(node.value, dict):
        return {name: plain(each) for name, each in node.value.items()}
    if isinstance(node.value, list):
        return [plain(each) for each in node.value]
    return node.value


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(DOCUMENTS, st.sampled_from([None, 1]), st.booleans())
def test_all_json_is_read_as_json(document: Any, indent: int | None, ascii_only: bool):
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    assert plain(read_json5(text)) == document


@rows(
    ("text", "value"),
    [
        ("{a: 1, $b_2: 2, 'c d': 3,}", {"a": 1, "$b_2": 2, "c d": 3}),
        ("[1, 2, /* three */ 3, // four\n]", [1, 2, 3]),
        ("// before\n'it\\'s' // after", "it's"),
        (
            r"'a\
b'",
            "ab",
        ),
        (r'"\x41B\v\0\q"', "AB\v\0q"),
        (r'"😀 \ud800 x"', "\U0001f600 \ufffd x"),
        ("[0xFF, -0x10, +1, .5, 5., 1e3, -2.5E-1]", [255, -16, 1, 0.5, 5.0, 1000.0, -0.25]),
        ("[Infinity, -Infinity]", [float("inf"), float("-inf")]),
        ("\ufeff{}", {}),
        ("{true: true, null: null}", {"true": True, "null": None}),
    ],
)
def test_what_json5_adds_is_read(text: str, value: Any):
    assert plain(read_json5(text)) == value


def test_each_value_knows_its_line_and_its_path():
    root = read_json5("{\n  // a comment\n  a: [\n    1,\n    { 'x y': 2 }\n  ]\n}")
    one, two = root.fields["a"].items
    assert (one.line, one.path) == (4, "a[0]")
    assert (two.fields["x y"].line, two.fields["x y"].path) == (5, 'a[1]."x y"')
    assert two.fields["x y"].name == 'a[]."x y"'


@rows(
    ("text", "said"),
    [
        ("", "is empty"),
        ("  // only words\n", "is empty"),
        ('{\n "a": 1\n "b": 2 }', "line 3: not JSON: no comma and no '}' behind a value"),
        ('{"a" 1}', "line 1: not JSON: a name without a colon after it"),
        ("{\n-: 1}", "line 2: not JSON: something that is no name"),
        ("{a: yes}", "line 1: not JSON: something that is no value"),
        ('["a\nb"]', "line 1: not JSON: a text that does not end on its line"),
        ("[1,\n2", "line 2: not JSON: the end of the file in the middle of it"),
        ("{} {}", "line 1: not JSON: something after the end of the document"),
        (r'"\u12"', "line 1: not JSON: an escape without its digits"),
        ("{a: 1,\na: 2}", "line 2: not JSON: the name 'a' twice in one table"),
        ("1.2.3", "line 1: not JSON: something that is no value"),
        ("[" * 100, "line 1: not JSON: tables or lists nested too deep"),
    ],
)
def test_what_is_no_json_is_reported_by_its_line(text: str, said: str):
    with pytest.raises(UnreadableSource) as problem:
        read_json5(text)
    assert str(problem.value) == said


@given(st.text())
def test_no_text_breaks_the_reader(text: str):
    with suppress(UnreadableSource):
        read_json5(text)
