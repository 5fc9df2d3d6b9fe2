"""Members that come again: the same value, never anybody else's, and no more of them than there is room."""

from __future__ import annotations

import gc
import weakref
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot_core.cache.body_frame import BodyFrame
from wireglot_core.cache.memory import _MAX_EQUAL, Memory
from wireglot_core.cache.texts import _MAX_MADE
from wireglot_core.wire.json import BadJson, decode, encode
from wireglot_core.wire.splice import Outline

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
_LONG = "x" * 2000
_MOST = 1024 * 1024


@given(value=_JSON)
def test_the_value_is_the_one_that_decode_gives(value: Any) -> None:
    memory = Memory(_MOST)
    text = encode(value)
    assert memory.decode(text) == memory.decode(memoryview(text)) == value


@given(members=st.dictionaries(st.sampled_from(["a", "tools", "é", "messages"]), _JSON))
def test_a_document_is_the_one_that_decode_gives(members: dict[str, Any]) -> None:
    memory = Memory(_MOST)
    padded = {key: [value, _LONG] for key, value in members.items()} | members
    for body in map(encode, (members, padded, {"messages": [*members.values(), _LONG, *members.values()]})):
        for _ in range(2):
            document = memory.document(Outline(body, memory, "messages"), 128, "messages")
            assert document == decode(body)
            assert list(document) == list(decode(body))


@rows(
    "body",
    [
        b'{"tools":[1],"tools":[2],"a":1,"a":2}',
        b'{ "tools" : [ "\\ud800" ] , "a\\ud800" : "\\udc00x" }',
        b'{"a":"\\ud83d\\ude00","tools":["\\ud83d"]}',
        b'{"tools":null,"a":123456789012345678901234567890}',
        b'{"turns":[{"a":"\\ud800"}, {"a":1},{"a":"%s"}]}' % _LONG.encode(),
        b'{"turns":{"a":"\\ud800","b":"%s"}}' % _LONG.encode(),
        b'{"turns":[null,null,1,1,"a","a",true,true,[],[],{},{},"%s"]}' % _LONG.encode(),
    ],
)
def test_odd_bodies_are_read_alike(body: bytes) -> None:
    memory = Memory(_MOST)
    for _ in range(2):
        assert memory.document(Outline(body, memory, "turns"), 128, "turns") == decode(body)


@pytest.mark.parametrize("bad", [b"\xff", b"1e999", b'"\xff"', b"[" * 200 + b"]" * 200])
def test_what_decode_refuses_is_refused_each_time(bad: bytes) -> None:
    memory = Memory(_MOST)
    for key in ("turns", "tools"):
        body = b'{"%s":[{"a":1},{"b":%s},"%s"]}' % (key.encode(), bad, _LONG.encode())
        for _ in range(2):
            with pytest.raises(BadJson):
                memory.document(Outline(body, memory, "turns"), 128, "turns")


@pytest.mark.parametrize("odd", [b'"\\ud800"', b'{"\\ud800":1}', b'"\\ud83d\\ude00"', b"1"])
def test_a_long_member_is_read_alike(odd: bytes) -> None:
    """One of more than 256 KiB is decoded item by item, unless something in it is to be repaired."""
    for long in (b'[%b,"%b"]', b'{"a":%b,"b":"%b"}'):
        body = b'{"turns":%b}' % (long % (odd, b"x" * 300_000))
        assert Outline(body).document(128) == decode(body)
        assert Memory(4 * _MOST).document(Outline(body), 128, "turns") == decode(body)


def test_a_lower_limit_of_depth_holds_for_what_is_remembered() -> None:
    memory = Memory(_MOST)
    text = encode([[[[1]]], _LONG])
    memory.decode(text, 10)
    with pytest.raises(BadJson):
        memory.decode(text, 3)
    assert memory.decode(text, 10) == decode(text)


def test_the_same_text_is_the_same_value() -> None:
    memory = Memory(_MOST)
    one = memory.decode(b'[{"name":"x"}]')
    assert memory.decode(memoryview(b'[{"name":"x"}]')) is one
    assert memory.is_known(one)
    assert memory.decode(b'[{"name": "x"}]') is not one
    assert not Memory(_MOST).is_known(one)


