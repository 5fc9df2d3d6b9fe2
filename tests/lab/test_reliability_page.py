"""docs/reliability.md says what came out, and where nothing did, that too."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from proofs.lab import proofs
from proofs.lab.proofs import PROOFS, Age, is_built, kept
from proofs.lab.result import Figure, Result
from tools import reliability_page

RESULT = Result(
    name="splits",
    demands="every split",
    verdict="failed",
    figures=(Figure("streams that differ", "0", 12345, False, "they are reported"),),
    counts={"in two": 1_234_567},
    seed=7,
    started="2026-11-16T01:00:00+00:00",
    seconds=600.0,
    machine="a machine",
    commit="abc",
    command="python -m proofs.lab.splits --seed 7",
)


HELD = msgspec.structs.replace(RESULT, verdict="held", figures=(Figure("streams that differ", "0", 0, True),))


def page(monkeypatch: pytest.MonkeyPatch, result: Result | None, age: Age | None = None) -> str:
    monkeypatch.setattr(reliability_page, "kept", lambda proof: result if proof.name == "splits" else None)
    monkeypatch.setattr(reliability_page, "age", lambda proof, result: age)
    return "\n".join(reliability_page.page())


def test_a_proof_older_than_a_change_in_what_it_covers_does_not_say_that_it_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = page(monkeypatch, HELD, Age(1_234, ("dialects", "wire")))
    row = next(line for line in text.splitlines() if "(#splits)" in line)
    assert row.endswith(
        "| held: streams that differ: 0 | `abc`, 1,234 commits ago; **before changes** in dialects, wire |"
    )
    assert "| streams that differ | 0 | 0 | held |" in text


def test_a_proof_of_unchanged_packages_holds_and_says_how_old_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    text = page(monkeypatch, HELD, Age(1, ()))
    assert "| holds: streams that differ: 0 | `abc`, 1 commit ago |" in text


def test_the_age_of_a_proof_is_read_from_the_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> str:
        names = ("-c", "user.name=a", "-c", "user.email=a@b.example")
        return subprocess.run(
            ["git", *names, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    source = tmp_path / "src" / "wireglot"
    for name in ("dialects", "cli"):
        (source / name).mkdir(parents=True)
        (source / name / "a.py").write_text("1\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    result = msgspec.structs.replace(HELD, commit=git("rev-parse", "HEAD"))
    monkeypatch.setattr(proofs, "ROOT", tmp_path)
    assert proofs.age(PROOFS[0], result) == Age(0, ())
    (source / "cli" / "a.py").write_text("2\n")
    git("commit", "-qam", "two")
    assert proofs.age(PROOFS[0], result) == Age(1, ())
    (source / "dialects" / "a.py").write_text("2\n")
    assert proofs.age(PROOFS[0], result) == Age(1, ("dialects",))
    assert proofs.age(PROOFS[0], RESULT) is None


def test_only_a_higher_count_is_no_reason_to_write_the_page_again(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = page(monkeypatch, HELD, Age(3, ())), page(monkeypatch, HELD, Age(4, ()))
    assert old != new
    assert reliability_page.current(old, new) == old
    changed = page(monkeypatch, HELD, Age(4, ("wire",)))
    assert reliability_page.current(old, changed) == changed


def test_a_figure_that_was_missed_is_reported_with_what_happens_instead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = page(monkeypatch, RESULT)
    assert "| streams that differ | 0 | 12,345 | **missed**: they are reported |" in text
    assert "| bit-identical | **did not hold**: streams that differ: 12,345 |" in text
    assert "Counted: in two 1,234,567." in text
    assert (
        "`python -m proofs.lab.splits --seed 7`, seed 7; 2026-11-16, 10 min, commit `abc`; a machine" in text
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
