"""Streamed arguments are JSON to the client, whatever the model wrote (C10, C11)."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireglot.dialects.anthropic.argument_stream import ArgumentStream
from wireglot.dialects.anthropic.parts import call_text

ODD = (
    '{"a": 1}{"a": 2}',
    '{"a": 1} trailing',
    '{"a": "unfinished',
    '{"a": "back\\',
    '{"a": "uni\\u12',
    '{"a": tru',
    '{"a": -',
    '{"a": 1.',
    '{"a": 1e+',
    '{"a": [1, ',
    '{"a": {"b": 1, ',
    '{"a": {"b"',
    '{"a"',
    '{"a":',
    '{"a": 1, ',
    "{",
    "{}x",
    "[1, 2]",
    '"text"',
    "plain words",
    "{'a': 1}",
    '{"a": 01}',
    '{"a": NaN}',
    '{"a": [}',
    '{"a" 1}',
    '{"a": nul1}',
    '{"a": "\\x"}',
)
MENDED = (
    ('{"a": "x\ny"}', '{"a": "x\\u000ay"}'),
    ('{"a": 1}{"a": 1}', '{"a": 1}'),
    ('{"a": 1}}}', '{"a": 1}'),
    ('{"a": 1, }', '{"a": 1}'),
    ('{"a": [1 , ], "b": 2,}', '{"a": [1 ], "b": 2}'),
    ('{}{"a": 1}', '{"a":1}'),
    ('{"a": 1,}}', '{"a": 1}'),
)


def passed_on(text: str, cuts: list[int]) -> str:
    stream = ArgumentStream()
    bounds = [0, *sorted(cuts), len(text)]
    out = [stream.feed(text[start:end]) for start, end in itertools.pairwise(bounds)]
    return "".join(out) + stream.finish()


@pytest.mark.parametrize("text", ODD)
def test_broken_arguments_become_an_object_that_gives_back_the_raw_text(text):
    """R-F-04, R-DB-16, C10"""
    for cuts in ([], list(range(len(text))), [len(text) // 2]):
        value = json.loads(passed_on(text, cuts))
        assert isinstance(value, dict)
        assert call_text(value) == text


@pytest.mark.parametrize(("text", "meant"), MENDED)
def test_what_was_plainly_meant_is_mended_on_the_way(text, meant):
    """[X21] C10: repaired, else wrapped; wherever it is cut."""
    for cuts in ([], list(range(len(text))), *([cut] for cut in range(len(text)))):
        assert passed_on(text, cuts) == meant


def test_a_comma_waits_for_what_follows_it():
    """[X21] It may be one too many, and what has left cannot be taken back."""
    stream = ArgumentStream()
    assert stream.feed('{"a": 1, ') == '{"a": 1'
    assert stream.feed('"b": 2') == ', "b": 2'
    assert stream.feed(",") == ""
    assert stream.feed("}") == ""
    assert stream.finish() == "}"
    assert stream.form == "mended"


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ),
    ),
    st.lists(st.integers(0, 40), max_size=4),
    st.booleans(),
)
def test_valid_arguments_pass_unchanged(value, cuts, spaced):
    """R-B-06, R-F-03"""
    text = json.dumps(value, indent=1 if spaced else None, ensure_ascii=spaced)
    assert passed_on(text, [min(cut, len(text)) for cut in cuts]) == text


@given(
    st.text(alphabet='{}[]",:\\ 0123456789.eE+-truefalsn\nu', max_size=24),
    st.lists(st.integers(0, 24), max_size=3),
)
def test_any_text_ends_in_an_object_or_nothing(text, cuts):
    said = passed_on("{" + text, [min(cut, len(text)) for cut in cuts])
    assert isinstance(json.loads(said), dict)


def test_arguments_leave_before_they_are_complete():
    """R-B-10"""
    stream = ArgumentStream()
    assert stream.feed('{"command": "ls') == '{"command": "ls'
    assert stream.feed(' -la"') == ' -la"'
    assert stream.feed("}") == ""
    assert stream.finish() == "}"


def test_no_arguments_stay_no_arguments():
    assert passed_on("", []) == ""
    assert passed_on(" \n", []) == ""


def test_a_brace_inside_is_no_end():
    """C11: a fragment may end with a brace in the middle."""
    stream = ArgumentStream()
    assert stream.feed('{"a": {"b": 1}') == '{"a": {"b": 1}'
    assert stream.feed(', "c": 2}') == ', "c": 2'
    assert stream.finish() == "}"
