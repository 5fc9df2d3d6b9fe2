"""`wireglot translate --jsonl`: lines in, lines out, in order and in constant memory.

The data of one read is translated and written before the next read, which may block. With `--jobs` worker
processes translate batches, and a thread writes their results in the order the batches were read; the queue
between the two is short, so a slow worker makes the reader wait instead of filling memory.
"""

from __future__ import annotations

import argparse
import os
import queue
import signal
import stat
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import PurePath
from typing import Any, TextIO

import msgspec

from wireglot.cli.terminal import FAILED, OK, Unusable
from wireglot.cli.translate_io import (
    ByteSink,
    ByteSource,
    find_dialect,
    open_sink,
    open_source,
    refuse_same_file,
)
from wireglot_core.dialects.fields import Fields, describe
from wireglot_core.dialects.registry import UnknownDialect
from wireglot_core.extras import own_file
from wireglot_core.ir.errors import ClientFault, StrictLoss, Unsupported, UpstreamFault, WireglotError
from wireglot_core.ir.loss import Loss
from wireglot_core.providers.spec import UnknownProvider
from wireglot_core.translate import StreamTranslator, refuse_losses, translate_request, translate_response
from wireglot_core.wire.json import BadJson, decode, encode

# Bytes of one line of a dataset, which is held whole.
MAX_LINE = 64 * 1024 * 1024

_KINDS = ("request", "response", "stream")


class BadLine(WireglotError):
    """The line is not a case. `path` points into the line."""


_TYPES: dict[type[WireglotError], str] = {
    BadLine: "bad_line",
    ClientFault: "client_fault",
    UpstreamFault: "upstream_fault",
    Unsupported: "unsupported",
    StrictLoss: "strict_loss",
}
"""Stable names of errors of a case; `internal_error` is a bug of ours."""


class Defaults(msgspec.Struct, frozen=True):
    """Options of the command line, for lines that do not set them."""

    source: str | None = None
    target: str | None = None
    model: str | None = None
    provider: str | None = None
    strict: bool = False


class LineResult(msgspec.Struct, frozen=True):
    line: bytes
    ok: bool
    lossy: bool = False


def translate_line(line: bytes, number: int, defaults: Defaults) -> LineResult:
    """The result of one case. `number` identifies a line without an id."""
    identity: Any = None
    try:
        case = _case(line, number)
        identity = case.value.get("id")
        return _translated(identity, case, defaults)
    except WireglotError as fault:
        return _failed(identity, _TYPES.get(type(fault), "internal_error"), fault.path, fault.message)
    except Exception as bug:  # a bug of ours must not stop the rest of a data set
        return _failed(identity, "internal_error", "$", _whereabouts(bug))


def overlong(number: int) -> LineResult:
    return _failed(None, "bad_line", "$", f"line {number}: expected at most {MAX_LINE >> 20} MiB on a line")


def _case(line: bytes, number: int) -> Fields:
    try:
        value = decode(line)
    except BadJson as bad:
        raise BadLine(f"line {number}: expected a JSON object: {bad}") from None
    if type(value) is not dict:
        raise BadLine(f"line {number}: expected a JSON object, got {describe(value)}")
    return Fields(value, "$", BadLine)


def _translated(identity: Any, case: Fields, defaults: Defaults) -> LineResult:
    kind = case.value.get("kind")
    if kind not in _KINDS:
        raise case.wrong("kind", 'one of "request", "response", "stream"')
    names: dict[str, Any] = {
        "source": _dialect(case, "from", defaults.source),
        "target": _dialect(case, "to", defaults.target),
        "model": case.text_or_none("model") or defaults.model,
        "provider": case.text_or_none("provider") or defaults.provider,
    }
    losses: tuple[Loss, ...] | list[Loss]
    answer: dict[str, Any] = {"id": identity, "ok": True}
    try:
        if kind == "stream":
            losses = _stream(case, names, answer)
            if defaults.strict:
                refuse_losses(losses)
        elif kind == "request":
            body = case.object("body").value
            rendered = translate_request(body, strict=defaults.strict, **names)
            answer["body"], losses = rendered.value, rendered.losses
        else:
            rendered = translate_response(
                _answer(case),
                request=case.dict_or_none("request"),
                status=case.integer("status") or 0,
                strict=defaults.strict,
                **names,
            )
            answer["body"], losses = rendered.value, rendered.losses
    except UnknownProvider as unknown:
        raise BadLine(str(unknown), "$.provider") from None
    answer["losses"] = [loss.as_dict() for loss in losses]
    return LineResult(encode(answer), True, bool(losses))


def _stream(case: Fields, names: dict[str, Any], answer: dict[str, Any]) -> list[Loss]:
    data = case.text("sse").encode("utf-8", "replace")
    pieces = _cut(data, case)
    translator = StreamTranslator(request=case.dict_or_none("request"), **names)
    out = [translator.feed(piece) for piece in pieces]
    out.append(translator.close())
    answer["sse"] = b"".join(out).decode("utf-8", "replace")
    if case.value.get("splits") is not None:
        answer["fed_chunks"] = len(pieces)
    return translator.losses


