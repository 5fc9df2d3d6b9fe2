"""How an optional package is added, as the program says it: by the tool that installed the program."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tiers import rows
from wireglot_core import extras
from wireglot_core.extras import hint_for, install_hint, upgrade_for

CHECKOUT = {"url": "file:///src/wire%20glot", "dir_info": {"editable": True}}
FOLDER = {"url": "file:///src/wireglot", "dir_info": {}}
WHEEL = {"url": "file:///dist/wireglot-0.1.0-py3-none-any.whl", "archive_info": {}}
PIPX = ("/", "home", "ada", ".local", "share", "pipx", "venvs", "wireglot")
UV = ("/", "home", "ada", ".local", "share", "uv", "tools", "wireglot")
VENV = ("/", "home", "ada", ".venv")


@rows("prefix, origin, command", [
    (VENV, {}, "pip install 'lxml>=6'"),
    (VENV, FOLDER, "pip install '/src/wireglot[web]'"),
    (VENV, CHECKOUT, "pip install -e '/src/wire glot[web]'"),
    (PIPX, FOLDER, "pipx inject wireglot 'lxml>=6'"),
    (UV, {}, "uv tool install --force '.[web]'"),
    (UV, FOLDER, "uv tool install --force '/src/wireglot[web]'"),
    (VENV, WHEEL, "pip install '/dist/wireglot-0.1.0-py3-none-any.whl[web]'"),
    (VENV, {"url": "https://host/wireglot.whl"}, "pip install 'lxml>=6'"),
    (("/", "home", "pipx", "x", "venvs"), {}, "pip install 'lxml>=6'"),
])  # fmt: skip
def test_the_tool_that_installed_the_program_installs_the_rest(
    prefix: tuple[str, ...], origin: dict[str, Any], command: str
) -> None:
    assert hint_for("web", prefix, ["lxml>=6"], origin) == command


def test_pip_is_named_by_its_place_where_another_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, other = tmp_path / "our env" / "bin", tmp_path / "other" / "bin"
    for folder in (ours, other):
        folder.mkdir(parents=True)
        (folder / "pip").write_text("#!/bin/sh\n")
        (folder / "pip").chmod(0o755)
    monkeypatch.setattr(sys, "prefix", str(ours.parent))
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    monkeypatch.setenv("PATH", f"{ours}:{other}")
    assert extras._pip() == "pip"
    monkeypatch.setenv("PATH", str(other))
    assert extras._pip() == f"'{ours}/pip'"
    assert hint_for("web", VENV, [], {}, "/v/bin/pip") == "/v/bin/pip install '.[web]'"
    (ours / "pip").unlink()
    assert extras._pip() == f"VIRTUAL_ENV='{ours.parent}' uv pip"
    monkeypatch.setattr(sys, "base_prefix", str(ours.parent))
    assert extras._pip() == "pip"


def test_the_hint_of_this_installation_names_the_extra() -> None:
    assert "lxml" in (hint := install_hint("web")) or hint.endswith(("[web]", "[web]'"))


@rows("prefix, origin, command", [
    (VENV, CHECKOUT, "git -C '/src/wire glot' pull"),
    (VENV, FOLDER, "git -C /src/wireglot pull && pip install /src/wireglot"),
    (PIPX, FOLDER, "git -C /src/wireglot pull && pipx install --force /src/wireglot"),
    (UV, FOLDER, "git -C /src/wireglot pull && uv tool install --force /src/wireglot"),
    (VENV, WHEEL, "install a newer version of wireglot"),
    (VENV, {}, "install a newer version of wireglot"),
])  # fmt: skip
def test_a_newer_version_comes_from_where_this_one_did(
    prefix: tuple[str, ...], origin: dict[str, Any], command: str
) -> None:
    assert upgrade_for(prefix, origin) == command
