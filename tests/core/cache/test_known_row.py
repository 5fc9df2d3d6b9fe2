"""What is known of the first turns holds for the very same ones, in the same order, and for no others."""

from __future__ import annotations

import copy
from typing import Any

from tests.tiers import rows
from wireglot_core.cache.known_row import _MAX_MADE, _MAX_ROWS, KnownRow, is_alike, row_of
from wireglot_core.cache.memory import Memory
from wireglot_core.ir.content import Extra, Message

MOST = 16 * 1024 * 1024


def turns(memory: Memory, count: int, start: int = 0) -> list[Any]:
    return [memory.decode(b"[%d]" % number) for number in range(start, start + count)]


def _message(number: Any) -> Message:
    return Message("user", (), extra=Extra("anthropic", {"n": number}))


def row(memory: Memory, values: list[Any]) -> KnownRow:
    found = row_of(memory, values)
    assert found is not None
    return found


def test_what_is_known_of_a_conversation_goes_on_with_it() -> None:
    memory = Memory(MOST)
    values = turns(memory, 30)
    first = row(memory, values[:20])
    assert list(first.values) == values[:16]
    assert first.reached("k") is None
    first.settle("k", "found")
    assert row(memory, values[:20]) is first
    then = row(memory, values)
    assert len(then.values) == 26
    assert then.reached("k") == (16, "found")


def test_other_turns_at_the_end_leave_it() -> None:
    memory = Memory(MOST)
    values = turns(memory, 20)
    row(memory, values).settle("k", "found")
    changed = values[:16] + turns(memory, 6, start=100)
    assert row(memory, changed).reached("k") == (16, "found")


def test_another_turn_on_the_way_knows_nothing() -> None:
    memory = Memory(MOST)
    values = turns(memory, 20)
    row(memory, values).settle("k", "found")
    for changed in (values[:5] + values[6:] + values[:2], [*values[:5], [5], *values[6:]], values[:15]):
        assert row(memory, changed).reached("k") is None
    assert row(memory, values).reached("k") == (16, "found"), "several begin alike"


def test_what_is_made_again_each_time_at_the_beginning_must_say_the_same() -> None:
    memory = Memory(MOST)
    values = turns(memory, 20)
    row(memory, [["system"], *values]).settle("k", "found")
    assert row(memory, [["system"], *values]).reached("k") == (17, "found")
    assert row(memory, [["another"], *values]).reached("k") is None
    assert row(memory, values).reached("k") is None
    assert row_of(memory, [["a"], ["b"], ["c"], *values]) is None


@rows(
    ("one", "other"),
    [
        ({"n": 1}, {"n": True}),
        ({"n": 1}, {"n": 1.0}),
        ({"n": 0.0}, {"n": -0.0}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([{"n": [1]}], [{"n": [1, 1]}]),
        (_message(1), _message(True)),
    ],
)
def test_to_say_the_same_is_to_be_written_the_same(one: Any, other: Any) -> None:
    """Python takes more for equal than JSON does."""
    memory = Memory(MOST)
    values = turns(memory, 20)
    row(memory, [one, *values]).settle("k", "found")
    assert row(memory, [copy.deepcopy(one), *values]).reached("k") == (17, "found")
    assert row(memory, [other, *values]).reached("k") is None


def test_without_a_memory_or_where_it_is_short_there_is_none() -> None:
    memory = Memory(MOST)
    assert row_of(memory, turns(memory, 11)) is None
    assert row_of(memory, [[1]] * 20) is None, "not one of its own"
    assert row_of(memory, ()) is None


def test_there_is_an_end_to_all_of_it_and_it_is_counted() -> None:
    memory = Memory(MOST)
    values = turns(memory, 20)
    before = memory.held
    for number in range(3 * _MAX_ROWS):
        row(memory, [values[0], *turns(memory, 20, start=100 * number)])
    rows = memory.find(values[0], "rows")
    assert len(rows) == _MAX_ROWS
    for number in range(3 * _MAX_MADE):
        rows[0].settle(number, None)
    assert len(rows[0].made) <= _MAX_MADE
    assert memory.held > before
    memory.shrink(0)
    assert memory.held == 0


def test_a_row_is_what_is_settled_in_steps_of_six() -> None:
    memory = Memory(MOST)
    values = turns(memory, 40)
    assert row_of(memory, values[:11]) is None
    first = row(memory, values[:12])
    assert len(first.values) == 8
    assert row(memory, values[:17]) is first, "five more"
    assert len(row(memory, values[:18]).values) == 14
    first.settle("k", "some", 3)
    assert first.reached("k") == (3, "some")


def test_two_turns_at_the_beginning_may_be_new() -> None:
    memory = Memory(MOST)
    values = turns(memory, 20)
    assert row_of(memory, [["a"], ["b"], *values]) is not None
    assert row_of(memory, [["a"], ["b"], ["c"], *values]) is None


def test_what_is_found_out_is_kept_for_32_who_asked() -> None:
    memory = Memory(MOST)
    known = row(memory, turns(memory, 20))
    for number in range(32):
        known.settle(number, number)
    known.settle(0, "again")
    assert known.reached(31) == (16, 31)
    known.settle("one more", 1)
    assert (known.reached(31), known.reached("one more")) == (None, (16, 1))


def test_rows_are_counted_with_their_turns() -> None:
    memory = Memory(MOST)
    values = turns(memory, 20)
    before = memory.held
    row(memory, values)
    assert memory.held - before == 2048 + 128 * 16 + 384


def test_numbers_are_alike_by_their_value_and_kind() -> None:
    for one, other, alike in (
        (int("1" * 30), int("1" * 30), True),
        (int("1" * 30), int("2" * 30), False),
        (float("1.5"), float("1.5"), True),
        (float("0.0"), float("-0.0"), False),
        (1, 1.0, False),
        (None, 0, False),
    ):
        assert is_alike([one], [other]) is alike
