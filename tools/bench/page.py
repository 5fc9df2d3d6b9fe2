"""The generated part of a page of figures, between two marks."""

from __future__ import annotations

from pathlib import Path

BEGIN, END = "<!-- figures: written by a benchmark with --write -->", "<!-- end of figures -->"


def write(path: Path, text: str) -> None:
    """Put the figures between the two marks of the page."""
    page = path.read_text(encoding="utf-8")
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"bench: {path}: expected the marks {BEGIN} and {END}")
    path.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}", encoding="utf-8")
