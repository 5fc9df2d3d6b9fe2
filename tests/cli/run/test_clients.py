"""How each client is pointed at a gateway: by variables and options, and never by a file of its own.

`WIREGLOT_UPDATE=1 pytest tests/cli/run/test_clients.py` writes the pinned settings of each.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import rows
from wireglot.cli.run.agents import PRINTED
from wireglot.cli.run.clients import CLIENTS
from wireglot.cli.run.launch import Launch
from wireglot.cli.run.opencode_agents import agent_names
from wireglot.cli.run.pointing import Door, Pointing

DOOR = Door("http://127.0.0.1:8484", "the-key", "kimi/kimi-k3", 262_144, ("kimi/kimi-k3", "demo/demo"))


def pointed(name: str, door: Door = DOOR) -> Pointing:
    return CLIENTS[name].point(door, {"HOME": "/nowhere"})


@rows("name", CLIENTS)
def test_every_client_is_shown_where_who_and_what(name: str) -> None:
    pointing = pointed(name)
    values = [*pointing.set.values(), *(text for option in pointing.options for text in option)]
    values += pointing.files.values()
    assert any("http://127.0.0.1:8484" in value for value in values)
    assert any("the-key" in value for value in [*pointing.set.values(), *pointing.files.values()])
    assert any("kimi/kimi-k3" in value for value in values)


PINS = Path(__file__).parents[2] / "fixtures" / "run"


@rows("name", CLIENTS)
def test_what_each_client_is_given_is_pinned(name: str) -> None:
    """Names of variables and settings are the client's: a wrong one is ignored, and it asks its vendor."""
    lines = []
    for title, door in (
        ("with a model", DOOR),
        ("without", Door(DOOR.url, DOOR.key)),
        ("with a status line", Door(DOOR.url, DOOR.key, statusline=True)),
    ):
        given = pointed(name, door)
        lines += [f"# {title}", *(f"{key}={value}" for key, value in sorted(given.set.items()))]
        lines += [f"unset {key}" for key in sorted(given.unset)]
        lines += [f"option {' '.join(option)}" for option in given.options]
        lines += [f"file {key}\n{value.rstrip()}" for key, value in sorted(given.files.items())]
        lines += [f"link {key} -> {value}" for key, value in sorted(given.links.items())]
        lines += [f"history {each}" for each in given.history]
        lines += [f"optional {each}" for each in given.optional]
    text = "\n".join(lines).replace(sys.executable, "PYTHON") + "\n"
    file = PINS / f"{name}.txt"
    if os.environ.get("WIREGLOT_UPDATE"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text


def test_each_client_has_its_program_its_dialect_and_its_package() -> None:
    """The command that is run, and the one that installs it."""
    assert {
        name: (each.title, each.program, each.dialect, each.install) for name, each in CLIENTS.items()
    } == {
        "aider": ("aider", "aider", "openai-chat", "pip install aider-chat"),
        "claude": ("Claude Code", "claude", "anthropic", "npm install -g @anthropic-ai/claude-code"),
        "cline": ("Cline", "cline", "openai-chat", "npm install -g cline"),
        "codex": ("Codex", "codex", "openai-responses", "npm install -g @openai/codex"),
        "continue": ("Continue", "cn", "openai-chat", "npm install -g @continuedev/cli"),
        "copilot": ("GitHub Copilot CLI", "copilot", "openai-chat", "npm install -g @github/copilot"),
        "droid": ("Droid", "droid", "openai-chat", "npm install -g droid"),
        "gemini": ("Gemini CLI", "gemini", "gemini", "npm install -g @google/gemini-cli"),
        "goose": ("Goose", "goose", "openai-chat", "brew install block-goose-cli"),
        "hermes": ("Hermes Agent", "hermes", "openai-chat", "pip install hermes-agent"),
        "kimi": ("Kimi Code", "kimi", "openai-chat", "npm install -g @moonshot-ai/kimi-code"),
        "llm": ("llm", "llm", "openai-chat", "pip install llm"),
        "openclaw": ("OpenClaw", "openclaw", "openai-chat", "npm install -g openclaw"),
        "opencode": ("opencode", "opencode", "openai-chat", "npm install -g opencode-ai"),
        "pi": ("Pi", "pi", "openai-chat", "npm install -g @earendil-works/pi-coding-agent"),
        "qwen": ("Qwen Code", "qwen", "openai-chat", "npm install -g @qwen-code/qwen-code"),
    }


@pytest.mark.parametrize(
    ("family", "dialect"), [("anthropic", "anthropic"), ("openai", "openai-chat"), ("gemini", "gemini")]
)
def test_any_other_program_is_taken_for_one_of_its_familys_sdk(family: str, dialect: str) -> None:
    launch = Launch(arguments=("my-program",), families=(family,))
    assert (launch.program, launch.dialect) == ("my-program", dialect)
    assert launch.own_model


@rows("name", CLIENTS)
def test_no_key_stands_on_a_command_line_that_others_can_read(name: str) -> None:
    assert not any("the-key" in text for option in pointed(name).options for text in option)


@rows("name", (*CLIENTS, *PRINTED))
def test_the_documentation_tells_of_every_client(name: str) -> None:
    page = (Path(__file__).parents[3] / "docs" / "clients.md").read_text()
    assert f"wireglot run {name}" in page


def test_an_option_that_the_user_gives_is_not_given_twice() -> None:
    assert pointed("qwen").arguments(("-m", "mine", "-y")) == ["--auth-type", "openai", "-m", "mine", "-y"]
    assert pointed("qwen").arguments(("--model=mine",)) == ["--auth-type", "openai", "--model=mine"]
    assert pointed("claude").arguments(("--settings", "mine.json")) == ["--settings", "mine.json"]
    assert len(pointed("codex").arguments(("-c", "x=1"))) == 2 * 4 + 2


def test_a_client_whose_own_names_lead_somewhere_is_given_no_model() -> None:
    door = Door("http://127.0.0.1:8484", "the-key")
    assert set(pointed("claude", door).set) == {
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_GATEWAY_HINT_HEADERS",
    }
    assert "GEMINI_MODEL" not in pointed("gemini", door).set
    assert not any("model=" in text for _, text in pointed("codex", door).options)


def test_opencode_can_switch_between_all_models() -> None:
    content = json.loads(pointed("opencode").set["OPENCODE_CONFIG_CONTENT"])
    assert list(content["provider"]["wireglot"]["models"]) == ["kimi/kimi-k3", "demo/demo"]
    assert content["model"] == "wireglot/kimi/kimi-k3"
    assert "the-key" not in pointed("opencode").set["OPENCODE_CONFIG_CONTENT"]


def test_no_agent_of_opencode_keeps_a_model_of_another_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    files = {
        home / ".config/opencode/opencode.jsonc": (
            '{"agent": {"own": {"model": "other/x"}, "free": {"prompt": "x"}, "odd": 1,},} // mine'
        ),
        home / ".config/opencode/agents/team/deep.md": "---\nmodel: other/x\n---\n",
        project / "opencode.json": '{"mode": {"old": {"model": "other/x"}}}',
        project / ".opencode/agent/local.md": "---\nmodel: other/x\n---\n",
        project / ".opencode/agent/notes.txt": "model: of no agent",
        project / ".opencode/agent/follows.md": "---\ndescription: no model of its own\n---\n",
        project / "agents/none.md": "no agent either",
        tmp_path / "opencode.json": '{"agent": {"outside": {"model": "other/x"}}}',
    }
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (project / ".git").mkdir()
    (project / "src").mkdir()
    monkeypatch.chdir(project / "src")
    pointing = CLIENTS["opencode"].point(DOOR, {"HOME": str(home)})
    content = json.loads(pointing.set["OPENCODE_CONFIG_CONTENT"])
    named = {key: {"model": "wireglot/kimi/kimi-k3"} for key in ("own", "old", "team/deep", "local")}
    assert content["agent"] == named, "the others follow the session"
    assert content["enabled_providers"] == ["wireglot"]


def test_opencode_is_given_three_hundred_agents_at_most(tmp_path: Path) -> None:
    folder = tmp_path / ".config/opencode"
    folder.mkdir(parents=True)
    agents = {f"a{number}": {"model": "other/x"} for number in range(400)}
    (folder / "opencode.json").write_text(json.dumps({"agent": agents}))
    names = agent_names({"HOME": str(tmp_path)}, str(tmp_path))
    assert names == list(agents)[:300]


def test_qwen_finds_no_model_of_that_name_elsewhere(tmp_path: Path) -> None:
    system = tmp_path / "settings.json"
    system.write_text('{"tools": {"sandbox": true}, "modelProviders": {"anthropic": []}}')
    given = CLIENTS["qwen"].point(DOOR, {"QWEN_CODE_SYSTEM_SETTINGS_PATH": str(system)})
    settings = json.loads(given.files["qwen-settings.json"])
    assert settings["tools"] == {"sandbox": True}, "an administrator's"
    assert given.set["QWEN_CODE_SYSTEM_DEFAULTS_PATH"] == str(tmp_path / "system-defaults.json")
    models = settings["modelProviders"].pop("openai")
    assert settings["modelProviders"] == {}
    assert [(each["id"], each["baseUrl"]) for each in models] == [
        ("kimi/kimi-k3", DOOR.v1),
        ("demo/demo", DOOR.v1),
    ]
    assert settings["fastModel"] == ""


def test_qwen_is_given_no_file_beside_one_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("{broken")
    environ = {"QWEN_CODE_SYSTEM_SETTINGS_PATH": str(tmp_path / "settings.json")}
    given = CLIENTS["qwen"].point(DOOR, environ)
    assert (given.files, set(given.set)) == ({}, {"OPENAI_BASE_URL", "OPENAI_API_KEY"})


def test_a_managed_folder_of_hermes_is_left_to_its_administrator() -> None:
    given = CLIENTS["hermes"].point(DOOR, {"HERMES_MANAGED_DIR": "/opt/hermes"})
    assert (given.files, set(given.set)) == ({}, {"OPENAI_BASE_URL", "OPENAI_API_KEY"})


def test_a_login_of_the_project_that_overrides_ours_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert pointed("gemini").warnings == ()
    file = tmp_path / ".gemini/settings.json"
    file.parent.mkdir()
    for text, count in (
        ('{"security": {"auth": {"selectedType": "vertex-ai"}}} // ours', 1),
        ('{"security": {"auth": {"selectedType": "gemini-api-key"}}}', 0),
        ('{"security": {"auth": [1]}}', 0),
        ("{broken", 0),
    ):
        file.write_text(text)
        assert len(pointed("gemini").warnings) == count, text
        assert all("vertex-ai" in warning for warning in pointed("gemini").warnings)


def test_a_key_stands_in_a_file_of_variables_as_it_is() -> None:
    door = Door("http://127.0.0.1:8484", "it's #1 \\o/", "m")
    assert "OPENAI_API_KEY='it\\'s #1 \\\\o/'\n" in pointed("aider", door).files["aider.env"]


def test_a_list_for_a_client_has_three_hundred_models_at_most() -> None:
    many = tuple(f"p/m{number:03d}" for number in range(301))
    for name in CLIENTS:
        given = CLIENTS[name].point(Door("http://h", "k", "p/m000", models=many), {"HOME": "/nowhere"})
        written = "\n".join([*given.set.values(), *given.files.values()])
        if "p/m005" in written:
            assert "p/m299" in written, name
            assert "p/m300" not in written, name


def test_openclaw_keeps_its_configuration_beside_one_more_provider(tmp_path: Path) -> None:
    (tmp_path / ".openclaw").mkdir()
    file = tmp_path / ".openclaw/openclaw.json"
    file.write_text(
        "{channels: {telegram: {enabled: true}}, agents: {defaults: {workspace: '~/w'}}, "
        "models: {providers: {own: {baseUrl: 'http://own'}}}, tools: {$include: './tools.json5'}}"
    )
    given = json.loads(CLIENTS["openclaw"].point(DOOR, {"HOME": str(tmp_path)}).files["openclaw.json"])
    assert given["channels"] == {"telegram": {"enabled": True}}
    assert list(given["models"]["providers"]) == ["own", "wireglot"]
    assert given["agents"]["defaults"] == {"workspace": "~/w", "model": {"primary": "wireglot/kimi/kimi-k3"}}
    assert Path(given["tools"]["$include"]).resolve() == tmp_path / ".openclaw/tools.json5"


@pytest.mark.parametrize("agents", ["entries: {main: AGENT}", "list: [AGENT, 1]"])
def test_no_agent_of_openclaw_keeps_a_model_of_another_provider(tmp_path: Path, agents: str) -> None:
    (tmp_path / ".openclaw").mkdir()
    agent = "{id: 'main', name: 'Me', model: 'other/x', subagents: {model: 'other/x', maxConcurrent: 2}}"
    (tmp_path / ".openclaw/openclaw.json").write_text(
        "{agents: {defaults: {utilityModel: 'other/x', heartbeat: {every: '1h', model: 'other/x'}, "
        "modelPolicy: {allow: ['other/*']}}, " + agents.replace("AGENT", agent) + "}}"
    )
    given = CLIENTS["openclaw"].point(DOOR, {"HOME": str(tmp_path)}).files["openclaw.json"]
    assert "other/" not in given
    found = json.loads(given)["agents"]
    kept = found["entries"]["main"] if "entries" in found else found["list"][0]
    assert kept == {"id": "main", "name": "Me", "subagents": {"maxConcurrent": 2}}
    assert found["defaults"] == {"heartbeat": {"every": "1h"}, "model": {"primary": "wireglot/kimi/kimi-k3"}}


def test_a_configuration_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / ".openclaw").mkdir()
    (tmp_path / ".openclaw/openclaw.json").write_text("{broken")
    given = json.loads(CLIENTS["openclaw"].point(DOOR, {"HOME": str(tmp_path)}).files["openclaw.json"])
    assert list(given) == ["models", "agents"]


