"""What a run prints: the list, what would be sent, a bar while it goes on, and the table at its end."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import Final

from wireglot.cli.paint import Paint, count, one_line
from wireglot.probe.case import Case
from wireglot.probe.cases.listed import THEMES
from wireglot.probe.rehearsal import Rehearsal
from wireglot.probe.report import Report, Row
from wireglot.wire.json import BadJson, decode

_SIGNS: Final = {
    "pass": ("+", "ok"),
    "fail": ("x", "dropped"),
    "warn": ("!", "approximated"),
    "not applicable": ("-", "dim"),
    "inconclusive": ("?", "dim"),
    "not run": (".", "dim"),
}
_BAR_LETTERS: Final = 24


def print_list(cases: Sequence[Case]) -> None:
    paint = Paint(sys.stdout)
    width = max((len(case.id) for case in cases), default=0)
    for theme in THEMES:
        own = [case for case in cases if case.theme == theme.name]
        if own:
            print(paint(theme.title, "bold"))
        for case in own:
            print(f"  {case.id.ljust(width)}  {case.level.ljust(6)}  {case.cost.ljust(6)}  {case.title}")


def print_sent(root: str, cases: Sequence[Case], rehearsal: Rehearsal) -> None:
    """As it would be if the demo model answered: later turns quote what came before."""
    paint = Paint(sys.stdout)
    titles = {case.id: case.title for case in cases}
    for finding in rehearsal.findings:
        print(paint(f"{finding.id}: {titles[finding.id]}", "bold"))
        for exchange in finding.exchanges:
            again = "  (asked already, not sent again)" if exchange.shared else ""
            print(f"  {exchange.method} {root}{exchange.path}{again}")
            if exchange.request and not exchange.shared:
                print(f"    {one_line(_compact(exchange.request))}")


def _compact(body: str) -> str:
    try:
        decode(body.encode())
    except BadJson:
        return body[:400]
    return body if len(body) <= 2000 else f"{body[:2000]}…"


class Bar:
    """One line on a terminal's standard error, written over and over; nothing elsewhere."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._shown = sys.stderr.isatty()

    def step(self, id_: str) -> None:
        self._done += 1
        if not self._shown:
            return
        filled = _BAR_LETTERS * self._done // max(1, self._total)
        bar = "#" * filled + "." * (_BAR_LETTERS - filled)
        line = f"[{bar}] {self._done}/{self._total} {id_}"
        print(
            "\r" + line[: shutil.get_terminal_size().columns - 1] + "\x1b[K",
            end="",
            file=sys.stderr,
            flush=True,
        )

    def end(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def print_report(report: Report, *, everything: bool) -> None:
    paint = Paint(sys.stdout)
    for theme in THEMES:
        rows = [row for row in report.cases if row.theme == theme.name]
        if not rows:
            continue
        decided = [row for row in rows if row.verdict in ("pass", "fail", "warn")]
        passed = sum(row.verdict == "pass" for row in decided)
        colour = "ok" if passed == len(decided) else "dropped"
        print(f"{paint(f'{passed:>3} of {len(decided):<3}', colour)} {paint(theme.title, 'bold')}")
        for row in rows:
            if everything or row.verdict != "pass":
                _print_row(row, paint)
    score = report.score
    print()
    others = ", ".join(
        f"{number} {verdict}" for verdict, number in report.verdicts.items() if number and verdict != "pass"
    )
    missing = "" if report.complete else " (interrupted: cases are missing)"
    told = f"{score.passed} of {score.applicable} cases that apply passed: {score.percent:g} %{missing}"
    print(paint(told, "bold") + (f"; {others}" if others else ""))
    tokens = f"{report.input_tokens:,} tokens in, {report.output_tokens:,} out"
    print(f"{count(report.requests, 'request')}, {tokens}, as told by the endpoint")


def _print_row(row: Row, paint: Paint) -> None:
    sign, colour = _SIGNS[row.verdict]
    words = f": {one_line(row.words)}" if row.words else ""
    print(f"      {paint(sign, colour)} {row.id}  {paint(row.verdict, colour)}{words}")
