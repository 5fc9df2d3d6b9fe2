"""The example agent, run as its page shows it."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

from tests.history.support import DIALECTS
from tests.tiers import rows
from wireglot.testing import scripted_upstream
from wireglot.testing.scripted_upstream import ScriptedUpstream

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "agent_loop.py"
PROMPT = "What does [[marker-file:notes.txt]] say?"


def agent(folder: Path, *given: str) -> subprocess.CompletedProcess[str]:
    # The agent may be run from anywhere; the variable makes an installation needless.
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "NO_PROXY": "*"}
    command = [sys.executable, str(EXAMPLE), *given]
    return subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False
    )


READ = 'Let me use read_file.\n[read_file {"path":"notes.txt"}: 23 characters]\nFINAL-OK NONCE-0a1b2c3d\n'


@rows("dialect", DIALECTS)
def test_the_agent_reads_the_file_and_answers_from_it_in_every_dialect(
    dialect, tmp_path, monkeypatch, capsys
):
    """R-U-01, R-U-06, R-U-07: the nonce proves that call and result were understood."""
    (tmp_path / "notes.txt").write_text("remember NONCE-0a1b2c3d", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), "--demo", "--dialect", dialect, PROMPT])
    upstream = ScriptedUpstream()  # a program that is over ends it
    monkeypatch.setattr(scripted_upstream, "ScriptedUpstream", lambda: upstream)
    try:
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    finally:
        upstream.stop()
    assert capsys.readouterr().out == READ


def test_the_agent_runs_as_a_program_of_its_own(tmp_path):
    (tmp_path / "notes.txt").write_text("remember NONCE-0a1b2c3d", encoding="utf-8")
    ran = agent(tmp_path, "--demo", PROMPT)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == READ


def test_a_tool_that_fails_is_reported_to_the_model(tmp_path):
    ran = agent(tmp_path, "--demo", '[[demo:tool read_file {"path": "/etc/hostname"}]]')
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("outside of this folder") == 2, "once as it happens, once as the model quotes it"


def test_an_error_of_the_provider_ends_it_with_its_words(tmp_path):
    ran = agent(tmp_path, "--demo", "[[demo:fail 429]] Hello")
    assert ran.returncode == 1
    assert ran.stderr.startswith("rate_limit: ")


def test_the_command_of_the_example_is_the_one_in_the_documentation():
    shown = [line.strip() for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if " --demo " in line]
    page = (ROOT / "docs" / "history.md").read_text(encoding="utf-8")
    assert shown
    assert all(line in page for line in shown)


def test_the_example_stays_small():
    lines = [line for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(lines) <= 80
