"""The first hour of a newcomer: what README says, in order, in a terminal of 80 columns with a clean home.

The short walk has a script in the place of Claude Code and a free port; the whole one (`make newcomer`) runs
every command as it is written, in a copy of the project.
"""

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from clients.install import is_there, node_path
from clients.packages import CLAUDE_CODE
from clients.terminal import Terminal
from tests.waiting import DEADLINE_SECONDS
from wireglot.cli.parser import build_parser

pytestmark = pytest.mark.skipif(os.name != "posix", reason="it needs a terminal of POSIX")

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ROWS, COLUMNS = 24, 80
USUAL_PORT = 8484
WHOLE_SECONDS = 900.0
_URL = re.compile(r"http://127\.0\.0\.1:\d+[\w/-]*")
_COMMAND = re.compile(r"\bwireglot ([a-z]+)\b")
_PAGE = re.compile(r"\bdocs/[\w/-]+\.md\b")

CLAUDE = f"""\
#!{sys.executable} -IS
import json, os, urllib.request
body = {{"model": os.environ["ANTHROPIC_MODEL"], "max_tokens": 99, "messages": [{{"role": "user", "content": "hi"}}]}}
headers = {{"authorization": "Bearer " + os.environ["ANTHROPIC_AUTH_TOKEN"], "content-type": "application/json"}}
asked = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(), headers)
with urllib.request.urlopen(asked) as answer:
    print(json.load(answer)["content"][0]["text"][:60])
"""


def blocks() -> list[str]:
    """Of README's shell, in order: the quick start, a key, `serve`, a request."""
    return re.findall(r"```sh\n(.*?)```", README, re.DOTALL)


def wrong(shown: str, *, whole: bool = False) -> list[str]:
    """What a newcomer would stumble over. `whole`: a client's own lines may be as long as it likes."""
    lines = [line.rstrip() for line in shown.splitlines()]
    found = [f"wider than {COLUMNS} columns: {line}" for line in lines if len(line) > COLUMNS and not whole]
    found += [line for line in lines if "Traceback" in line or re.search(r"\b[A-Z]\w+Error\b", line)]
    known = next(each.choices for each in build_parser()._actions if isinstance(each.choices, dict))
    said = {name for line in lines if "`" in line for name in _COMMAND.findall(line)}
    found += [f"there is no command {name}" for name in sorted(said - set(known))]
    return found + [f"there is no {page}" for page in _PAGE.findall(shown) if not (ROOT / page).exists()]


@pytest.fixture
def newcomer(tmp_path: Path) -> dict[str, str]:
    """A clean home, and the commands that are there."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    (programs / "wireglot").write_text(f'#!/bin/sh\nexec {sys.executable} -m wireglot.cli "$@"\n')
    (programs / "claude").write_text(CLAUDE)
    for program in programs.iterdir():
        program.chmod(0o755)
    return {
        "HOME": str(tmp_path / "home"),
        "PATH": f"{programs}:/usr/bin:/bin",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT / "src"),
    }


def typed(
    command: str, env: dict[str, str], cwd: Path, seconds: float = DEADLINE_SECONDS
) -> tuple[int | None, str]:
    """A command's status, and what the terminal shows."""
    terminal = Terminal(["/bin/bash", "-c", command], cwd, env, (ROWS, COLUMNS))
    status = terminal.end(seconds)
    return status, terminal.shown


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fetched(url: str) -> int:
    with urllib.request.urlopen(url, timeout=DEADLINE_SECONDS) as answer:
        return int(answer.status)


def test_the_first_commands_fit_a_terminal_of_80_columns(newcomer: dict[str, str], tmp_path: Path) -> None:
    quick = blocks()[0].splitlines()
    assert quick[0] == "make demo", "the walk begins with something else"
    steps = [
        "wireglot demo",
        *(line for line in quick[1:] if not line.startswith(". ")),
        "wireglot",
        "wireglot models",
    ]
    for step in steps:
        status, shown = typed(step, newcomer, tmp_path / "project")
        assert status == (2 if step == "wireglot" else 0), shown
        assert wrong(shown) == [], step
        assert shown.strip(), step
    assert not list((tmp_path / "project").iterdir()), "a file was left in the project"


