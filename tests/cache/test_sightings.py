"""Which bodies are remembered: those that come again, soon enough to be found."""

from __future__ import annotations

import msgspec
import pytest

from proofs.bench.bodies import VARIED
from proofs.bench.bodies import body as agent_body
from wireglot.gateway.process_limits import ProcessLimits
from wireglot.http.account import ByteAccount
from wireglot_core.cache.caches import Memories
from wireglot_core.cache.sightings import Sightings
from wireglot_core.wire.json import encode

_KIB = 1024
_TOOLS = [{"name": f"tool_{number}", "description": f"{number} " * 200} for number in range(20)]


def _conversation(name: str, turns: int, *, tools_first: bool = False) -> bytes:
    messages = [
        {"role": "user", "content": f"{name}, turn {turn}: " + f"{name}{turn} " * 1200}
        for turn in range(turns)
    ]
    members = {"model": "m", "messages": messages, "tools": _TOOLS}
    if tools_first:
        members = {"model": "m", "tools": _TOOLS, "messages": messages}
    return encode(members)


def _again(sightings: Sightings, body: bytes, caller: str = "one", within: int = 10**9) -> bool:
    return sightings.comes_again(caller, body, within=within, within_own=10**9)


@pytest.mark.parametrize("tools_first", [False, True])
def test_a_conversation_comes_again_from_its_second_turn_on(tools_first):
    sightings = Sightings()
    turns = [_conversation("a", turns, tools_first=tools_first) for turns in range(4, 40)]
    assert [_again(sightings, body) for body in turns] == [False, *[True] * 35]


def test_a_question_behind_the_same_system_text_does_not():
    sightings = Sightings()
    system = "You answer questions about documents. " * 200
    bodies = [encode({"system": system, "messages": [str(number) * 60_000]}) for number in range(9)]
    assert [_again(sightings, body) for body in bodies] == [False] * 9


def test_little_words_behind_much_that_stays_the_same_do():
    sightings = Sightings()
    system = "You answer questions about this document. " * 2000
    bodies = [encode({"system": system, "messages": [f"Question {number}?"]}) for number in range(9)]
    assert [_again(sightings, body) for body in bodies] == [False, *[True] * 8]


def test_a_body_that_has_another_number_in_each_of_its_texts_does_not():
    sightings = Sightings()
    request = agent_body("anthropic", "100k", "m", stream=False)
    bodies = [
        request.replace(VARIED.encode(), b"%06d" % number).replace(b'"text":"', b'"text":"%06d' % number)
        for number in range(9)
    ]
    assert [_again(sightings, body) for body in bodies] == [False] * 9


def test_what_another_caller_sent_is_not_known():
    sightings = Sightings()
    first, second = _conversation("a", 20), _conversation("a", 21)
    assert not _again(sightings, first)
    assert not _again(sightings, second, "two")
    assert _again(sightings, second)


def test_a_body_that_is_only_repeated_is_one_when_it_comes_a_third_time():
    sightings = Sightings()
    body = _conversation("a", 20)
    assert [_again(sightings, body) for _ in range(4)] == [False, False, True, True]


