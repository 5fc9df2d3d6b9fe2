"""Instructions, counted by valgrind's callgrind: the same number on a busy machine as on an idle one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from proofs.guard.hot_paths import MARK, HotPath

ROOT = Path(__file__).resolve().parents[2]

_TOTAL = re.compile(r"^(?:totals|summary): (\d+)", re.MULTILINE)
_TAIL_BYTES = 4096
"""The totals stand last in a file of counts."""
_COMMAND_SECONDS = 60


class NotCounted(Exception):
    """Valgrind did not run through, or wrote other counts than were asked for."""


def find_valgrind() -> str | None:
    return shutil.which("valgrind")


def environment() -> dict[str, str]:
    """Nothing of the caller's but what is needed to run."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    # Hashes of texts decide where things stand in a table, and so how many steps it takes to find them. Sets
    # of objects go by their addresses, which are the same in every run without randomisation (setarch -R).
    return {**kept, "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "WIREGLOT_DEBUGGABLE": "1"}


def under_callgrind(directory: Path, program: list[str], *options: str) -> list[str]:
    """The command that runs it and writes its counts into `directory`."""
    setarch = [path, "-R"] if (path := shutil.which("setarch")) else []
    fixed = [f"{name}={value}" for name, value in environment().items()]
    valgrind = [find_valgrind() or "valgrind", "--tool=callgrind", "-q", "--dump-line=no", *options]
    return ["env", "-i", *fixed, *setarch, *valgrind, f"--callgrind-out-file={directory}/counts", *program]


def command_to(pid: int, command: str) -> None:
    """A command of callgrind to a process that runs under it."""
    sent = [shutil.which("vgdb") or "vgdb", f"--pid={pid}", *command.split()]
    try:
        done = subprocess.run(
            sent, env=environment(), capture_output=True, text=True, timeout=_COMMAND_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise NotCounted(f"vgdb {command}: {fault}") from None
    if done.returncode:
        raise NotCounted(f"vgdb {command} ended with status {done.returncode}: {done.stderr[-500:]}")


def count(paths: list[HotPath], arguments: list[str]) -> dict[str, int]:
    """Instructions a unit of each path; `arguments` choose the same paths in the process that runs them."""
    with tempfile.TemporaryDirectory(prefix="wireglot-guard-") as name:
        directory = Path(name)
        program = [sys.executable, "-m", "proofs.guard.hot_paths", *arguments]
        command = under_callgrind(directory, program, f"--dump-before={MARK}")
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotCounted(f"valgrind ended with status {done.returncode}:\n{done.stderr[-2000:]}")
        return format_counts(paths, [total(path) for path in parts(directory)])


def format_counts(paths: list[HotPath], totals: list[int]) -> dict[str, int]:
    """`totals` of all counts in order: what led to a path, then the path, again and again, then the rest."""
    if len(totals) != 2 * len(paths):
        raise NotCounted(f"expected {2 * len(paths)} counts of {len(paths)} paths, got {len(totals)}")
    counted = zip(paths, totals[1::2], strict=True)
    return {path.name: round(total / (path.turns * path.units)) for path, total in counted}


def parts(directory: Path) -> list[Path]:
    """The files of counts in order, without the last, which has no number: it ends with the process."""
    return sorted(directory.glob("counts.*"), key=lambda path: int(path.suffix[1:]))


def total(path: Path) -> int:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        found = _TOTAL.findall(file.read().decode(errors="replace"))
    if not found:
        raise NotCounted(f"{path.name} has no total")
    return int(found[-1])
