"""Test material on disk: fixture directories, and recordings of real traffic.

Fixtures of a dialect:  requests/*.json  responses/*.json  streams/*.sse|json  errors/<name>.<status>.json
A stream and a response of the same name are twins: the same answer, streamed and whole.

Recordings are gzipped JSON lines, one exchange each, with at least `id`, `request`, `status`, `response`.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from wireglot.wire.json import decode


class Case(msgspec.Struct, frozen=True):
    """One document (`body`) or stream (`data`) of a dialect; `request` is what it answers, if known."""

    id: str
    dialect: str
    body: Any = None
    data: bytes = b""
    status: int = 200
    request: dict[str, Any] | None = None


def fixtures(root: Path, dialect: str, kind: str) -> list[Case]:
    """The fixtures of one kind (`requests`, `responses`, `streams`, `errors`), ordered by name."""
    cases = []
    for path in sorted((root / dialect / kind).glob("*.*")):
        name = f"{dialect}/{kind}/{path.name}"
        raw = path.read_bytes()
        if kind == "streams":
            cases.append(Case(name, dialect, data=raw))
        else:
            status = int(path.stem.rpartition(".")[2]) if kind == "errors" else 200
            cases.append(Case(name, dialect, body=decode(raw), status=status))
    return cases


def recordings(path: Path, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """The exchanges of one file; with a limit, evenly spread over it, the same each time."""
    with gzip.open(path, "rb") as lines:
        rows = lines.readlines()
    step = max(1, len(rows) // limit) if limit else 1
    for row in rows[::step][:limit]:
        yield decode(row)
