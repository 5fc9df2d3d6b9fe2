"""`wireglot serve`: without the standard descriptors, with models on its command line, with few rights."""

import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, PLAIN
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.cli.entry import main
from wireglot.gateway.config.build import load

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")

CLOSED_LATER = (
    "import os, sys\n"
    "from wireglot.cli.entry import main\n"
    "for number in (0, 1, 2):\n"
    "    os.close(number)\n"
    "sys.exit(main(['serve', '--port', '0']))\n"
)


def port_of(process: subprocess.Popen[bytes]) -> int | None:
    """Where it listens, reported by the system: it cannot say so itself."""
    inodes = set()
    for entry in Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(entry)))
        except FileNotFoundError:
            continue
    rows = [line.split() for line in Path(f"/proc/{process.pid}/net/tcp").read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and row[9] in inodes]
    return int(listening[0].rpartition(":")[2], 16) if listening else None


RIGHTS = (
    "import ctypes, os, resource, sys\n"
    "from wireglot.cli import process_setup\n"
    "os.umask(0o022)\n"
    "process_setup.give_up()\n"
    "prctl = ctypes.CDLL(None).prctl\n"
    "print(oct(os.umask(0)), prctl(39, 0, 0, 0, 0), prctl(3, 0, 0, 0, 0), resource.getrlimit(resource.RLIMIT_CORE)[0])\n"
)
"""Asks the system: PR_GET_NO_NEW_PRIVS is 39, PR_GET_DUMPABLE 3."""


DESCRIPTORS = (
    "import resource\n"
    "from wireglot.cli.process_setup import raise_limit\n"
    "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))\n"
    "raise_limit()\n"
    "print(*(limit == hard for limit in resource.getrlimit(resource.RLIMIT_NOFILE)))\n"
)


def test_it_may_have_as_many_connections_as_the_system_allows() -> None:
    """[A3] As many requests at once as its limits say need more than the 1024 descriptors of a shell."""
    reported = subprocess.run(
        [sys.executable, "-c", DESCRIPTORS], env=PLAIN, capture_output=True, text=True, check=True
    )
    assert reported.stdout.split() == ["True", "True"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux")
def test_it_gives_up_what_it_does_not_need() -> None:
    """[T26] Files for their owner alone, no new privileges, no dump, nobody attaches."""
    reported = subprocess.run(
        [sys.executable, "-c", RIGHTS], env=PLAIN, capture_output=True, text=True, check=True
    )
    assert reported.stdout.split() == ["0o77", "1", "0", "0"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux")
def test_a_profiler_may_look_where_the_operator_says_so() -> None:
    environ = {**PLAIN, "WIREGLOT_DEBUGGABLE": "1"}
    reported = subprocess.run(
        [sys.executable, "-c", RIGHTS], env=environ, capture_output=True, text=True, check=True
    )
    assert reported.stdout.split()[:3] == ["0o77", "1", "1"]


@pytest.mark.sampled(each=1)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", ">&-", "2>&-", "later"])
def test_it_serves_without_standard_descriptors(closed: str, tmp_path: Path) -> None:
    command = f"exec {shlex.join(COMMAND)} serve --port 0 {closed}"
    arguments = [sys.executable, "-c", CLOSED_LATER] if closed == "later" else ["sh", "-c", command]
    environ = {**PLAIN, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "WIREGLOT_DEBUGGABLE": "1"}
    with subprocess.Popen(arguments, env=environ, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        try:

            def port() -> int | None:
                assert process.poll() is None, "it ended"
                return port_of(process)

            address = f"http://127.0.0.1:{wait_until(port, 'it does not listen')}"
            with urllib.request.urlopen(f"{address}/healthz", timeout=60) as answer:
                assert answer.status == 200
            status = Path(f"/proc/{process.pid}/status").read_text()
            assert "NoNewPrivs:\t1" in status
            assert "Umask:\t0077" in status
            held = {os.readlink(f"/proc/{process.pid}/fd/{number}") for number in (0, 1, 2)}
            assert not any(place.startswith("socket:") for place in held)
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_SECONDS) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("arguments", ["translate --jsonl", "config check", "nonsense", ""])
def test_other_commands_refuse_to_speak_into_the_void(arguments: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join(COMMAND)} {arguments} <&- >&- 2>&-"], env=PLAIN, cwd=tmp_path, check=False
    )
    assert done.returncode == 2


def test_models_on_the_command_line_stand_before_those_of_the_environment(monkeypatch) -> None:
    """R-DD-12: aliases by option; a class of Claude's names can go to a model of its own."""
    monkeypatch.setenv("WIREGLOT_MODELS", "claude-*=demo/demo")
    arguments = [
        "serve",
        "--model",
        "claude-haiku-*=demo/demo-gemini",
        "--model",
        "claude-opus-*=demo/demo-chat",
    ]
    seen: dict[str, str] = {}

    def serve(
        config: str | None, overrides: dict[str, object], options: dict[str, str], *, record_until: float
    ) -> int:
        assert record_until == 0
        seen["models"] = os.environ["WIREGLOT_MODELS"]
        return 0

    monkeypatch.setattr("wireglot.cli.serve._start", serve)
    assert main(arguments) == 0
    rules = load(None, environ={"WIREGLOT_MODELS": seen["models"]}).rules
    assert [rule.match for rule in rules] == ["claude-haiku-*", "claude-opus-*", "claude-*"]


HANGING_START = (
    "import asyncio, os, sys, threading\n"
    "from wireglot.cli.entry import main\n"
    "from wireglot.gateway import run\n"
    "def hang():\n"
    "    os.write(1, b'hanging\\n')\n"
    "    threading.Event().wait()\n"
    "run.Process.start = lambda self: asyncio.to_thread(hang)\n"
    "sys.exit(main(['serve', '--port', '0']))\n"
)
"""As if its store were on a disk that does not answer."""


def test_a_second_signal_ends_a_start_that_hangs_in_a_thread(tmp_path: Path) -> None:
    environ = {**PLAIN, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    command = [sys.executable, "-c", HANGING_START]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=pipe, stderr=pipe) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"hanging\n"
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGINT)
            _, reported = process.communicate(timeout=DEADLINE_SECONDS)
            assert process.returncode == 1
            assert b" in hang\n" in reported, "the stack"
        finally:
            process.kill()


@pytest.mark.parametrize("rule", ["claude", "=kimi/kimi-k3", "claude=", "a=b/c;d=e/f"])
def test_a_model_on_the_command_line_that_is_no_rule_is_refused(rule: str, capsys) -> None:
    assert main(["serve", "--model", rule]) == 2
    assert "expected NAME=PROVIDER/MODEL" in capsys.readouterr().err
