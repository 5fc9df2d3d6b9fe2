"""Which tests run which lines, and how long they take, found by running them once."""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import coverage
import pytest

from proofs.mutants.loaded import Loaded, file_of
from proofs.mutants.packages import PACKAGES, ROOT
from proofs.mutants.runs import PASSED

_HOUR = 3600.0


class Reach(NamedTuple):
    """What some tests run; those that fail without any defect are not in it."""

    lines: dict[str, dict[int, list[str]]]
    """File below the sources -> line -> tests."""
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


def measured(loaded: Loaded, kept: Path) -> Iterator[Path]:
    """A file with what they run for each file of tests; those that have not changed are not run again."""
    by_file: dict[str, list[str]] = defaultdict(list)
    for test in loaded.tests:
        by_file[file_of(test)].append(test)
    for file, tests in by_file.items():
        digest = hashlib.sha256((ROOT / file).read_bytes()).hexdigest()[:12]
        path = kept / f"{file.removesuffix('.py').replace('/', '-')}-{digest}.json"
        if not path.exists():
            run = loaded.start(tests, kept=path.absolute())
            try:
                outcome = run.wait(_HOUR)
            finally:
                run.kill()
            if outcome != PASSED:
                print(f"  {file}: cannot be measured", flush=True)
                continue
        yield path


def measure(session: pytest.Session, items: Sequence[pytest.Item], kept: Path) -> str:
    """Run some tests and write what they run into a file."""
    import wireglot

    sources = Path(wireglot.__file__).parents[1]
    files = sorted({file for package in PACKAGES for file in package.files()})
    tracer = coverage.Coverage(
        data_file=None, include=[str(sources / file) for file in files], config_file=False
    )
    watch = _Watch(tracer)
    session.config.pluginmanager.register(watch)
    tracer.start()
    for item, following in zip(items, [*items[1:], None], strict=True):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
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
    found = {
        "tests": good,
        "seconds": [watch.seconds[name] for name in good],
        "lines": {file: reached for file, reached in lines.items() if reached},
    }
    kept.write_text(json.dumps(found), encoding="utf-8")
    return PASSED


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
