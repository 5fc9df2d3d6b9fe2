"""`wireglot translate --jsonl`: lines in, lines out, in order and in constant memory.

What one read brings is translated and written before the next read, which may have to wait. With `--jobs`
worker processes translate batches, and a thread writes their results in the order the batches were read; the
queue between the two is short, so a slow worker makes the reader wait instead of filling memory.
"""

from __future__ import annotations

import argparse
import os
import queue
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

import msgspec

from wireglot.cli.exit_status import FAILED, OK
from wireglot.cli.translate import ports
from wireglot.cli.translate.lines import MAX_LINE, Defaults, overlong, translate_line
from wireglot.cli.translate.ports import Sink, Source, Unusable
from wireglot.cli.translate.progress import Progress, Tally

_CHUNK = 1 << 20
_BATCH = 1 << 18  # bytes of input a worker gets at once, unless one line alone is larger
_WINDOW = 4  # batches in flight for each worker


class Batch(msgspec.Struct):
    """Lines in a row, `first` the number of the first of them; None stands for one that was too long."""

    first: int
    lines: list[bytes | None]


class Outcome(msgspec.Struct):
    """The result lines of a batch, each with its line feed, and how many were ok or had losses."""

    data: bytes
    lines: int
    ok: int
    lossy: int


def run(arguments: argparse.Namespace) -> int:
    defaults = Defaults(
        arguments.source, arguments.target, arguments.model, arguments.provider, arguments.strict
    )
    ports.refuse_same_file(arguments.input, arguments.output)
    with ports.source(arguments.input) as source, ports.sink(arguments.output) as sink:
        lines = Lines(source)
        shown = sys.stderr.isatty() if arguments.progress is None else arguments.progress
        report = _Report(lines, Progress(sys.stderr, _size(source)) if shown else None)
        if arguments.jobs == 1:
            _alone(lines, sink, defaults, report)
        else:
            _together(lines, sink, defaults, report, arguments.jobs)
    report.finish()
    return FAILED if report.tally.failed else OK


class Lines:
    """The lines of a source, cut from what each read brings. `read` counts the bytes."""

    def __init__(self, source: Source, max_line: int = MAX_LINE) -> None:
        self._source = source
        self._max_line = max_line
        self._pending = bytearray()  # the line not yet ended
        self._skipping = False  # the line not yet ended is too long, and forgotten
        self._number = 0
        self.read = 0

    def reads(self) -> Iterator[list[Batch]]:
        """What the source gave, read by read: the caller can write all of it before the next read waits."""
        while piece := self._source.read1(_CHUNK):
            self.read += len(piece)
            yield self._batches(self._cut(piece))
        if self._pending or self._skipping:
            yield self._batches([self._ended(b"")])

    def _cut(self, piece: bytes) -> list[bytes | None]:
        parts = piece.split(b"\n")
        tail = parts.pop()
        lines = [
            self._ended(part) if self._pending or self._skipping else self._checked(part) for part in parts
        ]
        if not self._skipping:
            self._pending += tail
            if len(self._pending) > self._max_line:
                self._pending = bytearray()
                self._skipping = True
        return lines

    def _ended(self, part: bytes) -> bytes | None:
        line = self._checked(bytes(self._pending) + part)
        self._pending = bytearray()
        if self._skipping:
            self._skipping = False
            return None
        return line

    def _checked(self, line: bytes) -> bytes | None:
        return line if len(line) <= self._max_line else None

    def _batches(self, lines: list[bytes | None]) -> list[Batch]:
        batches: list[Batch] = []
        size = _BATCH
        for line in lines:
            self._number += 1
            if line is not None and not line.strip():
                line = b""  # it keeps its number, and has no result
            if size >= _BATCH:
                batches.append(Batch(self._number, []))
                size = 0
            batches[-1].lines.append(line)
            size += len(line or b"") + 1
        return batches


def translate_batch(batch: Batch, defaults: Defaults) -> Outcome:
    results = [
        overlong(number) if line is None else translate_line(line, number, defaults)
        for number, line in enumerate(batch.lines, batch.first)
        if line != b""
    ]
    return Outcome(
        b"".join(result.line + b"\n" for result in results),
        len(results),
        sum(result.ok for result in results),
        sum(result.lossy for result in results),
    )


class _Report:
    """Counts results, and shows the count if someone looks."""

    def __init__(self, lines: Lines, progress: Progress | None) -> None:
        self.tally = Tally()
        self._lines = lines
        self._progress = progress

    def add(self, outcome: Outcome) -> None:
        self.tally.add(outcome.lines, outcome.ok, outcome.lossy)
        if self._progress is not None:
            self._progress.update(self.tally, self._lines.read)

    def finish(self) -> None:
        if self._progress is not None:
            self._progress.finish(self.tally)


def _alone(lines: Lines, sink: Sink, defaults: Defaults, report: _Report) -> None:
    for batches in lines.reads():
        for batch in batches:
            outcome = translate_batch(batch, defaults)
            sink.write(outcome.data)
            report.add(outcome)
        sink.flush()


def _together(lines: Lines, sink: Sink, defaults: Defaults, report: _Report, jobs: int) -> None:
    # Not forked: this process has threads by the time the pool starts its workers.
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _ignore_interrupt)
    writer = _Writer(sink, report, jobs * _WINDOW)
    try:
        for batches in lines.reads():
            for batch in batches:
                writer.put(pool.submit(translate_batch, batch, defaults))
        writer.finish()
    except BrokenProcessPool:
        raise Unusable("--jobs: a worker process died; expected enough memory for each of them") from None
    finally:
        writer.abandon()
        pool.shutdown(wait=True, cancel_futures=True)


class _Writer:
    """A thread that writes results in order while the main thread waits for input."""

    def __init__(self, sink: Sink, report: _Report, window: int) -> None:
        self._sink = sink
        self._report = report
        self._queue: queue.Queue[Future[Outcome] | None] = queue.Queue(window)
        self._fault: BaseException | None = None
        self._abandoned = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def put(self, future: Future[Outcome]) -> None:
        if self._fault is not None:
            raise self._fault
        self._queue.put(future)

    def finish(self) -> None:
        """Wait for the last result to be written."""
        self._queue.put(None)
        self._thread.join()
        if self._fault is not None:
            raise self._fault

    def abandon(self) -> None:
        """Stop, whatever is left; nothing happens after `finish`."""
        if self._thread.is_alive():
            self._abandoned = True
            self._queue.put(None)
            self._thread.join()

    def _work(self) -> None:
        while (future := self._queue.get()) is not None:
            if self._abandoned or self._fault is not None:
                future.cancel()  # keep the queue moving: the main thread may be waiting for a place in it
                continue
            try:
                outcome = future.result()
                self._sink.write(outcome.data)
                self._sink.flush()
                self._report.add(outcome)
            except (OSError, BrokenProcessPool) as fault:
                self._fault = fault


def _ignore_interrupt() -> None:
    """Ctrl-C reaches the whole group of processes; the main one says when to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _size(source: Source) -> int:
    """How many bytes there are, if the source is a file."""
    try:
        found = os.fstat(source.fileno())
    except (OSError, ValueError):
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
