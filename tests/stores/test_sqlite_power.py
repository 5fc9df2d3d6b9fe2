"""Loss of power: what was written and not flushed may be gone, in part and in any order."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import apsw
import pytest

from wireglot.stores.records import Document, UsageQuery, UsageRow
from wireglot.stores.sqlite import SqliteEngine


class Disk(apsw.VFS):
    """The file system, with a memory of what it has been asked to keep and what it was asked to flush."""

    def __init__(self) -> None:
        self.below = apsw.vfs_names()[0]
        super().__init__("disk of the test", self.below, makedefault=True)
        self.flushed: dict[str, bytearray] = {}
        self.pending: dict[str, list[tuple[int, bytes]]] = {}

    def xOpen(self, name, flags):
        return File(self, name, flags)

    def after_power_loss(self, chance: random.Random) -> dict[str, bytes]:
        """The files as they may be found."""
        found = {}
        for name, flushed in self.flushed.items():
            content = bytearray(flushed)
            survivors = [write for write in self.pending[name] if chance.random() < 0.5]
            for offset, data in survivors:
                put(content, offset, data)
            found[name] = bytes(content)
        return found


class File(apsw.VFSFile):
    def __init__(self, disk: Disk, name, flags) -> None:
        super().__init__(disk.below, name, flags)
        self.disk = disk
        self.name = Path(str(name.filename() if isinstance(name, apsw.URIFilename) else name)).name
        disk.flushed.setdefault(self.name, bytearray())
        disk.pending.setdefault(self.name, [])

    def xWrite(self, data, offset):
        super().xWrite(data, offset)
        self.disk.pending[self.name].append((offset, bytes(data)))

    def xTruncate(self, size):
        super().xTruncate(size)
        del self.disk.flushed[self.name][size:]

    def xSync(self, flags):
        super().xSync(flags)
        for offset, data in self.disk.pending[self.name]:
            put(self.disk.flushed[self.name], offset, data)
        self.disk.pending[self.name].clear()


def put(content: bytearray, offset: int, data: bytes) -> None:
    content.extend(bytes(max(0, offset + len(data) - len(content))))
    content[offset : offset + len(data)] = data


@pytest.fixture
def disk():
    shim = Disk()
    yield shim
    shim.unregister()
    apsw.set_default_vfs(shim.below)


def test_what_was_acknowledged_survives_a_loss_of_power(run, disk, tmp_path):
    """FAULTS 98"""
    chance = random.Random(7)
    path = tmp_path / "store.db"
    acknowledged: set[str] = set()
    moments: list[tuple[set[str], dict[str, bytes]]] = []

    async def caller(engine: SqliteEngine, who: int) -> None:
        for turn in range(25):
            id = f"{who}-{turn}"
            await engine.documents.put([Document("t", "k", id, chance.randbytes(6000))])
            await engine.ledger.apply([UsageRow(id, "c", 1, outcome="ok")])
            acknowledged.add(id)
            if chance.random() < 0.15:
                moments.append((set(acknowledged), disk.after_power_loss(chance)))

    async def work() -> None:
        engine = await SqliteEngine.open(str(path))
        # Often, so that some of the moments lie within one.
        await engine._database.write(lambda c: c.wal_autocheckpoint(20))
        await asyncio.gather(*(caller(engine, who) for who in range(6)))
        await engine.close()

    run(work())
    assert len(moments) > 10
    for number, (expected, files) in enumerate(moments):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        for name in ("store.db", "store.db-wal"):
            (folder / name).write_bytes(files[name])
        engine = run(SqliteEngine.open(str(folder / "store.db")))
        assert {row.id for row in run(engine.ledger.rows(UsageQuery(), limit=10**6))} >= expected
        assert {one.id for one in run(engine.documents.recent("t", "k", limit=10**6))} >= expected
        assert run(engine._database.report(lambda c: c.pragma("integrity_check"))) == "ok"
        run(engine.close())


def test_reasoning_waits_for_no_flush_and_is_flushed_with_the_next_write(run, disk, tmp_path):
    """The end of every answer that bears reasoning waits until it is kept: another process finds it at once,
    a loss of power may cost it until anything else is written."""
    path = tmp_path / "store.db"

    async def work() -> None:
        engine = await SqliteEngine.open(str(path))
        other = await SqliteEngine.open(str(path))
        await engine.documents.put([Document("t", "k", "before", b"x")])
        assert disk.pending["store.db-wal"] == []
        await engine.vault.keep("c", {"name": b"thoughts"}, 60)
        assert disk.pending["store.db-wal"] != []
        assert await other.vault.recall("c", ["name"]) == {"name": b"thoughts"}
        await engine.documents.put([Document("t", "k", "behind", b"x")])
        assert disk.pending["store.db-wal"] == []
        await other.close()
        await engine.close()

    run(work())