def _cut(data: bytes, case: Fields) -> list[bytes]:
    """The bytes cut at the offsets of `splits`, also in the middle of a character."""
    pieces: list[bytes] = []
    start = 0
    for index, offset in enumerate(case.array_or_empty("splits")):
        if type(offset) is not int or not start <= offset <= len(data):
            expected = f"expected byte offsets in ascending order, here from {start} to {len(data)}"
            raise BadLine(
                f"{expected}, got {offset if type(offset) is int else describe(offset)}", f"$.splits[{index}]"
            )
        pieces.append(data[start:offset])
        start = offset
    pieces.append(data[start:])
    return pieces


def _dialect(case: Fields, key: str, default: str | None) -> str:
    name = case.text_or_none(key) or default
    if name is None:
        raise case.wrong(key, "the name of a dialect")
    try:
        find_dialect(name)
    except UnknownDialect as unknown:
        raise BadLine(str(unknown), f"$.{key}") from None
    return name


def _answer(case: Fields) -> dict[str, Any] | bytes:
    """The body of a response. Some providers wrap an error in an array, which the translation knows about."""
    body = case.value.get("body")
    if type(body) is dict:
        return body
    if type(body) is not list:
        raise case.wrong("body", "an object")
    return encode(body)


def _failed(identity: Any, type_: str, path: str, message: str) -> LineResult:
    error = {"type": type_, "path": path, "message": message}
    return LineResult(encode({"id": identity, "ok": False, "error": error}), False)


def _whereabouts(bug: Exception) -> str:
    """The exception and its place, without its text, which could quote the document."""
    last = traceback.extract_tb(bug.__traceback__)[-1]
    module = (own_file(last.filename) or PurePath(last.filename).name).removesuffix(".py").replace("/", ".")
    return f"unexpected {type(bug).__name__} in {module}, line {last.lineno}; please report it"


_INTERVAL = 0.25


class Tally:
    """Counts of results so far."""

    __slots__ = ("failed", "lines", "lossy", "ok")

    def __init__(self) -> None:
        self.lines = self.ok = self.failed = self.lossy = 0

    def add(self, lines: int, ok: int, lossy: int) -> None:
        self.lines += lines
        self.ok += ok
        self.failed += lines - ok
        self.lossy += lossy


class Progress:
    """Redraws one line a few times a second; `total` is the size of the input in bytes, 0 if unknown."""

    def __init__(self, stream: TextIO, total: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._total = total
        self._clock = clock
        self._began = clock()
        self._drawn = self._began - _INTERVAL
        self._width = 0

    def update(self, tally: Tally, read: int) -> None:
        now = self._clock()
        if now - self._drawn >= _INTERVAL:
            self._drawn = now
            self._draw(self._text(tally, now, read))

    def finish(self, tally: Tally) -> None:
        self._draw(self._text(tally, self._clock(), 0))
        self._stream.write("\n")
        self._stream.flush()

    def _text(self, tally: Tally, now: float, read: int) -> str:
        rate = tally.lines / max(now - self._began, 0.001)
        share = f"{min(read / self._total, 1):4.0%}  " if self._total and read else ""
        return (
            f"{share}{tally.lines:,} lines  {rate:,.0f}/s  {tally.ok:,} ok  "
            f"{tally.failed:,} failed  {tally.lossy:,} with losses"
        )

    def _draw(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)


_CHUNK = 1 << 20
_BATCH = 1 << 18  # bytes of input a worker gets at once, unless one line alone is larger
_WINDOW = 4  # batches in flight for each worker


class Batch(msgspec.Struct):
    """Consecutive lines, `first` is the number of the first one; None represents one that was too long."""

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
    refuse_same_file(arguments.input, arguments.output)
    with open_source(arguments.input) as source, open_sink(arguments.output) as sink:
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
    """The lines of a source, split from the data of each read. `read` counts the bytes."""

    def __init__(self, source: ByteSource, max_line: int = MAX_LINE) -> None:
        self._source = source
        self._max_line = max_line
        self._pending = bytearray()  # the incomplete last line
        self._skipping = False  # the incomplete last line is too long, and dropped
        self._number = 0
        self.read = 0

    def reads(self) -> Iterator[list[Batch]]:
        """The data of each read: the caller can write all results before the next read blocks."""
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
    """Counts results, and shows the count in a terminal."""

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


def _alone(lines: Lines, sink: ByteSink, defaults: Defaults, report: _Report) -> None:
    for batches in lines.reads():
        for batch in batches:
            outcome = translate_batch(batch, defaults)
            sink.write(outcome.data)
            report.add(outcome)
        sink.flush()


def _together(lines: Lines, sink: ByteSink, defaults: Defaults, report: _Report, jobs: int) -> None:
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

    def __init__(self, sink: ByteSink, report: _Report, window: int) -> None:
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
        """Stop without the remaining results; no effect after `finish`."""
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


def _size(source: ByteSource) -> int:
    """How many bytes there are, if the source is a file."""
    try:
        found = os.fstat(source.fileno())
    except (OSError, ValueError):
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
