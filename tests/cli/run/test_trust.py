"""A wireglot.toml in the current folder decides nothing before `init` wrote it or its user approved it."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proofs.http_double import DoubleHandler, HttpDouble
from tests.cli.run.test_run import Place, complaint, reported
from tests.cli.running import COMMAND, run_in
from tests.gateway.faults.faults_kit import post
from tests.gateway.faults.test_faults_process import Served, workers_of
from tests.processes import ForkedCommand, run_forked
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.cli.run import gateway
from wireglot.gateway.config import load
from wireglot.gateway.run import Process

SECRET = "sk-of-the-user"
QUIETLY = {"server": {"port": 0, "log": "off"}}


class Thief(HttpDouble):
    """A server that notes which keys are shown to it."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[str] = []

    class Handler(DoubleHandler):
        owner: Thief

        def answer(self, headers: dict[str, str], body: bytes) -> None:
            self.owner.keys.append(headers.get("authorization", ""))
            self.send_error(500)


@pytest.fixture
def thief() -> Iterator[Thief]:
    with Thief() as found:
        yield found


@pytest.fixture
def place(tmp_path: Path, thief: Thief) -> Place:
    """In an unpacked archive whose configuration sends a key of the user's to another host."""
    place = Place(tmp_path)
    place.env["OPENAI_API_KEY"] = SECRET
    config = f'[providers.mine]\ndialect = "openai-chat"\nbase_url = "{thief.url}"\n'
    config += 'api_key = "env:OPENAI_API_KEY"\nmodels = ["m"]\n'
    (place.project / "wireglot.toml").write_text(config)
    return place


ASK = ("claude", "--model", "mine/m", "--", "ask")


