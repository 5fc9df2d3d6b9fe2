"""What `wireglot run` asks, offers, prints and starts, without a process or a terminal."""

from __future__ import annotations

import io
import shutil
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.gateway.kit import catalogued, own, settings
from tests.tiers import rows
from wireglot.cli.run import asking, launch, offers
from wireglot.cli.run.asking import TriedKey
from wireglot.cli.run.clients import CLIENTS
from wireglot.cli.run.launch import Choice, Chooser, Launch
from wireglot.cli.run.pointing import FOLDER, Door, Pointing
from wireglot.cli.terminal import Failed, Unusable
from wireglot.cli.trust import NO_FILE, ConfigFile
from wireglot.gateway.config.provider_keys import ProviderKey
from wireglot.gateway.relay.key_checks import ProviderAnswer
from wireglot.gateway.settings import Rule
from wireglot_core.providers import spec as catalog
from wireglot_core.providers.spec import ModelSpec

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# --- a key that is missing


def typing(monkeypatch: Patch, *keys: str | type[BaseException], said: str = "") -> list[str]:
    """A person who types these keys, then these lines. Gives the questions for keys."""
    left, questions = list(keys), list[str]()

    def getpass(question: str, stream: Any) -> str:
        questions.append(question)
        given = left.pop(0)
        if isinstance(given, str):
            return given
        raise given

    monkeypatch.setattr(asking, "can_ask", lambda: True)
    monkeypatch.setattr("getpass.getpass", getpass)
    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    return questions


def test_a_key_is_asked_for_until_one_is_taken(monkeypatch: Patch, capsys: Capture) -> None:
    kept: list[tuple[str, str]] = []
    monkeypatch.setattr(asking, "_offer_to_keep", lambda *given: kept.append(given))
    questions = typing(monkeypatch, "two words", " sk-wrong ", "sk-right")
    tried: list[str] = []

    def try_key(key: str) -> TriedKey:
        tried.append(key)
        return TriedKey(key == "sk-wrong", "no\nway" if key == "sk-wrong" else "")

    assert asking.ask_key("Kimi", "KIMI_KEY", try_key) == "sk-right"
    assert (tried, kept) == (["sk-wrong", "sk-right"], [("KIMI_KEY", "sk-right")])
    assert questions == ["Key (input is hidden; Enter to cancel): "] * 3
    assert capsys.readouterr().err == (
        "wireglot: Kimi requires a key, and KIMI_KEY is not set.\n"
        "wireglot: not a valid key: expected plain ASCII without spaces.\n"
        "wireglot: no way\n"
    )
    for given in ("", "  ", EOFError):
        typing(monkeypatch, given)
        assert asking.ask_key("Kimi", "KIMI_KEY", try_key, "it is refused") == ""
        assert capsys.readouterr().err == "wireglot: it is refused\n"
    monkeypatch.setattr(asking, "can_ask", lambda: False)
    assert asking.ask_key("Kimi", "KIMI_KEY", try_key) == ""
    assert (len(tried), len(kept), capsys.readouterr().err) == (2, 1, "")


@rows(
    ("said", "ring", "kept"),
    [
        ("y", False, "file"), ("Yes", False, "file"), ("f", False, "file"), ("file", False, "file"), ("k", False, ""),
        ("", False, ""), ("n", False, ""), ("k", True, "keyring"), ("KEYRING", True, "keyring"), ("f", True, "file"),
        ("y", True, "file"), ("no", True, ""),
    ],
)  # fmt: skip
def test_a_key_is_kept_where_its_user_says(
    said: str, ring: bool, kept: str, monkeypatch: Patch, capsys: Capture
) -> None:
    done: list[Any] = []
    monkeypatch.setattr(asking, "kept_file", lambda environ: Path("/data/keys"))
    monkeypatch.setattr(asking, "has_keyring", lambda: ring)
    monkeypatch.setattr(asking, "keep", lambda *given: done.append(("file", *given)))
    monkeypatch.setattr(asking, "keep_in_keyring", lambda *given: done.append(("keyring", *given)))
    monkeypatch.setattr("sys.stdin", io.StringIO(f" {said} \n"))
    asking._offer_to_keep("K", "sk-1")
    assert done == ([(kept, Path("/data/keys"), "K", "sk-1")] if kept else [])
    where = "in the [k]eyring, in a [f]ile" if ring else "in /data/keys"
    answers = "k/f/N" if ring else "y/N"
    asked = f"Store it for next time, {where} that only you can read? [{answers}] "
    assert capsys.readouterr().err == asked


