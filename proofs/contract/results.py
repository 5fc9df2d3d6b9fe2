"""The outcome of a comparison: its file, and the page that shows it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from proofs.contract.compare import Difference
from tools.blocks import table

_FILE: Final = Path(__file__).parents[2] / "docs" / "results" / "contract.json"


class Row(NamedTuple):
    section: str
    case: str
    reference: str
    ours: str
    verdict: str
    """`same`, `differs as intended` or `differs`."""
    differences: list[tuple[str, str, str]]
    """Fact, the reference's value and ours: those that are not intended."""
    intended: list[tuple[str, str]]
    """Pattern of facts, and why they differ."""

    @classmethod
    def of(
        cls,
        section: str,
        case: str,
        reference: Mapping[str, str],
        ours: Mapping[str, str],
        found: Sequence[Difference],
    ) -> Self:
        wrong = [(each.fact, each.reference, each.ours) for each in found if not each.reason]
        intended = list(dict.fromkeys((each.listed, each.reason) for each in found if each.reason))
        verdict = "differs" if wrong else "differs as intended" if intended else "same"
        return cls(section, case, _summary(reference), _summary(ours), verdict, wrong, intended)


def _summary(facts: Mapping[str, str]) -> str:
    """The status, and the type of an error."""
    error = facts.get("body.error.type") or facts.get("body.error")
    return f"{facts['status']} {json.loads(error)}" if error else facts["status"]


def write(version: str, rows: Iterable[Row]) -> None:
    outcome = {"reference": version, "rows": [row._asdict() for row in rows]}
    _FILE.write_text(json.dumps(outcome, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def page() -> Iterator[str]:
    outcome: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    rows = [Row(**row) for row in outcome["rows"]]
    yield "# Claude Code's contract"
    yield ""
    yield f"`make contract` starts the reference gateway of Claude Code {outcome['reference']}"
    yield "(`claude gateway`) and ours, with the same upstream for both, sends the same requests to both and"
    yield "compares the answers field by field: status, error, the headers of the contract, body, and what"
    yield "the upstream received. The identifiers of upstream errors must never be in an answer of ours."
    yield ""
    for section in dict.fromkeys(row.section for row in rows):
        yield f"## {section}"
        yield ""
        cases: dict[tuple[str, str, str], list[str]] = {}
        for row in rows:
            if row.section == section:
                found = f"`{row.reference}`", f"`{row.ours}`", _verdict(row)
                cases.setdefault(found, []).append(row.case)
        yield table(
            ("cases", "reference", "ours", "verdict"),
            [("; ".join(named), *found) for found, named in cases.items()],
        )
        yield ""


def _verdict(row: Row) -> str:
    if row.differences:
        wrong = (f"`{fact}`: `{ours}`, not `{theirs}`" for fact, theirs, ours in row.differences)
        return f"**differs**: {'; '.join(wrong)}"
    facts: dict[str, list[str]] = {}
    for pattern, reason in row.intended:
        facts.setdefault(reason, []).append(f"`{pattern}`")
    reasons = "; ".join(f"{reason} ({', '.join(patterns)})" for reason, patterns in facts.items())
    return f"{row.verdict}: {reasons}" if reasons else row.verdict
