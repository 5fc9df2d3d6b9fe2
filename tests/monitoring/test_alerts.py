"""[M7] The alert rules ask only for what a gateway tells, and Prometheus's own tool runs their tests."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.monitoring.known_metrics import checked, known, left
from tests.tiers import rows
from tools.monitoring.panels import ROWS
from tools.monitoring.rules import FOLDER, RULES, TESTS, Alert, alerts

ALERTS = alerts()
PAGE = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text(encoding="utf-8")
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not here: make promtool")


@rows("alert", ALERTS, ids=[alert.name for alert in ALERTS])
def test_an_alert_asks_for_what_a_gateway_tells(alert: Alert) -> None:
    asked = checked(alert.expression)
    assert set(alert.annotations) == {"summary", "description"}
    reported = {
        label for text in alert.annotations.values() for label in re.findall(r"\$labels\.(\w+)", text)
    }
    assert reported <= left(asked), "a sentence with a hole in it"


def test_all_rules_are_read() -> None:
    assert len(ALERTS) == RULES.read_text(encoding="utf-8").count("expr:") >= 10


def test_the_obvious_is_watched() -> None:
    watched = {metric for alert in ALERTS for metric in checked(alert.expression).metrics}
    assert watched >= {
        "up", "wireglot_breaker_open", "wireglot_key_budget_used_ratio", "wireglot_losses_total",
        "wireglot_usage_journal_bytes", "wireglot_usage_journal_limit_bytes", "wireglot_store_down",
    }  # fmt: skip


def test_every_alert_is_explained_and_its_test_names_real_series() -> None:
    tests = TESTS.read_text(encoding="utf-8")
    for alert in ALERTS:
        assert f"`{alert.name}`" in PAGE
        assert f'alertname="{alert.name}"' in tests
    for metric, labels in re.findall(r"series: '(\w+){(.*?)}'", tests):
        assert set(re.findall(r"(\w+)=", labels)) == known()[metric], metric


@needs_promtool
def test_promtool_takes_the_rules_and_their_tests_pass() -> None:
    assert PROMTOOL is not None
    for arguments in (
        ("check", "rules", RULES.name),
        ("check", "config", "--syntax-only", "prometheus.yml"),
        ("test", "rules", TESTS.name),
    ):
        done = subprocess.run((PROMTOOL, *arguments), cwd=FOLDER, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_promtool_takes_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    assert PROMTOOL is not None
    queries = [query for row in ROWS for panel in row.panels for query in panel.queries]
    lines = ["groups:", "  - name: dashboard", "    rules:"]
    for at, query in enumerate(queries):
        expression = re.sub(r"\$__(rate_interval|range)", "5m", query.expression)
        lines += [f"      - record: panel:number_{at}", f"        expr: {expression!r}"]
    rules = tmp_path / "dashboard.rules.yml"
    rules.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = subprocess.run(
        (PROMTOOL, "check", "rules", str(rules)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(queries)} rules found" in done.stdout