def test_two_turns_of_the_same_words_are_two_values() -> None:
    memory = Memory(_MOST)
    body = encode({"turns": [{"a": _LONG}, {"b": 1}, {"a": _LONG}]})
    for _ in range(2):
        first, _, last = memory.document(Outline(body, memory, "turns"), 128, "turns")["turns"]
        assert first == last
        assert first is not last
        assert memory.is_known(first)
        assert memory.is_known(last)


def test_very_many_equal_turns_are_as_many_values() -> None:
    memory = Memory(_MOST)
    body = encode({"turns": [{"a": _LONG}] * 200 + [1, 1, None]})
    for _ in range(2):
        turns = memory.document(Outline(body, memory, "turns"), 128, "turns")["turns"]
        assert turns == [{"a": _LONG}] * 200 + [1, 1, None]
        assert len({id(turn) for turn in turns[:200]}) == 200
    assert len(memory) < 150


def test_a_memory_is_for_turns_of_which_it_knows_some_in_the_middle() -> None:
    memory = Memory(_MOST)
    known, other = memory.decode(b'{"a":1}'), {"a": 1}
    assert memory.for_turns([known]) is memory
    assert memory.for_turns([other, other, known, other]) is memory
    assert memory.for_turns([*[other] * 20, known, *[other] * 20]) is memory
    assert memory.for_turns([other] * 20) is None
    assert memory.for_turns([known, *[other] * 20, known]) is None
    assert memory.for_turns([]) is None


def test_what_did_not_come_from_here_is_never_remembered() -> None:
    memory = Memory(_MOST)
    memory.decode(b"[1]")
    mine = [1]
    assert memory.remembered(mine, "k", lambda: len(mine)) == 1
    mine.append(2)
    assert memory.remembered(mine, "k", lambda: len(mine)) == 2
    assert not memory.is_known(memory.share((1, 2), mine))
    memory.keep(mine, "k", 5)
    assert memory.find(mine, "k") is None


def test_what_was_made_is_made_once_for_each_key() -> None:
    memory = Memory(_MOST)
    value = memory.decode(b"[1]")
    made: list[str] = []

    def make(key: str) -> str:
        made.append(key)
        return key

    for key in ("a", "b", "a", "b"):
        assert memory.remembered(value, key, partial(make, key)) == key
    assert made == ["a", "b"]
    for number in range(100):
        memory.remembered(value, number, lambda: "")
    assert len(memory._known[id(value)].made) == _MAX_MADE


def test_a_scope_is_reported_by_all_of_it() -> None:
    memory = Memory(_MOST)
    assert memory.scope("a", 1) == memory.scope("a", 1) != memory.scope("a", 2)
    first = memory.scope("a", 1)
    others = {memory.scope("b", number) for number in range(5000)}
    assert len(others) == 5000
    assert first not in others
    assert memory.scope("a", 1) not in others


def test_the_longest_unused_goes_first_with_all_that_was_made_of_it() -> None:
    memory = Memory(_MOST)
    first = memory.decode(b"[0]")
    child = memory.share((first, "parsed"), first)
    grandchild = memory.share((child, "fitted"), child)
    assert memory.share(child, child) is child
    assert memory.is_known(grandchild)
    memory.decode(b"[1]")
    assert memory.decode(b"[0]") is first  # used again
    memory.shrink(memory.held - 1)
    assert memory.is_known(grandchild)
    assert len(memory) == 1
    memory.shrink(memory.held - 1)
    assert not any(map(memory.is_known, (first, child, grandchild)))
    assert memory.held == len(memory) == len(memory._known) == 0


def test_there_is_only_so_much_room() -> None:
    memory = Memory(100_000)
    assert not memory.is_known(memory.decode(encode(["x" * 100_000])))
    for number in range(40):
        value = memory.decode(encode([str(number) + "x" * 3000]))
        memory.keep(value, "k", "x" * 2000, 2000)
        assert memory.held <= 100_000
    assert 5 <= len(memory) == len(memory._known) < 40
    memory.shrink(0)
    assert memory.held == 0


