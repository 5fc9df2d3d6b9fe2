"""Frames of one shape differ in a few values, and only these are looked at."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot_core.wire.json import encode
from wireglot_core.wire.shape import Shape

_VARYING = re.compile(rb'"(?:a|b)":"((?:[^"\\\\]|\\\\.)+)"|"n":(\d+)')
_FRAME = b'data: {"x":1,"a":"%b","y":[2],"b":"%b","n":%b,"z":null}\n\n'
_ONE = b'data: {"x":1,"a":"%b","z":null}\n\n'

_plain = st.text(min_size=1).map(lambda text: encode(text)[1:-1]).filter(lambda said: b'"' not in said)
_values = st.lists(st.tuples(_plain, _plain, st.integers(0).map(lambda n: b"%d" % n)), min_size=1, max_size=3)


@given(_values)
def test_the_values_of_frames_of_one_shape_are_found(reported):
    frames = [_FRAME % values for values in reported]
    shape = Shape(_FRAME % (b"one", b"two", b"3"), _VARYING)
    assert shape.values(b"".join(frames)).split(b"\n") == [value for values in reported for value in values]
    assert [shape.filled(list(values)) for values in reported] == frames


@given(st.lists(_plain, min_size=1, max_size=3))
def test_the_values_of_frames_with_one_each_are_found(reported):
    shape = Shape(_ONE % b"one", _VARYING)
    assert shape.values(b"".join(_ONE % value for value in reported)).split(b"\n") == reported


@given(st.lists(st.tuples(_plain, _plain), min_size=1, max_size=3))
def test_the_values_of_frames_with_two_texts_and_no_number_are_found(reported):
    frame = b'data: {"a":"%b","b":"%b"}\n\n'
    shape = Shape(frame % (b"one", b"two"), _VARYING)
    found = shape.values(b"".join(frame % values for values in reported))
    assert found.split(b"\n") == [value for values in reported for value in values]


@rows(
    "data",
    [
        b"",
        _ONE % b"",
        (_ONE % b"one")[:-1],
        (_ONE % b"one")[1:],
        _ONE % b"one" + b"data: ",
        (_ONE % b"one").replace(b"null", b"true"),
        (_ONE % b"one").replace(b"1", b"2"),
    ],
)
def test_what_is_cut_or_has_another_byte_is_of_another_shape(data):
    assert Shape(_ONE % b"one", _VARYING).values(data) == b""


def test_more_than_one_value_shows_by_its_quotes():
    shape = Shape(_ONE % b"one", _VARYING)
    assert b'"' in shape.values(_ONE % b'one","stop":"x')


@pytest.mark.parametrize("value", [b"o\nne", b"o\n\nne", b"\n", b'one"}\n\ndata: {}\n\ndata: {"a":"'])
def test_a_value_with_a_line_end_in_it_is_of_another_shape(value):
    for others in (b"", _ONE % b"two"):
        shape = Shape(_ONE % b"one", _VARYING)
        assert shape.values(_ONE % value + others) == b""
        assert shape.values(others + _ONE % value) == b""


def test_a_number_that_is_none_is_of_another_shape():
    varying = re.compile(rb'"a":"([^"]+)"|"n":(\d+)')
    one = b'data: {"n":%b,"a":"%b"}\n\n'
    shape = Shape(one % (b"1", b"one"), varying)
    assert shape.values(one % (b"23", b"two") + one % (b"4", b"six")) == b"23\ntwo\n4\nsix"
    for number in (b"x", b"", b"1 2", b"-"):
        assert shape.values(one % (number, b"two")) == b""
        assert shape.values(one % (b"1", b"one") + one % (number, b"two")) == b""