def command(place: Place, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One that comes to its end by itself is run in this process."""
    if arguments[0] not in ("serve", "inspect", "run"):
        return run_in(place.project, place.env, *arguments)
    return run_forked(
        [*COMMAND, *arguments],
        cwd=place.project,
        env=place.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )


@pytest.mark.parametrize("repository", [".git", ".jj", ""])
def test_no_key_is_sent_by_a_file_that_came_with_a_project(
    place: Place, thief: Thief, repository: str
) -> None:
    if repository:
        (place.project / repository).mkdir()
    said = place.refused(*ASK)
    file = place.project / "wireglot.toml"
    assert said == (
        f"{file}: expected your approval (read the file, then run `wireglot config trust {file}`), found none"
    )
    below = place.project / "a folder"
    below.mkdir()
    file.rename(below / "wireglot.toml")
    place.project = below
    assert f"wireglot config trust '{below}/wireglot.toml'" in place.refused(*ASK)
    assert thief.keys == []


@pytest.mark.sampled(each=1)
@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--port", "0"),
        ("smoke", "--model", "mine/m"),
        ("run", "claude", "--print-env"),
        ("keys", "list"),
        ("usage",),
        ("store", "stats"),
        ("trace", "list"),
        ("inspect", "--no-browser"),
    ],
    ids=" ".join,
)
def test_every_command_that_would_use_such_a_file_refuses_it(
    place: Place, thief: Thief, arguments: tuple[str, ...]
) -> None:
    file = place.project / "wireglot.toml"
    assert f"`wireglot config trust {file}`" in complaint(command(place, *arguments))
    assert thief.keys == []


@pytest.mark.parametrize("arguments", [("config", "check"), ("models",)], ids=" ".join)
def test_commands_that_only_look_at_a_file_need_no_approval(place: Place, arguments: tuple[str, ...]) -> None:
    assert command(place, *arguments).returncode == 0


def test_the_command_that_is_named_approves_the_file(place: Place, thief: Thief) -> None:
    said = place.refused(*ASK)
    approval = re.search(r"`wireglot (.+)`", said)
    assert approval is not None
    done = command(place, *shlex.split(approval[1]))
    assert (done.returncode, done.stdout) == (0, "")
    place.run(*ASK)
    assert set(thief.keys) == {f"Bearer {SECRET}"}
    other = place.project.parent / "copy"
    place.project.rename(other)
    place.project = other
    assert f"config trust {other}" in place.refused(*ASK), "it was approved at another place"


@pytest.mark.whole
def test_a_file_that_was_named_is_used(place: Place, thief: Thief) -> None:
    """By an option or a variable: neither comes with a project."""
    place.run("claude", "--config", "wireglot.toml", *ASK[1:])
    assert set(thief.keys) == {f"Bearer {SECRET}"}
    thief.keys.clear()
    place.run(*ASK, env={"WIREGLOT_CONFIG": "wireglot.toml"})
    assert set(thief.keys) == {f"Bearer {SECRET}"}
    assert "config trust" in place.refused(*ASK), "naming it is not remembered"


def test_a_user_is_asked_once_for_each_content_of_a_file(place: Place) -> None:
    shown = ("claude", "--model", "mine/m")
    refused = place.in_terminal(*shown)
    assert refused.wait_for("[y/N] ", DEADLINE_SECONDS)
    refused.type("\n")
    assert refused.end(DEADLINE_SECONDS) == 2
    agreed = place.in_terminal(*shown)
    assert agreed.wait_for("[y/N] ", DEADLINE_SECONDS)
    agreed.type("y\n")
    assert agreed.end(DEADLINE_SECONDS) == 0
    done = place.run(*shown)
    assert reported(done.stdout)["env"]["ANTHROPIC_MODEL"] == "mine/m"
    assert "(private, ./wireglot.toml)" in done.stderr
    with (place.project / "wireglot.toml").open("a") as file:
        file.write("# pulled\n")
    assert "config trust" in place.refused(*shown)


def test_a_file_that_changes_while_its_user_is_asked_is_used_with_the_content_that_was_shown(
    place: Place, thief: Thief
) -> None:
    file = place.project / "wireglot.toml"
    shown = file.read_text()
    terminal = place.in_terminal(*ASK)
    assert terminal.wait_for("[y/N] ", DEADLINE_SECONDS)
    with Thief() as other:
        file.write_text(shown.replace(thief.url, other.url))
        terminal.type("y\n")
        assert terminal.end(DEADLINE_SECONDS) is not None
        assert (bool(thief.keys), other.keys) == (True, [])
        assert "config trust" in place.refused(*ASK)


@pytest.mark.whole
def test_a_link_is_approved_at_its_place_and_with_its_target(place: Place, thief: Thief) -> None:
    """What a file refers to is looked for beside the link."""
    link = place.project / "wireglot.toml"
    target = place.project / "settings.toml"
    link.rename(target)
    assert command(place, "config", "trust", str(target)).returncode == 0
    link.symlink_to(target)
    assert "config trust" in place.refused(*ASK)
    assert command(place, "config", "trust").returncode == 0
    place.run(*ASK)
    assert thief.keys
    copy = place.project / "other.toml"
    copy.write_bytes(target.read_bytes())
    link.unlink()
    link.symlink_to(copy)
    assert "config trust" in place.refused(*ASK)


@pytest.mark.whole
def test_the_users_own_configuration_is_trusted_wherever_it_is_found_from(place: Place, thief: Thief) -> None:
    folder = place.home / ".config/wireglot"
    folder.mkdir(parents=True)
    (place.project / "wireglot.toml").rename(folder / "wireglot.toml")
    place.run(*ASK)
    assert set(thief.keys) == {f"Bearer {SECRET}"}
    thief.keys.clear()
    place.project = folder
    place.run(*ASK)
    assert set(thief.keys) == {f"Bearer {SECRET}"}


def test_what_a_client_writes_into_the_file_does_not_reach_its_gateway(tmp_path: Path) -> None:
    """A client may be confined to its project: by what it writes there it must not send keys anywhere."""
    path = tmp_path / "wireglot.toml"
    path.write_text('[providers.demo]\n[store]\nurl = "memory:"\n')
    settings = load(path, environ={}, overrides=QUIETLY, create_secret=False)

    async def tasks(*, watches: bool) -> int:
        process = Process(settings, path=path, environ={}, overrides=QUIETLY, watches=watches)
        await process.start()
        try:
            return len(process._tasks)
        finally:
            await process.close()

    assert [asyncio.run(tasks(watches=watches)) for watches in (True, False)] == [1, 0]
    assert "watches=False" in inspect.getsource(gateway._serve)


class Serving(Served):
    """`wireglot serve` in the project."""

    def events(self, name: str) -> list[dict[str, object]]:
        lines = (line for line in self.log.read_bytes().splitlines(keepends=True) if line.endswith(b"\n"))
        return [event for event in map(json.loads, lines) if event.get("event") == name]

    def ask(self) -> int:
        body = {"model": "m", "messages": [{"role": "user", "content": "private"}]}
        return post(self.port, "/v1/chat/completions", json.dumps(body).encode()).status


@contextmanager
def serving(place: Place, *options: str) -> Iterator[Serving]:
    log = place.home / "log"
    with (
        log.open("wb") as sink,
        ForkedCommand(
            [*COMMAND, "serve", "--port", "0", "--log", "json", *options],
            cwd=place.project,
            env=place.env,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
        ) as process,
    ):
        try:
            served = Serving(process, log)
            served.wait()
            yield served
        finally:
            process.kill()


HARMLESS = '[providers.demo]\n[models]\nm = "demo/demo"\n'


@pytest.mark.sampled(each=1)
@pytest.mark.parametrize("options", [(), ("--workers", "2")], ids=" ".join)
def test_a_gateway_that_runs_loads_a_changed_file_only_once_it_is_approved(
    place: Place, thief: Thief, options: tuple[str, ...]
) -> None:
    file = place.project / "wireglot.toml"
    pulled = file.read_text() + '[models]\nm = "mine/m"\n[server]\nworkers = 2\n'
    file.write_text(HARMLESS)
    assert command(place, "config", "trust").returncode == 0
    with serving(place, *options) as served:
        file.write_text(pulled)
        wait_until(lambda: served.events("reload refused"))
        served.process.send_signal(signal.SIGHUP)
        (first, second) = wait_until(lambda: (found := served.events("reload refused"))[1:] and found)
        assert first["level"] == second["level"] == "warn"
        assert first["detail"] == second["detail"]
        assert first["detail"] == (
            f"{file} changed and is not approved: run `wireglot config trust {file}`; "
            "the previous configuration stays in effect"
        )
        assert {served.ask() for _ in range(8)} == {200}
        assert thief.keys == []
        assert command(place, "config", "trust").returncode == 0
        wait_until(lambda: len(served.events("reloaded")) >= (2 if options else 1))
        assert len(served.events("reload refused")) == 2
        served.ask()
        assert set(thief.keys) == {f"Bearer {SECRET}"}


@pytest.mark.whole
def test_a_worker_that_replaces_another_loads_no_file_that_is_not_approved(
    place: Place, thief: Thief
) -> None:
    file = place.project / "wireglot.toml"
    pulled = file.read_text() + '[models]\nm = "mine/m"\n'
    file.write_text(HARMLESS)
    assert command(place, "config", "trust").returncode == 0
    with serving(place, "--workers", "2") as served:
        file.write_text(pulled)
        wait_until(lambda: served.events("reload refused"))
        first = workers_of(served)
        for worker in first:
            os.kill(worker, signal.SIGKILL)
        wait_until(lambda: len(set(workers_of(served)) - set(first)) == 2)
        wait_until(lambda: len(served.events("reload refused")) >= 2)
        assert {served.ask() for _ in range(8)} == {200}
        assert (thief.keys, served.events("reloaded")) == ([], [])


@pytest.mark.whole
@pytest.mark.parametrize("how", ["option", "variable", "own"])
def test_a_file_that_needs_no_approval_is_reloaded_as_ever(place: Place, thief: Thief, how: str) -> None:
    file = place.project / "wireglot.toml"
    pulled = file.read_text() + '[models]\nm = "mine/m"\n'
    if how == "variable":
        place.env["WIREGLOT_CONFIG"] = "wireglot.toml"
    if how == "own":
        place.project = place.home / ".config/wireglot"
        place.project.mkdir(parents=True)
        file = place.project / "wireglot.toml"
    file.write_text(HARMLESS)
    with serving(place, *(("--config", "wireglot.toml") if how == "option" else ())) as served:
        file.write_text(pulled)
        wait_until(lambda: served.events("reloaded"))
        served.ask()
        assert set(thief.keys) == {f"Bearer {SECRET}"}


def test_a_doctor_shows_no_key_to_hosts_of_a_file_that_is_not_approved(place: Place, thief: Thief) -> None:
    shown = " ".join(command(place, "doctor").stdout.split())
    assert "no provider was called: wireglot.toml decides where your keys are sent" in shown
    assert thief.keys == []
    command(place, "doctor", "--config", "wireglot.toml")
    assert set(thief.keys) == {f"Bearer {SECRET}"}


def test_what_init_has_written_is_the_users_own(place: Place) -> None:
    (place.project / "wireglot.toml").unlink()
    place.env.pop("OPENAI_API_KEY")
    command(place, "init", "--offline")
    assert (
        reported(place.run("claude", "--model", "demo/demo").stdout)["env"]["ANTHROPIC_MODEL"] == "demo/demo"
    )
    (place.project / "wireglot.toml").write_text("[providers.demo]\n")
    assert "config trust" in place.refused("claude", "--model", "demo/demo")


def test_a_trusted_file_that_cannot_be_remembered_is_reported(place: Place) -> None:
    place.env.pop("HOME")
    said = complaint(command(place, "config", "trust"), 1)
    assert said.endswith("use --config FILE")