def test_a_key_that_cannot_be_kept_is_used_all_the_same(monkeypatch: Patch, capsys: Capture) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(asking, "kept_file", lambda environ: Path("/data/keys"))
    monkeypatch.setattr(asking, "has_keyring", lambda: False)
    monkeypatch.setattr(asking, "keep", refuse)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    asking._offer_to_keep("K", "sk-1")
    assert capsys.readouterr().err.endswith("wireglot: it could not be stored: No space left on device\n")
    monkeypatch.setattr(asking, "kept_file", lambda environ: None)
    asking._offer_to_keep("K", "sk-1")
    assert capsys.readouterr().err == "", "there is nowhere to keep it"


def test_only_a_person_at_a_terminal_is_asked(monkeypatch: Patch) -> None:
    for stdin, stderr, can in ((True, True, True), (True, False, False), (False, True, False)):
        monkeypatch.setattr("sys.stdin", Terminal() if stdin else io.StringIO())
        monkeypatch.setattr("sys.stderr", Terminal() if stderr else io.StringIO())
        assert asking.can_ask() is can
    for said, yes in (("y\n", True), (" YES ", True), ("", False), ("yo", False)):
        monkeypatch.setattr("sys.stdin", io.StringIO(said))
        assert asking.says_yes("? ") is yes
    monkeypatch.setenv("HOME", "/home/me/")
    paths = ("/home/me/x", "/home/mean", "/home/me")
    assert [asking.short_path(Path(path)) for path in paths] == ["~/x", "/home/mean", "/home/me"]


# --- what is offered


def picking(monkeypatch: Patch, chosen: int | None) -> list[Any]:
    asked: list[Any] = []

    def pick(question: str, shown: Any) -> int | None:
        asked.append((question, list(shown)))
        return chosen

    monkeypatch.setattr(offers, "pick", pick)
    return asked


def test_clients_that_are_installed_are_offered_first(monkeypatch: Patch) -> None:
    here = {"codex", "cn"}
    monkeypatch.setattr(shutil, "which", lambda name: name if name in here else None)
    asked = picking(monkeypatch, 1)
    assert offers.offer_clients() == "continue"
    ((question, shown),) = asked
    assert question == "Client:"
    assert shown[:3] == ["codex     Codex", "continue  Continue", "aider     aider (not installed)"]
    assert len(shown) == len(CLIENTS)
    picking(monkeypatch, None)
    with pytest.raises(Unusable, match="no selection"):
        offers.offer_clients()


