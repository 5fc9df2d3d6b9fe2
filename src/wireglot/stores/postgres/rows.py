"""A usage row as the table holds it, and back."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from wireglot.ir.usage import COUNTS
from wireglot.stores.records import UsageRow
from wireglot.stores.sql import USAGE, USAGE_COLUMNS, Column, Sort, from_text, to_text

_LARGEST: Final = 1 << (63 - len(COUNTS).bit_length())
"""A provider that counts beyond it must not keep the other rows from being written; all token counts of a row
together still are a bigint."""
_ARRAYS: Final[dict[Sort, str]] = {
    "text": "text[]",
    "word": "text[]",
    "number": "bigint[]",
    "flag": "boolean[]",
    "list": "text[]",
}

_UNNEST: Final = ", ".join(f"${at}::{_ARRAYS[column.sort]}" for at, column in enumerate(USAGE, 1))
INSERT: Final = f"INSERT INTO usage ({USAGE_COLUMNS}) SELECT * FROM unnest({_UNNEST}) "


def columns(rows: Iterable[UsageRow]) -> list[list[Any]]:
    """As arrays, by id: two writers that lock the same rows cannot then wait for each other."""
    ordered = sorted(rows, key=lambda row: row.id)
    return [[_to_column(column.sort, getattr(row, column.name)) for row in ordered] for column in USAGE]


def usage_row(record: Any) -> UsageRow:
    return UsageRow(**{column.name: _from_column(column, record[column.name]) for column in USAGE})


def _to_column(sort: Sort, value: Any) -> Any:
    match sort:
        case "number":
            return None if value is None else max(-_LARGEST, min(_LARGEST, value))
        case "text" | "word":
            return to_text(value)
        case "list":
            return msgspec.json.encode(value).decode()
    return value


def _from_column(column: Column, value: Any) -> Any:
    match column.sort:
        case "text":
            return from_text(value)
        case "word":
            # Interned: msgspec leaves out a default only where it is the very same object.
            return sys.intern(from_text(value))
        case "list":
            return msgspec.json.decode(value, type=tuple[str, ...])
    return value
