"""What a status line, a sign-in that waits and the gateway's own commands read again and again."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest

from tests.waiting import DEADLINE_SECONDS
from wireglot.cli.remote_gateway import address_of, ask
from wireglot.testing.live_gateway import LiveGateway


@pytest.fixture(scope="module")
def gateway() -> Iterator[LiveGateway]:
    with LiveGateway("[providers.demo]\n") as running:
        yield running


def got(gateway: LiveGateway, path: str, agent: str = "Mozilla/5.0") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS)
    try:
        connection.request("GET", path, headers={"user-agent": agent})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def test_reads_that_are_repeated_are_in_no_list_and_logged_only_if_they_fail(gateway: LiveGateway) -> None:
    for path in ("/v1/usage", "/openai/v1/usage", "/v1/sessions"):
        assert got(gateway, path) == 200
    assert got(gateway, "/v1/sessions/nowhere") == 404
    assert ask(address_of(gateway.url), "GET", "/v1/models").status == 200, "as a command does"
    assert got(gateway, "/v1/models", "claude-cli/2.1") == 200
    shown = gateway.wait_log(2)
    assert [(line["path"], line["status"]) for line in shown if "path" in line] == [
        ("/v1/sessions/nowhere", 404)
    ]
    assert len(shown) == 2
    rows = gateway.process.gateway.traces.rows.snapshot()
    assert len(list(gateway.process.gateway.traces.rows.formatted(rows))) == 1
