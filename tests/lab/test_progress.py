"""A long trial that was ended goes on with the next piece; another commit or other options begin again."""

from pathlib import Path

import pytest

from proofs.lab import progress as module
from proofs.lab.progress import Progress


def some_of(progress: Progress, pieces: list[str], until: str) -> list[str]:
    """Works until a piece, in the middle of which it is ended."""
    seen = []
    for piece in progress.left(pieces):
        if piece == until:
            break
        progress.counts["tries"] += 1
        progress.problems.append(f"in {piece}")
        seen.append(piece)
    return seen


def test_a_run_goes_on_with_the_piece_it_was_ended_in(tmp_path: Path) -> None:
    assert some_of(Progress("trial", "seed 1", tmp_path), ["a", "b", "c"], until="c") == ["a", "b"]
    again = Progress("trial", "seed 1", tmp_path)
    assert list(again.left(["a", "b", "c"])) == ["c"]
    assert again.counts["tries"] == 2
    assert again.problems == ["in a", "in b"]


def test_other_options_or_another_commit_begin_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some_of(Progress("trial", "seed 1", tmp_path), ["a", "b"], until="b")
    assert list(Progress("trial", "seed 2", tmp_path).left(["a", "b"])) == ["a", "b"]
    monkeypatch.setattr(module, "commit", lambda: "another")
    assert list(Progress("trial", "seed 2", tmp_path).left(["a", "b"])) == ["a", "b"]


def test_nothing_stays_of_a_run_that_is_through(tmp_path: Path) -> None:
    progress = Progress("trial", "", tmp_path)
    assert list(progress.left(["a"])) == ["a"]
    assert list(tmp_path.iterdir()) != []
    progress.end()
    assert list(tmp_path.iterdir()) == []
