import json as standard_json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.wire.test_json import values
from tests.tiers import rows
from wireglot_core.testing.laws import every_cut
from wireglot_core.wire.json import BadJson, decode, encode
from wireglot_core.wire.json_array import ArrayDecoder, ArrayEncoder

LIMIT = 1 << 20


def read(pieces: list[bytes], limit: int = LIMIT) -> tuple[list[bytes], bool]:
    """The elements, and whether the array was whole and nothing but an array."""
    decoder = ArrayDecoder(limit)
    elements: list[bytes] = []
    try:
        for piece in pieces:
            elements += decoder.feed(piece)
    except BadJson:
        assert not decoder.complete
    return elements, decoder.complete


CASES: dict[bytes, tuple[list[bytes], bool]] = {
    b"[]": ([], True),
    b" [ \n] \r\n": ([], True),
    b'[{"a":1}\n,\r\n{"b":[2,{}]}\n]': ([b'{"a":1}', b'{"b":[2,{}]}'], True),
    b'[{"a":"}]\\"{,"},{"\\\\":"\\\\\\""}]': ([b'{"a":"}]\\"{,"}', b'{"\\\\":"\\\\\\""}'], True),
    b'[1, -2.5e3 ,true,null,"a,]\\"b",[],[[1],[2]]]': (
        [b"1", b"-2.5e3", b"true", b"null", b'"a,]\\"b"', b"[]", b"[[1],[2]]"],
        True,
    ),
    b"\xef\xbb\xbf[1]": ([b"1"], True),
    b"\xef\xbb[1]": ([], False),
    b"": ([], False),
    b"[": ([], False),
    b'[{"a":1}': ([b'{"a":1}'], False),
    b'[{"a":1},': ([b'{"a":1}'], False),
    b'[{"a":1},]': ([b'{"a":1}'], False),
    b"[,]": ([], False),
    b'[{"a":1} {"b":2}]': ([b'{"a":1}'], False),
    b"[1]]": ([b"1"], False),
    b"[1] x": ([b"1"], False),
    b'{"error":{}}': ([], False),
    b"data: {}\n\n": ([], False),
    b'["abc': ([], False),
    b'["abc\\': ([], False),
    b"[12": ([], False),
}


@rows("data", CASES)
def test_elements_come_out_however_the_bytes_are_cut(data):
    """R-DC-06"""
    for pieces in every_cut(data):
        assert read(pieces) == CASES[data], pieces


@given(st.lists(values), st.sampled_from([None, 1]), st.booleans())
def test_any_array_is_read(elements, indent, ascii_only):
    data = standard_json.dumps(elements, indent=indent, ensure_ascii=ascii_only).encode()
    for pieces in every_cut(data, random_cuts=2):
        found, whole = read(pieces)
        assert whole
        assert [decode(element) for element in found] == elements


@given(
    st.lists(st.sampled_from([b"[", b"]", b"{", b"}", b'"', b"\\", b",", b":", b" ", b"1", b"x"])).map(
        b"".join
    )
)
def test_garbage_gives_the_same_however_it_is_cut(garbage):
    data = b"[" + garbage
    whole = read([data])
    for pieces in every_cut(data):
        assert read(pieces) == whole, pieces


@given(st.lists(values))
def test_what_we_write_is_what_we_read(elements):
    encoder = ArrayEncoder()
    pieces = [encoder.element(encode(element)) for element in elements]
    pieces.append(encoder.close())
    assert decode(b"".join(pieces)) == elements
    decoder = ArrayDecoder(LIMIT)
    for element, piece in zip(elements, pieces, strict=False):
        if isinstance(element, dict | list | str):
            assert decoder.feed(piece) == [encode(element)]  # at once, not when the next one comes
        else:
            decoder.feed(piece)


def test_what_is_settled_ends_with_the_last_whole_element_or_the_array():
    """Where a stream can be cut off and still be read."""
    data = b' [ {"a":1} , "b" , 2 ] '
    places = {len(b' [ {"a":1}'), len(b' [ {"a":1} , "b"'), len(b' [ {"a":1} , "b" , 2'), len(data) - 1}
    decoder = ArrayDecoder(LIMIT)
    settled = []
    for byte in data:
        decoder.feed(bytes((byte,)))
        settled.append(decoder.settled)
    assert set(settled) == {0} | places
    assert settled == sorted(settled)
    assert settled[-1] == len(data) - 1


def test_the_form_is_that_of_gemini():
    encoder = ArrayEncoder()
    assert encoder.element(b"{}") + encoder.element(b"{}") + encoder.close() == b"[{}\n,\n{}\n]"
    assert ArrayEncoder().close() == b"[]"


def test_the_size_limit_does_not_depend_on_the_cutting():
    data = b'[{"a":1},{"a":12},{"a":123},{"a":1}]'
    for pieces in every_cut(data):
        assert read(pieces, limit=8) == ([b'{"a":1}', b'{"a":12}'], False), pieces


def test_a_fault_stays():
    decoder = ArrayDecoder(LIMIT)
    assert decoder.feed(b"[{}x") == [b"{}"]
    for data in (b"]", b""):
        with pytest.raises(BadJson, match=r"expected ',' or '\]' \(byte 3\)"):
            decoder.feed(data)
        assert not decoder.complete


def test_a_large_element_in_many_pieces_is_read():
    element = b'{"data":"' + b'x\\"y\\\\' * 300_000 + b'"}'
    data = b"[" + element + b"]"
    assert read([data[at : at + 512] for at in range(0, len(data), 512)], 1 << 24) == ([element], True)


@rows(
    ("data", "reason", "offset"),
    [
        (b"\n x", "expected '['", 2),
        (b"\xef\xbbx", "expected '['", 0),
        (b" \xef\xbb\xbf[]", "expected '['", 1),
        (b"[ ,", "expected an element or ']'", 2),
        (b"[1, ]", "expected an element", 4),
        (b"[1, }", "expected an element", 4),
        (b"[:", "expected an element or ']'", 1),
        (b"[1 2", "expected ',' or ']'", 3),
        (b"[1] ,", "expected nothing after the array", 4),
        (b'["' + b"x" * 19, "an element is larger than 19 bytes", 1),
        (b"[0, " + b"1" * 20 + b"]", "an element is larger than 19 bytes", 4),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(data, reason, offset):
    for pieces in every_cut(data):
        decoder = ArrayDecoder(19)
        with pytest.raises(BadJson) as caught:  # noqa: PT012 - by whichever piece
            for piece in pieces:
                decoder.feed(piece)
            decoder.feed(b"")
        assert (caught.value.reason, caught.value.offset) == (reason, offset)
        assert decoder.fault is caught.value
        assert not decoder.complete


def test_an_array_that_ends_well_is_complete_and_has_no_fault():
    decoder = ArrayDecoder(LIMIT)
    for data, complete in ((b"[", False), (b"1", False), (b"]", True), (b" \n", True)):
        decoder.feed(data)
        assert (decoder.complete, decoder.fault) == (complete, None)
    for part in (b'["ab', b"[123", b'[{"a'):
        waiting = ArrayDecoder(3)
        assert waiting.feed(part) == []
        assert waiting.fault is None, "three bytes, and it may end here"
    limited = ArrayDecoder(3)
    assert limited.feed(b'[123,"a"]') == [b"123", b'"a"']
    assert limited.complete
