"""One file of a usage journal: a header, then framed rows, then whatever the file held before.

A frame is the length of a row, a checksum, and the row in MessagePack. Checksums begin from the segment's own
salt, so that rows left over from the file's last use are never taken for rows of this one.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import struct
import zlib
from pathlib import Path
from typing import Final

import msgspec

from wireglot.stores.journal.disk import Disk
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
    """Add a row to `buffer`. Raises UnicodeEncodeError, and has then added nothing."""
    body = _ENCODER.encode(row)
    buffer += _FRAME.pack(len(body), zlib.crc32(body, salt)) + body


def unframe(data: bytes, salt: int, limit: int) -> tuple[list[UsageRow], int]:
    """The whole rows at the beginning of `data`, at most `limit`, and how many bytes they take."""
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
                break  # of a version that is not ours
            at += _FRAME_BYTES + length
    return rows, at


class Segment:
    """Written from its beginning to its end, read behind. Its file stays as large as it was made."""

    __slots__ = ("disk", "end", "fd", "number", "path", "safe", "salt", "size")

    def __init__(self, fd: int, size: int, path: Path | None, disk: Disk) -> None:
        self.disk = disk
        self.fd = fd
        self.size = size
        self.path = path
        """None: the file has no name, and goes with the process."""
        self.number = 0
        self.salt = 0
        self.end = BEGIN
        self.safe = BEGIN
        """What lies before it is known to be on the disk."""

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
        """Forget what it holds. `number` is its place among its siblings."""
        self.salt, self.number = secrets.randbits(32), number
        self.end = self.safe = BEGIN
        self.touch()

    def forget(self) -> None:
        """Its rows are in the store: whoever finds the file need not read it."""
        with contextlib.suppress(OSError):  # then they are applied once more, which changes nothing
            self.disk.write(self.fd, bytes(BEGIN), 0)

    def touch(self) -> None:
        """Write the header; also to find out whether the file can be written."""
        self.disk.write(self.fd, _HEADER.pack(_MAGIC, self.salt, self.number), 0)

    def put(self, framed: bytes | bytearray) -> None:
        self.disk.write(self.fd, framed, self.end)
        self.end += len(framed)

    def sync(self) -> None:
        self.disk.sync(self.fd)

    def rewrite(self) -> bool:
        """Write again what may not be on the disk. False where it can no longer be read itself."""
        data = self.disk.read(self.fd, self.end - self.safe, self.safe)
        intact = unframe(data, self.salt, len(data))[1] == self.end - self.safe
        self.touch()
        if intact:
            self.disk.write(self.fd, data, self.safe)
        return intact

    def rows(self, at: int, limit: int, amount: int) -> tuple[list[UsageRow], int]:
        """Rows from a place on, of at most `amount` bytes, and the place behind them."""
        data = self.disk.read(self.fd, min(amount, self.end - at), at)
        rows, used = unframe(data, self.salt, limit)
        return rows, at + used


def number_of(path: Path) -> int:
    """The place of a file among its siblings; 0 where it holds no rows."""
    with path.open("rb") as file:
        header = file.read(BEGIN)
    if len(header) < BEGIN:
        return 0
    magic, _, number = _HEADER.unpack(header)
    return number if magic == _MAGIC else 0


def read_segment(path: Path) -> list[UsageRow]:
    """All rows of a file that nobody writes any more; those before the first that is torn or damaged."""
    data = path.read_bytes()
    _, salt, _ = _HEADER.unpack_from(data)
    return unframe(data[BEGIN:], salt, len(data))[0]
