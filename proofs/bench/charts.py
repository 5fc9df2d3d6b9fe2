"""Pictures of a run, as SVG: bars of ratios and lines of costs, readable on a light and on a dark page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from statistics import median
from typing import NamedTuple

from proofs.bench.report import HEADLINES
from proofs.bench.results import BASE, OURS, Results
from proofs.bench.scenarios import BY_KEY, GROWING_GOAL, SMALL
from proofs.bench.standing import Ratio, Undocumented

_WIDTH = 800
_LABELS = 310
_RIGHT = 70
_ROW = 24
_NUMBER = 40
_TOP = 52
_STYLE = """\
<style>
text { font: 13px system-ui, sans-serif; fill: #57606a }
.title { font-weight: 600; fill: #24292f }
.grid { stroke: #d0d7de; stroke-width: 1 }
.range { stroke: #24292f; stroke-width: 1.5 }
.goal { stroke: #cf222e; stroke-width: 2.5 }
.bar0, .dot0 { fill: #0969da } .line0 { stroke: #0969da }
.bar1, .dot1 { fill: #8c959f } .line1 { stroke: #8c959f }
.bar2, .dot2 { fill: #bf8700 } .line2 { stroke: #bf8700 }
.bar3, .dot3 { fill: #1a7f37 } .line3 { stroke: #1a7f37 }
.line0, .line1, .line2, .line3 { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1 } .title { fill: #f0f6fc } .grid { stroke: #3d444d } .range { stroke: #f0f6fc }
.goal { stroke: #f85149 }
.bar0, .dot0 { fill: #4493f8 } .line0 { stroke: #4493f8 }
.bar1, .dot1 { fill: #656c76 } .line1 { stroke: #656c76 }
}
</style>
"""


class Bar(NamedTuple):
    label: str
    value: float
    low: float
    high: float
    goal: float | None = None
    color: int = 0


class Series(NamedTuple):
    name: str
    points: list[tuple[float, float]]


def bars(title: str, rows: Sequence[Bar], *, logarithmic: bool = False) -> str:
    """One row each; a red stroke is the goal, a thin line the range of the rounds."""
    most = max(max(row.high, row.goal or 0) for row in rows)
    ticks = _powers(most) if logarithmic else _ticks(most)
    room = _WIDTH - _LABELS - _RIGHT

    def place(value: float) -> float:
        part = math.log(max(value, 1)) / math.log(ticks[-1]) if logarithmic else value / ticks[-1]
        return _LABELS + room * part

    bottom = _TOP + _ROW * len(rows)
    parts = [_text(12, 22, title, "title")]
    for tick in ticks:
        parts.append(_line(place(tick), _TOP - 6, place(tick), bottom, "grid"))
        parts.append(_text(place(tick), bottom + 16, f"{tick:g}", anchor="middle"))
    for index, row in enumerate(rows):
        top = _TOP + _ROW * index
        middle, end = top + _ROW / 2, place(row.value)
        parts.append(_text(_LABELS - 8, middle + 4, row.label, anchor="end"))
        parts.append(
            f'<rect class="bar{row.color}" x="{_LABELS}" y="{top + 4}" height="{_ROW - 8}" '
            f'width="{max(end - _LABELS, 1):.1f}"/>'
        )
        parts.append(_line(place(row.low), middle, place(row.high), middle, "range"))
        if row.goal is not None:
            parts.append(_line(place(row.goal), top + 1, place(row.goal), top + _ROW - 1, "goal"))
        reported = max(place(row.high), end)
        # A goal just behind the bar would stand in the midst of the number.
        if row.goal is not None and reported - 4 < place(row.goal) < reported + _NUMBER:
            reported = place(row.goal)
        parts.append(_text(reported + 6, middle + 4, _number(row.value)))
    return _svg(title, bottom + 28, parts)


def lines(title: str, series: Sequence[Series], x_title: str, y_title: str) -> str:
    height, left = 320, 90
    x_ticks = _ticks(max(x for one in series for x, _ in one.points))
    y_ticks = _ticks(max(y for one in series for _, y in one.points))
    room, depth = _WIDTH - left - _RIGHT, height - _TOP

    def place(x: float, y: float) -> tuple[float, float]:
        return left + room * x / x_ticks[-1], height - depth * y / y_ticks[-1]

    parts = [_text(12, 22, title, "title")]
    for tick in x_ticks:
        x, _ = place(tick, 0)
        parts.append(_text(x, height + 16, f"{tick:,g}", anchor="middle"))
    for tick in y_ticks:
        _, y = place(0, tick)
        parts.append(_line(left, y, _WIDTH - _RIGHT, y, "grid"))
        parts.append(_text(left - 6, y + 4, f"{tick:,g}", anchor="end"))
    parts.append(_text(_WIDTH - _RIGHT, height + 34, x_title, anchor="end"))
    parts.append(_text(12, _TOP - 12, y_title))
    for index, one in enumerate(series):
        path = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in one.points)
        parts.append(f'<polyline class="line{index % 4}" points="{path}"/>')
        x, y = place(*one.points[-1])
        parts.append(_text(x + 4, y + 4, one.name))
    return _svg(title, height + 44, parts)


def _svg(title: str, height: float, parts: Iterable[str]) -> str:
    space = f'viewBox="0 0 {_WIDTH} {height:g}" width="{_WIDTH}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {space} role="img">'
    return "\n".join([head, f"<title>{escape(title)}</title>", _STYLE + "\n".join(parts), "</svg>", ""])


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _ticks(most: float) -> list[float]:
    """From nothing to at least `most`, at most six of them, at round numbers."""
    rough = max(most, 1e-9) / 5
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= rough)
    return [step * number for number in range(math.ceil(most / step) + 1)]


def _powers(most: float) -> list[float]:
    return [float(10**power) for power in range(max(math.ceil(math.log10(most)), 1) + 1)]


# The pictures of a run


def ratios(results: Results) -> str | None:
    rows = [
        _bar(f"{title} ({BY_KEY[key].family})", results.ratio(BY_KEY[key]), BY_KEY[key].goal)
        for key, title in HEADLINES.items()
        if key in results.runs
    ]
    if results.growing:
        rows.append(_bar("turn of a growing conversation", results.growing_ratio(), GROWING_GOAL))
    found = [row for row in rows if row is not None]
    return bars("Processor time, nginx = 1 (red: the goal)", found) if found else None


def pairs(results: Results) -> str | None:
    rows = [
        _bar(scenario.pair, results.ratio(scenario), scenario.goal, int(scenario.family == "A"))
        for scenario in SMALL
        if results.rounds(scenario, OURS)
    ]
    found = [row for row in rows if row is not None]
    return bars("A request of 2 KB, nginx = 1 (red: the goal)", found) if found else None


def growing(results: Results) -> str | None:
    series = []
    for server, rounds in sorted(results.growing.items(), key=lambda item: item[0] != OURS):
        costs = [median(turn) for turn in zip(*(figures["cpu_us"] for figures in rounds), strict=True)]
        sizes = [size / 1000 for size in rounds[0]["bytes"]]
        series.append(Series(server, list(zip(sizes, costs, strict=True))))
    if not series:
        return None
    return lines("A turn of a growing conversation", series, "KB sent", "processor time, us")


def peers(results: Results) -> str | None:
    """Every server in every scenario that it has a ratio in."""
    rows = []
    colors = {server: index for index, server in enumerate(s for s in results.servers() if s != BASE)}
    for scenario in results.measured():
        for server, color in colors.items():
            title = f"{scenario.family}: {server}"
            bar = _bar(title, results.ratio(scenario, server), None, color % 4)
            rows += [bar] if bar is not None else []
    return bars("Processor time, nginx = 1", rows, logarithmic=True) if rows else None


def _bar(label: str, found: Ratio | Undocumented, goal: float | None, color: int = 0) -> Bar | None:
    return Bar(label, *found, goal, color) if isinstance(found, Ratio) else None


_PICTURES = {"ratios": ratios, "pairs": pairs, "growing": growing}


def write(results: Results, directory: Path) -> dict[str, str]:
    """Draw what there are figures for; the name of each picture, and how a page beside it shows it."""
    return _written({name: draw(results) for name, draw in _PICTURES.items()}, directory)


def write_peers(results: Results, directory: Path) -> dict[str, str]:
    return _written({"peers": peers(results)}, directory)


def _written(drawn: dict[str, str | None], directory: Path) -> dict[str, str]:
    shown = {}
    for name, picture in drawn.items():
        if picture is not None:
            directory.mkdir(parents=True, exist_ok=True)
            (directory / f"{name}.svg").write_text(picture, encoding="utf-8")
            shown[name] = f"![{name}]({directory.name}/{name}.svg)"
    return shown
