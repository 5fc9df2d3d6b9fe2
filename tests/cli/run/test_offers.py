"""`wireglot run` alone: a menu of clients and models, and the installation of what is missing."""

import os
import select
from pathlib import Path

import pytest

from clients.terminal import Terminal
from tests.cli.run.test_run import Place, reported
from tests.cli.running import COMMAND
from tests.processes import ForkedTerminal
from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS
from wireglot.cli import menu
from wireglot.cli.menu import Selection
from wireglot.cli.run.clients import CLIENTS
from wireglot.cli.run.offers import install_command

ROWS = ("claude  Claude Code", "codex  Codex", "gemini  Gemini CLI", "gpt-5")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@rows("keys, chosen", [
    ([], 0), (["down"], 1), (["up"], 3), (["down", "down", "up"], 1), (["2"], 1), (["9"], None), (list("gem"), 2),
    (list("5"), 3), (list("code"), 0), ([*"code", "down"], 1), ([*"zz"], None), ([*"zz", "back", "back"], 0),
    (["\x00"], 0), (["9"] * 5000, None),
])  # fmt: skip
def test_a_row_is_found_by_arrows_numbers_and_parts_of_its_name(keys: list[str], chosen: int | None) -> None:
    selection = Selection(ROWS)
    for key in keys:
        selection.press(key)
    assert selection.chosen == chosen


@rows("sent, keys", [
    ([b"\x1b[B\x1b[B\r"], ["down", "down", "enter"]),
    ([b"\x1b", b"[B", b"\r"], ["down", "enter"]),
    ([b"\x1b["], ["cancel", "["]),
    ([b"\x1b"], ["cancel"]),
    ([b"\x1bOA\x1b[1;5C2\r"], ["up", "", "2", "enter"]),
    (["g\u00e4".encode()[:2], "\u00e4".encode()[1:]], ["g", "\u00e4"]),
    ([b"cla\x7f\t"], ["c", "l", "a", "back", "down"]),
], ids=["several", "in pieces", "cut", "escape", "of another form", "a letter in pieces", "letters"])  # fmt: skip
def test_keys_are_told_apart_however_they_come(
    monkeypatch: pytest.MonkeyPatch, sent: list[bytes], keys: list[str]
) -> None:
    left = list(sent)
    monkeypatch.setattr(os, "read", lambda descriptor, size: left.pop(0) if left else b"")
    monkeypatch.setattr(select, "select", lambda *_: ([0] if left else [], [], []))
    assert list(menu._pressed(0)) == ["", *keys]


def test_a_long_list_is_shown_around_the_marked_row() -> None:
    selection = Selection([f"provider/model-{number}" for number in range(300)])
    for _ in range(50):
        selection.press("down")
    lines = selection.lines(12, 40)
    assert len(lines) == 13
    assert [text.split()[1] for marked, text in lines if marked] == ["51"]
    assert "288 more" in lines[-1][1]
    assert all(len(text) < 40 for _, text in lines)


def bare(place: Place, **env: str) -> Terminal:
    return ForkedTerminal([*COMMAND, "run"], place.project, {**place.env, **env}, (24, 80))


def test_without_a_client_one_is_picked_and_a_model_for_it(place: Place) -> None:
    terminal = bare(place)
    assert terminal.wait_for("Client:", DEADLINE_SECONDS)
    terminal.type("claude")
    assert terminal.wait_for("Client: claude", DEADLINE_SECONDS)
    terminal.type("\r")
    assert terminal.wait_for("Model:", DEADLINE_SECONDS)
    terminal.type("\r")  # the first: without a key the demo model
    status = terminal.end(DEADLINE_SECONDS)
    assert status == 0, terminal.shown
    assert "demo/demo" in terminal.shown
    assert reported(terminal.shown)["env"]["ANTHROPIC_MODEL"] == "demo/demo"


@pytest.mark.sampled
@rows("key, status, said", [
    ("\x03", 130, "interrupted"), ("\x1b", 2, "no selection"), ("\x04", 2, "no selection"),
])  # fmt: skip
def test_a_menu_can_be_left(place: Place, key: str, status: int, said: str) -> None:
    """With the status of Ctrl-C anywhere else."""
    terminal = bare(place)
    assert terminal.wait_for("Client:", DEADLINE_SECONDS)
    terminal.type(key)
    assert terminal.end(DEADLINE_SECONDS) == status
    assert said in terminal.shown


def test_a_terminal_without_cursor_moves_takes_a_number(place: Place) -> None:
    terminal = bare(place, TERM="dumb")
    assert terminal.wait_for("number or name", DEADLINE_SECONDS)
    terminal.type("claude\n")
    assert terminal.wait_for("Model:", DEADLINE_SECONDS)
    terminal.type("demo/demo\n")
    assert terminal.end(DEADLINE_SECONDS) == 0, terminal.shown
    assert reported(terminal.shown)["env"]["ANTHROPIC_MODEL"] == "demo/demo"


def test_where_nobody_can_be_asked_a_client_must_be_named(place: Place) -> None:
    assert "name a client" in place.refused()


@pytest.mark.whole
def test_a_missing_client_is_installed_after_a_yes(place: Place) -> None:
    script = (place.programs / "claude").read_text()
    place.program(
        "npm",
        f"#!/bin/sh\necho \"npm $*\"\ncat > {place.programs}/codex <<'EOF'\n{script}\nEOF\nchmod +x {place.programs}/codex\n",
    )
    refused = place.in_terminal("codex", "--model", "demo/demo")
    assert refused.wait_for("[y/N]", DEADLINE_SECONDS)
    assert "npm install -g @openai/codex" in refused.shown
    refused.type("n\n")
    assert refused.end(DEADLINE_SECONDS) == 127
    assert not (place.programs / "codex").exists()
    agreed = place.in_terminal("codex", "--model", "demo/demo")
    assert agreed.wait_for("[y/N]", DEADLINE_SECONDS)
    agreed.type("y\n")
    assert agreed.end(DEADLINE_SECONDS) == 0, agreed.shown
    assert "npm install -g @openai/codex" in agreed.shown
    assert reported(agreed.shown)["arguments"]


def test_programs_in_python_get_an_environment_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert install_command(CLIENTS["llm"]) == ["pip", "install", "llm"]
    for tool, command in (("pipx", ["pipx", "install", "llm"]), ("uv", ["uv", "tool", "install", "llm"])):
        (tmp_path / tool).write_text("#!/bin/sh\n")
        (tmp_path / tool).chmod(0o755)
        assert install_command(CLIENTS["llm"]) == command
    assert install_command(CLIENTS["claude"])[0] == "npm"


@pytest.mark.whole
@rows("editor", ["crush", "zed", "vscode"])
def test_settings_of_an_editor_are_printed(place: Place, editor: str) -> None:
    done = place.run(editor, "--model", "demo/demo")
    assert done.returncode == 0, done.stderr
    assert "demo/demo" in done.stdout
    assert "http://127.0.0.1:8484/v1" in done.stdout
    assert "wireglot serve" in done.stderr
