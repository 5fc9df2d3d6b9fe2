"""Make deliberate defects and count those that the tests of their room notice.

`python -m tools.mutants --count 25 --only vault,ledger --seed 1`
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tools.mutants.changes import Change, changes
from tools.mutants.rooms import ROOMS, ROOT, SOURCES, Room

_FEW = 60
"""Tests that are tried first: most defects are noticed by any of those that run the line."""
_MOST = 600
_FEW_SECONDS, _MOST_SECONDS = 120, 300


class Mutant(NamedTuple):
    file: str
    change: Change


class Result(NamedTuple):
    mutant: Mutant
    outcome: str


def main() -> int:
    options = _options()
    chosen = [room for room in ROOMS if not options.only or room.name in options.only.split(",")]
    work = Path(tempfile.mkdtemp(prefix="mutants-"))
    killed = made = 0
    try:
        for room in chosen:
            results = _room(room, options.count, options.seed, work)
            good = sum(result.outcome != "survived" for result in results)
            killed, made = killed + good, made + len(results)
            print(f"{room.name}: {good} of {len(results)} noticed", flush=True)
            for result in results:
                if result.outcome == "survived":
                    print(f"  {result.mutant.file}:{result.mutant.change.line} {result.mutant.change.what}")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{killed} of {made} noticed: {100 * killed / max(made, 1):.1f} %")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=30, help="defects for each room")
    parser.add_argument("--only", default="", help="names of rooms, by commas")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _room(room: Room, count: int, seed: int, work: Path) -> list[Result]:
    data = work / f"{room.name}.coverage"
    if _forked(partial(_measure, room, data), seconds=3600) != 0:
        sys.exit(f"{room.name}: its tests fail without any defect")
    from tools.mutants.reach import reach

    reached = reach(room, data)
    overlay = work / room.name
    shutil.copytree(SOURCES, overlay, ignore=shutil.ignore_patterns("__pycache__"))
    chance = random.Random(seed)
    candidates = [
        Mutant(file, change)
        for file in reached
        if reached[file][0]
        for change in changes((SOURCES / file).read_text(encoding="utf-8"))
    ]
    sample = chance.sample(candidates, min(count, len(candidates)))
    return [_tried(mutant, reached[mutant.file], overlay, chance) for mutant in sample]


def _measure(room: Room, data: Path) -> int:
    from tools.mutants.reach import measure

    return measure(room, data)


def _tried(mutant: Mutant, lines: dict[int, list[str]], overlay: Path, chance: random.Random) -> Result:
    # A table at the top of a file is run by its import; what uses it is elsewhere in the file.
    tests = lines.get(mutant.change.line) or lines[0]
    tests = chance.sample(tests, min(len(tests), _MOST))
    target = overlay / mutant.file
    original = target.read_text(encoding="utf-8")
    target.write_text(mutant.change.of(original), encoding="utf-8")
    try:
        for batch, seconds in ((tests[:_FEW], _FEW_SECONDS), (tests[_FEW:], _MOST_SECONDS)):
            if batch and _forked(partial(_run, batch, overlay), seconds) != 0:
                return Result(mutant, "noticed")
    finally:
        target.write_text(original, encoding="utf-8")
    return Result(mutant, "survived")


def _run(tests: list[str], overlay: Path) -> int:
    import pytest

    os.environ["PYTHONPATH"] = str(overlay)
    sys.path.insert(0, str(overlay))
    sys.dont_write_bytecode = True
    options = ["-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", "-p", "no:xdist"]
    return int(pytest.main([*options, *tests]))


def _forked(work: Callable[[], int], seconds: float) -> int:
    """Run in a process of its own, quietly; what takes too long was noticed too."""
    child = os.fork()
    if child == 0:
        os.setsid()
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        os.chdir(ROOT)
        outcome = 70
        try:
            outcome = work()
        finally:
            os._exit(outcome)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


if __name__ == "__main__":
    # What every test needs and no defect is in, loaded once for all forks.
    import anthropic  # noqa: F401
    import google.genai  # noqa: F401
    import hypothesis  # noqa: F401
    import openai  # noqa: F401
    import pytest  # noqa: F401

    sys.exit(main())
