"""Memories of callers: each its own, within bounds, and the first thing to go where there is no room."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import msgspec

from wireglot.gateway.process_limits import ProcessLimits
from wireglot.http.account import ByteAccount
from wireglot_core.cache.caches import Memories
from wireglot_core.wire.json import encode
from wireglot_core.wire.splice import Outline

_KIB = 1024


def _memories(account: ByteAccount | None = None, **limits: int) -> tuple[Memories, ByteAccount]:
    now = msgspec.structs.replace(ProcessLimits(), **limits)
    account = account or ByteAccount(now.buffered)
    return Memories(lambda: now, account), account


def _fill(memories: Memories, caller: str, texts: int = 20) -> None:
    memory = memories.of(caller)
    assert memory is not None
    for number in range(texts):
        memory.decode(encode([f"{caller} {number}", "x" * _KIB]))


def test_nobody_meets_what_another_caller_has_sent() -> None:
    memories, _ = _memories()
    one, other = memories.of("one"), memories.of("other")
    assert one is not None
    assert other is not None
    assert memories.of("one") is one is not other
    text = encode(["the same text", "x" * _KIB])
    value = one.decode(text)
    assert one.decode(text) is value
    assert not other.is_known(value)
    assert other.decode(text) is not value
    assert len(one) == len(other) == 1


def test_nothing_is_remembered_where_that_is_switched_off() -> None:
    memories, account = _memories(remembered=0)
    assert memories.of("one") is None
    assert account.remembered == 0


def test_it_is_counted_and_the_caller_that_was_away_longest_is_forgotten_first() -> None:
    memories, account = _memories(remembered=200 * _KIB)
    _fill(memories, "one")
    one = memories.of("one")
    assert one is not None
    assert account.remembered == one.held > 20 * _KIB
    _fill(memories, "two")
    first = memories.of("one")
    for name in ("three", "four", "five"):
        _fill(memories, name)
        memories.of("one")
        assert account.remembered <= 200 * _KIB
    assert memories.of("one") is first
    assert len(memories) < 5
    memories.clear()
    assert account.remembered == len(memories) == 0


def test_one_key_has_only_its_own_share() -> None:
    memories, account = _memories(remembered=1024 * _KIB, remembered_per_key=64 * _KIB)
    _fill(memories, "one", 100)
    assert 0 < account.remembered <= 64 * _KIB


def test_what_is_remembered_goes_before_anybody_is_turned_away() -> None:
    memories, account = _memories(buffered=100 * _KIB)
    _fill(memories, "one", 10)
    before = account.remembered
    assert 0 < before < 100 * _KIB
    assert not account.lacks(0)
    account.held = 90 * _KIB
    assert not account.lacks(0)
    assert 0 < account.remembered <= 10 * _KIB
    assert not account.lacks(10 * _KIB)
    assert account.remembered == len(memories) == 0
    assert account.lacks(11 * _KIB)
    account.held += 11 * _KIB
    assert account.lacks(0)


def test_what_a_caller_left_counts_also_where_it_never_comes_again() -> None:
    memories, account = _memories(remembered=200 * _KIB)
    for number in range(30):
        _fill(memories, f"caller {number}")
        assert account.remembered > 0
    memories.of("one more")
    assert account.remembered <= 200 * _KIB


def test_a_request_that_outlives_its_memory_leaves_nothing_in_the_account() -> None:
    """The caller is forgotten, or the settings change, while a request of it is read."""
    memories, account = _memories()
    for forgotten in (lambda: memories.forget(10**9), memories.clear):
        memory = memories.of("one")
        assert memory is not None
        memory.decode(encode(["before", "x" * _KIB]))
        forgotten()
        memory.decode(encode(["behind", "x" * _KIB]))
        assert account.remembered == len(memories) == 0
        assert memories.of("one") is not memory


def test_threads_beside_the_loop_count_alike() -> None:
    memories, account = _memories(remembered_per_key=300 * _KIB)
    memory = memories.of("one")
    assert memory is not None

    def read(number: int) -> None:
        for turn in range(200):
            value = memory.decode(encode([turn % 150, "x" * _KIB]))
            memory.keep(value, number, "made", 100, shared=[number, turn])
            memory.keep(value, "all", "made", 50)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(read, range(8)))
    assert account.remembered == memory.held <= 300 * _KIB
    memories.clear()
    assert account.remembered == memory.held == 0
    assert not memory._known


def test_one_byte_too_much_is_forgotten_when_a_caller_comes() -> None:
    memories, account = _memories(remembered=100 * _KIB)
    _fill(memories, "one", 2)
    one = memories.of("one")
    assert one is not None
    account.remembered = 100 * _KIB
    memories.of("two")
    assert len(one) == 2
    account.remembered += 1
    memories.of("two")
    assert len(one) == 1


def test_at_least_as_much_is_forgotten_as_was_asked_for() -> None:
    memories, account = _memories()
    for name in ("one", "two", "six"):
        _fill(memories, name, 2)
    two = memories.of("two")
    assert two is not None
    size = two.held
    memories.forget(size)
    assert len(memories) == 2, "the caller that was not here for longest"
    assert account.remembered == 2 * size
    memories.forget(1)
    assert (account.remembered, len(memories)) == (size + size // 2, 2)
    memories.forget(0)
    assert account.remembered == size + size // 2
    memories.forget(10**9)
    assert (account.remembered, len(memories)) == (0, 0)


def test_a_body_that_seems_to_go_on_is_counted_for_its_caller() -> None:
    memories, _ = _memories()
    turns = [{"n": number, "text": "x" * _KIB} for number in range(20)]
    bodies = [encode({"model": "m", "turns": turns[:count]}) for count in (14, 16, 18, 20)]
    assert memories.for_next_turn("one", bodies[0]) is None
    for body in bodies[:3]:
        memory = memories.for_body("one", body)
        if memory is not None:
            memory.document(Outline(body, memory, "turns"), turns="turns")
    assert memories.for_next_turn("one", bodies[3]) is memories.of("one") is not None
    assert memories.for_next_turn("two", bodies[3]) is None
    assert memories.for_next_turn("one", bodies[3][: 8 * _KIB - 1]) is None
