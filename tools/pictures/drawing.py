"""A small kit for pictures made of text in boxes: SVG, for light and dark pages, and for screen readers.

Every picture has a ground of its own, so that it is readable where the page's colours are not the system's.
What colour tells is reported by form as well: what changed is underlined, what is lost is struck out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from typing import Any

LINE = 17
PAD = 10
HEAD = 24
_LETTER = 7.3
"""Width of a letter of 12 pixels in the widest of the fonts named below."""
_MARKS = re.compile("\x01([a-z]+)\x02(.*?)\x03")
_STYLE = """\
<style>
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #24292f;
  white-space: pre }
.words { font: 13px system-ui, sans-serif; fill: #57606a }
.head { font: 600 13px system-ui, sans-serif; fill: #24292f }
.ground { fill: #ffffff }
.panel { fill: #f6f8fa; stroke: #d0d7de }
.own { fill: #ddf4ff; stroke: #54aeff }
.changed { fill: #0550ae; font-weight: 600; text-decoration: underline }
.lost { fill: #a40e26; text-decoration: line-through }
.sealed { fill: #6639ba; font-weight: 600 }
.dim { fill: #57606a }
.arrow { stroke: #57606a; stroke-width: 1.5; fill: none }
.tip { fill: #57606a }
.rule { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 5 4 }
@media (prefers-color-scheme: dark) {
text { fill: #d1d7e0 } .words { fill: #9198a1 } .head { fill: #f0f6fc } .ground { fill: #0d1117 }
.panel { fill: #151b23; stroke: #3d444d } .own { fill: #0c2d6b; stroke: #1f6feb }
.changed { fill: #79c0ff } .lost { fill: #ff7b72 } .sealed { fill: #d2a8ff } .dim { fill: #9198a1 }
.arrow { stroke: #9198a1 } .tip { fill: #9198a1 } .rule { stroke: #f85149 }
}
</style>
"""


class NotThere(Exception):
    """What a picture wants to mark is no longer in what the library makes."""


def mark(lines: Sequence[str], text: str, css: str) -> list[str]:
    """The lines with one stretch of them marked, wherever it stands. Raises NotThere."""
    if not any(text in line for line in lines):
        raise NotThere(f"{text!r} is not in {list(lines)!r}")
    return [line.replace(text, f"\x01{css}\x02{text}\x03") for line in lines]


def shortened(value: Any, longest: int = 24) -> Any:
    """The same with long strings cut: a signature is as long as a page."""
    match value:
        case str() if len(value) > longest:
            return value[: longest // 2] + "…"
        case dict():
            return {key: shortened(one, longest) for key, one in value.items()}
        case list():
            return [shortened(one, longest) for one in value]
        case _:
            return value


def laid_out(value: Any, width: int, indent: str = "", lead: str = "", tail: str = "") -> list[str]:
    """JSON as a person writes it: on one line what fits."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(lead) + len(flat) + len(tail) <= width or not isinstance(value, dict | list):
        return [f"{indent}{lead}{flat}{tail}"]
    items = (
        [(json.dumps(key) + ": ", one) for key, one in value.items()]
        if isinstance(value, dict)
        else [("", one) for one in value]
    )
    first, last = "{}" if isinstance(value, dict) else "[]"
    lines = [f"{indent}{lead}{first}"]
    for number, (name, one) in enumerate(items, 1):
        lines += laid_out(one, width, indent + " ", name, "," if number < len(items) else "")
    return [*lines, f"{indent}{last}{tail}"]


def fitting(pixels: float) -> int:
    """How many letters fit into a panel of this width."""
    return int((pixels - 2 * PAD) / _LETTER)


class Picture:
    """Elements are put anywhere; the height follows from the lowest of them."""

    def __init__(self, title: str, description: str, width: int) -> None:
        self.width = width
        self._title = title
        self._description = description
        self._elements: list[str] = []
        self._bottom = 0.0

    def panel(
        self, x: float, y: float, width: float, head: str, lines: Sequence[str], css: str = "panel"
    ) -> float:
        """A box with a heading and lines of text; where it ends. Raises NotThere if a line is too long."""
        for line in lines:
            plain = _MARKS.sub(r"\2", line)
            if len(plain) > fitting(width):
                raise NotThere(f"{len(plain)} letters, {fitting(width)} fit: {plain}")
        height = HEAD + len(lines) * LINE + PAD
        self._add(
            f'<rect class="{css}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>',
            y + height,
        )
        self.words(x + PAD, y + 17, head, "head")
        for number, line in enumerate(lines, 1):
            self._text(x + PAD, y + HEAD + number * LINE - 4, line)
        return y + height

    def words(self, x: float, y: float, text: str, css: str = "words", anchor: str = "start") -> None:
        held = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self._add(f'<text class="{css}" x="{x:g}" y="{y:g}"{held}>{_spans(text)}</text>', y)

    def arrow(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """Straight across or down, with its tip at the second point."""
        if y1 == y2:
            back = -8 if x2 > x1 else 8
            tip = f"{x2:g},{y2:g} {x2 + back:g},{y2 - 5:g} {x2 + back:g},{y2 + 5:g}"
        else:
            back = -8 if y2 > y1 else 8
            tip = f"{x2:g},{y2:g} {x2 - 5:g},{y2 + back:g} {x2 + 5:g},{y2 + back:g}"
        self._add(f'<line class="arrow" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>', max(y1, y2))
        self._add(f'<polygon class="tip" points="{tip}"/>', max(y1, y2))

    def rule(self, y: float, text: str) -> None:
        """A dashed line from side to side, with words above its right end."""
        self._add(f'<line class="rule" x1="{2 * PAD}" y1="{y:g}" x2="{self.width - 2 * PAD}" y2="{y:g}"/>', y)
        self.words(self.width - 2 * PAD, y - 5, text, anchor="end")

    def svg(self) -> str:
        height = self._bottom + 2 * PAD
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {height:g}" '
                f'width="{self.width}" role="img" aria-labelledby="title description">',
                f'<title id="title">{escape(self._title)}</title>',
                f'<desc id="description">{escape(self._description)}</desc>',
                f'{_STYLE}<rect class="ground" width="100%" height="100%" rx="8"/>',
                *self._elements,
                "</svg>\n",
            )
        )

    def _text(self, x: float, y: float, line: str) -> None:
        self._add(f'<text x="{x:g}" y="{y:g}" xml:space="preserve">{_spans(line)}</text>', y)

    def _add(self, element: str, bottom: float) -> None:
        self._elements.append(element)
        self._bottom = max(self._bottom, bottom)


def _spans(line: str) -> str:
    text = escape(line, quote=False)
    return _MARKS.sub(r'<tspan class="\1">\2</tspan>', text)
