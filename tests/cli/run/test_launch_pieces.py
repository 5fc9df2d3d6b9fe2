"""Pieces of starting a client: proxies, files, the line of the terminal, keys of a gateway that runs."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tiers import rows
from wireglot.cli.run import launch
from wireglot.cli.run.clients import CLIENTS
from wireglot.cli.run.launch import Joined, Launch
from wireglot.cli.run.pointing import FOLDER, Door, Pointing
from wireglot.cli.terminal import Failed, Unusable

LOOPBACK = "127.0.0.1,localhost,::1"


@rows(
    ("environ", "hosts"),
    [
        ({}, None),
        ({"no_proxy": "a"}, None),
        *(({name: "http://p"}, LOOPBACK) for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")),
        *(({name: "http://p"}, LOOPBACK) for name in ("http_proxy", "https_proxy", "all_proxy")),
        ({"HTTP_PROXY": ""}, None),
        ({"HTTP_PROXY": "p", "NO_PROXY": " a , ::1,"}, "a,::1,127.0.0.1,localhost"),
        ({"HTTP_PROXY": "p", "NO_PROXY": "a", "no_proxy": "b"}, f"b,{LOOPBACK}"),
        ({"HTTP_PROXY": "p", "NO_PROXY": "a,*"}, None),
    ],
)
def test_a_gateway_on_this_machine_is_asked_without_a_proxy(
    environ: dict[str, str], hosts: str | None
) -> None:
    assert launch._past_proxies(environ) == ({} if hosts is None else {"no_proxy": hosts, "NO_PROXY": hosts})


def test_a_client_has_the_variables_that_lead_to_its_gateway_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"A": "1", "B": "2", "C": "3", "HTTP_PROXY": "p"})
    found = launch._environment(Pointing(set={"B": "20", "D": "4"}, unset=("C",)))
    assert found == {
        "A": "1",
        "B": "20",
        "D": "4",
        "HTTP_PROXY": "p",
        "no_proxy": LOOPBACK,
        "NO_PROXY": LOOPBACK,
    }


def test_files_of_a_client_are_its_users_alone(tmp_path: Path) -> None:
    folder, home = tmp_path / "folder", tmp_path / "home" / "history"
    folder.mkdir()
    pointing = Pointing(
        set={"CONFIG": f"{FOLDER}/a", "OTHER": "x"},
        options=(("--file", f"{FOLDER}/sub/b"),),
        files={"a": "text a", "sub/b": "text b"},
        links={"link": str(home)},
        history=(str(home),),
    )
    placed = launch._placed(pointing, folder)
    assert placed.set == {"CONFIG": f"{folder}/a", "OTHER": "x"}
    assert placed.options == (("--file", f"{folder}/sub/b"),)
    assert ((folder / "a").read_text(), (folder / "sub" / "b").read_text()) == ("text a", "text b")
    for place, mode in ((folder / "a", 0o600), (folder / "sub", 0o700), (home, 0o700)):
        assert stat.S_IMODE(place.stat().st_mode) == mode, place
    assert (folder / "link").resolve() == home.resolve()
    assert launch._placed(pointing, None) is pointing


POINTING = Pointing(set={"ONE": "1", "TWO": "2", "THREE": "3"})
DOOR = Door("http://h:1", "k", "p/m")
WHOLE = "claude on http://h:1 (already running), p/m; set ONE, TWO, THREE"


@rows(
    ("columns", "line"),
    [
        (10 + len(WHOLE), WHOLE),
        (9 + len(WHOLE), "claude on http://h:1 (already running), p/m; set ONE and 2 more"),
        (10 + 62, "claude on http://h:1 (already running), p/m; set 3 variables"),
        (10 + 59, "claude on http://h:1, p/m; set 3 variables"),
    ],
)
def test_what_was_set_is_one_line(monkeypatch: pytest.MonkeyPatch, columns: int, line: str) -> None:
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: SimpleNamespace(columns=columns))
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
    assert launch._line(Launch(client="claude"), DOOR, "already running", POINTING) == line
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: False))
    assert launch._line(Launch(client="claude"), DOOR, "already running", POINTING) == WHOLE
    nameless = launch._line(Launch(client="claude"), Door("http://h:1", "k"), "private", POINTING)
    assert nameless.startswith("claude on http://h:1 (private), the models it requests; set ")


def test_the_command_turns_into_the_client(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[Any] = []
    signals: dict[Any, Any] = {}
    monkeypatch.setattr(signal, "signal", signals.__setitem__)
    monkeypatch.setattr(os, "execvpe", lambda *given: ran.append(given))
    pointing = Pointing(options=(("--model", "m"), ("--other", "x")))
    task = Launch(client="claude", arguments=("--model", "own", "-p"))
    assert launch._become(task, pointing, {"A": "1"}) == 126
    assert ran == [("claude", ["claude", "--other", "x", "--model", "own", "-p"], {"A": "1"})]
    assert signals == {signal.SIGPIPE: signal.SIG_DFL, signal.SIGXFSZ: signal.SIG_DFL}
    monkeypatch.setattr(os, "execvpe", lambda *given: (_ for _ in ()).throw(OSError(8, "bad format")))
    assert launch._become(task, pointing, {}) == 126
    assert capsys.readouterr().err == "wireglot: claude cannot be run: bad format\n"


@rows(
    ("taken", "environ", "kept", "asked", "outcome"),
    [
        ("none", "", "", "", "none"),
        ("env", "env", "kept", "", "env"),
        ("kept", "env", "kept", "", "kept"),
        ("kept", "", "kept", "", "kept"),
        ("typed", "env", "", "typed", "typed"),
        ("other", "", "", "", Unusable),
        ("other", "env", "", "", Failed),
        ("other", "", "", "typed", Failed),
    ],
)
def test_the_first_key_that_a_gateway_takes_is_used(
    monkeypatch: pytest.MonkeyPatch, taken: str, environ: str, kept: str, asked: str, outcome: Any
) -> None:
    monkeypatch.setattr(Joined, "is_wireglot", lambda self: True)
    monkeypatch.setattr(Joined, "wants_key", lambda self: self.key != taken)
    monkeypatch.setattr(os, "environ", {"WIREGLOT_KEY": environ} if environ else {})
    found = {"WIREGLOT_KEY": SimpleNamespace(value=kept)} if kept else {}
    monkeypatch.setattr(launch, "kept_file", lambda environ: None)
    monkeypatch.setattr(launch, "read_kept", lambda file, notes: found)
    urls: list[str] = []

    def ask(url: str, try_key: Any) -> str:
        urls.append(url)
        return asked

    if isinstance(outcome, str):
        assert launch.join("http://h:1", ask).key == outcome
        assert urls == (["http://h:1"] if outcome == "typed" else [])
    else:
        with pytest.raises(outcome, match="WIREGLOT_KEY"):
            launch.join("http://h:1", ask)


def test_another_server_is_no_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Joined, "is_wireglot", lambda self: False)
    with pytest.raises(Failed, match="http://h:1: the server is not a Wireglot gateway"):
        launch.join("http://h:1", lambda url, try_key: "")


@rows(
    ("task", "names", "refused", "door"),
    [
        (Launch(client="claude"), ("a", "b"), (), Door("http://h:1", "k", "", 0, ("a", "b"))),
        (Launch(client="claude"), ("a", "b"), ("own",), Door("http://h:1", "k", "a", 7, ("a", "b"))),
        (Launch(client="claude", model="b"), ("a", "b"), (), Door("http://h:1", "k", "b", 7, ("a", "b"))),
        (Launch(client="claude"), (), ("own",), None),
    ],
    ids=["private", "the first", "named", "none"],
)
def test_the_model_that_a_client_is_given(
    monkeypatch: pytest.MonkeyPatch, task: Launch, names: tuple[str, ...], refused: Any, door: Door | None
) -> None:
    monkeypatch.setattr(Launch, "own_model", property(lambda self: "own"))
    joined: Any = SimpleNamespace(
        url="http://h:1",
        key="k",
        models=lambda: names,
        refusal=lambda model: "no" if model in refused else "",
        context=lambda model: 7,
    )
    if door is None:
        with pytest.raises(Unusable, match="lists no model: name one with --model"):
            launch._joined(task, joined)
    else:
        found = launch._joined(task, joined)
        assert (found.door, found.what, found.remark, found.own) == (door, "already running", "", None)


@rows(
    ("task", "running", "refusal", "used"),
    [
        (Launch(client="claude"), "http://r:1", "", "http://r:1"),
        (Launch(client="claude", url="http://u:1"), "http://r:1", "", "http://u:1"),
        (Launch(client="claude", private=True), "http://r:1", "", "private: "),
        (Launch(client="claude"), "", "", "private: "),
        (
            Launch(client="claude", model="x"),
            "http://r:1",
            "no x",
            "private: the gateway at http://r:1 does not serve x",
        ),
        (Launch(client="claude", model="x", url="http://u:1"), "", "no x", Unusable),
    ],
    ids=["running", "named", "private", "none", "without the model", "named without the model"],
)
def test_which_gateway_a_client_gets(
    monkeypatch: pytest.MonkeyPatch, task: Launch, running: str, refusal: str, used: Any
) -> None:
    joined = SimpleNamespace(refusal=lambda model: refusal)
    asked: list[str] = []
    monkeypatch.setattr(launch, "running_url", lambda path, environ: running)

    def join(url: str, ask: Any) -> Any:
        asked.append(url)
        return joined

    monkeypatch.setattr(launch, "join", join)
    monkeypatch.setattr(launch, "_joined", lambda task, joined: asked[-1])
    monkeypatch.setattr(launch, "_private", lambda task, remark: f"private: {remark}")
    file: Any = SimpleNamespace(path=None)
    if used is Unusable:
        with pytest.raises(Unusable, match="no x"):
            launch._found(task, file)
    else:
        assert launch._found(task, file) == used


@rows(("path", "shown"), [("/etc/w.toml", "/etc/w.toml"), ("w.toml", "./w.toml"), ("a\nb", "./a b")])
def test_where_a_configuration_lies(path: str, shown: str) -> None:
    assert launch._format_place(Path(path)) == shown


@rows(
    ("task", "command"),
    [
        (Launch(client="claude"), "wireglot run claude -- --resume"),
        (Launch(client="codex", model="kimi/kimi-k3"), "wireglot run codex --model kimi/kimi-k3 -- resume"),
        (Launch(client="goose", url="http://h:1"), "wireglot run goose --url http://h:1 -- session --resume"),
        (
            Launch(
                client="claude", config="my file.toml", private=True, log="l", statusline=True, inspect=True
            ),
            "wireglot run claude --config 'my file.toml' --log l --private --statusline -- --resume",
        ),
        (Launch(client="llm"), ""),
        (Launch(client="claude", arguments=("-p", "hi")), ""),
        (Launch(families=("openai",), arguments=("python",)), ""),
    ],
)
def test_the_hint_to_resume_is_the_whole_command(
    monkeypatch: pytest.MonkeyPatch, task: Launch, command: str
) -> None:
    monkeypatch.setattr(launch, "can_ask", lambda: True)
    assert launch._resume(task) == command
    monkeypatch.setattr(launch, "can_ask", lambda: False)
    assert launch._resume(task) == "", "for people alone"


def test_the_hint_to_resume_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "can_ask", lambda: True)
    for name in CLIENTS:
        line = f"  {launch._resume(Launch(client=name, model='kimi/kimi-k3'))}"
        assert len(line) <= 80
