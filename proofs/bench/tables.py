"""Tables of figures, for a terminal and for a page."""

from __future__ import annotations

from typing import NamedTuple

NONE = "-"


class Section(NamedTuple):
    title: str
    note: str
    header: list[str]
    rows: list[list[str]]
    chart: str = ""
    """The name of its picture, where there is one."""


def number(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def as_text(setting: str, sections: list[Section]) -> str:
    lines = [setting]
    for section in sections:
        lines += ["", section.title, *([section.note] if section.note else [])]
        table = [section.header, *section.rows]
        widths = [max(len(row[column]) for row in table) for column in range(len(section.header))]
        for row in table:
            first, *rest = (
                cell.ljust(width) if not column else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            lines.append("  ".join(["  " + first, *rest]).rstrip())
    return "\n".join(lines)


def as_markdown(setting: str, sections: list[Section], charts: dict[str, str] | None = None) -> str:
    """`charts`: the pictures that there are, by name, as a page may show them."""
    lines = [setting]
    for section in sections:
        lines += ["", f"### {section.title}", "", *([section.note, ""] if section.note else [])]
        if charts and section.chart in charts:
            lines += [charts[section.chart], ""]
        lines.append(f"| {' | '.join(section.header)} |")
        lines.append("|---|" + "---:|" * (len(section.header) - 1))
        lines += [f"| {' | '.join(row)} |" for row in section.rows]
    return "\n".join(lines)
