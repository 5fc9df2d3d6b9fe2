"""`keys`, `usage`, `store` and `trace`: about the gateway that runs, and else about a store that they name."""

import configparser
import json
import os
import re
import shlex
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, configure, run
from tests.processes import ForkedCommand
from tests.waiting import wait_until
from wireglot.cli.remote_gateway import GatewayAnswer, address_of, ask
from wireglot.gateway.observe import running
from wireglot.stores import described

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a running gateway is found by locks")

OPERATIONS = (Path(__file__).parents[2] / "docs/operations.md").read_text()
SECRET = "the-secret-of-the-owner-0123456789"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a folder without anything of this machine."""
    for name in [name for name in os.environ if name.startswith(("WIREGLOT_", "XDG_", "MOONSHOT"))]:
        monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("wireglot.cli.remote_gateway.SYSTEM_DATA", tmp_path / "no-service")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


@contextmanager
def serving(*options: str, env: Mapping[str, str] = {}, port: int = 0) -> Iterator[str]:
    command = [*COMMAND, "serve", "--port", str(port), "--log", "json", *options]
    with served(command, {**os.environ, **env}) as url:
        yield url


@contextmanager
def served(command: list[str], env: Mapping[str, str]) -> Iterator[str]:
    """The URL of a gateway that other commands can find by now."""
    with ForkedCommand(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            yield str(json.loads(process.stderr.readline())["url"])
        finally:
            process.terminate()
            process.communicate()


def asked(url: str, key: str = "") -> GatewayAnswer:
    body = {"model": "demo", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    return ask(address_of(url), "POST", "/v1/messages", key=key, body=body)


def said(*arguments: str) -> tuple[str, str]:
    done = run(*arguments)
    assert done.returncode == 0, done
    return done.stdout.decode(), done.stderr.decode()


@pytest.mark.whole
@pytest.mark.parametrize(
    ("store", "workers"),
    [("sqlite:///{home}/elsewhere.db", "1"), ("sqlite:///{home}/elsewhere.db", "2"), ("memory:", "1")],
)
def test_a_command_is_about_the_gateway_that_runs_wherever_that_keeps_its_data(
    home: Path, store: str, workers: str
) -> None:
    """The store that the command itself would open is another one."""
    with serving("--workers", workers, env={"WIREGLOT_STORE": store.format(home=home)}) as url:
        assert asked(url).status == 200
        key, noted = said("keys", "create", "ada")
        assert "this is the store" not in noted
        wait_until(lambda: asked(url).status == 401)
        assert asked(url, key.strip()).status == 200
        assert "ada" in said("keys", "list")[0]
        wait_until(lambda: "demo" in said("usage")[0])
        assert re.search(r"keys +1\b", said("store", "stats")[0])
        assert "demo" in said("trace", "list")[0]
        assert said("store", "wipe", "ada")[0] == "no data of 'ada'\n"
        said("keys", "off", "--yes")
        wait_until(lambda: asked(url).status == 200)
    assert not (home / ".local/share/wireglot/wireglot.db").exists()


def test_without_a_gateway_a_command_says_which_store_it_opens_and_that_it_is_new(home: Path) -> None:
    folder = home / ".local/share/wireglot"
    store = f"wireglot: no running gateway found, using the store {folder / 'wireglot.db'}"
    assert f"{store}, which was newly created\n" in said("keys", "create", "ada")[1]
    for command in (("keys", "list"), ("usage",), ("store", "stats"), ("store", "prune")):
        assert f"{store}\n" in said(*command)[1], command
    assert f"no running gateway found, using the store {folder / 'traces'}\n" in said("trace", "list")[1]


@pytest.mark.parametrize(
    "command",
    [("keys", "list"), ("usage",), ("trace", "list"), ("store", "stats"), ("models",)],
    ids=" ".join,
)
def test_a_command_that_calls_no_provider_needs_none_of_their_keys(command: tuple[str, ...]) -> None:
    configure(
        '[providers.kimi]\napi_key = "env:MOONSHOT_API_KEY"\n'
        '[providers.mine]\ndialect = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n'
        'api_keys = ["env:MINE_ONE", "env:MINE_TWO"]\n'
        '[models]\nfast = "kimi-k3"\n"claude-*" = "mine/small"\n'
    )
    shown = said(*command)[0]
    if command == ("models",):
        assert re.search(r"kimi +set MOONSHOT_API_KEY\n", shown)
        assert re.search(r"mine +set MINE_ONE\n", shown)


def test_the_page_of_a_gateway_is_found_without_the_keys_of_providers() -> None:
    port = free_port()
    configure(f'[server]\nport = {port}\n[providers.kimi]\napi_key = "env:MOONSHOT_API_KEY"\n')
    done = run("inspect", "--no-browser")
    assert done.returncode == 1
    assert f"http://127.0.0.1:{port}: connection refused" in done.stderr.decode()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.mark.whole
@pytest.mark.parametrize("command", [("keys", "list"), ("usage",), ("store", "stats"), ("trace", "list")])
def test_a_gateway_with_another_data_folder_is_reported_with_the_way_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    env = {"HOME": str(tmp_path / "other"), "WIREGLOT_ADMIN_SECRET": SECRET}
    port = free_port()
    with serving(env=env, port=port) as url:
        monkeypatch.setenv("WIREGLOT_PORT", str(port))
        noted = said(*command)[1]
        options = re.search(r"with (--url .+) and its admin secret in (\w+)", noted)
        assert f"a gateway that is not recorded in your data folder runs at {url}" in noted
        assert options is not None
        assert "its HOME and XDG_DATA_HOME" in noted
        monkeypatch.setenv(options[2], SECRET)
        assert "this is the store" not in said(*command, *options[1].split())[1]


def test_a_gateway_with_another_configuration_is_reported(tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text('[providers.demo]\n[store]\nurl = "sqlite:other.db"\n')
    mine = tmp_path / "mine.toml"
    mine.write_text("[providers.demo]\n")
    with serving("--config", str(other)) as url:
        noted = said("keys", "list", "--config", str(mine))[1]
        assert f"another gateway runs at {url} with the store {tmp_path / 'other.db'}" in noted
        assert f"--config {other}" in noted
        assert "this is the store" not in said("keys", "list", "--config", str(other))[1]


def test_the_key_of_a_running_gateway_is_for_its_user_and_its_admin_api_alone(home: Path) -> None:
    with serving() as url:
        (file,) = (home / ".local/share/wireglot/running").iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        key = json.loads(file.read_bytes())["key"]
        assert len(key) > 40
        there = address_of(url)
        assert ask(there, "GET", "/v1/admin/keys", key=key).status == 200
        assert ask(there, "GET", "/v1/admin/keys", key=f"{key}x").status == 404, "the admin API is off"
        said("keys", "create", "ada")
        wait_until(lambda: asked(url).status == 401)
        assert asked(url, key).status == 401, "no client has it"
        assert ask(there, "GET", "/metrics", key=key).status == 404
    with serving() as url:
        assert ask(address_of(url), "GET", "/v1/admin/keys", key=key).status == 404


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("memory:", "memory"),
        ("sqlite:///var/lib/wireglot/wireglot.db", "/var/lib/wireglot/wireglot.db"),
        ("postgresql://me:hush@db:5432/wireglot?sslmode=disable", "postgresql://db:5432/wireglot"),
    ],
)
def test_a_store_is_named_without_a_password(url: str, shown: str) -> None:
    assert described(url) == shown


def unit() -> configparser.SectionProxy:
    text = re.search(r"```ini\n(\[Unit\].*?)```", OPERATIONS, re.DOTALL)
    assert text is not None
    parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # as the documentation of configparser has it
    parser.read_string(text[1])
    return parser["Service"]


def commands_of(section: str) -> list[list[str]]:
    block = re.search(r"```sh\n(systemctl.*?)```", OPERATIONS.partition(section)[2], re.DOTALL)
    assert block is not None
    return [shlex.split(line, comments=True) for line in block[1].splitlines()]


@pytest.mark.whole
def test_the_service_of_the_documented_unit_answers_to_its_documented_first_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As far as it goes without systemd: its command and its environment, with folders of the test."""
    service = unit()
    etc, var = tmp_path / "etc", tmp_path / "var"
    for folder in (etc, var):
        folder.mkdir()
    (etc / "wireglot.toml").write_text("[providers.demo]\n")
    (etc / "keys.env").write_text("")

    def moved(text: str) -> str:
        return text.replace("/etc/wireglot", str(etc)).replace("/var/lib", str(var))

    assert service["EnvironmentFile"] == "/etc/wireglot/keys.env"
    name, _, value = service["Environment"].partition("=")
    program, *options = shlex.split(moved(service["ExecStart"]))
    env = {name: moved(value), "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    assert (name, service["StateDirectory"]) == ("XDG_DATA_HOME", "wireglot")
    state = Path(env[name], service["StateDirectory"])
    assert moved(str(running.SYSTEM_DATA)) == str(state), "root's commands look there"
    monkeypatch.setattr("wireglot.cli.remote_gateway.SYSTEM_DATA", state)
    with served([*COMMAND, *options, "--port", "0"], env) as url:
        enable, create, usage = commands_of("### systemd")
        assert enable == ["systemctl", "enable", "--now", "wireglot"]
        assert create[0] == usage[0] == program
        key, noted = said(*create[1:])
        assert "this is the store" not in noted
        wait_until(lambda: asked(url).status == 401)
        assert asked(url, key.strip()).status == 200
        wait_until(lambda: "demo" in said(*usage[1:])[0])
    assert not list((tmp_path / "home").iterdir()), "nothing is kept in the home of the one who asks"
