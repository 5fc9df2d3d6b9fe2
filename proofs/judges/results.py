"""What a foreign judge found: one file for each, and the page that shows them all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from proofs.mutants import results as mutants
from tools.blocks import table

_FOLDER: Final = Path(__file__).parents[2] / "docs" / "results" / "judges"


class Case(msgspec.Struct, frozen=True):
    """A case that did not pass or was not run, and why."""

    name: str
    reason: str
    count: int = 1
    """How many cases the name stands for."""


class Verdict(msgspec.Struct, frozen=True):
    judge: str
    """As `python -m proofs.judges` knows it; also the name of the file."""
    version: str
    """Of the package, or the commit of the repository."""
    about: str
    """One sentence: whose it is and what it checks."""
    passed: int
    failed: tuple[Case, ...] = ()
    not_run: tuple[Case, ...] = ()
    """Cases that are about something no gateway serves, or that need what is not here."""
    accepted: tuple[Case, ...] = ()
    """Where we differ on purpose from what the judge demands, with the evidence."""
    day: str = msgspec.field(default_factory=lambda: f"{datetime.now(UTC):%Y-%m-%d}")

    def __str__(self) -> str:
        counts = f"{self.passed} passed, {total(self.failed)} failed, {total(self.not_run)} not run"
        return f"{self.judge} {self.version}: {counts}"


def total(cases: tuple[Case, ...]) -> int:
    return sum(case.count for case in cases)


def write(verdict: Verdict) -> None:
    _FOLDER.mkdir(parents=True, exist_ok=True)
    text = json.dumps(msgspec.to_builtins(verdict), indent=1, ensure_ascii=False)
    (_FOLDER / f"{verdict.judge}.json").write_text(text + "\n", encoding="utf-8")


def verdicts() -> list[Verdict]:
    return [msgspec.json.decode(path.read_bytes(), type=Verdict) for path in sorted(_FOLDER.glob("*.json"))]


def page() -> Iterator[str]:
    found = verdicts()
    yield "# Judges"
    yield ""
    yield "Programs and test suites of others, run against the gateway: `make judges`, or one of them with"
    yield "`make judges ARGS=NAME`. Their code is not part of this project; each runs in an environment of"
    yield "its own. Cases that failed or were not run are listed below by reason, with one of their names;"
    yield "all names are in `docs/results/judges`."
    yield ""
    yield table(
        ("judge", "version", "passed", "failed", "not run", "day"),
        [
            (
                f"[`{each.judge}`](#{each.judge})",
                each.version,
                str(each.passed),
                str(total(each.failed)),
                str(total(each.not_run)),
                each.day,
            )
            for each in found
        ],
    )
    for each in found:
        yield from ("", f"## {each.judge}", "", f"{each.about[:1].upper()}{each.about[1:]}.")
        for title, cases in (
            ("Failed", each.failed),
            ("Not run", each.not_run),
            ("Different on purpose", each.accepted),
        ):
            if cases:
                yield ""
                yield f"{title}:"
                yield ""
                yield from _by_reason(cases)
    yield ""
    yield "## Strength of our own tests"
    yield ""
    yield from mutants.body()


def _by_reason(cases: tuple[Case, ...]) -> Iterator[str]:
    """One item for each reason; one name of many."""
    counts = Counter[str]()
    for case in cases:
        counts[case.reason] += case.count
    for reason, count in counts.most_common():
        names = [f"`{case.name}`" for case in cases if case.reason == reason]
        named = f"{names[0]} and others" if names[1:] else names[0]
        yield f"- {count}: {reason} ({named})"
