"""`wireglot run`: a script in the place of a client, with a gateway of its own or one that runs."""

import hashlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from clients.terminal import Terminal
from tests.cli.provider_double import BAD_KEY, GOOD_KEY, ProviderDouble, Reply, dead_url
from tests.cli.running import COMMAND, run_in
from tests.processes import ForkedCommand, ForkedTerminal, run_forked
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.cli.run.gateway import _Reported, _StartReport
from wireglot.cli.trust import trust
from wireglot.gateway.config.kept_keys import keep

pytestmark = pytest.mark.skipif(os.name != "posix", reason="starts programs as POSIX does")

CLIENT = f"""\
#!{sys.executable} -IS
import json, os, select, sys

def ask(base, key, model):
    import urllib.request
    body = {{"model": model, "messages": [{{"role": "user", "content": "[[demo:echo]] the answer"}}], "max_tokens": 9}}
    headers = {{"authorization": "Bearer " + key, "content-type": "application/json"}}
    asked = urllib.request.Request(base + "/v1/messages", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(asked) as answer:
            return json.load(answer)["content"][0]["text"]
    except urllib.error.HTTPError as refused:
        print(refused.read().decode(), file=sys.stderr)

reported = {{
    "arguments": sys.argv[1:],
    "pid": os.getpid(),
    "terminal": os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp(),
    "env": {{name: value for name, value in os.environ.items() if "ANTHROPIC" in name or "PROXY" in name.upper()}},
}}
if "--settings" in sys.argv:
    reported["settings"] = json.load(open(sys.argv[sys.argv.index("--settings") + 1]))
if "ask" in sys.argv:
    reported["answer"] = ask(os.environ["ANTHROPIC_BASE_URL"], os.environ["ANTHROPIC_AUTH_TOKEN"], os.environ["ANTHROPIC_MODEL"])
try:
    print("Reported" + json.dumps(reported) + "END", flush=True)
    while "wait" in sys.argv and not select.select([0], [], [], 0.05)[0]:
        pass  # a read that begins just after an interrupt came would not be interrupted by it
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(5)
sys.exit(7 if "fail" in sys.argv else 0)
"""


