import json as standard_json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot_core.wire import json
from wireglot_core.wire.json import (
    MAX_DEPTH,
    BadJson,
    TooDeep,
    decode,
    encode,
    encode_text,
    exceeds_depth,
    repeats_keys,
)

_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(
    _scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(values)
def test_a_value_survives_a_round_trip(value):
    assert decode(encode(value)) == value
    assert decode(encode_text(value)) == value
    assert decode(memoryview(encode(value))) == value


@given(values)
def test_what_we_write_any_json_reader_understands(value):
    assert standard_json.loads(encode(value)) == value


@rows("text", [b"1", b"1.0", b"-0.0", b"0.1", b"18446744073709551616", b"-9223372036854775809", b"9" * 300])
def test_numbers_keep_their_kind_and_every_digit(text):
    assert encode(decode(text)) == text


def test_keys_keep_their_order():
    assert encode(decode(b'{"b":1,"a":2,"c":{"z":0,"y":0}}')) == b'{"b":1,"a":2,"c":{"z":0,"y":0}}'


@rows(
    ("text", "repeated"),
    [
        ("[]", False),
        ('{"a": {"a": 1}, "b": [{"a": "\\ud800"}, {"a": %s}]}' % ("9" * 5000), False),
        ('{"a": 1, "a": 1}', True),
        ('{"a": 1, "\\u0061": 2}', True),
        ('{"b": [{"c": {"a": 1, "b": 2, "a": 3}}, {}]}', True),
    ],
)
def test_a_key_that_stands_twice_in_an_object_is_found(text, repeated):
    assert repeats_keys(text) is repeated


@rows(
    ("text", "offset"),
    [
        (b"", 0),
        (b'{"a": 1', 7),
        (b"[1,]", 3),
        (b"NaN", 0),
        (b'{"a": Infinity}', 6),
        (b'["ok", "\xff"]', 8),
        (b'"a\x01"', 2),
    ],
)
def test_bad_json_tells_where(text, offset):
    with pytest.raises(BadJson) as caught:
        decode(text)
    assert caught.value.offset == offset
    assert str(caught.value).endswith(f"(byte {offset})")


@pytest.mark.parametrize("text", [b"[" * 200_000, b"[" * 5000 + b"]" * 5000, b'{"a":' * 5000])
def test_nesting_without_end_is_bad_json(text):
    with pytest.raises(BadJson):
        decode(text)


def nested(levels: int, opening: bytes, closing: bytes, beside: bytes) -> bytes:
    return opening * levels + beside + closing * levels


SHAPES = [(b"[", b"]"), (b'{"a":', b"}"), (b'[0,"x",', b',{"b":"c"}]'), (b'{"b":[{}],"a":', b',"c":[]}')]


@rows("beside", [b"1", b'"' + b"[{" * 30_000 + b'"'], ids=["small", "with a long text"])
@rows(("opening", "closing"), SHAPES)
def test_one_depth_is_the_limit_for_all_sizes(opening, closing, beside):
    """[A4] What stands in texts is no nesting."""
    for read in (bytes, memoryview, bytes.decode):
        most = MAX_DEPTH - (1 if b"{" in closing else 2 if b"{}" in opening else 0)  # what stands beside
        decode(read(nested(most, opening, closing, beside)))
        for levels in (MAX_DEPTH + 1, 400, 5000):
            with pytest.raises(TooDeep, match="nested more than 128 deep"):
                decode(read(nested(levels, opening, closing, beside)))


@given(values)
def test_depth_is_that_of_the_value(value):
    """[A4] Whichever way it is measured."""

    def depth(item) -> int:
        inner = item.values() if isinstance(item, dict) else item if isinstance(item, list) else None
        return 0 if inner is None else 1 + max(map(depth, inner), default=0)

    true = depth(value)
    text = encode(value)
    assert not exceeds_depth(text, max(true, 1))
    if true > 1:
        assert exceeds_depth(text, true - 1)
    if true:
        assert json.is_nested(value, true - 1)
    assert not json.is_nested(value, max(1, true))
    if true > 1:
        with pytest.raises(TooDeep):
            decode(encode([value] * 3 + ["x" * 5000]), true)
        decode(encode([value] * 3 + ["x" * 5000]), true + 1)


def test_a_value_nested_too_deeply_is_not_written():
    value: list = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(BadJson, match="nested too deeply"):
        encode(value)


@given(st.binary())
def test_arbitrary_bytes_are_a_value_or_bad_json(data):
    try:
        value = decode(data)
    except BadJson:
        return
    assert not (isinstance(value, float) and math.isinf(value))


@rows(
    ("text", "value"),
    [
        (b'"\\ud83d"', "\ufffd"),
        (b'"a\\ude00b"', "a\ufffdb"),
        (b'"\\ud83d\\ud83d\\ude00"', "\ufffd😀"),
        (b'{"\\uD83D":["x\\udc00\\n"]}', {"\ufffd": ["x\ufffd\n"]}),
        (b'["\\ud83d", "\\\\ud83d"]', ["\ufffd", "\\ud83d"]),
        ('"\ud83d"', "\ufffd"),
        (b"\xef\xbb\xbf[1]", [1]),
    ],
)
def test_half_a_surrogate_pair_does_not_spoil_the_rest(text, value):
    assert decode(text) == value


@given(st.text(), st.text(st.sampled_from(["\ud800", "\udfff", "\ud83d", "\ude00", "a", "\\"])))
def test_half_a_surrogate_pair_is_never_written(text, broken):
    """R-DD-15"""
    value = {broken: [text, (broken, 1)]}
    written = encode(value)
    assert decode(written) == {json.repair_text(broken): [text, [json.repair_text(broken), 1]]}
    assert decode(standard_json.dumps(value)) == decode(written)


def test_paired_surrogates_are_joined():
    assert decode(encode("\ud83d\ude00")) == "😀"


def test_a_problem_has_its_reason_and_its_place():
    """In words that do not name our parser."""
    for text, reason, offset in (
        (b"[1 2]", "expected ',' or ']'", 3),
        (b'{"a" 1}', "expected ':'", 5),
        (b"[", "the text ends too early", 1),
        (b'["\xc3"]', "invalid UTF-8", 2),
        (b"[1]x", "trailing characters", 4),
    ):
        with pytest.raises(BadJson) as caught:
            decode(text)
        assert (caught.value.reason, caught.value.offset) == (reason, offset), text
    assert str(BadJson("odd")) == "odd"
    assert BadJson("odd").offset is None


def test_depth_is_counted_alike_for_texts_and_bytes_of_every_size():
    for size in (0, 4000, 5000):
        text = f'[[["{"[{" * (size // 2)}"]], {{"a": [1]}}]'
        for form in (text, text.encode(), memoryview(text.encode())):
            assert decode(form, 3) == standard_json.loads(text)
            with pytest.raises(TooDeep, match="nested more than 2 deep"):
                decode(form, 2)
        assert exceeds_depth(text.encode(), 2)
        assert not exceeds_depth(text.encode(), 3)


def test_a_structure_with_half_a_character_is_written():
    class Pair(msgspec.Struct):
        one: str
        two: tuple[int, ...]

    assert (
        encode({"a": Pair("\ud800", (1,)), "b": 1.5}) == '{"a":{"one":"\ufffd","two":[1]},"b":1.5}'.encode()
    )
