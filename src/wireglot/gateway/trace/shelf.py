"""Recorded exchanges on disk: a sealed file each, readable only by its owner, for a limited time.

A file's name contains its time, its owner (as a hash) and its id:
`1767225600000-9f86d081884c7d65-req_....trace`. Its content is a mark, the length of the sealed row, the
sealed row and the sealed trace. It is written under a temporary name and then renamed, so that every reader
finds it complete. All workers of a machine, and later gateways, read the same folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import struct
import tempfile
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec

from wireglot.gateway.observe.log import Note
from wireglot.gateway.setting_tables import TraceSettings
from wireglot.stores.seal import Sealer, Unreadable
from wireglot_core.traces.trace import Row, Trace

FOLDER: Final = "traces"
_MARK: Final = b"wgtrace1"
_LENGTH: Final = struct.Struct(">I")
_NAME: Final = re.compile(r"(\d{13})-([0-9a-f]{16})-([A-Za-z0-9_-]{1,64})\.trace")
_ROW_KIND: Final = "trace-row"
_TRACE_KIND: Final = "trace"
# Bytes of one row in a recording's file.
_MAX_ROW_BYTES: Final = 64 * 1024
_FIRST_BYTES: Final = 4096
_READING: Final = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_BLOCK_ROWS: Final = 250
_MAX_ROWS_PACKED: Final = 200_000
"""Rows of recordings that are held in memory, compressed: a hundred to two hundred bytes each."""
# Rows of recordings that are cached.
_MAX_ROWS_KNOWN: Final = 10_000
# Damaged recordings that are reported, each once.
_MAX_REPORTED: Final = 100
_UNREADABLE: Final = (OSError, Unreadable, ValueError, zlib.error, msgspec.MsgspecError)
_DRAFT_SECONDS: Final = 3600.0
"""After this time a file that was never finished is abandoned."""


_RESTS_NANOSECONDS: Final = 1_000_000_000
_read_row: Final = msgspec.json.Decoder(Row).decode
_write_rows: Final = msgspec.msgpack.Encoder().encode
_read_rows: Final = msgspec.msgpack.Decoder(list[Row]).decode
_read_trace: Final = msgspec.json.Decoder(Trace).decode


class Kept(msgspec.Struct, frozen=True):
    """An existing file."""

    name: str
    at: float
    owner: str
    id: str
    size: int


class _Block(msgspec.Struct, frozen=True, eq=False):
    """Rows of files, packed."""

    names: tuple[str, ...]
    data: bytes


def _newest(kept: Kept) -> tuple[float, str]:
    return kept.at, kept.id


def owner_of(key: str) -> str:
    """A hash: a key's name may be a person's, and file names are not secret."""
    return hashlib.sha256(f"caller {key}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def file_name(row: Row) -> str:
    return f"{int(row.at * 1000):013d}-{owner_of(row.key)}-{row.id}.trace"


class TraceShelf:
    """Called in threads: nothing of it is bound to the loop."""

    def __init__(self, folder: Path | None, sealer: Sealer, note: Note) -> None:
        """`folder`: None for a temporary one that is made when it is first needed, and removed by `close`."""
        self.folder = folder
        self._is_temporary = folder is None
        self._sealer = sealer
        self._note = note
        self._rows: OrderedDict[str, Row] = OrderedDict()
        self._blocks: dict[str, _Block] = {}
        """By file name, for files whose rows `rows` has packed."""
        self._lock = Lock()
        self._scanning = Lock()
        self._kept: dict[str, Kept] = {}
        """The folder's content when it was last read: by name, the newest first."""
        self._listing: list[Kept] = []
        self._changed = 0
        self._reported: set[str] = set()

    def put(self, trace: Trace) -> int:
        """Returns the file's size in bytes. Raises OSError."""
        row = trace.row
        owner = owner_of(row.key)
        sealed_row = self._sealer.seal(owner, _ROW_KIND, row.id, msgspec.json.encode(row))
        sealed = self._sealer.seal(owner, _TRACE_KIND, row.id, msgspec.json.encode(trace))
        data = b"".join((_MARK, _LENGTH.pack(len(sealed_row)), sealed_row, sealed))
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="wireglot-traces-"))
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = file_name(row)
        draft = self.folder / f".{name}.new"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            draft.replace(self.folder / name)
        except OSError:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise
        self._know(name, row)
        return len(data)

    def listed(self) -> Sequence[Kept]:
        """The newest first."""
        if self.folder is None:
            return []
        with self._scanning:
            try:
                changed = self.folder.stat().st_mtime_ns
            except OSError:  # nothing was ever recorded
                return []
            # A change within the clock's last tick may not show: a folder unchanged for longer is not read
            # again.
            if changed != self._changed or time.time_ns() - changed < _RESTS_NANOSECONDS:
                known = self._kept
                self._kept = dict(self._scanned(known))
                self._listing = sorted(self._kept.values(), key=_newest, reverse=True)
                self._changed = changed
            return self._listing

    def row(self, kept: Kept) -> Row | None:
        """None if it cannot be read: that is reported once."""
        with self._lock:
            known = self._rows.get(kept.name)
        if known is not None:
            return known
        try:
            sealed = _sealed_row(f"{self.folder}/{kept.name}")
            row = _read_row(self._sealer.open(kept.owner, _ROW_KIND, kept.id, sealed))
        except _UNREADABLE as fault:
            self._tell(kept, fault)
            return None
        if len(self._rows) < _MAX_ROWS_KNOWN:  # a scan of all files leaves the newest ones cached
            self._know(kept.name, row)
        return row

    def rows(self, wants: Callable[[Kept], bool]) -> Iterator[Row]:
        """All rows, for a request that needs all, in no order. They stay packed in memory: the next time
        takes a tenth."""
        listed, there = self.listed(), self._kept
        with self._lock:
            blocks, packed = dict.fromkeys(self._blocks.values()), dict(self._blocks)
        for block in blocks:
            if any(name not in there for name in block.names):  # another process removed it
                self._unpack(block)
            rows = _read_rows(zlib.decompress(block.data))
            yield from (
                row
                for name, row in zip(block.names, rows, strict=True)
                if (kept := there.get(name)) is not None and wants(kept)
            )
        read: list[tuple[str, Row]] = []
        for kept in listed:
            if kept.name in packed or not wants(kept):
                continue
            row = self.row(kept)
            if row is None:
                continue
            yield row
            read.append((kept.name, row))
            if len(read) == _BLOCK_ROWS:
                self._pack(read)
                read = []

    def _pack(self, read: list[tuple[str, Row]]) -> None:
        names = tuple(name for name, _ in read)
        block = _Block(names, zlib.compress(_write_rows([row for _, row in read]), 1))
        with self._lock:
            if len(self._blocks) + len(names) <= _MAX_ROWS_PACKED:
                self._blocks.update(dict.fromkeys(names, block))

    def _unpack(self, block: _Block) -> None:
        """Its files are read again the next time."""
        with self._lock:
            for name in block.names:
                self._blocks.pop(name, None)

    def trace(self, kept: Kept) -> Trace | None:
        try:
            return self._opened(self._path(kept.name).read_bytes(), kept.owner, kept.id)
        except _UNREADABLE as fault:
            self._tell(kept, fault)
            return None

    def sealed(self, name: str) -> bytes | None:
        """The raw file, for another machine."""
        try:
            return self._path(name).read_bytes()
        except OSError:
            return None

    def opened(self, data: bytes, key: str, id: str) -> Trace:
        """Open a file of another machine. Raises Unreadable, or ValueError and its subclasses if it is
        invalid."""
        return self._opened(data, owner_of(key), id)

    def _opened(self, data: bytes, owner: str, id: str) -> Trace:
        begin = len(_MARK) + _LENGTH.size
        sealed = data[begin + _row_length(data[:begin]) :]
        return _read_trace(self._sealer.open(owner, _TRACE_KIND, id, sealed))

    def find(self, id: str) -> Kept | None:
        return next((kept for kept in self.listed() if kept.id == id), None)

    def reader(self) -> Callable[[str], Trace | None]:
        """Opens any of the files that are here now, by its id."""
        known = {kept.id: kept for kept in self.listed()}
        return lambda id: self.trace(known[id]) if id in known else None

    def sweep(self, settings: TraceSettings, now: float | None = None) -> int:
        """Remove expired files, and the oldest ones above the size limit. Returns the bytes that are left."""
        oldest = (time.time() if now is None else now) - settings.keep_hours * 3600
        held = 0
        for kept in self.listed():
            if kept.at < oldest or held + kept.size > settings.keep_bytes:
                self.remove(kept.name)
            else:
                held += kept.size
        self.__remove_drafts()
        return held

    def forget(self, key: str, until: float = float("inf")) -> int:
        """Remove all files of one caller up to a time. Returns how many there were."""
        owner = owner_of(key)
        theirs = [kept for kept in self.listed() if kept.owner == owner and kept.at <= until]
        for kept in theirs:
            self.remove(kept.name)
        return len(theirs)

    @property
    def bytes(self) -> int:
        return sum(kept.size for kept in self.listed())

    def close(self) -> None:
        if self._is_temporary and self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, name: str) -> Path:
        assert self.folder is not None, "a name is of a file that is there"
        return self.folder / name

    def _scanned(self, known: Mapping[str, Kept]) -> Iterator[tuple[str, Kept]]:
        """Only new files are examined."""
        assert self.folder is not None, "it has been looked at"
        try:
            entries = os.scandir(self.folder)
        except OSError:  # nothing was ever recorded
            return
        with entries:
            for entry in entries:
                if entry.name in known:
                    yield entry.name, known[entry.name]
                    continue
                found = _NAME.fullmatch(entry.name)
                with contextlib.suppress(OSError):  # removed meanwhile
                    if found is not None and entry.is_file(follow_symlinks=False):
                        size = entry.stat(follow_symlinks=False).st_size
                        yield entry.name, Kept(entry.name, int(found[1]) / 1000, found[2], found[3], size)

    def remove(self, name: str) -> None:
        with contextlib.suppress(OSError):
            self._path(name).unlink()
        with self._lock:
            self._rows.pop(name, None)
            block = self._blocks.get(name)
        if block is not None:
            self._unpack(block)

    def __remove_drafts(self) -> None:
        if self.folder is None:
            return
        with contextlib.suppress(OSError):
            for draft in self.folder.glob(".*.trace.new"):
                with contextlib.suppress(OSError):
                    if time.time() - draft.stat().st_mtime > _DRAFT_SECONDS:
                        draft.unlink()

    def _know(self, name: str, row: Row) -> None:
        with self._lock:
            self._rows[name] = row
            if len(self._rows) > _MAX_ROWS_KNOWN:
                self._rows.popitem(last=False)

    def _tell(self, kept: Kept, fault: Exception) -> None:
        """A file that is damaged, or foreign, is reported once and otherwise ignored."""
        if (
            isinstance(fault, FileNotFoundError)
            or kept.name in self._reported
            or len(self._reported) >= _MAX_REPORTED
        ):
            return
        self._reported.add(kept.name)
        reason = str(fault) if isinstance(fault, OSError) else "sealed with another secret, or damaged"
        self._note("warn", "unreadable", kind=_TRACE_KIND, file=kept.name, detail=reason)


def _sealed_row(path: str) -> bytes:
    """With one read if it is short: there may be a hundred thousand files to scan."""
    file = os.open(path, _READING)
    try:
        data = os.read(file, _FIRST_BYTES)
        begin = len(_MARK) + _LENGTH.size
        end = begin + _row_length(data[:begin])
        while len(data) < end:
            more = os.read(file, end - len(data))
            if not more:
                raise ValueError("not a recorded exchange")
            data += more
    finally:
        os.close(file)
    return data[begin:end]


def _row_length(head: bytes) -> int:
    if len(head) < len(_MARK) + _LENGTH.size or not head.startswith(_MARK):
        raise ValueError("not a recorded exchange")
    (length,) = _LENGTH.unpack_from(head, len(_MARK))
    if length > _MAX_ROW_BYTES:
        raise ValueError("not a recorded exchange")
    return int(length)
