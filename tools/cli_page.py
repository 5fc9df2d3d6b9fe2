"""Write docs/reference/cli.md: every command, argument and option, from the parser itself."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Final

from tools.blocks import table
from wireglot.cli import terminal
from wireglot.cli.parser import build_parser

_STATUSES: Final = {
    "OK": "done",
    "FAILED": "it was tried, and did not work; `smoke` and `demo` tell the number of checks that failed",
    "UNUSABLE": "nothing was tried: the command line, the configuration, a file or the output cannot be used",
    "NOT_EXECUTABLE": "`wireglot run`: the client is there and cannot be started",
    "NOT_FOUND": "`wireglot run`: the client is not installed",
    "HUNG_UP": "the terminal was closed (SIGHUP)",
    "INTERRUPTED": "Ctrl-C",
    "PIPE_CLOSED": "the reader of the output closed it",
    "TERMINATED": "the process was asked to end (SIGTERM)",
}
_NO_STATUSES: Final = frozenset({"MAX_FAILURES"})
"""Constants of the module that bound a status and are none."""


class Undocumented(Exception):
    """An exit status without a meaning, or a meaning without a status."""


def page() -> Iterator[str]:
    root = build_parser()
    yield "# Commands and options"
    yield ""
    yield "Everything that `wireglot --help` and `wireglot COMMAND --help` know."
    yield "[The command line](../cli.md) explains the commands, with examples and formats."
    yield ""
    yield f"`{root.prog} [{_options_of(root)[0]}] COMMAND ...`. Options are not abbreviated."
    for name, parser in _commands(root).items():
        yield ""
        yield f"## `wireglot {name}`"
        yield from _reported(parser)
    yield ""
    yield "## Exit statuses"
    yield ""
    yield "What is wrong is reported on standard error, in one line."
    yield ""
    yield table(("status", "meaning"), [(str(value), meaning) for value, meaning in statuses()])


def statuses() -> list[tuple[int, str]]:
    known = {name: value for name, value in vars(terminal).items() if name.isupper() and type(value) is int}
    if wrong := (known.keys() - _NO_STATUSES) ^ _STATUSES.keys():
        raise Undocumented(f"exit statuses that are not reported, or are none: {', '.join(sorted(wrong))}")
    return sorted((known[name], meaning) for name, meaning in _STATUSES.items())


def _reported(parser: argparse.ArgumentParser, depth: int = 3) -> Iterator[str]:
    if parser.description:
        yield ""
        yield _prose(" ".join(parser.description.split()))
    actions = _commands(parser)
    yield ""
    yield f"`{synopsis(parser)}`"
    rows = list(_rows(parser))
    if rows:
        yield ""
        yield table(("argument", "meaning"), rows)
    if parser.epilog:
        yield ""
        yield "<!-- not run: as the help has it; the pages about the commands are run -->"
        yield "```text"
        yield parser.epilog.rstrip()
        yield "```"
    for name, action in actions.items():
        yield ""
        yield f"{'#' * depth} `{parser.prog} {name}`"
        if not action.description:
            yield ""
            yield _prose(_help_of(parser, name))
        yield from _reported(action, depth + 1)


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
    shown = [option for option in _options_of(parser) if option != "--help"]
    return " ".join([*pieces, "[options]"] if shown else pieces)


def _positional(action: argparse.Action) -> str:
    name = _value(action)
    match action.nargs:
        case "?":
            return f"[{name}]"
        case "*":
            return f"[{name} ...]"
        case "+":
            return f"{name} ..."
    return name


def _rows(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    formatter = argparse.HelpFormatter(parser.prog)
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            continue
        names = ", ".join(f"`{name}`" for name in _names(action))
        yield names, _prose(formatter._expand_help(action) if action.help else "")


def _names(action: argparse.Action) -> list[str]:
    if not action.option_strings:
        return [_positional(action)]
    if action.nargs == 0:
        return list(action.option_strings)
    return [f"{option} {_value(action)}" for option in action.option_strings]


def _value(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "|".join(map(str, action.choices))
    return action.dest.upper()


def _options_of(parser: argparse.ArgumentParser) -> list[str]:
    found = [option for action in parser._actions for option in action.option_strings]
    return [option for option in found if option.startswith("--") and option != "--help"]


def _help_of(parser: argparse.ArgumentParser, name: str) -> str:
    """What the list of its parent says about it."""
    (chosen,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    reported = next((choice.help for choice in chosen._choices_actions if choice.dest == name), "") or ""
    return f"{reported[:1].upper()}{reported[1:]}." if reported else ""


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _prose(reported: str) -> str:
    """A help text as Markdown: options are code, angle brackets and stars are themselves."""
    pieces = re.split(r"(`[^`]+`|(?<![\w-])--[a-z][a-z-]*(?: [A-Z]+)?)", reported)
    return "".join(
        piece if piece.startswith("`") else f"`{piece}`" if piece.startswith("--") else _plain(piece)
        for piece in pieces
    )


def _plain(words: str) -> str:
    return words.replace("*", r"\*").replace("<", "&lt;")
