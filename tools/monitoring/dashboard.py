"""The panels as Grafana's JSON: `python -m tools.monitoring.dashboard` writes it to deploy/grafana."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tools.monitoring.panels import ROWS, Panel, Row

FILE: Final = Path(__file__).parents[2] / "deploy" / "grafana" / "wireglot.json"
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH: Final = 24
_HEIGHTS: Final = {"stat": 4, "timeseries": 8, "bargauge": 8, "table": 8}


def document() -> dict[str, Any]:
    """Without ids of any Grafana: it can be imported by hand, or put into a provisioned folder."""
    return {
        "title": "Wireglot",
        "uid": "wireglot",
        "description": "Traffic, providers, cost, keys, losses and state of Wireglot gateways.",
        "tags": ["wireglot", "llm"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": list(_variables())},
        "annotations": {"list": []},
        "links": [],
        "panels": list(_panels()),
    }


def written() -> str:
    return json.dumps(document(), indent=2) + "\n"


def _variables() -> Iterator[dict[str, Any]]:
    yield {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
        "hide": 0,
    }
    for name, query in (
        ("job", "label_values(wireglot_build_info, job)"),
        ("instance", 'label_values(wireglot_build_info{job=~"$job"}, instance)'),
    ):
        yield {
            "name": name,
            "type": "query",
            "datasource": _SOURCE,
            "definition": query,
            "query": {"query": query, "refId": name},
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": ".+",
            "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
            "hide": 0,
        }


def _panels() -> Iterator[dict[str, Any]]:
    number, top = 1, 0
    for row in ROWS:
        yield _row(row, number, top)
        number, top, left, height = number + 1, top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > _WIDTH:
                top, left, height = top + height, 0, 0
            yield _panel(panel, number, left, top)
            height = max(height, _HEIGHTS[panel.kind])
            number, left = number + 1, left + panel.width
        top += height


def _row(row: Row, number: int, top: int) -> dict[str, Any]:
    place = {"x": 0, "y": top, "w": _WIDTH, "h": 1}
    return {
        "id": number,
        "type": "row",
        "title": row.title,
        "collapsed": False,
        "gridPos": place,
        "panels": [],
    }


def _panel(panel: Panel, number: int, left: int, top: int) -> dict[str, Any]:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": {"x": left, "y": top, "w": panel.width, "h": _HEIGHTS[panel.kind]},
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": _SOURCE,
                "expr": query.expression,
                "legendFormat": query.legend or "__auto",
                "instant": panel.kind != "timeseries",
                "range": panel.kind == "timeseries",
                "editorMode": "code",
            }
            for at, query in enumerate(panel.queries)
        ],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _OPTIONS[panel.kind],
    }


def _defaults(panel: Panel) -> dict[str, Any]:
    found: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.steps:
        first, *rest = panel.steps
        steps = [{"color": first[1], "value": None}, *({"color": to, "value": at} for at, to in rest)]
        found |= {"thresholds": {"mode": "absolute", "steps": steps}, "color": {"mode": "thresholds"}}
    if panel.kind == "bargauge":
        found["max"] = 1
    if panel.kind == "timeseries":
        mode = "normal" if panel.stacked else "none"
        found["custom"] = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 20 if panel.stacked else 5,
            "showPoints": "never",
            "stacking": {"mode": mode, "group": "A"},
        }
    return found


_REDUCED: Final = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "stat": {"reduceOptions": _REDUCED, "colorMode": "value", "graphMode": "area", "textMode": "auto"},
    "bargauge": {"reduceOptions": _REDUCED, "orientation": "horizontal", "displayMode": "basic"},
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "table": {"showHeader": True},
}

if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
