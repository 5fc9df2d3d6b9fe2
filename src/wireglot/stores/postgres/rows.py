"""A usage row as the table holds it, and back."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from wireglot.stores.records import UsageRow
from wireglot.stores.text import from_text, to_text

NAMES: Final = UsageRow.__struct_fields__
COLUMNS: Final = ", ".join(NAMES)
_NUMBERS: Final = frozenset(
    (
        "started",
        "finished",
        "status",
        "attempts",
        "first_byte",
        "input",
        "cache_read",
        "cache_write",
        "cache_write_long",
        "tool_prompt",
        "output",
        "reasoning",
        "cost",
    )
)
_WORDS: Final = frozenset(("outcome", "source"))
_LISTS: Final = frozenset(("losses", "flags"))
_LARGEST: Final = 2**60
"""A provider that counts beyond it must not keep the other rows from being written; all seven token counts
together still are a bigint."""


def _type(name: str) -> str:
    return "bigint[]" if name in _NUMBERS else "boolean[]" if name == "stream" else "text[]"


UNNEST: Final = "unnest(" + ", ".join(f"${at}::{_type(name)}" for at, name in enumerate(NAMES, 1)) + ")"
INSERT: Final = f"INSERT INTO usage ({COLUMNS}) SELECT * FROM {UNNEST} "


def columns(rows: Iterable[UsageRow]) -> list[list[Any]]:
    """As arrays, by id: two writers that lock the same rows cannot then wait for each other."""
    ordered = sorted(rows, key=lambda row: row.id)
    return [[_to_column(name, getattr(row, name)) for row in ordered] for name in NAMES]


def usage_row(record: Any) -> UsageRow:
    return UsageRow(**{name: _from_column(name, record[name]) for name in NAMES})


def _to_column(name: str, value: Any) -> Any:
    if name in _LISTS:
        return msgspec.json.encode(value).decode()
    if isinstance(value, str):
        return to_text(value)
    if name in _NUMBERS and value is not None:
        return max(-_LARGEST, min(_LARGEST, value))
    return value


def _from_column(name: str, value: Any) -> Any:
    if name in _LISTS:
        return msgspec.json.decode(value, type=tuple[str, ...])
    # Interned: msgspec leaves out a default only where it is the very same object.
    return (
        sys.intern(from_text(value))
        if name in _WORDS
        else from_text(value)
        if isinstance(value, str)
        else value
    )
