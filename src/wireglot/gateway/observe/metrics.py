"""Counters of one process, in Prometheus's text format.

The number of labels is limited whatever clients send: a model's name becomes a label only if the
configuration knows it or a provider has answered it, and only MAX_MODELS of them; of client keys only the
first MAX_KEYS that send requests. The rest is "other". No series has both a key and a model: there would be
one for each pair.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal

from wireglot.gateway.observe.forms import dict_of, tuple_of
from wireglot.gateway.observe.record import MARKS, ExchangeRecord
from wireglot.stores.records import MICRO
from wireglot_core.ir.stream import FLAWS
from wireglot_core.ir.usage import KINDS

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
# Models with series of their own in the metrics; the rest is `other`.
MAX_MODELS: Final = 200
# Client keys with series of their own in the metrics; the rest is `other`.
MAX_KEYS: Final = 100
# Series of metrics that are cached by the properties of a request.
_MAX_CELLS: Final = 4096
OTHER: Final = "other"

SECONDS: Final = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
)

Labels = tuple[str, ...]
Readings = Mapping[Labels, float]


class Cell:
    """One number of a metric. A caller that counts it often keeps the cell, which avoids the look-up by
    labels."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Counter:
    """`kind` is "gauge" for a number that can also fall."""

    def __init__(
        self, name: str, about: str, labels: Labels = (), kind: Literal["counter", "gauge"] = "counter"
    ) -> None:
        self.name = name
        self._head = _head(name, about, kind)
        self.labels = labels
        self._cells: dict[Labels, Cell] = {}
        if not labels:
            self.cell(())  # exists from the start, so that an alert can compare with zero

    def cell(self, labels: Labels) -> Cell:
        found = self._cells.get(labels)
        if found is None:
            found = self._cells[labels] = Cell()
        return found

    def add(self, labels: Labels = (), by: float = 1) -> None:
        self.cell(labels).value += by

    def value(self, labels: Labels = ()) -> float:
        found = self._cells.get(labels)
        return found.value if found is not None else 0

    def render(self, out: list[str]) -> None:
        out.append(self._head)
        for labels, cell in self._cells.items():
            out.append(f"{self.name}{_braces(self.labels, labels)} {number_text(cell.value)}\n")


class Reading:
    """Numbers kept elsewhere, read with each scrape. One that fails is left out."""

    def __init__(
        self,
        name: str,
        about: str,
        labels: Labels,
        read: Callable[[], Readings],
        kind: Literal["counter", "gauge"] = "gauge",
    ) -> None:
        self.name = name
        self._head = _head(name, about, kind)
        self.labels = labels
        self._read = read

    def render(self, out: list[str]) -> None:
        lines = [
            f"{self.name}{_braces(self.labels, key)} {number_text(n)}\n" for key, n in self._read().items()
        ]
        out += [self._head, *lines]


