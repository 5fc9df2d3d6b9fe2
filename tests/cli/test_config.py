"""`wireglot config check`: all problems, or a summary, and no secret in either."""

import contextlib
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import configure, run

GOOD = """
[providers.kimi]
api_key = "env:TEST_KEY"
[providers.mine]
dialect = "openai-chat"
base_url = "http://127.0.0.1:9001/v1"
api_keys = ["hush-1", "file:key"]
[models]
"claude-*" = "kimi/kimi-k3"
fast = [{ to = "mine/small", effort = ["low"], losses = "strict" }, { to = ["mine/big", "kimi/kimi-k3"] }]
[keys]
team-a = "sha256:c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00"
"""


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine's own configuration, keys or data."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    for name in (
        "WIREGLOT_CONFIG",
        "WIREGLOT_SECRET",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TEST_KEY", "hush-2")
    monkeypatch.chdir(tmp_path)


def test_a_good_file_is_summed_up(tmp_path: Path) -> None:
    (tmp_path / "wireglot.toml").write_text(GOOD)
    (tmp_path / "key").write_text("hush-3")
    done = run("config", "check")
    said = done.stdout.decode()
    assert done.returncode == 0
    assert "wireglot.toml: no problems" in said
    lines = [line.split() for line in said.splitlines()]
    kimi = ["openai-chat,", "openai-responses,", "anthropic", "https://api.moonshot.ai/v1", "env:TEST_KEY"]
    assert ["kimi", *kimi] in lines
    assert ["mine", "openai-chat", "http://127.0.0.1:9001/v1", "config,", "file:key"] in lines
    assert ["claude-*", "->", "kimi/kimi-k3"] in lines
    assert any(
        "-> mine/small" in line and "effort is low" in line and "strict" in line for line in said.splitlines()
    )
    assert "-> mine/big, then kimi/kimi-k3" in said
    assert ["team-a", "all", "models"] in lines
    assert "hush" not in said
    assert "c0ffee" not in said
    assert not (tmp_path / "home").exists()


def test_on_a_narrow_terminal_no_line_is_broken(tmp_path: Path) -> None:
    (tmp_path / "wireglot.toml").write_text(GOOD)
    (tmp_path / "key").write_text("hush-3")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "wireglot", "config", "check"]
    subprocess.run(
        command, stdout=theirs, stdin=subprocess.DEVNULL, env={**os.environ, "COLUMNS": "80"}, check=True
    )
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # what Linux says once nobody can write any more
        while piece := os.read(ours, 65536):
            said += piece
    os.close(ours)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", said.decode()).split("\r\n")
    assert "    https://api.moonshot.ai/v1" in lines
    assert max(map(len, lines)) <= 80


def test_every_problem_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text('[server]\nport = "x"\n[providers.kimi]\napi_key = "env:NOT_SET"\nkey = "hush"\n')
    done = run("config", "check", str(path))
    said = done.stdout.decode()
    assert done.returncode == 1
    assert "other.toml: 3 problems" in said
    for place in ("server.port", "providers.kimi.api_key", "providers.kimi.key"):
        assert f"  {place}\n    expected " in said
    assert "hush" not in said


def test_without_a_file_the_environment_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "hush")
    done = run("config", "check")
    assert done.returncode == 0
    assert "no file" in done.stdout.decode()
    assert "env:OPENAI_API_KEY" in done.stdout.decode()
    monkeypatch.setenv("WIREGLOT_PORT", "x")
    done = run("config", "check")
    assert done.returncode == 1
    assert "environment: 1 problem\n\n  WIREGLOT_PORT\n" in done.stdout.decode()


def test_a_file_that_is_not_there_is_a_problem() -> None:
    done = run("config", "check", "missing.toml")
    assert done.returncode == 1
    assert "a file that can be read" in done.stdout.decode()


def test_the_web_tools_are_listed_without_their_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAVE_API_KEY", "hush-hush-hush")
    configure(
        '[providers.demo]\n[search]\nbackend = "brave"\n[fetch]\nprivate_hosts = ["wiki.example.com"]\n'
    )
    done = run("config", "check")
    assert done.returncode == 0
    lines = [" ".join(line.split()) for line in done.stdout.decode().splitlines()]
    assert "search brave the vendor's host key from env:BRAVE_API_KEY" in lines
    assert "fetch pages public addresses, and wiki.example.com" in lines
    assert "hush" not in done.stdout.decode()
