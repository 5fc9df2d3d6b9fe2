"""Conversations that are compared at once, with the limits that a gateway has."""

from __future__ import annotations

from typing import Any

from wireglot_core.cache.memory import Memory
from wireglot_core.wire.json import decode, encode
from wireglot_core.wire.splice import Outline

MOST = 16 * 1024 * 1024


def sent(memory: Memory, turns: list[Any]) -> None:
    body = encode({"model": "m", "turns": [*turns, {"last": "x" * 1100}]})
    assert memory.document(Outline(body, memory, "turns"), turns="turns") == decode(body)


def turns(count: int) -> list[Any]:
    return [{"n": number} for number in range(count)]


def test_a_conversation_of_twelve_turns_is_compared_at_once() -> None:
    """Eight that are settled, and four at the end that may change."""
    memory: Any = Memory(MOST)
    for _ in range(3):
        sent(memory, turns(10))
    assert memory.runs == ()
    for _ in range(2):
        sent(memory, turns(11))
    (run,) = memory.runs
    assert len(run.numbers) == 8
    sent(memory, turns(12))
    sent(memory, turns(12))
    (run,) = memory.runs
    assert len(run.numbers) == 9


def test_a_member_of_a_kilobyte_is_not_cached_and_a_larger_one_is() -> None:
    memory = Memory(MOST)
    for size, known in ((1024, False), (1025, True)):
        body = encode({"model": "m", "tools": ["x" * (size - 4)]})
        document = memory.document(Outline(body), turns="turns")
        assert len(encode(document["tools"])) == size
        assert memory.is_known(document["tools"]) is known
    long = memory.document(Outline(encode({"system": "x" * 2000})), turns="turns")
    assert not memory.is_known(long["system"])


def test_equal_turns_that_are_lists_are_two_values_as_well() -> None:
    memory = Memory(MOST)
    body = encode({"turns": [["a"], ["a"], {"last": "x" * 1100}]})
    first, second, _ = memory.document(Outline(body), turns="turns")["turns"]
    assert first == second
    assert first is not second
    assert memory.is_known(first)
    assert memory.is_known(second)


def test_another_conversation_in_a_known_frame_is_learned_when_it_comes_a_second_time() -> None:
    """Where more than half of it is new."""
    memory = Memory(MOST)
    sent(memory, turns(3))
    before = len(memory)
    other = [{"other": number, "text": "y" * 1000} for number in range(5)]
    sent(memory, other)
    assert len(memory) == before
    sent(memory, other)
    assert len(memory) == before + 5
