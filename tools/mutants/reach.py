"""Which tests run which lines, found by running them once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

from tools.mutants.rooms import SOURCES, Room

Reach = dict[str, dict[int, list[str]]]
"""File below src -> line -> tests; line 0 has all tests that run anything of the file."""


class _Watch:
    """Tells the tracer which test is running."""

    def __init__(self, tracer: coverage.Coverage) -> None:
        self._tracer = tracer

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._tracer.switch_context(item.nodeid)
        yield
        self._tracer.switch_context("")


def measure(room: Room, data: Path) -> int:
    """Run the tests of a room, unchanged; their outcome must be good."""
    tracer = coverage.Coverage(data_file=str(data), source=[str(SOURCES / "wireglot")])
    tracer.start()
    outcome = pytest.main([*_OPTIONS, *room.tests], plugins=[_Watch(tracer)])
    tracer.stop()
    tracer.save()
    return int(outcome)


def reach(room: Room, data: Path) -> Reach:
    store = coverage.CoverageData(basename=str(data))
    store.read()
    found: Reach = {}
    for path in room.files():
        lines = store.contexts_by_lineno(str(path))
        tests = {line: sorted(filter(None, names)) for line, names in lines.items()}
        everything = sorted({name for names in tests.values() for name in names})
        found[path.relative_to(SOURCES).as_posix()] = {**tests, 0: everything}
    return found


_OPTIONS = ("-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", "-p", "no:randomly", "-p", "no:xdist")
