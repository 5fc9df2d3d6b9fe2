"""A body that is compared with what is known is read as one that is not, whatever is done to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireglot_core.cache import growing_body
from wireglot_core.cache import memory as module
from wireglot_core.cache.growing_body import compare
from wireglot_core.cache.memory import Memory
from wireglot_core.wire.json import BadJson, decode, encode
from wireglot_core.wire.splice import Outline, splice

MOST = 1024 * 1024


@pytest.fixture(autouse=True, scope="module")
def _short_ones_too() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SHORT_BYTES", 0)
        patch.setattr(growing_body, "OPEN_TURNS", 1)
        patch.setattr(growing_body, "_LEAST", 1)
        yield


def read(body: bytes, memory: Memory | None) -> object:
    """All that somebody can see of it, faults included."""
    try:
        outline = Outline(body, memory, "turns")
        document = memory.document(outline, 9, "turns") if memory is not None else outline.document(9)
        renamed = outline.replaced("model", b"0")
    except BadJson as fault:
        return type(fault)
    assert renamed == splice(body, {"model": b"0"})
    return document, list(document), outline.repeated, {key: outline.get(key) for key in document}


WORDS = st.sampled_from(["", "a", "b", ']},{"', '",', "\\", "é", "]", "😀"])
TURNS = st.lists(
    st.dictionaries(st.sampled_from("ab"), st.lists(WORDS, max_size=2) | WORDS, max_size=2)
    | st.lists(WORDS, max_size=2)
    | WORDS
    | st.none(),
    max_size=7,
)
WRITERS = st.sampled_from(
    [
        encode,
        lambda value: json.dumps(value).encode(),
        lambda value: json.dumps(value, indent=1, ensure_ascii=False).encode(),
    ]
)
FRAMES = st.sampled_from(
    [
        (("model", "m"), ("tools", [{"a": 1}, 2]), ("turns", None)),
        (("turns", None), ("system", [{"a": "x"}]), ("model", "m"), ("stream", True)),
        (("é", 1), ("turns", None), ("tools", [[1], "turns"])),
    ]
)


@st.composite
def bodies(draw: st.DrawFn) -> list[bytes]:
    """A conversation as it grows, is cut, edited and sent again, in a few spellings; then some broken ones."""
    turns = draw(TURNS)
    written: list[bytes] = []
    for _ in range(draw(st.integers(2, 4))):
        frame, write = draw(FRAMES), draw(WRITERS)
        for _ in range(draw(st.integers(1, 4))):
            written.append(write({key: turns if key == "turns" else value for key, value in frame}))
            turns = turns[: draw(st.integers(max(0, len(turns) - 2), len(turns)))] + draw(TURNS)[:2]
    for _ in range(3):
        body = draw(st.sampled_from(written))
        start = draw(st.integers(0, len(body)))
        end = draw(st.integers(start, min(len(body), start + 3)))
        put = draw(
            st.sampled_from([b"", b",", b"]", b" ", b'"', b"]}", b"{}", b",{}", b'"turns":[],', b"\xff"])
        )
        written += [body[:start] + put + body[end:], body]
    return written


@given(written=bodies())
def test_what_is_read_is_the_same_with_a_memory(written: list[bytes]) -> None:
    memory = Memory(MOST)
    for body in written:
        expected = read(body, None)
        assert read(body, memory) == expected, body
        assert read(body, memory) == expected, body
    for known in memory._texts.values():
        assert known.value == decode(known.text), "nobody changes what is known"


def test_a_body_with_a_key_that_stands_twice_is_told_as_such_each_time_it_has_grown() -> None:
    memory = Memory(MOST)
    turns = [{"n": number} for number in range(9)]
    for count in (3, 5, 7, 9):
        body = b'{"model":"a","turns":' + encode(turns[:count]) + b',"model":"b"}'
        assert read(body, memory) == read(body, None)
        assert Outline(body, memory, "turns").repeated == ["model"]


def grown(turns: list[Any], **others: Any) -> bytes:
    return encode({"model": "m", "tools": [{"name": "look"}], "turns": turns, "stream": True, **others})


def fresh(body: bytes, memory: Memory) -> int:
    found = compare(body, memory, "turns")
    return len(body) if found is None else found.fresh


def test_only_what_is_new_is_read() -> None:
    memory = Memory(MOST)
    first = [{"n": number, "text": "x" * 100} for number in range(5)]
    before = memory.document(Outline(grown(first), memory, "turns"), turns="turns")
    body = grown([*first, {"n": 5}, {"n": 6}])
    outline = Outline(body, memory, "turns")
    assert fresh(body, memory) == len(b'{"n":5},{"n":6}')
    document = memory.document(outline, turns="turns")
    assert document == decode(body)
    assert all(one is other for one, other in zip(before["turns"], document["turns"], strict=False))
    assert document["tools"] is before["tools"]
    assert fresh(body, memory) == 0


def test_somebody_may_want_to_read_only_so_much_at_once() -> None:
    memory = Memory(MOST)
    memory.document(Outline(grown([{"n": 1}]), memory, "turns"), turns="turns")
    body = grown([{"n": 1}, {"n": 2}])
    found = compare(body, memory, "turns", 7)
    assert found is not None
    assert len(found.rest) == 1
    assert compare(body, memory, "turns", 6) is None


def test_conversations_that_begin_alike_are_both_known() -> None:
    memory = Memory(MOST)
    texts = [grown([{"a": 1}, {"of": each}, {"b": 1}, {"of": each}]) for each in range(20)]
    for text in [*texts, *texts]:  # of one that begins, nobody knows yet whether it grows
        memory.document(Outline(text, memory, "turns"), turns="turns")
    assert [fresh(text, memory) for text in texts] == [0] * 20


def test_other_members_make_another_frame_and_old_ones_go() -> None:
    memory = Memory(MOST)
    for number in range(200):
        memory.document(Outline(grown([{"a": 1}], n=number), memory, "turns"), turns="turns")
    assert fresh(grown([{"a": 1}], n=199), memory) == 0
    assert compare(grown([{"a": 1}], n=0), memory, "turns") is None
    assert len(memory.frames) == 64
    frames = sum(frame.size + 4096 for frame in memory.frames)
    memory.shrink(frames)
    assert (memory.held, len(memory.frames), len(memory)) == (frames, 64, 0), "the texts go first"
    memory.shrink(frames - 1)
    assert len(memory.frames) == 63
    memory.shrink(0)
    assert memory.held == 0
    assert not memory.frames


def test_a_frame_that_takes_the_room_of_all_else_is_not_kept() -> None:
    memory = Memory(20_000)
    body = grown([{"a": 1}], system="x" * 10_000)
    memory.document(Outline(body, memory, "turns"), turns="turns")
    assert not memory.frames
    assert len(memory) == 2


def test_a_frame_may_take_the_eighth_part_of_the_room() -> None:
    body = grown([{"a": 1}], system="x" * 1000)
    kept = Memory(MOST)
    kept.document(Outline(body, kept, "turns"), turns="turns")
    (frame,) = kept.frames
    for most, fits in ((8 * frame.size, True), (8 * frame.size - 1, False)):
        memory = Memory(most)
        memory.use(frame)
        assert (memory.frames == [frame]) is fits


def test_turns_that_were_forgotten_are_read_again() -> None:
    memory = Memory(6000)
    turns = [{"n": number, "text": "x" * 300} for number in range(9)]
    for count in (*range(1, 10), 3, 9):
        body = grown(turns[:count])
        assert memory.document(Outline(body, memory, "turns"), turns="turns") == decode(body)
        assert memory.held <= 6000


def read_turns(memory: Memory, turns: list[Any]) -> list[Any]:
    body = grown(turns)
    document = memory.document(Outline(body, memory, "turns"), turns="turns")
    assert document == decode(body)
    read: list[Any] = document["turns"]
    return read


def test_what_came_again_and_again_is_compared_at_once() -> None:
    memory = Memory(MOST)
    turns = [{"n": number} for number in range(9)]
    for count in (1, 2, 4, 6):
        read_turns(memory, turns[:count])
    (run,) = memory.runs
    assert len(run.numbers) == 4, "those that were known, and not the last ones"
    assert run.body == grown(turns[:6])
    before = read_turns(memory, turns)
    (run,) = memory.runs
    assert len(run.numbers) == 6
    again = read_turns(memory, [*turns[:8], {"n": "another"}])
    assert all(one is other for one, other in zip(before[:8], again, strict=False))
    (run,) = memory.runs
    assert len(run.numbers) == 8
    read_turns(memory, [*turns[:8], {"n": "another"}])
    assert memory.runs == (run,), "what does not grow is compared with the same body"
    read_turns(memory, turns[:8])
    assert memory.runs == (run,), "nor does what ends where that body is settled need another"
    memory.shrink(len(run.body) + 1024)
    assert (memory.held, memory.runs) == (len(run.body) + 1024, (run,)), "the runs go last"
    memory.shrink(memory.held - 1)
    assert not memory.held
    assert not memory.runs


def test_of_a_run_whose_turns_were_forgotten_nothing_is_taken() -> None:
    memory = Memory(MOST)
    turns = [{"n": number} for number in range(9)]
    for count in (5, 9, 9):
        read_turns(memory, turns[:count])
    (run,) = memory.runs
    first = memory.text(run.numbers[0])
    assert first is not None
    memory.decode(first.text, 5)  # for another depth: it takes the place of the one before
    before = memory.held - len(run.body)
    read_turns(memory, turns)
    assert run not in memory.runs
    assert memory.held - sum(len(run.body) for run in memory.runs) <= before


def test_runs_have_a_room_of_their_own() -> None:
    memory = Memory(160_000)
    for each in range(50):
        for count in (3, 4, 5):
            read_turns(memory, [{"of": each, "n": number, "text": "x" * 100} for number in range(count)])
    assert 0 < sum(len(run.body) for run in memory.runs) <= 20_000
    for each in range(50, 60):
        for count in (3, 4, 5):
            read_turns(memory, [{"of": each, "n": number, "text": "x" * 9000} for number in range(count)])
    assert all(len(run.body) < 20_000 for run in memory.runs)


def test_there_is_an_end_to_runs() -> None:
    memory = Memory(8 * MOST)
    for each in range(200):
        for count in (2, 3, 3):
            read_turns(memory, [{"of": each, "n": number} for number in range(count)])
    assert len(memory.runs) == 128
    memory.shrink(0)
    assert (memory.held, memory.runs) == (0, ())


def test_a_number_is_never_given_twice() -> None:
    memory = Memory(MOST)
    read_turns(memory, [{"n": 1}, {"n": 2}])
    first = {known.number for known in memory._texts.values()}
    memory.shrink(0)
    assert not memory._numbered
    read_turns(memory, [{"n": 1}, {"n": 2}])
    assert not first & {known.number for known in memory._texts.values()}


def test_a_body_that_goes_on_as_another_did_seems_known() -> None:
    memory = Memory(MOST)
    turns = [{"n": number} for number in range(9)]
    assert not memory.may_know(grown(turns))
    for count in (3, 6, 6):
        read_turns(memory, turns[:count])
    assert memory.may_know(grown(turns))
    assert not memory.may_know(grown([{"n": "x"}, *turns]))
    assert not memory.may_know(grown(turns[:3]))
    assert not memory.may_know(b"")


def test_a_body_that_begins_as_another_did_seems_to_be_of_its_frame() -> None:
    memory = Memory(MOST)

    def body(system: str, turns: int) -> bytes:
        return encode(
            {"model": "m", "system": [{"text": system}], "turns": [{"n": each} for each in range(turns)]}
        )

    assert not memory.may_frame(body("one", 3))
    for turns in (2, 3, 3):
        read(body("one", turns), memory)
    assert memory.frames
    assert memory.may_frame(body("one", 9))
    assert not memory.may_frame(b'{"other":1}')
    assert not memory.may_frame(b"")


def test_a_body_that_is_indented_is_known_when_it_has_grown() -> None:
    memory = Memory(MOST)
    turns = [{"n": number, "text": "x" * 50} for number in range(6)]

    def indented(count: int) -> bytes:
        return json.dumps({"model": "m", "turns": turns[:count], "stream": True}, indent=2).encode()

    memory.document(Outline(indented(5), memory, "turns"), turns="turns")
    found = compare(indented(6), memory, "turns")
    assert found is not None
    assert (len(found.turns), len(found.rest)) == (5, 1)
    assert found.spans == Outline(indented(6)).members
    assert list(found.spans) == ["model", "turns", "stream"]


def test_the_work_that_is_left_is_counted_in_bytes() -> None:
    """A turn is as much work as 200 of them."""
    memory = Memory(MOST)
    read_turns(memory, [{"n": 1}, {"n": 2}])
    found = compare(grown([{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}]), memory, "turns")
    assert found is not None
    assert found.work == len(b'{"n":3},{"n":4}') + 4 * 200


def test_what_follows_the_known_turns_must_be_more_turns() -> None:
    memory = Memory(MOST)
    read_turns(memory, [{"n": 1}])
    body = grown([{"n": 1}])
    for broken in (
        body.replace(b'{"n":1}]', b'{"n":1},]'),
        body.replace(b'{"n":1}]', b'{"n":1} ]'),
        body.replace(b'{"n":1}]', b'{"n":1}{}]'),
        body.replace(b'{"n":1}]', b'{"n":1},{]'),
        body.replace(b'{"n":1}]', b"]"),
    ):
        assert broken != body
        assert compare(broken, memory, "turns") is None
    assert compare(body, memory, "others") is None


def test_a_frame_remembers_64_beginnings() -> None:
    memory = Memory(MOST)
    read_turns(memory, [{"n": 1}])
    (frame,) = memory.frames
    turns = [msgspec.Raw(b'{"n":%d}' % number) for number in range(66)]
    assert [frame.has_met(turn) for turn in turns[:64]] == [False] * 64
    assert frame.has_met(turns[0])
    assert [frame.has_met(turn) for turn in turns[64:]] == [False, False]
    assert [frame.has_met(turns[at]) for at in (2, 65, 0)] == [True, True, False]


def test_a_body_whose_members_are_known_is_told_from_one_with_others() -> None:
    """Also where they are of the same length."""
    memory = Memory(MOST)
    read_turns(memory, [{"n": 1}, {"n": 2}])
    body = grown([{"n": 1}, {"n": 2}])
    assert compare(body, memory, "turns") is not None
    assert compare(body.replace(b'"look"', b'"book"'), memory, "turns") is None
    assert compare(body.replace(b"true", b"null"), memory, "turns") is None
    assert compare(body[:-1], memory, "turns") is None
    tools = memory.text_of(memory.decode(b'[{"name":"look"}]', 127))
    assert tools is not None
    memory.decode(tools.text, 5)  # takes its place
    assert compare(body, memory, "turns") is None