def test_models_that_are_on_and_those_that_want_a_key_are_offered(monkeypatch: Patch) -> None:
    mine = own("mine", "openai-chat", ModelSpec("m"), ModelSpec("e", embeds=True))
    now = settings(mine, own("demo", "openai-chat", ModelSpec("d")), catalogued("kimi", "k"))
    asked = picking(monkeypatch, 0)
    assert offers.offer_models(now, "openai-chat", "gpt-5.5") == ""
    assert offers.offer_models(now, "openai-chat", "") != ""
    (question, first), (_, second) = asked
    assert (question, first[0]) == ("Model:", "the client's own choice (gpt-5.5)")
    assert first[1:] == second
    assert "mine/m" in second
    assert not {"mine/e", "demo/d", "m"} & set(second)
    demo = second.index("demo/demo  a built-in model that needs no key")
    keyed = [row.partition("  requires a key of ") for row in second[demo + 1 :]]
    kimi = catalog.provider("kimi").api_key_env[:1]
    seen = [catalog.provider(name.partition("/")[0]) for name, _, _ in keyed]
    assert [spec.title for spec in seen] == [title for _, _, title in keyed]
    keys = [spec.api_key_env[0] for spec in seen]
    assert len(set(keys)) == len(keys)
    assert kimi[0] not in keys
    assert all(key.endswith("_API_KEY") for key in keys)
    expected: dict[str, str] = {kimi[0]: ""}
    for spec in map(catalog.provider, catalog.names()):
        named = [entry.match for entry in spec.models if entry.is_name and not entry.retired]
        variable = next(iter(spec.api_key_env), "")
        if named and variable.endswith("_API_KEY") and "{" not in spec.base_url:
            expected.setdefault(variable, f"{spec.name}/{named[0]}")
    assert ["", *(name for name, _, _ in keyed)] == list(expected.values())
    only_demo = settings(own("demo", "openai-chat", ModelSpec("d")))
    asked = picking(monkeypatch, None)
    with pytest.raises(Unusable, match="no selection"):
        offers.offer_models(only_demo, "openai-chat", "gpt-5.5")
    assert asked[0][1][0].startswith("demo/demo"), "what the client asks for leads nowhere"


def test_a_client_is_installed_only_after_a_yes(monkeypatch: Patch, capsys: Capture) -> None:
    ran: list[Any] = []
    here = {"npm"}
    client = CLIENTS["codex"]

    def install(status: int, said: str, *, can: bool = True) -> bool:
        def run(command: list[str], check: bool) -> Any:
            ran.append(command)
            if not status:
                here.add("codex")
            return SimpleNamespace(returncode=status)

        monkeypatch.setattr(shutil, "which", lambda name: name if name in here else None)
        monkeypatch.setattr(offers, "can_ask", lambda: can)
        monkeypatch.setattr("subprocess.run", run)
        monkeypatch.setattr("sys.stdin", io.StringIO(said))
        return offers.offer_install(client)

    shown = "wireglot: Codex is not installed. To install it:\n\n  npm install -g @openai/codex\n\nRun it now? [y/N] "
    assert (install(0, "n\n"), capsys.readouterr().err) == (False, shown)
    assert (install(0, "y\n", can=False), capsys.readouterr().err) == (False, "")
    failed = f"{shown}wireglot: npm ended with status 3\n"
    assert (install(3, " YES\n"), capsys.readouterr().err) == (False, failed)
    assert (install(0, "y\n"), capsys.readouterr().err) == (True, shown)
    assert ran == [["npm", "install", "-g", "@openai/codex"]] * 2
    here.clear()
    assert install(0, "y\n") is False
    for tools, command in (((), ["pip", "install", "llm"]), (("pipx",), ["pipx", "install", "llm"]),
                           (("pipx", "uv"), ["uv", "tool", "install", "llm"])):  # fmt: skip
        monkeypatch.setattr(shutil, "which", lambda name, tools=tools: name if name in tools else None)
        assert offers.install_command(CLIENTS["llm"]) == command
        assert offers.install_command(client) == ["npm", "install", "-g", "@openai/codex"]


# --- which provider answers


def answer(outcome: Any, **more: Any) -> ProviderAnswer:
    return ProviderAnswer("kimi", "GET https://h.example/v1/models", outcome, **more)


def chooser(
    monkeypatch: Patch, *keys: str, environ: dict[str, str] | None = None
) -> tuple[Chooser, list[Any]]:
    asked: list[Any] = []
    left = list(keys)

    def ask(whose: str, variable: str, try_key: Any, reason: str = "") -> str:
        asked.append((whose, variable, try_key, reason))
        return left.pop(0) if left else ""

    return Chooser(NO_FILE, {} if environ is None else environ, ask), asked


