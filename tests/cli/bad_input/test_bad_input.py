"""Each command answers bad input with one clear line and the right exit status: the table of `table.py`."""

from __future__ import annotations

import argparse
import os
import re
import select
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from clients.terminal import Terminal
from tests.cli.bad_input.case import COLUMNS, Case
from tests.cli.bad_input.running import COMMAND, Done, heard_until, run_case, run_here
from tests.cli.bad_input.table import TABLE
from tests.cli.bad_input.world import ADMIN, Hosts, furnish
from tests.processes import ForkedTerminal
from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.cli import terminal as cli_terminal
from wireglot.cli.parser import build_parser
from wireglot.cli.terminal import INTERRUPTED, OK, PIPE_CLOSED, TERMINATED

STATUSES = {value for name, value in vars(cli_terminal).items() if name.isupper() and type(value) is int}
CASES = [
    (row, column, case)
    for row, cells in TABLE.items()
    for column, cell in cells.items()
    if not isinstance(cell, str)
    for case in cell
]
HERE = [each for each in CASES if each[2].how == "here"]
PROCESSES = [each for each in CASES if each[2].how != "here"]


def _name(row: str, column: str, case: Case) -> str:
    return f"{row}, {column}: {case.line}{'' if case.how == 'here' else f' ({case.how})'}"


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts().up() as up:
        yield up


