"""A journal step by step: what each does to the disk, whom it asks, and when not; no thread runs by chance."""

from __future__ import annotations

import asyncio
import errno
import importlib.util
import os
import re
import struct
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.stores.test_journal_files import Quiet, framed, row, segment, syncer
from tests.tiers import rows
from tests.waiting import until
from wireglot.stores.journal import disk as disk_module
from wireglot.stores.journal import files as files_module
from wireglot.stores.journal.disk import DISK, Disk, KernelSync
from wireglot.stores.journal.files import BEGIN, LOCK, Orphan, Segment, Shelf, held, number_of, orphans
from wireglot.stores.journal.journal import RECENT_ROWS, Journal, JournalFull, Position
from wireglot.stores.journal.sync import Syncer, Timing
from wireglot.stores.records import UsageRow

KIB = 1024


class Watched(Disk):
    """Tells what it is asked, and refuses what it is asked to."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.reads: list[int] = []
        self.refuses: set[str] = set()

    def _note(self, what: str) -> None:
        if what in self.refuses:
            raise OSError(errno.EIO, "Input/output error")
        self.done.append(what)

    def reserve(self, fd: int, size: int) -> None:
        self._note("reserve")
        super().reserve(fd, size)

    def write(self, fd: int, data: bytes | bytearray, at: int) -> None:
        self._note("write")
        super().write(fd, data, at)

    def read(self, fd: int, amount: int, at: int) -> bytes:
        self.reads.append(amount)
        return super().read(fd, amount, at)

    def sync(self, fd: int) -> None:
        self._note("sync")


class Spy:
    """Stands for a method, and counts."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *given: Any) -> None:
        self.calls += 1


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


# --- the operating system


def test_a_sync_is_the_systems_own_without_the_times_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    assert disk_module._fdatasync is os.fdatasync
    synced: list[int] = []
    monkeypatch.setattr(disk_module, "_fdatasync", synced.append)
    DISK.sync(7)
    assert synced == [7]


@pytest.mark.skipif(sys.platform != "linux", reason="asynchronous I/O of Linux")
def test_what_the_kernel_says_of_a_call_is_the_error_that_is_raised() -> None:
    """Its number tells a full disk from a broken one."""
    unknown = 9999  # no such call
    with pytest.raises(OSError) as refused:
        KernelSync([unknown] * 4)
    assert (refused.value.errno, refused.value.strerror) == (errno.ENOSYS, os.strerror(errno.ENOSYS))


def test_where_room_cannot_be_reserved_a_file_is_made_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_module, "_fallocate", None)
    made = segment(tmp_path / "a")
    made.begin(1)
    assert number_of(tmp_path / "a") == 1
    os.close(made.fd)


