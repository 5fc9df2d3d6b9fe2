"""A store as lines, into another store."""

from __future__ import annotations

import json
import os

import pytest

from wireglot.stores import transfer
from wireglot.stores.memory import MemoryEngine
from wireglot.stores.records import Document, KeyQuotas, KeyRow, UsageRow, VaultEntry
from wireglot.stores.sqlite import SqliteEngine
from wireglot.stores.transfer import BadTransfer, export_lines, import_lines

FAR = 10**14

RECORDS = [
    KeyRow("team", "d" * 64, "wg-abc", 1, models=("m",), limits=KeyQuotas(concurrent=3)),
    *(
        Document("t", "k", f"d{n}", os.urandom(50), parent="p", number=n, created=n, expires=FAR)
        for n in range(700)
    ),
    Document("\ud800\0", "k", "é🙂\u2028", b"", created=1),
    VaultEntry("t", "n", b"\x80\n", FAR),
    *(UsageRow(f"r{n}", "t", n, losses=("x",), outcome="ok", finished=n + 1, cost=n) for n in range(20)),
    UsageRow("open", "t", 6, session="\udfff"),
]


def lines_of(run, engine):
    async def everything() -> list[bytes]:
        return [line async for line in export_lines(engine)]

    return run(everything())


def exported(run, engine) -> list:
    async def everything() -> list:
        return [record async for record in engine.export()]

    return sorted(run(everything()), key=repr)


def filled(run, engine):
    run(engine.load(RECORDS))
    return engine


def test_sqlite_to_memory_to_sqlite_nothing_changes(run, tmp_path):
    first = filled(run, run(SqliteEngine.open(str(tmp_path / "a.db"))))
    lines = lines_of(run, first)
    memory = MemoryEngine()
    assert run(import_lines(memory, lines)) == len(RECORDS)
    last = run(SqliteEngine.open(str(tmp_path / "b.db")))
    assert run(import_lines(last, export_lines(memory))) == len(RECORDS)
    assert exported(run, last) == sorted(RECORDS, key=repr)
    run(first.close())
    run(last.close())


def test_every_store_can_be_carried_to_memory(run, engine):
    filled(run, engine)
    memory = MemoryEngine()
    assert run(import_lines(memory, export_lines(engine))) == len(RECORDS)
    assert exported(run, memory) == sorted(RECORDS, key=repr)


def test_lines_are_json_with_a_header_and_an_end(run):
    lines = lines_of(run, filled(run, MemoryEngine()))
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    assert json.loads(lines[0]) == {"wireglot_store": 1}
    assert json.loads(lines[-1]) == {"end": len(RECORDS)}
    kinds = [next(iter(json.loads(line))) for line in lines[1:-1]]
    assert set(kinds) == {"document", "vault", "usage", "key"}


def test_an_empty_store_is_a_header_and_an_end(run):
    lines = lines_of(run, MemoryEngine())
    assert len(lines) == 2
    assert run(import_lines(MemoryEngine(), lines)) == 0


def test_the_same_lines_may_come_again(run, engine):
    lines = lines_of(run, filled(run, MemoryEngine()))
    run(import_lines(engine, lines))
    assert run(import_lines(engine, lines)) == len(RECORDS)
    assert len(lines_of(run, engine)) == len(lines)


@pytest.mark.parametrize(
    "bad",
    [
        b"not json\n",
        b'{"document": {"tenant": "t"}}\n',
        b'{"document": {"tenant": "t", "kind": "k", "id": "x", "body": "***"}}\n',
        b'{"unknown": 1}\n',
        b"{}\n",
        b'{"usage": {"id": 5, "caller": "c", "started": 1}}\n',
        b'{"vault": null, "end": null}\n',
        b'{"usage": {"id": "\\ud800", "caller": 7}}\n',
        b"\xff\xfe\n",
    ],
)
def test_a_bad_line_is_named_and_nothing_of_its_batch_is_written(run, bad):
    good = lines_of(run, filled(run, MemoryEngine()))
    lines = [*good[:601], bad, *good[601:]]
    memory = MemoryEngine()
    with pytest.raises(BadTransfer, match=r"^line 602: "):
        run(import_lines(memory, lines))
    # The batch before it is whole.
    assert len(lines_of(run, memory)) - 2 == transfer.BATCH_RECORDS


@pytest.mark.parametrize("header", [b"", b"nonsense\n", b"{}\n", b'{"document": {}}\n'])
def test_what_does_not_begin_like_an_export_is_refused(run, header):
    with pytest.raises(BadTransfer, match="line 1"):
        run(import_lines(MemoryEngine(), [header] if header else []))


def test_an_export_of_another_format_is_refused(run):
    with pytest.raises(BadTransfer, match="format 9"):
        run(import_lines(MemoryEngine(), [b'{"wireglot_store": 9}\n']))


def test_a_file_that_was_cut_short_is_reported(run):
    lines = lines_of(run, filled(run, MemoryEngine()))
    with pytest.raises(BadTransfer, match="cut short after 9 records"):
        run(import_lines(MemoryEngine(), lines[:10]))
    with pytest.raises(BadTransfer, match=f"tells of {len(RECORDS)} records, but {len(RECORDS) - 1} came"):
        run(import_lines(MemoryEngine(), [*lines[:5], *lines[6:]]))
    with pytest.raises(BadTransfer, match="nothing may come after"):
        run(import_lines(MemoryEngine(), [*lines, lines[3]]))