class Place:
    """A home, and a folder of programs in which `claude` is a script."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.temporary = folder / "tmp"
        self.programs = folder / "bin"
        for each in (self.home, self.project, self.temporary, self.programs):
            each.mkdir()
        self.program("claude", CLIENT)
        self.env = {
            "HOME": str(self.home),
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "LANG": "C.UTF-8",
            "TERM": "xterm",
        }

    @property
    def data(self) -> Path:
        return self.home / ".local/share/wireglot"

    def program(self, name: str, text: str, mode: int = 0o755) -> None:
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(mode)

    def run(
        self,
        *arguments: str,
        env: Mapping[str, str] = {},
        seconds: float = DEADLINE_SECONDS,
        start: Callable[..., subprocess.CompletedProcess[str]] = run_forked,
    ) -> subprocess.CompletedProcess[str]:
        return start(
            [*COMMAND, "run", *arguments],
            cwd=self.project,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
        )

    def refused(self, *arguments: str, env: Mapping[str, str] = {}, status: int = 2) -> str:
        """Why it starts neither a gateway nor a client: in this process, which must not become one."""
        started = AssertionError("it was not refused")
        with (
            mock.patch.object(os, "fork", side_effect=started),
            mock.patch.object(os, "execvpe", side_effect=started),
        ):
            return complaint(run_in(self.project, {**self.env, **env}, "run", *arguments), status)

    def in_terminal(self, *arguments: str, env: Mapping[str, str] = {}) -> Terminal:
        return ForkedTerminal([*COMMAND, "run", *arguments], self.project, {**self.env, **env})

    def is_clean(self) -> bool:
        return not list(self.temporary.iterdir())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def reported(shown: str) -> dict[str, Any]:
    found = re.search(r"Reported(\{.*\})END", shown, re.DOTALL)
    assert found is not None, shown
    document: dict[str, Any] = json.loads(found[1].replace("\n", ""))
    return document


def listens(url: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) == 0


def complaint(done: subprocess.CompletedProcess[str], status: int = 2) -> str:
    assert done.returncode == status, done
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("wireglot: ")
    return line.removeprefix("wireglot: ")


def test_a_client_asks_a_gateway_of_its_own_which_ends_with_it(place: Place) -> None:
    done = place.run("claude", "--", "ask", "fail", "--x", "a b", start=subprocess.run)
    client = reported(done.stdout)
    url = client["env"]["ANTHROPIC_BASE_URL"]
    assert done.returncode == 7
    assert client["answer"] == "the answer"
    assert client["arguments"][2:] == ["ask", "fail", "--x", "a b"]
    first, second, third = done.stderr.splitlines()
    assert third == (
        "wireglot: to see every exchange, start `wireglot serve` first: this gateway ends with the client"
    )
    assert (
        first
        == "wireglot: no provider API key found, using the built-in demo model (choose another with --model)"
    )
    assert second.startswith(f"wireglot: claude on {url} (private), demo/demo; set ANTHROPIC_BASE_URL, ")
    wait_until(lambda: not listens(url) and place.is_clean())


def test_its_settings_win_over_those_of_the_client_and_only_the_gateway_has_the_providers_key(
    place: Place,
) -> None:
    env = {"ANTHROPIC_API_KEY": "sk-ant-mine", "HTTPS_PROXY": "http://127.0.0.1:9"}
    client = reported(place.run("claude", "--model", "demo/demo", "--", "x", env=env).stdout)
    assert "ANTHROPIC_API_KEY" not in client["env"]
    assert client["settings"]["env"]["ANTHROPIC_API_KEY"] == ""
    assert client["settings"]["env"]["ANTHROPIC_BASE_URL"] == client["env"]["ANTHROPIC_BASE_URL"]
    assert client["env"]["NO_PROXY"] == "127.0.0.1,localhost,::1"


def test_the_terminal_is_the_clients_and_so_are_ctrl_c_and_the_status(place: Place) -> None:
    terminal = place.in_terminal("claude", "--", "wait")
    assert terminal.wait_for("END", DEADLINE_SECONDS)
    client = reported(terminal.shown)
    assert client["terminal"]
    assert client["pid"] == terminal.pid
    assert listens(client["env"]["ANTHROPIC_BASE_URL"])
    terminal.type("\x03")
    assert terminal.end(DEADLINE_SECONDS) == 5
    assert "interrupted" in terminal.shown
    wait_until(lambda: not listens(client["env"]["ANTHROPIC_BASE_URL"]) and place.is_clean())


@pytest.fixture
def kimi(place: Place) -> Iterator[ProviderDouble]:
    """Moonshot, at another address that the configuration names."""
    with ProviderDouble({"moonshot": Reply()}) as double:
        url = double.base("moonshot")
        configured(place, f'[providers.kimi]\nbase_url = "{url}"\napi_key = "env:MOONSHOT_API_KEY"\n')
        yield double


@pytest.mark.whole
def test_what_was_set_is_one_line_of_the_terminal(place: Place, kimi: ProviderDouble) -> None:
    env = {"COLUMNS": "80", "MOONSHOT_API_KEY": GOOD_KEY}
    terminal = place.in_terminal("claude", "--model", "kimi/kimi-k3", env=env)
    assert terminal.end(DEADLINE_SECONDS) == 0
    (line,) = (line for line in terminal.shown.splitlines() if line.startswith("wireglot: claude on"))
    assert len(line) <= 80
    assert "kimi/kimi-k3; set " in line


def test_nothing_is_left_of_a_client_that_was_killed(place: Place) -> None:
    terminal = place.in_terminal("claude", "--", "wait")
    assert terminal.wait_for("END", DEADLINE_SECONDS)
    url = reported(terminal.shown)["env"]["ANTHROPIC_BASE_URL"]
    os.kill(terminal.pid, signal.SIGKILL)
    assert terminal.end(DEADLINE_SECONDS) == 128 + signal.SIGKILL
    wait_until(lambda: not listens(url) and place.is_clean())


def test_any_other_program_has_the_variables_of_the_vendors_sdks(place: Place) -> None:
    script = 'echo "$OPENAI_BASE_URL $OPENAI_MODEL $ANTHROPIC_BASE_URL $GOOGLE_GEMINI_BASE_URL"'
    done = place.run(
        *("--env", "openai", "--env", "anthropic", "--env", "gemini", "--model", "demo/demo"),
        *("--", "sh", "-c", script),
    )
    base, model, anthropic, gemini = done.stdout.split()
    assert (base, model, anthropic) == (f"{gemini}/v1", "demo/demo", gemini)
    assert done.returncode == 0


def test_a_client_that_is_not_there_is_reported_before_anything_else(place: Place) -> None:
    assert complaint(place.run("codex"), 127) == (
        "codex is not installed, or not on the PATH: npm install -g @openai/codex"
    )
    assert not place.data.exists()


def test_a_program_that_cannot_be_run_is_reported(place: Place) -> None:
    place.program("broken", "#!/nowhere/at/all\n")
    done = place.run("--env", "openai", "--", "broken")
    assert done.returncode == 126
    assert "wireglot: broken cannot be run: No such file or directory" in done.stderr


def test_a_key_that_is_missing_is_reported_where_nobody_can_be_asked(place: Place) -> None:
    reported_line = place.refused("claude", "--model", "kimi/kimi-k3")
    assert reported_line == "no key for Moonshot Kimi: set MOONSHOT_API_KEY"


def test_a_key_that_is_missing_is_asked_for_tried_and_kept(place: Place, kimi: ProviderDouble) -> None:
    terminal = place.in_terminal("claude", "--model", "kimi/kimi-k3")
    assert terminal.wait_for("to cancel): ", DEADLINE_SECONDS)
    terminal.type(f"{BAD_KEY}\n")
    assert terminal.wait_for("to cancel): ", DEADLINE_SECONDS, times=2)
    assert "Moonshot Kimi rejects the key (it says: Incorrect API key provided: " in terminal.shown
    terminal.type(f"{GOOD_KEY}\n")
    assert terminal.wait_for("[y/N] ", DEADLINE_SECONDS)
    assert not (place.data / "credentials").exists()
    terminal.type("y\n")
    assert terminal.end(DEADLINE_SECONDS) == 0
    assert "Moonshot Kimi requires a key, and MOONSHOT_API_KEY is not set." in terminal.shown
    assert GOOD_KEY not in terminal.shown
    assert BAD_KEY not in terminal.shown
    client = reported(terminal.shown)
    assert client["env"]["ANTHROPIC_MODEL"] == "kimi/kimi-k3"
    file = place.data / "credentials"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert f"MOONSHOT_API_KEY={GOOD_KEY}\n" in file.read_text()
    assert reported(place.run("claude", "--model", "kimi-k3").stdout)["env"]["ANTHROPIC_MODEL"] == "kimi-k3"


@pytest.mark.whole
def test_a_key_that_is_not_to_be_kept_is_not(place: Place, kimi: ProviderDouble) -> None:
    terminal = place.in_terminal("claude", "--model", "kimi/kimi-k3")
    assert terminal.wait_for("to cancel): ", DEADLINE_SECONDS)
    terminal.type(f"{GOOD_KEY}\n")
    assert terminal.wait_for("[y/N] ", DEADLINE_SECONDS)
    terminal.type("\n")
    assert terminal.end(DEADLINE_SECONDS) == 0
    assert not (place.data / "credentials").exists()


def test_a_kept_key_that_is_refused_is_asked_for_again(place: Place, kimi: ProviderDouble) -> None:
    place.data.mkdir(parents=True, exist_ok=True)
    keep(place.data / "credentials", "MOONSHOT_API_KEY", BAD_KEY)
    said = place.refused("claude", "--model", "kimi/kimi-k3", status=1)
    assert said == (
        "Moonshot Kimi rejects the key (it says: Incorrect API key provided: [redacted].): wireglot login kimi"
    )
    terminal = place.in_terminal("claude", "--model", "kimi/kimi-k3")
    assert terminal.wait_for("to cancel): ", DEADLINE_SECONDS)
    assert "which is stored as MOONSHOT_API_KEY" in " ".join(terminal.shown.split())
    terminal.type(f"{GOOD_KEY}\n")
    assert terminal.wait_for("[y/N] ", DEADLINE_SECONDS)
    terminal.type("y\n")
    assert terminal.end(DEADLINE_SECONDS) == 0
    assert f"MOONSHOT_API_KEY={GOOD_KEY}\n" in (place.data / "credentials").read_text()


def test_no_client_is_started_for_a_provider_that_refuses_the_key_or_is_not_there(
    place: Place, kimi: ProviderDouble
) -> None:
    wrong = place.refused("claude", env={"MOONSHOT_API_KEY": BAD_KEY}, status=1)
    assert wrong.endswith("[redacted].): set MOONSHOT_API_KEY to a valid key")
    assert BAD_KEY not in wrong
    configured(place, f'[providers.mine]\ndialect = "openai-chat"\nbase_url = "{dead_url()}/v1"\n')
    said = place.refused("claude", "--model", "mine/small", status=1)
    assert said.startswith("mine cannot be reached at 127.0.0.1:")
    assert said.endswith(": no server is listening (connection refused)")


@pytest.mark.whole
def test_a_provider_that_another_stands_in_for_may_be_away(place: Place, kimi: ProviderDouble) -> None:
    text = (
        f'[providers.mine]\ndialect = "openai-chat"\nbase_url = "{dead_url()}/v1"\n'
        f'[providers.kimi]\nbase_url = "{kimi.base("moonshot")}"\napi_key = "env:MOONSHOT_API_KEY"\n'
        '[models]\nfast = ["mine/small", "kimi/kimi-k3"]\n'
    )
    configured(place, text)
    done = place.run("claude", "--model", "fast", env={"MOONSHOT_API_KEY": GOOD_KEY})
    assert reported(done.stdout)["env"]["ANTHROPIC_MODEL"] == "fast"


def test_the_client_of_a_private_gateway_is_shown_all_of_an_error(place: Place, kimi: ProviderDouble) -> None:
    kimi.hosts["moonshot"].open_list = True  # so that the key is refused by the request alone
    done = place.run("claude", "--model", "kimi/kimi-k3", "--", "ask", env={"MOONSHOT_API_KEY": BAD_KEY})
    assert "key from MOONSHOT_API_KEY ([providers.kimi] at wireglot.toml:1, api_key)" in done.stderr
    assert BAD_KEY not in done.stdout + done.stderr


README = """\
[providers.kimi]
api_key = "env:MOONSHOT_API_KEY"

