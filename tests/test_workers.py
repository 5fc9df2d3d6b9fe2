"""Every test runs once, whichever worker runs it and however that ends."""

import os
import subprocess
import sys
from pathlib import Path

from tests.workers import Shares

ROOT = Path(__file__).parents[1]
TESTS = """
import os
import pytest

@pytest.mark.parametrize("number", range(20))
def test_one(number, tmp_path):
    print("printed by", number)
    (tmp_path / "own").mkdir()
    if number == 7:
        os._exit(3)
    assert number != 9
    if number == 11:
        pytest.skip("left out")
"""


def test_a_worker_takes_its_own_part_and_then_half_of_what_another_has_left():
    shares = Shares(tests=10, workers=2)
    taken = [shares.take(0) for _ in range(5)]
    assert taken == [0, 1, 2, 3, 4]
    assert [shares.take(0) for _ in range(3)] == [7, 8, 9]
    assert [shares.take(1) for _ in range(2)] == [5, 6]
    assert shares.take(0) == shares.take(1) == -1


def test_nothing_is_taken_after_a_stop():
    shares = Shares(tests=10, workers=2)
    shares.stop()
    assert shares.take(0) == -1


def test_a_worker_that_ends_fails_the_test_it_was_at_and_no_other_is_lost(tmp_path: Path):
    (tmp_path / "test_some.py").write_text(TESTS)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.workers",
            "--workers",
            "3",
            "-c",
            os.devnull,
            ".",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 failed, 17 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "the worker process ended with 3" in done.stdout
    assert "printed by 9" in done.stdout
    assert "printed by 8" not in done.stdout


def test_what_a_test_registered_for_the_end_of_its_process_is_run(tmp_path: Path):
    """Servers that tests share are ended so."""
    (tmp_path / "test_some.py").write_text(
        "import atexit, os, pathlib, pytest\n"
        "@pytest.mark.parametrize('number', range(4))\n"
        "def test_one(number):\n"
        "    atexit.register(pathlib.Path(f'ended-{number}').touch)\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.workers",
        "--workers",
        "2",
        "-c",
        os.devnull,
        ".",
    ]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    assert {path.name for path in tmp_path.glob("ended-*")} == {f"ended-{number}" for number in range(4)}
