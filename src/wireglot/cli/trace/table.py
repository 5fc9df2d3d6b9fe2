"""Exchanges as a list that fits the terminal."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from typing import Final, TextIO

from wireglot.cli.paint import Paint, one_line
from wireglot.traces.trace import Row

_WIDEST: Final = 160
_COLUMNS: Final = ["time", "client", "asked", "upstream", "status", "total", "tokens", "loss", "id"]
_WIDE: Final = 110
_FOR_WIDE: Final = ("asked", "tokens")
"""Shown where there is room for them."""
_GIVE_WAY: Final = (("asked", 12), ("upstream", 12), ("client", 6), ("asked", 5), ("upstream", 8))
"""Names are cut short, the long ones first, to so many letters; what counts stays."""
_LEFT_OUT: Final = ("loss", "total", "client", "time", "upstream")
"""In this order, where a terminal is too narrow: which exchange it is, and how it went, stays."""
_SECOND: Final = 1000.0
_THOUSAND: Final = 1000
_ERROR: Final = 400


def width_of(stream: TextIO) -> int:
    """Of a terminal; where nobody looks, as wide as pages are."""
    return min(shutil.get_terminal_size((80, 24)).columns, _WIDEST) if stream.isatty() else 80


def list_lines(rows: Sequence[Row], stream: TextIO) -> list[str]:
    if not rows:
        return ["no exchanges"]
    paint, room = Paint(stream), width_of(stream)
    wide = room >= _WIDE
    columns = [name for name in _COLUMNS if wide or name not in _FOR_WIDE]
    cells = [columns, *([_cell(row, name, wide) for name in columns] for row in rows)]
    gap = 2 if not _missing(cells, room, 2) else 1
    for name in _LEFT_OUT:
        if _fitted(cells, room, gap)[1] and name in cells[0]:
            at = cells[0].index(name)
            cells = [[*line[:at], *line[at + 1 :]] for line in cells]
    widths, _ = _fitted(cells, room, gap)
    aligned = [_line(line, widths, " " * gap) for line in cells]
    return [paint(aligned[0], "bold"), *map(_painted, rows, aligned[1:], [paint] * len(rows))]


def _widths(cells: list[list[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*cells, strict=True)]


def _missing(cells: list[list[str]], room: int, gap: int) -> bool:
    """Whether anything has to be cut."""
    widths = _widths(cells)
    return sum(widths) + gap * (len(widths) - 1) > room


def _fitted(cells: list[list[str]], room: int, gap: int) -> tuple[list[int], int]:
    """How wide each column is, and how much is still missing."""
    columns = cells[0]
    widths = _widths(cells)
    room -= sum(widths) + gap * (len(columns) - 1)
    for name, least in _GIVE_WAY:
        at = columns.index(name) if name in columns and room < 0 else -1
        if at >= 0:
            cut = min(-room, max(widths[at] - least, 0))
            widths[at] -= cut
            room += cut
    return widths, max(0, -room)


def _painted(row: Row, line: str, paint: Paint) -> str:
    if row.state == "failed":
        return paint(line, "serious")
    return line if row.recorded else paint(line, "dim")


def _line(cells: list[str], widths: list[int], gap: str) -> str:
    shown = [
        (cell if len(cell) <= width else f"{cell[: width - 1]}…").ljust(width)
        for cell, width in zip(cells, widths, strict=True)
    ]
    return gap.join(shown).rstrip()


def _cell(row: Row, column: str, wide: bool) -> str:
    match column:
        case "time":
            return time.strftime("%H:%M:%S", time.localtime(row.at))
        case "client":
            return one_line(row.client) or "-"
        case "asked":
            return one_line(row.asked) or "-"
        case "upstream":
            return one_line(upstream_of(row) if wide else row.model) or "-"
        case "status":
            return _status(row)
        case "total":
            return spent(row.total_ms)
        case "tokens":
            return _tokens(row)
        case "loss":
            return _losses(row)
        case _:
            return one_line(row.id)


def _status(row: Row) -> str:
    """In words where the number does not tell it: a stream has its 200 before it breaks."""
    if row.state not in ("done", "failed") or not row.status:
        return row.state
    return "broken" if row.state == "failed" and row.status < _ERROR else str(row.status)


def upstream_of(row: Row) -> str:
    return f"{row.provider}/{row.model}" if row.provider else row.model


def spent(milliseconds: float | None) -> str:
    if milliseconds is None:
        return ""
    return f"{milliseconds:.0f}ms" if milliseconds < _SECOND else f"{milliseconds / _SECOND:.1f}s"


def _tokens(row: Row) -> str:
    if row.tokens is None:
        return ""
    number = row.tokens.input + row.tokens.output
    return str(number) if number < _THOUSAND else f"{number / _THOUSAND:.1f}k"


def _losses(row: Row) -> str:
    lost = row.losses
    if lost is None:
        return ""
    number = lost.serious + lost.degraded + lost.harmless
    return f"{number}{'!' if lost.serious else ''}" if number else ""
