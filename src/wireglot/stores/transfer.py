"""A store as lines of JSON, to be loaded into another one. Sealed values stay sealed: the secret is moved
separately.

The first line is a header, the last one contains the number of records, so that a truncated file is not taken
for a complete one.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Final, assert_never

import msgspec

from wireglot.stores.base import Engine
from wireglot.stores.records import Document, KeyRow, Record, UsageRow, VaultEntry

FORMAT: Final = 1
BATCH_RECORDS: Final = 500
BATCH_BYTES: Final = 4 << 20


class BadTransfer(ValueError):
    """What is wrong with the lines, and in which one."""


class _Header(msgspec.Struct):
    wireglot_store: int


class _Line(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    document: Document | None = None
    vault: VaultEntry | None = None
    usage: UsageRow | None = None
    key: KeyRow | None = None
    end: int | None = None
    """How many records came before."""


_HEADER: Final = msgspec.json.Decoder(_Header)
_LINE: Final = msgspec.json.Decoder(_Line)
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


async def export_lines(engine: Engine) -> AsyncIterator[bytes]:
    """Lines with their line feeds."""
    yield msgspec.json.encode(_Header(FORMAT)) + b"\n"
    count = 0
    async for record in engine.export():
        match record:
            case Document():
                line = _Line(document=record)
            case VaultEntry():
                line = _Line(vault=record)
            case UsageRow():
                line = _Line(usage=record)
            case KeyRow():
                line = _Line(key=record)
            case _:
                assert_never(record)
        yield _write(line)
        count += 1
    yield _write(_Line(end=count))


async def import_lines(engine: Engine, lines: AsyncIterable[bytes] | Iterable[bytes]) -> int:
    """Returns the number of records. They are written in batches; nothing of the batch with a bad line is
    written, and existing records are not changed, so the same lines may be imported again."""
    batch: list[Record] = []
    size = count = number = 0
    ended = False
    async for line in _each(lines):
        number += 1
        if not line.strip():
            continue
        if number == 1:
            _read_header(line)
            continue
        if ended:
            raise BadTransfer(f"line {number}: nothing may come after the line that ends an export")
        record = _read(line, number)
        if isinstance(record, int):
            if record != count:
                raise BadTransfer(f"line {number}: tells of {record} records, but {count} came")
            ended = True
            continue
        batch.append(record)
        count += 1
        size += len(line)
        if len(batch) >= BATCH_RECORDS or size > BATCH_BYTES:
            await engine.load(batch)
            batch, size = [], 0
    if not number:
        raise BadTransfer("line 1: there is nothing; expected the header of an export")
    if batch:
        await engine.load(batch)
    if not ended:
        raise BadTransfer(
            f"line {number}: the export was cut short after {count} records; what there was has been taken"
        )
    return count


def _read_header(line: bytes) -> None:
    try:
        version = _HEADER.decode(line).wireglot_store
    except msgspec.MsgspecError as error:
        raise BadTransfer("line 1: not the header of an export of a wireglot store") from error
    if version != FORMAT:
        raise BadTransfer(f"line 1: format {version} is not known here (only {FORMAT})")


def _write(line: _Line) -> bytes:
    try:
        return msgspec.json.encode(line) + b"\n"
    except UnicodeEncodeError:
        # Half a surrogate pair in a client's name: only the standard library writes (and reads) it.
        return json.dumps(msgspec.to_builtins(line)).encode() + b"\n"


def _decode(line: bytes) -> _Line:
    if _SURROGATE.search(line) is None:
        return _LINE.decode(line)
    try:
        return msgspec.convert(json.loads(line), _Line)
    except ValueError as error:
        raise msgspec.DecodeError(str(error)) from error


def _read(line: bytes, number: int) -> Document | UsageRow | KeyRow | VaultEntry | int:
    try:
        found = _decode(line)
    except msgspec.MsgspecError as error:
        raise BadTransfer(f"line {number}: {error}") from error
    records = [
        record
        for record in (found.document, found.vault, found.usage, found.key, found.end)
        if record is not None
    ]
    if len(records) != 1:
        raise BadTransfer(f"line {number}: expected one record, got {len(records)}")
    return records[0]


async def _each(lines: AsyncIterable[bytes] | Iterable[bytes]) -> AsyncIterator[bytes]:
    if isinstance(lines, AsyncIterable):
        async for line in lines:
            yield line
    else:
        for line in lines:
            yield line
