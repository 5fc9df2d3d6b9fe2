"""The outcome of a comparison: its file, and the page that shows it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from tools.blocks import table
from tools.contract.compare import Difference

_FILE: Final = Path(__file__).parents[2] / "docs" / "results" / "contract.json"


class Row(NamedTuple):
    section: str
    case: str
    reference: str
    ours: str
    verdict: str
    """`same`, `differs as intended` or `differs`."""
    differences: list[list[str]]
    """Fact, the reference's value, ours, and why it is intended."""

    @classmethod
    def of(
        cls,
        section: str,
        case: str,
        reference: Mapping[str, str],
        ours: Mapping[str, str],
        found: Iterable[Difference],
    ) -> Self:
        listed = [list(each) for each in found]
        intended = all(each[-1] for each in listed)
        verdict = "same" if not listed else "differs as intended" if intended else "differs"
        return cls(section, case, _summary(reference), _summary(ours), verdict, listed)


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
    yield f"`make contract` starts the reference gateway of Claude Code {outcome['reference']} (`claude gateway`)"
    yield "and ours, with the same upstream behind both, sends the same requests to both and compares the answers"
    yield "field by field: status, error, the headers of the contract, body, and what the upstream received."
    yield ""
    for section in dict.fromkeys(row.section for row in rows):
        yield f"## {section}"
        yield ""
        yield table(
            ("case", "reference", "ours", "verdict"),
            [
                (row.case, f"`{row.reference}`", f"`{row.ours}`", _verdict(row))
                for row in rows
                if row.section == section
            ],
        )
        yield ""


def _verdict(row: Row) -> str:
    if row.verdict != "differs":
        reasons = dict.fromkeys(f"`{fact}`: {reason}" for fact, _, _, reason in row.differences)
        return "; ".join([row.verdict, *reasons])
    wrong = [
        f"`{fact}`: {ours}, not {theirs}" for fact, theirs, ours, reason in row.differences if not reason
    ]
    return "**differs**: " + "; ".join(wrong)