def test_a_long_list_of_tools_is_remembered_too() -> None:
    """No cliff: 300 tools have some 200 KB of schemas."""
    memory = Memory(16 * _MOST)
    text = encode([{"name": str(number), "schema": _LONG} for number in range(300)])
    assert memory.decode(text) is memory.decode(bytes(text))


def test_nothing_at_all_is_not_shared() -> None:
    memory = Memory(_MOST)
    value = memory.decode(b"[]")
    assert memory.is_known(value)
    assert not memory.is_known(memory.share((), value))


class _Made:
    """Something of which one can see whether it is there."""


def test_what_is_forgotten_is_freed_at_once() -> None:
    """Room is wanted now, and not when the collector next looks at what has lived for long."""
    memory = Memory(_MOST)
    value = memory.decode(b"[1]")
    made, shared = _Made(), _Made()
    gone = [weakref.ref(made), weakref.ref(shared)]
    memory.keep(value, "k", made, shared=shared)
    del value, made, shared
    gc.disable()
    try:
        memory.shrink(0)
        assert [ref() for ref in gone] == [None, None]
    finally:
        gc.enable()


def test_a_row_of_any_length_is_forgotten() -> None:
    """One made of the other, as a long turn is joined."""
    memory = Memory(16 * _MOST)
    last: object = memory.decode(b"[1]")
    for number in range(5000):
        made = (number,)
        memory.keep(last, "next", made, shared=made)
        last = memory.share([number], made)
    assert len(memory._known) == 10_001
    memory.shrink(0)
    assert memory.held == len(memory._known) == 0


def test_what_is_made_again_takes_the_place_of_what_was_made_before() -> None:
    memory = Memory(_MOST)
    value = memory.decode(b"[1]")
    memory.keep(value, "k", "x", 1000, shared=["x"])
    held = memory.held
    parsed: list[str] = []
    for _ in range(5):
        parsed = ["y"]
        memory.keep(value, "k", "y", 1000, shared=parsed)
        memory.keep(parsed, "written", "z", 500)
        memory.grow(parsed, "written", 500)
    assert memory.held - held < 1500
    assert len(memory._known) == 2
    memory.keep(parsed, "written", "z")
    memory.grow(parsed, "nothing of that name", 500)
    assert memory.held - held < 500


def test_what_gives_way_takes_along_what_became_known_with_it() -> None:
    """An agent that drops its oldest turns has every other one read again, each time."""
    memory = Memory(16 * _MOST)
    value = memory.decode(encode([_LONG]))
    for number in range(1000):
        parsed = [number]
        memory.keep(value, number, parsed, shared=parsed)
        memory.keep(parsed, "written", "x", 100)
    assert len(memory._known) == _MAX_MADE + 1
    assert memory.held > _MAX_MADE * len(_LONG), "each is a text of its own"
    assert memory.held < 2 * _MAX_MADE * len(_LONG)
    memory.shrink(0)
    assert memory.held == len(memory._known) == 0


def test_anyone_who_counts_is_informed_of_every_change() -> None:
    reported: list[int] = []
    memory = Memory(100_000, counted=reported.append)
    for number in range(60):
        value = memory.decode(encode([number, _LONG]))
        memory.keep(value, "k", "x", 10, shared=[number])
        memory.share((number,), value)
        assert sum(reported) == memory.held
    memory.decode(encode([59, _LONG]), 10)
    assert sum(reported) == memory.held > 0
    memory.retire()
    assert sum(reported) == memory.held == 0
    assert not memory.is_known(memory.decode(b"[1]")), "it has retired"
    assert sum(reported) == memory.held == 0


