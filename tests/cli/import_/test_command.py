"""`wireglot import`: what it writes and says, and what it refuses in one line."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.import_.kit import FIXTURES
from tests.cli.running import COMMAND, complaint, run

TEAM = str(FIXTURES / "litellm" / "small_team.yaml")
POOL = str(FIXTURES / "litellm" / "key_pool.yaml")
ROUTER = str(FIXTURES / "ccr" / "many_providers.json")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key of the one that runs the tests, and a home of its own."""
    for name in list(os.environ):
        if name.endswith(("_KEY", "_TOKEN", "_API_BASE")) or name.startswith(("WIREGLOT_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def test_standard_output_is_the_file_and_standard_error_says_the_rest():
    done = run("import", "litellm", TEAM)
    assert done.returncode == 0
    assert tomllib.loads(done.stdout.decode())["models"]["gpt-5"] == "openai/gpt-5.5"
    assert done.stderr.decode().splitlines() == [
        "wireglot: 18 settings: 14 carried over, 1 already default, 3 not carried over (listed at the end).",
        "wireglot: before starting it, set OPENAI_API_KEY, ANTHROPIC_API_KEY",
    ]


def test_the_source_may_come_from_a_pipe():
    done = run("import", "ccr", "-", given=Path(ROUTER).read_bytes())
    assert done.returncode == 0
    assert tomllib.loads(done.stdout.decode())["keys"]["ccr"].startswith("sha256:")


def test_the_file_passes_config_check_once_its_variables_are_set(monkeypatch: pytest.MonkeyPatch):
    assert run("import", "litellm", TEAM, "-o", "new.toml").returncode == 0
    assert run("config", "check", "new.toml").returncode == 1
    monkeypatch.setenv("OPENAI_API_KEY", "a")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "b")
    assert run("config", "check", "new.toml").returncode == 0


def test_a_file_that_is_there_stays_unless_forced(tmp_path: Path):
    Path("new.toml").write_text("mine")
    reported = complaint(run("import", "litellm", TEAM, "-o", "new.toml"))
    assert reported.startswith("new.toml already exists: --force overwrites it")
    assert Path("new.toml").read_text() == "mine"
    assert run("import", "litellm", TEAM, "--output", "new.toml", "--force").returncode == 0
    assert tomllib.loads(Path("new.toml").read_text())["models"]
    assert sorted(each.name for each in tmp_path.iterdir() if each.is_file()) == ["new.toml"]


def test_a_source_that_cannot_be_read_leaves_the_file_as_it_was():
    Path("new.toml").write_text("mine")
    Path("bad.yaml").write_text("model_list: [")
    assert run("import", "litellm", "bad.yaml", "-o", "new.toml", "--force").returncode == 2
    assert Path("new.toml").read_text() == "mine"


def test_keys_are_kept_only_if_asked_and_are_never_shown(tmp_path: Path):
    without = run("import", "litellm", POOL)
    assert not (tmp_path / "data").exists()
    kept = run("import", "litellm", POOL, "--keep-keys", "-o", "new.toml")
    assert kept.returncode == 0
    file = tmp_path / "data" / "wireglot" / "credentials"
    assert file.stat().st_mode & 0o777 == 0o600
    lines = set(file.read_text().splitlines()[1:])
    assert lines == {
        "OPENAI_API_KEY=sk-literal-first-0123456789",
        "OPENAI_API_KEY_2=sk-literal-second-0123456789",
        "GROQ_API_KEY=gsk_literal_of_the_environment_section",
        "OPENROUTER_API_KEY=sk-or-v1-literal-abcdef",
    }
    for done in (without, kept):
        assert b"literal" not in done.stdout + done.stderr
    assert "literal" not in Path("new.toml").read_text()
    assert run("config", "check", "new.toml").returncode == 0


def test_a_variable_that_has_another_value_is_not_taken_for_a_key(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another-one")
    written = tomllib.loads(run("import", "litellm", POOL).stdout.decode())
    assert written["providers"]["openai"]["api_keys"] == ["env:OPENAI_API_KEY_2", "env:OPENAI_API_KEY_3"]


def test_kept_keys_of_before_stay(tmp_path: Path):
    file = tmp_path / "data" / "wireglot" / "credentials"
    file.parent.mkdir(parents=True)
    file.write_text("OPENAI_API_KEY=sk-of-before\n")
    assert run("import", "litellm", POOL, "--keep-keys").returncode == 0
    assert "OPENAI_API_KEY=sk-of-before" in file.read_text()
    assert "OPENAI_API_KEY_2=sk-literal-first-0123456789" in file.read_text()


BAD = [
    ("litellm", None, "gone.yaml: No such file or directory"),
    ("ccr", None, "gone.yaml: No such file or directory"),
    ("litellm", b"", "source: is empty"),
    ("ccr", b"", "source: is empty"),
    ("litellm", b"\xff\xfe", "source: line 1: not text in UTF-8"),
    ("litellm", b"model_list:\n  - a: [", "source: line 2: not YAML: expected the node content, but found"),
    ("litellm", b"- a\n- b", "source: line 1: expected a table with model_list in it, found a list"),
    ("litellm", b"just words", "source: line 1: expected a table with model_list in it, found text"),
    (
        "litellm",
        b"services:\n  web: {}",
        "source: is not a configuration of LiteLLM: it has none of model_list, ",
    ),
    (
        "litellm",
        b"\nmodel_list:\n  a: b",
        "source: line 3: model_list: expected a list of models, found a table",
    ),
    ("litellm", b"general_settings: 4", "source: line 1: general_settings: expected a table, found a number"),
    (
        "litellm",
        b"include: x.yaml\nmodel_list: []",
        "source: line 1: include: expected a list of files, found text",
    ),
    ("litellm", b"include: [x.yaml]", "source: line 1: the included x.yaml: No such file or directory"),
    ("ccr", b"{ Providers: [ }", "source: line 1: not JSON: something that is no value"),
    ("ccr", b"[]", "source: line 1: expected a table with Providers and Router, found a list"),
    ("ccr", b"{}", "source: is not a configuration of claude-code-router: it has no Providers"),
    ("ccr", b"{\nProviders: {}}", "source: line 2: Providers: expected a list, found a table"),
    ("ccr", b'{Providers: [],\nRouter: "x"}', "source: line 2: Router: expected a table, found text"),
]


@pytest.mark.parametrize(("program", "content", "said"), BAD)
def test_a_source_that_is_none_is_reported_in_one_line(program: str, content: bytes | None, said: str):
    if content is not None:
        Path("source").write_bytes(content)
    reported = complaint(run("import", program, "source" if content is not None else "gone.yaml"))
    assert reported.startswith(said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "PROGRAM: expected one of litellm, ccr (see"),
        (("litelm", "x"), "PROGRAM: expected one of litellm, ccr, got litelm: did you mean litellm?"),
        (("litellm",), "expected FILE"),
        (("litellm", "x", "--keep-key"), "unknown option --keep-key: did you mean --keep-keys?"),
        (("litellm", TEAM, "-o", "."), ". is a folder"),
        (("litellm", TEAM, "-o", "/proc/none/new.toml"), ""),
        (("litellm", "a\0b"), "a b: invalid file name"),
    ],
)
def test_a_command_line_that_is_none_is_reported_in_one_line(arguments: tuple[str, ...], said: str):
    assert complaint(run("import", *arguments)).startswith(said)


