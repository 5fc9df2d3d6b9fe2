"""What a disk keeps: every write of SQLite and of the journal is remembered until it is synced, and a loss of
power keeps any part of what was not. Files themselves lie in a memory file system, as the programs see them.

Names of files, their creation and removal are not part of it: they survive as they were.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import apsw

from proofs.simulation.clock import CLOCK
from proofs.simulation.loop import SimLoop
from proofs.simulation.threads import SimThread, Threads


class Write(NamedTuple):
    """`data` None: the file was cut to `at` bytes, or where that is -1 a sync ended here."""

    number: int
    job: SimThread | None
    at: int
    data: bytes | None


class Job(NamedTuple):
    """Work of SQLite's: the number of the last write before it, and the files that it wrote."""

    first: int
    files: dict[int, Kept]


class Kept:
    """One file: what is on the disk for sure, and what was written since, in order."""

    def __init__(self, content: bytes) -> None:
        self.flushed = bytearray(content)
        self.pending: list[Write] = []

    def flush(self, up_to: int) -> None:
        while self.pending and self.pending[0].number <= up_to:
            _apply(self.flushed, self.pending.pop(0))

    def settle(self) -> None:
        """All syncs so far hold."""
        syncs = [write.number for write in self.pending if write.at < 0]
        if syncs:
            self.flush(syncs[-1])

    def lose_some(self, chance: random.Random) -> None:
        """A sync failed: the system forgets that some of it has to be written."""
        self.pending = [write for write in self.pending if chance.random() < 0.5]

    def after_power_loss(self, chance: random.Random) -> bytes:
        self.settle()
        content = bytearray(self.flushed)
        share = chance.choice((0.0, 0.5, 1.0))
        for write in self.pending:
            if chance.random() < share:
                if write.data is not None and len(write.data) > 512 and chance.random() < 0.3:
                    write = write._replace(
                        data=write.data[: 512 * chance.randrange(1 + len(write.data) // 512)]
                    )
                _apply(content, write)
        return bytes(content)


def _apply(content: bytearray, write: Write) -> None:
    if write.data is None:
        if write.at >= 0:
            del content[write.at :]
        return
    content.extend(bytes(max(0, write.at + len(write.data) - len(content))))
    content[write.at : write.at + len(write.data)] = write.data


class SimDisk:
    """`full`, `failing` (a part of all operations) and `slow` (a factor) can be set at any time."""

    def __init__(self, loop: SimLoop, threads: Threads, chance: random.Random) -> None:
        self._loop = loop
        self._threads = threads
        self._chance = chance
        self.full = False
        self.failing = 0.0
        self.slow = 1.0
        self.struck = 0
        """Operations that failed."""
        self._kept: dict[int, Kept] = {}
        self._number = 0
        self._jobs: dict[SimThread | None, Job] = {}
        """Those of SQLite that are under way, by their threads."""
        self._descriptors = 1_000_000

    # What is asked of it.

    def kept(self, inode: int, path: str | int) -> Kept:
        kept = self._kept.get(inode)
        if kept is None:
            content = os.pread(path, 1 << 30, 0) if isinstance(path, int) else Path(path).read_bytes()
            kept = self._kept[inode] = Kept(content)
        return kept

    def wrote(self, kept: Kept, at: int, data: bytes | None) -> None:
        self._number += 1
        thread = self._threads.current
        kept.pending.append(Write(self._number, thread, at, data))
        if thread in self._jobs:
            self._jobs[thread].files[id(kept)] = kept

    def fails(self, *, grows: bool) -> int:
        """The number of the error that this operation ends with, 0 where it goes well."""
        if grows and self.full:
            self.struck += 1
            return errno.ENOSPC
        if self.failing and self._chance.random() < self.failing:
            self.struck += 1
            return errno.EIO
        return 0

    def seconds(self) -> float:
        """Of one sync."""
        return (0.0002 + self._chance.random() ** 6 * 0.05) * self.slow

    # The journal's files.

    def pwrite(self, fd: int, data: bytes | bytearray, at: int) -> int:
        kept = self.kept(os.fstat(fd).st_ino, fd)
        size = len(data)
        # Into room that was reserved before, a full disk takes it as ever.
        problem = self.fails(grows=at + size > os.fstat(fd).st_size)
        if problem:
            size = self._chance.randrange(size + 1)  # a part of it was written all the same
        os.pwrite(fd, data[:size], at)
        self.wrote(kept, at, bytes(data[:size]))
        if problem == errno.EIO:
            raise OSError(problem, os.strerror(problem))
        return size

    def pread(self, fd: int, amount: int, at: int) -> bytes:
        if problem := self.fails(grows=False):
            raise OSError(problem, os.strerror(problem))
        return os.pread(fd, amount, at)

    def reserve(self, fd: int, at: int, size: int) -> None:
        if problem := self.fails(grows=True):
            raise OSError(problem, os.strerror(problem))
        os.ftruncate(fd, size)

    def fdatasync(self, fd: int) -> None:
        kept, number = self.kept(os.fstat(fd).st_ino, fd), self._number
        self._threads.pass_time(self.seconds())
        self._loop.trace.note("disk sync")
        if problem := self.fails(grows=False):
            kept.lose_some(self._chance)
            raise OSError(problem, os.strerror(problem))
        kept.flush(number)

    def kernel_sync(self) -> SimKernelSync:
        self._descriptors += 1
        return SimKernelSync(self, self._loop, self._descriptors)

    # SQLite's jobs.

    def begin_job(self) -> None:
        self._jobs[self._threads.current] = Job(self._number, {})

    @property
    def in_job(self) -> bool:
        return self._threads.current in self._jobs

    def end_job(self) -> None:
        """The time that the work took passes now: SQLite itself did it in no time."""
        thread = self._threads.current
        self._threads.pass_time(self.seconds())
        for kept in self._jobs.pop(thread).files.values():
            kept.settle()

    # Loss of power.

    def after_power_loss(self, before: Path, after: Path) -> None:
        """The files of one folder in another, as they may be found."""
        self._cut_job()
        for path in sorted(before.rglob("*")):
            place = after / path.relative_to(before)
            if path.is_dir():
                place.mkdir(mode=0o700, parents=True, exist_ok=True)
            elif path.name.endswith("-shm") or not path.is_file():
                continue
            else:
                found = self._kept.get(path.stat().st_ino)
                if found is None:
                    shutil.copy(path, place)
                else:
                    place.write_bytes(found.after_power_loss(self._chance))
                    place.chmod(0o600)
        self._kept.clear()
        self._jobs.clear()

    def _cut_job(self) -> None:
        """One job of SQLite may be in the middle of its writes."""
        for thread, job in self._jobs.items():
            later = [
                write for kept in job.files.values() for write in kept.pending if write.number > job.first
            ]
            if later and all(write.job is thread for write in later) and self._chance.random() < 0.7:
                cut = self._chance.randint(job.first, self._number)
                for kept in job.files.values():
                    kept.pending = [write for write in kept.pending if write.number <= cut]


class SimKernelSync:
    """As `KernelSync`: the kernel syncs, and its descriptor says when."""

    def __init__(self, disk: SimDisk, loop: SimLoop, descriptor: int) -> None:
        self._disk = disk
        self._loop = loop
        self.descriptor = descriptor
        self._result: int | None = None

    def submit(self, files: Sequence[int]) -> None:
        if self._disk.failing and self._disk.fails(grows=False):
            raise OSError(errno.EINVAL, "refused")
        synced = [self._disk.kept(os.fstat(fd).st_ino, fd) for fd in files]
        self._result = None
        self._loop.at(CLOCK.now + self._disk.seconds(), self._done, synced, self._disk._number)

    def _done(self, synced: list[Kept], number: int) -> None:
        self._loop.trace.note("disk kernel sync")
        self._result = self._disk.fails(grows=False)
        for kept in synced:
            if self._result:
                kept.lose_some(self._disk._chance)
            else:
                kept.flush(number)
        self._loop.readable(self.descriptor)

    def collect(self) -> int | None:
        return self._result

    def close(self) -> None:
        pass


class SimVfs(apsw.VFS):
    """SQLite's file system, the default one. `disk` is that of the run."""

    disk: SimDisk

    def __init__(self) -> None:
        self.below = apsw.vfs_names()[0]
        super().__init__("sim", self.below, makedefault=True)

    def xOpen(self, name: Any, flags: Any) -> Any:
        return _File(self, name, flags)

    def xCurrentTimeInt64(self) -> int:
        return int((CLOCK.wall / 86400.0 + 2440587.5) * 86400000.0)

    def xRandomness(self, size: int) -> bytes:
        return os.urandom(size)

    def xSleep(self, microseconds: int) -> int:
        CLOCK.now += microseconds / 1e6
        return microseconds


class _File(apsw.VFSFile):
    def __init__(self, vfs: SimVfs, name: Any, flags: Any) -> None:
        super().__init__(vfs.below, name, flags)
        self._vfs = vfs
        path = str(name.filename() if isinstance(name, apsw.URIFilename) else name or "")
        self._kept = vfs.disk.kept(os.stat(path).st_ino, path) if path else Kept(b"")

    def xWrite(self, data: bytes, offset: int) -> None:
        disk = self._vfs.disk
        if problem := disk.fails(grows=offset + len(data) > super().xFileSize()):
            raise _refused(problem, apsw.SQLITE_IOERR_WRITE)
        super().xWrite(data, offset)
        disk.wrote(self._kept, offset, bytes(data))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self._vfs.disk.wrote(self._kept, newsize, None)

    def xSync(self, flags: int) -> None:
        disk = self._vfs.disk
        if problem := disk.fails(grows=False):
            self._kept.lose_some(disk._chance)
            raise _refused(problem, apsw.SQLITE_IOERR_FSYNC)
        super().xSync(flags)
        disk.wrote(self._kept, -1, None)
        if not disk.in_job:
            self._kept.settle()  # else when the job's time is over: power may be lost in the middle of it


def _refused(number: int, extended: int) -> apsw.Error:
    if number == errno.ENOSPC:
        return apsw.FullError("the simulated disk is full")
    problem: Any = apsw.IOError("the simulated disk fails")
    problem.extendedresult = extended  # which is what SQLite is told
    return cast(apsw.Error, problem)
