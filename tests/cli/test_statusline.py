"""The status line of Claude Code: always one line, whatever it is given and whatever the gateway does."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from tests.cli.running import run
from tests.tiers import rows
from wireglot.cli import statusline
from wireglot.cli.run.clients import CLIENTS
from wireglot.cli.run.pointing import Door
from wireglot.testing.live_gateway import LiveGateway

SESSION = "0b7c2f5e-demo-session"
TOML = """
currency = "EUR"
[providers.demo]
[prices]
"demo/*" = { input = 1000, output = 1000 }
"""
GIVEN: dict[str, Any] = {
    "session_id": SESSION,
    "model": {"id": "demo/demo-chat", "display_name": "Demo"},
    "context_window": {"context_window_size": 200_000, "total_input_tokens": 50_000},
}


@pytest.fixture(scope="module")
def gateway() -> Iterator[LiveGateway]:
    with LiveGateway(TOML) as found:
        yield found


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, gateway: LiveGateway) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{gateway.port}")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "any")


def shown(given: Any, *options: str) -> str:
    done = run("statusline", *options, given=given)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    assert text.endswith("\n")
    assert text.count("\n") == 1
    return text[:-1]


def ask(gateway: LiveGateway, model: str, **more: Any) -> None:
    client = anthropic.Anthropic(base_url=f"http://127.0.0.1:{gateway.port}", api_key="any", max_retries=0)
    client.messages.create(
        model=model,
        max_tokens=64,
        messages=[{"role": "user", "content": "hello"}],
        extra_body=more,
        extra_headers={"x-claude-code-session-id": SESSION},
    )


def test_model_route_cost_context_and_serious_losses_are_shown(gateway: LiveGateway) -> None:
    assert shown({**GIVEN, "session_id": "not-yet"}) == "Demo · 25% of 200k"
    ask(gateway, "demo/demo-chat")
    first = shown(GIVEN)
    assert first.startswith("Demo → demo/demo-chat · 0.")
    assert first.endswith(" EUR · 25% of 200k")
    file = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}
    ask(gateway, "demo/demo-gemini", messages=[{"role": "user", "content": [file]}])
    assert shown(GIVEN).endswith(" · lost: file_reference")


@rows(
    ("given", "line"),
    [
        (b"", "wireglot"),
        (b"no json", "wireglot"),
        (b"[]", "wireglot"),
        ({"model": "x"}, "wireglot"),
        ({"model": {"id": "m"}}, "m"),
        ({"model": {"id": "m\nn\x1b[2J"}}, "m n [2J"),
        ({"model": {"id": "m"}, "context_window": {"context_window_size": 0}}, "m"),
        ({"model": {"id": "m"}, "session_id": 7}, "m"),
        (
            {"model": {"id": "m"}, "session_id": "a/../b"},
            "m · gateway: the path contains characters or segments that are not accepted",
        ),
    ],
)
def test_anything_else_on_the_input_is_no_error(given: Any, line: str) -> None:
    assert " ".join(shown(given).replace("\x1b", " ").split()) == line


def test_a_closed_input_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert statusline.run(argparse.Namespace(url="")) == 0
    assert capsys.readouterr().out == "wireglot\n"


def test_a_gateway_that_is_away_is_said_in_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "connection refused" in shown(GIVEN, "--url", "http://127.0.0.1:9")
    assert "expected http://HOST:PORT" in shown(GIVEN, "--url", "here")
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    assert shown(GIVEN).endswith(" · gateway: ANTHROPIC_BASE_URL is not set")


def test_run_sets_it_for_the_run_and_only_where_it_is_asked_to() -> None:
    door = Door("http://127.0.0.1:8484", "key")
    plain = json.loads(CLIENTS["claude"].point(door, {}).files["claude-settings.json"])
    assert "statusLine" not in plain
    door = Door("http://127.0.0.1:8484", "key", statusline=True)
    found = json.loads(CLIENTS["claude"].point(door, {}).files["claude-settings.json"])["statusLine"]
    assert found["type"] == "command"
    assert shlex.split(found["command"])[1:] == [
        "-m", "wireglot.cli", "statusline", "--url", "http://127.0.0.1:8484",
    ]  # fmt: skip
    refused = run("run", "codex", "--statusline")
    assert refused.returncode == 2
    assert b"codex has no configurable status line" in refused.stderr
