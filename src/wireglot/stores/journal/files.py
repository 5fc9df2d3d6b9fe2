"""The files of one process's journal: created ahead of need, in a directory that it locks while it lives.

A file is a header, then framed rows, then old data. A frame is the length of a row, a checksum, and the row
in MessagePack. Checksums begin from the file's own salt, so that rows left over from its last use are never
taken for rows of this one.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import struct
import tempfile
import threading
import zlib
from collections import deque
from collections.abc import Collection, Generator, Iterator
from pathlib import Path
from typing import Final

import msgspec

from wireglot.stores.journal.disk import Disk, KernelSync, lock_file
from wireglot.stores.records import UsageRow

_MAGIC: Final = b"WGJ1"
_HEADER: Final = struct.Struct(">4sIQ")
_FRAME: Final = struct.Struct(">II")
BEGIN: Final = _HEADER.size
"""Where the rows of a file begin."""
_FRAME_BYTES: Final = _FRAME.size
SUFFIX: Final = ".usage"

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(UsageRow)


def frame(row: UsageRow, buffer: bytearray, salt: int) -> None:
    """Add a row to `buffer`. Raises UnicodeEncodeError, and then adds nothing."""
    body = _ENCODER.encode(row)
    buffer += _FRAME.pack(len(body), zlib.crc32(body, salt)) + body


def unframe(data: bytes, salt: int, limit: int) -> tuple[list[UsageRow], int]:
    """The complete rows at the beginning of `data`, at most `limit`, and how many bytes they take."""
    rows: list[UsageRow] = []
    at = 0
    with memoryview(data) as view:
        while len(rows) < limit and at + _FRAME_BYTES <= len(data):
            length, checksum = _FRAME.unpack_from(data, at)
            body = view[at + _FRAME_BYTES : at + _FRAME_BYTES + length]
            if not length or len(body) < length or zlib.crc32(body, salt) != checksum:
                break
            try:
                rows.append(_DECODER.decode(body))
            except msgspec.MsgspecError:
                break  # of another version
            at += _FRAME_BYTES + length
    return rows, at


class Segment:
    """One file, written from its beginning to its end and read later. Its size never changes."""

    __slots__ = ("disk", "end", "fd", "number", "path", "safe", "salt", "size")

    def __init__(self, fd: int, size: int, path: Path | None, disk: Disk) -> None:
        self.disk = disk
        self.fd = fd
        self.size = size
        self.path = path
        """None: the file has no name, and ends with the process."""
        self.number = 0
        self.salt = 0
        self.end = BEGIN
        self.safe = BEGIN
        """Everything before this offset is known to be on disk."""

    @classmethod
    def create(cls, fd: int, size: int, path: Path | None, disk: Disk) -> Segment:
        try:
            disk.reserve(fd, size)
        except OSError:
            os.close(fd)
            if path is not None:
                path.unlink(missing_ok=True)
            raise
        return cls(fd, size, path, disk)

    def begin(self, number: int) -> None:
        """Discard its content and begin again. `number` is its place among its siblings."""
        self.salt, self.number = secrets.randbits(32), number
        self.end = self.safe = BEGIN
        self.touch()

    def forget(self) -> None:
        """Its rows are in the store: a process that finds the file need not read it."""
        with contextlib.suppress(OSError):  # otherwise they are applied again, which has no effect
            self.disk.write(self.fd, bytes(BEGIN), 0)

    def touch(self) -> None:
        """Write the header; also to test whether the file can be written."""
        self.disk.write(self.fd, _HEADER.pack(_MAGIC, self.salt, self.number), 0)

    def put(self, framed: bytes | bytearray) -> None:
        self.disk.write(self.fd, framed, self.end)
        self.end += len(framed)

    def sync(self) -> None:
        self.disk.sync(self.fd)

    def rewrite(self) -> bool:
        """Write again what may not be on disk. False if it cannot be read back itself."""
        data = self.disk.read(self.fd, self.end - self.safe, self.safe)
        intact = unframe(data, self.salt, len(data))[1] == self.end - self.safe
        self.touch()
        if intact:
            self.disk.write(self.fd, data, self.safe)
        return intact

    def rows(self, at: int, limit: int, amount: int) -> tuple[list[UsageRow], int]:
        """Rows from an offset on, of at most `amount` bytes, and the offset after them."""
        data = self.disk.read(self.fd, min(amount, self.end - at), at)
        rows, used = unframe(data, self.salt, limit)
        return rows, at + used


def number_of(path: Path) -> int:
    """The place of a file among its siblings; 0 if it contains no rows."""
    with path.open("rb") as file:
        header = file.read(BEGIN)
    if len(header) < BEGIN:
        return 0
    magic, _, number = _HEADER.unpack(header)
    return number if magic == _MAGIC else 0


def read_segment(path: Path) -> list[UsageRow]:
    """All rows of a file that no process writes any more, up to the first torn or damaged one."""
    data = path.read_bytes()
    _, salt, _ = _HEADER.unpack_from(data)
    return unframe(data[BEGIN:], salt, len(data))[0]


LOCK: Final = "lock"
"""In each process's directory, held by its owner; in the directory above, by the process that creates or
takes over one."""


@contextlib.contextmanager
def held(folder: Path) -> Generator[None, None, None]:
    """Held while directories of journals are created, taken over or removed: by one process at a time."""
    fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        lock_file(fd, wait=True)
        yield
    finally:
        os.close(fd)


class Shelf:
    """The files of a journal. `spares` can be written from their beginning."""

    def __init__(self, home: Path | None, size: int, most: int, disk: Disk) -> None:
        """`home`: None for files without a name, which end with the process. `most`: files of `size`
        bytes."""
        self.home = home
        self.spares: deque[Segment] = deque()
        self._size = size
        self._most = most
        # A journal that ends with its process needs no reserved space.
        self._ahead = most if home is not None else 1
        self._made = 0
        self._disk = disk
        self._making = threading.Lock()
        self._lock = -1

    def room(self, waste: int) -> int:
        """Free bytes in existing files, of which each may leave `waste` unused at its end."""
        files = len(self.spares)
        if self.home is None:
            files += self._most - self._made  # created when they are needed
        return files * (self._size - BEGIN - waste)

    @property
    def lacks(self) -> bool:
        """Whether another file should be created."""
        return self._made < self._most and len(self.spares) < self._ahead

    def kernel_sync(self) -> KernelSync | None:
        return self._disk.kernel_sync()

    def enter(self) -> None:
        """Create and lock a directory."""
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
                with contextlib.suppress(PermissionError):  # Windows does not remove the name of an open file
                    os.unlink(name)
                path = None
            else:
                path = self.home / f"{self._made}{SUFFIX}"
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            self.spares.append(Segment.create(fd, self._size, path, self._disk))
            self._made += 1

    def leave(self, written: Collection[Segment], *, keep: bool) -> None:
        """Close everything; with `keep`, only written files stay, for the next process."""
        for segment in (*written, *self.spares):
            os.close(segment.fd)
            if segment.path is not None and not (keep and segment in written):
                segment.path.unlink(missing_ok=True)
        if self.home is None or self._lock < 0:
            return
        if not keep:
            (self.home / LOCK).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # not empty: the remaining content is not ours
                self.home.rmdir()
        os.close(self._lock)


class Orphan:
    """The journal of a process that has ended, ours as long as it is locked."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self.instance = path.name
        self._lock = lock

    def rows(self) -> Iterator[list[UsageRow]]:
        """The rows file by file, the oldest first."""
        numbered = [(number_of(path), path) for path in self.path.glob(f"*{SUFFIX}")]
        for number, path in sorted(numbered):
            if number:
                yield read_segment(path)

    def remove(self) -> None:
        """Called when its rows are in the store. The lock is removed last: a half-removed journal is still
        one."""
        for path in sorted(self.path.iterdir()):
            if path.name != LOCK:
                path.unlink()
        (self.path / LOCK).unlink()
        self.path.rmdir()
        self.release()

    def release(self) -> None:
        """Leave it to another process, if it is still ours."""
        if self._lock >= 0:
            lock, self._lock = self._lock, -1
            os.close(lock)


def orphans(folder: Path, own: str) -> list[Orphan]:
    """Take over every journal in `folder` whose process has ended. What cannot be opened is left alone."""
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
                # No process creates one while we hold the folder: its removal was interrupted.
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
    """Remove space that its process had reserved, without rows that the store may lack."""
    for spare in path.glob(f"*{SUFFIX}"):
        if not number_of(spare):
            spare.unlink()
