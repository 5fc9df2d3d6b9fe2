"""One request in every form that shows it: as the record declares it, and to the byte as in the files of
tests/fixtures/exchange_record.

`WIREGLOT_UPDATE=1 pytest tests/gateway/observe/test_record_forms.py` writes them again; read the difference.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Final, assert_never

import msgspec
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

import wireglot
import wireglot_core
from tests.core.laws.test_pair_goldens import UPDATE
from tests.gateway.kit import exchange, settings
from tests.gateway.state.ledger_kit import PRICE, Target
from tests.tiers import rows
from wireglot.gateway.entry.callers import Caller
from wireglot.gateway.observe.forms import FORMS, As, Form, Marks, Shown
from wireglot.gateway.observe.log import JsonLines, PrettyLines
from wireglot.gateway.observe.metrics import Metrics, ModelNames
from wireglot.gateway.observe.record import MARKS, ExchangeRecord
from wireglot.gateway.observe.telemetry import OpenTelemetry
from wireglot.gateway.settings import ClientKey
from wireglot.gateway.state.ledger.usage_ledger import OTHER_COLUMNS, completed, intent
from wireglot.gateway.trace.rows import OTHER_FIELDS, ExchangeRows, redacted
from wireglot.http.redaction import Redactor
from wireglot.stores.records import UsageRow
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.purpose import RequestFacts
from wireglot_core.traces.trace import Row

FIXTURES: Final = Path(__file__).parents[2] / "fixtures" / "exchange_record"
SECRET: Final = "Zq7rT0pL9vXw3KfJm2Hd8Bn5Cs1Gy6Ea"
NOON: Final = 1_767_268_800.25
LOSSES: Final = [
    Loss("$.top_k", "sampling.top_k", "dropped", "no such field"),
    Loss("$.messages[2]", "thinking.budget", "approximated", f"hush {SECRET}"),
    Loss("$.top_k", "sampling.top_k", "dropped", "no such field"),
    Loss("$.usage", "usage.detail", "dropped", document="response"),
    Loss("$.tools[0]", "tool.native", "dropped", "no such tool"),
]
FULL: Final[dict[str, Any]] = {
    "id": "req_1", "started": 100.0, "finished": 101.51237, "first_byte": 100.25014, "dialect": "anthropic",
    "operation": "generate", "caller": "team-a", "model": f"claude-{SECRET}", "stream": True,
    "session": "s" * 300, "path": "/v1/messages", "agent": "claude-cli/2.0.14 (external, cli) " + "a" * 300,
    "facts": RequestFacts("subagent", "workflow", "Explore", "a2", "a1"), "within": "req_0",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "provider": "kimi", "upstream_model": "kimi-\x1b[31mk3", "upstream_dialect": "openai-chat",
    "upstream_url": "https://api.moonshot.ai/v1/chat/completions", "passthrough": True, "account": f"a {SECRET}",
    "attempts": 3, "fallbacks": [f"other/{SECRET}"], "status": 200, "stop": "tool_calls",
    "usage": Usage(input=10, cache_read=5, cache_write=3, cache_write_long=4, output=20, reasoning=7, tool_prompt=1),
    "usage_source": "partial", "cost": 1234, "losses": LOSSES, "response_model": f"kimi-k3-{SECRET}",
    "upstream_request_id": "up_1", "notes": [f"other/x: {SECRET}", "second"], "flaws": ["usage.total", "second_start"],
    "recorded": True, "booked": True,
}  # fmt: skip
FAILURE: Final[dict[str, Any]] = {
    "status": 529, "outcome": "error", "error_kind": "overloaded", "error_code": f"c{SECRET}",
    "error_message": f"try {SECRET} " + "later " * 120, "error_fix": f"look {SECRET}", "usage_source": "estimated",
}  # fmt: skip
CASES: Final[dict[str, dict[str, Any]]] = {
    "minimal": {"id": "req_1", "started": 100.0, "finished": 100.0},
    "good": {**FULL, "fallbacks": [], "notes": [], "attempts": 1, "asked_as": "req_a", "usage_source": "provider"},
    "full": FULL,
    "failed": {**FULL, **FAILURE, "cost": None},
    "left": {**FULL, "outcome": "client_abort", "status": 499, "usage": None, "usage_source": "none", "stream": False},
    "lossy": {"id": "req_1", "started": 100.0, "finished": 101.0, "losses": [Loss(f"$.{n}", "user", "dropped") for n in range(30)]},
    "running": {"id": "req_1", "started": 100.0, "path": "/v1/messages", "model": "m\ud800", "waits": "queue", "waits_until": 130.0},
}  # fmt: skip


@pytest.fixture(autouse=True)
def _clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(time, "time", lambda: NOON)
    monkeypatch.setattr(time, "monotonic", lambda: 105.0)


@rows("name", list(CASES))
def test_each_form_of_a_request_is_the_pinned_one(name: str) -> None:
    written = {form: json.loads(msgspec.json.encode(shown)) for form, shown in forms(CASES[name]).items()}
    path = FIXTURES / f"{name}.json"
    text = json.dumps(written, indent=1, ensure_ascii=True) + "\n"
    if UPDATE:
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def test_every_field_of_a_record_is_shown_or_says_why_it_is_not() -> None:
    shown = {field: any(map(marks.names, FORMS)) for field, marks in MARKS.fields.items()}
    assert [field for field, marks in MARKS.fields.items() if shown[field] == bool(marks.no_form)] == []


def test_a_row_of_the_list_has_the_fields_that_the_record_declares_and_those_known_elsewhere() -> None:
    assert sorted({*names("row"), *OTHER_FIELDS}) == sorted(Row.__struct_fields__)
    assert not set(OTHER_FIELDS) & names("row")


def test_a_row_of_the_ledger_has_the_columns_that_the_record_declares_and_those_known_elsewhere() -> None:
    assert sorted({*names("ledger"), *OTHER_COLUMNS}) == sorted(UsageRow.__struct_fields__)
    assert not set(OTHER_COLUMNS) & names("ledger")


def test_metrics_of_requests_have_the_labels_that_the_record_declares_and_those_of_what_they_count() -> None:
    metrics = {metric.name: metric.labels for metric in Metrics()._all}
    labels = {name for name in names("metrics") if name not in metrics}
    counted = [metrics[name] for name in names("metrics") if name in metrics]
    assert {*labels, "kind", "currency", "feature", "grade", "flaw"} == {
        label for each in counted for label in each
    }


@rows("form", list(FORMS))
def test_every_name_that_the_record_declares_is_in_the_form_and_no_other(form: Form) -> None:
    """In the forms of requests that together have a value in every field."""
    found = {name for fields in CASES.values() for name in names_in(forms(fields), form)}
    known = names(form)
    match form:
        case "row":
            known |= {*OTHER_FIELDS} - {"title", "history"}  # of bodies that were recorded
        case "ledger":
            known |= {*OTHER_COLUMNS}
        case "log":
            known |= {"ts", "level", "event"}
        case "metrics":
            known = {name for name in known if name.startswith("wireglot_")}
        case "span":
            known = {getattr(gen_ai_attributes, name, name) for name in known}
        case _:
            assert_never(form)
    assert found == known


def names_in(made: dict[str, Any], form: Form) -> set[str]:
    """The names that are in one of the forms of a request."""
    match form:
        case "row":
            return set(msgspec.to_builtins(made["row"]))
        case "ledger":
            return {name for each in ("intent", "usage") for name in msgspec.to_builtins(made.get(each, {}))}
        case "log":
            return set(json.loads(made.get("log", "{}")))
        case "metrics":
            series = [line.partition("{") for line in made.get("metrics", ()) if "version=" not in line]
            return {re.sub("_(sum|count)$", "", name) for name, brace, _ in series if brace}
        case "span":
            return {name for span in made.get("span", ()) for name in span[-1]}
        case _:
            assert_never(form)


def names(form: Form) -> set[str]:
    return {source.name for source in MARKS.sources(form)}


LATER = {
    "wireglot/gateway/observe/record.py": (
        "    session: Annotated[\n",
        """\
    region: Annotated[
        str,
        Shown(
            ledger=As("region", 8), row=As("region", ROW_TEXT_MAX), log=As("region", NAME_MAX),
            span=As("wireglot.region", NAME_MAX),
        ),
    ] = ""
