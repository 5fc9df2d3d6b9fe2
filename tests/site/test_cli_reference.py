"""docs/cli.md is the page of the command line: it has every command, option and exit status."""

import argparse
import re
from pathlib import Path

import pytest

from tests.tiers import rows
from tools import cli_page
from wireglot.cli import terminal
from wireglot.cli.parser import build_parser

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
NO_STATUSES = {"MAX_FAILURES"}
"""Constants of the module that bound a status and are none."""


def parsers(parser):
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action.choices.values():
                yield from parsers(choice)


def section_of(command):
    """Its text, with that of its forms (`translate --jsonl`)."""
    pieces = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    return "".join(piece for piece in pieces if re.match(rf"`wireglot {re.escape(command)}[ `]", piece))


@rows("parser", list(parsers(build_parser())), ids=lambda parser: parser.prog)
def test_every_option_stands_where_its_command_does(parser):
    if parser.prog == "wireglot":
        return
    section = section_of(parser.prog.split()[1])
    for action in parser._actions:
        for option in action.option_strings:
            assert option in section or option in ("-h", "--help")
            assert (
                not option.startswith("--")
                or re.search(rf"`[^`\n]*{option}\b", section)
                or option == "--help"
            )
    for name in parser.prog.split()[2:]:
        assert re.search(rf"`[^`\n]*\b{name}\b", section)


def test_the_table_has_every_command():
    table = cli_page.blocks()["commands"]
    assert table in PAGE
    for parser in parsers(build_parser()):
        if len(parser.prog.split()) == 2:
            assert f"[`{cli_page.synopsis(parser)}`](#{parser.prog.replace(' ', '-')})" in table


def test_every_exit_status_has_a_meaning():
    known = {name: value for name, value in vars(terminal).items() if name.isupper() and type(value) is int}
    head = section_of_statuses()
    missing = [name for name in known.keys() - NO_STATUSES if not re.search(rf"\b{known[name]}\b", head)]
    assert missing == []
    assert {"OK", "FAILED", "UNUSABLE", "INTERRUPTED"} <= known.keys()


def section_of_statuses():
    section = re.search(r"^## Exit status\n(.+?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None
    return "\n".join(line.split("|")[1] for line in section[1].splitlines() if line.startswith("|"))


@pytest.mark.parametrize("width", ["40", "200"])
def test_the_table_does_not_depend_on_the_width_of_a_terminal(width, monkeypatch):
    before = cli_page.blocks()
    monkeypatch.setenv("COLUMNS", width)
    assert cli_page.blocks() == before
