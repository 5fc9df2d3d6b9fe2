"""One run of some tests in a process of its own, and when such runs show that a defect was noticed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

PASSED: Final = "passed"
_START_SECONDS: Final = 10.0
_SLOWER: Final = 4.0
_ORIGINAL_SECONDS: Final = 900.0


class Run(Protocol):
    def wait(self, seconds: float) -> str | None:
        """PASSED, the test that failed, "" for a process that ended by itself; None while it runs."""

    def kill(self) -> None: ...


Start = Callable[[Sequence[str], bool], Run]
"""Starts some tests, with the defect or without it."""


class Judge:
    """Whether tests notice a defect: one that fails has to fail again with it and pass without it, and one
    that takes too long has to take much longer than it does without the defect at the same time. So other
    programs on the machine do not change the answer."""

    def __init__(self, seconds: Mapping[str, float], clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self.unreliable: set[str] = set()
        """They failed without any defect."""

    def noticed_by(self, start: Start, batches: Iterable[Sequence[str]]) -> str | None:
        """The test that notices the defect, or how else it was noticed."""
        for batch in batches:
            left = [test for test in batch if test not in self.unreliable]
            while left:
                outcome = self._with_defect(start, left)
                if outcome == PASSED:
                    break
                if outcome in left:
                    if self._is_confirmed(start, outcome):
                        return outcome
                    left.remove(outcome)
                elif outcome or self._without_defect(start, left) == PASSED:
                    return outcome or "ended early"
                else:
                    break
        return None

    def _with_defect(self, start: Start, tests: Sequence[str]) -> str:
        run = start(tests, True)
        try:
            outcome = run.wait(_START_SECONDS + _SLOWER * sum(self._seconds[test] for test in tests))
            if outcome is None:
                began = self._clock()
                self._without_defect(start, tests)
                outcome = run.wait(_START_SECONDS + _SLOWER * (self._clock() - began))
        finally:
            run.kill()
        return "too slow" if outcome is None else outcome

    def _without_defect(self, start: Start, tests: Sequence[str]) -> str | None:
        run = start(tests, False)
        try:
            return run.wait(_ORIGINAL_SECONDS)
        finally:
            run.kill()

    def _is_confirmed(self, start: Start, test: str) -> bool:
        if self._without_defect(start, [test]) != PASSED:
            self.unreliable.add(test)
            return False
        return self._with_defect(start, [test]) != PASSED


class ProcessRun:
    """A process, and the file into which it writes its outcome."""

    def __init__(self, process: int, outcome: Path) -> None:
        self._process = process
        self._outcome = outcome

    def wait(self, seconds: float) -> str | None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if (outcome := self._read()) is not None:
                return outcome
            if not self._is_alive():
                return self._read() or ""
            time.sleep(0.02)
        return None

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process, signal.SIGKILL)
        self._outcome.unlink(missing_ok=True)

    def _read(self) -> str | None:
        return self._outcome.read_text(encoding="utf-8") if self._outcome.exists() else None

    def _is_alive(self) -> bool:
        try:
            os.kill(self._process, 0)
        except ProcessLookupError:
            return False
        return True


def fork(work: Callable[[], str], outcome: Path, folder: Path) -> int:
    """Do some work quietly in a process of its own, which writes what it returns into a file. A group of
    processes, not a session: those get a share of the processor of their own."""
    child = os.fork()
    if child:
        return child
    os.setpgrp()
    quieten()
    os.chdir(folder)
    try:
        written = outcome.with_suffix(".new")
        written.write_text(work(), encoding="utf-8")
        written.rename(outcome)
    finally:
        os._exit(0)


def quieten() -> None:
    """What is written goes nowhere; children are waited for as usual."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
