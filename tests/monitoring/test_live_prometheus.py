"""[M7] A real Prometheus scrapes a gateway, and answers every expression of the dashboard."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from proofs.servers import free_port
from tests.gateway.hosted.hosted_kit import chat_answer, chat_calls
from tests.gateway.hosted.search_server import SearchServer
from tests.gateway.state.usage_kit import Refused, ask, fetch
from tests.tiers import rows
from tests.waiting import wait_until
from tools.monitoring.panels import ROWS, Panel, Query
from tools.monitoring.rules import RULES
from wireglot.gateway.state.tasks import Pace
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

PROMETHEUS = shutil.which("prometheus")
pytestmark = pytest.mark.skipif(PROMETHEUS is None, reason="Prometheus is not here: make promtool")

KEY = "a-key-of-the-team-0123456789"
EMPTY = {"Odd usage", "Store", "Refused before any dialect was known", "Open breakers"}
"""Panels of which some lines are only there when something is wrong."""
QUERIES = [
    pytest.param(panel, query, id=f"{panel.title} {at}")
    for row in ROWS
    for panel in row.panels
    for at, query in enumerate(panel.queries)
]


class Prometheus:
    """A server of its own that asks one gateway every second."""

    def __init__(self, folder: Path, gateway: LiveGateway, metrics_key: str) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [
                {
                    "job_name": "wireglot",
                    "authorization": {"credentials": metrics_key},
                    "static_configs": [{"targets": [gateway.url.removeprefix("http://")]}],
                }
            ],
        }
        path = folder / "prometheus.yml"
        path.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
        address = self.url.removeprefix("http://")
        assert PROMETHEUS is not None
        self._process = subprocess.Popen(
            (PROMETHEUS, f"--config.file={path}", f"--storage.tsdb.path={folder / 'data'}",
             f"--web.listen-address={address}", "--log.level=error"),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def ask(self, expression: str) -> list[dict[str, Any]]:
        query = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{query}", timeout=30) as answer:
            document = json.load(answer)
        assert document["status"] == "success", document
        found: list[dict[str, Any]] = document["data"]["result"]
        return found

    def has(self, expression: str) -> bool:
        assert self._process.poll() is None, "it has ended"
        try:
            return bool(self.ask(expression))
        except OSError:
            return False  # it does not listen yet

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(60)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with ScriptedUpstream() as upstream, SearchServer() as search:
        base = f'dialect = "openai-chat"\nbase_url = "{upstream.url}/v1"\napi_key = "k"\n'
        base += "retry = { retries = 1 }\n"
        digest = sha256(KEY.encode()).hexdigest()
        toml = (
            f"[providers.first]\n{base}[providers.second]\n{base}"
            '[models]\n"m" = ["first/a", "second/b"]\n"n" = "second/n"\n'
            '[prices]\n"*/a" = { input = 1, output = 1 }\n"*/b" = { input = 1, output = 1 }\n'
            '[server]\nmetrics_key = "metrics-key-0123456789"\n'
            f'[search]\nbackend = "searxng"\nurl = "{search.url}"\n'
            f'[keys.team]\nhash = "sha256:{digest}"\ntokens_per_day = 100000\n'
        )
        with LiveGateway(toml).at(Pace(budgets_look_seconds=0.1)) as gateway:
            found = Prometheus(tmp_path_factory.mktemp("prometheus"), gateway, "metrics-key-0123456789")
            try:
                wait_until(lambda: found.has('wireglot_build_info{job="wireglot"}'))
                _traffic(gateway, upstream)
                # What a series begins with is no growth to Prometheus: it must have seen it before.
                wait_until(lambda: found.has("wireglot_key_cost_total > 0"))
                _traffic(gateway, upstream)
                wait_until(lambda: found.has("rate(wireglot_key_cost_total[1m]) > 0"))
                wait_until(lambda: found.has("wireglot_key_budget_used_ratio > 0"))
                yield found
            finally:
                found.close()


def _traffic(gateway: LiveGateway, upstream: ScriptedUpstream) -> None:
    """Something of everything, so that no panel is empty: answers, errors, retries, a fallback, losses, a stream that
    ends twice, a search."""
    headers = {"authorization": f"Bearer {KEY}"}
    for dialect in ("anthropic", "openai-chat", "gemini"):
        ask(gateway, dialect, "m", False, **headers)
        ask(gateway, dialect, "n", False, **headers)
    upstream.next(Behaviour(error=503), Behaviour(error=503))
    ask(gateway, "anthropic", "m", False, **headers)
    upstream.next(Behaviour(error=400))
    with pytest.raises(Refused):
        ask(gateway, "openai-chat", "n", False, **headers)
    twice = chat_answer({"content": "Done."}, stream=True)
    assert twice.pieces is not None
    upstream.next(replace(twice, pieces=(twice.pieces[0], *twice.pieces)))
    ask(gateway, "anthropic", "n", True, **headers)
    upstream.next(chat_calls(("web_search", {"query": "tower"})), chat_answer({"content": "Done."}))
    turn = {"role": "user", "content": "How high is the tower?"}
    tool = {"type": "web_search_20250305", "name": "web_search"}
    body = {"model": "n", "max_tokens": 100, "messages": [turn], "tools": [tool]}
    fetch(f"{gateway.url}/v1/messages", body, **headers)


@rows(("panel", "query"), QUERIES)
def test_the_dashboard_finds_something(prometheus: Prometheus, panel: Panel, query: Query) -> None:
    expression = re.sub(r"\$__(rate_interval|range)", "1m", query.expression)
    expression = expression.replace("$job", ".+").replace("$instance", ".+")
    found = prometheus.ask(expression)
    assert found or panel.title in EMPTY or "serious" in expression, expression
    for label in re.findall(r"{{(\w+)}}", query.legend):
        assert all(label in each["metric"] for each in found)


def test_the_rules_are_loaded_and_all_is_well(prometheus: Prometheus) -> None:
    assert prometheus.ask('count(ALERTS{alertname=~"Wireglot.+", alertstate="firing"})') == []
