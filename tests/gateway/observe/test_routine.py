"""What a status line, a sign-in that waits and the gateway's own commands read again and again."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest

from tests.waiting import DEADLINE_SECONDS, wait_until
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
    for path in ("/", "/v1/models", "/v1/models?limit=1000", "/v1/models/demo/demo", "/v1beta/models"):
        assert ask(address_of(gateway.url), "GET", path).status == 200, "as a command does"
    for path in ("/v1/sessions/nowhere", "/v1/requests/nowhere/losses", "/v1/models/nobody/nothing"):
        assert ask(address_of(gateway.url), "GET", path).status == 404, "as it does before it is there"
    assert got(gateway, "/v1/models", "claude-cli/2.1") == 200
    shown = gateway.wait_log(2)
    assert [(line["path"], line["status"]) for line in shown if "path" in line] == [
        ("/v1/sessions/nowhere", 404)
    ]
    assert len(shown) == 2
    rows = gateway.process.gateway.traces.rows.snapshot()
    assert len(list(gateway.process.gateway.traces.rows.formatted(rows))) == 1


def operations(gateway: LiveGateway) -> list[str]:
    return [line["operation"] for line in gateway.log()]


def test_no_user_agent_keeps_a_read_of_a_stored_answer_out_of_log_and_list(gateway: LiveGateway) -> None:
    asked = {"model": "demo/demo", "input": "[[demo:echo]] kept", "store": True}
    stored = ask(address_of(gateway.url), "POST", "/v1/responses", body=asked).document()["id"]
    assert got(gateway, f"/v1/responses/{stored}", "wireglot/0.2.0") == 200
    wait_until(lambda: operations(gateway)[-2:] == ["generate", "state"])
    rows = gateway.process.gateway.traces.rows
    listed = [row.path for row in rows.formatted(rows.snapshot())]
    assert {"/v1/responses", f"/v1/responses/{stored}"} <= set(listed)