def test_what_a_memory_would_have_forgotten_meanwhile_is_not_worth_it():
    bodies = [_conversation(name, 20) for name in "abcdefgh"]
    grown = [_conversation(name, 21) for name in "abcdefgh"]
    all_of_them = sum(map(len, grown))
    for within, expected in ((all_of_them, True), (all_of_them // 2, False)):
        sightings = Sightings()
        for body in bodies:
            _again(sightings, body, within=within)
        for body in grown:
            assert _again(sightings, body, within=within) is expected


def test_each_caller_has_its_own_share_of_what_is_remembered():
    sightings = Sightings()
    own = len(_conversation("a", 22))
    for turns in (20, 21):
        bodies = [_conversation(name, turns) for name in "abcd"]
        assert not any(sightings.comes_again("one", body, within=10**9, within_own=own) for body in bodies)
    assert sightings.comes_again("one", _conversation("d", 22), within=10**9, within_own=own)


def test_very_long_bodies_are_looked_at_from_both_sides_only():
    sightings = Sightings()
    body = _conversation("a", 500)
    assert len(body) > 1024 * _KIB
    assert not _again(sightings, body)
    assert _again(sightings, body[: len(body) // 2] + b" " * 100_000 + body[len(body) // 2 :])


def test_what_is_held_has_a_bound():
    sightings = Sightings()
    for number in range(2000):
        _again(sightings, encode([number, "x" * 20 * _KIB, number]), f"caller {number}")
    assert len(sightings._seen) <= 8192
    assert len(sightings._bytes_of) <= 1024
    bodies = [_conversation("a", turns) for turns in (20, 21)]
    assert [_again(sightings, body, "caller 7") for body in bodies] == [False, True]


def test_nothing_of_a_body_that_came_once_is_remembered():
    now = msgspec.structs.replace(ProcessLimits())
    memories = Memories(lambda: now, ByteAccount(now.buffered))
    assert memories.for_body("one", b"x" * 100_000) is None
    assert len(memories) == 0
    assert memories.for_body("one", b"x" * 100_100) is memories.of("one") is not None
    small = b"y" * 8000
    assert [memories.for_body("one", small) for _ in range(2)] == [None, None]


def _bytes(*names_and_sizes: tuple[str, int]) -> bytes:
    """Some KiB of each name."""
    return b"".join((name.encode() * _KIB * size)[: _KIB * size] for name, size in names_and_sizes)


def test_three_fifths_of_a_body_must_have_come_before():
    """In pieces of which the first has 4 KiB, and each further one ends a quarter further."""
    for more, again in ((2, True), (3, False)):
        sightings = Sightings()
        assert not _again(sightings, _bytes(("a", 4)))
        assert _again(sightings, _bytes(("a", 4), ("b", more))) is again
    sightings = Sightings()
    _again(sightings, _bytes(("a", 5)))
    assert _again(sightings, _bytes(("a", 5), ("b", 3)))


def test_the_end_of_a_body_counts_as_well_as_its_beginning():
    sightings = Sightings()
    _again(sightings, _bytes(("a", 4), ("x", 1), ("z", 4)))
    assert _again(sightings, _bytes(("a", 4), ("y", 5), ("z", 4)))
    assert not _again(sightings, _bytes(("q", 4), ("v", 1), ("z", 4))), "the beginning must be known"


def test_the_bytes_of_a_caller_are_counted():
    sightings = Sightings()
    assert sightings.pass_by("one", 5) == (5, 5)
    assert sightings.pass_by("two", 7) == (12, 7)
    assert sightings.pass_by("one", 1) == (13, 6)


def test_what_came_as_long_ago_as_the_limit_still_counts():
    first, other, grown = _bytes(("a", 8)), _bytes(("b", 10)), _bytes(("a", 8), ("c", 1))
    for within, expected in ((10 * _KIB, True), (10 * _KIB - 1, False)):
        for own in (False, True):
            sightings = Sightings()
            limits = (
                {"within": 10**9, "within_own": within} if own else {"within": within, "within_own": 10**9}
            )
            for body in (first, other):
                sightings.comes_again("one", body, **limits)
            assert sightings.comes_again("one", grown, **limits) is expected


def test_bodies_of_eight_kib_are_looked_for():
    now = msgspec.structs.replace(ProcessLimits())
    for size, found in ((8 * _KIB, True), (8 * _KIB - 1, False)):
        memories = Memories(lambda: now, ByteAccount(now.buffered))
        bodies = [_bytes(("a", 7)) + bytes((number,)) * (size - 7 * _KIB) for number in range(2)]
        assert [memories.for_body("one", body) is not None for body in bodies] == [False, found]


def test_a_finder_is_for_the_settings_it_was_made_with():
    now = msgspec.structs.replace(ProcessLimits())
    memories = Memories(lambda: now, ByteAccount(now.buffered))
    find = memories.finder("one")
    body = _bytes(("a", 20))
    assert [find(body + b"x" * each) is not None for each in range(2)] == [False, True]
    memories.clear()
    assert find(body + b"xx") is None
    assert memories.finder("one")(body + b"xxx") is not None


def test_of_a_long_body_three_fifths_of_384_kib_must_have_come_before():
    """256 from its beginning and 128 from its end: the rest is not looked at."""
    first = _bytes(("a", 400))
    for known in (100, 260):
        sightings = Sightings()
        _again(sightings, first)
        assert not _again(sightings, first[: known * _KIB] + _bytes(("b", 400)))
    sightings = Sightings()
    _again(sightings, first)
    assert _again(sightings, first[: 200 * _KIB] + _bytes(("b", 400)) + first[-140 * _KIB :])