def test_on_windows_files_are_locked_written_and_read_in_its_own_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its module is not here: what it is asked is what counts."""
    asked: list[tuple[int, str, int]] = []
    taken: list[bool] = []

    def locking(fd: int, mode: str, amount: int) -> None:
        asked.append((fd, mode, amount))
        if taken:
            raise OSError(errno.EACCES, "Permission denied")

    double = SimpleNamespace(locking=locking, LK_LOCK="wait", LK_NBLCK="at once")
    monkeypatch.setitem(sys.modules, "msvcrt", double)
    monkeypatch.setattr(sys, "platform", "win32")
    windows = _loaded(Path(disk_module.__file__))
    assert windows.lock_file(7) is True
    assert windows.lock_file(7, wait=True) is True
    taken.append(True)
    assert windows.lock_file(8) is False
    assert asked == [(7, "at once", 1), (7, "wait", 1), (8, "at once", 1)]
    fd = os.open(tmp_path / "a", os.O_RDWR | os.O_CREAT, 0o600)
    windows.DISK.write(fd, b"abcdef", 0)
    windows.DISK.write(fd, b"XY", 2)
    assert windows.DISK.read(fd, 3, 1) == b"bXY"
    assert (tmp_path / "a").read_bytes() == b"abXYef"
    os.close(fd)


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("disk_on_windows", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- files


def test_a_file_that_was_not_used_has_no_number(tmp_path: Path) -> None:
    made = segment(tmp_path / "a")
    assert (made.number, made.salt) == (0, 0)
    made.begin(1)
    made.put(framed(row(1), salt=made.salt))
    before = (tmp_path / "a").read_bytes()
    made.forget()
    assert (tmp_path / "a").read_bytes() == bytes(BEGIN) + before[BEGIN:], "only the header goes"
    os.close(made.fd)


def test_nothing_behind_the_end_of_a_file_is_read(tmp_path: Path) -> None:
    made = segment(tmp_path / "a")
    made.begin(1)
    made.put(framed(row(1), salt=made.salt))
    end = made.end
    made.put(framed(row(2), salt=made.salt))
    made.end = end  # as where the write of the second had failed halfway
    assert made.rows(BEGIN, 10, 4096) == ([row(1)], end)
    os.close(made.fd)


def test_a_header_alone_tells_a_number(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(struct.pack(">4sIQ", b"WGJ1", 1, 5))
    assert number_of(tmp_path / "a") == 5
    (tmp_path / "a").write_bytes(struct.pack(">4sIQ", b"WGJ1", 1, 5)[:-1])
    assert number_of(tmp_path / "a") == 0


@pytest.mark.parametrize("is_there", [True, False])
def test_a_file_for_which_there_is_no_room_is_closed_and_gone(tmp_path: Path, is_there: bool) -> None:
    disk = Watched()
    disk.refuses = {"reserve"}
    fd = os.open(tmp_path / "a", os.O_RDWR | os.O_CREAT, 0o600)
    if not is_there:  # somebody was faster
        (tmp_path / "a").unlink()
    with pytest.raises(OSError, match="Input/output error"):
        Segment.create(fd, 4096, tmp_path / "a", disk)
    assert not is_open(fd)
    assert not (tmp_path / "a").exists()
    fd = os.open(tmp_path / "b", os.O_RDWR | os.O_CREAT, 0o600)
    with pytest.raises(OSError, match="Input/output error"):
        Segment.create(fd, 4096, None, disk)
    assert (tmp_path / "b").exists(), "a file without a name has none to remove"


def test_a_folder_is_waited_for_and_a_home_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[bool] = []
    monkeypatch.setattr(
        "wireglot.stores.journal.files.lock_file", lambda fd, *, wait=False: waits.append(wait)
    )
    with held(tmp_path):
        assert waits == [True]
    shelf = Shelf(tmp_path / "one", 4096, 1, DISK)
    shelf.enter()
    assert waits == [True, True, False]
    shelf.leave((), keep=False)


def test_a_home_that_is_there_already_is_taken(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    shelf = Shelf(tmp_path / "one", 4096, 1, DISK)
    shelf.enter()
    assert (tmp_path / "one" / LOCK).exists()
    shelf.leave((), keep=False)


def test_what_somebody_else_has_removed_need_not_be_removed(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "one", 4096, 2, DISK)
    shelf.enter()
    shelf.make()
    shelf.make()
    for path in (tmp_path / "one").iterdir():
        path.unlink()
    shelf.leave((), keep=False)
    assert not (tmp_path / "one").exists()


def test_who_never_came_in_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / LOCK).write_text("another's")
    Shelf(tmp_path / "one", 4096, 2, DISK).leave((), keep=False)
    assert (tmp_path / "one" / LOCK).exists()
    shelf = Shelf(None, 4096, 2, DISK)
    shelf.make()
    shelf.leave((), keep=True)  # spares without a name


def test_a_file_without_a_name_that_has_to_keep_it_says_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows keeps the name of an open file."""

    def refused(path: str) -> None:
        raise PermissionError(path)

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("wireglot.stores.journal.files.os.unlink", refused)
    shelf = Shelf(None, 4096, 2, DISK)
    shelf.make()
    (path,) = tmp_path.iterdir()
    assert re.fullmatch(r"wireglot-journal-\w{8}", path.name)
    shelf.leave((), keep=False)


