"""The trials of docs/reliability.md in small: a few of their tries at every change."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.lab.result import read

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "options", "tries"),
    [
        ("splits", ["--only", "openai-chat-anthropic", "--random", "50"], 1_000),
        ("cuts", ["--every", "700", "--clients", "8"], 150),
        ("store_faults", ["--every", "300", "--damages", "12", "--fillings", "1"], 40),
        ("fuzz", ["--inputs", "150", "--processes", "1"], 900),
        ("crosstalk", ["--exchanges", "400", "--callers", "20"], 400),
        ("drain", ["--streams", "40", "--deadline", "6"], 40),
        ("kill", ["--kills", "3", "--clients", "4"], 3),
        ("doors", ["--every", "101"], 1_000),
    ],
)
def test_it_holds_in_small(name: str, options: list[str], tries: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", f"tools.lab.{name}", *options, "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (tmp_path / f"{name}.json").exists(), done.stderr
    result = read(tmp_path / f"{name}.json")
    counted = [figure for figure in result.figures if "seconds" not in figure.name]  # no time is asserted
    assert [figure for figure in counted if not figure.holds] == [], done.stderr
    assert sum(result.counts.values()) >= tries
