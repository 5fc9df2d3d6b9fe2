"""A journal whose syncs the kernel does, and how it is left to the thread. FAULTS rule L, rows 93, 98."""

from __future__ import annotations

import asyncio
import errno
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.stores.test_journal_files import row
from tests.waiting import until
from wireglot.stores.journal import disk as disk_module
from wireglot.stores.journal.disk import DISK, MAX_FILES, Disk, KernelSync
from wireglot.stores.journal.journal import Journal
from wireglot.stores.journal.sync import Timing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it is Linux that has it")
UNGATHERED = Timing(gather=0.0, retry=0.01)


def opened() -> KernelSync:
    kernel = KernelSync.open()
    if kernel is None:
        pytest.skip("not allowed here")
    return kernel


class Kernel:
    """Stands for the kernel: syncs are done when the test says so, and fail when it says so."""

    def __init__(self) -> None:
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK)
        self.submitted: list[int] = []
        self.at_once = False
        self.problem = 0
        self.refuses = False
        self.closed = False

    def submit(self, files: list[int]) -> None:
        if self.refuses:
            raise OSError(errno.EINVAL, "Invalid argument")
        self.submitted.append(len(files))
        if self.at_once:
            self.land()

    def land(self) -> None:
        os.eventfd_write(self.descriptor, 1)

    def collect(self) -> int | None:
        os.eventfd_read(self.descriptor)
        return self.problem

    def close(self) -> None:
        self.closed = True
        os.close(self.descriptor)


