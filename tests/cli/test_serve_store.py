"""A gateway whose store cannot be used says why, in one line, and does not start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.sampled(each=1)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path, workers: str) -> None:
    """FAULTS 97"""
    place = tmp_path / "wireglot" / "wireglot.db"
    place.parent.mkdir()
    place.write_bytes(b"not a database" * 40)
    done = subprocess.run(
        [sys.executable, "-m", "wireglot.cli", "serve", "--port", "0", "--workers", workers],
        env={"XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "wireglot.db" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert place.read_bytes() == b"not a database" * 40
