"""The files of one process's journal: made ahead of need, in a directory that it holds while it lives."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections import deque
from collections.abc import Collection, Generator
from pathlib import Path
from typing import Final

from wireglot.stores.journal.disk import Disk, lock_file
from wireglot.stores.journal.kernel_sync import KernelSync
from wireglot.stores.journal.segment import BEGIN, SUFFIX, Segment

LOCK: Final = "lock"
"""In each process's directory, held by its owner; in the directory above, by whoever makes or takes one."""


@contextlib.contextmanager
def held(folder: Path) -> Generator[None, None, None]:
    """While directories of journals are made, taken or removed: one process at a time."""
    fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        lock_file(fd, wait=True)
        yield
    finally:
        os.close(fd)


class Shelf:
    """`spares` are the files that can be written from their beginning."""

    def __init__(self, home: Path | None, size: int, most: int, disk: Disk) -> None:
        """`home`: None for files without a name, which go with the process. `most`: files of `size` bytes."""
        self.home = home
        self.spares: deque[Segment] = deque()
        self._size = size
        self._most = most
        # A journal that ends with its process need not be promised room.
        self._ahead = most if home is not None else 1
        self._made = 0
        self._disk = disk
        self._making = threading.Lock()
        self._lock = -1

    def room(self, waste: int) -> int:
        """Bytes in files that are there, of which each may leave `waste` at its end."""
        files = len(self.spares)
        if self.home is None:
            files += self._most - self._made  # made when they are needed
        return files * (self._size - BEGIN - waste)

    @property
    def lacks(self) -> bool:
        """Whether another file should be made."""
        return self._made < self._most and len(self.spares) < self._ahead

    def kernel_sync(self) -> KernelSync | None:
        return self._disk.kernel_sync()

    def enter(self) -> None:
        """Have a directory, and its lock."""
        home = self.home
        if home is None or self._lock >= 0:
            return
        home.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with held(home.parent):
            home.mkdir(mode=0o700, exist_ok=True)
            self._lock = os.open(home / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            lock_file(self._lock)

    def make(self) -> None:
        with self._making:
            if self._made >= self._most:
                return
            if self.home is None:
                fd, name = tempfile.mkstemp(prefix="wireglot-journal-")
                with contextlib.suppress(PermissionError):  # Windows keeps the name of an open file
                    os.unlink(name)
                path = None
            else:
                path = self.home / f"{self._made}{SUFFIX}"
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            self.spares.append(Segment.create(fd, self._size, path, self._disk))
            self._made += 1

    def leave(self, written: Collection[Segment], *, keep: bool) -> None:
        """Close everything; with `keep`, what was written stays for the next process, and nothing else."""
        for segment in (*written, *self.spares):
            os.close(segment.fd)
            if segment.path is not None and not (keep and segment in written):
                segment.path.unlink(missing_ok=True)
        if self.home is None or self._lock < 0:
            return
        if not keep:
            (self.home / LOCK).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # somebody put something there: it is theirs
                self.home.rmdir()
        os.close(self._lock)
