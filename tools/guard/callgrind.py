"""Instructions, counted by valgrind's callgrind: the same number every time, however busy the machine is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.guard.hot_paths import MARK, HotPath

ROOT = Path(__file__).resolve().parents[2]

_TOTAL = re.compile(r"^(?:totals|summary): (\d+)", re.MULTILINE)
_TAIL_BYTES = 4096
"""The totals stand last in a file of counts."""


class NotCounted(Exception):
    """Valgrind did not run through, or wrote other counts than were asked for."""


def find_valgrind() -> str | None:
    return shutil.which("valgrind")


def count(paths: list[HotPath], arguments: list[str]) -> dict[str, int]:
    """Instructions a unit of each path; `arguments` choose the same paths in the process that runs them."""
    with tempfile.TemporaryDirectory(prefix="wireglot-guard-") as name:
        directory = Path(name)
        _run(directory, arguments)
        return told_counts(paths, [_total(path) for path in _parts(directory)])


def told_counts(paths: list[HotPath], totals: list[int]) -> dict[str, int]:
    """`totals` of all counts in order: what led to a path, then the path, again and again, then the rest."""
    if len(totals) != 2 * len(paths):
        raise NotCounted(f"expected {2 * len(paths)} counts of {len(paths)} paths, got {len(totals)}")
    counted = zip(paths, totals[1::2], strict=True)
    return {path.name: round(total / (path.turns * path.units)) for path, total in counted}


def _run(directory: Path, arguments: list[str]) -> None:
    command = [find_valgrind() or "valgrind", "--tool=callgrind", "-q", f"--dump-before={MARK}"]
    command += [f"--callgrind-out-file={directory}/counts", "--dump-line=no"]
    command += [sys.executable, "-m", "tools.guard.hot_paths", *arguments]
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    # Hashes of texts decide where things stand in a table, and so how many steps it takes to find them.
    environment = {**kept, "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotCounted(f"valgrind ended with status {done.returncode}:\n{done.stderr[-2000:]}")


def _parts(directory: Path) -> list[Path]:
    """The files of counts in order, without the last, which has no number: it ends with the process."""
    return sorted(directory.glob("counts.*"), key=lambda path: int(path.suffix[1:]))


def _total(path: Path) -> int:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        found = _TOTAL.findall(file.read().decode(errors="replace"))
    if not found:
        raise NotCounted(f"{path.name} has no total")
    return int(found[-1])
