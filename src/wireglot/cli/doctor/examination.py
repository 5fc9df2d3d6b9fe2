"""All checks, what they found told, and mended where that was asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import msgspec

from wireglot.cli.doctor.case import Case
from wireglot.cli.doctor.checks.listed import CHECKS
from wireglot.cli.doctor.finding import Finding
from wireglot.cli.doctor.report import Report
from wireglot.cli.exit_status import FAILED, OK


def examine(named: str | None, *, fix: bool, offline: bool, as_json: bool) -> int:
    case = Case(named, os.environ, offline=offline)
    report = Report(sys.stdout, as_json=as_json)
    if case.settings is not None and not case.offline:
        report.before(case.asked)
    found: list[Finding] = []
    for check in CHECKS:
        if check.needs_settings and case.settings is None:
            report.unseen(check.title)
            continue
        findings = list(_findings(case, check.look(case), fix=fix))
        report.section(check.title, findings)
        found += findings
    report.end(found, fix=fix)
    return FAILED if any(each.grade == "problem" for each in found) else OK


def _findings(case: Case, found: Iterator[Finding], *, fix: bool) -> Iterator[Finding]:
    for finding in found:
        clean = msgspec.structs.replace(
            finding, text=case.redactor.text(finding.text), fix=case.redactor.text(finding.fix)
        )
        yield _mended(clean) if fix and clean.mend is not None else clean


def _mended(finding: Finding) -> Finding:
    assert finding.mend is not None
    try:
        finding.mend()
    except OSError as fault:
        text = f"{finding.text} (it could not be mended: {fault.strerror or fault})"
        return msgspec.structs.replace(finding, text=text, mend=None)
    return msgspec.structs.replace(finding, grade="ok", mended=True, mend=None)
