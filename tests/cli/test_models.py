"""`wireglot models`: what can be asked now, and why the rest cannot."""

import json
from pathlib import Path

import pytest

from tests.cli.running import run
from wireglot_core.providers import spec as catalog


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine's own configuration, keys or data."""
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("MOONSHOT_API_KEY", "KIMI_API_KEY", "WIREGLOT_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def said(*arguments: str) -> str:
    done = run("models", *arguments)
    assert done.returncode == 0, done
    assert done.stderr == b""
    return done.stdout.decode()


def test_a_provider_with_its_key_is_listed_and_one_without_says_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MOONSHOT_API_KEY", "sk-mine")
    reported = said()
    line = next(line for line in reported.splitlines() if line.startswith("kimi/kimi-k3 "))
    assert "think" in line
    assert "  zai  " in reported
    assert "set ZAI_API_KEY" in reported
    assert "zai/" not in reported
    assert "zai/" in said("--all")
    assert "sk-mine" not in reported


def test_json_lines_tell_the_same() -> None:
    rows = [json.loads(line) for line in said("--json").splitlines()]
    assert all(row["on"] for row in rows)
    demo = next(row for row in rows if row["name"] == "demo/demo")
    assert (demo["context"], demo["output"]) == (200_000, 32_000)
    assert demo["price"] == {"input": 0.0, "output": 0.0}
    off = [json.loads(line) for line in said("--json", "--all").splitlines()]
    assert next(row for row in off if row["name"] == "kimi/kimi-k3")["off_because"] == (
        "set MOONSHOT_API_KEY or KIMI_API_KEY"
    )


def test_retired_models_are_listed_nowhere() -> None:
    retired = {
        f"{name}/{entry.match}"
        for name in catalog.names()
        for entry in catalog.provider(name).models
        if entry.is_name and entry.retired
    }
    listed = {json.loads(line)["name"] for line in said("--json", "--all").splitlines()}
    assert retired
    assert not retired & listed


def test_names_of_ones_own_and_prices_of_ones_own_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "wireglot.toml"
    file.write_text('[providers.demo]\n[models]\n"claude-*" = "demo/demo"\n')
    assert "claude-* -> demo/demo" in said("--config", str(file))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("kimi-k3", "kimi/kimi-k3 is off, set MOONSHOT_API_KEY or KIMI_API_KEY"),
        ("demo-anthropc", "did you mean demo-anthropic?"),
        ("x\\ny", "matches x y"),
    ],
)
def test_a_name_that_cannot_be_asked_is_reported(name: str, words: str) -> None:
    done = run("models", name.replace("\\n", "\n"))
    assert done.returncode == 1
    assert words in done.stderr.decode()
