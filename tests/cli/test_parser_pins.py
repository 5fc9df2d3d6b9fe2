"""Every command, option, default and choice of the command line: others have written them into scripts.

`WIREGLOT_UPDATE=1 pytest tests/cli/test_parser_pins.py` rewrites them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.core.laws.test_pair_goldens import UPDATE
from wireglot.cli.parser import build_parser
from wireglot.cli.run.agents import PRINTED
from wireglot.cli.run.clients import CLIENTS

PINS = Path(__file__).parents[1] / "fixtures" / "command_line.txt"


def lines(parser: argparse.ArgumentParser) -> Iterator[str]:
    run = parser._defaults.get("run")
    module = f" -> {run.args[0]}" if run is not None else ""
    rest = " [-- ...]" if getattr(parser, "takes_rest", False) else ""
    others = {name: value for name, value in parser._defaults.items() if name not in ("run", "root")}
    yield f"{parser.prog}{rest}{module}{f' {others}' if others else ''}"
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction | argparse._HelpAction):
            yield f"  {_action(action)}"
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield f"  {action.dest}: {' '.join(action.choices)}"
            for inner in action.choices.values():
                yield from lines(inner)


def _action(action: argparse.Action) -> str:
    names = " ".join(action.option_strings) or action.dest
    stated: dict[str, Any] = {
        "dest": action.dest if action.option_strings else None,
        "metavar": action.metavar,
        "nargs": action.nargs,
        "default": action.default,
        "const": action.const,
        "choices": list(action.choices) if action.choices is not None else None,
        "required": action.required or None,
        "type": getattr(action.type, "__name__", type(action.type).__name__ if action.type else None),
        "completes": list(getattr(action, "completes", ())) or None,
    }
    return " ".join([names, *(f"{name}={value!r}" for name, value in stated.items() if value is not None)])


def test_the_command_line_is_as_it_is_pinned() -> None:
    text = "\n".join(lines(build_parser())) + "\n"
    if UPDATE:
        PINS.write_text(text, encoding="utf-8")
    assert text == PINS.read_text(encoding="utf-8")


def test_every_client_that_is_known_is_completed() -> None:
    (commands,) = (each for each in build_parser()._actions if isinstance(each, argparse._SubParsersAction))
    client: Any = next(each for each in commands.choices["run"]._actions if each.dest == "client")
    assert list(client.completes) == sorted([*CLIENTS, *PRINTED])


def test_a_parser_of_one_command_is_the_same_for_it() -> None:
    """A process makes no others: complaints and help are those of the whole."""
    every = _commands(build_parser())
    for name, whole in every.items():
        own = _commands(build_parser(name))
        assert set(own) < set(every) or name == "completion"
        assert list(lines(own[name])) == list(lines(whole))
        assert own[name].format_help() == whole.format_help()


def test_what_names_no_command_is_met_by_all_of_them() -> None:
    every = _commands(build_parser())
    for word in ("", "--version", "rnu", "completion"):
        assert _commands(build_parser(word)).keys() == every.keys()


def _commands(parser: argparse.ArgumentParser) -> dict[str, Any]:
    return next(
        action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
