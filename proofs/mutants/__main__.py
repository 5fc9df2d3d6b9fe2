"""Make deliberate defects and count those that the tests of their package notice.

`python -m proofs.mutants --count 25 --only wire,http --seed 1`

The counts go to docs/results/mutants.json, from which docs/reference/judges.md is made; not with `--at`.

With `--keep FOLDER` what the tests run is measured once and read from there the next time, except for files
of tests that have changed; take another folder when lines of the sources have moved. `--count 0` only
measures. `--at FILE:LINE` tries all defects of these lines and no others.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from proofs.mutants import results
from proofs.mutants.changes import Change, changes
from proofs.mutants.loaded import UNCHANGED, Defect, Loaded, file_of, run_fresh
from proofs.mutants.packages import PACKAGES, ROOT, SOURCES, Package
from proofs.mutants.reach import Reach, measured, read
from proofs.mutants.runs import Judge, ProcessRun, Run, fork
from proofs.mutants.swap import is_in_function

_FIRST_FILES, _OF_A_FILE = 4, 12
_BATCHES_SECONDS = (20.0, 60.0)
"""Tests are tried in growing batches: most defects are noticed by any few that run the line."""
_QUICK_SECONDS = 0.5


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
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(work)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    bench = _Bench(work, kept, options.seed)
    noticed = made = 0
    try:
        for package in _packages(options.only):
            survivors, tried = bench.package(package, options)
            noticed, made = noticed + tried - len(survivors), made + tried
            print(f"{package.name}: {tried - len(survivors)} of {tried} noticed", flush=True)
            if tried and not options.at:
                results.add(package.name, options.seed, tried, tried - len(survivors))
            for mutant in survivors:
                print(f"  survived: {mutant}", flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{noticed} of {made} noticed: {100 * noticed / max(made, 1):.1f} %")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m proofs.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=30, help="defects for each package")
    parser.add_argument("--only", default="", help="names of packages, separated by commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--begin", type=int, default=0, help="skip the first N of each sample")
    parser.add_argument("--keep", default="", help="a folder for the measured coverage")
    parser.add_argument("--at", action="append", default=[], help="FILE:LINE below src")
    return parser.parse_args()


def _packages(names: str) -> Sequence[Package]:
    by_name = {package.name: package for package in PACKAGES}
    return [by_name[name] for name in names.split(",")] if names else PACKAGES


class _Bench:
    """Two copies of the sources: one stays, in the other one defect at a time is made."""

    def __init__(self, work: Path, kept: Path, seed: int) -> None:
        self._work = work
        self._sources = work / "src"
        self._changed = work / "changed"
        self._kept = kept
        self._seed = seed
        self._number = 0
        # With their times: what was compiled from the sources is good for the copies.
        shutil.copytree(SOURCES, self._sources)
        compileall.compile_dir(self._sources, quiet=2)
        shutil.copytree(self._sources, self._changed)

    def package(self, package: Package, options: argparse.Namespace) -> tuple[list[Mutant], int]:
        sample = self._sample(package, options)
        if options.at and not sample:
            return [], 0
        loaded = Loaded(package.tests, self._sources, self._work)
        try:
            began = time.monotonic()
            reach = read(list(measured(loaded, self._kept)))
            print(f"  {package.name}: tests measured in {time.monotonic() - began:.0f} s", flush=True)
            judge = Judge(reach.seconds)
            survivors = []
            for number, mutant in enumerate(sample, start=1):
                tests = self._tests_of(mutant, reach)
                began = time.monotonic()
                by = self._noticed_by(mutant, list(_batches(tests, reach.seconds)), loaded, judge)
                if by is None:
                    survivors.append(mutant)
                print(
                    f"  {package.name} {number}/{len(sample)} {mutant}: {by or 'SURVIVED'}"
                    f" ({len(tests)} tests, {time.monotonic() - began:.0f} s)",
                    flush=True,
                )
        finally:
            loaded.close()
        if judge.unreliable:
            print(f"  {package.name}: failed without a defect: {', '.join(sorted(judge.unreliable))}")
        return survivors, len(sample)

    def _sample(self, package: Package, options: argparse.Namespace) -> list[Mutant]:
        candidates = [
            Mutant(file, change)
            for file in package.files()
            for change in changes((self._sources / file).read_text(encoding="utf-8"))
        ]
        if options.at:
            return [each for each in candidates if f"{each.file}:{each.change.line}" in options.at]
        # One generator for each package: its sample does not depend on the other packages.
        chance = random.Random(f"{self._seed} {package.name}")
        return chance.sample(candidates, min(options.count, len(candidates)))[options.begin :]

    def _tests_of(self, mutant: Mutant, reach: Reach) -> list[str]:
        """The tests that run a line. A table at the top of a file is run by the one that imports it first:
        there, those that run a line with its name, or that of a table made with it, in any file, or stand in
        a file that names it. Those that are likeliest to notice come first."""
        reached = reach.lines
        lines = reached.get(mutant.file, {})
        text, tests = (self._sources / mutant.file).read_text(encoding="utf-8"), set[str]()
        if mutant.change.name:
            named = re.compile(rf"\b(?:{'|'.join(map(re.escape, _made_with(mutant.change.name, text)))})\b")
            naming = {file for file in set(map(file_of, reach.seconds)) if named.search(_text(file))}
            tests.update(test for test in reach.seconds if file_of(test) in naming)
            for file, others in reached.items():
                other = (self._sources / file).read_text(encoding="utf-8")
                for number, line in enumerate(other.splitlines(), start=1) if named.search(other) else ():
                    if named.search(line):
                        tests.update(others.get(number, ()))
        else:
            begin = _begin_of_statement(text, mutant.change.line)
            near = max((line for line in lines if begin <= line <= mutant.change.line), default=0)
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

    def _noticed_by(
        self, mutant: Mutant, batches: Sequence[Sequence[str]], loaded: Loaded, judge: Judge
    ) -> str | None:
        original = self._sources / mutant.file
        text, times = original.read_text(encoding="utf-8"), original.stat()
        target = self._changed / mutant.file
        target.write_text(mutant.change.of(text), encoding="utf-8")
        # No two files with a defect have one time: what was compiled is found by it.
        self._number += 1
        os.utime(target, (times.st_atime, times.st_mtime + self._number))
        defect = Defect(original, mutant.change, self._changed)

        def swapped(tests: Sequence[str], with_defect: bool) -> Run:
            return loaded.start(tests, defect if with_defect else None)

        def fresh(tests: Sequence[str], with_defect: bool) -> Run:
            return self._fresh(tests) if with_defect else loaded.start(tests)

        try:
            if is_in_function(text, mutant.change):
                by = judge.noticed_by(swapped, batches)
                if by not in (None, UNCHANGED):
                    return by
            # What ran when the tests were loaded had no defect.
            return judge.noticed_by(fresh, batches)
        finally:
            target.write_text(text, encoding="utf-8")
            os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _fresh(self, tests: Sequence[str]) -> Run:
        outcome = self._work / f"fresh-{self._number}"
        return ProcessRun(fork(partial(run_fresh, tests, self._changed), outcome, ROOT), outcome)


def _batches(tests: list[str], seconds: dict[str, float]) -> Iterator[list[str]]:
    quick = [name for name in tests if seconds[name] <= _QUICK_SECONDS]
    # Loading a file of tests takes longer than most of them: begin with some of a few files.
    files = list(dict.fromkeys(file_of(name) for name in quick))[:_FIRST_FILES]
    first = [
        name for file in files for name in [each for each in quick if file_of(each) == file][:_OF_A_FILE]
    ]
    if first:
        yield first
    taken = set(first)
    # Of slow ones the quickest first, so that as many as possible are run.
    left = sorted(
        (name for name in tests if name not in taken),
        key=lambda name: seconds[name] if seconds[name] > _QUICK_SECONDS else 0.0,
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


def _made_with(name: str, text: str) -> list[str]:
    """The name of a table, and of the tables of the same file that are made with it."""
    names = [name]
    for statement in ast.parse(text).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=made)]) | ast.AnnAssign(target=ast.Name(id=made)):
                if made not in names and any(
                    isinstance(node, ast.Name) and node.id in names for node in ast.walk(statement)
                ):
                    names.append(made)
            case _:
                pass
    return names


def _begin_of_statement(text: str, line: int) -> int:
    return max(
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    )


if __name__ == "__main__":
    # What every test needs and no defect is in, loaded once for all forks.
    import anthropic  # noqa: F401 - loaded once, for all forks
    import google.genai  # noqa: F401 - loaded once, for all forks
    import hypothesis  # noqa: F401 - loaded once, for all forks
    import openai  # noqa: F401 - loaded once, for all forks

    sys.exit(main())
