"""Usage from the store or from a gateway, shown as a table and bars."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import textwrap
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Final, TextIO
from urllib.parse import urlencode

from wireglot.cli.remote_gateway import (
    ADMIN_SECRET,
    GatewayAddress,
    StoreNote,
    address_of,
    ask,
    operated_gateway,
    reachable,
    usable_key,
)
from wireglot.cli.terminal import OK, Failed, Paint, Unusable, columns_of, count, one_line
from wireglot.cli.trust import settings_of
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.ledger.report import BadParameter, query_of, report
from wireglot.stores import open_engine
from wireglot_core.ir.usage import KINDS

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
    # Columns with only zeros are omitted, and a remote gateway may count fewer kinds.
    shown = [(key, title) for key, title in _NUMBERS if key == "requests" or report["total"].get(key)]
    about = "" if _is_measured(report) else "~"
    head = [*names, *(title for _, title in shown), f"{about}p50 ms", f"cost {report['currency']}"]
    lines = [head, *(_cells(row, names, shown) for row in rows)]
    if names:
        lines.append(["total", *[""] * (len(names) - 1), *_cells(report["total"], [], shown)])
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    columns = columns_of(stream)
    if sum(widths) + 2 * (len(widths) - 1) > columns:
        return [*_stacked(lines, len(names), columns, paint), *_remarks(report, paint)]
    aligned = [_aligned(line, widths, len(names)) for line in lines]
    aligned[0] = paint(aligned[0], "bold")
    if names:
        aligned[-1] = paint(aligned[-1], "bold")
    return [*aligned, *_remarks(report, paint)]


def _stacked(lines: list[list[str]], names: int, columns: int, paint: Paint) -> list[str]:
    """For a terminal that the table does not fit: the figures of a row below its names."""
    head, *rows = lines
    titles = head[names:]
    shown = []
    wrapper = textwrap.TextWrapper(
        columns,
        initial_indent="  ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in rows:
        name = "  ".join(filter(None, line[:names])) or "total"
        figures = (f"{title} {cell}" for title, cell in zip(titles, line[names:], strict=True))
        # A figure stays next to what it counts.
        text = ", ".join(figure.replace(" ", "\xa0") for figure in figures)
        shown += [paint(name, "bold"), wrapper.fill(text).replace("\xa0", " ")]
    return shown


def _cells(row: dict[str, Any], names: list[str], shown: list[tuple[str, str]]) -> list[str]:
    groups = [one_line(row[name]) or "-" for name in names]
    return [*groups, *(f"{row[key]:,}" for key, _ in shown), f"{row['p50_ms']:,}", _cost(row)]


def _cost(row: dict[str, Any]) -> str:
    """An unknown cost is shown as such; a cost of which the ledger knows only a part has a plus."""
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
    if not _is_measured(report):
        remarks.append("~p50: from hourly sums, within 5 %; all other numbers are exact")
    if report.get("has_more"):
        remarks.append("incomplete: there are more rows; narrow the query")
    return ["", *(paint(remark, "dim") for remark in remarks)] if remarks else []


def _is_measured(report: dict[str, Any]) -> bool:
    """Whether times are exact values. Older gateways have only those."""
    return bool(report.get("durations", "measured") == "measured")


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
    lines = [paint("tokens per day", "bold")]
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
    """In eighths of a character; any value above zero is visible."""
    if not value:
        return ""
    eighths = max(1, value * width * 8 // most)
    return _BLOCKS[8] * (eighths // 8) + (_BLOCKS[eighths % 8] if eighths % 8 else "")


def _hashes(value: int, most: int, width: int) -> str:
    return "#" * max(1, value * width // most) if value else ""


_KEY: Final = "WIREGLOT_KEY"
_ADMIN_PATH: Final = "/v1/admin/usage"
_DONE: Final = 200
_UNAUTHORIZED: Final = 401
_OPTIONS: Final = {"group_by": "--by", "start": "--since", "end": "--until"}

Asked = dict[str, str]
Reports = list[dict[str, Any]]


def run(arguments: argparse.Namespace) -> int:
    asked = _asked(arguments)
    chart = sys.stdout.isatty() if arguments.chart is None else arguments.chart
    # The bars are by day, whatever the table is grouped by.
    questions = [asked, asked | {"group_by": "day"}] if chart and not arguments.json else [asked]
    try:
        _check(arguments)
        for question in questions:
            query_of(question)
        reports = _reports(arguments, questions)
    except BadParameter as wrong:
        option = _OPTIONS.get(wrong.name, f"--{wrong.name}")
        reported = str(wrong).removeprefix(f"{wrong.name}: ")
        given = asked.get(wrong.name, "")
        raise Unusable(f"{option}: {reported}, got {one_line(given)!r}") from None
    _show(reports, as_json=arguments.json)
    return OK


def _check(arguments: argparse.Namespace) -> None:
    given = {"--admin": arguments.admin, "--api-key": arguments.api_key}
    for option, value in given.items():
        if value and not arguments.url:
            raise Unusable(f"{option}: expected with --url only")


def _asked(arguments: argparse.Namespace) -> Asked:
    given = {
        "group_by": arguments.by,
        "start": arguments.since,
        "end": arguments.until,
        "key": arguments.key,
        "model": arguments.model,
        "provider": arguments.provider,
        "group": arguments.group,
        "client": arguments.client,
        "agent": arguments.agent,
    }
    return {name: value for name, value in given.items() if value}


def _show(reports: Reports, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(reports[0], indent=2, ensure_ascii=False))
        return
    lines = table_lines(reports[0], sys.stdout)
    if len(reports) > 1:
        lines += ["", *chart_lines(reports[1], sys.stdout)]
    for line in lines:
        print(line)


def _reports(arguments: argparse.Namespace, questions: list[Asked]) -> Reports:
    if arguments.url:
        return _there(arguments, questions)
    running = operated_gateway(arguments.config)
    if running is None:
        return _here(arguments, questions)
    address = address_of(reachable(running.url))
    return [_get(address, _ADMIN_PATH, running.key, each, ADMIN_SECRET) for each in questions]


# From the store itself.


def _here(arguments: argparse.Namespace, questions: list[Asked]) -> Reports:
    settings = settings_of(arguments.config)
    url = settings.store.url.value
    if url.startswith("memory:"):
        raise Unusable("the store is in the gateway's memory: use the gateway with --url")
    note = StoreNote(settings, " --admin")
    reports = asyncio.run(_read(settings, questions))
    note.say()
    return reports


async def _read(settings: Settings, questions: list[Asked]) -> Reports:
    engine = await open_engine(settings.store.url.value)
    try:
        return [await report(engine.ledger, query_of(each), settings.currency) for each in questions]
    finally:
        await engine.close()


# From a gateway.


def _there(arguments: argparse.Namespace, questions: list[Asked]) -> Reports:
    address = address_of(arguments.url)
    path, name, given = "/v1/usage", _KEY, arguments.api_key or ""
    if arguments.admin:
        path, name, given = _ADMIN_PATH, ADMIN_SECRET, ""
    secret = usable_key(given or os.environ.get(name, ""), "--api-key" if given else name)
    if arguments.admin and not secret:
        raise Unusable(f"--admin: set {name} to the admin secret of that gateway")
    if arguments.key and not arguments.admin:
        raise Unusable("--key: --admin is required to see the usage of other keys")
    return [_get(address, path, secret, each, name) for each in questions]


def _get(address: GatewayAddress, path: str, secret: str, asked: Asked, name: str) -> dict[str, Any]:
    answer = ask(address, "GET", f"{path}?{urlencode(asked, errors='replace')}", key=secret)
    if answer.status == _UNAUTHORIZED:
        fix = f"set a valid one in {'' if name == ADMIN_SECRET else '--api-key or '}{name}"
        if not secret:
            raise Unusable(f"{address.url} requires a key: {fix}")
        raise Failed(f"{address.url} rejects the key: {fix}")
    if answer.status != _DONE:
        raise Failed(f"{address.url}: {answer.complaint()}")
    document = answer.document()
    if document.get("object") != "usage.list":
        raise Failed(f"{address.url}: the server is not a Wireglot gateway")
    return document
