"""A command that is forked does what one that is started does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, PLAIN, configure, request_case
from tests.processes import ForkedCommand, ForkedTerminal, run_forked
from tests.waiting import DEADLINE_SECONDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every process is started")

CASES = {
    "relative path": ["config", "check", "--config", "wireglot.toml"],
    "no arguments": [],
    "input": ["translate", "request", "--from", "anthropic", "--to", "gemini"],
}


@pytest.mark.parametrize("arguments", CASES.values(), ids=CASES)
def test_it_prints_and_ends_as_one_that_is_started(arguments: list[str], tmp_path: Path) -> None:
    configure('[providers.demo]\n[models]\nfast = "demo/demo"\n', tmp_path)
    given = request_case()["body"]
    environ = {**PLAIN, "HOME": str(tmp_path), "WIREGLOT_STORE": "memory:"}
    started, forked = (
        run(
            [*COMMAND, *arguments],
            cwd=tmp_path,
            env=environ,
            input=repr(given).replace("'", '"'),
            capture_output=True,
            text=True,
        )
        for run in (subprocess.run, run_forked)
    )
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        started.returncode,
        started.stdout,
        started.stderr,
    )
    assert forked.stdout or forked.stderr


def _state(pid: int) -> dict[str, str]:
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())


def test_it_is_a_child_with_its_own_descriptors_and_group(tmp_path: Path) -> None:
    command = [*COMMAND, "translate", "--jsonl"]
    with ForkedCommand(
        command, cwd=tmp_path, env=PLAIN, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"{}\n")
        process.stdin.flush()
        assert process.stdout.readline()
        assert int(_state(process.pid)["PPid"]) == os.getpid()
        assert os.getpgid(process.pid) == process.pid
        opened = os.listdir(f"/proc/{process.pid}/fd")
        assert set(opened) == {"0", "1", "2"}
        assert os.readlink(f"/proc/{process.pid}/cwd") == str(tmp_path)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == 143


def test_its_terminal_is_its_own(tmp_path: Path) -> None:
    terminal = ForkedTerminal([*COMMAND, "translate", "--jsonl"], tmp_path, PLAIN)
    assert os.getsid(terminal.pid) == terminal.pid
    terminal.type("{}\n")
    assert terminal.wait_for('"ok":false', DEADLINE_SECONDS), terminal.shown
    terminal.type("\x03")
    assert terminal.end(DEADLINE_SECONDS) == 130
    assert "wireglot: interrupted" in terminal.shown


def test_an_interpreter_with_other_variables_is_started(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os; os._exit(9)")
    done = run_forked([*COMMAND, "demo"], env={**PLAIN, "PYTHONPATH": str(tmp_path)}, capture_output=True)
    assert done.returncode == 9
