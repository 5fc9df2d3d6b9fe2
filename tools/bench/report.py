"""The figures of a run as tables: for a terminal and for a page."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tools.bench.processes import Memory
from tools.bench.scenarios import (
    BUSY,
    EVENTS,
    GAP,
    MEMORY_GOAL,
    SINGLE,
    SLOW,
    SLOW_STREAMS,
    START_UP_GOAL,
    Scenario,
)
from tools.bench.targets import find_nginx

_NONE = "-"


class Results(NamedTuple):
    runs: Mapping[str, Mapping[str, list[dict[str, Any]]]]
    """Scenario, target, rounds."""
    starts: Mapping[str, list[float]]
    memory: Mapping[str, Memory]
    after: Mapping[str, Memory]

    def broken(self) -> list[str]:
        """Scenarios in which some round of some target had no success."""
        return [
            f"{key} ({name})"
            for key, by_target in self.runs.items()
            for name, rounds in by_target.items()
            if not all(figures["ok"] for figures in rounds)
        ]

    def rounds(self, scenario: Scenario, target: str) -> list[dict[str, Any]]:
        key = scenario.reference if target == "nginx" and scenario.reference else scenario.key
        return self.runs.get(key, {}).get(target, [])

    def figure(self, scenario: Scenario, target: str, name: str) -> float | None:
        found = [figures[name] for figures in self.rounds(scenario, target) if name in figures]
        return median(found) if found else None

    def over(self, scenario: Scenario, target: str, base: str, name: str) -> list[tuple[float, float]]:
        """The figure of both in each round."""
        pairs = zip(self.rounds(scenario, target), self.rounds(scenario, base), strict=False)
        return [(one[name], other[name]) for one, other in pairs if name in one and name in other]


class Section(NamedTuple):
    title: str
    note: str
    header: list[str]
    rows: list[list[str]]


def sections(results: Results) -> list[Section]:
    found = [_cost(results), _latency(results), _slow(results), _process(results)]
    return [section for section in found if section.rows]


def _cost(results: Results) -> Section:
    header = ["", "nginx us", "wireglot us", "ratio", "goal", "", "nginx /s", "wireglot /s", "failed"]
    rows = []
    for scenario in BUSY:
        if not results.rounds(scenario, "wireglot"):
            continue
        pairs = results.over(scenario, "wireglot", "nginx", scenario.cost)
        ratio = _ratio(pairs) if pairs else None
        rate = "events_s" if scenario.events else "rps"
        failed = sum(figures["err"] for figures in results.rounds(scenario, "wireglot"))
        rows.append(
            [
                f"{scenario.title} ({scenario.key})",
                _number(results.figure(scenario, "nginx", scenario.cost)),
                _number(results.figure(scenario, "wireglot", scenario.cost)),
                f"{ratio:.1f}" if ratio is not None else _NONE,
                f"{scenario.goal:g}" if scenario.goal else _NONE,
                _verdict(ratio, scenario.goal),
                _number(results.figure(scenario, "nginx", rate)),
                _number(results.figure(scenario, "wireglot", rate)),
                str(failed),
            ]
        )
    note = "Processor time of the server, in microseconds a request or an event; requests or events a second."
    return Section("Cost on one worker", note, header, rows)


def _latency(results: Results) -> Section:
    header = ["", "direct p50", "p99", "nginx adds p50", "p99", "wireglot adds p50", "p99"]
    rows = []
    for scenario in SINGLE:
        if not results.rounds(scenario, "direct"):
            continue
        row = [f"{scenario.title} ({scenario.key})"]
        row += [_number(results.figure(scenario, "direct", name)) for name in ("p50", "p99")]
        for target in ("nginx", "wireglot"):
            for name in ("p50", "p99"):
                pairs = results.over(scenario, target, "direct", name)
                row.append(_number(median(ours - base for ours, base in pairs)) if pairs else _NONE)
        rows.append(row)
    note = (
        "One request after the other, microseconds. Direct is the mock upstream without anything before it."
    )
    return Section("Added latency", note, header, rows)


def _slow(results: Results) -> Section:
    header = ["", "server", "us a stream", "us an event", "ratio", "delay p50", "p99", "worst", "failed"]
    rows = []
    for scenario in SLOW:
        for target in ("direct", "nginx", "wireglot"):
            if not results.rounds(scenario, target):
                continue
            cost = results.figure(scenario, target, "cpu_us_ev") if target != "direct" else None
            pairs = results.over(scenario, target, "nginx", "cpu_us_ev") if target == "wireglot" else []
            ratio = f"{_ratio(pairs):.1f}" if pairs else _NONE
            delays = [
                _number(results.figure(scenario, target, f"delay_{part}")) for part in ("p50", "p99", "max")
            ]
            failed = sum(figures["err"] for figures in results.rounds(scenario, target))
            total = _number(cost * EVENTS) if cost is not None else _NONE
            rows.append(
                [
                    f"{scenario.title} ({scenario.key})",
                    target,
                    total,
                    _number(cost),
                    ratio,
                    *delays,
                    str(failed),
                ]
            )
    note = f"{SLOW_STREAMS} streams at once, {EVENTS} events each, {GAP} ms apart; microseconds."
    return Section("Slow streams", note, header, rows)


def _process(results: Results) -> Section:
    rows = []
    for target, starts in results.starts.items():
        ours = target == "wireglot"
        start, memory, after = median(starts), results.memory[target], results.after.get(target)
        rows.append([f"{target}: start-up to the first answer", f"{start:.2f} s"])
        rows[-1] += [f"{START_UP_GOAL} s", _verdict(start, START_UP_GOAL)] if ours else ["", ""]
        rows.append([f"{target}: idle memory (RSS; PSS)", f"{memory.rss:.0f} MiB; {memory.pss:.0f} MiB"])
        rows[-1] += [f"{MEMORY_GOAL} MiB", _verdict(memory.rss, MEMORY_GOAL)] if ours else ["", ""]
        if after is not None:
            rows.append(
                [f"{target}: memory after the load", f"{after.rss:.0f} MiB; {after.pss:.0f} MiB", "", ""]
            )
    return Section("Process", "", ["", "", "goal", ""], rows)


def _ratio(pairs: list[tuple[float, float]]) -> float:
    # A reference below the clock's resolution would divide by nothing.
    return median(ours / max(theirs, 0.01) for ours, theirs in pairs)


def _verdict(value: float | None, goal: float | None) -> str:
    if value is None or goal is None:
        return _NONE
    return "PASS" if value <= goal else "FAIL"


def _number(value: float | None) -> str:
    if value is None:
        return _NONE
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def setting(tools: str, *, pinned: bool) -> str:
    """What it was measured with and on, without saying whose machine it is."""
    program = find_nginx()
    if program:
        shown = subprocess.run([program, "-v"], capture_output=True, text=True, check=False).stderr
        nginx = "nginx " + (re.findall(r"nginx/([\d.]+)", shown) or ["?"])[0]
    else:
        nginx = "no nginx (not installed: there are no ratios)"
    where = "server and tools each on a core of their own" if pinned else "all on the same cores"
    return (
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}; Python "
        f"{platform.python_version()}, {_version('uvloop')}, {_version('httptools')}, {_version('msgspec')}; "
        f"{nginx}; mock upstream and load generator: {tools}; {where}."
    )


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def _version(package: str) -> str:
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"no {package}"


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


def as_markdown(setting: str, sections: list[Section]) -> str:
    lines = [setting]
    for section in sections:
        lines += ["", f"### {section.title}", "", *([section.note, ""] if section.note else [])]
        lines.append(f"| {' | '.join(section.header)} |")
        lines.append("|---|" + "---:|" * (len(section.header) - 1))
        lines += [f"| {' | '.join(row)} |" for row in section.rows]
    return "\n".join(lines)
