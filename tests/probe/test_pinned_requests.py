"""Pinned: what the probe sends, what it concludes of the demo model, and which limits it suggests.

The other tests say that a case fails where its rule is broken; these files make each change of a question
visible in a review. `WIREGLOT_UPDATE=1 pytest tests/probe/test_pinned_requests.py` writes them again.
"""

from __future__ import annotations

import os
from typing import Final

import pytest

from tests.core.laws.cases import FIXTURES
from wireglot.probe.report import catalog_entry
from wireglot.probe.run import WIRES, DemoEndpoint, cases_for, run_cases
from wireglot.probe.talk import ProbeLedger

PINS: Final = FIXTURES / "probe"
UPDATE: Final = bool(os.environ.get("WIREGLOT_UPDATE"))


@pytest.mark.parametrize("dialect", WIRES)
def test_the_requests_of_all_cases_and_what_the_demo_model_makes_of_them(dialect: str) -> None:
    ledger, lines = ProbeLedger(), list[str]()
    sent: dict[str, str] = {}
    cases = [case for case in cases_for(dialect) if case.cost != "large"]
    for finding in run_cases(
        cases, DemoEndpoint(dialect), WIRES[dialect], "demo", ledger, wait=lambda _: None
    ):
        lines.append(f"# {finding.id}: {finding.verdict} {finding.words}".rstrip())
        for each in finding.exchanges:
            request = f"{each.method} {each.path} {each.request}"
            if request in sent:
                lines.append(f"as in {sent[request]} -> {each.status}")
            else:
                sent[request] = finding.id
                lines.append(f"{request} -> {each.status}")
        lines.append("")
    lines.append(
        catalog_entry("https://a.example/v1", dialect, "demo", ledger, date="2026-01-01", version="0")
    )
    path, text = PINS / f"{dialect}.txt", "\n".join(lines)
    if UPDATE:
        PINS.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