[providers.mine]
dialect = "openai-chat"
base_url = "http://127.0.0.1:9001/v1"

[models]
"claude-*" = "kimi/kimi-k3"
"fast" = ["mine/small", "kimi/kimi-k3"]
"""
"""Its own configuration."""


def configured(place: Place, text: str) -> None:
    (place.project / "wireglot.toml").write_text(text)
    assert trust(place.project / "wireglot.toml", place.env)


def test_the_file_of_the_readme_is_the_one_that_is_tested() -> None:
    page = (Path(__file__).parents[3] / "README.md").read_text()
    block = re.search(r"```toml\n(\[providers.*?)```", page, re.DOTALL)
    assert block is not None
    assert re.sub(r" *#.*", "", block[1]) == README


@pytest.mark.sampled(each=1)
@pytest.mark.parametrize("options", [("--model", "kimi/kimi-k3"), ()], ids=["named", "by a rule"])
def test_a_key_that_a_configuration_names_is_asked_for(
    place: Place, kimi: ProviderDouble, options: tuple[str, ...]
) -> None:
    text = README.replace("MOONSHOT_API_KEY", "MY_KIMI_KEY").replace(
        "[providers.kimi]\n", f'[providers.kimi]\nbase_url = "{kimi.base("moonshot")}"\n'
    )
    configured(place, text)
    said = place.refused("claude", *options)
    assert said == "no key for Moonshot Kimi: set MY_KIMI_KEY"
    terminal = place.in_terminal("claude", *options)
    assert terminal.wait_for("to cancel): ", DEADLINE_SECONDS)
    assert "Moonshot Kimi requires a key, and MY_KIMI_KEY is not set." in terminal.shown
    terminal.type(f"{GOOD_KEY}\n")
    assert terminal.wait_for("[y/N] ", DEADLINE_SECONDS)
    terminal.type("\n")
    assert terminal.end(DEADLINE_SECONDS) == 0


@pytest.mark.whole
def test_a_model_that_needs_no_key_is_run_while_others_lack_theirs(
    place: Place, kimi: ProviderDouble
) -> None:
    kimi.hosts["moonshot"].wants_key = False
    configured(place, README.replace("http://127.0.0.1:9001/v1", kimi.base("moonshot")))
    demo = place.run("claude", "--model", "demo/demo", "--", "ask")
    assert reported(demo.stdout)["answer"] == "the answer"
    assert reported(place.run("claude", "--model", "fast").stdout)["env"]["ANTHROPIC_MODEL"] == "fast"
    configured(place, "[providers.kimi]\napi_key = 'env:MOONSHOT_API_KEY'\n")
    assert place.refused("claude") == "no key for Moonshot Kimi: set MOONSHOT_API_KEY"
    configured(place, "[providers.demo]\n[providers.kimi]\napi_key = 'env:MOONSHOT_API_KEY'\n")
    assert reported(place.run("claude", "--model", "demo").stdout)["env"]["ANTHROPIC_MODEL"] == "demo"


def test_a_question_ends_at_ctrl_c(place: Place) -> None:
    terminal = place.in_terminal("claude", "--model", "kimi/kimi-k3")
    assert terminal.wait_for("to cancel): ", DEADLINE_SECONDS)
    terminal.type("\x03")
    assert terminal.end(DEADLINE_SECONDS) == 130
    assert "Traceback" not in terminal.shown


@contextmanager
def gateway(place: Place, *options: str, config: str = "") -> Iterator[str]:
    """`wireglot serve`, on a free port."""
    file = place.project / "wireglot.toml"
    if config:
        file.write_text(config)
    named = ("--config", str(file)) if config else ()
    with ForkedCommand(
        [*COMMAND, "serve", "--port", "0", "--log", "json", *named, *options],
        cwd=place.project,
        env=place.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            assert process.stderr is not None
            yield json.loads(process.stderr.readline())["url"]
        finally:
            process.terminate()


def test_a_gateway_that_runs_is_joined(place: Place) -> None:
    with gateway(place) as url:
        done = place.run("claude", "--", "ask")
        client = reported(done.stdout)
        assert client["env"]["ANTHROPIC_BASE_URL"] == url
        assert client["answer"] == "the answer"
        assert client["env"]["ANTHROPIC_MODEL"] == "demo"
        assert client["settings"]["env"]["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "200000", (
            "else it warns, and guesses"
        )
        assert f"claude on {url} (already running), " in done.stderr
        wait_until(place.is_clean)
        assert listens(url)
        own = reported(place.run("claude", "--private").stdout)
        assert own["env"]["ANTHROPIC_BASE_URL"] != url
    assert reported(place.run("claude").stdout)["env"]["ANTHROPIC_BASE_URL"] != url


@pytest.mark.whole
def test_a_client_is_shown_how_much_the_model_takes_also_where_the_gateway_runs(place: Place) -> None:
    """Claude Code takes a million tokens for granted of a name that it does not know."""
    size = "CLAUDE_CODE_MAX_CONTEXT_TOKENS"
    own = reported(place.run("claude", "--model", "demo/demo").stdout)
    with gateway(place):
        joined = reported(place.run("claude", "--model", "demo/demo").stdout)
    assert joined["settings"]["env"][size] == own["settings"]["env"][size] != ""


@pytest.mark.whole
def test_who_names_a_settings_file_of_their_own_is_shown_what_that_means(place: Place) -> None:
    (place.project / "mine.json").write_text('{"env": {}}')
    done = place.run("claude", "--model", "demo/demo", "--", "--settings", "mine.json")
    assert "--settings takes precedence: if its file sets another base URL, that URL is used" in done.stderr
    assert "is your own" not in place.run("claude", "--model", "demo/demo").stderr


@pytest.mark.whole
def test_one_that_wants_a_key_is_given_it(place: Place) -> None:
    key = "the-key-of-this-client"
    digest = hashlib.sha256(key.encode()).hexdigest()
    with gateway(place, config=f'[providers.demo]\n[keys]\nme = "sha256:{digest}"\n') as url:
        assert place.refused("claude").startswith(
            f"the gateway at {url} requires a client key: set WIREGLOT_KEY"
        )
        env = {"WIREGLOT_KEY": key}
        assert reported(place.run("claude", "--", "ask", env=env).stdout)["answer"] == "the answer"
        printed = place.run("claude", "--print-env", env=env).stdout
        assert 'export ANTHROPIC_AUTH_TOKEN="$WIREGLOT_KEY"' in printed
        assert key not in printed


@pytest.mark.whole
def test_one_that_does_not_serve_the_model_is_left_alone(place: Place) -> None:
    with ProviderDouble({"moonshot": Reply()}) as double, gateway(place, config="[providers.demo]\n") as url:
        # It has no such key, and goes on with what it had.
        base = double.base("moonshot")
        configured(
            place,
            f'[providers.demo]\n[providers.kimi]\nbase_url = "{base}"\napi_key = "env:MOONSHOT_API_KEY"\n',
        )
        env = {"MOONSHOT_API_KEY": GOOD_KEY}
        done = place.run("claude", "--model", "kimi/kimi-k3", env=env)
        assert reported(done.stdout)["env"]["ANTHROPIC_BASE_URL"] != url
        assert f"wireglot: the gateway at {url} does not serve kimi/kimi-k3" in done.stderr
        refused = place.refused("claude", "--model", "kimi/kimi-k3", "--url", url)
        assert "kimi" in refused


@pytest.mark.whole
def test_a_model_that_is_named_is_the_one_that_answers_whatever_patterns_there_are(place: Place) -> None:
    configured(place, '[providers.demo]\n[models]\n"*" = "demo/demo-gemini"\n')
    done = place.run("claude", "--model", "demo/demo", "--log", "log", "--", "ask")
    assert ", demo/demo; set " in done.stderr
    log = place.project / "log"
    wait_until(lambda: '"route"' in log.read_text())
    routes = [json.loads(line).get("route") for line in log.read_text().splitlines()]
    assert set(filter(None, routes)) == {"demo/demo"}


def test_variables_are_only_printed(place: Place) -> None:
    done = place.run("claude", "--print-env", "--model", "demo/demo")
    assert done.returncode == 0
    assert done.stderr == "wireglot: no gateway runs yet: start it with `wireglot serve`\n"
    script = f"{done.stdout}\necho $ANTHROPIC_BASE_URL $ANTHROPIC_MODEL ${{ANTHROPIC_API_KEY-none}}"
    shell = subprocess.run(
        ["sh", "-c", script], env={"ANTHROPIC_API_KEY": "x"}, capture_output=True, text=True, check=True
    )
    assert shell.stdout.split() == ["http://127.0.0.1:8484", "demo/demo", "none"]
    assert not place.data.exists()


def test_variables_that_lead_to_files_of_one_run_are_not_printed(place: Place) -> None:
    refused = place.refused("llm", "--print-env")
    assert refused == "llm needs temporary files: start it with `wireglot run llm`"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name a client (aider, claude, "),
        (("cluade",), "there is no client cluade: did you mean claude?"),
        (("amp",), "Amp calls only its own service and cannot use a gateway"),
        (("claude", "-p", "hi"), "unknown option -p here: put the client's own arguments after --"),
        (("claude", "--modle", "x"), "unknown option --modle: did you mean --model?"),
        (("--env", "openai"), "--env needs a command after --"),
        (("claude", "--env", "openai", "--", "x"), "--env is for a command after --"),
        (("claude", "--url", "x", "--private"), "--url and --private exclude each other"),
        (("claude", "--url", "ftp://x"), "--url: expected http://HOST:PORT"),
        (("claude", "--model", "kimmi/kimi-k3"), "there is no provider 'kimmi' (did you mean kimi"),
        (("claude", "--model", "demo-anthropc"), "did you mean demo-anthropic?"),
        (("claude", "--model", "nobody-knows-this"), "no provider lists the model 'nobody-knows-this'"),
    ],
)
def test_what_is_wrong_with_the_command_is_one_line(
    place: Place, arguments: tuple[str, ...], words: str
) -> None:
    assert words in place.refused(*arguments)
    assert place.is_clean()


def test_a_gateway_that_does_not_answer_is_reported(place: Place) -> None:
    reported = place.refused("claude", "--url", "http://127.0.0.1:1", status=1)
    assert reported.startswith("http://127.0.0.1:1: connection refused")
    assert place.is_clean()


def test_a_configuration_that_cannot_be_used_is_reported(place: Place) -> None:
    done = place.run("claude", "--config", "/nowhere.toml")
    assert (
        complaint(done) == "/nowhere.toml: expected a file that can be read, found No such file or directory"
    )


def test_a_gateway_that_cannot_start_is_reported(place: Place) -> None:
    place.data.parent.mkdir(parents=True)
    place.data.mkdir()
    (place.data / "wireglot.db").write_text("no database")
    done = place.run("claude")
    assert done.returncode == 1
    assert "wireglot.db" in done.stderr.splitlines()[-1]
    assert done.stdout == ""
    wait_until(place.is_clean)


def gateway_process(url: str) -> int:
    """The number of the process that listens there."""
    port = int(url.rpartition(":")[2])
    sockets = {
        line.split()[9]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"
    }
    for number in filter(str.isdigit, os.listdir("/proc")):
        for link in Path("/proc", number, "fd").glob("*"):
            with suppress(OSError):
                if os.readlink(link) in {f"socket:[{inode}]" for inode in sockets}:
                    return int(number)
    raise AssertionError(f"nobody listens at {url}")


@pytest.mark.whole
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_folder_that_nobody_was_left_to_remove_goes_with_the_next_start(place: Place) -> None:
    """A client and all that lived beside it were killed: the folder holds a key."""
    terminal = place.in_terminal("claude", "--", "wait")
    assert terminal.wait_for("END", DEADLINE_SECONDS)
    os.kill(gateway_process(reported(terminal.shown)["env"]["ANTHROPIC_BASE_URL"]), signal.SIGKILL)
    (left,) = place.temporary.iterdir()
    place.run("claude")
    assert left.exists()  # the client lives
    os.kill(terminal.pid, signal.SIGKILL)
    terminal.end(DEADLINE_SECONDS)
    stranger = place.temporary / "wireglot-run-1-stranger"
    stranger.symlink_to(place.home)
    place.run("claude")
    assert not left.exists()
    assert stranger.is_symlink()
    assert place.home.exists()


@pytest.mark.whole
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_lives_beside_a_client_holds_nothing_of_its_callers(place: Place) -> None:
    """A lock, or the other end of a pipe, is the client's alone."""
    reading, writing = os.pipe()
    try:
        with subprocess.Popen(
            [*COMMAND, "run", "claude", "--", "wait"],
            cwd=place.project,
            env=place.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[writing],
        ) as client:
            os.close(writing)
            assert client.stdin is not None
            assert client.stdout is not None
            url = reported(client.stdout.readline().decode())["env"]["ANTHROPIC_BASE_URL"]
            links = {os.readlink(link) for link in Path("/proc", str(gateway_process(url)), "fd").glob("*")}
            assert not any(f"pipe:[{os.fstat(reading).st_ino}]" in link for link in links)
            client.stdin.close()
    finally:
        os.close(reading)


def test_the_descriptor_that_reported_the_start_is_written_to_once(tmp_path: Path) -> None:
    """Its number may be the database's by the time that the end goes wrong."""
    reading, writing = os.pipe()
    tell = _StartReport(writing)
    tell(_Reported(url="http://127.0.0.1:1"))
    assert os.read(reading, 100) == b'{"url":"http://127.0.0.1:1","problem":""}'
    file = os.open(tmp_path / "database", os.O_RDWR | os.O_CREAT)
    os.dup2(file, writing)
    tell(_Reported(problem="the disk is full"))
    assert os.fstat(writing).st_size == 0
    for number in {reading, writing, file}:
        os.close(number)
