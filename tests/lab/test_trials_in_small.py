"""The trials of docs/reliability.md in small: one of them at every change, the others with `make full`."""

import subprocess
import sys
from pathlib import Path

import pytest

from proofs.lab.result import read

ROOT = Path(__file__).parents[2]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "options", "tries"),
    [
        ("cuts", ["--every", "1500", "--clients", "8"], 70),
        *(
            pytest.param(*each, marks=pytest.mark.whole)
            for each in (
                ("splits", ["--only", "openai-chat-anthropic", "--random", "15"], 500),
                ("store_faults", ["--every", "600", "--damages", "6", "--fillings", "1"], 20),
                ("fuzz", ["--inputs", "50", "--processes", "1"], 300),
                ("crosstalk", ["--exchanges", "200", "--callers", "20"], 200),
                ("drain", ["--streams", "20", "--deadline", "6"], 20),
                ("kill", ["--kills", "3", "--clients", "4"], 3),
                ("doors", ["--every", "401", "--only", "smuggling,keys,callers,envelopes"], 250),
                ("doors", ["--every", "401", "--only", "answers,origins,ssrf,tls"], 90),
            )
        ),
    ],
)
def test_it_holds_in_small(name: str, options: list[str], tries: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", f"proofs.lab.{name}", *options, "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (tmp_path / f"{name}.json").exists(), done.stderr
    result = read(tmp_path / f"{name}.json")
    counted = [figure for figure in result.figures if "seconds" not in figure.name]  # no time is asserted
    assert [figure for figure in counted if not figure.holds] == [], done.stderr
    assert sum(result.counts.values()) >= tries
