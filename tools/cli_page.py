"""The table of commands in docs/cli.md, from the parser itself. A test compares the page with its options."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from tools.blocks import table
from wireglot.cli.parser import build_parser


def blocks() -> dict[str, str]:
    return {"commands": table(("command", "does"), list(_commands(build_parser())))}


def _commands(root: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    (commands,) = (action for action in root._actions if isinstance(action, argparse._SubParsersAction))
    helped = {choice.dest: choice.help or "" for choice in commands._choices_actions}
    for name, parser in commands.choices.items():
        yield f"[`{synopsis(parser)}`](#wireglot-{name})", helped[name]


def synopsis(parser: argparse.ArgumentParser) -> str:
    """How it is called. argparse's own depends on the version of Python."""
    if parser.usage:
        return parser.usage
    pieces = [parser.prog]
    for action in parser._actions:
        if action.option_strings:
            continue
        if isinstance(action, argparse._SubParsersAction):
            pieces.append(f"{action.metavar} ...")
        else:
            pieces.append(_positional(action))
    shown = [option for action in parser._actions for option in action.option_strings if option != "--help"]
    return " ".join([*pieces, "[options]"] if any(re.match("--", option) for option in shown) else pieces)


def _positional(action: argparse.Action) -> str:
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    match action.nargs:
        case "?":
            return f"[{name}]"
        case "*":
            return f"[{name} ...]"
        case "+":
            return f"{name} ..."
    return name
