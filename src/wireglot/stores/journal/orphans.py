"""Journals of processes that have gone: taken over by whoever comes first, and read to their end."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from wireglot.stores.journal.disk import lock_file
from wireglot.stores.journal.files import LOCK, SUFFIX, held, number_of, read_segment
from wireglot.stores.records import UsageRow


class Orphan:
    """One such journal, ours as long as it is held."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self.instance = path.name
        self._lock = lock

    def rows(self) -> Iterator[list[UsageRow]]:
        """File by file, the oldest first."""
        numbered = [(number_of(path), path) for path in self.path.glob(f"*{SUFFIX}")]
        for number, path in sorted(numbered):
            if number:
                yield read_segment(path)

    def remove(self) -> None:
        """Its rows are in the store. The lock goes last: a half-removed journal is still one."""
        for path in sorted(self.path.iterdir()):
            if path.name != LOCK:
                path.unlink()
        (self.path / LOCK).unlink()
        self.path.rmdir()
        self.release()

    def release(self) -> None:
        """Leave it to another, if it is still ours."""
        if self._lock >= 0:
            lock, self._lock = self._lock, -1
            os.close(lock)


def orphans(folder: Path, own: str) -> list[Orphan]:
    """Take over every journal in `folder` whose process has gone. What cannot be opened is left alone."""
    if not folder.is_dir():
        return []
    found = []
    with held(folder):
        for path in sorted(folder.iterdir()):
            if path.name == own or not path.is_dir():
                continue
            try:
                lock = os.open(path / LOCK, os.O_RDWR)
            except FileNotFoundError:
                # Nobody makes one while we hold the folder: its removal was cut short.
                with contextlib.suppress(OSError):
                    path.rmdir()
                continue
            except OSError:
                continue
            if not lock_file(lock):
                os.close(lock)
                continue
            if not (path / LOCK).exists():  # removed by its last owner between our two steps
                os.close(lock)
                continue
            try:
                _drop_spares(path)
            except OSError:
                os.close(lock)
                continue
            found.append(Orphan(path, lock))
    return found


def _drop_spares(path: Path) -> None:
    """Room that its process had reserved, and holds no row that the store may lack."""
    for spare in path.glob(f"*{SUFFIX}"):
        if not number_of(spare):
            spare.unlink()
