"""Traces and metrics for OpenTelemetry, by its conventions for generative AI. An extra: `wireglot[otel]`.

One span for each request to a model, and three client metrics. The usual `OTEL_*` variables configure the
target. Prompts, answers and error texts are not reported, only the provider and model, the usage and the
outcome. The conventions: github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from wireglot import __version__
from wireglot.gateway.config.problems import ConfigError, ConfigProblem
from wireglot.gateway.observe.forms import tuple_of
from wireglot.gateway.observe.log import Cleaner, features_of
from wireglot.gateway.observe.metrics import ModelNames
from wireglot.gateway.observe.record import MARKS, MODEL_MAX, ExchangeRecord
from wireglot.http.redaction import Redactor
from wireglot_core.dialects.registry import surface
from wireglot_core.extras import install_hint
from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.usage import KINDS, kinds_of
from wireglot_core.providers.spec import names, provider

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

Attributes = dict[str, str | int | float | bool | list[str]]

_CLOSE_SECONDS: Final = 2.0
_PORTS: Final = {"https": 443, "http": 80}
_REPORTED: Final = frozenset({"generate", "count", "embed", "safeguard", "search", "tool_round", "candidate"})

_CHAT: Final = "chat"
"""The operation name for requests to models, if the dialect has no other."""

_PARTS: Final = {
    "cache_read": "gen_ai.usage.cache_read.input_tokens",
    "cache_write": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning": "gen_ai.usage.reasoning.output_tokens",
}
"""Kinds of tokens that the conventions name; the others are only included in the totals."""

_STOP_REASONS: Final = "GEN_AI_RESPONSE_FINISH_REASONS"
"""Defined by the library, as some values are vendors' own. It has no names for the newest attributes."""
_COMPUTED: Final = (
    "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "server.address", "server.port",
    _STOP_REASONS, "gen_ai.response.time_to_first_chunk", "error.type", "wireglot.losses",
    "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", *_PARTS.values(), "wireglot.usage.source",
)  # fmt: skip
"""The attributes that are computed here; the others are copied from the record."""
_COPIED: Final = MARKS.copied("span", _COMPUTED)
_copied_of: Final = tuple_of(_COPIED)

_SDK_LOG: Final = logging.getLogger("opentelemetry")
_TOKENS: Final = tuple(4**power for power in range(14))
_SECONDS: Final = tuple(round(0.01 * 2**power, 2) for power in range(14))


class OpenTelemetry:
    def __init__(
        self,
        traces: TracerProvider,
        meters: MeterProvider,
        models: ModelNames,
        wall: Callable[[], int] = time.time_ns,
        notes: logging.Handler | None = None,
    ) -> None:
        from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
        from opentelemetry.trace import SpanKind, Status, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self.close_seconds = _CLOSE_SECONDS
        self._pipelines = (traces, meters)
        self._models = models
        self._wall = wall
        self._notes = notes
        self._stop_reasons: str = getattr(gen_ai_attributes, _STOP_REASONS)
        if notes is not None:
            _SDK_LOG.addHandler(notes)
            _SDK_LOG.propagate = False
        self._kind = SpanKind.CLIENT
        self._failed = Status(StatusCode.ERROR)
        self._parents = TraceContextTextMapPropagator()
        self._tracer = traces.get_tracer("wireglot", __version__)
        meter = meters.get_meter("wireglot", __version__)
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration",
            "s",
            "GenAI operation duration.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._first = meter.create_histogram(
            "gen_ai.client.operation.time_to_first_chunk",
            "s",
            "Time to the first chunk of a streamed answer.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._cleaner = Cleaner(Redactor())
        self._redactor: Redactor | None = None

    def finish(self, record: ExchangeRecord, redactor: Redactor) -> None:
        if record.operation not in _REPORTED:
            return
        if redactor is not self._redactor:  # a new configuration
            self._redactor, self._cleaner = redactor, Cleaner(redactor)
        common = self._common(record)
        parent = self._parent(record)
        self._trace(record, common, parent)
        self._measure(record, common, parent)

    def close(self) -> None:
        """Flush, for a limited time: an exporter whose target is down would wait for half a minute."""
        flush = threading.Thread(target=self._shut_down, name="wireglot-telemetry-end", daemon=True)
        flush.start()
        flush.join(self.close_seconds)
        if self._notes is not None:
            _SDK_LOG.removeHandler(self._notes)
            _SDK_LOG.propagate = True

    def _shut_down(self) -> None:
        for pipeline in self._pipelines:
            pipeline.shutdown()

    def _parent(self, record: ExchangeRecord) -> Context | None:
        return self._parents.extract({"traceparent": record.traceparent}) if record.traceparent else None

    def _common(self, record: ExchangeRecord) -> Attributes:
        """The attributes that span and metrics share: few values each, whatever clients send."""
        reported: Attributes = {
            "gen_ai.operation.name": _operation(record),
            "gen_ai.provider.name": _provider_name(record.provider) or "wireglot",
        }
        answered = record.outcome == "ok" and record.status < 400
        if model := self._models.label(record.upstream_model, answered):
            reported["gen_ai.request.model"] = model
        if record.upstream_url:
            place = urlsplit(record.upstream_url)
            if place.hostname:
                reported["server.address"] = place.hostname
                reported["server.port"] = place.port or _PORTS.get(place.scheme, 443)
        return reported

    def _trace(self, record: ExchangeRecord, common: Attributes, parent: Context | None) -> None:
        name = self._cleaner.name
        attributes = dict(common)
        if model := name(record.upstream_model or record.model, MODEL_MAX):
            attributes["gen_ai.request.model"] = model
        for source, value in zip(_COPIED, _copied_of(record), strict=True):
            shown = name(value, source.letters) if source.letters else value
            if shown or shown is False or source.always:
                attributes[source.name] = shown
        optional: dict[str, Any] = {
            self._stop_reasons: [record.stop] if record.stop else None,
            "gen_ai.response.time_to_first_chunk": _first(record),
            "error.type": _error_type(record),
            "wireglot.losses": features_of(record),
        }
        attributes.update({key: value for key, value in optional.items() if value})
        if record.usage is not None:
            attributes.update(_usage(record.usage))
            attributes["wireglot.usage.source"] = record.usage_source
        ended = self._wall()
        span = self._tracer.start_span(
            f"{attributes['gen_ai.operation.name']} {model}".rstrip(),
            context=parent,
            kind=self._kind,
            attributes=attributes,
            start_time=ended - round(record.seconds * 1e9),
        )
        if record.outcome in ("error", "gateway_abort"):
            span.set_status(self._failed)
        span.end(ended)

    def _measure(self, record: ExchangeRecord, common: Attributes, parent: Context | None) -> None:
        kind = _error_type(record)
        self._duration.record(
            max(0.0, record.seconds), {**common, "error.type": kind} if kind else common, parent
        )
        first = _first(record)
        if first is not None:
            self._first.record(first, common, parent)
        usage = record.usage
        # The conventions require billed usage, not estimates.
        if usage is not None and record.usage_source in ("provider", "partial"):
            self._tokens.record(usage.total_input, {**common, "gen_ai.token.type": "input"}, parent)
            self._tokens.record(usage.total_output, {**common, "gen_ai.token.type": "output"}, parent)