class Spread:
    """One series of a histogram."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class Histogram:
    def __init__(self, name: str, about: str, labels: Labels, bounds: tuple[float, ...] = SECONDS) -> None:
        self.name = name
        self._head = _head(name, about, "histogram")
        self.labels = labels
        self._bounds = bounds
        self._spreads: dict[Labels, Spread] = {}

    def spread(self, labels: Labels) -> Spread:
        found = self._spreads.get(labels)
        if found is None:
            found = self._spreads[labels] = Spread(self._bounds)
        return found

    def render(self, out: list[str]) -> None:
        out.append(self._head)
        names = (*self.labels, "le")
        bounds = (*map(number_text, self._bounds), "+Inf")
        for labels, spread in self._spreads.items():
            total = 0
            for bound, count in zip(bounds, spread.counts, strict=True):
                total += count
                out.append(f"{self.name}_bucket{_braces(names, (*labels, bound))} {total}\n")
            own = _braces(self.labels, labels)
            out.append(f"{self.name}_sum{own} {number_text(spread.sum)}\n{self.name}_count{own} {total}\n")


class ModelNames:
    """The models, or client keys, with their own label."""

    def __init__(self, known: Iterable[str], clean: Callable[[str], str], limit: int = MAX_MODELS) -> None:
        self._clean = clean
        self._left = limit
        self._names = {name: clean(name) for name in known}

    def label(self, model: str, answered: bool) -> str:
        name = self._names.get(model)
        if name is not None:
            return name
        if not model:
            return ""
        if not answered or self._left <= 0:
            return OTHER
        self._left -= 1
        return self._names.setdefault(model, self._clean(model))

    def know(self, names: Iterable[str]) -> None:
        for name in names:
            self._names.setdefault(name, self._clean(name))


class Metrics:
    def __init__(
        self, models: Iterable[str] = (), clean: Callable[[str], str] = str, version: str = ""
    ) -> None:
        self.models = ModelNames(models, clean)
        self.keys = ModelNames((), clean, MAX_KEYS)
        self._currency = ""
        self.requests = Counter(
            "wireglot_requests_total",
            "Requests answered.",
            ("dialect", "provider", "model", "status", "outcome"),
        )
        self.tokens = Counter(
            "wireglot_tokens_total",
            "Tokens by kind; the kinds do not overlap.",
            ("provider", "model", "kind"),
        )
        self.usage = Counter(
            "wireglot_usage_total",
            "Answers by where their token counts come from.",
            ("provider", "source"),
        )
        self.cost = Counter(
            "wireglot_cost_total",
            "What answers cost, in units of the currency.",
            ("provider", "model", "currency"),
        )
        self.unpriced = Counter(
            "wireglot_unpriced_total",
            "Answers whose tokens are known and whose price is not.",
            ("provider", "model"),
        )
        self.key_requests = Counter(
            "wireglot_key_requests_total", "Requests by the name of the client's key.", ("key", "outcome")
        )
        self.key_tokens = Counter(
            "wireglot_key_tokens_total",
            "Tokens by key and kind; the kinds do not overlap.",
            ("key", "kind"),
        )
        self.key_cost = Counter(
            "wireglot_key_cost_total",
            "What the answers of a key cost, in units of the currency.",
            ("key", "currency"),
        )
        self.seconds = Histogram(
            "wireglot_request_seconds",
            "From the request's head to the end of its answer.",
            ("dialect", "provider"),
        )
        self.first_byte = Histogram(
            "wireglot_first_byte_seconds",
            "From the request's head to the answer's first byte.",
            ("dialect", "provider"),
        )
        self.in_flight = Counter("wireglot_requests_in_flight", "Requests being answered.", (), "gauge")
        self.retries = Counter("wireglot_retries_total", "Further attempts at a target.", ("provider",))
        self.fallbacks = Counter(
            "wireglot_fallbacks_total",
            "Requests that fell back from this provider to the next.",
            ("provider",),
        )
        self.losses = Counter(
            "wireglot_losses_total", "Requests with a loss of this feature.", ("feature", "grade")
        )
        self.upstream_errors = Counter(
            "wireglot_upstream_errors_total", "Attempts that a provider failed.", ("provider", "kind")
        )
        self.stream_flaws = Counter(
            "wireglot_stream_flaws_total",
            "Answers in which the provider's stream broke a rule of its dialect.",
            ("provider", "flaw"),
        )
        self.hosted_calls = Counter(
            "wireglot_hosted_calls_total",
            "Calls of hosted tools that the gateway ran; `outcome`: ok, or the error.",
            ("tool", "backend", "outcome"),
        )
        self.client_telemetry = Counter(
            "wireglot_client_telemetry_total", "OTLP requests of clients.", ("signal", "outcome")
        )
        self.reload_failures = Counter(
            "wireglot_config_reload_failures_total", "New configurations that were rejected."
        )
        self.sink_failures = Counter(
            "wireglot_sink_failures_total",
            "Records that a sink of logs, metrics or traces failed.",
            ("sink",),
        )
        self._build = Counter("wireglot_build_info", "The running version.", ("version",), "gauge")
        self._build.add((version,))
        self._cells: dict[tuple[object, ...], _Cells] = {}
        self._all: list[Counter | Histogram | Reading] = [
            self.requests, self.tokens, self.usage, self.cost, self.unpriced, self.key_requests,
            self.key_tokens, self.key_cost, self.seconds, self.first_byte, self.in_flight, self.retries,
            self.fallbacks, self.losses, self.upstream_errors, self.stream_flaws, self.hosted_calls,
            self.client_telemetry,
            self.reload_failures, self.sink_failures,
            self._build,
        ]  # fmt: skip

    def read(
        self,
        name: str,
        about: str,
        read: Callable[[], Readings],
        labels: Labels = (),
        kind: Literal["counter", "gauge"] = "gauge",
    ) -> None:
        """Show numbers kept elsewhere (connections, the queue, breakers) under `wireglot_` + name."""
        self._all.append(Reading(f"wireglot_{name}", about, labels, read, kind))

    @property
    def currency(self) -> str:
        return self._currency

    def count_in(self, currency: str) -> None:
        """Another currency has its own series: a sum of both would be in neither."""
        if currency != self._currency:
            self._currency = currency
            self._cells.clear()

    def finish(self, record: ExchangeRecord) -> None:
        alike = (_alike_of(record), record.usage is None, record.cost is None)
        cells = self._cells.get(alike)
        if cells is None:
            model = self.models.label(record.upstream_model, record.outcome == "ok" and record.status < 400)
            caller = self.keys.label(record.caller, True)
            cells = _Cells(self, record, model, caller)
            if OTHER not in (model, caller):  # one without its own label may get one later
                if len(self._cells) >= _MAX_CELLS:
                    self._cells.clear()
                self._cells[alike] = cells
        cells.count(record)
        if record.attempts > 1 or record.fallbacks:
            self._count_attempts(record)
        for bent in {(loss.feature, loss.grade) for loss in record.grouped_losses()} if record.losses else ():
            self.losses.add(bent)
        for flaw in record.flaws:
            if flaw in FLAWS:  # those of token counts are counted with the usage
                self.stream_flaws.add((record.provider, flaw))

    def _count_attempts(self, record: ExchangeRecord) -> None:
        for target in record.fallbacks:
            self.fallbacks.add((target.partition("/")[0],))
        again = record.attempts - 1 - len(record.fallbacks)
        if again > 0:
            self.retries.add((record.provider,), again)

    def render(self) -> bytes:
        out: list[str] = []
        for metric in self._all:
            try:
                metric.render(out)
            except Exception:  # numbers kept elsewhere that cannot be read must not hide all others
                self.sink_failures.add(("metrics",))
        return "".join(out).encode("utf-8", "replace")


_COMPUTED: Final = tuple(
    source.name for source in MARKS.sources("metrics") if source.name.startswith("wireglot_")
)
"""Metrics, which count something of a request; the other names are labels."""
_LABELS: Final = MARKS.copied("metrics", _COMPUTED)
_alike_of: Final = tuple_of(_LABELS)
_labels_of: Final = dict_of(_LABELS)


class _Cells:
    """The cells of requests that have the same labels."""

    __slots__ = ("costs", "first_byte", "ones", "seconds", "tokens")

    def __init__(self, metrics: Metrics, record: ExchangeRecord, model: str, caller: str) -> None:
        values = _labels_of(record)
        values["status"] = str(record.status)
        values["model"], values["key"], values["currency"] = model, caller, metrics.currency

        def labels(metric: Counter | Histogram, kind: str = "") -> Labels:
            return tuple([kind if label == "kind" else values[label] for label in metric.labels])

        self.seconds = metrics.seconds.spread(labels(metrics.seconds))
        self.first_byte = metrics.first_byte.spread(labels(metrics.first_byte))
        counted, summed, paid = [metrics.requests], [metrics.tokens], []
        if caller:
            counted.append(metrics.key_requests)
            summed.append(metrics.key_tokens)
            paid.append(metrics.key_cost)
        if record.usage is not None:
            counted.append(metrics.usage)
            if record.cost is None:
                counted.append(metrics.unpriced)
            else:
                paid.append(metrics.cost)
        self.ones = [metric.cell(labels(metric)) for metric in counted]
        self.tokens = [[metric.cell(labels(metric, kind)) for kind in KINDS] for metric in summed]
        self.costs = [metric.cell(labels(metric)) for metric in paid]

    def count(self, record: ExchangeRecord) -> None:
        for cell in self.ones:
            cell.value += 1
        self.seconds.observe(record.finished - record.started)
        if record.first_byte is not None:
            self.first_byte.observe(record.first_byte - record.started)
        if record.usage is None:
            return
        numbers = record.kinds()
        for cells in self.tokens:
            for cell, number in zip(cells, numbers, strict=True):
                cell.value += number
        if record.cost is not None:
            for cell in self.costs:
                cell.value += record.cost / MICRO


def _head(name: str, about: str, kind: str) -> str:
    return f"# HELP {name} {about}\n# TYPE {name} {kind}\n"


def _braces(names: Labels, values: Labels) -> str:
    if not names:
        return ""
    return (
        "{" + ",".join(f'{name}="{_quoted(value)}"' for name, value in zip(names, values, strict=True)) + "}"
    )


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def number_text(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
