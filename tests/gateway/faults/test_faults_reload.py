"""FAULTS 91: a reload fails closed. Whatever becomes of the file, no door opens that is shut."""

from __future__ import annotations

import http.client
import os
import signal
import sys
from pathlib import Path

import pytest

from proofs.lab import reloads
from tests.gateway.faults.faults_kit import every_dialect
from tests.gateway.faults.faults_stages import digest_of
from tests.gateway.faults.test_faults_process import Served, serving, workers_of
from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot_core.wire.json import decode

KEY = "key-of-the-first-team"
KEYS = f'[keys]\nfirst = "{digest_of(KEY)}"\n'
PUBLIC = '[server]\nhost = "0.0.0.0"\n[providers.demo]\n'
LOOPBACK = "[providers.demo]\n"
OPEN = {
    "empty": "",
    "comments": "# soon\n",
    "no keys": "[providers.demo]\n",
    "no keys, loopback": '[server]\nhost = "127.0.0.1"\n[providers.demo]\n',
    "an empty table of keys": "[providers.demo]\n[keys]\n",
    "require_key off": "[server]\nrequire_key = false\n[providers.demo]\n",
}


def get(port: int, path: str, key: str = "") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_SECONDS)
    try:
        connection.request("GET", path, headers={"x-api-key": key} if key else {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@rows("name", OPEN)
@rows("bound", [PUBLIC, LOOPBACK], ids=["public", "loopback"])
def test_a_file_without_keys_is_refused_and_reported_and_the_old_settings_stay(bound: str, name: str) -> None:
    """[A1]"""
    with LiveGateway(bound + KEYS) as gateway:
        assert get(gateway.port, "/v1/models")[0] == 401
        gateway.reconfigure(OPEN[name])
        lines = gateway.wait_log(1, "reload refused")
        assert lines[0]["level"] == "error"
        assert get(gateway.port, "/v1/models")[0] == 401
        assert get(gateway.port, "/v1/models", KEY)[0] == 200
        assert decode(get(gateway.port, "/readyz")[1]) == {"status": "ready", "config": "refused"}
        assert b"wireglot_config_refused 1" in gateway.process.observer.metrics.render()
        gateway.reconfigure(bound + KEYS + "# as before\n")
        gateway.wait_log(1, "reloaded")
        assert decode(get(gateway.port, "/readyz")[1]) == {"status": "ready"}
        assert b"wireglot_config_refused 0" in gateway.process.observer.metrics.render()


def test_a_gateway_that_asks_for_keys_of_its_store_goes_on_to(tmp_path: Path) -> None:
    """[A1] `require_key` cannot be dropped either: nobody may have made a key yet."""
    with LiveGateway("[server]\nrequire_key = true\n[providers.demo]\n") as gateway:
        gateway.reconfigure("[providers.demo]\n")
        gateway.wait_log(1, "reload refused")
        assert get(gateway.port, "/v1/models")[0] == 401


def test_a_host_that_takes_a_restart_is_not_taken_for_the_bound_one() -> None:
    """[A1] Names that may be called follow the socket."""
    with LiveGateway(PUBLIC + KEYS) as gateway:
        gateway.reconfigure(LOOPBACK + KEYS)
        gateway.wait_log(1, "reloaded")
        assert gateway.process.gateway.settings.server.host == "0.0.0.0"


def test_new_limits_hold_for_clients_memory_and_upstream_connections() -> None:
    with LiveGateway(LOOPBACK) as gateway:
        assert get(gateway.port, "/v1/models")[0] == 200
        gateway.reconfigure(LOOPBACK + "[limits]\nheader_count = 1\nbuffered = 2_000_000\npool = 3\n")
        gateway.wait_log(1, "reloaded")
        status, answer = get(gateway.port, "/v1/models")
        assert (status, decode(answer)["error"]["code"]) == (431, "headers_too_large")
        process = gateway.process
        assert process.gateway.account.limit == 2_000_000
        assert process._http._limits.pool == 3


@pytest.mark.skipif(sys.platform == "win32", reason="signals and fork are Unix's")
def test_a_worker_that_replaces_another_lets_no_key_in_that_was_taken_back(tmp_path: Path) -> None:
    """[A1] It has the settings of its siblings, though the file holds nothing that could be loaded."""
    other = f'[keys]\nother = "{digest_of("key-of-the-other-team")}"\n'
    with ScriptedUpstream() as upstream:
        toml = every_dialect(upstream)
        with serving(upstream, tmp_path, "--workers", "2", more=KEYS) as served:
            _reload(served, tmp_path, toml + other, "reloaded", 2)
            assert get(served.port, "/v1/models", KEY)[0] == 401
            _reload(served, tmp_path, "", "reload refused", 2)
            before = workers_of(served)
            for worker in before:
                os.kill(worker, signal.SIGKILL)
            wait_until(lambda: len(set(workers_of(served)) - set(before)) == 2)
            wait_until(lambda: served.log.read_bytes().count(b'"event":"reload refused"') >= 4)
            for _ in range(6):
                assert get(served.port, "/v1/models", KEY)[0] == 401
                assert get(served.port, "/v1/models")[0] == 401
                assert get(served.port, "/v1/models", "key-of-the-other-team")[0] == 200


def _reload(served: Served, folder: Path, toml: str, event: str, count: int) -> None:
    (folder / "wireglot.toml").write_text(toml)
    served.process.send_signal(signal.SIGHUP)
    wait_until(lambda: served.log.read_bytes().count(b'"event":"%s"' % event.encode()) >= count)


@pytest.mark.whole
@pytest.mark.skipif(sys.platform == "win32", reason="signals and fork are Unix's")
def test_reloads_under_load_half_of_them_bad_fail_no_request_and_open_no_door(tmp_path: Path) -> None:
    """[A1] The lab's run in small; FAULTS 91"""
    options = ["--reloads", "8", "--clients", "2", "--pause", "0.01", "--out", str(tmp_path)]
    assert reloads.main(options) == 0
