"""Some seeds of the simulated gateway at every change and a hundred in `make full`, and whether the simulation is
worth anything: the same seed is the same run in every process, and defects that are planted are found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import WHOLE

ROOT = Path(__file__).parents[2]


def sim(*arguments: str, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "proofs.simulation", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )


SEEDS = 50 if WHOLE else 12


@pytest.mark.parametrize("first", [1, 1 + SEEDS])
def test_no_law_is_broken(first: int) -> None:
    done = sim("--first", str(first), "--seeds", str(SEEDS))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"seeds: {SEEDS}," in done.stdout


@pytest.mark.sampled(each=1)
@pytest.mark.parametrize(
    "seed",
    [
        308,  # the process is paused while a law reads the store
        1114,  # a client is gone in the middle of its request
        4918,  # a client leaves before it knows of the background work that it began
        1567,  # the disk fails when the turn of a streamed answer is stored
    ],
)
def test_what_a_gateway_may_do_breaks_no_law(seed: int) -> None:
    done = sim("--seed", str(seed))
    assert done.returncode == 0, done.stdout


def test_a_call_to_a_lost_store_ends_with_the_process() -> None:
    done = sim("--seed", "9791")
    assert done.returncode == 0, done.stdout


@pytest.mark.whole
def test_one_seed_is_one_run() -> None:
    """In processes whose sets and dictionaries are ordered otherwise, alone and after other seeds."""
    together = sim("--first", "7", "--seeds", "2", "--digests", hash_seed="1")
    other = sim("--first", "7", "--seeds", "2", "--digests", hash_seed="2")
    alone = sim("--seed", "8", "--digests", hash_seed="3")
    digests = re.findall(r"^\d+ [0-9a-f]{32} \d+$", together.stdout, re.MULTILINE)
    assert len(digests) == 2
    assert digests == re.findall(r"^\d+ [0-9a-f]{32} \d+$", other.stdout, re.MULTILINE)
    assert alone.stdout.splitlines()[0] == digests[-1]


@pytest.mark.whole  # one of them is planted below at every change
def test_planted_defects_are_found_by_their_laws() -> None:
    """Seeds of `PLANTS` that no longer find theirs cost only the time to look for others."""
    done = sim("--plants", "--seeds", "100")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "swallowed-cancellation: no task remains, seed " in done.stdout


def test_a_seed_that_breaks_a_law_is_printed_with_the_command_that_replays_it() -> None:
    done = sim("--plant", "rows-twice", "--seeds", "1")
    assert done.returncode == 1
    found = re.search(
        r"Again: python -m proofs\.simulation (--seed 1 --trace --plant rows-twice)", done.stdout
    )
    assert found is not None, done.stdout + done.stderr
    again = sim(*found[1].split())
    assert "BROKEN nothing is doubled: " in again.stdout
    assert "operator: " in again.stdout or "worker 0.1 starts" in again.stdout
