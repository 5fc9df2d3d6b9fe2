"""The settings that hold now, for a worker that takes the place of one that died.

The supervisor knows only the settings of the start, and the file may be broken, or emptied, by the time a
worker dies: whoever came back with those of the start would let a key in that was taken back since.
"""

from __future__ import annotations

import os
import pickle
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from wireglot.gateway.settings import Settings

_PLACE: Final = struct.Struct("QQ")
"""Where in the file they stand, and how long they are."""


class HandedDown:
    """A file without a name, open in the supervisor and in all its workers: nobody else can read it."""

    def __init__(self) -> None:
        self._fd = _nameless()

    def write(self, settings: Settings) -> None:
        """Settings that were taken up. Those of before are whole until the new ones are: a writer may be
        killed at any point."""
        data = pickle.dumps(settings)
        with self._alone():
            start, length = self._place()
            begin = _PLACE.size if _PLACE.size + len(data) <= start else start + length
            os.pwrite(self._fd, data, begin)
            os.pwrite(self._fd, _PLACE.pack(begin, len(data)), 0)

    def read(self) -> Settings | None:
        """The last ones; None where there were none since the start."""
        with self._alone():
            start, length = self._place()
            data = os.pread(self._fd, length, start)
        if not data:
            return None
        found = pickle.loads(data)  # written by this very program, in this run of it
        assert isinstance(found, Settings)
        return found

    def _place(self) -> tuple[int, int]:
        head = os.pread(self._fd, _PLACE.size, 0)
        start, length = _PLACE.unpack(head) if head else (_PLACE.size, 0)
        return start, length

    def close(self) -> None:
        os.close(self._fd)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Locks of processes, not of descriptors: all workers have the same one."""
        import fcntl  # Windows has none, and no workers

        fcntl.lockf(self._fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN)


def _nameless() -> int:
    if hasattr(os, "memfd_create"):  # Linux: it is on no disk either
        return os.memfd_create("wireglot-settings")
    with tempfile.TemporaryFile(prefix="wireglot-") as file:
        return os.dup(file.fileno())
