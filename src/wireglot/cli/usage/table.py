"""Usage as people read it: an aligned table, and bars as wide as the terminal allows."""

from __future__ import annotations

import shutil
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Final, TextIO

from wireglot.cli.paint import Paint, count, one_line
from wireglot.ir.usage import KINDS

_NUMBERS: Final = (
    ("requests", "requests"),
    ("failed", "failed"),
    *((f"{kind}_tokens", about.heading) for kind, about in KINDS.items()),
)
_CHART_DAYS: Final = 60
_BLOCKS: Final = " ▏▎▍▌▋▊▉█"
_BAR_MIN_LETTERS: Final = 10
_SMALLEST: Final = Decimal("0.0001")


def table_lines(report: dict[str, Any], stream: TextIO) -> list[str]:
    paint = Paint(stream)
    rows = report["data"]
    if not rows:
        return ["no usage"]
    names = report["group_by"]
    # Columns that hold nothing but zeros say nothing, and a gateway elsewhere may count fewer kinds.
    shown = [(key, title) for key, title in _NUMBERS if key == "requests" or report["total"].get(key)]
    head = [*names, *(title for _, title in shown), "p50 ms", f"cost {report['currency']}"]
    lines = [head, *(_cells(row, names, shown) for row in rows)]
    if names:
        lines.append(["total", *[""] * (len(names) - 1), *_cells(report["total"], [], shown)])
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    aligned = [_aligned(line, widths, len(names)) for line in lines]
    aligned[0] = paint(aligned[0], "bold")
    if names:
        aligned[-1] = paint(aligned[-1], "bold")
    return [*aligned, *_remarks(report, paint)]


def _cells(row: dict[str, Any], names: list[str], shown: list[tuple[str, str]]) -> list[str]:
    groups = [one_line(row[name]) or "-" for name in names]
    return [*groups, *(f"{row[key]:,}" for key, _ in shown), f"{row['p50_ms']:,}", _cost(row)]


def _cost(row: dict[str, Any]) -> str:
    """What is not known is said; what is more than the ledger knows has a plus."""
    if row["cost"] is None:
        return "unpriced"
    cost = Decimal(row["cost"])
    mark = "+" if row["unpriced_requests"] else ""
    if 0 < cost < _SMALLEST:
        return f"<{_SMALLEST}{mark}"
    return f"{cost.quantize(_SMALLEST, ROUND_HALF_EVEN):,}{mark}"


def _aligned(cells: list[str], widths: list[int], names: int) -> str:
    placed = [
        cell.ljust(width) if place < names else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(placed).rstrip()


def _remarks(report: dict[str, Any], paint: Paint) -> list[str]:
    remarks = []
    total = report["total"]
    if total["unpriced_requests"]:
        unpriced = count(total["unpriced_requests"], "request")
        remarks.append(f"{unpriced} of models without a known price: see [prices] in the configuration")
    if total["open"]:
        remarks.append(f"{count(total['open'], 'request')} not finished yet")
    if report.get("has_more"):
        remarks.append("there is more: ask for less at once")
    return ["", *(paint(remark, "dim") for remark in remarks)] if remarks else []


def chart_lines(report: dict[str, Any], stream: TextIO) -> list[str]:
    """Tokens for each day, also for days without any."""
    paint = Paint(stream)
    by_day = {row["day"]: row["total_tokens"] for row in report["data"]}
    if not by_day:
        return []
    days = _days(min(by_day), max(by_day))
    values = [by_day.get(day, 0) for day in days]
    figures = [f"{value:,}" for value in values]
    right = max(map(len, figures))
    width = max(_BAR_MIN_LETTERS, shutil.get_terminal_size((80, 24)).columns - len(days[0]) - right - 4)
    bar = _blocks if _can_show(stream) else _hashes
    most = max(values)
    lines = [paint("tokens a day", "bold")]
    for day, value, figure in zip(days, values, figures, strict=True):
        drawn = bar(value, most, width)
        lines.append(f"{day}  {paint(drawn, 'emulated')}{' ' * (width - len(drawn))}  {figure.rjust(right)}")
    return lines


def _days(first: str, last: str) -> list[str]:
    end = date.fromisoformat(last)
    begin = max(date.fromisoformat(first), end - timedelta(days=_CHART_DAYS - 1))
    return [(begin + timedelta(days=n)).isoformat() for n in range((end - begin).days + 1)]


def _can_show(stream: TextIO) -> bool:
    try:
        _BLOCKS.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _blocks(value: int, most: int, width: int) -> str:
    """In eighths of a letter; what is more than nothing shows."""
    if not value:
        return ""
    eighths = max(1, value * width * 8 // most)
    return _BLOCKS[8] * (eighths // 8) + (_BLOCKS[eighths % 8] if eighths % 8 else "")


def _hashes(value: int, most: int, width: int) -> str:
    return "#" * max(1, value * width // most) if value else ""
