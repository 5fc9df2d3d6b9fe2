"""Which tests run which lines, and how long they take, found by running them once."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import coverage
import pytest

from tools.mutants.packages import LEFT_OUT, PACKAGES

QUIET = ("-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", "-p", "no:xdist")


class Reach(NamedTuple):
    """What some tests run; those that fail without any defect are not in it."""

    lines: dict[str, dict[int, list[str]]]
    """File below the sources -> line -> tests. A line that only its import runs has none."""
    seconds: dict[str, float]


class _Watch:
    """Sets the running test as the tracer's context, and keeps its outcome."""

    def __init__(self, tracer: coverage.Coverage) -> None:
        self._tracer = tracer
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._tracer.switch_context(item.nodeid)
        began = time.monotonic()
        yield
        self.seconds[item.nodeid] = time.monotonic() - began
        self._tracer.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self.failed.add(report.nodeid)


def measure(tests: str, sources: Path, kept: Path) -> int:
    """Run some tests against unchanged sources and write what they run into a file."""
    files = sorted({file for package in PACKAGES for file in package.files()})
    tracer = coverage.Coverage(
        data_file=None, include=[str(sources / file) for file in files], config_file=False
    )
    watch = _Watch(tracer)
    left_out = [f"--deselect={name}" for name in LEFT_OUT]
    tracer.start()
    pytest.main([*QUIET, *left_out, tests], plugins=[watch])
    tracer.stop()
    data = tracer.get_data()
    good = [name for name in watch.seconds if name not in watch.failed]
    numbers = {name: number for number, name in enumerate(good)}
    lines = {
        file: {
            line: sorted(numbers[name] for name in names if name in numbers)
            for line, names in data.contexts_by_lineno(str(sources / file)).items()
        }
        for file in files
    }
    found = {"tests": good, "seconds": [watch.seconds[name] for name in good], "lines": lines}
    kept.write_text(json.dumps(found), encoding="utf-8")
    return 0


def read(kept: Sequence[Path]) -> Reach:
    lines: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    seconds: dict[str, float] = {}
    for path in kept:
        found = json.loads(path.read_text(encoding="utf-8"))
        tests = found["tests"]
        seconds.update(zip(tests, found["seconds"], strict=True))
        for file, reached in found["lines"].items():
            for line, numbers in reached.items():
                lines[file][int(line)].extend(tests[number] for number in numbers)
    return Reach({file: dict(reached) for file, reached in lines.items()}, seconds)
