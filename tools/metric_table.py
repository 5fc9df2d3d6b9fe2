"""Write docs/reference/metrics.md: the metrics that a running gateway shows, with their labels."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.blocks import table
from wireglot.gateway.observe import workers
from wireglot.testing.live_gateway import LiveGateway

_HELP = re.compile(r"# HELP (\S+) (.*)\n# TYPE \S+ (\w+)\n")


def page() -> Iterator[str]:
    yield "# Metrics"
    yield ""
    yield "Metrics in the response of `GET /metrics`, for Prometheus."
    yield "[How to scrape, and what to watch](../operations.md#health-readiness-metrics);"
    yield "[a dashboard and alerts](../monitoring.md)."
    yield ""
    yield metric_table()
    yield ""
    yield "`model` is the provider's model name, if it is configured or a request to it succeeded;"
    yield "at most 200 names are used, others are `other`. With several workers, values are summed, except"
    yield "`wireglot_breaker_open`, which is the maximum."


def metric_table() -> str:
    rows = [
        (f"`{name}`", kind, ", ".join(f"`{label}`" for label in labels), about)
        for name, kind, labels, about in metrics()
    ]
    return table(("metric", "kind", "labels", "what"), rows)


def metrics() -> list[tuple[str, str, tuple[str, ...], str]]:
    """Name, kind, labels and meaning of each."""
    with LiveGateway() as gateway:
        shown = list(gateway.process.observer.metrics._all)  # their labels show in no scrape before a request
    found = []
    for metric in shown:
        head = _HELP.fullmatch(metric._head)
        assert head is not None
        found.append((metric.name, head[3], metric.labels, head[2]))
    census = _HELP.match(workers._census(1, 0).decode())
    assert census is not None
    return [*found, (census[1], census[3], ("state",), f"{census[2].rstrip('.')}, if there are several.")]
