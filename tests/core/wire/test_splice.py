import json as standard_json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.wire.test_json import values
from tests.tiers import rows
from wireglot_core.wire.json import BadJson, TooDeep, decode, encode
from wireglot_core.wire.scan import IS_NATIVE
from wireglot_core.wire.splice import (
    Outline,
    _compact_spans,
    _found_spans,
    _skip_value,
    _values,
    splice,
    without,
)


@rows(
    ("body", "expected"),
    [
        (b'{"model":"a","x":1}', b'{"model":"B","x":1}'),
        (
            b' {\n "x": [1, {"model": "no"}],\n "model" : "a" \n} \n',
            b' {\n "x": [1, {"model": "no"}],\n "model" : "B" \n} \n',
        ),
        (b'{"x":1.0}', b'{"model":"B","x":1.0}'),
        (b"{}", b'{"model":"B"}'),
        (b" { } ", b' {"model":"B" } '),
        (b'{"model":1,"model":12,"model":1}', b'{"model":"B","model":"B","model":"B"}'),
        (
            b'{"x":{"a":"}"},"model":[1,"]"],"x":2,"model":{}}',
            b'{"x":{"a":"}"},"model":"B","x":2,"model":"B"}',
        ),
        (b'{"mod\\u0065l":null}', b'{"mod\\u0065l":"B"}'),
        (b'{"a":"\\ud83d","model":"a"}', b'{"a":"\\ud83d","model":"B"}'),
        (b'{"a":"\xff","model":"a"}', b'{"a":"\xff","model":"B"}'),
        (b'{"\\"model\\"":"model","model":1e999}', b'{"\\"model\\"":"model","model":"B"}'),
    ],
)
def test_only_the_value_changes(body, expected):
    assert splice(body, {"model": b'"B"'}) == expected


_objects = st.lists(
    st.tuples(st.sampled_from(["model", "x", "ä", '"', "\\"]) | st.text(), values), max_size=8
)


@given(_objects, st.sampled_from([None, 2]), st.booleans())
def test_every_other_value_stays(pairs, indent, ascii_only):
    # Written pair by pair, so that keys may stand there several times.
    def write(value: object) -> str:
        return standard_json.dumps(value, indent=indent, ensure_ascii=ascii_only)

    body = ("{" + " , ".join(f"{write(key)} : {write(value)}" for key, value in pairs) + "}").encode()
    spliced = splice(body, {"model": b'{"new":1}', "x": b"2"})
    there = {key for key, _ in pairs}
    new = {"model": {"new": 1}, "x": 2}
    missing = [(key, value) for key, value in new.items() if key not in there]
    expected = missing + [(key, new.get(key, value)) for key, value in pairs]
    assert standard_json.loads(spliced, object_pairs_hook=list_top_level(expected)) == expected
    assert splice(body, {}) == body


def list_top_level(expected):
    """Objects inside become dicts again; the outermost, read last, stays a list of pairs."""

    def hook(pairs):
        return pairs if pairs == expected else dict(pairs)

    return hook


@given(st.dictionaries(st.text(max_size=3), values), st.lists(st.text(max_size=3)))
def test_an_outline_sees_what_a_decoder_sees(value, keys):
    outline = Outline(standard_json.dumps(value).encode())
    assert [outline.get(key) for key in keys] == [value.get(key) for key in keys]
    assert outline.repeated == []


def test_an_outline_takes_the_last_of_several_like_the_decoder():
    body = b'{"a":1,"a":2,"b":"\\ud83d"}'
    outline = Outline(body)
    assert {key: outline.get(key) for key in ("a", "b")} == decode(body)
    assert outline.get("c") is None
    assert outline.repeated == ["a"]


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,", " :")])
@given(_objects, st.booleans())
def test_an_outline_replaces_as_a_splice_does(separators, pairs, ascii_only):
    comma, colon = separators

    def write(value: object) -> str:
        return standard_json.dumps(value, separators=separators, ensure_ascii=ascii_only)

    body = ("{" + comma.join(f"{write(key)}{colon}{write(value)}" for key, value in pairs) + "}").encode()
    outline = Outline(body)
    for key in ("model", "x", "ä", "not there"):
        assert outline.replaced(key, b'{"new":1}') == splice(body, {key: b'{"new":1}'})
    keys = [key for key, _ in pairs]
    assert set(outline.repeated) == {key for key in keys if keys.count(key) > 1}


@rows(
    "body",
    [
        b'{"mod\\u0065l":1,"model":2}',
        b'{"model":1,"model":2}',
        b'{"model": 1,"model":2}',
        b'{"model":[],"model":"a longer one"}',
        b'{"model":"a longer one","model":[]}',
    ],
)
def test_a_key_that_stands_twice_is_reported_however_it_is_written(body):
    assert Outline(body).repeated == ["model"]


@rows(
    "body",
    [
        b"",
        b"[]",
        b'"x"',
        b"{",
        b'{"a"}',
        b'{"a":}',
        b'{"a":1,}',
        b'{"a":1} x',
        b'{"a":{]}',
        b'{"a":' + b"[" * 100_000,
        b"\xff",
    ],
)
def test_a_broken_body_is_bad_json(body):
    with pytest.raises(BadJson):
        splice(body, {"model": b"1"})
    with pytest.raises(BadJson):
        Outline(body)


@given(
    st.lists(
        st.sampled_from([b"{", b"}", b'"', b"\\", b",", b":", b" ", b"1", b"[", b"]", b'"a":', b'"model":1'])
    ).map(b"".join)
)
def test_garbage_is_spliced_or_bad_json(data):
    for body in (data, b'{"a":' + data):
        try:
            spliced = splice(body, {"model": b"2"})
        except BadJson:
            continue
        assert decode(spliced) == decode(body) | {"model": 2}


