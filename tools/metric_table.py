"""The metrics of docs/operations.md: those that a running gateway shows, with their labels."""

from __future__ import annotations

import re

from tools.blocks import table
from wireglot.gateway.observe import workers
from wireglot.testing.live_gateway import LiveGateway

_HELP = re.compile(r"# HELP (\S+) (.*)\n# TYPE \S+ (\w+)\n")


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
        found.append((metric.name, head[3], metric._labels, head[2]))
    census = _HELP.match(workers._census(1, 0).decode())
    assert census is not None
    return [*found, (census[1], census[3], ("state",), f"{census[2].rstrip('.')}, where there are several.")]