def commands(
    parser: argparse.ArgumentParser, before: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command that can be given, with its actions, from the parser itself."""
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not inner:
        yield before, parser
    for action in inner:
        for name, each in action.choices.items():
            yield from commands(each, f"{before} {name}".strip())


def test_every_command_has_a_row_and_every_row_all_columns() -> None:
    """A new command without rows fails here, and so does a row of a command that is no more."""
    assert sorted(TABLE) == sorted(name for name, _ in commands(build_parser()))
    for row, cells in TABLE.items():
        assert list(cells) == list(COLUMNS), row
        assert all(cells.values()), f"{row}: cases, or why the column does not apply"


def test_every_option_that_names_a_file_a_host_or_a_port_is_in_its_row() -> None:
    """Where a command takes one, the column applies."""
    column_of = {"FILE": "missing file", "URL": "dead host", "PATH": "missing file"}
    for name, parser in commands(build_parser()):
        for action in parser._actions:
            metavar = action.metavar if isinstance(action.metavar, str) else ""
            if metavar not in column_of:
                continue
            cell = TABLE[name][column_of[metavar]]
            assert not isinstance(cell, str), f"{name} {metavar}: {cell}"
            spelled = action.option_strings[-1] if action.option_strings else ""
            assert any(spelled in case.line for case in cell), f"{name} {spelled}"


@pytest.mark.sampled("row", "column")
@rows(("row", "column", "case"), HERE, ids=[_name(*each) for each in HERE], parts=4)
def test_bad_input_is_answered_in_one_line(
    row: str, column: str, case: Case, hosts: Hosts, tmp_path: Path
) -> None:
    _answers(case, hosts, tmp_path)


@pytest.mark.sampled("case.how", "case.signal", each=2)
@rows(("row", "column", "case"), PROCESSES, ids=[_name(*each) for each in PROCESSES], parts=4)
def test_a_process_ends_in_one_line(row: str, column: str, case: Case, hosts: Hosts, tmp_path: Path) -> None:
    """Signals and outputs that break are the same for all commands: of each kind some, and all in `make full`."""
    _answers(case, hosts, tmp_path)


def _answers(case: Case, hosts: Hosts, folder: Path) -> None:
    environ = furnish(folder)
    done = run_case(case, hosts, folder, environ)
    _check(done, case, {**hosts.names, "folder": str(folder)})
    # What a client of `run` had ends a moment after it.
    wait_until(lambda: not list((folder / "tmp").iterdir()), "nothing half done is left")


def _check(done: Done, case: Case, names: dict[str, str]) -> None:
    assert done.status in STATUSES or case.status == 0
    assert "Traceback" not in done.said
    assert (done.status, _fits(case, _without_store(done), names)) == (case.status, True), done.said
    for secret in ("hush", ADMIN):
        assert secret not in done.said
        assert secret not in done.out
    assert "\x1b" not in done.out + done.said, "colours are for terminals"
    if case.out is not None:
        expected = case.out.format(**names)
        assert done.out.startswith(expected) if expected else not done.out, done.out


def _without_store(done: Done) -> str:
    """What is said, without the store that a command names once it is done."""
    if done.status not in (OK, PIPE_CLOSED):
        return done.said
    return re.sub(
        r"(?m)^wireglot: (no running gateway found|a gateway that is not recorded in your data folder).*\n",
        "",
        done.said,
    )


def _fits(case: Case, said: str, names: dict[str, str]) -> bool:
    if not case.says:
        return said == ""
    expected = f"{'' if case.note else 'wireglot: '}{case.says.format(**names)}\n"
    return re.fullmatch(re.escape(expected).replace("…", ".*"), said, re.DOTALL) is not None


def test_what_is_said_is_one_line() -> None:
    """Unless there are several problems, or it is no complaint."""
    long = [case.line for _, _, case in CASES if "\n" in case.says and not case.note]
    assert long == ["run claude", "serve --config two.toml"]


@pytest.mark.parametrize("columns", ["20", "80"])
def test_the_help_fits_any_terminal(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """argparse has failed on odd metavars where it must wrap them."""
    monkeypatch.setenv("COLUMNS", columns)
    for name, parser in commands(build_parser()):
        assert parser.format_help().startswith(f"usage: wireglot {name.split()[0]}")


def test_a_question_ends_at_ctrl_c(tmp_path: Path) -> None:
    """asyncio held the interrupt back until the question was answered."""
    environ = furnish(tmp_path)
    run_case(Case("keys list", before=("keys create me",)), Hosts(), tmp_path, environ)
    terminal = Terminal([*COMMAND, "keys", "delete", "me"], tmp_path, {**environ, "TERM": "xterm"})
    assert terminal.wait_for("Delete the key me", DEADLINE_SECONDS), terminal.shown
    terminal.type("\x03")
    assert terminal.end(DEADLINE_SECONDS) == INTERRUPTED, terminal.shown
    assert terminal.shown.endswith("\nwireglot: interrupted\n")
    assert "Traceback" not in terminal.shown
    done = run_case(Case("keys list"), Hosts(), tmp_path, environ)
    assert "active" in done.out, "nothing was deleted"


@pytest.mark.sampled(each=1)
@pytest.mark.parametrize("columns", [20, 80])
def test_a_narrow_terminal_is_no_reason_to_fail(columns: int, tmp_path: Path) -> None:
    environ = {**furnish(tmp_path), "TERM": "xterm", "COLUMNS": str(columns)}
    for line in ("pairs", "run claude"):
        terminal = ForkedTerminal([*COMMAND, *line.split()], tmp_path, environ)
        assert terminal.end(DEADLINE_SECONDS) == 0, terminal.shown
        assert "Traceback" not in terminal.shown


@pytest.mark.sampled("line")
@rows("line", ["nonsense", "models nobody", "config check", "translate"])
@rows("where", ["/dev/full", "&-"])
def test_the_status_is_the_same_where_nothing_can_be_said(line: str, where: str, tmp_path: Path) -> None:
    """A full disk at standard error was a status of its own (120), or a traceback that nobody saw."""
    environ = furnish(tmp_path)
    command = ["sh", "-c", f'exec "$@" 2>{where}', "sh", *COMMAND, *line.split()]
    there = subprocess.run(command, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, check=False)
    assert there.returncode == run_case(Case(line), Hosts(), tmp_path, environ).status


@pytest.mark.parametrize("goes_on", ["; exec sleep 600", ""], ids=["it goes on", "it ends"])
def test_words_that_do_not_come_fail_with_what_came(goes_on: str) -> None:
    """The table waits for what a command writes: a text that has changed must not hang the tests."""
    command = ["sh", "-c", f"echo other words >&2{goes_on}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert select.select([process.stderr], [], [], DEADLINE_SECONDS)[0]
        with pytest.raises(AssertionError, match=r"it did not write b'listening', but b'other words\\n'"):
            heard_until(process, b"listening", 0.0)
    assert process.returncode is not None


def test_an_export_that_is_ended_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither half of it, nor a draft; what was there before stays."""
    environ = furnish(tmp_path)
    (tmp_path / "out.jsonl").write_text("of before\n")
    kept = sorted(each.name for each in tmp_path.iterdir())

    async def cut_short(engine: object) -> AsyncIterator[bytes]:
        yield b"{}\n"
        os.kill(os.getpid(), signal.SIGTERM)
        yield b"{}\n"

    monkeypatch.setattr("wireglot.cli.store.export_lines", cut_short)
    done = run_here(["store", "export", "out.jsonl"], Case(""), environ, tmp_path)
    assert (done.status, done.said) == (TERMINATED, "wireglot: terminated\n")
    assert (tmp_path / "out.jsonl").read_text() == "of before\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == kept
