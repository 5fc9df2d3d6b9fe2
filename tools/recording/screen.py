"""What a terminal's bytes looked like: pyte plays the terminal, and every moment is taken down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final

import pyte

from tools.recording.picture import Frame, Row, Run
from tools.recording.terminal import Written

_STEP_SECONDS: Final = 0.1
"""No two moments are nearer than this."""
_WAIT_SECONDS: Final = 1.2
"""A longer wait in which no terminal shows anything is cut to this."""


def shortened(all_written: Sequence[Sequence[Written]]) -> list[list[Written]]:
    """The same bytes of all terminals at the times of the picture, which begins at 0."""
    times = sorted(one.seconds for written in all_written for one in written)
    reported: dict[float, float] = {}
    now, before = 0.0, times[0] if times else 0.0
    for seconds in times:
        now += min(seconds - before, _WAIT_SECONDS)
        reported[seconds], before = now, seconds
    return [[Written(reported[one.seconds], one.data) for one in written] for written in all_written]


def frames(written: Iterable[Written], columns: int, lines: int) -> list[Frame]:
    screen = pyte.Screen(columns, lines)
    stream = pyte.ByteStream(screen)
    found: list[Frame] = []
    for step, group in groupby(written, lambda one: int(one.seconds / _STEP_SECONDS)):
        for one in group:
            stream.feed(one.data)
        found.append(Frame(round(step * _STEP_SECONDS, 1), _rows(screen)))
    return found


def _rows(screen: Any) -> tuple[Row, ...]:
    return tuple(
        _row([screen.buffer[line][column] for column in range(screen.columns)])
        for line in range(screen.lines)
    )


def _row(cells: Sequence[Any]) -> Row:
    runs: list[Run] = []
    column = 0
    for look, group in groupby(cells, lambda cell: (cell.fg, cell.bold)):
        text = "".join(cell.data for cell in group)
        runs += _runs(column, text, _color(look[0]), look[1])
        column += len(text)
    return tuple(runs)


def _runs(column: int, text: str, color: str, bold: bool) -> Iterable[Run]:
    """Without the blanks around it, which nobody sees."""
    bare = text.strip()
    if bare:
        yield Run(column + len(text) - len(text.lstrip()), bare, color, bold)


def _color(name: str) -> str:
    name = name.removeprefix("bright")
    return f"#{name}" if len(name) == 6 and not name.isalpha() else name
