"""Test material of a dialect on disk, read by its folder.

requests/*.json  responses/*.json  streams/*.sse|json  errors/<name>.<status>.json
A stream and a response of the same name are twins: the same answer, streamed and whole.
"""

from __future__ import annotations

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