def test_what_another_thread_has_forgotten_is_kept_by_nobody() -> None:
    memory = Memory(_MOST)
    value = memory.decode(b"[1]")
    known = memory._known[id(value)]
    memory.shrink(0)
    memory._known[id(value)] = known  # it was found; then, before it was locked, the other came

    class Late:
        def __enter__(self) -> None:
            memory._known.pop(id(value), None)

        def __exit__(self, *_: object) -> None: ...

    memory._lock = Late()
    memory.keep(value, "k", "x", 100, shared=["x"])
    assert memory.held == len(memory._known) == 0


def test_equal_turns_are_looked_for_once_or_twice_each() -> None:
    class Counting(Memory):
        asked = 0

        def decode(self, *given: Any, **more: Any) -> Any:
            self.asked += 1
            return super().decode(*given, **more)

    memory = Counting(_MOST)
    body = encode({"turns": [{"a": "x"}] * 1000})
    memory.document(Outline(body), 128, "turns")
    assert memory.asked <= 1000 + _MAX_EQUAL


def test_equal_turns_are_two_values_also_where_there_is_no_room_for_them() -> None:
    turn = {"a": _LONG}
    for most in (0, 8000, 16_000, 30_000):
        memory = Memory(most)
        body = encode({"turns": [turn, {"b": _LONG}, turn, turn, {"c": _LONG}, {"d": _LONG}, *[turn] * 20]})
        for _ in range(3):
            turns = memory.document(Outline(body), 128, "turns")["turns"]
            assert turns == decode(body)["turns"]
            assert len({id(each) for each in turns}) == len(turns)


def test_turns_met_before_are_looked_up_under_the_lock() -> None:
    """Bodies of one caller are read in several threads."""
    entered = []

    class Watched(AbstractContextManager[None]):
        def __enter__(self) -> None:
            entered.append(True)

        def __exit__(self, *problem: object) -> None:
            entered.append(False)

    class Frame:
        def has_met(self, turn: msgspec.Raw) -> bool:
            return entered == [True]

    memory = Memory(1 << 20, Watched())
    assert memory.has_met(cast(Any, Frame()), msgspec.Raw(b"{}"))
    assert entered == [True, False]


def test_what_is_held_is_counted_by_the_bytes_of_its_text_and_what_was_made_of_it() -> None:
    """The estimate that limits are kept by: tests/core/laws/test_growing.py measures that it is right."""
    reported: list[int] = []
    memory = Memory(_MOST, counted=reported.append)
    value = memory.decode(b'["0123456789"]')
    base = 3 * 14 + 2304
    assert memory.held == base
    memory.keep(value, "a", "made", 100)
    assert memory.held == base + 484
    memory.keep(value, "b", "made", shared=["other"])  # the text was read in a second way
    assert memory.held == base + 484 + 384 + 14
    memory.grow(value, "a", 50)
    assert memory.held == base + 484 + 384 + 14 + 50
    memory.share((1,), value)
    assert memory.held == base + 484 + 384 + 14 + 50 + 384
    memory.keep(value, "a", "made", 1)
    assert memory.held == base + 385 + 384 + 14 + 384
    memory.keep(value, "b", "made")
    assert memory.held == base + 385 + 384 + 384 == sum(reported)
    memory.shrink(memory.held)
    assert len(memory) == 1
    memory.shrink(memory.held - 1)
    assert memory.held == len(memory) == sum(reported) == 0


def test_a_text_is_held_where_it_fits_exactly() -> None:
    size = 3 * 5 + 2304
    for most, known in ((size, True), (size - 1, False)):
        memory = Memory(most)
        assert memory.is_known(memory.decode(b'["a"]')) is known
    memory = Memory(size + 384)
    value = memory.decode(b'["a"]')
    memory.keep(value, "k", "made")
    assert memory.find(value, "k") == "made"
    memory.grow(value, "k", 1)
    assert not memory.is_known(value)


