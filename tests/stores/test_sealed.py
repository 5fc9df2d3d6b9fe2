"""Sealed documents and vaults: plain on the caller's side, closed on the store's."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from wireglot.stores.memory import MemoryEngine
from wireglot.stores.records import Document, VaultEntry
from wireglot.stores.seal import OFF_LOOP_BYTES, SealedDocuments, SealedVault, Sealer

SECRET = b"a secret of the gateway"


class Sealed:
    def __init__(self, engine, secret: bytes = SECRET) -> None:
        self.behind = engine
        self.unreadable: list[str] = []
        self.documents = SealedDocuments(engine.documents, Sealer(secret), self.unreadable.append)
        self.vault = SealedVault(engine.vault, Sealer(secret), self.unreadable.append)


@pytest.fixture
def sealed(engine) -> Sealed:
    return Sealed(engine)


def document(id: str, body: bytes = b"plain text", **more) -> Document:
    return Document("t", "k", id, body, **more)


def test_bodies_are_plain_outside_and_sealed_inside(run, sealed):
    """T8"""
    one = document("a", created=3)
    assert run(sealed.documents.put([one], new=True)) is True
    assert run(sealed.documents.get("t", "k", ["a"])) == [one]
    (inside,) = run(sealed.behind.documents.get("t", "k", ["a"]))
    assert b"plain" not in inside.body
    assert msgspec.structs.replace(inside, body=one.body) == one


def test_everything_a_store_does_it_does_sealed(run, sealed):
    store = sealed.documents
    assert run(store.append([document("a", parent="p"), document("b", parent="p")])) == 1
    assert [one.body for one in run(store.pieces("t", "k", "p", after=1))] == [b"plain text"]
    assert run(store.replace(document("b", b"changed", parent="p", number=2))) is True
    assert run(store.pieces("t", "k", "p", newest_first=True, limit=1))[0].body == b"changed"
    assert run(store.put([document("a")], new=True)) is False
    assert {one.body for one in run(store.recent("t", "k", limit=9))} == {b"plain text", b"changed"}
    assert run(store.delete("t", "k", ["a"])) == 1
    assert run(store.delete_pieces("t", "k", "p")) == 1
    assert sealed.unreadable == []


def test_large_bodies_are_sealed_beside_the_loop(run, sealed):
    body = bytes(range(256)) * (OFF_LOOP_BYTES // 128)

    async def both() -> None:
        await asyncio.gather(*(sealed.documents.put([document(f"{n}", body)]) for n in range(4)))
        await sealed.vault.keep("t", {"large": body}, 60)

    run(both())
    assert [one.body for one in run(sealed.documents.get("t", "k", ["0", "3"]))] == [body, body]
    assert run(sealed.vault.recall("t", ["large"])) == {"large": body}


def test_what_cannot_be_opened_is_not_there_and_is_reported(run, sealed):
    run(sealed.documents.put([document("a", parent="p", number=1), document("b", parent="p", number=2)]))
    run(sealed.vault.keep("t", {"n": b"1"}, 3600))
    stranger = Sealed(sealed.behind, b"another secret")
    assert run(stranger.documents.get("t", "k", ["a"])) == []
    assert run(stranger.documents.pieces("t", "k", "p")) == []
    assert run(stranger.documents.recent("t", "k", limit=9)) == []
    assert run(stranger.vault.recall("t", ["n"])) == {}
    assert stranger.unreadable == ["k"] * 5 + ["vault"]


def test_one_that_was_tampered_with_does_not_hide_the_others(run, sealed):
    run(sealed.documents.put([document("a"), document("b")]))
    (inside,) = run(sealed.behind.documents.get("t", "k", ["a"]))
    run(sealed.behind.documents.put([msgspec.structs.replace(inside, body=inside.body[:-1] + b"\0\0")]))
    assert [one.id for one in run(sealed.documents.get("t", "k", ["a", "b"]))] == ["b"]
    assert sealed.unreadable == ["k"]


def test_a_row_of_another_caller_put_in_ones_own_place_does_not_open(run):
    """T19"""
    engine = MemoryEngine()
    sealed = Sealed(engine)
    run(sealed.documents.put([Document("victim", "k", "a", b"theirs")]))
    run(sealed.vault.keep("victim", {"n": b"theirs"}, 3600))
    (inside,) = run(engine.documents.get("victim", "k", ["a"]))
    entry = run(engine.vault.recall("victim", ["n"]))["n"]
    run(
        engine.load(
            [msgspec.structs.replace(inside, caller="thief"), VaultEntry("thief", "n", entry, 10**14)]
        )
    )
    assert run(sealed.documents.get("thief", "k", ["a"])) == []
    assert run(sealed.vault.recall("thief", ["n"])) == {}


def test_the_vault_is_sealed_too(run, sealed):
    run(sealed.vault.keep("t", {"a": b"signature", "b": b""}, 3600))
    assert run(sealed.vault.recall("t", ["a", "b", "c"])) == {"a": b"signature", "b": b""}
    assert run(sealed.vault.recall("u", ["a"])) == {}
    assert b"signature" not in run(sealed.behind.vault.recall("t", ["a"]))["a"]
