"""Text for people: losses as lines, with colour only where someone looks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from wireglot.ir.loss import Loss

_COLOURS = {
    "dropped": "31",
    "approximated": "33",
    "emulated": "36",
    "invented": "35",
    "serious": "31",
    "degraded": "33",
    "harmless": "2",
    "ok": "32",
    "bold": "1",
    "dim": "2",
}


class Paint:
    """Colours for one output stream; none if it is no terminal or NO_COLOR is set (https://no-color.org)."""

    def __init__(self, stream: TextIO) -> None:
        self._on = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def __call__(self, text: str, colour: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self._on else text


def loss_lines(losses: Sequence[Loss], paint: Paint) -> list[str]:
    """One line a loss, the worst first: how bad it is, what happened, to what, where, and why."""
    from wireglot.ir.loss import worst_first  # each command needs this file, and few tell losses

    width = max((len(loss.feature) for loss in losses), default=0)
    return [
        f"  {paint(loss.grade.ljust(8), loss.grade)} {paint(loss.action.ljust(12), loss.action)}"
        f" {loss.feature.ljust(width)}  {one_line(loss.path)}"
        + (f"  {paint(one_line(loss.detail), 'dim')}" if loss.detail else "")
        for loss in worst_first(losses)
    ]


def count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def one_line(text: str) -> str:
    """No line breaks, and no control characters: paths and details can hold names from the document."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