def test_learning_costs_what_finding_and_sending_pay_for() -> None:
    """A caller begins with a credit of 256 KiB, and has a megabyte at most; a byte that is learned costs two."""
    kib = 1024
    text = encode(["x" * (128 * kib - 4)])
    assert len(text) == 128 * kib
    memory: Any = Memory(16 * _MOST)
    assert memory.learns
    memory.decode(encode(["y" * 100]), learn=False)
    memory.decode(text)
    assert memory.learned == 128 * kib
    assert not memory.learns, "the credit is used up"
    memory.sent(31)
    assert not memory.learns
    memory.sent(32)
    assert memory.learns, "the 32nd part of what is sent"
    memory.sent(10**9)
    for number in range(4):
        memory.decode(encode([number, "x" * (128 * kib - 6)]))
        assert memory.learns is (number < 3), "no more than a megabyte"
    memory.decode(text)
    assert memory.learns, "found again"
    for _ in range(20):
        memory.recall_all([memory.text_of(memory.decode(text))] * 2)
    for number in range(4, 8):
        memory.decode(encode([number, "x" * (128 * kib - 6)]))
    assert not memory.learns


def test_a_memory_is_for_turns_of_which_it_knows_one_of_the_five_in_the_middle() -> None:
    memory = Memory(_MOST)
    known = memory.decode(b'{"a":1}')
    found = [
        memory.for_turns([{} if at != place else known for at in range(21)]) is not None
        for place in range(21)
    ]
    assert found == [8 <= place <= 12 for place in range(21)]


def test_255_turns_that_came_behind_another_are_tried_beside_the_latest() -> None:
    memory = Memory(16 * _MOST)
    first = memory.decode(b'{"n":"first"}')
    others = [memory.decode(b'{"n":%d}' % number) for number in range(300)]
    body = encode({"m": 1, "turns": [{"n": "first"}]})
    frame = BodyFrame(body, Outline(body).members, {}, "turns")
    for other in others:
        memory.follow(frame, [first, other])
    known = memory.text_of(first)
    assert known is not None
    assert len(frame.openings) == 1
    assert len(known.behind) == 256
    newest = memory.text_of(others[-1])
    assert newest is not None
    assert known.behind[0] == newest.number
    memory.follow(frame, [first, others[-1], [0], others[0]])
    assert newest.behind == [], "a turn that is not known ends it"
    memory.follow(frame, [first, others[-1], others[0]], start=2)
    again = memory.text_of(others[0])
    assert again is not None
    assert newest.behind == [again.number]


def test_a_scope_has_one_number_until_there_are_1024() -> None:
    memory = Memory(_MOST)
    first = memory.scope("a")
    for number in range(1023):
        memory.scope(number)
    assert memory.scope("a") == first
    memory.scope("one more")
    assert memory.scope("a") != first


def test_32_things_are_kept_of_a_value_and_the_oldest_goes_first() -> None:
    memory = Memory(_MOST)
    value = memory.decode(b"[1]")
    for number in range(33):
        memory.keep(value, number, number + 100)
    assert [memory.find(value, number) for number in (0, 1, 32)] == [None, 101, 132]
    memory.keep(value, 1, "again")
    assert memory.find(value, 2) == 102
    assert memory.remembered(value, 2, lambda: 5) == 102
    assert memory.remembered(value, "new", lambda: "made") == "made" == memory.find(value, "new")
    assert memory.find([1], 2) is None


def test_128_equal_turns_are_cached_and_the_others_are_decoded_again() -> None:
    memory = Memory(16 * _MOST)
    body = encode({"turns": [{"a": 1}] * 200, "x": "y" * 2000})
    turns = memory.document(Outline(body), 128, "turns")["turns"]
    assert sum(map(memory.is_known, turns)) == 129
    assert len({id(turn) for turn in turns}) == 200


def test_what_is_kept_beyond_the_room_makes_the_oldest_give_way() -> None:
    size = 3 * 5 + 2304
    memory = Memory(2 * size + 384)
    first, second = memory.decode(b'["a"]'), memory.decode(b'["b"]')
    memory.keep(second, "k", "made", 1)
    assert (memory.is_known(first), memory.find(second, "k")) == (False, "made")
    assert memory.held == size + 385
    memory.keep(second, "k", "made", size)
    assert memory.is_known(second)
    memory.share((1,), second)
    assert (memory.held, len(memory)) == (0, 0)
