"""The journal of usage: FAULTS rule L, rows 93, 95, 98, 101."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import until
from wireglot.stores.journal.disk import Disk
from wireglot.stores.journal.files import BEGIN, SUFFIX, orphans
from wireglot.stores.journal.journal import Journal, JournalFull
from wireglot.stores.journal.sync import Timing
from wireglot.stores.records import UsageRow

SOON = Timing(retry=0.01)


def row(number: int, outcome: Any = "") -> UsageRow:
    return UsageRow(
        f"req_{number}", "alice", 1_000 + number, "one", model="m" * (number % 50), outcome=outcome
    )


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob(f"*{SUFFIX}"))


def within(work: Callable[[], Any]) -> None:
    asyncio.run(work())


def read_all(journal: Journal) -> list[UsageRow]:
    found: list[UsageRow] = []
    while True:
        rows, position = journal.read(7)
        if not rows:
            return found
        found += rows
        journal.applied(position)


def test_rows_come_back_in_order_over_many_files(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=1024 * 1024, segment=8 * 1024)
        await journal.start()
        await until(lambda: len(files(tmp_path)) == 128)
        written = [row(number) for number in range(500)]
        for each in written:
            journal.append(each)
        assert read_all(journal) == written
        assert journal.pending == 0
        await journal.close()

    within(work)


def test_a_journal_is_used_again_and_again_in_the_room_it_was_given(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024, segment=16 * 1024)
        await journal.start()
        await until(lambda: len(files(tmp_path)) == 4)
        for turn in range(20):
            written = [row(turn * 100 + number) for number in range(100)]
            for each in written:
                journal.append(each)
            assert read_all(journal) == written
        assert sum(path.stat().st_size for path in files(tmp_path)) == 64 * 1024
        await journal.close()

    within(work)


def test_nothing_is_left_behind_by_a_process_that_ends_with_all_applied(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024)
        await journal.start()
        journal.append(row(1))
        read_all(journal)
        await journal.close()

    within(work)
    assert not (tmp_path / "one").exists()


def test_the_folder_is_made_with_all_above_it_and_is_nobody_elses_to_read(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "journal"
    before = os.umask(0)

    async def work() -> None:
        journal = Journal(folder, "one", limit=64 * 1024, segment=32 * 1024)
        await journal.start()
        await until(lambda: len(files(folder)) > 0)
        assert {path.stat().st_mode & 0o777 for path in (folder, folder / "one")} == {0o700}
        assert {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()} == {0o600}
        await journal.close()

    try:
        within(work)
    finally:
        os.umask(before)


def test_what_was_not_applied_is_found_by_the_next_process(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024)
        await journal.start()
        for number in range(10):
            journal.append(row(number))
        rows, position = journal.read(4)
        assert len(rows) == 4
        journal.applied(position)
        await journal.close()

    within(work)
    [orphan] = orphans(tmp_path, "two")
    assert orphan.instance == "one"
    # The whole file is read again: applying twice changes nothing.
    assert [each for rows in orphan.rows() for each in rows] == [row(number) for number in range(10)]
    orphan.remove()
    assert not (tmp_path / "one").exists()
    assert orphans(tmp_path, "two") == []


def test_a_living_process_keeps_its_journal_and_two_takers_never_share_one(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024)
        await journal.start()
        journal.append(row(1))
        assert orphans(tmp_path, "two") == []
        await journal.close()

    within(work)
    [orphan] = orphans(tmp_path, "two")
    assert orphans(tmp_path, "three") == []
    orphan.release()
    [again] = orphans(tmp_path, "three")
    again.remove()


def test_rows_of_a_files_last_use_are_not_rows_of_this_one(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024, segment=16 * 1024)
        await journal.start()
        await until(lambda: len(files(tmp_path)) == 4)
        for turn in range(12):  # every file has been full once
            for number in range(60):
                journal.append(row(turn * 60 + number))
            read_all(journal)
        journal.append(row(10_000))
        await journal.close()

    within(work)
    [orphan] = orphans(tmp_path, "two")
    found = [int(each.id.removeprefix("req_")) for rows in orphan.rows() for each in rows]
    # Only the file that was being written is read, from its beginning, and nothing behind its last row.
    assert found == [*range(found[0], 720), 10_000]
    assert found[0] > 360
    orphan.remove()


@pytest.mark.parametrize("damage", ["cut", "bit", "length", "header"])
def test_a_torn_or_damaged_row_ends_its_file_and_no_row_before_it_is_lost(
    tmp_path: Path, damage: str
) -> None:
    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024)
        await journal.start()
        for number in range(20):
            journal.append(row(number))
        await journal.close()

    within(work)
    [path] = [path for path in files(tmp_path) if path.read_bytes()[:4] == b"WGJ1"]
    data = bytearray(path.read_bytes())
    end = data.rindex(b"req_15")
    match damage:
        case "cut":
            del data[end:]
        case "bit":
            data[end] ^= 1
        case "length":
            start = data.rindex(b"req_14")
            data[start + 200 : start + 204] = b"\xff\xff\xff\xff"
        case _:
            data[:BEGIN] = bytes(BEGIN)
    path.write_bytes(data)
    [orphan] = orphans(tmp_path, "two")
    found = [each for rows in orphan.rows() for each in rows]
    least = {"cut": 15, "bit": 15, "length": 14, "header": 0}[damage]
    assert found == [row(number) for number in range(len(found))]
    assert least <= len(found) < 20
    orphan.remove()


def test_a_full_journal_refuses_rows_and_takes_them_again_when_the_store_has_caught_up(
    tmp_path: Path,
) -> None:
    """FAULTS 93: what was promised fits, what does not fit is refused loudly."""

    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024, segment=16 * 1024)
        await journal.start()
        await until(lambda: len(files(tmp_path)) == 4)
        written = []
        with contextlib.suppress(JournalFull):
            for number in range(10_000):
                journal.append(row(number), leave=1024)
                written.append(row(number))
        assert 100 < len(written) < 10_000
        assert not journal.trouble
        journal.append(row(20_000))  # what was left for earlier promises
        written.append(row(20_000))
        assert read_all(journal) == written
        assert journal.takes(1024)
        journal.append(row(20_001), leave=1024)
        await journal.close()

    within(work)


class FailingDisk(Disk):
    """Refuses to write, to reserve beyond so many files, or to sync, while it is asked to."""

    def __init__(self) -> None:
        self.refuses_writes = False
        self.refuses_syncs = False
        self.files_left = 1000

    def reserve(self, fd: int, size: int) -> None:
        if not self.files_left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.files_left -= 1
        super().reserve(fd, size)

    def write(self, fd: int, data: bytes | bytearray, at: int) -> None:
        if self.refuses_writes:
            raise OSError(errno.EIO, "Input/output error")
        super().write(fd, data, at)

    def sync(self, fd: int) -> None:
        if self.refuses_syncs:
            raise OSError(errno.EIO, "Input/output error")
        super().sync(fd)


def test_a_disk_that_refuses_to_write_is_reported_and_found_out_when_it_works_again(tmp_path: Path) -> None:
    """FAULTS 93: ENOSPC and EIO."""
    disk = FailingDisk()

    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024, disk=disk, timing=SOON)
        await journal.start()
        journal.append(row(1))
        disk.refuses_writes = True
        with pytest.raises(JournalFull, match="Input/output error"):
            journal.append(row(2))
        assert not journal.takes()
        await journal.synced(journal.appended)  # nobody waits for a disk that is gone
        disk.refuses_writes = False
        await until(lambda: not journal.trouble)
        journal.append(row(3))
        assert read_all(journal) == [row(1), row(3)]
        await journal.close()

    within(work)


def test_a_disk_that_fills_up_takes_none_of_the_room_that_was_made(tmp_path: Path) -> None:
    """FAULTS 93: the room is there before it is needed; what could not be made is made when there is space."""
    disk = FailingDisk()
    disk.files_left = 2

    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024, segment=16 * 1024, disk=disk, timing=SOON)
        await journal.start()
        await until(lambda: disk.files_left == 0 and journal.room > 20 * 1024)
        assert not journal.trouble
        number = 0
        while journal.takes():
            number += 1
            journal.append(row(number))
        assert number > 200
        disk.files_left = 2
        await until(journal.takes)
        journal.append(row(number + 1))
        assert read_all(journal) == [row(n) for n in range(1, number + 2)]
        await journal.close()

    within(work)


def test_a_sync_that_fails_lets_those_who_wait_go_on_and_says_why(tmp_path: Path) -> None:
    disk = FailingDisk()
    disk.refuses_syncs = True

    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024, disk=disk, timing=SOON)
        await journal.start()
        sequence = journal.append(row(1))
        await journal.synced(sequence)
        assert journal.trouble == "Input/output error"
        disk.refuses_syncs = False
        await until(lambda: not journal.trouble)
        await journal.synced(journal.append(row(2)))
        assert read_all(journal) == [row(1), row(2)]
        await journal.close()

    within(work)


def test_a_row_is_synced_when_it_is_said_to_be(tmp_path: Path) -> None:
    """FAULTS 98: no one is informed that a row is on the disk before a sync that began after it was written."""
    synced: list[int] = []
    journal: Journal

    class Watched(Disk):
        def sync(self, fd: int) -> None:
            before = journal.appended  # what this sync covers
            super().sync(fd)
            synced.append(before)

    async def wait(sequence: int) -> None:
        await journal.synced(sequence)
        assert max(synced) >= sequence

    async def work() -> None:
        nonlocal journal
        journal = Journal(tmp_path, "one", limit=1024 * 1024, segment=8 * 1024, disk=Watched())
        await journal.start()
        waiting = []
        for number in range(300):
            waiting.append(asyncio.create_task(wait(journal.append(row(number)))))
            if number % 7 == 0:
                await asyncio.sleep(0)
            if number % 31 == 0:
                waiting.pop().cancel()  # a client that leaves takes nobody else's wait along
        await asyncio.gather(*waiting)
        assert len(synced) < 300, "many rows share a sync"
        await journal.close()

    within(work)


class Volatile(Disk):
    """What a file holds after the power has gone: the writes before a sync that succeeded. One that fails
    leaves nothing to be written by the next, as a kernel does."""

    def __init__(self) -> None:
        self.failing = False
        self.held: dict[int, bytearray] = {}
        self._dirty: dict[int, list[tuple[bytes, int]]] = {}
        self.writes = 0

    def write(self, fd: int, data: bytes | bytearray, at: int) -> None:
        self.writes += 1
        self._dirty.setdefault(fd, []).append((bytes(data), at))
        super().write(fd, data, at)

    def sync(self, fd: int) -> None:
        dirty = self._dirty.pop(fd, [])
        if self.failing:
            raise OSError(errno.EIO, "Input/output error")
        image = self.held.setdefault(fd, bytearray(64 * 1024))
        for data, at in dirty:
            image[at : at + len(data)] = data

    def has(self, each: UsageRow) -> bool:
        return any(each.id.encode() in image for image in self.held.values())


def test_rows_of_a_sync_that_failed_are_written_again_before_they_are_called_safe(
    tmp_path: Path,
) -> None:
    """FAULTS 93: after EIO the next sync has nothing to do, and says that all is well."""
    disk = Volatile()

    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024, disk=disk, timing=SOON, segment=16 * 1024)
        await journal.start()
        await until(lambda: len(files(tmp_path)) == 4)
        number = 0
        while len(journal._written) < 2:  # over the end of a file
            number += 1
            journal.append(row(number))
        disk.failing = True
        await journal.synced(journal.append(row(1000)))
        assert not journal.holds(journal.appended)
        disk.failing = False
        await until(lambda: not journal.trouble)
        assert journal.holds(journal.appended)
        assert all(disk.has(row(each)) for each in (1, number, 1000))
        assert journal.damaged == 0
        await journal.synced(journal.append(row(1001)))
        assert disk.has(row(1001))
        await journal.close()

    within(work)


def test_rows_that_cannot_be_read_back_after_a_failed_sync_are_counted_and_never_called_safe(
    tmp_path: Path,
) -> None:
    """FAULTS 93"""
    disk = Volatile()

    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024, disk=disk, timing=SOON)
        await journal.start()
        await journal.synced(journal.append(row(1)))
        disk.failing = True
        await journal.synced(lost := journal.append(row(2)))
        [segment] = journal._written
        os.pwrite(segment.fd, bytes(segment.end - segment.safe), segment.safe)  # the cache has gone too
        disk.failing = False
        await until(lambda: not journal.trouble)
        assert journal.damaged == 1
        assert journal.holds(1)
        assert not journal.holds(lost)
        await journal.synced(last := journal.append(row(3)))
        assert journal.holds(last)
        await journal.close()

    within(work)


def test_what_is_intended_in_one_turn_of_the_loop_is_one_write(
    tmp_path: Path,
) -> None:
    disk = Volatile()

    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024, disk=disk, timing=SOON)
        await journal.start()
        await journal.synced(journal.append(row(0)))
        before = disk.writes
        waiting = [journal.synced(journal.append(row(number), gather=True)) for number in range(1, 11)]
        assert disk.writes == before
        await asyncio.gather(*waiting)
        assert disk.writes == before + 1
        assert all(disk.has(row(number)) for number in range(11))
        # One that must be there takes along those before it.
        waiting = [journal.synced(journal.append(row(number), gather=True)) for number in range(11, 14)]
        journal.append(row(14))
        assert disk.writes == before + 2
        assert read_all(journal) == [row(number) for number in range(15)]
        await asyncio.gather(*waiting)
        journal.append(row(15), gather=True)
        assert read_all(journal) == [row(15)]
        await journal.close()

    within(work)


def test_intents_that_could_not_be_written_are_written_when_the_disk_is_back(tmp_path: Path) -> None:
    disk = FailingDisk()

    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024, disk=disk, timing=SOON)
        await journal.start()
        journal.append(row(1))
        disk.refuses_writes = True
        sequence = journal.append(row(2), gather=True)
        await journal.synced(sequence)  # nobody waits for a disk that is gone
        assert journal.trouble
        assert not journal.holds(sequence)
        with pytest.raises(JournalFull):
            journal.append(row(3))
        assert read_all(journal) == [row(1)]
        disk.refuses_writes = False
        await until(lambda: journal.holds(sequence))
        journal.append(row(4))
        assert read_all(journal) == [row(2), row(4)]
        await journal.close()

    within(work)


def test_who_waits_alone_is_not_made_to_wait_for_others(tmp_path: Path) -> None:
    slept: list[float] = []

    async def work() -> None:
        timing = Timing(gather=1000.0, sleep=slept.append)
        journal = Journal(tmp_path, "one", limit=64 * 1024, timing=timing, disk=Disk())
        await journal.start()
        for number in range(20):
            await journal.synced(journal.append(row(number), gather=True))
            journal.append(row(number, "ok"))
            journal.syncer.ask_later()
        assert slept == []
        # It takes the whole window for a crowd to be gathered once more.
        for _ in range(2):
            await asyncio.gather(
                *(journal.synced(journal.append(row(number), gather=True)) for number in range(5))
            )
        assert len(slept) == 1
        await journal.close()

    within(work)


def test_rows_are_read_back_from_the_files_where_they_are_too_many_to_be_at_hand(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024, segment=16 * 1024, recent=20)
        await journal.start()
        await until(lambda: len(files(tmp_path)) == 4)
        chance, written, found = random.Random(3), 0, []
        for _ in range(300):
            for _ in range(chance.choice([1, 3, 40])):
                journal.append(row(written), gather=chance.random() >= 0.5)
                written += 1
            for _ in range(chance.choice([0, 1, 30])):
                rows, position = journal.read(chance.choice([1, 5, 50]))
                if rows and chance.random() < 0.8:  # else as where the store failed
                    found += rows
                    journal.applied(position)
            if not journal.takes(4096):
                found += read_all(journal)
        found += read_all(journal)
        assert found == [row(number) for number in range(written)]
        assert (journal.pending, journal.damaged) == (0, 0)
        await journal.close()

    within(work)


def test_who_comes_to_wait_late_is_not_held_up_by_a_later_row(tmp_path: Path) -> None:
    """Whose provider answers first waits first; the disk takes rows in the order in which they came."""

    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024)
        journal._loop = journal.syncer._loop = asyncio.get_running_loop()
        journal.syncer._open()
        first, second = journal.append(row(1)), journal.append(row(2))
        late = asyncio.ensure_future(journal.synced(second))
        early = asyncio.ensure_future(journal.synced(first))
        journal.syncer.covered = first
        journal.syncer.settle(first)
        assert (early.done(), late.done()) == (True, False)
        assert [journal.awaits_disk(each) for each in (first, second)] == [False, True]
        await journal.close()
        assert late.done()

    within(work)


def test_a_disk_that_does_not_answer_is_not_waited_for_for_ever_where_that_is_said(tmp_path: Path) -> None:
    """FAULTS 93: those who wait are counted and go on; the journal goes on to take rows."""
    free = threading.Event()

    class Stuck(Disk):
        def sync(self, fd: int) -> None:
            free.wait()
            super().sync(fd)

    async def work() -> None:
        journal = Journal(
            tmp_path, "one", limit=64 * 1024, disk=Stuck(), patient=False, timing=Timing(patience=0.01)
        )
        await journal.start()
        for number in (1, 2):
            await journal.synced(journal.append(row(number)))
            assert (journal.unsynced, journal.trouble) == (number, "")
        assert not journal.holds(1)
        free.set()
        await until(lambda: journal.holds(2))
        await journal.synced(journal.append(row(3)))
        assert journal.unsynced == 2
        await journal.close()

    within(work)


def test_without_a_folder_nothing_is_left_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def work() -> None:
        journal = Journal(None, "one", limit=64 * 1024, sync=False)
        await journal.start()
        journal.append(row(1))
        await until(lambda: list(tmp_path.iterdir()) == [])  # another file may just be made
        assert read_all(journal) == [row(1)]
        await journal.close()

    within(work)


def test_without_syncs_no_file_that_is_full_is_held_on_to(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024, sync=False)
        await journal.start()
        for number in range(3000):
            journal.append(row(number))
            if number % 100 == 99:
                read_all(journal)
        assert journal._numbers > 3
        assert not journal.syncer.rolled
        await journal.close()

    within(work)


def test_a_folder_that_cannot_be_written_is_no_error_of_the_start_and_is_used_once_it_can(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("")

    async def work() -> None:
        journal = Journal(tmp_path / "file", "one", limit=64 * 1024)
        await journal.start()
        assert not journal.takes()
        with pytest.raises(JournalFull):
            journal.append(row(1))
        (tmp_path / "file").unlink()
        await until(lambda: journal.takes())
        journal.append(row(2))
        assert read_all(journal) == [row(2)]
        await journal.close()

    within(work)


_WRITER = """
import asyncio, sys
from pathlib import Path
from wireglot.stores.journal.journal import Journal
from wireglot.stores.records import UsageRow

