"""Runs all checks, reports their findings, and fixes what can be fixed on request."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TextIO

import msgspec

from wireglot.cli.doctor.case import GRADES, DoctorCase, DoctorFinding, Grade
from wireglot.cli.doctor.configuration_checks import (
    look_at_configuration,
    look_at_files,
    look_at_safety,
    look_at_versions,
)
from wireglot.cli.doctor.machine_checks import look_at_disk, look_at_port, look_at_store
from wireglot.cli.doctor.provider_checks import (
    look_at_clients,
    look_at_clock,
    look_at_keys,
    look_at_network,
    look_at_prices,
    look_at_web,
)
from wireglot.cli.terminal import FAILED, OK, Paint, at_home, count, one_line
from wireglot.gateway.relay.key_checks import host_of
from wireglot.gateway.settings import Provider


class Check(NamedTuple):
    title: str
    look: Callable[[DoctorCase], Iterator[DoctorFinding]]
    needs_settings: bool = True
    """Whether the check needs a configuration that loads."""


CHECKS: Final = (
    Check("versions", look_at_versions, needs_settings=False),
    Check("configuration", look_at_configuration, needs_settings=False),
    Check("keys", look_at_keys),
    Check("network", look_at_network),
    Check("web", look_at_web),
    Check("clock", look_at_clock),
    Check("store", look_at_store),
    Check("disk", look_at_disk),
    Check("port", look_at_port),
    Check("safety", look_at_safety),
    Check("files", look_at_files, needs_settings=False),
    Check("prices", look_at_prices),
    Check("clients", look_at_clients, needs_settings=False),
)


_COLOURS: Final = {"ok": "ok", "note": "emulated", "warning": "approximated", "problem": "dropped"}
_GRADE_COLUMNS: Final = 7
_INDENT: Final = " " * (_GRADE_COLUMNS + 4)
_PIPE_COLUMNS: Final = 1000
"""In a pipe lines are not wrapped, so that they can be searched."""


class DoctorReport:
    def __init__(self, stream: TextIO, *, as_json: bool) -> None:
        self._stream = stream
        self._json = as_json
        self._paint = Paint(stream)
        self._columns = shutil.get_terminal_size().columns if stream.isatty() else _PIPE_COLUMNS
        self._unseen: list[str] = []

    def before(self, asked: Sequence[Provider]) -> None:
        """Report what is about to be sent, and to whom."""
        if asked and not self._json:
            hosts = ", ".join(dict.fromkeys(host_of(provider.spec.base_url) for provider in asked))
            text = f"Sending requests to {hosts}: no tokens are used, --offline sends nothing."
            for line in textwrap.wrap(one_line(text), self._columns, break_long_words=False):
                self._print(self._paint(line, "dim"))

    def section(self, title: str, findings: Sequence[DoctorFinding]) -> None:
        if self._json:
            for finding in findings:
                self._print(_line(title, finding))
            return
        if findings:
            self._print(self._paint(title, "bold"))
        for finding in findings:
            self._finding(finding)

    def unseen(self, title: str) -> None:
        self._unseen.append(title)

    def end(self, found: Sequence[DoctorFinding], *, fix: bool) -> None:
        if self._json:
            return
        self._print("")
        if self._unseen:
            self._wrapped(f"Not checked until the configuration loads: {', '.join(self._unseen)}.", "")
        counts = Counter(finding.grade for finding in found)
        reported = [count(counts[grade], grade) for grade in GRADES if grade != "ok" and counts[grade]]
        worst: Grade = next((grade for grade in GRADES if counts[grade]), "ok")
        self._print(self._paint(", ".join(reported) if reported else "No problems found.", _COLOURS[worst]))
        fixed = sum(finding.fixed for finding in found)
        can_be = sum(finding.repair is not None for finding in found)
        if fixed:
            self._print(f"{count(fixed, 'thing')} fixed.")
        if can_be and not fix:
            self._print(f"`wireglot doctor --fix` fixes {can_be} of them.")

    def _finding(self, finding: DoctorFinding) -> None:
        word = "fixed" if finding.fixed else finding.grade
        head = f"  {self._paint(word.ljust(_GRADE_COLUMNS), _COLOURS[finding.grade])}  "
        first, *rest = self._lines(at_home(finding.text), _INDENT)
        self._print(head + first[len(_INDENT) :])
        for line in rest:
            self._print(line)
        if finding.fix:
            label = "did" if finding.fixed else "fix"
            for line in self._lines(f"{label}: {at_home(finding.fix)}", _INDENT):
                self._print(line)

    def _lines(self, text: str, indent: str) -> list[str]:
        return textwrap.wrap(
            one_line(text),
            self._columns,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,  # paths and commands stay whole, to be copied
            break_on_hyphens=False,
        ) or [indent]

    def _wrapped(self, text: str, indent: str) -> None:
        for line in self._lines(text, indent):
            self._print(line)

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


def _line(title: str, finding: DoctorFinding) -> str:
    reported = {
        "check": title,
        "grade": finding.grade,
        "text": finding.text,
        "fix": finding.fix,
        "fixed": finding.fixed,
        "fixable": finding.repair is not None,
        # Former names.
        "mended": finding.fixed,
        "mendable": finding.repair is not None,
    }
    return msgspec.json.encode(reported).decode()


def run(arguments: argparse.Namespace) -> int:
    fix: bool = arguments.fix
    case = DoctorCase(arguments.config, os.environ, offline=arguments.offline, searches=arguments.search)
    report = DoctorReport(sys.stdout, as_json=arguments.json)
    if case.settings is not None and not case.offline:
        report.before(case.asked)
    found: list[DoctorFinding] = []
    for check in CHECKS:
        if check.needs_settings and case.settings is None:
            report.unseen(check.title)
            continue
        findings = list(_findings(case, check.look(case), fix=fix))
        report.section(check.title, findings)
        found += findings
    report.end(found, fix=fix)
    return FAILED if any(each.grade == "problem" for each in found) else OK


def _findings(case: DoctorCase, found: Iterator[DoctorFinding], *, fix: bool) -> Iterator[DoctorFinding]:
    for finding in found:
        clean = msgspec.structs.replace(
            finding, text=case.redactor.text(finding.text), fix=case.redactor.text(finding.fix)
        )
        yield _fixed(clean) if fix and clean.repair is not None else clean


def _fixed(finding: DoctorFinding) -> DoctorFinding:
    assert finding.repair is not None
    try:
        finding.repair()
    except OSError as fault:
        text = f"{finding.text} (it could not be fixed: {fault.strerror or fault})"
        return msgspec.structs.replace(finding, text=text, repair=None)
    return msgspec.structs.replace(finding, grade="ok", fixed=True, repair=None)
