"""A whole run: findings with their cases, the score, what was spent. All texts are scrubbed of the key."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from wireglot.http.redaction import Redactor
from wireglot.probe.case import Case, Cost, Level
from wireglot.probe.run import Finding
from wireglot.probe.talk import Exchange
from wireglot.probe.verdict import VERDICTS, Verdict


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A case and how it ended."""

    id: str
    theme: str
    title: str
    level: Level
    cost: Cost
    sends: str
    expects: str
    why: str
    verdict: Verdict
    words: str
    seconds: float
    tries: int
    exchanges: tuple[Exchange, ...]


class Score(msgspec.Struct, frozen=True):
    """Of what applied and was decided. A case that must hold weighs three times one that should."""

    passed: int
    applicable: int
    percent: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    wireglot: str
    """The version of the probe."""
    endpoint: str
    dialect: str
    model: str
    date: str
    complete: bool
    """False: it was interrupted, and cases are missing."""
    score: Score
    verdicts: dict[str, int]
    requests: int
    input_tokens: int
    output_tokens: int
    catalog: str
    """A suggestion for a file of the catalog."""
    cases: tuple[Row, ...]

    @property
    def failed(self) -> int:
        return self.verdicts["fail"]


def score_of(cases: Sequence[Case], findings: Sequence[Finding]) -> Score:
    weights = {case.id: case.weight for case in cases}
    decided = [finding for finding in findings if finding.verdict in ("pass", "fail", "warn")]
    passed = [finding for finding in decided if finding.verdict == "pass"]
    most = sum(weights[finding.id] for finding in decided)
    reached = sum(weights[finding.id] for finding in passed)
    return Score(len(passed), len(decided), round(100 * reached / most, 1) if most else 0.0)


def tally(findings: Sequence[Finding]) -> dict[str, int]:
    return {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in VERDICTS}


def rows_of(cases: Sequence[Case], findings: Sequence[Finding], key: str) -> tuple[Row, ...]:
    by_id = {case.id: case for case in cases}
    scrub = Redactor([key] if key else [], []).text
    return tuple(_row(by_id[finding.id], finding, scrub) for finding in findings)


def _row(case: Case, finding: Finding, scrub: Callable[[str], str]) -> Row:
    exchanges = tuple(
        msgspec.structs.replace(
            each,
            request=scrub(each.request),
            answer=scrub(each.answer),
            path=scrub(each.path),
            kind=scrub(each.kind),
            left_out=tuple(map(scrub, each.left_out)),
        )
        for each in finding.exchanges
    )
    return Row(
        id=case.id,
        theme=case.theme,
        title=case.title,
        level=case.level,
        cost=case.cost,
        sends=case.sends,
        expects=case.expects,
        why=case.why,
        verdict=finding.verdict,
        words=scrub(finding.words),
        seconds=finding.seconds,
        tries=finding.tries,
        exchanges=exchanges,
    )
