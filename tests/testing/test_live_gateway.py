"""The gateway that tests of one's own can run."""

import threading
import urllib.request

import pytest

from tests.tiers import rows
from wireglot.gateway.config import ConfigError
from wireglot.gateway.state.tasks import Pace
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream


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


@rows(
    "dialect, path",
    [
        ("anthropic", ""),
        ("openai-chat", "/v1"),
        ("openai-responses", "/v1"),
        ("gemini", "/v1beta"),
        ("code-assist", ""),
    ],
)
def test_one_before_an_upstream_sends_every_model_there(dialect, path):
    upstream = ScriptedUpstream(port=1234)
    gateway = LiveGateway.before(upstream, dialect, "[server]\ntrace = true", max_retries="7")
    assert gateway._toml == (
        f'[providers.mine]\ndialect = "{dialect}"\nbase_url = "http://127.0.0.1:1234{path}"\n'
        'api_key = "upstream-key-0123456789"\nmax_retries = 7\n[models]\n"*" = "mine/*"\n'
        "[server]\ntrace = true"
    )


def test_what_a_gateway_logs_can_be_waited_for(tmp_path):
    with LiveGateway(folder=tmp_path, environ={"XDG_DATA_HOME": str(tmp_path / "data")}) as gateway:
        assert gateway.url == f"http://127.0.0.1:{gateway.port}"
        assert (tmp_path / "data").exists()
        with pytest.raises(TimeoutError, match=r"still \[\]"):
            gateway.wait_log(timeout=0.0)
        ask(gateway)
        (line,) = gateway.wait_log()
        assert line["event"] == "request"
        assert line["model"] == "demo"
        assert gateway.log("nothing of this name") == []
        with (tmp_path / "log").open("ab") as log:
            log.write(b'{"event": "request", "half')
        assert gateway.log() == [line], "a line that is half written is left for later"
        with pytest.raises(TimeoutError):
            gateway.wait_log(2, timeout=0.0)
        gateway.reconfigure('[models]\nother = "demo/demo"\n')
        assert (tmp_path / "wireglot.toml").read_text() == '[models]\nother = "demo/demo"\n'


def test_the_pace_can_be_set_before_it_starts():
    pace = Pace()
    gateway = LiveGateway()
    assert gateway.at(pace) is gateway
    assert gateway._pace is pace


def test_work_is_done_in_the_loop_of_the_gateway():
    async def where() -> str:
        return threading.current_thread().name

    with LiveGateway("[server]\nport = 1\n") as gateway:
        assert gateway.call(where()) == "gateway"
        assert gateway.port > 1, "any that is free"
