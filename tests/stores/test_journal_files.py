"""The pieces of a journal: frames, files, the rows at hand and the thread that syncs, each by itself."""

from __future__ import annotations

import asyncio
import errno
import os
import struct
import zlib
from pathlib import Path

import msgspec
import pytest

from tests.waiting import DEADLINE_SECONDS, until
from wireglot.stores.journal.disk import DISK, Disk, lock_file
from wireglot.stores.journal.files import (
    BEGIN,
    LOCK,
    SUFFIX,
    Segment,
    Shelf,
    frame,
    held,
    number_of,
    orphans,
    read_segment,
    unframe,
)
from wireglot.stores.journal.journal import Journal, JournalFull
from wireglot.stores.journal.sync import Syncer, Timing, reason_of
from wireglot.stores.records import UsageRow


def row(number: int) -> UsageRow:
    return UsageRow(f"req_{number}", "ann", 1000 + number)


def framed(*rows: UsageRow, salt: int = 7) -> bytes:
    buffer = bytearray()
    for each in rows:
        frame(each, buffer, salt)
    return bytes(buffer)


# --- frames


def test_a_frame_is_that_of_every_version() -> None:
    """What a process left behind is read by whichever version comes next."""
    body = msgspec.msgpack.encode(row(1))
    assert framed(row(1)) == struct.pack(">II", len(body), zlib.crc32(body, 7)) + body


def test_rows_come_back_and_so_does_their_length() -> None:
    data = framed(row(1), row(2), row(3))
    assert unframe(data, 7, 10) == ([row(1), row(2), row(3)], len(data))
    assert unframe(data, 7, 2) == ([row(1), row(2)], len(framed(row(1), row(2))))
    assert unframe(data, 7, 0) == ([], 0)
    assert unframe(b"", 7, 10) == ([], 0)


def test_a_frame_that_is_not_whole_or_not_ours_ends_the_rows() -> None:
    one, two = framed(row(1)), framed(row(2))
    for data in (
        one + two[:-1],
        one + two[:8],
        one + two[:7],
        one + framed(row(2), salt=8),
        one + bytes(8) + two,
        one + struct.pack(">II", 3, zlib.crc32(b"abc", 7)) + b"abc" + two,
    ):
        assert unframe(data, 7, 10) == ([row(1)], len(one))


def test_a_row_that_cannot_be_written_adds_nothing() -> None:
    buffer = bytearray(framed(row(1)))
    with pytest.raises(UnicodeEncodeError):
        frame(UsageRow("req", "\ud800", 1), buffer, 7)
    assert bytes(buffer) == framed(row(1))


# --- files


def segment(path: Path, size: int = 4096, disk: Disk = DISK) -> Segment:
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    return Segment.create(fd, size, path, disk)


def test_a_file_has_its_size_from_the_beginning_and_a_header_when_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "a"
    made = segment(path)
    assert path.stat().st_size == 4096
    assert number_of(path) == 0
    made.begin(5)
    assert number_of(path) == 5
    assert path.read_bytes()[:BEGIN] == struct.pack(">4sIQ", b"WGJ1", made.salt, 5)
    assert (made.end, made.safe, BEGIN) == (16, 16, 16)
    made.put(framed(row(1), salt=made.salt))
    made.put(framed(row(2), salt=made.salt))
    assert read_segment(path) == [row(1), row(2)]
    made.forget()
    assert number_of(path) == 0
    os.close(made.fd)


def test_every_use_of_a_file_has_a_salt_of_its_own(tmp_path: Path) -> None:
    made = segment(tmp_path / "a")
    salts = set()
    for number in range(1, 20):
        made.begin(number)
        salts.add(made.salt)
    assert len(salts) > 15
    assert max(salts) > 2**24
    os.close(made.fd)


def test_rows_are_read_from_a_place_up_to_so_many_bytes(tmp_path: Path) -> None:
    made = segment(tmp_path / "a")
    made.begin(1)
    first, second = framed(row(1), salt=made.salt), framed(row(2), salt=made.salt)
    made.put(first + second)
    assert made.rows(BEGIN, 10, 4096) == ([row(1), row(2)], made.end)
    assert made.rows(BEGIN, 1, 4096) == ([row(1)], BEGIN + len(first))
    assert made.rows(BEGIN + len(first), 10, 4096) == ([row(2)], made.end)
    assert made.rows(BEGIN, 10, len(first) + 3) == ([row(1)], BEGIN + len(first))
    assert made.rows(made.end, 10, 4096) == ([], made.end)
    os.close(made.fd)