def _operation(record: ExchangeRecord) -> str:
    if record.operation == "count":
        return "count_tokens"
    if record.operation == "embed":
        return "embeddings"
    spoken = record.upstream_dialect or record.dialect
    upstream = surface(spoken).upstream if spoken else None
    return (upstream.telemetry_operation if upstream is not None else "") or _CHAT


def _provider_name(name: str) -> str:
    """The name by the conventions, if it differs from the catalog's; else the provider's own name."""
    return (provider(name).telemetry_name or name) if name in names() else name


def _error_type(record: ExchangeRecord) -> str:
    if record.outcome == "ok" and record.status < 400:
        return ""
    return record.error_kind or (record.outcome if record.outcome != "ok" else str(record.status))


def _first(record: ExchangeRecord) -> float | None:
    if not record.stream or record.first_byte is None:
        return None
    return max(0.0, record.first_byte - record.started)


def _usage(usage: Usage) -> Attributes:
    """In the conventions the totals include the parts, unlike in our own account."""
    reported: Attributes = {
        "gen_ai.usage.input_tokens": usage.total_input,
        "gen_ai.usage.output_tokens": usage.total_output,
    }
    for kind, tokens in zip(KINDS, kinds_of(usage), strict=True):
        if kind in _PARTS and (kind != "reasoning" or usage.reasoning is not None):
            reported[_PARTS[kind]] = tokens
    return reported


class _Notes(logging.Handler):
    """Logs the SDK's messages (for example that its target is down) as notes."""

    def __init__(self, note: Callable[..., None]) -> None:
        super().__init__(logging.WARNING)
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        level = "error" if record.levelno >= logging.ERROR else "warn"
        self._note(level, "telemetry", source=record.name, message=record.getMessage())


def opentelemetry(models: ModelNames, note: Callable[..., None]) -> OpenTelemetry:
    """OTLP over HTTP, configured by the environment. Raises ConfigError if the extra is not installed."""
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as missing:
        expected = f"OpenTelemetry to be installed ({install_hint('otel')}) or telemetry to be off"
        problem = ConfigProblem("server.telemetry", expected, f"no module {missing.name}")
        raise ConfigError([problem]) from missing
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "wireglot"}
    resource = Resource.create({**named, "service.version": __version__})
    traces = TracerProvider(resource=resource, shutdown_on_exit=False)
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    meters = MeterProvider(
        [PeriodicExportingMetricReader(OTLPMetricExporter())], resource=resource, shutdown_on_exit=False
    )
    return OpenTelemetry(traces, meters, models, notes=_Notes(note))
