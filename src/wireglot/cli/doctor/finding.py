"""What a check finds: how bad it is, one sentence, and what mends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import msgspec

Grade = Literal["ok", "note", "warning", "problem"]
GRADES: Final[tuple[Grade, ...]] = ("problem", "warning", "note", "ok")
"""The worst first. A problem keeps something from working; a warning may one day; a note is good to know."""


class Finding(msgspec.Struct, frozen=True):
    """Neither `text` nor `fix` may hold a secret."""

    grade: Grade
    text: str
    fix: str = ""
    """A command, or a line of the configuration. Only what is ok has none."""
    mend: Callable[[], None] | None = None
    """Does it, where that is safe. OSError where it cannot be done."""
    mended: bool = False


def ok(text: str) -> Finding:
    return Finding("ok", text)


def note(text: str, fix: str, mend: Callable[[], None] | None = None) -> Finding:
    return Finding("note", text, fix, mend)


def warning(text: str, fix: str, mend: Callable[[], None] | None = None) -> Finding:
    return Finding("warning", text, fix, mend)


def problem(text: str, fix: str, mend: Callable[[], None] | None = None) -> Finding:
    return Finding("problem", text, fix, mend)