def test_what_may_not_be_on_the_disk_is_written_again_unless_it_was_lost(tmp_path: Path) -> None:
    written: list[tuple[int, int]] = []

    class Watched(Disk):
        def write(self, fd: int, data: bytes | bytearray, at: int) -> None:
            written.append((at, len(data)))
            super().write(fd, data, at)

    made = segment(tmp_path / "a", disk=Watched())
    made.begin(1)
    first, second = framed(row(1), salt=made.salt), framed(row(2), salt=made.salt)
    made.put(first)
    made.safe = made.end
    made.put(second)
    written.clear()
    assert made.rewrite()
    assert written == [(0, BEGIN), (BEGIN + len(first), len(second))]
    os.pwrite(made.fd, bytes(4), made.safe + 8)
    written.clear()
    assert not made.rewrite()
    assert written == [(0, BEGIN)]
    assert read_segment(tmp_path / "a") == [row(1)]
    os.close(made.fd)


def test_a_file_that_cannot_be_made_leaves_none(tmp_path: Path) -> None:
    class Full(Disk):
        def reserve(self, fd: int, size: int) -> None:
            raise OSError(errno.ENOSPC, "No space")

    with pytest.raises(OSError, match="No space"):
        segment(tmp_path / "a", disk=Full())
    assert not (tmp_path / "a").exists()


def test_what_is_no_file_of_a_journal_has_no_number(tmp_path: Path) -> None:
    for data in (b"", b"WGJ1", struct.pack(">4sIQ", b"WGJ2", 1, 5)):
        (tmp_path / "a").write_bytes(data)
        assert number_of(tmp_path / "a") == 0


def test_a_write_that_was_cut_short_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("wireglot.stores.journal.disk._pwrite", lambda fd, data, at: len(data) - 1)
    with pytest.raises(OSError, match="No space left") as full:
        DISK.write(0, b"abc", 0)
    assert full.value.errno == errno.ENOSPC


def test_a_lock_has_one_holder_until_it_is_closed(tmp_path: Path) -> None:
    one, other = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT, 0o600) for _ in range(2))
    assert lock_file(one)
    assert not lock_file(other)
    os.close(one)
    assert lock_file(other, wait=True)
    os.close(other)


