"""Members that come again: the same value, never anybody else's, and no more of them than there is room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireglot.wire import shared
from wireglot.wire.json import BadJson, decode, encode
from wireglot.wire.shared import decode_shared, is_shared, remembered, share
from wireglot.wire.splice import Outline

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    shared._texts.clear()
    shared._known.clear()
    yield
    shared._texts.clear()
    shared._known.clear()


@given(value=_JSON)
def test_the_value_is_the_one_that_decode_gives(value: Any) -> None:
    text = encode(value)
    assert decode_shared(text) == decode_shared(memoryview(text)) == value


@given(members=st.dictionaries(st.sampled_from(["a", "tools", "é", "model"]), _JSON))
def test_a_document_is_the_one_that_decode_gives(members: dict[str, Any]) -> None:
    body = encode(members)
    for _ in range(2):
        document = Outline(body).document("tools")
        assert document == decode(body)
        assert list(document) == list(decode(body))


@pytest.mark.parametrize(
    "body",
    [
        b'{"tools":[1],"tools":[2],"a":1,"a":2}',
        b'{ "tools" : [ "\\ud800" ] , "a\\ud800" : "\\udc00x" }',
        b'{"a":"\\ud83d\\ude00","tools":["\\ud83d"]}',
        b'{"tools":null,"a":123456789012345678901234567890}',
    ],
)
def test_odd_bodies_are_read_alike(body: bytes) -> None:
    assert Outline(body).document("tools") == decode(body)


@pytest.mark.parametrize("body", [b'{"tools":[],"a":"\xff"}', b'{"tools":["\xff"]}', b'{"tools":[1e999]}'])
def test_what_decode_refuses_is_refused(body: bytes) -> None:
    with pytest.raises(BadJson):
        decode(body)
    with pytest.raises(BadJson):
        Outline(body).document("tools")


def test_the_same_text_is_the_same_value() -> None:
    one = decode_shared(b'[{"name":"x"}]')
    assert decode_shared(memoryview(b'[{"name":"x"}]')) is one
    assert is_shared(one)
    assert decode_shared(b'[{"name": "x"}]') is not one


def test_what_did_not_come_from_here_is_never_remembered() -> None:
    decode_shared(b"[1]")
    mine = [1]
    assert remembered(mine, "k", lambda: len(mine)) == 1
    mine.append(2)
    assert remembered(mine, "k", lambda: len(mine)) == 2
    assert not is_shared(share((1, 2), mine))


def test_what_was_made_is_made_once_for_each_key() -> None:
    value = decode_shared(b"[1]")
    made: list[str] = []

    def make(key: str) -> str:
        made.append(key)
        return key

    for key in ("a", "b", "a", "b"):
        assert remembered(value, key, lambda key=key: make(key)) == key  # type: ignore[misc]
    assert made == ["a", "b"]
    for number in range(100):
        remembered(value, number, lambda: "")
    assert len(shared._known[id(value)].made) == shared._MOST_MADE


def test_the_longest_unused_goes_first_with_all_that_was_made_of_it() -> None:
    first = decode_shared(b"[0]")
    child = share((first, "parsed"), first)
    grandchild = share((child, "fitted"), child)
    assert share(child, child) is child
    assert is_shared(child)
    assert is_shared(grandchild)
    for number in range(1, shared._MOST_TEXTS):
        decode_shared(b"[%d]" % number)
    assert decode_shared(b"[0]") is first  # used again
    decode_shared(b'["one more"]')
    assert is_shared(first)
    for number in range(1000, 1000 + shared._MOST_TEXTS):
        decode_shared(b"[%d]" % number)
    assert not any(map(is_shared, (first, child, grandchild)))
    assert len(shared._texts) == len(shared._known) == shared._MOST_TEXTS


def test_there_is_only_so_much_room() -> None:
    assert not is_shared(decode_shared(encode(["x" * shared._LONGEST_BYTES])))
    for number in range(40):
        decode_shared(encode([str(number) + "x" * 120_000]))
    assert sum(map(len, shared._texts)) <= shared._MOST_BYTES
    assert len(shared._known) == len(shared._texts)


def test_nothing_at_all_is_not_shared() -> None:
    value = decode_shared(b"[]")
    assert is_shared(value)
    assert not is_shared(share((), value))