def test_a_key_is_tried_at_its_provider(monkeypatch: Patch) -> None:
    found, asked = chooser(monkeypatch, "sk-1")
    spec = catalog.provider("kimi")
    variable = spec.api_key_env[0]
    choice = found.choose("kimi/kimi-k3", "anthropic", "claude-sonnet-5")
    ((whose, named, try_key, reason),) = asked
    assert (whose, named, reason) == (spec.title, variable, "")
    assert (choice.model, choice.environ[variable], choice.overrides) == ("kimi/kimi-k3", "sk-1", {})
    assert "kimi" in choice.settings.providers
    for outcome, tried in (
        ("taken", TriedKey(False, "")),
        ("refused", TriedKey(True, f"{spec.title} rejects the key")),
        ("busy", TriedKey(False, f"{spec.title} did not report whether it accepts the key")),
    ):
        monkeypatch.setattr(launch, "try_key", lambda provider, key, outcome=outcome: answer(outcome))
        assert try_key("sk-2") == tried
    without, _ = chooser(monkeypatch)
    with pytest.raises(Unusable, match=f"no key for {spec.title}: set {variable}"):
        without.choose("kimi/kimi-k3", "anthropic", "")
    with pytest.raises(Unusable) as nowhere:
        chooser(monkeypatch)[0].choose("kimy/kimi-k3", "anthropic", "")
    assert "asks" not in str(nowhere.value)


@rows(
    ("answers", "state", "said"),
    [
        (["taken"], "file", ""),
        (["refused", "taken"], "file", ""),
        (["busy"], "file", ""),
        (["refused"], "environment", ": set K to a valid key"),
        (["refused"], "file", ": wireglot login kimi"),
        (["refused"], "keyring", ": wireglot login kimi"),
        (["refused"], "configuration", ": change it in the configuration, [providers.kimi]"),
        (["silent"], "file", ""),
        (["no-login"], "file", ": log in"),
    ],
)
def test_no_client_is_started_for_keys_that_are_all_refused(
    answers: list[str], state: Any, said: str, monkeypatch: Patch
) -> None:
    fixes = {"silent": {"problem": "connect", "words": "refused"}, "no-login": {"fix": "log in"}}
    found = [answer(each, **fixes.get(each, {})) for each in answers]
    monkeypatch.setattr(launch, "ask_providers", lambda providers: found)
    key = ProviderKey("kimi", "Kimi", state, ("K",), "K", "K")
    monkeypatch.setattr(launch, "provider_keys", lambda settings, environ: {"kimi": key})
    given, asked = chooser(monkeypatch)
    choice = Choice(settings(catalogued("kimi", "k")), {}, {}, "kimi/kimi-k3")
    is_fine = answers in (["taken"], ["refused", "taken"], ["busy"])
    if is_fine:
        assert given.checked(choice, "anthropic", "") is choice
    else:
        with pytest.raises(Failed) as failed:
            given.checked(choice, "anthropic", "")
        title = catalog.provider("kimi").title
        assert str(failed.value) == f"{found[0].sentence(title)}{said}"
    is_asked = answers == ["refused"] and state in ("file", "keyring")
    reasons = [(whose, variable, reason) for whose, variable, _, reason in asked]
    title = catalog.provider("kimi").title
    assert reasons == ([(title, "K", f"{title} rejects the key, which is stored as K")] if is_asked else [])


def test_another_key_takes_the_place_of_one_that_is_refused(monkeypatch: Patch) -> None:
    variable = catalog.provider("kimi").api_key_env[0]
    key = ProviderKey("kimi", "Kimi", "file", (variable,), variable, variable)
    monkeypatch.setattr(launch, "ask_providers", lambda providers: [answer("refused")])
    monkeypatch.setattr(launch, "provider_keys", lambda settings, environ: {"kimi": key})
    given, _ = chooser(monkeypatch, "sk-new", environ={variable: "sk-old"})
    choice = Choice(given.settings(), {}, {}, "kimi/kimi-k3")
    found = given.checked(choice, "anthropic", "")
    assert (found.environ, found.model) == ({variable: "sk-new"}, "kimi/kimi-k3")
    (credential,) = found.settings.providers["kimi"].credentials
    assert credential.secret.value == "sk-new"
    demo = Choice(settings(own("demo", "openai-chat")), {}, {}, "nowhere/x")
    assert given.checked(demo, "anthropic", "") is demo, "there is nobody to ask"


