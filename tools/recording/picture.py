"""What terminals showed over time, as one animated SVG: no script, no font and no file from elsewhere.

Every row of a screen that was seen is in the picture once, and is visible while it was there. Who does not
animate (a package page, a reader who asked for less motion) sees the last moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final, NamedTuple

_COLUMN: Final = 7.83
_LINE: Final = 18
_FONT: Final = 13
_SIDE: Final = 16
_BAR: Final = 30
_GAP: Final = 14
_REST_SECONDS: Final = 5.0
"""How long the last moment stays before it begins again."""

COLORS: Final = {
    "default": "#e6edf3",
    "black": "#6e7681",
    "red": "#ff7b72",
    "green": "#7ee787",
    "brown": "#e3b341",
    "yellow": "#e3b341",
    "blue": "#79c0ff",
    "magenta": "#d2a8ff",
    "cyan": "#76e3ea",
    "white": "#e6edf3",
}
_DIM: Final = "#8b949e"


class Run(NamedTuple):
    """Neighbouring characters that look alike."""

    column: int
    text: str
    color: str = "default"
    bold: bool = False
    dim: bool = False


Row = tuple[Run, ...]


class Frame(NamedTuple):
    seconds: float
    rows: tuple[Row, ...]


class Pane(NamedTuple):
    """A terminal: its title, its size, and what it showed from when on."""

    title: str
    columns: int
    lines: int
    frames: Sequence[Frame]


class Seen(NamedTuple):
    """A row of text at its place, from when until when; None: to the end."""

    line: int
    row: Row
    start: float
    end: float | None


def seen(frames: Sequence[Frame]) -> Iterator[Seen]:
    """Every row that is not empty, as long as it stays the same."""
    lines = max((len(frame.rows) for frame in frames), default=0)
    for line in range(lines):
        since, shown = 0.0, ()  # type: tuple[float, Row]
        for frame in frames:
            row = frame.rows[line] if line < len(frame.rows) else ()
            if row == shown:
                continue
            if shown:
                yield Seen(line, shown, since, frame.seconds)
            since, shown = frame.seconds, row
        if shown:
            yield Seen(line, shown, since, None)


def picture(title: str, panes: Sequence[Pane]) -> str:
    """All panes, one below the other."""
    width = max(pane.columns for pane in panes) * _COLUMN + 2 * _SIDE
    total = max(pane.frames[-1].seconds for pane in panes) + _REST_SECONDS
    rules: dict[tuple[float, float | None], str] = {}
    parts: list[str] = []
    top = 0.0
    for pane in panes:
        height = _BAR + pane.lines * _LINE + _SIDE
        parts.append(f'<rect class="w" y="{top:g}" width="{width:g}" height="{height:g}" rx="8"/>')
        for index in range(3):
            parts.append(f'<circle class="d" cx="{18 + 16 * index}" cy="{top + _BAR / 2:g}" r="5"/>')
        place = f'x="{width / 2:g}" y="{top + _BAR / 2 + 4:g}"'
        parts.append(f'<text class="h" {place}>{escape(pane.title)}</text>')
        for one in seen(pane.frames):
            parts.append(_row(one, top + _BAR + _LINE * (one.line + 0.75), _rule(rules, one)))
        top += height + _GAP
    space = f'viewBox="0 0 {width:g} {top - _GAP:g}" width="{width:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {space} role="img">'
    return "\n".join([head, f"<title>{escape(title)}</title>", _style(rules, total), *parts, "</svg>", ""])


def _rule(rules: dict[tuple[float, float | None], str], one: Seen) -> str:
    """The class of rows that come and go at these times; none for what is always there."""
    if one.start == 0 and one.end is None:
        return ""
    return rules.setdefault((one.start, one.end), f"k{len(rules)}")


def _row(one: Seen, y: float, rule: str) -> str:
    spans = "".join(map(_span, one.row))
    kind = f' class="{rule}"' if rule else ""
    gone = ' visibility="hidden"' if one.end is not None else ""
    return f'<text{kind}{gone} y="{y:g}">{spans}</text>'


def _span(run: Run) -> str:
    color = _DIM if run.dim else COLORS.get(run.color, run.color if run.color.startswith("#") else "")
    fill = f' fill="{color}"' if color and color != COLORS["default"] else ""
    weight = ' font-weight="600"' if run.bold else ""
    # Whatever font there is, columns stand below one another.
    place = f'x="{_SIDE + run.column * _COLUMN:.4g}" textLength="{len(run.text) * _COLUMN:.4g}"'
    return f"<tspan {place}{fill}{weight}>{escape(run.text, quote=False)}</tspan>"


def _style(rules: dict[tuple[float, float | None], str], total: float) -> str:
    lines = [
        "<style>",
        f"text{{font:{_FONT}px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        f"fill:{COLORS['default']};white-space:pre}}",
        ".w{fill:#0d1117;stroke:#30363d} .d{fill:#30363d}",
        f".h{{fill:{_DIM};font-size:12px;text-anchor:middle}}",
        "@media (prefers-reduced-motion: no-preference) {",
    ]
    for (start, end), name in rules.items():
        first = "hidden" if start > 0 else "visible"
        steps = [f"0%{{visibility:{first}}}"]
        steps += [f"{_percent(start, total)}{{visibility:visible}}"] if start > 0 else []
        steps += [f"{_percent(end, total)},100%{{visibility:hidden}}"] if end is not None else []
        lines.append(f"@keyframes {name}{{{''.join(steps)}}}")
        lines.append(f".{name}{{animation:{name} {total:g}s step-end infinite}}")
    return "\n".join([*lines, "}", "</style>"])


def _percent(seconds: float, total: float) -> str:
    return f"{100 * seconds / total:.2f}%"
