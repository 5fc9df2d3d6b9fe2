"""What `wireglot run` leaves in a home with settings of every client: the client's own history and nothing else."""

import json
import sys
from pathlib import Path

import pytest

from clients.install import is_there, node_path
from clients.launched import LAUNCHED, SETTINGS, Launched, foreign_changes, snapshot, written
from clients.seat import NO_NETWORK
from tests.cli.run.test_run import Place
from wireglot.cli.run.clients import CLIENTS
from wireglot.cli.run.pointing import Door

STAND_INS = {
    # Claude Code 2.1.326: an Opus class with a larger context on request is written into the user's settings.
    "claude": """
known = "claude" in os.environ.get("ANTHROPIC_DEFAULT_OPUS_MODEL", "claude")
place = home / ".claude/settings.json"
settings = json.loads(place.read_text())
if settings.get("model") == "opus" and not known and not os.environ.get("CLAUDE_CODE_DISABLE_1M_CONTEXT"):
    place.write_text(json.dumps({**settings, "model": "opus[1m]"}))
(home / ".claude/projects").mkdir()
(home / ".claude/projects/talk.jsonl").write_text("{}")
""",
    # Gemini CLI 0.61: its screen asks for a login where the settings name none, and writes down the answer.
    "gemini": """
home = pathlib.Path(os.environ.get("GEMINI_CLI_HOME") or home)
place = home / ".gemini/settings.json"
settings = json.loads(place.read_text()) if place.exists() else {}
login = settings.get("security", {}).get("auth", {}).get("selectedType")
if login not in ("gemini-api-key", "oauth-personal"):
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))
    (home / ".gemini-keychain").write_text(os.environ["GEMINI_API_KEY"])
(home / ".gemini/tmp/project").mkdir(parents=True, exist_ok=True)
(home / ".gemini/tmp/project/talk.json").write_text(json.dumps(settings))
(home / ".gemini/installation_id").write_text("1")
""",
}
HEAD = f"#!{sys.executable}\nimport json, os, pathlib\nhome = pathlib.Path(os.environ['HOME'])\n"


def stand_in(place: Place, client: str) -> None:
    place.program(CLIENTS[client].program, HEAD + STAND_INS.get(client, ""))


def real(client: str) -> Launched | None:
    found = next(each for each in LAUNCHED if each.name == client)
    return found if is_there(found.package) else None


@pytest.mark.sampled(each=2)
@pytest.mark.parametrize("client", CLIENTS)
def test_nothing_in_a_home_differs_after_a_run_but_the_clients_history(tmp_path: Path, client: str) -> None:
    place = Place(tmp_path)
    written(place.home, SETTINGS)
    launched = real(client)
    arguments, env = [], {}
    if launched is None:
        stand_in(place, client)
    else:
        arguments = launched.arguments("[[demo:echo]] hello")
        env = {**NO_NETWORK, **launched.env, "PATH": node_path(launched.package)}
    before = snapshot(place.home)
    done = place.run(client, "--model", "demo/demo", "--", *arguments, env=env)
    assert done.returncode == 0, done
    assert foreign_changes(client, before, snapshot(place.home)) == []


@pytest.mark.sampled(each=1)
@pytest.mark.parametrize(
    "settings",
    [
        None,
        '{"ui": {"theme": "GitHub"}}',
        '{"ui": {"theme": "GitHub"}, // mine\n}',
        '{"security": {"auth": {"selectedType": "vertex-ai"}}}',
        '{"security": {"auth": {"selectedType": "oauth-personal"}}}',
    ],
)
def test_gemini_cli_is_not_asked_for_a_login_and_its_history_stays(
    tmp_path: Path, settings: str | None
) -> None:
    place = Place(tmp_path)
    stand_in(place, "gemini")
    if settings is not None:
        written(place.home, {".gemini/settings.json": settings, ".gemini/GEMINI.md": "Be brief."})
    before = snapshot(place.home)
    assert place.run("gemini", "--model", "demo/demo").returncode == 0
    after = snapshot(place.home)
    assert foreign_changes("gemini", before, after) == []
    history = {".gemini/installation_id", ".gemini/tmp/project/talk.json"}
    assert set(after) - set(before) == history
    seen = json.loads((place.home / ".gemini/tmp/project/talk.json").read_text())
    assert seen.get("ui") == ({"theme": "GitHub"} if settings and "ui" in settings else None)
    assert not (place.home / ".gemini/tmp/project").is_symlink()


def test_a_claude_with_a_large_context_keeps_it() -> None:
    """Claude Code writes no other name of such a model, and would take the context from it."""
    variables = [
        CLIENTS["claude"].point(Door("http://127.0.0.1:8484", "key", model, context), {}).set
        for model, context in (
            ("anthropic/claude-opus-5-5", 1_000_000),
            ("anthropic/claude-opus-4-6", 200_000),
        )
    ]
    assert [each.get("CLAUDE_CODE_DISABLE_1M_CONTEXT") for each in variables] == [None, "1"]


def test_the_variables_of_gemini_cli_are_printed_without_those_of_one_run(tmp_path: Path) -> None:
    done = Place(tmp_path).run("gemini", "--print-env", "--model", "demo/demo")
    assert done.returncode == 0
    assert "export GOOGLE_GEMINI_BASE_URL=" in done.stdout
    assert "GEMINI_CLI_HOME" not in done.stdout
