"""The only way out for reports about a request: log line, metrics, telemetry, each once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from http import HTTPStatus
from threading import Lock
from typing import Any, Protocol

from wireglot import __version__
from wireglot.gateway.observe.client_names import OWN_AGENT
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
from wireglot.gateway.observe.record import ExchangeRecord, Outcome, UsageSource
from wireglot.gateway.observe.redact import secrets_of
from wireglot.gateway.settings import Settings
from wireglot.http.redaction import Redactor

__all__ = ["ExchangeRecord", "Observer", "Outcome", "Telemetry", "UsageSource"]

STDERR = 2


class Telemetry(Protocol):
    """The target of traces; see telemetry.py."""

    def finish(self, record: ExchangeRecord, redactor: Redactor) -> None: ...

    def close(self) -> None: ...


class RowSink(Protocol):
    """Lists requests as they begin and end; see `gateway/trace/rows.py`."""

    def begin(self, record: ExchangeRecord) -> None: ...

    def finish(self, record: ExchangeRecord) -> None: ...


class Observer:
    """Reports requests to all sinks. A sink that fails is counted and never affects the request."""

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
        self._keep_losses: Callable[[ExchangeRecord], None] | None = None
        self._rows: RowSink | None = None
        self._redacting = Lock()
        self._secrets: set[str] = set()
        self._passing: dict[str, tuple[str, ...]] = {}
        """The last tokens of each login: a running request may still use the previous one."""
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
        """Apply a new configuration: its secrets, models and log format."""
        # Running requests use the keys of the configuration they came in under.
        with self._redacting:
            self._secrets |= secrets_of(settings)
            self._settings = settings
            self._redact()
        self.metrics.models.know(_models_of(settings))
        self.metrics.count_in(settings.currency)

    def hide(self, name: str, secret: str) -> None:
        """Hide a secret that was not known when the configuration was read: a token of the login with that
        name. Called in any thread: adding a long one takes milliseconds."""
        with self._redacting:
            self._passing[name] = (*self._passing.get(name, ())[-1:], secret)
            self._redact()

    def _redact(self) -> None:
        passing = (token for tokens in self._passing.values() for token in tokens)
        self.redactor = Redactor({*self._secrets, *passing}, self._settings.providers)
        self._cleaner = Cleaner(self.redactor)
        self._lines = self._lines_for(self._settings)

    def attach(self, telemetry: Telemetry) -> None:
        """Trace from now on. A new configuration does not turn it off: exporters live as long as the
        process."""
        self._telemetry = telemetry

    def keep_losses_with(self, keep: Callable[[ExchangeRecord], None]) -> None:
        """Store the losses of every request that has any, for later queries."""
        self._keep_losses = keep

    def list_with(self, rows: RowSink) -> None:
        """List every request, from its beginning."""
        self._rows = rows

    def begin(self, record: ExchangeRecord) -> None:
        """Not called for a request that is refused at once, which is only finished."""
        record.begun = True
        self._in_flight.value += 1
        if self._rows is not None:
            try:
                self._rows.begin(record)
            except Exception:  # no list may fail a request (fault 109)
                self.metrics.sink_failures.add(("rows",))

    def finish(self, record: ExchangeRecord) -> None:
        """Called when the last byte of the answer was sent, or the request failed; a second call has no
        effect."""
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
        record.body = b""  # others keep the record, and must not keep the body with it
        if self._lines is not None and not _is_expected(record):
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
        """Log one line about the process: start, reload, drain, a breaker that opened."""
        if self._lines is None:
            return
        try:
            self._sink.write(self._lines.note(level, event, fields))
        except Exception:  # no sink may fail its caller
            self.metrics.sink_failures.add(("log",))

    def close(self, timeout: float = 1.0) -> None:
        """Flush. A process that ends by os._exit must call it; others do so at exit."""
        self._sink.close(timeout)
        if self._telemetry is not None:
            try:
                self._telemetry.close()
            except Exception:  # an exporter whose target is down must not make the shutdown fail
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
    """The models that the configuration names."""
    names = {target.partition("/")[2] for rule in settings.rules for target in rule.targets}
    for provider in settings.providers.values():
        names.update(model.match for model in provider.spec.models if model.is_name)
    return {name for name in names if name and "*" not in name}


def _is_expected(record: ExchangeRecord) -> bool:
    """Whether no log line is needed: a routine read that was answered, or one of the gateway's own commands
    that looks for what may not exist, as a status line does before the first request of its session."""
    if not record.routine:
        return False
    is_absent = record.status == HTTPStatus.NOT_FOUND and record.agent.startswith(OWN_AGENT)
    return record.outcome == "ok" or is_absent
