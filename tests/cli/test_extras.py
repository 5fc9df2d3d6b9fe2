"""How an optional package is added, as the program says it: by the tool that installed the program."""

from typing import Any

from tests.tiers import rows
from wireglot.extras import hint_for, install_hint

CHECKOUT = {"url": "file:///src/wire%20glot", "dir_info": {"editable": True}}
FOLDER = {"url": "file:///src/wireglot", "dir_info": {}}
PIPX = ("/", "home", "ada", ".local", "share", "pipx", "venvs", "wireglot")
UV = ("/", "home", "ada", ".local", "share", "uv", "tools", "wireglot")
VENV = ("/", "home", "ada", ".venv")


@rows("prefix, origin, command", [
    (VENV, {}, "pip install 'wireglot[web]'"),
    (VENV, FOLDER, "pip install '/src/wireglot[web]'"),
    (VENV, CHECKOUT, "pip install -e '/src/wire glot[web]'"),
    (PIPX, FOLDER, "pipx inject wireglot 'lxml>=6'"),
    (UV, {}, "uv tool install --force 'wireglot[web]'"),
    (UV, FOLDER, "uv tool install --force '/src/wireglot[web]'"),
    (VENV, {"url": "https://host/wireglot.whl"}, "pip install 'wireglot[web]'"),
    (("/", "home", "pipx", "x", "venvs"), {}, "pip install 'wireglot[web]'"),
])  # fmt: skip
def test_the_tool_that_installed_the_program_installs_the_rest(
    prefix: tuple[str, ...], origin: dict[str, Any], command: str
) -> None:
    assert hint_for("web", prefix, ["lxml>=6"], origin) == command


def test_the_hint_of_this_installation_names_the_extra() -> None:
    assert "lxml" in (hint := install_hint("web")) or hint.endswith("[web]'")