@rows(
    ("body", "expected"),
    [
        (b'{"a":1}', b"{}"),
        (b'{ "a" : 1 }', b"{ }"),
        (b'{"a":1,"b":2}', b'{"b":2}'),
        (b'{"b":2,"a":1}', b'{"b":2}'),
        (b'{"b":2, "a":{"a":[1,2]}, "c": "a" }', b'{"b":2, "c": "a" }'),
        (b'{"a":1,"b":{"a":1},"a":2}', b'{"b":{"a":1}}'),
        (b'{"b":2}', b'{"b":2}'),
        (b"{}", b"{}"),
    ],
)
def test_a_key_is_taken_out_and_every_other_byte_stays(body, expected):
    assert without(body, "a") == expected


@given(st.dictionaries(st.text(max_size=3), values, max_size=5), st.sampled_from([None, 1]))
def test_what_is_left_reads_as_the_rest(pairs, indent):
    body = standard_json.dumps({**pairs, "a": 1}, indent=indent).encode()
    assert decode(without(body, "a")) == decode(
        standard_json.dumps({key: value for key, value in pairs.items() if key != "a"}).encode()
    )


def test_a_long_member_is_decoded_like_any_other():
    """[A5] Item by item, with the same depth for all."""
    items = [{"n": n, "text": "x" * 30, "list": [[]]} for n in range(8000)]
    body = encode({"a": 1, "long": items, "text": "y" * 300_000, "object": {"k": "z" * 300_000}})
    assert Outline(body).document() == decode(body)
    assert Outline(body).document(5) == decode(body, 5)
    with pytest.raises(TooDeep):
        decode(body, 4)
    with pytest.raises(TooDeep):
        Outline(body).document(4)


def test_an_outline_knows_whether_all_of_it_is_sound():
    """Sound: read in one pass, with nothing to repair and nothing twice."""
    for body, sound in (
        (b'{"a":1}', IS_NATIVE),
        (b'{"a":[[1]]}', IS_NATIVE),
        (b'{"a":1,"a":2}', False),
        (b'{"a":"\\ud800"}', False),
        (b'{"a":[[[1]]]}', False),
    ):
        assert Outline(body, depth=3).is_sound is sound, body


def test_a_member_that_cannot_be_read_is_reported_when_it_is_asked_for():
    class Mine(Outline):
        def unreadable(self, problem):
            return LookupError(problem.reason)

    body = b'{"a":"\xff","b":1,"c":"\\ud800"}'
    for kind, fault in ((Outline, BadJson), (Mine, LookupError)):
        outline = kind(body)
        assert (outline.get("b"), outline.get("c")) == (1, "\ufffd")
        with pytest.raises(fault, match="UTF-8"):
            outline.get("a")


def test_what_a_cache_knows_is_looked_for_once():
    class Known:
        spans = {"a": (5, 6)}
        work = 0

    asked = []

    class Knowing:
        def compare(self, body, turns):
            asked.append((body, turns))
            return known

    known: Any = Known()
    cache: Any = Knowing()
    body = b'{"a":1}'
    outline = Outline(body, cache, "turns")
    assert (outline.grown, outline.members, outline.is_sound) == (known, {"a": (5, 6)}, False)
    assert Outline(body, cache, "turns", known).grown is known
    assert asked == [(body, "turns")]
    plain = Outline(body)
    plain.recall(cache, "more")
    assert plain.grown is known
    assert asked[1:] == [(body, "more")]


def test_several_members_are_replaced_and_inserted_in_one_step():
    body = b'{ "b" : 1 , "c":[2]}'
    for new, expected in (
        ({"b": b"9", "d": b"8"}, b'{"d":8, "b" : 9 , "c":[2]}'),
        ({"d": b"8", "e": b"7"}, b'{"d":8,"e":7, "b" : 1 , "c":[2]}'),
        ({"c": b"0", "b": b"9"}, b'{ "b" : 9 , "c":0}'),
    ):
        assert splice(body, new) == expected
    assert splice(b"{}", {"d": b"8", "e": b"7"}) == b'{"d":8,"e":7}'


def test_values_of_any_kind_are_stepped_over_where_a_key_stands_twice():
    for value in (b"-1.5e3", b"true", b'"}\\"]"', b'{"a":"}","b":[{}]}', b"[[],[1]]", b"null"):
        body = b'{"a":%b ,"a":0,"b":1}' % value
        assert splice(body, {"b": b"2"}) == b'{"a":%b ,"a":0,"b":2}' % value
        assert without(body, "a") == b'{"b":1}'
        assert Outline(body).get("a") == 0


def test_where_values_stand_is_known_by_arithmetic_where_nothing_is_between_them():
    """The way without the native module."""
    for body in (b'{"a":1}', b'{"a":[1,2],"bc":"x","d":{}}'):
        values, readable = _values(body)
        assert _compact_spans(readable, values) == Outline(body).members
    for body in (b"{}", b'{"a": 1}', b'{"a":1,"a":2}', b'{"\\u0061":1}', '{"ä":1}'.encode()):
        values, readable = _values(body)
        assert _compact_spans(readable, values) is None
        assert _found_spans(readable, values)[0] == Outline(body).members


def test_a_value_is_stepped_over_from_its_first_byte():
    for value in (b"1", b"-1.5", b"true", b'"a,}"', b'"\\""', b"[1,{}]", b'{"a":[]}'):
        for behind in (b",", b"}", b" ,", b"\n}"):
            assert _skip_value(b"x" + value + behind, 1) == 1 + len(value)
