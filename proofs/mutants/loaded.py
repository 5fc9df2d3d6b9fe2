"""A process that has loaded the tests of a package and what they import: runs are forked from it."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from itertools import count
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import pytest

from proofs.mutants.changes import Change
from proofs.mutants.packages import LEFT_OUT, ROOT
from proofs.mutants.runs import PASSED, ProcessRun, fork, quieten
from proofs.mutants.swap import swap

QUIET = ("-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", "-p", "no:xdist", "--capture=sys")
UNCHANGED = "nothing to change is loaded"


class Defect(NamedTuple):
    file: Path
    change: Change
    sources: Path
    """Where processes that a test starts find the file with the defect in it."""


class _Order(NamedTuple):
    tests: tuple[str, ...]
    outcome: Path
    defect: Defect | None
    kept: Path | None = None
    """Where to write the lines that the tests run."""


class Loaded:
    def __init__(self, tests: Sequence[str], sources: Path, work: Path) -> None:
        self._work = work
        self._numbers = count()
        self._pipe, other = Pipe()
        self._process = os.fork()
        if not self._process:
            self._pipe.close()
            _serve(other, tests, sources)
        other.close()
        self.tests: list[str] = self._pipe.recv()

    def start(
        self, tests: Sequence[str], defect: Defect | None = None, kept: Path | None = None
    ) -> ProcessRun:
        outcome = self._work / f"outcome-{next(self._numbers)}"
        self._pipe.send(_Order(tuple(tests), outcome, defect, kept))
        return ProcessRun(self._pipe.recv(), outcome)

    def close(self) -> None:
        self._pipe.close()
        os.kill(self._process, signal.SIGKILL)


def use(sources: Path) -> None:
    """Import these sources, here and in processes that are started."""
    os.environ["PYTHONPATH"] = str(sources)
    sys.path.insert(0, str(sources))


def run_fresh(tests: Sequence[str], sources: Path) -> str:
    """Load some tests with these sources and run them."""
    use(sources)
    # What was compiled from a defect must not outlive it.
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    only = _Only(frozenset(tests))
    outcome = pytest.main([*QUIET, "-x", *sorted({file_of(name) for name in tests})], plugins=[only])
    if only.failed:
        return only.failed
    nothing = pytest.ExitCode.NO_TESTS_COLLECTED
    return PASSED if outcome in (pytest.ExitCode.OK, nothing) else "cannot be loaded"


def file_of(test: str) -> str:
    return test.partition("::")[0]


def _serve(pipe: Connection, tests: Sequence[str], sources: Path) -> None:
    quieten()
    os.chdir(ROOT)
    try:
        use(sources)
        left_out = [f"--deselect={name}" for name in LEFT_OUT]
        pytest.main([*QUIET, *left_out, *tests], plugins=[_Server(pipe)])
    finally:
        os._exit(0)


class _Server:
    """Runs tests as ordered instead of all of them."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        gc.collect()
        self._pipe.send([item.nodeid for item in session.items])
        while True:
            try:
                order: _Order = self._pipe.recv()
            except EOFError:
                return True
            self._pipe.send(fork(partial(_obey, session, order), order.outcome, ROOT))


def _obey(session: pytest.Session, order: _Order) -> str:
    if order.defect is not None:
        file, change, sources = order.defect
        if not swap(file.read_text(encoding="utf-8"), change, str(file)):
            return UNCHANGED
        os.environ["PYTHONPATH"] = str(sources)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    wanted = frozenset(order.tests)
    items = [item for item in session.items if item.nodeid in wanted]
    if order.kept is not None:
        from proofs.mutants.reach import measure

        return measure(session, items, order.kept)
    return run_items(session, items) or PASSED


def run_items(session: pytest.Session, items: Sequence[pytest.Item]) -> str:
    """The first that fails."""
    reports = _Only(frozenset())
    session.config.pluginmanager.register(reports)
    for item, following in zip(items, [*items[1:], None], strict=True):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if reports.failed:
            if following is not None:
                session._setupstate.teardown_exact(None)
            break
    return reports.failed


class _Only:
    """Runs the named tests of the files; a defect may well change which there are."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self.failed = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._names]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid
