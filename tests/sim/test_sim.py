"""A hundred seeds of the simulated gateway at every change, and whether the simulation is worth anything: the
same seed is the same run in every process, and defects that are planted are found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def sim(*arguments: str, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.sim", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("first", range(1, 101, 25))
def test_no_law_is_broken(first: int) -> None:
    done = sim("--first", str(first), "--seeds", "25")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seeds: 25," in done.stdout


def test_one_seed_is_one_run() -> None:
    """In processes whose sets and dictionaries are ordered otherwise, alone and after other seeds."""
    together = sim("--first", "7", "--seeds", "4", "--digests", hash_seed="1")
    other = sim("--first", "7", "--seeds", "4", "--digests", hash_seed="2")
    alone = sim("--seed", "10", "--digests", hash_seed="3")
    digests = re.findall(r"^\d+ [0-9a-f]{32} \d+$", together.stdout, re.MULTILINE)
    assert len(digests) == 4
    assert digests == re.findall(r"^\d+ [0-9a-f]{32} \d+$", other.stdout, re.MULTILINE)
    assert alone.stdout.splitlines()[0] == digests[-1]


@pytest.mark.parametrize(
    ("defect", "seed", "law"),
    [
        ("swallowed-cancellation", 17, "no task remains"),
        ("rows-twice", 1, "nothing is doubled"),
        ("streams-end-twice", 1, "every stream ends once"),
        ("leaked-permit", 26, "no permit remains"),
        ("journal-without-sync", 35, "nothing is lost"),
        ("store-without-sync", 14, "nothing is lost"),
        ("budget-settled-twice", 2, "budgets add up"),
    ],
)
def test_a_planted_defect_is_found_and_its_seed_replays(defect: str, seed: int, law: str) -> None:
    """The seeds are those that find it first; after a change that shifts them: `--plant NAME --stop`."""
    done = sim("--plant", defect, "--first", str(seed), "--seeds", "100", "--stop")
    assert done.returncode == 1, done.stdout + done.stderr
    found = re.search(r"Again: python -m (tools\.sim --seed \d+ --trace --plant .*)", done.stdout)
    assert found is not None
    assert f"  {law}: " in done.stdout
    again = sim(*found[1].split()[1:])
    assert f"BROKEN {law}: " in again.stdout
