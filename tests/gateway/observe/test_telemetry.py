"""Spans and metrics as OpenTelemetry's conventions for generative AI want them, and no word of a prompt."""

import logging
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tests.tiers import rows
from wireglot.gateway.config.problems import ConfigError
from wireglot.gateway.observe.metrics import OTHER, ModelNames
from wireglot.gateway.observe.observer import Observer
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.observe.telemetry import OpenTelemetry, opentelemetry
from wireglot.gateway.settings import ServerSettings, Settings
from wireglot.http.redaction import Redactor
from wireglot_core.extras import install_hint
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.purpose import RequestFacts

SECRET = "Zq7rT0pL9vXw3KfJm2Hd8Bn5Cs1Gy6Ea"
NOW = 1_767_268_800_000_000_000
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Bench:
    """A telemetry whose spans and metrics stay in memory."""

    def __init__(self, *known: str) -> None:
        self._spans = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        traces = TracerProvider()
        traces.add_span_processor(SimpleSpanProcessor(self._spans))
        self.telemetry = OpenTelemetry(
            traces, MeterProvider([self._reader]), ModelNames(known, str), wall=lambda: NOW
        )

    def finish(self, redactor: Redactor | None = None, **fields) -> ReadableSpan:
        usual = {
            "id": "req_1", "started": 10.0, "finished": 11.5, "first_byte": 10.25, "dialect": "anthropic",
            "operation": "generate", "caller": "team-a", "model": "claude-sonnet-4-5", "stream": True,
            "provider": "kimi", "upstream_model": "kimi-k3", "upstream_dialect": "openai-chat",
            "upstream_url": "https://api.moonshot.ai/v1/chat/completions", "attempts": 1, "status": 200,
            "stop": "tool_calls", "response_model": "kimi-k3-0711", "usage_source": "provider",
            "usage": Usage(input=10, cache_read=5, cache_write=3, output=20, reasoning=7),
        }  # fmt: skip
        self.telemetry.finish(ExchangeRecord(**{**usual, **fields}), redactor or Redactor())
        return self._spans.get_finished_spans()[-1]

    @property
    def spans(self) -> int:
        return len(self._spans.get_finished_spans())

    def points(self, name: str) -> list[HistogramDataPoint]:
        data = self._reader.get_metrics_data()
        assert data is not None
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
            if isinstance(point, HistogramDataPoint)
        ]


def reported(span: ReadableSpan) -> dict:
    return dict(span.attributes or {})


def test_a_span_is_as_long_as_the_request_to_the_nanosecond():
    span = Bench("kimi-k3").finish(started=0.0, finished=0.000065)
    assert (span.start_time, span.end_time) == (NOW - 65_000, NOW)


def test_a_request_is_a_client_span_by_the_conventions():
    span = Bench("kimi-k3").finish(losses=[Loss("$", "tool.name", "approximated")])
    assert (span.name, span.kind, span.status.status_code) == (
        "chat kimi-k3",
        SpanKind.CLIENT,
        StatusCode.UNSET,
    )
    assert (span.start_time, span.end_time) == (NOW - 1_500_000_000, NOW)
    assert reported(span) == {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "moonshot_ai", "gen_ai.request.model": "kimi-k3",
        "gen_ai.request.stream": True, "gen_ai.response.model": "kimi-k3-0711",
        "gen_ai.response.finish_reasons": ("tool_calls",), "gen_ai.response.time_to_first_chunk": 0.25,
        "gen_ai.usage.input_tokens": 18, "gen_ai.usage.output_tokens": 27,
        "gen_ai.usage.cache_read.input_tokens": 5, "gen_ai.usage.cache_creation.input_tokens": 3,
        "gen_ai.usage.reasoning.output_tokens": 7, "server.address": "api.moonshot.ai", "server.port": 443,
        "http.response.status_code": 200, "wireglot.request.id": "req_1", "wireglot.dialect": "anthropic",
        "wireglot.asked.model": "claude-sonnet-4-5", "wireglot.key": "team-a", "wireglot.outcome": "ok",
        "wireglot.attempts": 1, "wireglot.losses": ("tool.name",), "wireglot.usage.source": "provider",
    }  # fmt: skip


def test_a_span_says_what_the_request_is_for_and_which_agent_sends_it():
    span = Bench().finish(facts=RequestFacts("subagent", "workflow", "Explore", "a2", "a1"))
    assert {
        name: value for name, value in reported(span).items() if "agent" in name or "purpose" in name
    } == {
        "wireglot.purpose": "subagent",
        "gen_ai.agent.name": "Explore",
        "gen_ai.agent.id": "a2",
        "wireglot.agent.parent_id": "a1",
    }


def test_the_clients_trace_is_the_parent():
    span = Bench().finish(traceparent=f"00-{TRACE}-{PARENT}-01")
    assert span.parent is not None
    assert (f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)
    assert span.context is not None
    assert span.context.trace_id == span.parent.trace_id


@pytest.mark.parametrize("traceparent", ["", "nonsense", f"00-{'0' * 32}-{PARENT}-01", "00-" + "f" * 5000])
def test_a_bad_traceparent_begins_a_new_trace(traceparent):
    assert Bench().finish(traceparent=traceparent).parent is None


def test_an_error_has_a_type_and_tells_no_text():
    span = Bench().finish(
        status=503,
        outcome="error",
        error_kind="overloaded",
        error_message="the prompt was: hello",
        usage=None,
    )
    assert span.status.status_code is StatusCode.ERROR
    assert reported(span)["error.type"] == "overloaded"
    assert "hello" not in span.to_json()


def test_a_client_that_left_is_no_error_of_ours():
    span = Bench().finish(outcome="client_abort")
    assert span.status.status_code is StatusCode.UNSET
    assert reported(span)["error.type"] == "client_abort"


