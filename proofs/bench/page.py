"""The generated parts of a page of figures, each between two marks."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Marks(NamedTuple):
    begin: str
    end: str


FIGURES = Marks("<!-- figures: written by a benchmark with --write -->", "<!-- end of figures -->")
PEERS = Marks("<!-- peers: written by `make bench-peers` with --write -->", "<!-- end of peers -->")
CAPACITY = Marks("<!-- capacity: written by `make capacity` -->", "<!-- end of capacity -->")


def write(path: Path, text: str, marks: Marks = FIGURES) -> None:
    """Put the figures between the two marks of the page."""
    page = path.read_text(encoding="utf-8")
    head, begin, rest = page.partition(marks.begin)
    _, end, tail = rest.partition(marks.end)
    if not begin or not end:
        raise SystemExit(f"bench: {path}: expected the marks {marks.begin} and {marks.end}")
    path.write_text(f"{head}{marks.begin}\n\n{text}\n\n{marks.end}{tail}", encoding="utf-8")
