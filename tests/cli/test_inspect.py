"""`wireglot inspect`: the page of a gateway, or of one exported exchange."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, PLAIN, run
from tests.core.traces.conversations import conversation
from tests.processes import ForkedCommand, run_forked
from tests.traces.recorded import recorded
from wireglot.cli.inspect import page_link
from wireglot.cli.remote_gateway import address_of
from wireglot.cli.terminal import Failed
from wireglot.testing.live_gateway import LiveGateway
from wireglot_core.traces.file import write_trace


def test_the_page_of_a_gateway_is_named() -> None:
    with LiveGateway("[providers.demo]\n") as gateway:
        done = run("inspect", "--url", gateway.url, "--no-browser")
    assert done.returncode == 0
    assert done.stdout.decode() == f"{gateway.url}/inspector\n"


def test_the_administrator_is_signed_in_also_where_everyone_may_look() -> None:
    with LiveGateway("[providers.demo]\n") as gateway:
        address = address_of(gateway.url)
        key = gateway.process.state.keys.operator_key = "operator-key-0123456789"
        page = f"{gateway.url}/inspector"
        assert page_link(address, key) == page
        link = page_link(address, key, as_admin=True)
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert opener.open(link, timeout=30).geturl() == page
        with opener.open(f"{page}/api/session", timeout=30) as answer:
            assert json.load(answer)["access"] == "admin"
        with pytest.raises(Failed, match="not your own gateway"):
            page_link(address, "", as_admin=True)


def test_a_browser_is_asked_to_open_it(tmp_path: Path) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    with LiveGateway("[providers.demo]\n") as gateway:
        environ = {**PLAIN, "BROWSER": f"{browser} %s"}
        done = run_forked([*COMMAND, "inspect", "--url", gateway.url], env=environ, timeout=60)
    assert done.returncode == 0
    assert opened.read_text() == f"{gateway.url}/inspector\n"


def test_an_exported_exchange_has_a_page_of_its_own_until_it_is_interrupted(tmp_path: Path) -> None:
    trace = recorded("anthropic", "gemini", conversation("anthropic"), stream=True)
    path = tmp_path / "old.wgtrace.json"
    path.write_bytes(write_trace(trace))
    (tmp_path / "tmp").mkdir()
    environ = {**PLAIN, "HOME": str(tmp_path), "TMPDIR": str(tmp_path / "tmp")}
    command = [*COMMAND, "inspect", str(path), "--no-browser"]
    with ForkedCommand(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        address = running.stdout.readline().strip()
        base, _, id = address.partition("/inspector/x/")
        assert id == trace.row.id
        with urllib.request.urlopen(f"{base}/inspector/api/exchanges", timeout=30) as answer:
            assert [row["id"] for row in json.load(answer)["rows"]] == [id]
        with urllib.request.urlopen(f"{base}/inspector/api/exchanges/{id}", timeout=30) as answer:
            shown = json.load(answer)
        os.kill(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 0
    assert "interrupted" not in said
    assert shown["attempts"][0]["links"]
    assert base.startswith("http://127.0.0.1:")
    assert list((tmp_path / "tmp").iterdir()) == []