def test_how_much_a_chosen_model_takes() -> None:
    now = settings(own("mine", "openai-chat", ModelSpec("m", context=100), ModelSpec("e", embeds=True)))
    assert [Choice(now, {}, {}, model).context("openai-chat") for model in ("mine/m", "mine/x", "")] == [
        100,
        0,
        0,
    ]
    assert Choice(now, {}, {}).names("openai-chat") == ("mine/m",)


# --- what is started and printed

DOOR = Door("http://h:1", "k", "p/m", 7, ("p/m",))


def test_a_private_gateway_is_made_for_its_client_alone(monkeypatch: Patch) -> None:
    choice = Choice(
        settings(catalogued("kimi", "k")), {"K": "1"}, {"providers": {}}, "kimi/kimi-k3", "a remark"
    )
    monkeypatch.setattr(Chooser, "choose", lambda self, *given: choice)
    monkeypatch.setattr(Chooser, "checked", lambda self, choice, *given: choice)
    place: list[ConfigFile] = [NO_FILE]
    monkeypatch.setattr(launch, "trusted_config", lambda named: place[0])

    def private(task: Launch, remark: str = "other") -> Any:
        return launch._private(task, remark)

    found = private(Launch(client="gemini"))
    assert found.own.overrides.pop("keys").keys() == {"wireglot-run"}
    server = {"host": "127.0.0.1", "port": 0, "workers": 1, "log": "off"}
    assert found.own.overrides == {"providers": {}, "server": server, "models": {"gemini-*": "kimi/kimi-k3"}}
    assert (found.what, found.remark, found.own.client, found.has_inspector) == (
        "private",
        "a remark",
        "gemini",
        True,
    )
    assert (found.door.url, found.door.model, found.own.log, found.own.environ) == (
        "",
        "kimi/kimi-k3",
        None,
        {"K": "1"},
    )
    assert found.door.key != found.own.operator_key
    assert found.door.models == choice.names("gemini")
    off = msgspec.structs.replace(
        choice.settings, server=msgspec.structs.replace(choice.settings.server, inspector="off")
    )
    choice = msgspec.structs.replace(choice, settings=off, remark="")
    place[0] = ConfigFile(Path("/w.toml"), b"", True)
    logged = private(Launch(client="codex", log="l"))
    assert (logged.what, logged.remark, logged.has_inspector) == ("private, /w.toml", "other", False)
    assert (logged.own.overrides["server"]["log"], logged.own.log, "models" in logged.own.overrides) == (
        "json",
        "l",
        False,
    )
    led = msgspec.structs.replace(off, rules=(Rule("gemini-*", ("kimi/kimi-k3",)),))
    choice = msgspec.structs.replace(choice, settings=led)
    assert "models" not in private(Launch(client="gemini")).own.overrides, "they lead somewhere already"


def starting(monkeypatch: Patch, *, can: bool = True) -> list[Any]:
    began: list[Any] = []

    def become(*given: Any) -> int:
        began.append(given)
        return 5

    monkeypatch.setattr(launch, "_become", become)
    monkeypatch.setattr(launch, "can_ask", lambda: can)
    monkeypatch.setattr(launch, "start_gateway", lambda own, folder: "http://own:1")
    return began


@pytest.mark.parametrize("inspect", [False, True])
def test_what_is_said_before_a_client_fits_a_terminal(
    monkeypatch: Patch, capsys: Capture, inspect: bool
) -> None:
    starting(monkeypatch)
    monkeypatch.setattr(launch, "_show_inspector", lambda *given: None)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    own_gateway: Any = SimpleNamespace(operator_key="op")
    found = launch._Found(DOOR, "private", "a remark", own_gateway, has_inspector=True)
    launch._start(Launch(client="kimi", inspect=inspect, arguments=("-p", "hi")), found)
    said = capsys.readouterr().err
    assert "ends with" in said
    assert [line for line in said.splitlines() if len(line) > 80] == []


