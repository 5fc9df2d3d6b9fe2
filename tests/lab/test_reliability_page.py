"""docs/reliability.md says what came out, and where nothing did, that too."""

import pytest

from tools import reliability_page
from tools.lab.proofs import PROOFS, is_built, kept
from tools.lab.result import Figure, Result

RESULT = Result(
    name="splits",
    demands="every split",
    verdict="failed",
    figures=(Figure("streams that differ", "0", 12345, False, "they are told"),),
    counts={"in two": 1_234_567},
    seed=7,
    started="2026-11-16T01:00:00+00:00",
    seconds=600.0,
    machine="a machine",
    commit="abc",
    command="python -m tools.lab.splits --seed 7",
)


def page(monkeypatch: pytest.MonkeyPatch, result: Result | None) -> str:
    monkeypatch.setattr(reliability_page, "kept", lambda proof: result if proof.name == "splits" else None)
    return "\n".join(reliability_page.page())


def test_a_figure_that_was_missed_is_told_with_what_happens_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    text = page(monkeypatch, RESULT)
    assert "| streams that differ | 0 | 12,345 | **missed**: they are told |" in text
    assert "| bit-identical | **does not hold**: streams that differ: 12,345 |" in text
    assert "Counted: in two 1,234,567." in text
    assert (
        "`python -m tools.lab.splits --seed 7`, seed 7; 2026-11-16, 10 min, commit `abc`; a machine" in text
    )


def test_what_was_not_measured_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    text = page(monkeypatch, None)
    assert text.count("| not measured yet |") == len(PROOFS)


def test_kept_results_belong_to_a_proof_that_can_be_repeated() -> None:
    for proof in PROOFS:
        result = kept(proof)
        if result is not None:
            assert is_built(proof), proof.name
            assert result.name == proof.name
            assert "+" not in result.commit, f"{proof.name}: made from changes that nobody else has"
