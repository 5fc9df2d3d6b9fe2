"""The contract of documents, over every store."""

from __future__ import annotations

import asyncio
import time

import msgspec

from wireglot.stores.records import Document

PAST = 1
"""Expired long ago."""

ODD = [
    "a\0b",
    "a\\0b",
    "a\\u0000b",
    "ab",
    "\ud800",
    "\\",
    "é\u2028🙂",
    "x'; DROP TABLE documents; --",
    "%",
    "",
]


def later() -> int:
    return int(time.time() * 1000) + 3_600_000


def piece(id: str, parent: str = "conv", **more) -> Document:
    return Document("t", "item", id, id.encode(), parent=parent, **more)


def test_what_was_put_is_found_as_it_was(run, documents):
    """R-X-06"""
    one = Document("t", "response", "r1", b"\0body\xff", parent="p", number=7, created=5, expires=later())
    assert run(documents.put([one])) is True
    assert run(documents.get("t", "response", ["r1", "r1", "nothing"])) == [one]


def test_a_document_may_be_empty_or_large(run, documents):
    both = [Document("t", "k", "empty", b""), Document("t", "k", "large", bytes(range(256)) * 8192)]
    run(documents.put(both))
    found = run(documents.get("t", "k", ["empty", "large"]))
    assert sorted(found, key=lambda one: one.id) == both


def test_another_put_replaces_it_whole(run, documents):
    run(documents.put([Document("t", "k", "a", b"1", parent="p", number=3, created=1, expires=later())]))
    second = Document("t", "k", "a", b"2", created=9)
    assert run(documents.put([second])) is True
    assert run(documents.get("t", "k", ["a"])) == [second]
    assert run(documents.pieces("t", "k", "p")) == []


def test_new_means_that_nothing_is_written_where_one_exists(run, documents):
    """FAULTS 40: of two requests with the same Idempotency-Key one begins."""
    run(documents.put([Document("t", "k", "a", b"first")]))
    assert (
        run(documents.put([Document("t", "k", "b", b""), Document("t", "k", "a", b"second")], new=True))
        is False
    )
    assert [one.body for one in run(documents.get("t", "k", ["a", "b"]))] == [b"first"]
    assert run(documents.put([Document("t", "k", "b", b"")], new=True)) is True


def test_new_takes_the_place_of_what_has_expired(run, documents):
    run(documents.put([Document("t", "k", "a", b"old", expires=PAST)]))
    assert run(documents.put([Document("t", "k", "a", b"new")], new=True)) is True
    assert [one.body for one in run(documents.get("t", "k", ["a"]))] == [b"new"]


def test_of_many_that_put_the_same_new_one_at_once_one_wins(run, documents):
    """FAULTS 40"""

    async def race():
        return await asyncio.gather(
            *(documents.put([Document("t", "k", "a", str(n).encode())], new=True) for n in range(30))
        )

    won = run(race())
    assert won.count(True) == 1
    assert run(documents.get("t", "k", ["a"]))[0].body == str(won.index(True)).encode()


def test_replace_writes_only_where_it_exists(run, documents):
    one = Document("t", "k", "a", b"1", created=3)
    assert run(documents.replace(one)) is False
    assert run(documents.get("t", "k", ["a"])) == []
    run(documents.put([one]))
    changed = msgspec.structs.replace(one, body=b"2")
    assert run(documents.replace(changed)) is True
    assert run(documents.get("t", "k", ["a"])) == [changed]


def test_touching_changes_the_times_and_nothing_else(run, documents):
    run(
        documents.put(
            [Document("t", "k", "a", b"first", created=1), Document("t", "k", "b", b"x", created=2)]
        )
    )
    run(documents.replace(Document("t", "k", "a", b"second", created=1)))
    far = 10**15
    assert run(documents.touch("t", "k", "a", created=9, expires=far)) is True
    assert run(documents.get("t", "k", ["a"])) == [Document("t", "k", "a", b"second", created=9, expires=far)]
    assert [found.id for found in run(documents.recent("t", "k", limit=9))] == ["a", "b"]
    assert run(documents.touch("t", "k", "none", created=9, expires=far)) is False
    assert run(documents.touch("other", "k", "a", created=9, expires=far)) is False


def test_touching_the_pieces_of_one_parent_leaves_all_others_alone(run, documents):
    for parent in ("p", "q"):
        run(documents.append([Document("t", "k", f"{parent}{n}", b"x", parent) for n in range(3)]))
    run(documents.touch_pieces("t", "k", "p", expires=10**15))
    assert {piece.expires for piece in run(documents.pieces("t", "k", "p"))} == {10**15}
    assert {piece.expires for piece in run(documents.pieces("t", "k", "q"))} == {0}
    run(documents.touch_pieces("t", "k", "p", expires=1))
    assert run(documents.pieces("t", "k", "p")) == []


def test_what_was_deleted_or_has_expired_is_not_replaced(run, documents):
    run(documents.put([Document("t", "k", "a", b"1"), Document("t", "k", "b", b"1", expires=PAST)]))
    run(documents.delete("t", "k", ["a"]))
    assert run(documents.replace(Document("t", "k", "a", b"2"))) is False
    assert run(documents.replace(Document("t", "k", "b", b"2"))) is False
    assert run(documents.get("t", "k", ["a", "b"])) == []