def test_the_descriptor_nought_is_one_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon whose standard input is closed gets it for the first file that it opens."""
    shelf, orphan = Shelf(tmp_path / "one", 4096, 1, DISK), Orphan(tmp_path / "two", 0)
    shelf._lock = 0
    shelf.enter()
    assert not (tmp_path / "one").exists(), "it has come in before"
    closed: list[int] = []
    with monkeypatch.context() as patched:
        patched.setattr("wireglot.stores.journal.files.os.close", closed.append)
        shelf.leave((), keep=True)
        orphan.release()
        orphan.release()
    assert closed == [0, 0]


# --- journals of the dead


def dead(folder: Path) -> Path:
    (folder / "dead").mkdir()
    (folder / "dead" / LOCK).write_text("")
    return folder / "dead"


def test_a_journal_that_cannot_be_taken_is_not_held_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = dead(tmp_path)
    opened: list[int] = []

    def taken(fd: int) -> bool:
        opened.append(fd)
        return False

    def removed(fd: int) -> bool:
        opened.append(fd)
        (home / LOCK).unlink()
        return True

    def free(fd: int) -> bool:
        opened.append(fd)
        return True

    def damaged(path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    for lock_file, drop in ((taken, None), (removed, None), (free, damaged)):
        (home / LOCK).write_text("")
        with monkeypatch.context() as patched:
            # The folder's own lock is the one that is waited for.
            patched.setattr(
                files_module, "lock_file", lambda fd, wait=False, lock=lock_file: wait or lock(fd)
            )
            if drop is not None:
                patched.setattr(files_module, "_drop_spares", drop)
            assert orphans(tmp_path, "me") == []
    assert len(opened) == 3
    assert not any(map(is_open, opened))


def test_a_journal_that_is_removed_is_held_no_more(tmp_path: Path) -> None:
    dead(tmp_path)
    (orphan,) = orphans(tmp_path, "me")
    lock = orphan._lock
    assert is_open(lock)
    orphan.remove()
    assert not is_open(lock)
    assert orphan._lock < 0


# --- a journal, without its thread


class Still(Journal):
    """Its thread has made one file and does nothing more; anyone who asks it is counted."""

    def __init__(self, folder: Path | None, disk: Disk = DISK, **more: Any) -> None:
        super().__init__(folder, "one", **{"limit": 64 * KIB, "segment": 16 * KIB, "disk": disk, **more})
        self.asked = Spy()
        self.asked_later = Spy()

    async def start(self) -> None:
        self._loop = self.syncer._loop = asyncio.get_running_loop()
        self.syncer._open()
        self.syncer.ask = self.asked  # type: ignore[method-assign]  # a double in its place
        self.syncer.ask_later = self.asked_later  # type: ignore[method-assign]  # a double in its place


def still(work: Callable[[Still], Any], folder: Path | None, disk: Disk = DISK, **more: Any) -> None:
    async def run() -> None:
        journal = Still(folder, disk, **more)
        await journal.start()
        await work(journal)
        await journal.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("limit", "given", "size", "files"),
    [
        (64 * KIB * KIB, None, 4 * KIB * KIB, 16),
        (8 * KIB * KIB, None, 2 * KIB * KIB, 4),
        (1, KIB * KIB, 16 * KIB, 4),
        (64 * KIB + 4, KIB * KIB, 16 * KIB + 1, 4),
    ],
)
def test_the_size_and_number_of_files(limit: int, given: int | None, size: int, files: int) -> None:
    more: dict[str, Any] = {"segment": given} if given else {}
    journal = Journal(None, "one", limit=limit, **more)
    assert (journal._shelf._size, journal._shelf._most) == (size, files)
    assert journal.damaged == 0


def filling(journal: Journal, number: int = 0) -> UsageRow:
    """A row that takes all that is left of the file, to the last byte."""
    left = journal._left
    for letters in range(left - 300, left):
        made = UsageRow(f"req_{number}", "ann", 1, model="m" * letters)
        if len(framed(made)) == left:
            return made
    raise AssertionError("no such row")


@pytest.mark.parametrize("intended", [False, True])
def test_a_file_is_full_when_its_last_byte_is_written(tmp_path: Path, intended: bool) -> None:
    async def work(journal: Still) -> None:
        write = partial(journal.append, gather=intended)
        journal.append(row(1))
        last = filling(journal)
        write(last)
        assert (len(journal._written), journal._left) == (1, 0)
        write(row(2))
        assert len(journal._written) == 2
        assert [each.number for each in journal._written] == [1, 2], "in their order, from one on"
        for _ in range(3):
            await asyncio.sleep(0)
        assert journal.appended == 3, "the first of a file is written by itself too"
        assert list(journal.syncer.rolled) == [journal._written[0]]
        for expected in ([row(1), last], [row(2)]):
            rows, position = journal.read(10)
            assert rows == expected
            spares = len(journal._shelf.spares)
            journal.applied(position)
            # What was left and is known to the store is free at once.
            assert len(journal._shelf.spares) == spares + (expected != [row(2)])
        assert journal.read(10) == ([], Position(0, 0))

    still(work, tmp_path)


def test_files_are_made_at_once_where_the_thread_has_not_made_them(tmp_path: Path) -> None:
    async def work(journal: Still) -> None:
        for number in range(4):
            journal.append(row(number))
            assert len(journal._written) == number + 1
            journal.append(filling(journal))
        with pytest.raises(JournalFull, match="the journal is full"):
            journal.append(row(5))
        assert not journal.trouble

    still(work, tmp_path)


def test_the_thread_is_asked_for_another_file_when_one_is_taken() -> None:
    async def work(journal: Still) -> None:
        journal.append(row(1))
        assert journal.asked.calls == 1
        journal.append(row(2))
        assert journal.asked.calls == 1

    still(work, None, sync=False)


def test_a_file_that_cannot_be_begun_stays_a_spare(tmp_path: Path) -> None:
    disk = Watched()

    async def work(journal: Still) -> None:
        room = journal.room
        disk.refuses = {"write"}
        with pytest.raises(JournalFull, match="Input/output error"):
            journal.append(row(1))
        assert journal.room == room
        assert journal.trouble == "Input/output error"
        assert journal.asked.calls == 1, "it looks when the disk works again"
        disk.refuses = set()
        journal.syncer.trouble = ""
        assert journal.append(row(1)) == 1

    still(work, tmp_path, disk)


@pytest.mark.parametrize(
    ("intended", "waits", "asked"), [(True, True, 1), (True, False, 0), (False, True, 0), (False, False, 0)]
)
def test_a_row_that_takes_along_what_others_wait_for_asks_for_them(
    tmp_path: Path, intended: bool, waits: bool, asked: int
) -> None:
    async def work(journal: Still) -> None:
        journal.append(row(0))
        if intended:
            journal.append(row(1), gather=True)
        if waits:
            journal.syncer.waiting.append((9, journal._loop.create_future()))
        journal.asked.calls = 0
        journal.append(row(2))
        assert journal.asked.calls == asked

    still(work, tmp_path)


def test_who_is_written_at_the_end_of_a_turn_is_synced_sooner_or_later(tmp_path: Path) -> None:
    async def work(journal: Still) -> None:
        journal.append(row(0))
        journal.asked.calls = 0
        journal.append(row(1), gather=True)
        assert journal.asked_later.calls == 0
        journal._put_soon()
        assert (journal.asked.calls, journal.asked_later.calls) == (0, 1), "nobody waits"
        journal._put_soon()
        assert journal.asked_later.calls == 1, "there was nothing to write"
        waiting = journal.synced(journal.append(row(2), gather=True))
        journal._put_soon()
        assert journal.asked.calls == 1
        journal.syncer.ask_later()
        assert journal.asked_later.calls == 3
        journal.syncer.settle(3)
        await waiting

    still(work, tmp_path)


def test_a_disk_in_trouble_is_left_alone(tmp_path: Path) -> None:
    disk = Watched()

    async def work(journal: Still) -> None:
        journal.append(row(0))
        journal.append(row(1), gather=True)
        journal.syncer.trouble = "Input/output error"
        before = list(disk.done)
        journal._put_soon()
        assert journal.read(10)[0] == [row(0)]
        assert disk.done == before
        journal.syncer.trouble = ""
        journal._put_soon()
        assert len(disk.done) == len(before) + 1

    still(work, tmp_path, disk)


def test_what_could_not_be_written_is_written_at_the_end_if_the_disk_lets_it(tmp_path: Path) -> None:
    disk = Watched()

    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * KIB, disk=disk, timing=Timing(retry=1000.0))
        await journal.start()
        await until(lambda: not journal._shelf.lacks)
        journal.append(row(0))
        disk.refuses = {"write"}
        await journal.synced(journal.append(row(1), gather=True))
        await until(lambda: not journal.syncer._asked)
        disk.refuses = set()
        await journal.close()
        assert journal.syncer._thread is None

    asyncio.run(work())
    (orphan,) = orphans(tmp_path, "two")
    assert [each for rows in orphan.rows() for each in rows] == [row(0), row(1)]
    orphan.remove()


def test_nobody_waits_for_a_journal_that_was_closed(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Still(tmp_path)
        await journal.start()
        waiting = asyncio.ensure_future(journal.synced(journal.append(row(1))))
        assert not waiting.done()
        await journal.close()
        await asyncio.sleep(0)
        assert waiting.done()

    asyncio.run(work())


@pytest.mark.parametrize("at_hand", [1, 3, RECENT_ROWS])
def test_so_many_rows_are_at_hand_and_no_more(tmp_path: Path, at_hand: int) -> None:
    assert RECENT_ROWS == 4096
    disk = Watched()

    async def work(journal: Still) -> None:
        rows = [row(number) for number in range(at_hand + 2)]
        for each in rows[:at_hand]:
            journal.append(each)
        assert (journal.read(9999)[0], disk.reads) == (rows[:at_hand], [])
        for count in (1, 2):  # from the first that is too many on, all are read from the file
            journal.append(rows[at_hand + count - 1])
            disk.reads.clear()
            assert journal.read(9999)[0][:3] == rows[: at_hand + count][:3]
            assert disk.reads

    still(work, tmp_path, disk, limit=16 * KIB * KIB, segment=4 * KIB * KIB, recent=at_hand)


def test_only_rows_of_one_file_that_are_written_are_given_at_once(tmp_path: Path) -> None:
    async def work(journal: Still) -> None:
        for number in range(3):
            journal.append(row(number))
        last = filling(journal)
        journal.append(last)
        journal.append(row(4))  # in the next file
        journal.append(row(5), gather=True)
        journal.syncer.trouble = "Input/output error"  # which keeps it from being written
        rows, position = journal.read(2)
        assert (rows, position) == ([row(0), row(1)], Position(1, BEGIN + len(framed(row(0), row(1)))))
        journal.applied(Position(1, position.offset - 1))
        assert journal.read(9)[0] == [row(1), row(2), last], "what was not applied whole is given again"
        journal.applied(position)
        rows, position = journal.read(9)
        assert rows == [row(2), last]
        journal.applied(position)
        rows, position = journal.read(9)
        assert (rows, position.segment) == ([row(4)], 2)
        journal.syncer.trouble = ""
        assert journal.read(9)[0] == [row(4), row(5)]

    still(work, tmp_path)


def test_rows_are_at_hand_again_once_all_were_read(tmp_path: Path) -> None:
    disk = Watched()

    async def work(journal: Still) -> None:
        for number in range(3):
            journal.append(row(number))
        rows, position = journal.read(10)
        assert (rows, len(disk.reads)) == ([row(0), row(1), row(2)], 1)
        journal.applied(position)
        assert journal.read(10)[0] == []
        disk.reads.clear()
        journal.append(row(3))
        assert journal.read(10)[0] == [row(3)]
        assert disk.reads == []

    still(work, tmp_path, disk, recent=2)


def test_rows_that_wait_for_the_disk_are_not_passed_over(tmp_path: Path) -> None:
    """They are not at hand: they had become too many before."""

    async def work(journal: Still) -> None:
        for number in range(3):
            journal.append(row(number))
        journal.append(row(3), gather=True)
        journal.syncer.trouble = "Input/output error"
        _, position = journal.read(10)
        journal.applied(position)
        assert journal.read(10)[0] == []
        journal.syncer.trouble = ""
        assert journal.read(10)[0] == [row(3)]

    still(work, tmp_path, recent=2)


def test_a_file_is_read_back_a_piece_at_a_time(tmp_path: Path) -> None:
    disk = Watched()

    async def work(journal: Still) -> None:
        large = UsageRow("req_1", "ann", 1, model="m" * 3000)
        for _ in range(100):
            journal.append(large)
        assert len(journal.read(1000)[0]) == 256 * KIB // len(framed(large))
        assert disk.reads == [256 * KIB]

    still(work, tmp_path, disk, recent=2, limit=4 * KIB * KIB, segment=KIB * KIB)


def test_only_what_may_not_be_on_the_disk_is_repaired(tmp_path: Path) -> None:
    disk = Watched()

    async def work(journal: Still) -> None:
        journal.append(row(1))
        (file,) = journal._written
        file.safe = file.end
        disk.done.clear()
        assert journal._repair() is True
        assert disk.done == []
        journal.append(row(2))
        disk.done.clear()
        assert journal._repair() is True
        assert disk.done == ["write", "write"]
        assert (journal.damaged, len(journal._doubtful)) == (0, 0)
        disk.refuses = {"write"}
        assert journal._repair() is False
        assert journal.trouble == "Input/output error"
        disk.refuses = set()

    still(work, tmp_path, disk)


def test_what_was_damaged_before_it_was_on_the_disk_is_in_doubt_and_nothing_else(tmp_path: Path) -> None:
    async def work(journal: Still) -> None:
        for number in range(4):
            journal.append(row(number))
        (file,) = journal._written
        file.safe = BEGIN + len(framed(row(0), row(1)))
        journal.syncer.covered = 2
        os.pwrite(file.fd, bytes(4), file.safe + 8)
        assert journal._repair() is True
        journal.syncer.covered = journal._sequence = 6
        assert [journal.holds(number) for number in range(1, 7)] == [True, True, False, False, True, True]
        assert journal.damaged == 1

    still(work, tmp_path)


# --- the thread


def test_a_thread_that_was_not_started_has_nothing_behind_it(tmp_path: Path) -> None:
    made = syncer(tmp_path, Quiet())
    assert (made.appended, made.covered, made.trouble) == (0, 0, "")
    assert (made._asked, made._stopping, made._crowded, made._unsure) == (False, False, False, False)
    assert made._wake.locked(), "it sleeps until it is asked"
    made.ask()
    assert (made._wake.locked(), made._asked) == (False, True)
    made.ask()  # once is enough
    assert made._wake.acquire(False)
    made._asked = False
    made._wake.release()
    made.ask()  # it was asked before, and has not looked yet
    assert made._wake.acquire(False)


def test_a_start_makes_the_first_file_before_anybody_writes(tmp_path: Path) -> None:
    async def work() -> None:
        made = syncer(tmp_path, Quiet())
        made._run = lambda: None  # type: ignore[method-assign]  # a double in its place
        await made.start()
        assert len(made._shelf.spares) == 1
        assert (tmp_path / "one" / LOCK).exists()
        assert made._thread is not None
        assert (made._thread.name, made._thread.daemon) == ("wireglot-journal", True)
        await made.stop()

    asyncio.run(work())


def test_a_row_that_nobody_waits_for_is_asked_for_once_and_not_after_the_end(tmp_path: Path) -> None:
    async def work() -> None:
        made = syncer(tmp_path, Quiet(), timing=Timing(later=1000.0))
        made._loop = asyncio.get_running_loop()
        made.ask_later()
        first = made._later
        made.ask_later()
        assert first is not None
        assert made._later is first
        made._is_later()
        assert made._asked
        made.ask_later()
        again = made._later
        assert again is not None
        assert again is not first, "the first has had its time"
        await made.stop()
        assert again.cancelled()
        first.cancel()

    asyncio.run(work())


def test_who_waits_asks_if_the_row_is_written(tmp_path: Path) -> None:
    async def work() -> None:
        for appended, asks in ((4, False), (5, True), (6, True)):
            made = syncer(tmp_path, Quiet())
            made._loop = asyncio.get_running_loop()
            made.appended = appended
            made.wait_for(5)
            assert made._asked is asks

    asyncio.run(work())


@pytest.mark.parametrize("repaired", [True, False])
def test_what_was_written_again_is_synced_at_once(tmp_path: Path, repaired: bool) -> None:
    made = syncer(tmp_path, Quiet())
    made._repair = lambda: repaired
    made._unsure = True
    made._repair_on_loop()
    assert (made._unsure, made._asked) == (not repaired, repaired)


class Reported(list[Any]):
    """Stands for the loop."""

    def call_soon_threadsafe(self, work: Any, *given: Any) -> None:
        self.append((work, *given))


def alone(folder: Path, disk: Disk, **more: Any) -> tuple[Syncer, Reported]:
    """Its thread does not run: its steps are called one by one."""
    made, reported = syncer(folder, disk, timing=Timing(retry=7.0), **more), Reported()
    made._loop = reported  # type: ignore[assignment]  # as much of a loop as it needs
    return made, reported


def begun(path: Path, disk: Disk) -> Segment:
    made = segment(path, disk=disk)
    made.begin(1)
    made.put(b"x")
    return made


@rows("waiting", [0, 1, 2, 3, 9])
def test_a_sync_covers_what_was_written_before_it(tmp_path: Path, waiting: int) -> None:
    disk = Watched()
    made, reported = alone(tmp_path, disk)
    made.current, made.appended = begun(tmp_path / "a", disk), 3
    made.waiting.extend([(1, None)] * waiting)  # type: ignore[list-item]  # nobody waits for these
    assert made._sync_all() is True
    assert made.covered == 3
    assert made._crowded is (waiting > 2), "who is (almost) alone is not made to wait for others"
    assert reported == [(made.settle, 3, [(made.current, 1, BEGIN + 1)])]
    os.close(made.current.fd)


def test_a_sync_that_fails_leaves_all_in_doubt(tmp_path: Path) -> None:
    disk = Watched()
    made, reported = alone(tmp_path, disk)
    made.current, made.appended = begun(tmp_path / "a", disk), 3
    disk.refuses = {"sync"}
    assert made._sync_all() is False
    assert (made.covered, made._unsure, made.trouble) == (0, True, "Input/output error")
    assert reported == [(made.settle, 3, [])]
    reported.clear()
    disk.refuses = set()
    assert made._sync_all() is False, "not before it is written again"
    assert reported == [(made._repair_on_loop,)]
    assert made.covered == 0
    os.close(made.current.fd)


def test_a_disk_that_is_well_is_not_touched(tmp_path: Path) -> None:
    disk = Watched()
    made, reported = alone(tmp_path, disk)
    made._open()
    made.current = begun(tmp_path / "a", disk)
    disk.done.clear()
    assert made._prepare() == 0.0, "there may be more to make"
    assert disk.done == ["reserve"]
    assert made._prepare() == -1, "it sleeps until it is asked"
    assert disk.done == ["reserve"]
    assert reported == []
    os.close(made.current.fd)


def test_a_disk_that_failed_is_written_and_synced_before_it_is_called_well(tmp_path: Path) -> None:
    disk = Watched()
    made, reported = alone(tmp_path, disk)
    made._open()
    made._shelf.make()
    made.current = begun(tmp_path / "a", disk)
    for refused, done in (({"write"}, []), ({"sync"}, ["write"])):
        made.trouble, made._unsure = "before", False
        disk.done.clear()
        disk.refuses = refused
        assert made._prepare() == 7.0
        assert (made.trouble, made._unsure, reported) == ("Input/output error", True, [])
        assert disk.done == done
    disk.refuses = set()
    disk.done.clear()
    assert made._prepare() == -1
    assert disk.done == ["write", "sync"]
    assert made.trouble == ""
    assert reported == [(made._is_well,)]
    os.close(made.current.fd)


@pytest.mark.parametrize(
    ("current", "spare", "trouble"),
    [(False, False, "Input/output error"), (False, True, ""), (True, False, ""), (True, True, "")],
)
def test_a_file_that_cannot_be_made_is_trouble_only_where_there_is_no_other(
    tmp_path: Path, current: bool, spare: bool, trouble: str
) -> None:
    disk = Watched()
    made, reported = alone(tmp_path, disk)
    if spare:
        made._open()
    if current:
        made.current = begun(tmp_path / "a", disk)
    made.trouble = "before"
    disk.refuses = {"reserve"}
    assert made._prepare() == 7.0
    assert made.trouble == trouble
    assert reported == ([] if trouble else [(made._is_well,)])


def test_a_disk_of_which_nothing_can_be_had_at_the_start_is_trouble(tmp_path: Path) -> None:
    disk = Watched()
    disk.refuses = {"reserve"}
    made, _ = alone(tmp_path, disk)
    made._open()
    assert made.trouble == "Input/output error"
    disk.refuses = set()
    assert made._prepare() == 0.0
    assert made.trouble == ""


def test_the_thread_does_a_round_each_time_it_is_asked_and_sleeps_between(tmp_path: Path) -> None:
    async def work() -> None:
        made = syncer(tmp_path, Quiet())
        rounds: list[int] = []

        def prepare() -> float:
            rounds.append(1)
            return -1

        made._prepare = prepare  # type: ignore[method-assign]  # a double in its place
        await made.start()
        for number in range(1, 5):
            await until(partial(lambda number: len(rounds) == number, number))
            if number < 4:
                made.ask()
        await made.stop()
        assert len(rounds) == 4

    asyncio.run(work())


def test_after_a_sync_that_failed_it_waits_and_tries_again_before_all_else(tmp_path: Path) -> None:
    async def work() -> None:
        made = syncer(tmp_path, Quiet(), timing=Timing(retry=0.001))
        made.appended = 1
        steps: list[str] = []

        def sync_all() -> bool:
            steps.append("sync")
            return len(steps) > 2

        def prepare() -> float:
            steps.append("prepare")
            return -1

        made._sync_all = sync_all  # type: ignore[method-assign]  # a double in its place
        made._prepare = prepare  # type: ignore[method-assign]  # a double in its place
        await made.start()
        await until(lambda: "prepare" in steps)
        assert steps == ["sync", "sync", "sync", "prepare"]
        await made.stop()
        assert steps == ["sync", "sync", "sync", "prepare", "sync"], "a last one"

    asyncio.run(work())


@pytest.mark.parametrize("sync", [True, False])
def test_nothing_is_synced_twice_or_where_nothing_is_to_be(tmp_path: Path, sync: bool) -> None:
    async def work() -> None:
        disk = Quiet()
        made = syncer(tmp_path, disk, sync=sync)
        made.current = begun(tmp_path / "a", disk)
        made.appended = 1
        await made.start()
        await until(lambda: not made._shelf.lacks)
        await made.stop()
        assert (disk.syncs, made.covered) == ((1, 1) if sync else (0, 0))
        os.close(made.current.fd)

    asyncio.run(work())


@pytest.mark.parametrize(("gather", "slept"), [(0.25, [0.25]), (1.5, [1.5]), (0.0, [])])
def test_a_crowd_is_gathered_for_what_is_left_of_the_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gather: float, slept: list[float]
) -> None:
    monkeypatch.setattr("wireglot.stores.journal.sync.time", SimpleNamespace(monotonic=lambda: 100.0))
    sleeps: list[float] = []

    async def work() -> None:
        made = syncer(tmp_path, Quiet(), timing=Timing(gather=gather, sleep=sleeps.append))
        await made.start()
        await until(lambda: not made._shelf.lacks)
        made.appended = 1
        made._crowded = True
        made.ask()
        await until(lambda: made.covered == 1)
        assert sleeps == [], "the last sync was long ago"
        await until(lambda: not made._asked)
        made.appended = 2
        made._crowded = True
        made.ask()
        await until(lambda: made.covered == 2)
        assert sleeps == slept
        made.appended = 3
        made._crowded = True
        await made.stop()
        assert made.covered == 3
        assert sleeps == slept, "who ends does not gather"

    asyncio.run(work())
