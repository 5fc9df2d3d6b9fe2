"""Counts all rows of an area in a program of its own, which can be ended, and run under valgrind."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from proofs.guard.callgrind import ROOT, environment, parts, total, under_callgrind
from proofs.guard.hot_paths import MARK
from tests.laws.bounded import rows_of, too_many_instructions

HUNG_SECONDS: Final = 900
"""For all rows of an area: one that runs in C cannot be stopped from inside, so its process is killed. No row that
keeps the law is decided by it."""
_PROGRAM: Final = [sys.executable, "-m", "tests.laws.bounded"]


def refused_by_lines_and_bytes(area: str) -> dict[str, str]:
    """The rows that break the law, each with the counts that show it."""
    rows, refused, at = rows_of(area), dict[str, str](), 0
    while at < len(rows):
        with tempfile.TemporaryFile() as out:
            hung = _ended([*_PROGRAM, "lines", area, str(at)], out.fileno())
            out.seek(0)
            told = [json.loads(line) for line in out.read().splitlines()]
        refused |= {name: why for name, why in told if why}
        at += len(told)
        if at < len(rows):
            refused[rows[at].name] = hung
            at += 1
    return refused


def refused_by_instructions(area: str) -> dict[str, str]:
    """The same by instructions. valgrind must be installed."""
    rows, refused, at = rows_of(area), dict[str, str](), 0
    while at < len(rows):
        with tempfile.TemporaryDirectory(prefix="wireglot-bounded-") as name:
            program = [*_PROGRAM, "instructions", area, str(at)]
            command = under_callgrind(Path(name), program, f"--dump-before={MARK}")
            hung = _ended(command, subprocess.DEVNULL)
            # What led to the row, n, 4 n; and the same for the next one.
            totals = [total(path) for path in parts(Path(name))]
        for row in rows[at : at + len(totals) // 3]:
            if why := too_many_instructions(totals[1:3], row.n):
                refused[row.name] = why
            del totals[:3]
            at += 1
        if at < len(rows):
            refused[rows[at].name] = hung
            at += 1
    return refused


def _ended(command: list[str], out: int) -> str:
    """What is to be said of a row that the program did not come to the end of."""
    program = subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdout=out, stderr=subprocess.PIPE, text=True
    )
    try:
        said = program.communicate(timeout=HUNG_SECONDS)[1]
    except subprocess.TimeoutExpired:
        program.kill()
        program.communicate()
        return "did not end"
    return f"ended with status {program.returncode}: {said[-2000:]}"