def test_what_has_expired_is_not_there(run, documents):
    gone = Document("t", "k", "a", b"", parent="p", number=1, created=1, expires=PAST)
    run(documents.put([gone]))
    assert run(documents.get("t", "k", ["a"])) == []
    assert run(documents.pieces("t", "k", "p")) == []
    assert run(documents.recent("t", "k", limit=9)) == []
    assert run(documents.delete("t", "k", ["a"])) == 0


def test_pieces_are_numbered_on_from_the_last(run, documents):
    """R-X-06"""
    assert run(documents.append([piece("a"), piece("b")])) == 1
    assert run(documents.append([piece("c")])) == 3
    assert run(documents.append([piece("z", parent="other")])) == 1
    found = run(documents.pieces("t", "item", "conv"))
    assert [(one.id, one.number) for one in found] == [("a", 1), ("b", 2), ("c", 3)]


def test_pieces_that_are_appended_at_once_never_share_a_number(run, documents):
    async def race():
        return await asyncio.gather(*(documents.append([piece(f"{n}a"), piece(f"{n}b")]) for n in range(25)))

    assert sorted(run(race())) == list(range(1, 50, 2))
    assert [one.number for one in run(documents.pieces("t", "item", "conv"))] == list(range(1, 51))


def test_pieces_are_read_in_pages_both_ways(run, documents):
    run(documents.append([piece(letter) for letter in "abcdefg"]))

    def ids(**bounds) -> str:
        return "".join(one.id for one in run(documents.pieces("t", "item", "conv", **bounds)))

    assert ids() == "abcdefg"
    assert ids(newest_first=True) == "gfedcba"
    assert ids(after=2, limit=3) == "cde"
    assert ids(before=4) == "abc"
    assert ids(before=6, limit=2, newest_first=True) == "ed"
    assert ids(after=2, before=5) == "cd"
    assert ids(after=7) == ""


def test_the_newest_come_first_in_pages(run, documents):
    run(
        documents.put(
            [
                Document("t", "k", id, b"", created=created)
                for id, created in [("a", 1), ("b", 2), ("c", 2), ("d", 3)]
            ]
        )
    )
    first = run(documents.recent("t", "k", limit=2))
    assert [one.id for one in first] == ["d", "c"]
    rest = run(documents.recent("t", "k", limit=9, before=(first[-1].created, first[-1].id)))
    assert [one.id for one in rest] == ["b", "a"]


def test_delete_tells_how_many_were_there(run, documents):
    run(documents.put([Document("t", "k", id, b"") for id in "abc"]))
    assert run(documents.delete("t", "k", ["a", "b", "nothing"])) == 2
    assert run(documents.delete("t", "k", ["a"])) == 0
    assert [one.id for one in run(documents.get("t", "k", list("abc")))] == ["c"]


def test_deleting_the_pieces_of_a_parent_leaves_the_others(run, documents):
    run(documents.append([piece("a"), piece("b")]))
    run(documents.append([piece("c", parent="other")]))
    assert run(documents.delete_pieces("t", "item", "conv")) == 2
    assert run(documents.pieces("t", "item", "conv")) == []
    assert [one.id for one in run(documents.pieces("t", "item", "other"))] == ["c"]


def test_nothing_of_one_caller_or_kind_reaches_another(run, documents):
    """T19"""
    for caller in ("t", "u"):
        for kind in ("k", "l"):
            body = f"{caller}{kind}".encode()
            run(documents.put([Document(caller, kind, "a", body, created=1)]))
            run(documents.append([Document(caller, kind, "piece", body, parent="p")]))
    assert [one.body for one in run(documents.get("t", "k", ["a"]))] == [b"tk"]
    assert {one.body for one in run(documents.recent("u", "k", limit=9))} == {b"uk"}
    assert [one.body for one in run(documents.pieces("u", "l", "p"))] == [b"ul"]
    assert run(documents.delete("t", "l", ["a", "piece"])) == 2
    assert run(documents.delete_pieces("t", "k", "p")) == 1
    assert [one.body for one in run(documents.pieces("u", "k", "p"))] == [b"uk"]
    assert run(documents.replace(Document("v", "k", "a", b"stolen"))) is False


def test_any_string_is_a_name_and_names_stay_apart(run, documents):
    """T5, T19: quotes, NUL and half a surrogate pair are letters like others."""
    all_of_them = [Document(name, name or "-", name or "-", repr(name).encode()) for name in ODD]
    assert run(documents.put(all_of_them, new=True))
    for one in all_of_them:
        assert run(documents.get(one.caller, one.kind, [name or "-" for name in ODD])) == [one]
    run(documents.append([Document("t", "k", name or "-", b"", parent="\ud800\0") for name in ODD]))
    assert len(run(documents.pieces("t", "k", "\ud800\0"))) == len(ODD)


def test_nothing_to_write_is_no_fault(run, documents):
    assert run(documents.put([])) is True
    assert run(documents.get("t", "k", [])) == []
    assert run(documents.delete("t", "k", [])) == 0
