"""The outcome of a foreign suite's tests, each one that did not pass with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from proofs.judges.results import Case

_MAX_REASON: Final = 300


class Reason(NamedTuple):
    """Why tests do not pass whose name and problem have `pattern`."""

    pattern: str
    text: str
    is_run: bool = True
    """Not where the case is about what no gateway serves, or needs what is not here."""


class Sorted(NamedTuple):
    passed: int = 0
    failed: tuple[Case, ...] = ()
    not_run: tuple[Case, ...] = ()

    def and_also(self, other: Sorted) -> Sorted:
        return Sorted(self.passed + other.passed, self.failed + other.failed, self.not_run + other.not_run)


def reason_of(name: str, problem: str, reasons: Sequence[Reason]) -> Reason | None:
    """The first that fits the name and the problem, whose lines are joined."""
    text = " ".join(f"{name}: {problem}".split())
    return next((each for each in reasons if re.search(each.pattern, text)), None)


def summary(problem: str) -> str:
    """Its beginning, without what a stack trace adds."""
    return " ".join(problem.split("\n    at ")[0].split())[:_MAX_REASON]


def sort(tests: Iterable[tuple[str, str]], reasons: Sequence[Reason]) -> Sorted:
    """Names and problems, which are empty where a test passed. A failure without a known reason has its own
    message."""
    passed, failed, not_run = 0, list[Case](), list[Case]()
    for name, problem in tests:
        if not problem:
            passed += 1
            continue
        reason = reason_of(name, problem, reasons)
        case = Case(name, reason.text if reason else summary(problem))
        (failed if reason is None or reason.is_run else not_run).append(case)
    return Sorted(passed, tuple(failed), tuple(not_run))
