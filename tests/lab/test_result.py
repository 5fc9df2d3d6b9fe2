"""A run of the lab leaves one file that says what was demanded, what was measured, and how to repeat it."""

import subprocess
from pathlib import Path

from proofs.lab.result import Run, command, commit_of, read


def test_a_run_whose_figures_hold_is_held_and_says_how_to_repeat_it(tmp_path: Path) -> None:
    run = Run("reloads", "0 failed requests", seed=7)
    run.counts["requests"] = 12
    run.figure("failed requests", demanded="0", measured=0, holds=True)
    assert run.write(tmp_path) == 0
    result = read(tmp_path / "reloads.json")
    assert (result.name, result.seed, result.verdict) == ("reloads", 7, "held")
    assert result.counts == {"requests": 12}
    assert result.figures[0].measured == 0
    assert "cores" in result.machine
    assert [entry.name for entry in tmp_path.iterdir()] == ["reloads.json"]


def test_one_figure_that_does_not_hold_fails_the_run(tmp_path: Path) -> None:
    run = Run("x", "both")
    run.figure("one", demanded="0", measured=0, holds=True)
    run.figure("other", demanded="0", measured=3, holds=False)
    assert run.write(tmp_path / "apart.json") == 1
    assert read(tmp_path / "apart.json").verdict == "failed"


def test_a_run_that_measured_nothing_or_was_ended_early_has_not_held(tmp_path: Path) -> None:
    assert Run("x", "y").result().verdict == "failed"
    early = Run("x", "y")
    early.figure("one", demanded="0", measured=0, holds=True)
    early.unfinished = True
    assert early.result().verdict == "unfinished"
    assert early.write(tmp_path) == 1


def test_the_command_does_not_tell_where_the_result_went() -> None:
    reported = command(["--out", "here/x.json", "--seed", "3", "--out=there"])
    assert reported.endswith(" --seed 3")
    assert "here" not in reported


def test_results_of_other_proofs_are_no_change_of_the_tree(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        names = ("-c", "user.name=a", "-c", "user.email=a@b.example")
        subprocess.run(["git", *names, *words], cwd=tmp_path, check=True, capture_output=True)

    inner = tmp_path / "tools"
    files = (
        inner / "a.py",
        tmp_path / "docs" / "results" / "slow.json",
        tmp_path / "docs" / "reliability.md",
    )
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    clean = commit_of(inner)
    assert clean.isalnum()
    for file in files[1:]:
        file.write_text("2\n")
    assert commit_of(inner) == clean
    files[0].write_text("2\n")
    assert commit_of(inner) == f"{clean}+"
