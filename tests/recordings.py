"""Recordings of real traffic: gzipped JSON lines, one exchange each, with at least `id`, `request`, `status`,
`response`."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from wireglot_core.wire.json import decode


def recordings(path: Path, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """The exchanges of one file; with a limit, evenly spread over it, the same each time."""
    rows = _rows(path)
    step = max(1, len(rows) // limit) if limit else 1
    for row in rows[::step][:limit]:
        yield decode(row)


@cache
def _rows(path: Path) -> list[bytes]:
    with gzip.open(path, "rb") as lines:
        return lines.readlines()
