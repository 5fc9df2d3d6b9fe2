"""Make deliberate defects and count those that the tests of their package notice.

`python -m tools.mutants --count 25 --only wire,http --seed 1`

The counts go to docs/results/mutants.json, from which docs/reference/judges.md is made; not with `--at`.

With `--keep FOLDER` what the tests run is measured once and read from there the next time; take another
folder when lines or tests have moved. `--at FILE:LINE` tries all defects of these lines and no others.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tools.mutants import results
from tools.mutants.changes import Change, changes
from tools.mutants.packages import PACKAGES, ROOT, SOURCES, Package

if TYPE_CHECKING:
    from tools.mutants.reach import Reach

_FIRST_FILES, _OF_A_FILE = 4, 12
_BATCHES_SECONDS = (20.0, 60.0)
"""Tests are tried in growing batches: most defects are noticed by any few that run the line."""
_QUICK_SECONDS = 0.5
_START_SECONDS = 25.0
"""For loading tests and sources, on a busy machine."""
_SLOWER = 4.0


class Mutant(NamedTuple):
    file: str
    change: Change

    def __str__(self) -> str:
        return f"{self.file}:{self.change.line} {' '.join(self.change.what.split())}"


def main() -> int:
    options = _options()
    work = Path(tempfile.mkdtemp(prefix="mutants-"))
    kept = Path(options.keep) if options.keep else work / "reach"
    kept.mkdir(parents=True, exist_ok=True)
    bench = _Bench(work, kept, options.seed)
    noticed = made = 0
    try:
        for package in PACKAGES:
            if options.only and package.name not in options.only.split(","):
                continue
            survivors, tried = bench.package(package, options)
            noticed, made = noticed + tried - len(survivors), made + tried
            print(f"{package.name}: {tried - len(survivors)} of {tried} noticed", flush=True)
            if tried and not options.at:
                results.add(package.name, tried, tried - len(survivors))
            for mutant in survivors:
                print(f"  survived: {mutant}", flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{noticed} of {made} noticed: {100 * noticed / max(made, 1):.1f} %")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=30, help="defects for each package")
    parser.add_argument("--only", default="", help="names of packages, separated by commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--begin", type=int, default=0, help="skip the first N of each sample")
    parser.add_argument("--keep", default="", help="a folder for the measured coverage")
    parser.add_argument("--at", action="append", default=[], help="FILE:LINE below src/wireglot")
    return parser.parse_args()


class _Bench:
    """A copy of the sources in which one defect at a time is made."""

    def __init__(self, work: Path, kept: Path, seed: int) -> None:
        self._sources = work / "src"
        self._verdict = work / "verdict"
        self._kept = kept
        self._seed = seed
        shutil.copytree(SOURCES, self._sources, ignore=shutil.ignore_patterns("__pycache__"))

    def package(self, package: Package, options: argparse.Namespace) -> tuple[list[Mutant], int]:
        from tools.mutants.reach import read

        reach = read([self._measured(tests) for tests in package.tests])
        # One generator for each package: its sample does not depend on the other packages.
        chance = random.Random(f"{self._seed} {package.name}")
        candidates = [
            Mutant(file, change)
            for file in package.files()
            for change in changes((self._sources / file).read_text(encoding="utf-8"))
        ]
        if options.at:
            wanted = {f"wireglot/{place}" for place in options.at}
            sample = [each for each in candidates if f"{each.file}:{each.change.line}" in wanted]
        else:
            sample = chance.sample(candidates, min(options.count, len(candidates)))[options.begin :]
        survivors = []
        for number, mutant in enumerate(sample, start=1):
            tests = self._tests_of(mutant, reach)
            began = time.monotonic()
            by = self._tried(mutant, tests, reach.seconds)
            if by is None:
                survivors.append(mutant)
            print(
                f"  {package.name} {number}/{len(sample)} {mutant}: {by or 'SURVIVED'}"
                f" ({len(tests)} tests, {time.monotonic() - began:.0f} s)",
                flush=True,
            )
        return survivors, len(sample)

    def _tests_of(self, mutant: Mutant, reach: Reach) -> list[str]:
        """The tests that run a line. A table at the top of a file is run by the one that imports it first:
        there, those that run a line with its name, in any file, or stand in a file that names it. Those that
        are likeliest to notice come first."""
        reached = reach.lines
        lines = reached.get(mutant.file, {})
        name, tests = mutant.change.name, set[str]()
        if name:
            named = re.compile(rf"\b{re.escape(name)}\b")
            naming = {file for file in set(map(_file, reach.seconds)) if named.search(_text(file))}
            tests.update(test for test in reach.seconds if _file(test) in naming)
            for file, others in reached.items():
                text = (self._sources / file).read_text(encoding="utf-8")
                for number, line in enumerate(text.splitlines(), start=1) if name in text else ():
                    if named.search(line):
                        tests.update(others.get(number, ()))
        else:
            near = max((line for line in lines if line <= mutant.change.line), default=0)
            tests.update(lines.get(near, ()))
        if not tests:
            tests.update(test for names in lines.values() for test in names)
        # Who runs what few others run knows the file best.
        worth = dict.fromkeys(sorted(tests), 0.0)
        for names in lines.values():
            for test in names:
                if test in worth:
                    worth[test] += 1 / len(names)
        return sorted(worth, key=worth.__getitem__, reverse=True)

    def _measured(self, tests: str) -> Path:
        kept = self._kept / (re.sub(r"\W", "-", tests) + ".json")
        if not kept.exists():
            began = time.monotonic()
            if _forked(partial(self._measure, tests, kept), seconds=3600) != 0:
                sys.exit(f"{tests}: cannot be measured")
            print(f"  measured {tests} in {time.monotonic() - began:.0f} s", flush=True)
        return kept

    def _measure(self, tests: str, kept: Path) -> int:
        from tools.mutants.reach import measure

        self._use_copy()
        return measure(tests, self._sources, kept.absolute())

    def _tried(self, mutant: Mutant, tests: list[str], seconds: dict[str, float]) -> str | None:
        """The test that notices the defect, or None."""
        target = self._sources / mutant.file
        original, times = target.read_text(encoding="utf-8"), target.stat()
        target.write_text(mutant.change.of(original), encoding="utf-8")
        try:
            for batch in _batches(tests, seconds):
                self._verdict.unlink(missing_ok=True)
                bound = _START_SECONDS + _SLOWER * sum(seconds[name] for name in batch)
                outcome = _forked(partial(self._run, batch), bound)
                if outcome != 0:
                    found = self._verdict.read_text(encoding="utf-8") if self._verdict.exists() else ""
                    return found or ("too slow" if outcome < 0 else f"pytest ended with {outcome}")
        finally:
            target.write_text(original, encoding="utf-8")
            os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))
        return None

    def _run(self, tests: list[str]) -> int:
        import pytest

        from tools.mutants.reach import QUIET

        self._use_copy()
        # What was compiled from a defect must not outlive it.
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        files = sorted({_file(name) for name in tests})
        outcome = int(pytest.main([*QUIET, "-x", *files], plugins=[_Only(frozenset(tests), self._verdict)]))
        return 0 if outcome == pytest.ExitCode.NO_TESTS_COLLECTED else outcome

    def _use_copy(self) -> None:
        os.environ["PYTHONPATH"] = str(self._sources)
        sys.path.insert(0, str(self._sources))


class _Only:
    """Runs the named tests of the files; a defect may well change which there are."""

    def __init__(self, names: frozenset[str], verdict: Path) -> None:
        self._names = names
        self._verdict = verdict

    def pytest_collection_modifyitems(self, items: list[object]) -> None:
        items[:] = [item for item in items if getattr(item, "nodeid", "") in self._names]

    def pytest_runtest_logreport(self, report: object) -> None:
        if getattr(report, "failed", False):
            self._verdict.write_text(str(getattr(report, "nodeid", "")), encoding="utf-8")


def _batches(tests: list[str], seconds: dict[str, float]) -> Iterator[list[str]]:
    quick = [name for name in tests if seconds[name] <= _QUICK_SECONDS]
    # Loading a file of tests takes longer than most of them: begin with some of a few files.
    files = list(dict.fromkeys(_file(name) for name in quick))[:_FIRST_FILES]
    first = [name for file in files for name in [each for each in quick if _file(each) == file][:_OF_A_FILE]]
    if first:
        yield first
    taken = set(first)
    left = sorted(
        (name for name in tests if name not in taken), key=lambda name: seconds[name] > _QUICK_SECONDS
    )
    for bound in _BATCHES_SECONDS:
        batch: list[str] = []
        spent = 0.0
        while left and (not batch or spent + seconds[left[0]] <= bound):
            spent += seconds[left[0]]
            batch.append(left.pop(0))
        if batch:
            yield batch


@cache
def _text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def _file(test: str) -> str:
    return test.partition("::")[0]


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
    began = time.monotonic()
    while time.monotonic() - began - _seconds_without_processor(child) < seconds:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


def _seconds_without_processor(process: int) -> float:
    """How long it was ready to run while others ran: a busy machine must not look like a slow defect."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except OSError:  # not Linux
        return 0.0


if __name__ == "__main__":
    # What every test needs and no defect is in, loaded once for all forks.
    import anthropic  # noqa: F401 - loaded once, for all forks
    import google.genai  # noqa: F401 - loaded once, for all forks
    import hypothesis  # noqa: F401 - loaded once, for all forks
    import openai  # noqa: F401 - loaded once, for all forks
    import pytest  # noqa: F401 - loaded once, for all forks

    sys.exit(main())
