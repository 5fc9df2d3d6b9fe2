"""The native scan of a body says what the Python code says, or nothing."""

from __future__ import annotations

import json
import random
import re
import sys
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from proofs.bench.bodies import body as agent_body
from tests.tiers import WHOLE
from wireglot_core.wire import splice
from wireglot_core.wire.json import is_nested
from wireglot_core.wire.scan import IS_NATIVE, Span, _hashed, _unscanned, fold, scan

pytestmark = pytest.mark.skipif(not IS_NATIVE, reason="the native module was not built")

DEPTH = 6
RARE = re.compile(rb'[eE][-+]?\d{3}|[-+.\deE]{129}|"[^"\\]*(?:\\.[^"\\]*)+"\s*:')
"""What may need a closer look: large numbers, and escapes in keys."""

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=15,
)
written = st.builds(
    lambda value, indent, separators, is_ascii: json.dumps(
        value, indent=indent, separators=separators, ensure_ascii=is_ascii
    ).encode("utf-8", "surrogatepass"),
    st.dictionaries(st.text(max_size=4), values, max_size=5),
    st.sampled_from([None, 0, 2]),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,", "\t:\r\n")]),
    st.booleans(),
)
TOKENS = (
    rb'{ } [ ] , : " \ \u \ud83d \udc00 \ud83d\ude00 \uD83Dx 0 - 1e5 1E+99 1e400 01 . 1. -0.5 true nul "a":1,'
)
BYTES = b"\0 \n \x1f \x7f \x80 \xc3 \xc3\xa9 \xc0\xaf \xe0\x80\x80 \xe2\x82 \xed\xa0\x80 \xf0\x9f\x98\x80 \xf4\x90\x80\x80 \xff"
pieces = st.sampled_from([*TOKENS.split(b" "), *BYTES.split(b" "), b" ", b"9" * 40, b"9" * 400])


def closer_look(body: bytes, depth: int) -> dict[str, Span] | None:
    """What the Python code finds in it, where it is read without repairing anything."""
    try:
        value = msgspec.json.decode(body)
        with mock.patch.object(splice, "scan", return_value=None):
            outline = splice.Outline(body)
    except (ValueError, RecursionError):
        return None
    assert isinstance(value, dict)
    return None if outline.repeated or is_nested(value, depth) else outline.members


def check(body: bytes, depth: int = DEPTH) -> None:
    found, expected = scan(body, depth), closer_look(body, depth)
    if found is None:
        assert expected is None or RARE.search(body), body
    else:
        assert list(found.items()) == list((expected or {}).items()), body
        assert expected is not None


def mutated(body: bytes, places: list[tuple[int, int, bytes]]) -> bytes:
    for at, cut, piece in places:
        at %= len(body) + 1
        body = body[:at] + piece + body[at + cut :]
    return body


@given(written)
def test_a_body_is_read_as_the_python_code_reads_it(body: bytes) -> None:
    check(body)


@given(written, st.lists(st.tuples(st.integers(0, 300), st.integers(0, 3), pieces), min_size=1, max_size=3))
@example(b'{"a":1}', [(6, 0, b',"a":2')])
@example(b"{}", [(1, 0, b",")])
@example(b'{"a":[]}', [(6, 0, b",")])
def test_a_broken_body_is_never_taken_for_a_good_one(
    body: bytes, places: list[tuple[int, int, bytes]]
) -> None:
    check(mutated(body, places))


@given(st.binary(max_size=60))
def test_so_is_no_other_data(data: bytes) -> None:
    check(data)
    check(b'{"a":"' + data + b'"}')
    check(b'{"' + data + b'":0}')
    check(b'{"a":' + data + b"}")


def test_real_bodies_broken_at_random_places() -> None:
    chance = random.Random(12)
    for dialect in ("anthropic", "openai-chat", "openai-responses", "gemini"):
        body = agent_body(dialect, "2k", "a-model", stream=True)
        assert scan(body, 128) == closer_look(body, 128) is not None
        for _ in range(20_000 if WHOLE else 1_000):
            at = chance.randrange(len(body))
            broken = body[:at] + bytes([chance.randrange(256)]) + body[at + chance.randrange(3) :]
            check(broken, 128)
            check(broken[: chance.randrange(len(broken))], 128)


def test_a_string_may_end_anywhere_in_a_block() -> None:
    for found in (b'"', b"\\n", b"\\u0041", b"\xc3\xa9", b"\xe2\x82\xac", b"\x01", b"\xff", b""):
        for before in range(34):
            for behind in (0, 1, 15, 16, 40):
                body = b'{"a":"' + b"x" * before + found + b"y" * behind
                check(body)
                check(body + b'"}')


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_what_is_nested_too_deeply_is_left_to_others(opening: bytes) -> None:
    closing = {b"[": b"]", b'{"a":': b"}"}[opening]
    for depth in (1, 2, DEPTH - 1, DEPTH, 127, 511, 600):
        body = b'{"a":' + opening * (depth - 1) + b"0" + closing * (depth - 1) + b"}"
        assert (scan(body, depth) is not None) is (depth <= 512)
        assert scan(body, depth - 1) is None
    assert scan(b'{"a":' + opening * 1_000_000, 10**6) is None
    assert scan(b'{"a":' + opening * 1_000_000, sys.maxsize) is None
    assert scan(b"{}", -1) is None


@pytest.mark.parametrize("odd", [bytearray(b"{}"), memoryview(b"{}"), "{}", None, 5])
def test_only_bytes_are_scanned(odd: Any) -> None:
    with pytest.raises(TypeError):
        scan(odd, 5)


@given(st.binary(max_size=100), st.integers(0, 2**64 - 1), st.data())
def test_a_hash_tells_what_differs(data: bytes, seed: int, draw: st.DataObject) -> None:
    for hashed in (fold, _hashed):
        view = memoryview(b"x" + data)[1:]
        assert 0 <= hashed(view, seed) == hashed(memoryview(data), seed) < 2**64
        if data:
            at = draw.draw(st.integers(0, len(data) - 1))
            other = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            assert hashed(memoryview(other), seed) != hashed(view, seed)
            assert hashed(view[1:], seed) != hashed(view, seed)


def test_only_contiguous_data_is_hashed() -> None:
    with pytest.raises(BufferError):
        fold(memoryview(bytes(10))[::2], 0)


@settings(max_examples=20)
@given(st.integers(0, 200), st.integers(0, 2**64 - 1))
def test_texts_of_one_template_have_different_hashes(length: int, seed: int) -> None:
    texts = [b'{"id":"toolu_%06d"}' % number + b"." * length for number in range(2000)]
    assert len({fold(memoryview(text), seed) for text in texts}) == len(texts)


def test_it_says_of_itself_whether_it_is_native() -> None:
    assert scan is not _unscanned
    assert scan(b'{"a":1}', 5) == {"a": (5, 6)}
