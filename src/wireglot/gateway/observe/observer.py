"""Everything that is reported about a request leaves through here, once: log line, metrics, telemetry."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from threading import Lock
from typing import Any, Protocol

from wireglot import __version__
from wireglot.gateway.observe.log import (
    Cleaner,
    JsonLines,
    Level,
    Lines,
    PrettyLines,
    Sink,
    columns_of,
    wants_colour,
)
from wireglot.gateway.observe.metrics import Metrics
from wireglot.gateway.observe.record import Outcome, Record, UsageSource
from wireglot.gateway.observe.redact import secrets_of
from wireglot.gateway.settings import Settings
from wireglot.http.redaction import Redactor

__all__ = ["Observer", "Outcome", "Record", "Telemetry", "UsageSource"]

STDERR = 2


class Telemetry(Protocol):
    """Where traces go; see telemetry.py."""

    def finish(self, record: Record, redactor: Redactor) -> None: ...

    def close(self) -> None: ...


class RowSink(Protocol):
    """Who lists requests as they come and go; see `gateway/trace/rows.py`."""

    def begin(self, record: Record) -> None: ...

    def finish(self, record: Record) -> None: ...


class Observer:
    """A sink that fails is counted and never felt by the request."""

    def __init__(
        self,
        settings: Settings,
        *,
        fd: int = STDERR,
        telemetry: Telemetry | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._fd = fd
        self._clock = clock
        self._wall = wall
        self._telemetry = telemetry
        self._keep_losses: Callable[[Record], None] | None = None
        self._rows: RowSink | None = None
        self._redacting = Lock()
        self._secrets: set[str] = set()
        self._passing: dict[str, tuple[str, ...]] = {}
        """The last tokens of each login: a request that runs may still have the one before."""
        self._sink = Sink(fd)
        self.redactor: Redactor
        self._lines: Lines | None
        self.metrics = Metrics((), self._label, __version__)
        self._in_flight = self.metrics.in_flight.cell(())
        self.adopt(settings)
        self.metrics.read("log_dropped_total", "Log lines dropped because their reader was too slow.",
                          lambda: {(): self._sink.dropped}, kind="counter")  # fmt: skip
        self.metrics.read("log_failed_total", "Log lines that could not be written.",
                          lambda: {(): self._sink.failed}, kind="counter")  # fmt: skip

    def adopt(self, settings: Settings) -> None:
        """Take over a new configuration: its secrets, its models, its kind of log."""
        # Requests that still run know the keys of the configuration they came in under.
        with self._redacting:
            self._secrets |= secrets_of(settings)
            self._settings = settings
            self._redact()
        self.metrics.models.know(_models_of(settings))
        self.metrics.count_in(settings.currency)

    def hide(self, name: str, secret: str) -> None:
        """A secret that was not there when the configuration was read: a token, of the login of that name.
        Called in any thread: to learn a long one takes milliseconds."""
        with self._redacting:
            self._passing[name] = (*self._passing.get(name, ())[-1:], secret)
            self._redact()

    def _redact(self) -> None:
        passing = (token for tokens in self._passing.values() for token in tokens)
        self.redactor = Redactor({*self._secrets, *passing}, self._settings.providers)
        self._cleaner = Cleaner(self.redactor)
        self._lines = self._lines_for(self._settings)

    def attach(self, telemetry: Telemetry) -> None:
        """Trace from now on. A new configuration does not turn it off: exporters live with the process."""
        self._telemetry = telemetry

    def keep_losses_with(self, keep: Callable[[Record], None]) -> None:
        """Have the losses of every request that has any kept for anyone who asks for them later."""
        self._keep_losses = keep

    def list_with(self, rows: RowSink) -> None:
        """Have every request listed, from its beginning."""
        self._rows = rows

    def begin(self, record: Record) -> None:
        """Not for a request that is refused at once, which is only finished."""
        record.begun = True
        self._in_flight.value += 1
        if self._rows is not None:
            try:
                self._rows.begin(record)
            except Exception:  # no list may fail a request (fault 109)
                self.metrics.sink_failures.add(("rows",))

    def finish(self, record: Record) -> None:
        """Called when the last byte of the answer is out, or the request failed; a second call is nothing."""
        if record.finished:
            return
        record.finished = self._clock()
        if record.begun:
            self._in_flight.value -= 1
        try:
            self.metrics.finish(record)
        except Exception:  # no count may fail a request (fault 109)
            self.metrics.sink_failures.add(("metrics",))
        if record.losses and self._keep_losses is not None:
            try:
                self._keep_losses(record)
            except Exception:  # nothing that is reported about a request may fail it (fault 109)
                self.metrics.sink_failures.add(("losses",))
        if self._rows is not None:
            try:
                self._rows.finish(record)
            except Exception:  # no list may fail a request (fault 109)
                self.metrics.sink_failures.add(("rows",))
        if self._lines is not None:
            try:
                self._sink.write(self._lines.request(record))
            except Exception:  # no log line may fail a request (fault 109)
                self.metrics.sink_failures.add(("log",))
        if self._telemetry is not None:
            try:
                self._telemetry.finish(record, self.redactor)
            except Exception:  # no span may fail a request, whatever an SDK raises (fault 109)
                self.metrics.sink_failures.add(("telemetry",))

    def note(self, level: Level, event: str, **fields: Any) -> None:
        """One line about the process: start, reload, drain, a breaker that opened."""
        if self._lines is None:
            return
        try:
            self._sink.write(self._lines.note(level, event, fields))
        except Exception:  # no sink may fail its caller
            self.metrics.sink_failures.add(("log",))

    def close(self, timeout: float = 1.0) -> None:
        """Flush. A process that ends by os._exit must call it; any other does it at exit."""
        self._sink.close(timeout)
        if self._telemetry is not None:
            try:
                self._telemetry.close()
            except Exception:  # an exporter that is down at the end is no reason to fail the end
                self.metrics.sink_failures.add(("telemetry",))

    def _label(self, text: str) -> str:
        return self._cleaner.name(text, 128)

    def _lines_for(self, settings: Settings) -> Lines | None:
        style = settings.server.log
        if style == "off":
            return None
        if style == "pretty" or (style == "auto" and os.isatty(self._fd)):
            return PrettyLines(
                self.redactor,
                self._wall,
                colour=wants_colour(self._fd),
                columns=lambda: columns_of(self._fd),
            )
        return JsonLines(self.redactor, self._wall)


def _models_of(settings: Settings) -> set[str]:
    """The models that the configuration itself names."""
    names = {target.partition("/")[2] for rule in settings.rules for target in rule.targets}
    for provider in settings.providers.values():
        names.update(model.match for model in provider.spec.models if model.is_name)
    return {name for name in names if name and "*" not in name}