def test_a_secret_in_a_name_is_scrubbed():
    span = Bench().finish(
        Redactor([SECRET]), model=SECRET, upstream_model=f"m-{SECRET}", response_model=SECRET
    )
    assert SECRET[:12] not in span.to_json()


@rows(
    ("provider", "dialect", "name", "operation"),
    [
        ("gemini", "gemini", "gcp.gemini", "generate_content"),
        ("vertex", "gemini", "gcp.vertex_ai", "generate_content"),
        ("anthropic", "anthropic", "anthropic", "chat"),
        ("mine", "openai-responses", "mine", "chat"),
        ("", "", "wireglot", "chat"),
    ],
)
def test_providers_and_operations_have_the_conventions_names(provider, dialect, name, operation):
    attributes = reported(Bench().finish(provider=provider, upstream_dialect=dialect))
    assert (attributes["gen_ai.provider.name"], attributes["gen_ai.operation.name"]) == (name, operation)


def test_a_port_of_its_own_is_reported():
    attributes = reported(Bench().finish(upstream_url="http://user:pw@127.0.0.1:9001/v1?key=1"))
    assert (attributes["server.address"], attributes["server.port"]) == ("127.0.0.1", 9001)


def test_listings_and_probes_are_not_traced():
    bench = Bench()
    bench.finish()
    bench.finish(operation="models")
    bench.finish(operation="health")
    assert bench.spans == 1
    assert reported(bench.finish(operation="count"))["gen_ai.operation.name"] == "count_tokens"
    assert reported(bench.finish(operation="embed"))["gen_ai.operation.name"] == "embeddings"


def test_tokens_and_times_are_measured():
    bench = Bench("kimi-k3")
    bench.finish()
    common = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "moonshot_ai", "gen_ai.request.model": "kimi-k3",
        "server.address": "api.moonshot.ai", "server.port": 443,
    }  # fmt: skip
    tokens = {
        str((p.attributes or {})["gen_ai.token.type"]): p for p in bench.points("gen_ai.client.token.usage")
    }
    assert {kind: point.sum for kind, point in tokens.items()} == {"input": 18, "output": 27}
    assert dict(tokens["input"].attributes or {}) == {**common, "gen_ai.token.type": "input"}
    assert list(tokens["input"].explicit_bounds)[:3] == [1, 4, 16]
    (duration,) = bench.points("gen_ai.client.operation.duration")
    assert (duration.sum, dict(duration.attributes or {})) == (1.5, common)
    assert list(duration.explicit_bounds)[-1] == 81.92
    (first,) = bench.points("gen_ai.client.operation.time_to_first_chunk")
    assert first.sum == 0.25


def test_guesses_are_not_measured_as_tokens():
    bench = Bench()
    bench.finish(usage_source="estimated", stream=False)
    assert bench.points("gen_ai.client.token.usage") == []
    assert bench.points("gen_ai.client.operation.time_to_first_chunk") == []


def test_models_that_no_one_answers_make_no_new_series():
    bench = Bench()
    for number in range(20):
        bench.finish(upstream_model=f"junk-{number}", status=404, outcome="error", error_kind="not_found")
    (point,) = bench.points("gen_ai.client.operation.duration")
    assert (point.count, (point.attributes or {})["gen_ai.request.model"]) == (20, OTHER)
    assert (point.attributes or {})["error.type"] == "not_found"


def test_without_the_extra_the_configuration_is_at_fault(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigError, match=r"server\.telemetry: .*" + re.escape(install_hint("otel"))):
        opentelemetry(ModelNames((), str), print)


def test_it_is_not_loaded_unless_it_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "wireglot.gateway.observe.telemetry", None)
    Observer(Settings(server=ServerSettings(log="off"))).finish(ExchangeRecord("r", 1.0))


def exporting(close_seconds: float = 60.0) -> Observer:
    observer = Observer(Settings(server=ServerSettings(log="off")))
    telemetry = opentelemetry(observer.metrics.models, observer.note)
    telemetry.close_seconds = close_seconds
    observer.attach(telemetry)
    return observer


class Collector(BaseHTTPRequestHandler):
    paths: list[str] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.paths.append(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_everything_reaches_a_collector_before_the_end(monkeypatch):
    Collector.paths.clear()
    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    observer = exporting()
    observer.finish(
        ExchangeRecord("r", 1.0, operation="generate", provider="kimi", upstream_model="k", status=200)
    )
    observer.close()
    server.shutdown()
    thread.join()
    server.server_close()
    assert sorted(set(Collector.paths)) == ["/v1/metrics", "/v1/traces"]
    assert observer.metrics.sink_failures.value(("telemetry",)) == 0


def test_what_the_sdk_complains_of_is_noted():
    notes: list[tuple] = []
    telemetry = opentelemetry(ModelNames((), str), lambda *args, **fields: notes.append((*args, fields)))
    logging.getLogger("opentelemetry.sdk.trace.export").warning("%s is down", "it")
    telemetry.close()
    assert notes[0] == (
        "warn",
        "telemetry",
        {"source": "opentelemetry.sdk.trace.export", "message": "it is down"},
    )


def test_a_target_that_is_down_does_not_hold_up_the_end(monkeypatch):
    with HTTPServer(("127.0.0.1", 0), Collector) as unused:
        port = unused.server_port
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
    observer = exporting(close_seconds=0.05)
    record = ExchangeRecord("r", 1.0, operation="generate", provider="kimi", upstream_model="k", status=200)
    observer.finish(record)
    observer.close()
    assert record.finished
    assert observer.metrics.sink_failures.value(("telemetry",)) == 0