def test_a_folder_is_held_only_meanwhile(tmp_path: Path) -> None:
    other = os.open(tmp_path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    with held(tmp_path):
        assert not lock_file(other)
    assert lock_file(other)
    os.close(other)


# --- a shelf of files


def test_files_are_made_ahead_up_to_their_number_where_they_outlive_the_process(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "one", 4096, 3, DISK)
    shelf.enter()
    assert shelf.room(100) == 0
    for made in range(1, 4):
        assert shelf.lacks
        shelf.make()
        assert len(shelf.spares) == made
        assert shelf.room(100) == made * (4096 - BEGIN - 100)
    assert not shelf.lacks
    shelf.make()  # no more than so many
    assert sorted(path.name for path in tmp_path.rglob(f"*{SUFFIX}")) == ["0.usage", "1.usage", "2.usage"]
    taken = shelf.spares.popleft()
    assert not shelf.lacks
    shelf.leave([taken], keep=False)
    assert not (tmp_path / "one").exists()


def test_files_without_a_name_are_made_when_they_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shelf = Shelf(None, 4096, 3, DISK)
    shelf.enter()
    assert shelf.room(0) == 3 * (4096 - BEGIN)
    lacked = shelf.lacks
    shelf.make()
    assert (lacked, shelf.lacks) == (True, False)
    assert list(tmp_path.iterdir()) == []
    assert shelf.room(0) == 3 * (4096 - BEGIN)
    shelf.leave([shelf.spares.popleft()], keep=True)


def test_who_leaves_rows_leaves_their_files_and_no_others(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "one", 4096, 3, DISK)
    shelf.enter()
    shelf.enter()  # once is enough
    for _ in range(3):
        shelf.make()
    written = [shelf.spares.popleft()]
    shelf.leave(written, keep=True)
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["0.usage", "lock"]
    for each in (*written, *shelf.spares):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(each.fd)
    (found,) = orphans(tmp_path, "two")
    found.release()


def test_what_somebody_put_into_the_folder_is_theirs(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "one", 4096, 1, DISK)
    shelf.enter()
    shelf.make()
    (tmp_path / "one" / "note").write_text("mine")
    shelf.leave((), keep=False)
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["note"]


# --- journals of the dead


def test_only_journals_whose_process_has_gone_are_taken(tmp_path: Path) -> None:
    assert orphans(tmp_path / "nowhere", "me") == []
    for name in ("me", "gone", "half-removed", "full"):
        (tmp_path / name).mkdir()
    (tmp_path / "a file").write_text("")
    for name in ("me", "gone"):
        (tmp_path / name / LOCK).write_text("")
    (tmp_path / "full" / "note").write_text("no lock, and not empty")
    spare, used = segment(tmp_path / "gone" / "0.usage"), segment(tmp_path / "gone" / "1.usage")
    later = segment(tmp_path / "gone" / "2.usage")
    later.begin(1)
    used.begin(2)
    later.put(framed(row(1), salt=later.salt))
    used.put(framed(row(2), salt=used.salt))
    for each in (spare, used, later):
        os.close(each.fd)
    (orphan,) = orphans(tmp_path, "me")
    assert orphan.instance == "gone"
    assert not (tmp_path / "half-removed").exists()
    assert (tmp_path / "full").exists()
    assert not (tmp_path / "gone" / "0.usage").exists(), "it holds no row"
    assert list(orphan.rows()) == [[row(1)], [row(2)]], "in the order in which they were written"
    orphan.remove()
    assert not (tmp_path / "gone").exists()
    orphan.release()  # twice does nothing


# --- the thread that syncs


class Quiet(Disk):
    """Counts syncs."""

    def __init__(self) -> None:
        self.syncs = 0

    def sync(self, fd: int) -> None:
        self.syncs += 1


def syncer(folder: Path, disk: Disk, *, sync: bool = True, timing: Timing | None = None) -> Syncer:
    shelf = Shelf(folder / "one", 4096, 2, disk)
    return Syncer(
        shelf, sync=sync, repair=lambda: True, is_well=lambda: None, timing=timing or Timing(retry=0.01)
    )


def test_nobody_waits_where_nothing_is_synced_or_all_is_or_nothing_can_be(tmp_path: Path) -> None:
    async def work() -> None:
        for made, covered, trouble, waits in (
            (syncer(tmp_path, Quiet(), sync=False), 0, "", False),
            (syncer(tmp_path, Quiet()), 5, "", False),
            (syncer(tmp_path, Quiet()), 4, "no disk", False),
            (syncer(tmp_path, Quiet()), 4, "", True),
        ):
            made._loop = asyncio.get_running_loop()
            made.covered, made.trouble = covered, trouble
            waiting = made.wait_for(5)
            assert bool(made.waiting) is waits
            if waits:
                made.settle(4)
                assert not asyncio.ensure_future(waiting).done()
                made.settle(5)
            await waiting

    asyncio.run(work())


def test_those_who_wait_are_informed_in_their_order_up_to_what_is_safe(tmp_path: Path) -> None:
    async def work() -> None:
        made = syncer(tmp_path, Quiet())
        made._loop = asyncio.get_running_loop()
        futures = [asyncio.ensure_future(made.wait_for(number)) for number in (1, 2, 3)]
        futures[0].cancel()
        made.settle(2)
        assert [future.done() for future in futures] == [True, True, False]
        assert len(made.waiting) == 1
        made.settle(3)
        await asyncio.gather(*futures[1:])

    asyncio.run(work())


def test_a_file_that_is_used_again_meanwhile_is_not_called_safe(tmp_path: Path) -> None:
    made = syncer(tmp_path, Quiet())
    file = segment(tmp_path / "a")
    file.begin(3)
    file.put(b"x" * 10)
    made.settle(0, [(file, 2, file.end)])
    assert file.safe == BEGIN
    made.settle(0, [(file, 3, file.end)])
    assert file.safe == BEGIN + 10
    os.close(file.fd)


def test_many_rows_that_nobody_waits_for_ask_for_one_sync(tmp_path: Path) -> None:
    async def work() -> None:
        disk = Quiet()
        made = syncer(tmp_path, disk, timing=Timing(later=0.01))
        await made.start()
        file = segment(tmp_path / "a", disk=disk)
        file.begin(1)
        made.current = file
        for number in range(1, 11):
            made.appended = number
            made.ask_later()
            made.ask_later()
        assert disk.syncs == 0
        await until(lambda: made.covered == 10)
        assert disk.syncs == 1
        await made.stop()
        os.close(file.fd)

    asyncio.run(work())


def test_without_syncs_nothing_is_asked_for_later(tmp_path: Path) -> None:
    async def work() -> None:
        made = syncer(tmp_path, Quiet(), sync=False)
        made._loop = asyncio.get_running_loop()
        made.ask_later()
        assert made._later is None

    asyncio.run(work())


def test_files_that_were_left_are_synced_before_the_current_one(tmp_path: Path) -> None:
    order: list[str] = []
    names: dict[int, str] = {}

    class Ordered(Disk):
        def sync(self, fd: int) -> None:
            order.append(names.get(fd, "?"))

    async def work() -> None:
        disk = Ordered()
        made = syncer(tmp_path, disk)
        files = [segment(tmp_path / name, disk=disk) for name in "abc"]
        for number, (each, name) in enumerate(zip(files, "abc", strict=True), start=1):
            names[each.fd] = name
            each.begin(number)
            each.put(b"x")
        await made.start()
        made.rolled.extend(files[:2])
        made.current = files[2]
        made.appended = 3
        await made.wait_for(3)
        assert order == ["a", "b", "c"]
        assert not made.rolled
        assert [each.safe for each in files] == [BEGIN + 1] * 3
        await made.stop()
        for each in files:
            os.close(each.fd)

    asyncio.run(work())


def test_the_last_rows_are_synced_when_it_stops(tmp_path: Path) -> None:
    async def work() -> None:
        disk = Quiet()
        made = syncer(tmp_path, disk)
        await made.start()
        file = segment(tmp_path / "a", disk=disk)
        file.begin(1)
        made.current, made.appended = file, 1
        await made.stop()
        assert (disk.syncs, made.covered) == (1, 1)
        await made.stop()  # twice does nothing
        os.close(file.fd)

    asyncio.run(work())


def test_a_reason_is_what_the_system_calls_it() -> None:
    assert reason_of(OSError(errno.EIO, "Input/output error")) == "Input/output error"
    assert reason_of(OSError("odd")) == "odd"


# --- room


def test_a_journal_has_at_least_four_files_within_its_limit(tmp_path: Path) -> None:
    async def made(limit: int, size: int) -> list[int]:
        folder = tmp_path / f"{limit}-{size}"
        journal = Journal(folder, "one", limit=limit, segment=size)
        await journal.start()
        await until(lambda: not journal._shelf.lacks)
        sizes = [path.stat().st_size for path in folder.rglob(f"*{SUFFIX}")]
        await journal.close()
        return sizes

    kib = 1024
    assert asyncio.run(made(1, 8 * kib)) == [8 * kib] * 8  # no less than 64 KiB
    assert asyncio.run(made(64 * kib, 1024 * kib)) == [16 * kib] * 4
    assert asyncio.run(made(100 * kib, 30 * kib)) == [25 * kib] * 4
    assert asyncio.run(made(100 * kib, 20 * kib)) == [20 * kib] * 5


def test_room_shrinks_by_what_is_written_and_comes_back_with_what_is_applied(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024, segment=16 * 1024)
        await journal.start()
        await until(lambda: not journal._shelf.lacks)
        usable = 16 * 1024 - BEGIN
        assert journal.room == 4 * (usable - 4096)
        journal.append(row(1))
        written = journal.pending
        assert written == len(framed(row(1)))
        # The file that is written has all of its end; the others keep what a row may leave empty.
        assert journal.room == usable - written + 3 * (usable - 4096)
        journal.append(row(2), gather=True)
        assert journal.pending == written + len(framed(row(2)))
        assert journal.room == usable - journal.pending + 3 * (usable - 4096)
        rows, position = journal.read(10)
        assert rows == [row(1), row(2)]
        journal.applied(position)
        assert journal.pending == 0
        assert journal.takes(journal.room - 4096)
        assert not journal.takes(journal.room - 4095)
        with pytest.raises(JournalFull, match="the journal is full"):
            journal.append(row(3), leave=journal.room)
        await journal.close()

    asyncio.run(work())


def test_a_row_is_held_when_it_is_where_it_is_meant_to_be(tmp_path: Path) -> None:
    async def work(sync: bool) -> None:
        journal = Journal(tmp_path / str(sync), "one", limit=64 * 1024, sync=sync)
        await journal.start()
        sequence = journal.append(row(1))
        assert (sequence, journal.appended) == (1, 1)
        assert journal.holds(sequence) is not sync or journal.syncer.covered == 1
        await journal.synced(sequence)
        assert journal.holds(sequence)
        assert not journal.holds(sequence + 1)
        await journal.close()

    for sync in (True, False):
        asyncio.run(work(sync))


def test_who_waits_for_what_was_only_intended_is_served_at_once(tmp_path: Path) -> None:
    """And not with the rows that nobody waits for, which have time."""

    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024, timing=Timing(later=1000.0))
        await journal.start()
        await journal.synced(journal.append(row(0)))
        await until(lambda: not journal._shelf.lacks and not journal.syncer._asked)
        async with asyncio.timeout(DEADLINE_SECONDS):
            await journal.synced(journal.append(row(1), gather=True))
        assert journal.holds(2)
        await journal.close()

    asyncio.run(work())


def test_nobody_is_gathered_where_there_is_nothing_to_sync(tmp_path: Path) -> None:
    slept: list[float] = []

    async def work() -> None:
        timing = Timing(gather=1000.0, sleep=slept.append)
        journal = Journal(tmp_path, "one", limit=64 * 1024, timing=timing, disk=Disk())
        await journal.start()
        await until(lambda: not journal._shelf.lacks)
        for turn in range(2):
            await asyncio.gather(
                *(journal.synced(journal.append(row(number), gather=True)) for number in range(5))
            )
            assert len(slept) == turn
            journal.syncer.ask()
            await until(lambda: not journal.syncer._asked)
        await journal.close()

    asyncio.run(work())
    assert len(slept) == 1