class Below(Disk):
    """The kernel that it is given; what the thread syncs is counted."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.syncs = 0

    def sync(self, fd: int) -> None:
        self.syncs += 1
        super().sync(fd)

    def kernel_sync(self) -> KernelSync | None:
        return self.kernel  # type: ignore[no-any-return]  # as much of one as is used


def within(
    folder: Path, disk: Disk, work: Callable[[Journal], Any], timing: Timing = UNGATHERED, **more: Any
) -> None:
    async def run() -> None:
        journal = Journal(folder, "one", disk=disk, timing=timing, **{"limit": 64 * 1024, **more})
        await journal.start()
        await until(lambda: not journal._shelf.lacks)
        await work(journal)
        await journal.close()

    asyncio.run(run())


def test_a_file_is_synced_and_the_descriptor_tells_when(tmp_path: Path) -> None:
    async def work() -> None:
        kernel = opened()
        reported = asyncio.Event()
        asyncio.get_running_loop().add_reader(kernel.descriptor, reported.set)
        with (tmp_path / "a").open("wb") as one, (tmp_path / "b").open("wb") as two:
            for file in (one, two):
                file.write(b"x")
                file.flush()
            assert kernel.collect() is None, "nothing has been done"
            kernel.submit([one.fileno(), two.fileno()])
            result = None
            while result is None:
                await reported.wait()
                reported.clear()
                result = kernel.collect()
            assert result == 0
        asyncio.get_running_loop().remove_reader(kernel.descriptor)
        kernel.close()

    asyncio.run(work())


def test_what_cannot_be_synced_is_refused_before_anything_begins(tmp_path: Path) -> None:
    kernel = opened()
    reading, writing = os.pipe()
    for files in ([9999], [writing], [1] * (MAX_FILES + 1)):
        with pytest.raises(OSError):  # which one is the kernel's own business
            kernel.submit(files)
    kernel.close()
    os.close(reading)
    os.close(writing)


def test_where_there_is_none_the_thread_syncs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "m68k")
    assert KernelSync.open() is None
    monkeypatch.undo()
    monkeypatch.setitem(disk_module._NUMBERS, platform.machine(), (100_000,) * 4)
    assert KernelSync.open() is None, "as where a container forbids it"
    disk = Below(KernelSync.open())

    async def work(journal: Journal) -> None:
        await journal.synced(journal.append(row(1)))
        assert (journal.holds(1), disk.syncs) == (True, 1)

    within(tmp_path, disk, work)


def test_the_thread_syncs_nothing_that_the_kernel_does(tmp_path: Path) -> None:
    """Over the end of files, too; and a last time at the end."""
    disk = Below(opened())

    async def work(journal: Journal) -> None:
        for number in range(300):
            sequence = journal.append(row(number))
            journal.syncer.ask_sync(1)
            if number % 30 == 0:
                assert journal.awaits_disk(sequence)
                await journal.synced(sequence)
                assert journal.holds(sequence)
        assert journal._numbers > 1
        assert disk.syncs == 0

    within(tmp_path, disk, work, segment=8 * 1024)


def test_the_usual_disk_has_one_and_others_do_not() -> None:
    opened().close()
    kernel = DISK.kernel_sync()
    assert kernel is not None
    kernel.close()
    assert Disk().kernel_sync() is None


def test_a_sync_covers_what_was_written_before_it_and_no_more(tmp_path: Path) -> None:
    """FAULTS 98"""
    kernel = Kernel()

    async def work(journal: Journal) -> None:
        first = journal.append(row(1))
        journal.syncer.ask_sync(1)
        await until(lambda: kernel.submitted)
        second = journal.append(row(2))
        late, early = (asyncio.ensure_future(journal.synced(each)) for each in (second, first))
        kernel.land()
        await until(early.done)
        assert (journal.holds(first), journal.holds(second), late.done()) == (True, False, False)
        await until(lambda: len(kernel.submitted) == 2)
        kernel.land()
        await until(late.done)
        assert journal.holds(second)
        kernel.at_once = True

    within(tmp_path, Below(kernel), work)
    assert kernel.closed


def test_those_of_one_turn_share_a_sync_and_a_crowd_is_gathered(tmp_path: Path) -> None:
    kernel = Kernel()
    kernel.at_once = True

    async def work(journal: Journal) -> None:
        syncer = journal.syncer
        for number in range(3):  # one after the other: nobody is made to wait for others
            await journal.synced(journal.append(row(number)))
        assert len(kernel.submitted) == 3
        for number in range(5):
            journal.append(row(number))
            journal.syncer.ask_sync(1)
        await journal.synced(journal.appended)
        assert (len(kernel.submitted), syncer._crowded) == (4, True)
        syncer._last += 1000.0
        journal.append(row(9))
        journal.syncer.ask_sync(1)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(kernel.submitted) == 4, "there may be more in a moment"
        assert syncer._due

    within(tmp_path, Below(kernel), work, Timing())


def test_anyone_who_is_alone_after_a_crowd_waits_for_others_only_once(tmp_path: Path) -> None:
    """To expect a sync, and then to wait for it, is still one."""
    kernel = Kernel()
    kernel.at_once = True

    async def work(journal: Journal) -> None:
        syncer = journal.syncer
        for number in range(5):
            journal.append(row(number))
            journal.syncer.ask_sync(1)
        await journal.synced(journal.appended)
        assert syncer._crowded
        sequence = journal.append(row(9))
        journal.syncer.ask_sync(1)
        await asyncio.sleep(0)
        waits = journal.synced(sequence)  # while the crowd is gathered
        syncer.ask_sync()  # as for a row that nobody waits for
        await waits
        assert (len(kernel.submitted), syncer._crowded) == (2, False)

    within(tmp_path, Below(kernel), work, Timing())


def test_a_sync_that_the_kernel_could_not_do_is_the_threads_from_then_on(tmp_path: Path) -> None:
    """FAULTS 93: who waits goes on; what may be lost is written again, and safe before it is called so."""
    kernel = Kernel()
    kernel.problem, kernel.at_once = errno.EIO, True
    disk = Below(kernel)

    async def work(journal: Journal) -> None:
        sequence = journal.append(row(1))
        await journal.synced(sequence)
        assert (journal.trouble, journal.unsynced) == ("Input/output error", 1)
        assert kernel.closed
        await until(lambda: not journal.trouble)
        await until(lambda: journal.holds(sequence))
        assert disk.syncs > 0
        await journal.synced(journal.append(row(2)))
        assert journal.holds(journal.appended)
        assert kernel.submitted == [1]

    within(tmp_path, disk, work)


def test_a_file_system_without_it_is_the_threads(tmp_path: Path) -> None:
    kernel = Kernel()
    kernel.refuses = True
    disk = Below(kernel)

    async def work(journal: Journal) -> None:
        for number in (1, 2):
            journal.append(row(number))
            journal.syncer.ask_sync(1)
            await journal.synced(number)
            assert journal.holds(number)
        assert (journal.trouble, journal.unsynced, kernel.closed) == ("", 0, True)

    within(tmp_path, disk, work)
    assert disk.syncs >= 2


def test_a_journal_that_is_in_doubt_is_the_threads(tmp_path: Path) -> None:
    """It has found out by itself that the disk does not sync: all that is not safe is written again first."""
    kernel = Kernel()
    disk = Below(kernel)

    async def work(journal: Journal) -> None:
        journal.syncer._unsure = True
        await journal.synced(journal.append(row(1)))
        await until(lambda: journal.holds(1))
        assert (kernel.submitted, kernel.closed) == ([], True)

    within(tmp_path, disk, work)


def test_who_ends_waits_for_what_is_under_way(tmp_path: Path) -> None:
    kernel = Kernel()
    disk = Below(kernel)

    async def work() -> None:
        journal = Journal(tmp_path, "one", limit=64 * 1024, disk=disk, timing=UNGATHERED)
        await journal.start()
        waiting = asyncio.ensure_future(journal.synced(journal.append(row(1))))
        await until(lambda: kernel.submitted)
        journal.append(row(2))
        journal.syncer.ask_sync(1)
        closing = asyncio.create_task(journal.close())
        await asyncio.sleep(0)
        assert not closing.done()
        kernel.land()
        await closing
        assert waiting.done()
        assert (kernel.submitted, disk.syncs) == ([1], 1), "what came meanwhile is the thread's"

    asyncio.run(work())


def test_without_syncs_nothing_is_opened(tmp_path: Path) -> None:
    disk = Below(None)
    disk.kernel_sync = lambda: pytest.fail("nobody needs it")  # type: ignore[method-assign]  # a double in its place

    async def work(journal: Journal) -> None:
        journal.append(row(1))
        journal.syncer.ask_sync(1)
        assert not journal.awaits_disk(1)

    within(tmp_path, disk, work, sync=False)


def test_where_it_is_refused_nothing_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    eventfd = os.eventfd

    def counted(*given: int) -> int:
        made.append(eventfd(*given))
        return made[-1]

    monkeypatch.setattr(os, "eventfd", counted)
    monkeypatch.setitem(disk_module._NUMBERS, platform.machine(), (100_000,) * 4)
    assert KernelSync.open() is None
    assert len(made) == 1
    for descriptor in made:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


def test_a_kernel_that_does_not_tell_is_left_to_the_thread(tmp_path: Path) -> None:
    class Dumb(Kernel):
        def collect(self) -> int | None:
            raise OSError(errno.EINVAL, "Invalid argument")

    kernel = Dumb()
    kernel.at_once = True
    disk = Below(kernel)

    async def work(journal: Journal) -> None:
        sequence = journal.append(row(1))
        await journal.synced(sequence)
        assert kernel.closed
        await until(lambda: journal.holds(sequence))
        assert disk.syncs > 0

    within(tmp_path, disk, work)
