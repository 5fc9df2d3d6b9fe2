"""The mock upstream and the load generator: those of this package, or their twins in C where there are any.

The twins take the same arguments and print the same figures. They are lighter, so requests a second come out
higher; processor time is the server's alone and differs little.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
TWINS = ROOT.parent / "shared" / "perf" / "tools"


class Toolbox(NamedTuple):
    title: str
    upstream: list[str]
    load: list[str]
    exact: bool
    """Whether the load generator tells processor time to the nanosecond, over just what it counted."""


def own() -> Toolbox:
    module = [sys.executable, "-m"]
    return Toolbox(
        "proofs/bench (Python)", [*module, "proofs.bench.upstream"], [*module, "proofs.bench.load"], True
    )


def twins(sources: Path, directory: Path) -> Toolbox | None:
    """The tools in C, built in `directory`; None without sources or a compiler, or if they do not build."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    for name in ("mock", "load"):
        source = sources / f"{name}.c"
        command = [compiler, "-O2", "-w", "-o", str(directory / name), str(source), "-lpthread"]
        if not source.is_file() or subprocess.run(command, capture_output=True, check=False).returncode:
            return None
    return Toolbox("mock.c and load.c", [str(directory / "mock")], [str(directory / "load")], exact=False)


def choose(which: str, directory: Path) -> Toolbox:
    """`auto`: in C where possible; `own`; `c`."""
    found = twins(TWINS, directory) if which != "own" else None
    if which == "c" and found is None:
        raise SystemExit(f"bench: no C tools: they need a compiler, mock.c and load.c in {TWINS.name}")
    return found or own()
