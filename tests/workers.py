"""Tests in several processes: `pytest --workers 3`.

The tests are collected once. Each worker is a fork of the process that did it, so nothing is imported or collected
again. It begins with a part of its own, in order, so that what a folder shares is set up once, and takes over half
of what the busiest one has left when it is done.
"""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import pickle
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.compiling import start_compiling

_METHODS: Final = multiprocessing.get_all_start_methods()
# Windows has none: tests run in one process there, and this is not used.
_FORK: Final = multiprocessing.get_context("fork" if "fork" in _METHODS else None)
_NONE: Final = -1


class Shares:
    """Which worker runs which test: a range of numbers for each, in memory that all of them see."""

    def __init__(self, tests: int, workers: int) -> None:
        self._ranges = _FORK.Array("q", 2 * workers)
        self._stopped = _FORK.Value("b", 0)
        for number in range(workers):
            self._ranges[2 * number] = tests * number // workers
            self._ranges[2 * number + 1] = tests * (number + 1) // workers

    def take(self, worker: int) -> int:
        """The number of the next test, -1 where there is none."""
        if self._stopped.value:
            return _NONE
        ranges = self._ranges
        with ranges.get_lock():
            first: int = ranges[2 * worker]
            end: int = ranges[2 * worker + 1]
            if first == end:
                left = [ranges[at + 1] - ranges[at] for at in range(0, len(ranges), 2)]
                busiest = left.index(max(left))
                end = ranges[2 * busiest + 1]
                first = end - (left[busiest] + 1) // 2
                if first == end:
                    return _NONE
                ranges[2 * busiest + 1] = first
            ranges[2 * worker : 2 * worker + 2] = [first + 1, end]
            return first

    def stop(self) -> None:
        self._stopped.value = 1


class Worker(NamedTuple):
    number: int
    process: Any
    reports: Connection


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=1, help="number of worker processes")


_COMPILING: Final = pytest.StashKey[Any]()


def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    if config.getoption("workers") > 1 and not sys.dont_write_bytecode:
        config.stash[_COMPILING] = start_compiling(config)


def pytest_collection_finish(session: pytest.Session) -> None:
    if (compiling := session.config.stash.get(_COMPILING, None)) is not None:
        compiling.join()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    workers = min(session.config.getoption("workers"), len(session.items))
    if workers < 2 or session.config.option.collectonly or session.config.option.usepdb:
        return None
    if session.testsfailed and not session.config.option.continue_on_collection_errors:
        return None  # which reports them
    assert threading.active_count() == 1, (
        "a thread that was started while tests were collected is not in a fork"
    )
    sys.stdout.flush()
    sys.stderr.flush()
    gc.collect()
    gc.freeze()  # what is never looked at again is never copied
    shares = Shares(len(session.items), workers)
    running = {each.reports: each for each in (_start(session, shares, number) for number in range(workers))}
    at: dict[int, tuple[int, int]] = {}
    try:
        while running:
            for ready in wait(list(running)):
                assert isinstance(ready, Connection)
                worker = running[ready]
                try:
                    kind, value = pickle.loads(ready.recv_bytes())
                except EOFError:
                    del running[ready]
                    ready.close()
                    worker.process.join()
                    if worker.number in at:
                        lost, following = at.pop(worker.number)
                        _report_lost(session, session.items[lost].nodeid, worker.process.exitcode)
                        again = _start(session, shares, worker.number, following)
                        running[again.reports] = again
                    continue
                if kind == "at":
                    at[worker.number] = value
                elif kind == "over":
                    at.pop(worker.number, None)
                else:
                    hook = session.config.hook
                    report = hook.pytest_report_from_serializable(config=session.config, data=value)
                    hook.pytest_runtest_logreport(report=report)
                    if session.shouldfail:
                        shares.stop()
    finally:
        for worker in running.values():
            worker.process.terminate()
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    return True


def _report_lost(session: pytest.Session, nodeid: str, status: int | None) -> None:
    ended = f"the worker process ended with {status}"
    report = pytest.TestReport(nodeid, (nodeid, None, nodeid), {}, "failed", ended, "call")
    session.config.hook.pytest_runtest_logreport(report=report)


def _start(session: pytest.Session, shares: Shares, number: int, first: int = _NONE) -> Worker:
    """`first`: the test that it begins with, where that was taken already."""
    reading, writing = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_work, args=(session, shares, number, writing, first))
    process.start()
    writing.close()
    return Worker(number, process, reading)


def _work(session: pytest.Session, shares: Shares, number: int, reports: Connection, first: int) -> None:
    atexit._clear()  # those are for the process that collected the tests
    config = session.config
    manager = config.pluginmanager
    capture = manager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()  # into files of its own
    manager.unregister(name="terminalreporter")
    manager.register(_Sender(config, reports))
    folders = config._tmp_path_factory  # type: ignore[attr-defined]  # pytest offers no other way
    folders._basetemp = _folder(folders.getbasetemp(), number)
    items = session.items
    at = first if first != _NONE else shares.take(number)
    while at != _NONE:
        following = shares.take(number)
        _send(reports, "at", (at, following))
        after = items[following] if following != _NONE else None
        config.hook.pytest_runtest_protocol(item=items[at], nextitem=after)
        at = following
    _send(reports, "over", None)
    reports.close()
    atexit._run_exitfuncs()  # which multiprocessing leaves out: the servers that tests share would stay


def _folder(shared: Path, number: int) -> Path:
    own = shared / f"worker-{number}"
    own.mkdir(exist_ok=True)
    return own


class _Sender:
    """In the place of the terminal."""

    def __init__(self, config: pytest.Config, reports: Connection) -> None:
        self._config = config
        self._reports = reports

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed and self._config.option.durations is None:
            return  # two of three reports, of which the terminal says nothing
        hook = self._config.hook
        _send(self._reports, "report", hook.pytest_report_to_serializable(config=self._config, report=report))


def _send(reports: Connection, kind: str, value: object) -> None:
    with suppress(BrokenPipeError):  # the tests were stopped
        reports.send_bytes(pickle.dumps((kind, value)))
