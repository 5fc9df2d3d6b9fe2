"""Which cases are run."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from wireglot.cli.argument_parser import said
from wireglot.probe.case import Case
from wireglot.probe.cases.listed import CASES, THEMES, cases_for


class NoSuchCase(Exception):
    """In words for people."""


def selected(dialect: str, only: Sequence[str], *, large: bool) -> list[Case]:
    """Without a dialect: of all. What is named is run, however much it sends."""
    cases = list(cases_for(dialect) if dialect else CASES)
    patterns = [name.strip() for text in only for name in text.split(",") if name.strip()]
    if not patterns:
        return [case for case in cases if large or case.cost != "large"]
    for pattern in patterns:
        if not any(_fits(case, pattern) for case in cases):
            known = [*(theme.name for theme in THEMES), *(case.id for case in cases)]
            raise NoSuchCase(f"--only: there is no case {said(pattern, known)}")
    return [case for case in cases if any(_fits(case, pattern) for pattern in patterns)]


def _fits(case: Case, pattern: str) -> bool:
    return pattern in (case.id, case.theme) or fnmatchcase(case.id, pattern)
