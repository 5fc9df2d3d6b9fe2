"""The gateway that tests of one's own can run."""

import threading
import urllib.request

import pytest

from wireglot.gateway.config import ConfigError
from wireglot.testing.live_gateway import LiveGateway


def ready(gateway: LiveGateway) -> int:
    with urllib.request.urlopen(f"{gateway.url}/health") as answer:
        return int(answer.status)


def ask(gateway: LiveGateway) -> None:
    body = b'{"model": "demo", "messages": [{"role": "user", "content": "Hello"}]}'
    headers = {"content-type": "application/json"}
    urllib.request.urlopen(
        urllib.request.Request(f"{gateway.url}/v1/chat/completions", body, headers)
    ).close()


def test_it_leaves_nothing_behind():
    with LiveGateway() as gateway:
        folder = gateway.folder
        assert ready(gateway) == 200
    assert not folder.exists()
    assert "gateway" not in {thread.name for thread in threading.enumerate()}


def test_a_configuration_that_cannot_be_used_leaves_nothing_running():
    gateway = LiveGateway('[server]\nhots = "typo"\n')
    with pytest.raises(ConfigError, match="hots"):
        gateway.start()
    assert not gateway.folder.exists()
    assert "gateway" not in {thread.name for thread in threading.enumerate()}


def test_a_folder_that_is_given_stays_for_the_next_gateway(tmp_path):
    folder = tmp_path / "data"
    with LiveGateway(folder=folder) as gateway:
        ask(gateway)
        first = gateway.wait_log()
    with LiveGateway(folder=folder) as gateway:
        assert gateway.log() == first


def test_nothing_of_the_environment_is_used(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-of-the-machine")
    with LiveGateway() as gateway:
        assert set(gateway.process.gateway.settings.providers) == {"demo"}
