"""`wireglot init`: what is found, what is asked, what is written."""

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.provider_double import (
    BAD_KEY,
    GOOD_KEY,
    ProviderDouble,
    Reply,
    catalog_at,
    modes_are_obeyed,
    set_apart,
)
from tests.cli.running import COMMAND, complaint, run
from tests.processes import ForkedTerminal
from tests.tiers import rows as tables
from tests.waiting import DEADLINE_SECONDS
from wireglot.cli.init import FoundProviders, ProviderCandidate, rows
from wireglot.gateway import config
from wireglot.gateway.config.kept_keys import keep, kept_file
from wireglot.gateway.relay.key_checks import Outcome, ProviderAnswer

HOSTS = {
    "api.moonshot.ai": Reply(models=("kimi-k3", "kimi-k2.6")),
    "api.openai.com": Reply(),
    "api.anthropic.com": Reply(models=("claude-sonnet-5-5", "claude-haiku-5-5")),
    "openrouter.ai": Reply(open_list=True),
    "127.0.0.1:11434": Reply(models=("qwen3:8b",), wants_key=False),
    "127.0.0.1:8000": Reply(status=404, body=b"<html>another program</html>", wants_key=False),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return set_apart(tmp_path, monkeypatch)


@pytest.fixture
def double(home: Path) -> Iterator[ProviderDouble]:
    """The catalog's hosts, as they answer in these tests."""
    found = ProviderDouble(HOSTS)
    with pytest.MonkeyPatch.context() as own, catalog_at(found, own):
        yield found


def said(*arguments: str) -> str:
    done = run("init", *arguments)
    assert done.returncode == 0, done
    assert done.stderr == b""
    return done.stdout.decode()


def row(reported: str, name: str) -> str:
    return next(line for line in reported.splitlines() if re.match(rf"  \S[\w ]*  {name} ", line))


def switched_on(text: str) -> str:
    """Every setting that stands behind a bare `#`."""
    return re.sub(r"(?m)^#(?=[^ #\n])", "", text)


def test_a_key_that_is_taken_turns_its_provider_on(
    double: ProviderDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOONSHOT_API_KEY", GOOD_KEY)
    reported = said()
    assert re.search(r"  on +kimi +MOONSHOT_API_KEY +2 models in \d+ ms: kimi-k3, kimi-k2.6", reported)
    assert reported.rstrip().endswith("next: wireglot run claude")
    text = Path("wireglot.toml").read_text()
    assert 'api_key = "env:MOONSHOT_API_KEY"' in text
    assert GOOD_KEY not in text + reported
    assert run("config", "check").returncode == 0
    assert "kimi" in config.load(Path("wireglot.toml"), create_secret=False).providers
    assert double.requests.count("GET api.moonshot.ai /v1/models") == 1


def test_what_is_asked_is_shown_before_the_answers(
    double: ProviderDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOONSHOT_API_KEY", GOOD_KEY)
    reported = said()
    question = f"GET {double.base('api.moonshot.ai')}/models"
    assert 0 < reported.index(question) < reported.index("  on ")


def test_one_key_is_asked_for_once_although_two_entries_take_it(
    double: ProviderDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOONSHOT_API_KEY", GOOD_KEY)
    assert "kimi-anthropic" not in said()
    assert sum("api.moonshot.ai" in asked for asked in double.requests) == 1


def test_a_wrong_key_is_reported_in_the_providers_own_words_and_is_not_shown(
    double: ProviderDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", BAD_KEY)
    reported = said()
    assert "wrong key" in row(reported, "openai")
    assert "message: Incorrect API key provided: [redacted]" in reported
    text = Path("wireglot.toml").read_text()
    assert '\n#[providers.openai]\n#api_key = "env:OPENAI_API_KEY"\n' in text
    assert BAD_KEY not in reported + text


def test_a_list_that_everybody_may_see_is_no_proof_of_a_key(
    double: ProviderDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", BAD_KEY)
    assert "wrong key" in row(said(), "openrouter")
    assert "GET openrouter.ai /api/v1/key" in double.requests


def test_a_kept_key_counts_and_is_said_to_be_kept(double: ProviderDouble, home: Path) -> None:
    place = kept_file(os.environ)
    assert place is not None
    keep(place, "ANTHROPIC_API_KEY", GOOD_KEY)
    reported = said()
    assert re.search(r"  on +anthropic +ANTHROPIC_API_KEY \(stored\)", reported)
    assert 'api_key = "env:ANTHROPIC_API_KEY"' in Path("wireglot.toml").read_text()
    assert "anthropic" in config.load(Path("wireglot.toml"), create_secret=False).providers


def test_a_server_on_this_machine_is_found_and_a_stranger_is_not_taken_for_one(
    double: ProviderDouble,
) -> None:
    reported = said()
    assert "1 model in" in row(reported, "ollama")
    assert row(reported, "ollama").startswith("  on ")
    assert "a different server answers" in row(reported, "vllm")
    assert "no server" in row(reported, "llama-cpp")
    text = Path("wireglot.toml").read_text()
    assert "\n[providers.ollama] " in text
    assert "\n#[providers.vllm]\n" in text
    assert '#"claude-*" = "ollama/qwen3:8b"' in text


def test_without_anything_the_demo_is_on_and_the_file_loads(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.MonkeyPatch.context() as own, catalog_at(ProviderDouble({}), own):
        reported = said()
    assert "Found no provider key" in reported
    assert row(reported, "demo").startswith("  on ")
    assert set(config.load(Path("wireglot.toml"), create_secret=False).providers) == {"demo"}


def test_offline_nothing_is_sent_and_keys_are_trusted(
    double: ProviderDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", BAD_KEY)
    reported = said("--offline")
    assert double.requests == []
    assert "untested" in row(reported, "openai")
    assert "openai" in config.load(Path("wireglot.toml"), create_secret=False).providers


def test_a_host_that_cannot_be_reached_is_reported_and_stays_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XAI_API_KEY", GOOD_KEY)
    with pytest.MonkeyPatch.context() as own, catalog_at(ProviderDouble({}), own):
        reported = said()
    assert "no answer" in row(reported, "xai")
    assert "connection refused" in reported
    assert "xai" in config.load(Path("wireglot.toml"), create_secret=False).providers


def test_every_next_step_in_the_file_works_when_it_is_switched_on(
    double: ProviderDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOONSHOT_API_KEY", GOOD_KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", GOOD_KEY)
    monkeypatch.setenv("OPENAI_API_KEY", BAD_KEY)
    said()
    text = switched_on(Path("wireglot.toml").read_text())
    for wanted in (
        '\n"claude-*" = ',
        "\nfast = [",
        "\n[keys]\n",
        "\ncost_per_month = ",
        "\n[providers.openai]\n",
    ):
        assert wanted in text
    settings = config.load(Path("wireglot.toml"), create_secret=False, content=text.encode())
    assert len(settings.keys) == 2
    fast = next(rule for rule in settings.rules if rule.match == "fast")
    assert len(fast.targets) == 2
    assert len({target.partition("/")[0] for target in fast.targets}) == 2


def test_lines_of_the_file_fit_a_usual_editor(
    double: ProviderDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOONSHOT_API_KEY", GOOD_KEY)
    said()
    assert max(map(len, Path("wireglot.toml").read_text().splitlines())) <= 110


def test_a_file_that_is_there_is_not_written_over_and_nobody_is_asked(double: ProviderDouble) -> None:
    Path("wireglot.toml").write_text("mine\n")
    line = complaint(run("init"))
    assert "wireglot.toml already exists" in line
    assert "--force" in line
    assert Path("wireglot.toml").read_text() == "mine\n"
    assert double.requests == []


def test_force_writes_over_it_with_the_mode_it_had(double: ProviderDouble) -> None:
    file = Path("wireglot.toml")
    file.write_text("mine\n")
    file.chmod(0o640)
    said("--force")
    assert "[server]" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [each.name for each in Path().iterdir()] == ["wireglot.toml"]


@pytest.mark.skipif(not modes_are_obeyed(), reason="modes do not stop this user")
def test_a_folder_that_cannot_be_written_is_reported_before_anybody_is_asked(double: ProviderDouble) -> None:
    Path("locked").mkdir(mode=0o500)
    try:
        assert "cannot be written to" in complaint(run("init", "--output", "locked/wireglot.toml"))
    finally:
        Path("locked").chmod(0o700)
    assert double.requests == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder that takes no file from anybody")
def test_a_file_that_cannot_be_made_is_one_line(double: ProviderDouble) -> None:
    assert complaint(run("init", "--output", "/proc/wireglot.toml")).startswith("/proc")


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("--output", "."), "is a folder"),
        (("--output", "x.toml", "--user"), "exclude each other"),
        (("--output", "-", "--json"), "exclude each other"),
        (("--outptu", "x.toml"), "did you mean --output?"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_one_line(
    double: ProviderDouble, arguments: tuple[str, ...], reported: str
) -> None:
    assert reported in complaint(run("init", *arguments))


def test_it_is_written_where_serve_looks(
    double: ProviderDouble, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said("--user")
    own = home / ".config/wireglot/wireglot.toml"
    assert config.find() == own
    assert f"it takes precedence over {own}" in said()
    monkeypatch.setenv("WIREGLOT_CONFIG", str(home / "named.toml"))
    said()
    assert config.find() == home / "named.toml"
    assert (home / "named.toml").exists()


def test_the_file_on_standard_output_is_alone_there(double: ProviderDouble) -> None:
    done = run("init", "--output", "-")
    assert done.returncode == 0
    settings = config.load(Path("wireglot.toml"), create_secret=False, content=done.stdout)
    assert "ollama" in settings.providers
    assert b"Sending one request to each" in done.stderr
    assert list(Path().iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="needs a terminal of POSIX")
@pytest.mark.parametrize("command", ["init", "doctor"])
def test_on_a_terminal_no_line_is_wider_than_it(home: Path, command: str) -> None:
    env = {"HOME": str(home), "PATH": "/nowhere", "COLUMNS": "80", "TERM": "xterm", "LANG": "C.UTF-8"}
    env |= {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "AZURE_OPENAI_API_KEY": GOOD_KEY}
    terminal = ForkedTerminal([*COMMAND, command, "--offline"], Path(), env)
    assert terminal.end(DEADLINE_SECONDS) in (0, 1)
    lines = terminal.shown.splitlines()
    assert lines
    assert max(map(len, lines)) <= 80, lines


def test_json_tells_the_same(double: ProviderDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOONSHOT_API_KEY", GOOD_KEY)
    monkeypatch.setenv("OPENAI_API_KEY", BAD_KEY)
    reported = json.loads(said("--json"))
    states = {each["name"]: each["state"] for each in reported["providers"]}
    assert states == {"openai": "wrong key", "kimi": "on", "ollama": "on", "vllm": "off", "llama-cpp": "off"}
    assert reported["written"] == "wireglot.toml"
    assert reported["next"] == "wireglot run claude"
    kimi = next(each for each in reported["providers"] if each["name"] == "kimi")
    assert kimi["key"] == "MOONSHOT_API_KEY"
    assert kimi["asked"].startswith("GET ")
    assert BAD_KEY not in json.dumps(reported)


def test_the_next_step_names_a_client_that_is_here(double: ProviderDouble, tmp_path: Path) -> None:
    reported = said()
    assert "\nfirst: npm install -g @anthropic-ai/claude-code\nnext: wireglot run claude\n" in reported
    program = tmp_path / "bin" / "codex"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert said("--force").endswith("\nnext: wireglot run codex\n")


def test_what_a_cloud_lacks_or_could_sign_in_with_is_reported(
    double: ProviderDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", GOOD_KEY)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA0000000000000000")
    reported = said()
    assert "AZURE_RESOURCE_NAME" in reported
    assert re.search(r"  off +bedrock +AWS_ACCESS_KEY_ID +\[providers.bedrock\] would sign in", reported)
    assert "AKIA" not in reported
    assert not any("amazonaws" in asked for asked in double.requests)


def test_settings_of_a_gateway_in_the_environment_do_not_matter(
    double: ProviderDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WIREGLOT_HOST", "0.0.0.0")
    monkeypatch.setenv("WIREGLOT_PORT", "x")
    said()


@tables(
    ("outcome", "state", "why"),
    [
        ("taken", "on", "answered in 3 ms"),
        ("refused", "wrong key", ""),
        ("silent", "no answer", "api.openai.com: its own words"),
        ("forbidden", "trouble", "access denied for this key"),
        ("unpaid", "trouble", "the account cannot be used"),
        ("busy", "trouble", "busy"),
        ("failing", "trouble", "status 503"),
        ("other", "trouble", "status 503"),
    ],
)
def test_every_answer_has_a_row_that_says_what_it_means(
    home: Path, outcome: Outcome, state: str, why: str
) -> None:
    settings = config.load(None, overrides={"providers": {"openai": {"api_key": "x"}}}, create_secret=False)
    question = "GET https://api.openai.com/v1/models"
    answered = ProviderAnswer("openai", question, outcome, "its own words", status=503, milliseconds=3)
    candidate = ProviderCandidate(settings.providers["openai"], "OPENAI_API_KEY", answered=answered)
    told = next(each for each in rows(FoundProviders((candidate,))) if each.name == "openai")
    assert (told.state, told.key) == (state, "OPENAI_API_KEY")
    assert why in told.why
    assert bool(told.words) is (state in ("wrong key", "trouble"))


def test_of_many_models_some_are_named_and_all_are_counted(home: Path) -> None:
    settings = config.load(None, overrides={"providers": {"openai": {"api_key": "x"}}}, create_secret=False)
    names = tuple(f"model-{number}" for number in range(40))
    for models, end in ((names, ", ..."), (names[:1], "model-0")):
        answered = ProviderAnswer("openai", "GET https://x/", "taken", models=models)
        candidate = ProviderCandidate(settings.providers["openai"], "OPENAI_API_KEY", answered=answered)
        told = rows(FoundProviders((candidate,)))[0].why
        assert told.startswith(f"{len(models)} model{'s' if len(models) > 1 else ''} in 0 ms: model-0")
        assert told.endswith(end)