def test_models_that_are_not_carried_over_are_reported_with_their_lines():
    done = run("import", "litellm", str(FIXTURES / "litellm" / "oddities.yaml"))
    assert done.returncode == 0
    reported = done.stderr.decode()
    assert "oddities.yaml: line 14: model unknown-vendor is not carried over: " in reported
    assert "no_such_vendor/" in reported
    assert "pass-word-1" not in reported + done.stdout.decode()


def test_a_source_without_any_model_fails_and_is_reported_all_the_same():
    Path("source.yaml").write_text("model_list: []\ngeneral_settings: {master_key: sk-1}\n")
    done = run("import", "litellm", "source.yaml")
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[-1] == "wireglot: no model was carried over"
    assert "general_settings.master_key (line 2)" in done.stdout.decode()


def test_a_model_that_its_vendor_has_retired_is_reported():
    Path("source.yaml").write_text(
        "model_list: [{model_name: old, litellm_params: {model: openai/gpt-3.5-turbo}}]"
    )
    done = run("import", "litellm", "source.yaml")
    assert done.returncode == 0
    assert "models: old resolves to openai/gpt-3.5-turbo, which is retired" in done.stderr.decode()


def test_an_address_of_another_dialect_is_reported():
    Path("source.json").write_text(
        '{"Providers": [{"name": "a", "api_base_url": "https://h.example/v1/chat/completions", "api_key": "k-1",'
        ' "transformer": {"use": ["Anthropic"]}}], "Router": {}}'
    )
    done = run("import", "ccr", "source.json")
    assert done.returncode == 1
    text = "provider a is not carried over: its address is not an endpoint of the dialect anthropic"
    assert text in done.stderr.decode()


def test_a_file_that_is_missing_here_is_reported_as_what_does_not_load_yet():
    Path("source.yaml").write_text(
        "model_list: [{model_name: g, litellm_params: {model: vertex_ai/gemini-3.1-pro, vertex_project: p,"
        " vertex_credentials: /nowhere/account.json}}]"
    )
    done = run("import", "litellm", "source.yaml")
    assert done.returncode == 1
    assert "it does not load yet: providers.vertex.login.key_file: " in done.stderr.decode()


def test_what_is_said_fits_a_terminal():
    oddities = str(FIXTURES / "litellm" / "oddities.yaml")
    leader, follower = pty.openpty()
    with open("out.toml", "wb") as out:
        environ = {**os.environ, "COLUMNS": "80"}
        subprocess.run([*COMMAND, "import", "litellm", oddities], stdout=out, stderr=follower, env=environ)
    os.close(follower)
    said = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        said += piece
    os.close(leader)
    lines = said.decode().splitlines()
    assert len(lines) > 5
    assert all(len(line) <= 80 or " " not in line.strip() for line in lines)


def test_a_reader_that_leaves_is_no_problem():
    done = subprocess.run(
        f"{sys.executable} -m wireglot.cli import litellm {FIXTURES}/litellm/enterprise.yaml | head -1",
        shell=True,
        capture_output=True,
    )
    assert done.stdout == b"# Created by `wireglot import litellm enterprise.yaml`.\n"
    assert b"Traceback" not in done.stderr