async def work(folder, name):
    journal = Journal(Path(folder), name, limit=8 << 20, segment=64 << 10)
    await journal.start()
    number = 0
    while True:
        number += 1
        journal.append(UsageRow(f"{name}_{number}", "alice", number, name))
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()
        if number % 50 == 0:
            await asyncio.sleep(0)

asyncio.run(work(sys.argv[1], sys.argv[2]))
"""


def test_every_row_that_was_acknowledged_outlives_kill_9(tmp_path: Path) -> None:
    """FAULTS 95: two processes at once, killed at points nobody chose."""
    chance = random.Random(4)
    names = ["one", "two"]
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path), name], stdout=subprocess.PIPE, text=True
        )
        for name in names
    ]
    acknowledged = {}
    for name, writer in zip(names, writers, strict=True):
        assert writer.stdout is not None
        for _ in range(chance.randrange(500, 3000)):
            acknowledged[name] = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        rest = writer.stdout.read().split("\n")[:-1]
        acknowledged[name] = int(rest[-1]) if rest else acknowledged[name]
        writer.wait()
    taken = {orphan.instance: orphan for orphan in orphans(tmp_path, "three")}
    for name, last in acknowledged.items():
        found = [each.id for rows in taken[name].rows() for each in rows]
        # One more may have been written than its process came to say.
        assert found[:last] == [f"{name}_{number}" for number in range(1, last + 1)]
        assert len(found) <= last + 1
        taken[name].remove()