""",
    ),
    "wireglot_core/traces/trace.py": ("    belongs_to: str = ", '    region: str = ""\n'),
    "wireglot/stores/records.py": ("    caller_group: str = ", '    region: str = ""\n'),
}
"""A further field of a request, and the lines before which it is declared."""
PROGRAM = """
import json, msgspec
from tests.gateway.observe import test_record_forms as kit
from tools.page_types import text
made = kit.forms({**kit.FULL, "region": f"north {kit.SECRET}"})
print(json.dumps([msgspec.to_builtins(made), text()]))
"""


def test_a_field_that_is_declared_is_in_every_form_cut_and_without_secrets(tmp_path: Path) -> None:
    for package in (wireglot, wireglot_core):
        (path,) = package.__path__
        shutil.copytree(path, tmp_path / package.__name__, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (before, field) in LATER.items():
        file = tmp_path / name
        source = file.read_text()
        assert source.count(before) == 1
        file.write_text(source.replace(before, field + before))
    root = Path(__file__).parents[3]
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{root}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    made, types = json.loads(ran.stdout)
    ((*_, attributes),) = made["span"]
    assert json.loads(made["log"])["region"] == "north [redacted]"
    assert (made["row"]["region"], made["shown row"]["region"]) == (f"north {SECRET}", "north [redacted]")
    assert made["usage"]["region"] == f"north {SECRET}"[:8]
    assert attributes["wireglot.region"] == "north [redacted]"
    assert "  region?: string;\n" in types


class Small(msgspec.Struct):
    one: Annotated[str, Shown(row="same")] = ""
    two: Annotated[str, Shown(row=("same", As("other", 3)))] = ""
    three: str = ""


def test_a_name_of_two_fields_has_to_be_computed() -> None:
    marks = Marks(Small)
    with pytest.raises(AssertionError, match="same"):
        marks.copied("row", ())
    assert [(source.name, source.path, source.letters) for source in marks.copied("row", {"same"})] == [
        ("other", "two", 3)
    ]


def test_a_computed_name_has_to_be_declared() -> None:
    with pytest.raises(AssertionError, match="region"):
        Marks(Small).copied("row", {"same", "region"})


def forms(fields: dict[str, Any]) -> dict[str, Any]:
    """What every sink makes of a record with these fields."""
    redactor = Redactor([SECRET])
    kept = ExchangeRows("w1")
    record = ExchangeRecord(**{**fields, "finished": 0.0})
    kept.begin(record)
    if "finished" not in fields:
        (row,) = kept.formatted(kept.snapshot())
        return {"row": row, "shown row": redacted(row, redactor)}
    spans, points = _telemetry(ExchangeRecord(**fields), redactor)
    ledger = _ledger(ExchangeRecord(**fields))
    metrics = Metrics((), str, "1")
    metrics.count_in("USD")
    record = ExchangeRecord(**fields)
    metrics.finish(record)
    kept.finish(record)
    (row,) = kept.formatted(kept.snapshot())
    return {
        "log": JsonLines(redactor, lambda: NOON).request(record).decode(),
        "terminal": PrettyLines(redactor, lambda: NOON).request(record).decode(),
        "narrow": PrettyLines(redactor, lambda: NOON, columns=lambda: 60).request(record).decode(),
        "row": row,
        "shown row": redacted(row, redactor),
        "metrics": sorted(each for each in metrics.render().decode().split("\n") if _is_series(each)),
        "span": spans,
        "points": points,
        "intent": ledger[0],
        "usage": ledger[1],
    }


def _is_series(line: str) -> bool:
    return line[:1] not in ("", "#") and "_bucket{" not in line


def _ledger(record: ExchangeRecord) -> tuple[Any, Any]:
    caller = Caller("alice", ClientKey("alice", "0" * 64, group="g1"))
    body = {"model": record.model, "stream": record.stream}
    made = exchange(settings(), body, path="/v1/messages", caller=caller)
    record.dialect = made.record.dialect  # what is booked came in by an endpoint of a dialect
    made.record = record
    target: Any = Target(type("Named", (), {"name": "mine"}), "t" * 300)
    begun = intent(made, target, "w1")
    ended = completed(
        begun, record, price=PRICE, flags=("odd",), first_byte=record.first_byte, now=record.finished
    )
    return begun, ended


def _telemetry(record: ExchangeRecord, redactor: Redactor) -> tuple[Any, Any]:
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    traces = TracerProvider()
    traces.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = OpenTelemetry(traces, MeterProvider([reader]), ModelNames((), str), wall=lambda: 1 << 60)
    telemetry.finish(record, redactor)
    spans = [
        [span.name, span.start_time, span.parent and span.parent.span_id, span.status.status_code.name,
         dict(sorted((span.attributes or {}).items()))]
        for span in exporter.get_finished_spans()
    ]  # fmt: skip
    data = reader.get_metrics_data()
    points = [
        [metric.name, dict(sorted((point.attributes or {}).items())), getattr(point, "sum", None)]
        for resource in (data.resource_metrics if data is not None else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    ]
    return spans, points
