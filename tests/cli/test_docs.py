"""docs/cli.md says what the parser knows, and nothing else."""

import argparse
import re
from pathlib import Path

from wireglot.cli.parser import build_parser
from wireglot.cli.translate_dataset import _TYPES

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def commands():
    (subparsers,) = (
        action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    return dict(subparsers.choices)


def options(parser):
    """Those of its actions, too."""
    found = {name for action in parser._actions for name in action.option_strings if name.startswith("--")}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and parser.prog != "wireglot":
            found = found.union(*map(options, action.choices.values()))
    return found


def section(command):
    """The text of the page about a command."""
    parts = re.split(r"^## `wireglot ", PAGE, flags=re.MULTILINE)
    return "".join(part for part in parts if re.match(rf"{command}\b", part))


def test_every_command_has_a_section():
    headings = re.findall(r"^## `wireglot (\w+)", PAGE, flags=re.MULTILINE)
    assert set(headings) == set(commands())


def test_every_option_is_documented_where_its_command_is():
    for name, parser in commands().items():
        missing = {option for option in options(parser) - {"--help"} if option not in section(name)}
        assert not missing, f"wireglot {name}"
    assert "wireglot --version" in PAGE
    assert "wireglot --help" in PAGE


def test_every_option_in_the_docs_exists():
    known = options(build_parser()).union(*(options(parser) for parser in commands().values()))
    assert set(re.findall(r"--[a-z][a-z-]*", PAGE)) <= known


def test_every_choice_of_an_option_is_documented():
    for name, parser in commands().items():
        for action in parser._actions:
            for choice in action.choices or ():
                assert str(choice) in section(name)


def test_every_error_type_is_documented():
    documented = set(re.findall(r"^\| `(\w+)` \|.*\|.*\|$", PAGE, flags=re.MULTILINE))
    assert {*_TYPES.values(), "internal_error"} <= documented


def test_every_option_has_a_help_text():
    for parser in commands().values():
        assert all(action.help for action in parser._actions)