def test_only_the_chosen_model_has_its_context() -> None:
    for name in ("openclaw", "pi"):
        (text,) = pointed(name).files.values()
        assert (text.count("262144"), text.count("128000")) == (1, 1), name
    for name in ("vscode", "zed"):
        text = PRINTED[name][0](DOOR)
        assert (text.count("262144"), text.count("128000")) == (1, 1), name


@rows("name", PRINTED)
def test_settings_are_printed_without_a_key(name: str) -> None:
    text = PRINTED[name][0](DOOR)
    if name != "crush":  # whose settings are Bash
        json.loads(text)
    assert "http://127.0.0.1:8484/v1" in text
    assert "kimi/kimi-k3" in text
    assert ("demo/demo" in text) is (name != "crush")  # which asks for the list by itself
    assert "the-key" not in text


def test_crush_is_shown_lines_of_bash() -> None:
    door = Door("http://127.0.0.1:8484", "the-key", "odd/$(touch x)", 0, ("odd/$(touch x)",))
    printed = PRINTED["crush"][0](door)
    said = 'provider() { printf \'%s\\n\' "$@"; }; model() { provider "$@"; }\n'
    done = subprocess.run(["bash", "-c", said + printed], capture_output=True, text=True, check=True, env={})
    assert done.stdout.splitlines() == [
        *("add", "wireglot", "--type", "openai-compat", "--base-url", "http://127.0.0.1:8484/v1", "--api-key", "none"),
        *("--discover-models", "true"),
        *("add", "wireglot/odd/$(touch x)", "--context-window", "128000", "--default-max-tokens", "32000"),
        *("large", "wireglot/odd/$(touch x)", "small", "wireglot/odd/$(touch x)"),
    ]  # fmt: skip
