"""Metrics tell of all callers: no client's key opens them."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from tests.gateway.faults.faults_stages import digest_of
from wireglot.testing.live_gateway import LiveGateway
from wireglot_core.wire.json import decode

CLIENT, METRICS, ADMIN = "the-key-of-a-client", "the-key-of-the-scraper", "the-secret-of-the-owner"
KEYS = f'[providers.demo]\n[keys]\nclient = "{digest_of(CLIENT)}"\n'


def scrape(gateway: LiveGateway, key: str = "", path: str = "/metrics") -> tuple[int, bytes]:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(gateway.url + path, headers=headers)) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read()


def test_a_clients_key_does_not_open_them() -> None:
    """[A8]"""
    with LiveGateway(f'[server]\nmetrics_key = "{METRICS}"\nadmin_secret = "{ADMIN}"\n{KEYS}') as gateway:
        status, said = scrape(gateway, CLIENT)
        assert status == 401
        assert "server.metrics_key" in decode(said)["error"]["message"]
        assert scrape(gateway)[0] == 401
        assert scrape(gateway, METRICS)[0] == 200
        assert scrape(gateway, ADMIN)[0] == 200


def test_their_key_opens_nothing_else() -> None:
    """[A8]"""
    with LiveGateway(f'[server]\nmetrics_key = "{METRICS}"\nadmin_secret = "{ADMIN}"\n{KEYS}') as gateway:
        assert scrape(gateway, METRICS, "/v1/models")[0] == 401
        assert scrape(gateway, METRICS, "/v1/admin/keys")[0] == 401


@pytest.mark.parametrize("keys", [KEYS, "[server]\nrequire_key = true\n[providers.demo]\n"])
def test_where_clients_need_keys_and_nobody_has_theirs_they_are_off_and_that_is_reported(keys: str) -> None:
    """[A8]"""
    with LiveGateway(keys) as gateway:
        status, said = scrape(gateway, CLIENT)
        assert status == 404
        assert "set server.metrics_key" in decode(said)["error"]["message"]
        assert any("server.metrics_key" in note for note in gateway.process.gateway.settings.notes)


def test_on_a_machine_without_keys_they_are_open_unless_they_have_one() -> None:
    """[A8]"""
    with LiveGateway("[providers.demo]\n") as gateway:
        assert scrape(gateway)[0] == 200
    with LiveGateway(f'[server]\nadmin_secret = "{ADMIN}"\n[providers.demo]\n') as gateway:
        assert scrape(gateway)[0] == 200
    with LiveGateway(f'[server]\nmetrics_key = "{METRICS}"\n[providers.demo]\n') as gateway:
        assert scrape(gateway)[0] == 401
        assert scrape(gateway, METRICS)[0] == 200


def test_the_variable_sets_their_key_and_no_sink_shows_it() -> None:
    """[A8]"""
    with LiveGateway(KEYS, environ={"WIREGLOT_METRICS_KEY": METRICS}) as gateway:
        assert scrape(gateway, METRICS)[0] == 200
        assert METRICS not in gateway.process.observer.redactor.text(f"it was {METRICS}")
