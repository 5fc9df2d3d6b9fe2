"""Random histories of documents, on a store and on a dict: they tell the same."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.stores.conftest import open_engine
from wireglot.stores.records import Document

NAMES = st.sampled_from(["a", "b", "c", "d"])
PARENTS = st.sampled_from(["", "p", "q"])
TENANTS = st.sampled_from(["t", "u"])
ENDS = st.sampled_from([0, 0, 0, 1, 10**14])

DOCUMENTS = st.builds(
    Document,
    caller=TENANTS,
    kind=st.just("k"),
    id=NAMES,
    body=st.binary(max_size=4),
    parent=PARENTS,
    number=st.integers(0, 3),
    created=st.integers(0, 3),
    expires=ENDS,
)


class Histories(RuleBasedStateMachine):
    kind = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.engine = self.runner.run(open_engine(self.kind, Path(self.folder.name)))
        self.store = self.engine.documents
        self.model: dict[tuple[str, str], Document] = {}

    def teardown(self) -> None:
        self.runner.run(self.engine.close())
        self.runner.close()
        self.folder.cleanup()

    def keep(self, document: Document) -> None:
        self.model[document.caller, document.id] = document

    def live(self, caller: str) -> list[Document]:
        return [d for d in self.model.values() if d.caller == caller and d.expires != 1]

    @rule(documents=st.lists(DOCUMENTS, max_size=3), new=st.booleans())
    def put(self, documents, new):
        there = any(d.id == o.id for d in documents for o in self.live(d.caller))
        assert self.runner.run(self.store.put(documents, new=new)) is not (new and there)
        if not (new and there):
            for document in documents:
                self.keep(document)

    @rule(document=DOCUMENTS)
    def replace(self, document):
        there = any(document.id == other.id for other in self.live(document.caller))
        assert self.runner.run(self.store.replace(document)) is there
        if there:
            self.keep(document)

    @rule(
        caller=TENANTS,
        ids=st.lists(NAMES, min_size=1, max_size=3, unique=True),
        parent=st.sampled_from(["p", "q"]),
    )
    def append(self, caller, ids, parent):
        pieces = [Document(caller, "k", id, b"", parent=parent, created=1) for id in ids]
        last = max((d.number for d in self.live(caller) if d.parent == parent), default=0)
        # A store may or may not count on from what has expired and is not swept yet.
        unswept = max(
            (d.number for d in self.model.values() if d.caller == caller and d.parent == parent), default=0
        )
        first = self.runner.run(self.store.append(pieces))
        assert first in (last + 1, unswept + 1)
        for number, piece in enumerate(pieces, first):
            self.keep(msgspec.structs.replace(piece, number=number))

    @rule(caller=TENANTS, ids=st.lists(NAMES, max_size=3, unique=True))
    def delete(self, caller, ids):
        there = sum(d.id in ids for d in self.live(caller))
        assert self.runner.run(self.store.delete(caller, "k", ids)) == there
        for id in ids:
            self.model.pop((caller, id), None)

    @rule(caller=TENANTS, parent=st.sampled_from(["p", "q"]))
    def delete_pieces(self, caller, parent):
        there = sum(d.parent == parent for d in self.live(caller))
        assert self.runner.run(self.store.delete_pieces(caller, "k", parent)) == there
        self.model = {k: d for k, d in self.model.items() if (d.caller, d.parent) != (caller, parent)}

    @rule(caller=TENANTS)
    def read(self, caller):
        live = {d.id: d for d in self.live(caller)}
        found = self.runner.run(self.store.get(caller, "k", ["a", "b", "c", "d"]))
        assert {d.id: d for d in found} == live
        newest = sorted(live.values(), key=lambda d: (d.created, d.id), reverse=True)
        assert self.runner.run(self.store.recent(caller, "k", limit=3)) == newest[:3]
        for seen in newest:
            place = (seen.created, seen.id)
            rest = [d for d in newest if (d.created, d.id) < place]
            assert self.runner.run(self.store.recent(caller, "k", limit=9, before=place)) == rest

    @rule(
        caller=TENANTS, parent=st.sampled_from(["p", "q"]), after=st.integers(0, 3), before=st.integers(0, 4)
    )
    def read_pieces(self, caller, parent, after, before):
        expected = {
            (d.number, d.id)
            for d in self.live(caller)
            if d.parent == parent and d.number > after and (not before or d.number < before)
        }
        found = self.runner.run(self.store.pieces(caller, "k", parent, after=after, before=before))
        assert {(d.number, d.id) for d in found} == expected
        assert [d.number for d in found] == sorted(d.number for d in found)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_documents_behave_like_a_dict(kind):
    machine = type("Histories", (Histories,), {"kind": kind})
    run_state_machine_as_test(machine, settings=settings(max_examples=15, stateful_step_count=25))