LOOKED_AT = [
    f"wireglot {words}"
    for words in (
        *(
            "usage",
            "usage --by client",
            "keys list",
            "trace list",
            "models",
            "login",
            "doctor",
            "config check",
        ),
        *("store stats", "providers", "dialects", "losses", "pairs", "run --help"),
    )
]


@pytest.mark.whole
def test_what_serve_says_is_so(newcomer: dict[str, str], tmp_path: Path) -> None:
    """The gateway, a request to it as README has it, and the inspector."""
    port = free_port()
    curl = next(block for block in blocks() if block.startswith("curl"))
    project = tmp_path / "project"
    serve = Terminal(
        ["/bin/bash", "-c", f"exec wireglot serve --port {port}"], project, newcomer, (ROWS, COLUMNS)
    )
    try:
        assert serve.wait_for("inspector", DEADLINE_SECONDS), serve.shown
        status, answer = typed(curl.replace(f":{USUAL_PORT}/", f":{port}/"), newcomer, project)
        assert status == 0
        assert '"role":"assistant"' in answer.replace(" ", "")
        status, shown = typed("wireglot inspect --no-browser", newcomer, project)
        assert (status, wrong(shown)) == (0, [])
        assert fetched(shown.strip()) == 200
        for url in _URL.findall(serve.shown):
            assert fetched(url) == 200, url
        smoke = f"wireglot smoke --url http://127.0.0.1:{port}"
        for command in (smoke, "wireglot keys create ada", *LOOKED_AT):
            status, shown = typed(command, newcomer, project)
            assert (status, wrong(shown)) == (0, []), (command, shown)
    finally:
        serve.type("\x03")
        ended = serve.end(DEADLINE_SECONDS)
    assert ended == 0, serve.shown
    assert wrong(serve.shown) == []


MISTAKES = {
    "wireglot rum": "did you mean run?",
    "wireglot run claud": "did you mean claude?",
    "wireglot run python3 my.py": "--env openai",
    "wireglot run codex": "npm install -g @openai/codex",
    "wireglot models kimi": "kimi/kimi-",
    "wireglot serve --prt 1": "--port",
}


@pytest.mark.whole
def test_a_mistake_is_answered_with_what_helps(newcomer: dict[str, str], tmp_path: Path) -> None:
    for command, hint in MISTAKES.items():
        status, shown = typed(f"{command} </dev/null", newcomer, tmp_path / "project")
        assert status, command
        assert hint in shown, command
        assert "Traceback" not in shown, command


def test_every_help_fits_80_columns() -> None:
    waiting = [build_parser()]
    while waiting:
        parser = waiting.pop()
        too_wide = [line for line in parser.format_help().splitlines() if len(line) > COLUMNS]
        assert too_wide == [], parser.prog
        for each in parser._actions:
            if isinstance(each, argparse._SubParsersAction):
                waiting += each.choices.values()


def test_the_targets_of_make_fit_80_columns() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if len(line) > COLUMNS] == []


@pytest.mark.whole
def test_the_quick_start_as_it_is_written(tmp_path: Path) -> None:
    """In a copy of the project, where `make` installs it, with the real Claude Code where it is there."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    project, home = tmp_path / "wireglot", tmp_path / "home"
    home.mkdir()
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, project / name)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text(CLAUDE)
    (programs / "claude").chmod(0o755)
    path = node_path(CLAUDE_CODE) if is_there(CLAUDE_CODE) else f"{programs}:{os.environ['PATH']}"
    env = {**os.environ, "HOME": str(home), "PATH": path, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    for name in ("PYTHONPATH", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "VENV"):
        env.pop(name, None)
    status, shown = typed(f"set -e\n{blocks()[0]}", env, project, WHOLE_SECONDS)
    assert status == 0, shown[-2000:]
    assert wrong(shown, whole=True) == []
    assert "demo model" in shown[-400:]
