"""[M7] The dashboard works as shipped: it is written from its panels, and asks only for what a gateway tells."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.monitoring.known_metrics import checked, known, left
from tests.tiers import rows
from tools.monitoring import dashboard
from tools.monitoring.panels import ROWS, Panel, Query

DOCUMENT: dict[str, Any] = json.loads(dashboard.FILE.read_text(encoding="utf-8"))
PANELS = [panel for panel in DOCUMENT["panels"] if panel["type"] != "row"]
ASKED = [
    pytest.param(panel, query, id=f"{panel.title} {at}")
    for row in ROWS
    for panel in row.panels
    for at, query in enumerate(panel.queries)
]


def test_the_file_is_as_its_panels_are() -> None:
    assert dashboard.FILE.read_text(encoding="utf-8") == dashboard.written(), (
        "python -m tools.monitoring.dashboard writes it again"
    )


@rows(("panel", "query"), ASKED)
def test_an_expression_asks_for_what_a_gateway_tells(panel: Panel, query: Query) -> None:
    asked = checked(query.expression)
    assert set(re.findall(r"{{(\w+)}}", query.legend)) <= left(asked), "a legend of a label that is not there"
    for labels in asked.metrics.values():
        assert {"job", "instance"} <= labels, "of the gateways that are chosen"
    if panel.kind == "timeseries" and len(panel.queries) > 1:
        assert query.legend, "two lines without names cannot be distinguished"


def test_no_counter_is_shown_without_its_rate() -> None:
    """What only grows says nothing: and after a restart it says something wrong."""
    for row in ROWS:
        for panel in row.panels:
            for query in panel.queries:
                for metric in re.findall(
                    r"(?<!rate\()(?<!increase\()\b(wireglot_\w+_total)\b", query.expression
                ):
                    raise AssertionError(f"{panel.title}: {metric}")


def test_variables_are_of_metrics_and_labels_that_are_there() -> None:
    queries = [each["definition"] for each in DOCUMENT["templating"]["list"] if each["type"] == "query"]
    assert len(queries) == 2
    for query in queries:
        metric, label = re.fullmatch(r"label_values\((\w+).*, (\w+)\)", query).groups()  # type: ignore[union-attr]  # one that does not match fails here
        assert label in known()[metric]


def test_panels_have_ids_of_their_own_and_do_not_lie_on_one_another() -> None:
    ids = [panel["id"] for panel in DOCUMENT["panels"]]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in DOCUMENT["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_it_belongs_to_no_grafana_in_particular() -> None:
    """Anyone who imports it chooses the Prometheus; nobody is asked for a source that is not there."""
    assert "id" not in DOCUMENT
    sources = {panel["datasource"]["uid"] for panel in PANELS}
    sources |= {target["datasource"]["uid"] for panel in PANELS for target in panel["targets"]}
    assert sources == {"${datasource}"}
    assert [each["name"] for each in DOCUMENT["templating"]["list"]] == ["datasource", "job", "instance"]


def test_what_matters_is_on_it() -> None:
    """Cost, keys, budgets, losses and the state of providers and store."""
    shown = {metric for row in ROWS for panel in row.panels for q in panel.queries
             for metric in checked(q.expression).metrics}  # fmt: skip
    assert shown >= {
        "wireglot_cost_total", "wireglot_unpriced_total", "wireglot_key_cost_total",
        "wireglot_key_requests_total", "wireglot_key_budget_used_ratio", "wireglot_losses_total",
        "wireglot_breaker_open", "wireglot_store_down", "wireglot_usage_journal_bytes",
    }  # fmt: skip
