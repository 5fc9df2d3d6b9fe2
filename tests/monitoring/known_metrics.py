"""What a gateway tells Prometheus, and whether an expression asks for nothing else."""

from __future__ import annotations

from functools import cache

from tools import metric_table
from tools.monitoring.promql import Named, named

_SCRAPED = {"job", "instance"}
"""Labels that Prometheus itself puts on what it scrapes."""


@cache
def known() -> dict[str, set[str]]:
    """Every series that a running gateway has, with its labels."""
    found = {"up": _SCRAPED}
    for name, kind, labels, _ in metric_table.metrics():
        if kind == "histogram":
            found |= {f"{name}_{part}": {*labels, *_SCRAPED} for part in ("sum", "count")}
            found[f"{name}_bucket"] = {*labels, *_SCRAPED, "le"}
        else:
            found[name] = {*labels, *_SCRAPED}
    return found


def checked(expression: str) -> Named:
    """What it names, if a gateway has all of that."""
    asked = named(expression)
    assert asked.metrics, f"names no metric: {expression}"
    for metric, labels in asked.metrics.items():
        assert metric in known(), f"no gateway tells {metric}: {expression}"
        assert labels <= known()[metric], f"{metric} has no {labels - known()[metric]}: {expression}"
    return asked


def left(asked: Named) -> set[str]:
    """Labels that its result can have."""
    if asked.labels is not None:
        return asked.labels
    return set.intersection(*(known()[metric] for metric in asked.metrics))
