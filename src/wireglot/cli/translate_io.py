"""Files and dialects named by options of `wireglot translate`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, Protocol, cast

from wireglot.cli.terminal import Unusable, complain
from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.registry import UnknownDialect, dialect

CHUNK = 1 << 16
# Bytes of one document that is translated, which is held whole. A device has no end.
MAX_INPUT_BYTES: Final = 256 * 1024 * 1024


class ByteSource(Protocol):
    """The input of a translation: `read1` returns the available data, and b"" only at the end."""

    def read1(self, size: int = -1, /) -> bytes: ...

    def fileno(self) -> int: ...


class ByteSink(Protocol):
    def write(self, data: bytes, /) -> int: ...

    def flush(self) -> None: ...


@contextmanager
def open_source(path: str | None, option: str = "--in") -> Iterator[ByteSource]:
    if path is None:
        if sys.stdin is None:
            raise Unusable("standard input is closed")
        if sys.stdin.isatty():
            complain("reading from the terminal, Ctrl-D ends the input")
        yield cast(ByteSource, sys.stdin.buffer)
        return
    with _open(path, "rb", option) as file:
        yield cast(ByteSource, file)


@contextmanager
def open_sink(path: str | None, option: str = "--out") -> Iterator[ByteSink]:
    if path is None:
        sys.stdout.flush()  # printed text must come before the bytes
        yield sys.stdout.buffer
        return
    try:
        with _open(path, "wb", option) as file:
            yield file
    except OSError as fault:  # a full disk
        raise Unusable(f"{option} {path}: {fault.strerror or fault}") from None


def read_all(path: str | None, option: str = "--in") -> bytes:
    pieces, size = list[bytes](), 0
    with open_source(path, option) as opened:
        while piece := opened.read1(CHUNK):
            pieces.append(piece)
            size += len(piece)
            if size > MAX_INPUT_BYTES:
                where = f"{option} {path}" if path is not None else "standard input"
                raise Unusable(f"{where}: expected at most {MAX_INPUT_BYTES >> 20} MiB")
    return b"".join(pieces)


def write_all(data: bytes, path: str | None, option: str = "--out") -> None:
    with open_sink(path, option) as opened:
        opened.write(data)
        opened.flush()


def refuse_same_file(source_path: str | None, sink_path: str | None) -> None:
    """Opening the output empties it: refused if it is the input, which is still to be read."""
    if source_path is not None and sink_path is not None and os.path.exists(sink_path):
        try:
            same = os.path.samefile(source_path, sink_path)
        except OSError:
            return
        if same and os.path.isfile(sink_path):
            raise Unusable(f"--out {sink_path}: expected another file than --in")


def _open(path: str, mode: str, option: str) -> BinaryIO:
    try:
        return cast(BinaryIO, open(path, mode))
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
        raise Unusable(f"{option} {path}: {reason}") from None


def find_dialect(name: str) -> Dialect:
    """Packages are searched only for a name that is not one of our dialects: it takes a while.

    Raises UnknownDialect.
    """
    try:
        return dialect(name)
    except UnknownDialect:
        from wireglot_core.plugins import load_dialects

        load_dialects()
        return dialect(name)
