"""One run of the lab as one JSON file: what was demanded, what was measured, and how to repeat it.

    run = Run("reloads", "100 reloads under load, half of them broken or empty", seed=arguments.seed)
    run.counts["requests"] = asked                          raw numbers, whatever they say
    run.figure("failed requests", demanded="0", measured=failed, holds=failed == 0)
    return run.write(arguments.out)                         reported on stdout too; the exit status

`add_options(parser)` adds `--out`. docs/reliability.md is assembled from these files.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

FOLDER: Final = Path("results")
_SHOWN: Final = 30
_WRITTEN_BY_PROOFS: Final = ("docs/results", "docs/reliability.md")
Measured = int | float | str
Verdict = Literal["held", "failed", "unfinished"]
"""unfinished: the run was ended before it was through; its figures hold for what it did."""


class Figure(msgspec.Struct, frozen=True):
    name: str
    demanded: str
    measured: Measured
    holds: bool
    note: str = ""
    """Where it does not hold: why, and what happens instead."""


class Result(msgspec.Struct, frozen=True):
    """What stands in a file."""

    name: str
    demands: str
    verdict: Verdict
    figures: tuple[Figure, ...]
    counts: dict[str, int]
    seed: int | None
    started: str
    """UTC, ISO 8601."""
    seconds: float
    machine: str
    commit: str
    """"+" behind it: the tree had changes that are not in it, other than results of proofs."""
    command: str
    """Run in the root of the source tree, it repeats this."""


class Run:
    """One run, from its making to `write`. `demands` is the line of the table of proofs in words."""

    def __init__(self, name: str, demands: str, *, seed: int | None = None) -> None:
        self.counts: dict[str, int] = {}
        self.unfinished = False
        self._name = name
        self._demands = demands
        self._seed = seed
        self._figures: list[Figure] = []
        self._started = datetime.datetime.now(datetime.UTC)
        self._clock = time.monotonic()

    def tell(self, problems: Sequence[str]) -> None:
        """What was wrong, the first of it."""
        for problem in problems[:_SHOWN]:
            print(problem, file=sys.stderr)

    def figure(self, name: str, *, demanded: str, measured: Measured, holds: bool, note: str = "") -> None:
        self._figures.append(Figure(name, demanded, measured, holds, note))

    def result(self, *, seconds: float | None = None) -> Result:
        """`seconds`: of all the pieces together, where a run was resumed."""
        held = bool(self._figures) and all(figure.holds for figure in self._figures)
        return Result(
            name=self._name,
            demands=self._demands,
            verdict="failed" if not held else "unfinished" if self.unfinished else "held",
            figures=tuple(self._figures),
            counts=self.counts,
            seed=self._seed,
            started=self._started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self._clock if seconds is None else seconds, 1),
            machine=machine(),
            commit=commit(),
            command=command(),
        )

    def write(self, out: str | Path | None = None, *, seconds: float | None = None) -> int:
        """To `out` (a file, or a folder), or below `results`. 0 where everything holds, else 1."""
        result = self.result(seconds=seconds)
        path = _place(out, result.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        unready = path.with_name(f"{path.name}.new")
        unready.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
        unready.replace(path)
        for figure in result.figures:
            mark = "ok  " if figure.holds else "FAIL"
            print(f"{mark} {figure.name}: {figure.measured} (demanded: {figure.demanded})")
        print(f"{result.name}: {result.verdict} in {result.seconds} s, {path}")
        return 0 if result.verdict == "held" else 1


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="PATH", help=f"the result file, or a folder (default: {FOLDER}/)")


def read(path: Path) -> Result:
    return msgspec.json.decode(path.read_bytes(), type=Result)


def machine() -> str:
    """Enough to compare by, nothing that names the machine."""
    memory = ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = f", {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    system = f"{platform.system()} {platform.machine()}"
    return f"{_processor() or system}, {cores} cores{memory}, {system}, Python {platform.python_version()}"


def commit() -> str:
    """Of the source tree that runs; "" where it is none."""
    return commit_of(Path(__file__).parent)


def commit_of(root: Path) -> str:
    """Results of proofs are no change: several proofs run one after the other, and each writes its own."""
    found = git(root, "rev-parse", "--short=12", "HEAD")
    others = (":(top)", *(f":(top,exclude){path}" for path in _WRITTEN_BY_PROOFS))
    changed = found and git(root, "status", "--porcelain", "--untracked-files=no", "--", *others)
    return f"{found}+" if changed else found


def command(arguments: Sequence[str] | None = None) -> str:
    """As it was called, but for where its result went."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    name = spec.name.removesuffix(".__main__") if spec is not None else Path(sys.argv[0]).name
    said: list[str] = []
    rest = iter(sys.argv[1:] if arguments is None else arguments)
    for argument in rest:
        if argument == "--out":
            next(rest, None)
        elif not argument.startswith("--out="):
            said.append(argument)
    return " ".join(["python", "-m", name, *said])


def _place(out: str | Path | None, name: str) -> Path:
    if out is None:
        return FOLDER / f"{name}.json"
    path = Path(out)
    return path / f"{name}.json" if path.is_dir() or path.suffix != ".json" else path


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""
    names = (line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name"))
    return next(names, "")


def git(root: Path, *arguments: str) -> str:
    """What git prints, without the last line feed; "" where it fails or there is none."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
