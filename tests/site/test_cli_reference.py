"""docs/reference/cli.md has every command and option of the parser, and every exit status."""

import argparse
from pathlib import Path

import pytest

from tests.tiers import rows
from tools import cli_page
from wireglot.cli import terminal
from wireglot.cli.parser import build_parser

TEXT = "\n".join(cli_page.page())


def parsers(parser):
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action.choices.values():
                yield from parsers(choice)


def sections():
    pieces = TEXT.split("\n## `")[1:]
    return {piece.split("`")[0]: piece for piece in pieces}


@rows("parser", list(parsers(build_parser())), ids=lambda parser: parser.prog)
def test_every_option_stands_where_its_command_does(parser):
    if parser.prog == "wireglot":
        return
    reported = sections()[" ".join(parser.prog.split()[:2])]
    assert f"`{cli_page.synopsis(parser)}`" in reported
    for action in parser._actions:
        for option in action.option_strings:
            assert option in reported or option in ("-h", "--help")


def test_the_committed_page_has_every_word_of_the_help():
    committed = Path(__file__).parents[2] / "docs/reference/cli.md"
    assert TEXT in committed.read_text(encoding="utf-8")


def test_every_exit_status_is_told():
    told = dict(cli_page.statuses())
    assert terminal.UNUSABLE in told
    assert terminal.NOT_FOUND in told
    assert f"| {terminal.INTERRUPTED} | Ctrl-C |" in TEXT


def test_a_status_without_a_meaning_is_reported(monkeypatch):
    monkeypatch.setattr(terminal, "NEW_STATUS", 7, raising=False)
    with pytest.raises(cli_page.Undocumented, match="NEW_STATUS"):
        cli_page.statuses()


def test_the_page_does_not_depend_on_the_width_of_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert "\n".join(cli_page.page()) == TEXT