def test_a_client_is_started_with_what_was_found(monkeypatch: Patch, capsys: Capture, tmp_path: Path) -> None:
    began = starting(monkeypatch)
    task = Launch(client="kimi")
    own_gateway: Any = SimpleNamespace(operator_key="op")
    found = launch._Found(DOOR, "private", "a remark", own_gateway, has_inspector=True)
    assert launch._start(task, found) == 5
    (_, pointing, environ) = began.pop()
    assert pointing.set["KIMI_MODEL_BASE_URL"] == environ["KIMI_MODEL_BASE_URL"] == "http://own:1/v1"
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "wireglot: a remark"
    assert lines[1].startswith("wireglot: kimi on http://own:1 (private), p/m; set KIMI_MODEL_NAME")
    assert lines[2:] == [
        "wireglot: to see every exchange: `wireglot inspect` in another terminal",
        "wireglot: to resume this conversation later:",
        "  wireglot run kimi -- --continue",
    ]
    shown: list[Any] = []
    monkeypatch.setattr(launch, "_show_inspector", lambda *given: shown.append(given))
    ending = "wireglot: the inspector ends with the client: start `wireglot serve` first to keep it"
    for arguments, said in (((), []), (("-p", "hi"), [ending])):
        task = Launch(client="kimi", inspect=True, arguments=arguments)
        launch._start(task, found)
        assert [line for line in capsys.readouterr().err.splitlines() if "inspector" in line] == said
        there = msgspec.structs.replace(found, own=None)
        launch._start(task, there)
        assert "inspector" not in capsys.readouterr().err, "a gateway that runs stays"
    shown.clear()
    began.clear()
    folder = SimpleNamespace(path=tmp_path, removed=0)

    def remove() -> None:
        folder.removed += 1

    folder.remove = remove
    after: list[Any] = []
    monkeypatch.setattr(launch, "ClientFolder", lambda: folder)
    monkeypatch.setattr(launch, "remove_afterwards", after.append)
    running = launch._Found(DOOR, "already running")
    assert (
        launch._start(Launch(client="claude", inspect=True, arguments=("--settings", "mine.json")), running)
        == 5
    )
    assert (shown, after) == ([("http://h:1", "")], [folder])
    assert (tmp_path / "claude-settings.json").exists()
    lines = capsys.readouterr().err.splitlines()
    assert lines[1:] == [
        "wireglot: --settings takes precedence: if its file sets another base URL, that URL is used"
    ]
    assert folder.removed == 0

    def fail(*_: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(launch, "_become", fail)
    (tmp_path / "claude-settings.json").unlink()
    with pytest.raises(KeyboardInterrupt):
        launch._start(Launch(client="claude", inspect=True), msgspec.structs.replace(found, remark=""))
    assert (folder.removed, shown[-1]) == (1, ("http://own:1", "op"))


@rows(
    ("browser", "refused", "said"),
    [
        (True, False, "wireglot: the inspector opens in your browser: http://h:1/inspector\n"),
        (
            False,
            False,
            "wireglot: the inspector (this link signs in once, within five minutes):\nthe-link of op\n",
        ),
        (True, True, "wireglot: no inspector: it is off\n"),
    ],
)
def test_the_inspector_is_shown_beside_a_client(
    browser: bool, refused: bool, said: str, monkeypatch: Patch, capsys: Capture
) -> None:
    from wireglot.cli import inspect

    opened: list[str] = []

    def link(address: Any, key: str) -> str:
        if refused:
            raise Failed("it is off")
        return f"the-link of {key}"

    running = [SimpleNamespace(url="http://other:1", key="no"), SimpleNamespace(url="http://h:1", key="op")]
    monkeypatch.setattr(inspect, "page_link", link)
    monkeypatch.setattr(inspect, "has_browser", lambda: browser)
    monkeypatch.setattr(launch, "find_running", lambda environ: running)
    monkeypatch.setattr(launch, "open_browser", opened.append)
    launch._show_inspector("http://h:1", "")
    assert capsys.readouterr().err == said
    assert opened == (["the-link of op"] if browser and not refused else [])
    if not browser:
        launch._show_inspector("http://h:1", "given")
        assert capsys.readouterr().err.endswith("the-link of given\n")


def test_variables_are_printed_for_a_shell(monkeypatch: Patch, capsys: Capture) -> None:
    monkeypatch.setattr(launch, "_lasting_door", lambda task, file: DOOR)
    monkeypatch.setenv("WIREGLOT_KEY", "k")
    assert launch._print_env(Launch(families=("anthropic",), print_env=True), NO_FILE) == 0
    assert capsys.readouterr() == (
        "unset ANTHROPIC_AUTH_TOKEN\nexport ANTHROPIC_BASE_URL=http://h:1\n"
        'export ANTHROPIC_API_KEY="$WIREGLOT_KEY"\nexport ANTHROPIC_MODEL=p/m\n',
        "",
    )
    monkeypatch.setenv("WIREGLOT_KEY", "another")
    assert launch._print_env(Launch(client="codex", print_env=True), NO_FILE) == 0
    out, err = capsys.readouterr()
    assert out == "export WIREGLOT_KEY=k\n"
    assert err.startswith("wireglot: also required as options: codex -c 'model_providers.wireglot={name = ")
    monkeypatch.setenv("HOME", "/nowhere")
    assert launch._print_env(Launch(client="gemini", print_env=True), NO_FILE) == 0
    assert "GEMINI_CLI_HOME" not in capsys.readouterr().out
    with pytest.raises(Unusable, match="llm needs temporary files: start it with `wireglot run llm`"):
        launch._print_env(Launch(client="llm", print_env=True), NO_FILE)
    assert launch._print_settings(Launch(client="crush"), NO_FILE) == 0
    out, err = capsys.readouterr()
    assert out.startswith("provider add wireglot --type openai-compat --base-url http://h:1/v1")
    assert err == "wireglot: Crush: add to ~/.config/crush/crushrc, or to .crushrc in the project\n"


def test_where_printed_settings_lead(monkeypatch: Patch, capsys: Capture) -> None:
    joined: Any = SimpleNamespace(refusal=lambda model: "no x" if model == "x" else "")
    running = ["http://r:1"]
    monkeypatch.setattr(launch, "running_url", lambda path, environ: running[0])
    asked: list[str] = []

    def join(url: str, ask: Any) -> Any:
        asked.append(url)
        return joined

    monkeypatch.setattr(launch, "join", join)
    monkeypatch.setattr(launch, "_joined", lambda task, joined: SimpleNamespace(door=DOOR))
    assert launch._lasting_door(Launch(client="zed"), NO_FILE) is DOOR
    assert launch._lasting_door(Launch(client="zed", url="http://u:1", model="y"), NO_FILE) is DOOR
    assert asked == ["http://r:1", "http://u:1"]
    with pytest.raises(Unusable, match="no x"):
        launch._lasting_door(Launch(client="zed", model="x"), NO_FILE)
    assert capsys.readouterr().err == ""
    running[0] = ""
    now = settings(own("mine", "openai-chat", ModelSpec("m", context=9)))
    monkeypatch.setattr(launch, "trusted_config", lambda named: NO_FILE)
    monkeypatch.setattr(Chooser, "choose", lambda self, *given: Choice(now, {}, {}, "mine/m"))
    monkeypatch.delenv("WIREGLOT_KEY", raising=False)
    door = launch._lasting_door(Launch(client="zed"), NO_FILE)
    assert door == Door("http://127.0.0.1:8484", "none", "mine/m", 9, ("mine/m",))
    assert capsys.readouterr().err == "wireglot: no gateway runs yet: start it with `wireglot serve`\n"
    monkeypatch.setenv("WIREGLOT_KEY", "mine")
    assert launch._lasting_door(Launch(client="zed"), NO_FILE).key == "mine"
    questions: list[Any] = []
    monkeypatch.setattr(launch, "ask_key", lambda *given: questions.append(given))
    launch._ask_client_key("http://h:1", lambda key: TriedKey(False))
    assert questions[0][:2] == ("the gateway at http://h:1", "WIREGLOT_KEY")


def run(monkeypatch: Patch, **more: Any) -> Any:
    names = ("client", "model", "config", "url", "log")
    flags = ("private", "print_env", "statusline", "inspect")
    given = {**dict.fromkeys(names), **dict.fromkeys(flags, False), "env": [], "rest": [], **more}
    return launch.run(SimpleNamespace(**given))  # type: ignore[arg-type]  # all that is looked at


def test_a_program_that_is_missing_is_reported_before_anything_is_asked(
    monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    monkeypatch.setattr(launch, "can_ask", lambda: False)
    monkeypatch.setattr(launch, "offer_install", lambda client: False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert run(monkeypatch, client="codex") == 127
    assert capsys.readouterr().err == (
        "wireglot: codex is not installed, or not on the PATH: npm install -g @openai/codex\n"
    )
    assert run(monkeypatch, env=["openai"], rest=["my-program"]) == 127
    assert capsys.readouterr().err == "wireglot: my-program is not installed, or not on the PATH\n"
    program = tmp_path / "pro gram"
    program.touch()
    assert not stat.S_IMODE(program.stat().st_mode) & 0o111
    assert run(monkeypatch, env=["openai"], rest=[str(program)]) == 126
    assert capsys.readouterr().err == f"wireglot: {program} is not executable: chmod +x '{program}'\n"
    for more, words in (
        ({}, "name a client (aider, "),
        ({"client": "amp"}, "Amp calls only its own service"),
        ({"client": "crush", "private": True}, "--private cannot be used when settings are only printed"),
        ({"client": "claud"}, "there is no client claud: did you mean claude?"),
        ({"client": "zzzz"}, "there is no client zzzz: known clients are aider, "),
    ):
        with pytest.raises(Unusable) as refused:
            run(monkeypatch, **more)
        assert str(refused.value).startswith(words)
        assert str(refused.value).endswith(" (see wireglot run --help)")
    monkeypatch.setattr(shutil, "which", lambda name: name)
    with pytest.raises(Unusable, match="htop is not a known client: try `wireglot run --env openai -- htop"):
        run(monkeypatch, client="htop")
    monkeypatch.setattr(launch, "_found", lambda task, file: "found")
    monkeypatch.setattr(launch, "find_config", lambda named: NO_FILE)
    monkeypatch.setattr(launch, "_start", lambda task, found: (task.model, found))
    assert run(monkeypatch, client="codex", model="m") == ("m", "found")
    monkeypatch.setattr(launch, "_print_env", lambda task, file: 7)
    monkeypatch.setattr(launch, "_print_settings", lambda task, file: 8)
    assert (run(monkeypatch, client="codex", print_env=True), run(monkeypatch, client="zed")) == (7, 8)


def test_a_client_and_its_model_are_chosen_where_none_is_named(monkeypatch: Patch) -> None:
    monkeypatch.setattr(launch, "offer_clients", lambda: "codex")
    monkeypatch.setattr(launch, "offer_models", lambda settings, dialect, own: f"{dialect} {own}")
    monkeypatch.setattr(launch, "trusted_config", lambda named: NO_FILE)
    monkeypatch.setattr(Chooser, "settings", lambda self: settings())
    assert launch._chosen(Launch()) == Launch(client="codex", model="openai-responses gpt-5.5")
    assert launch._chosen(Launch(model="m")) == Launch(client="codex", model="m")
    assert launch._chosen(Launch(url="u")) == Launch(client="codex", url="u")


def test_options_with_a_file_that_its_user_replaces() -> None:
    pointing = Pointing(options=(("--settings", f"{FOLDER}/x"), ("--model", "m"), ("-m", f"{FOLDER}/y")))
    assert pointing.unheeded(("--settings=mine", "--model", "n")) == ["--settings", "-m"]
    assert pointing.unheeded(("-p",)) == []
