"""argparse with one-line errors, no abbreviated options, and suggestions for typos."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, Final, NoReturn, Protocol

from wireglot.cli.terminal import UNUSABLE, complain, one_line

_HELP_COLUMNS: Final = 78
_ALIKE: Final = 0.7
"""Similarity from 0 to 1: 0.83 for "claude" and "cluade", 0.67 for "sing" and "in"."""

_MISSING: Final = "the following arguments are required: "

_LIKE_A_KEY: Final = re.compile(r"sk-|wg-|wg_|AIza|gsk_|xox|gh[pousr]_|eyJ|Bearer")


class ArgumentParser(argparse.ArgumentParser):
    """The parser of the program, and of each command."""

    takes_rest = False
    """Whether everything after the first `--` belongs to another program: it is passed unchanged as
    `rest`."""

    def __init__(self, *positional: Any, module: str = "", **named: Any) -> None:
        """`module`: the one below `wireglot.cli` whose `run` carries out the command."""
        named.setdefault("allow_abbrev", False)  # `--por 1` started on port 1
        if named.get("epilog"):  # examples, line by line
            named.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        if description := named.get("description"):  # a formatter that leaves examples alone leaves this, too
            named["description"] = textwrap.fill(description, _HELP_COLUMNS)
        super().__init__(*positional, **named)
        if module:
            self.set_defaults(run=partial(_run, module))

    def parse_known_args(  # type: ignore[override]  # no overload for a namespace of another type
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        given = list(sys.argv[1:] if args is None else args)
        rest: list[str] = []
        if self.takes_rest and "--" in given:
            cut = given.index("--")
            given, rest = given[:cut], given[cut + 1 :]
        found, unknown = super().parse_known_args(given, namespace)
        if self.takes_rest:
            found.rest = rest
        if unknown and not self._is_late(unknown, found):
            self.error(self._not_known(unknown, found))
        return found, []

    def _is_late(self, unknown: list[str], found: argparse.Namespace) -> bool:
        """Whether it is the last positional, which may be omitted: before Python 3.13 argparse omits it as
        soon as an option follows the one before it (`config check --json FILE`)."""
        positionals = [action for action in self._actions if not action.option_strings]
        last = positionals[-1] if len(positionals) > 1 else None
        if last is None or last.nargs != "?" or len(unknown) != 1 or unknown[0].startswith("-"):
            return False
        if getattr(found, last.dest) is not None:
            return False
        setattr(found, last.dest, unknown[0])
        return True

    def _missing(self, message: str) -> str:
        """argparse lists the names of missing arguments only: for the first one with choices, name these."""
        names = message.removeprefix(_MISSING).split(", ")
        for action in self._actions:
            name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
            if action.choices is not None and {name, action.dest} & set(names):
                return f"{name}: expected {_listed(action.choices)}"
        return f"expected {' and '.join(names)}"

    def error(self, message: str) -> NoReturn:
        if message.startswith(_MISSING):
            message = self._missing(message)
        complain(f"{message} (see {self.prog} --help)")
        self.exit(UNUSABLE)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(each) for each in action.choices]
        if isinstance(action, argparse._SubParsersAction) and action.dest == "command":
            raise argparse.ArgumentError(None, f"there is no command {said(value, known)}")
        name = "/".join(action.option_strings) or action.metavar or action.dest.upper()
        raise argparse.ArgumentError(None, f"{name}: expected {_listed(known)}, got {said(value, known)}")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        # `--config "$UNSET"`: the intended value is unknown, and surely not the default.
        takes_one = not isinstance(action, argparse._SubParsersAction)
        if arg_string == "" and takes_one and action.type is None and action.default != "":
            raise argparse.ArgumentError(action, "expected a value, got nothing")
        return super()._get_value(action, arg_string)

    def _not_known(self, unknown: list[str], found: argparse.Namespace) -> str:
        options = [option for action in self._actions for option in action.option_strings]
        name = next((text for text in unknown if text.startswith("-")), "")
        if not name and self.takes_rest and getattr(found, "client", None):
            text = one_line(" ".join(map(shown, unknown)))
            known = [each for action in self._actions for each in getattr(action, "completes", ())]
            if found.client in known:
                return f"put arguments of the client after --: {self.prog} {found.client} -- {text}"
            program = shown(found.client)
            meant = near(found.client, known)
            hint = f"did you mean {meant}?" if meant else f"try {self.prog} --env openai -- {program} {text}"
            return f"there is no client {program}: {hint}"
        if not name:
            extra = f"unexpected argument: {' '.join(map(shown, unknown))}"
            if "--in" in options and len(unknown) == 1:
                return f"{extra}: it reads standard input, or a file with --in {shown(unknown[0])}"
            return extra
        if self.takes_rest and not near(name.partition("=")[0], options):
            return f"unknown option {one_line(name)} here: put the client's own arguments after --"
        return f"unknown option {said(name.partition('=')[0], options)}"


def _listed(choices: Iterable[object]) -> str:
    known = [str(each) for each in choices]
    return f"one of {', '.join(known)}" if len(known) > 1 else known[0]


def near(name: str, known: Iterable[str]) -> str:
    """A suggestion for a typo, or nothing."""
    bare = {each.lstrip("-"): each for each in known}  # with two dashes most options would be similar
    mixed = sorted(name.lstrip("-"))  # "rnu" for "run": two equal characters of three are not similar enough
    if turned := next((each for each in bare if len(each) > 1 and sorted(each) == mixed), ""):
        return bare[turned]
    bare_name = name.lstrip("-")
    if found := get_close_matches(bare_name, bare, n=1, cutoff=_ALIKE):
        return bare[found[0]]
    return next((bare[each] for each in bare if _differs_in_one(each, bare_name)), "")


def _differs_in_one(one: str, other: str) -> bool:
    """Short words are hardly similar by their characters: 0.67 for "rum" and "run"."""
    if not 3 <= len(one) == len(other):
        return False
    return sum(a != b for a, b in zip(one, other, strict=True)) == 1


def said(name: str, known: Iterable[str]) -> str:
    """An unknown name, with a suggestion."""
    known = list(known)
    meant = near(name, known)
    return f"{shown(name)}: did you mean {meant}?" if meant else shown(name)


def shown(text: str) -> str:
    """An argument as it may be reported: a key in the wrong place must not be logged."""
    return f"an argument of {len(text)} characters" if _LIKE_A_KEY.match(text) else one_line(text)


def _run(module: str, arguments: argparse.Namespace) -> int:
    """A command is imported when it runs: `--help` answers at once."""
    status: int = importlib.import_module(f"wireglot.cli.{module}").run(arguments)
    return status


class Commands(Protocol):
    """The subparsers of the commands."""

    def add_parser(
        self, name: str, *, module: str, help: str, description: str, epilog: str | None = None
    ) -> argparse.ArgumentParser: ...


class Actions(Protocol):
    """The subparsers of the actions of one command."""

    def add_parser(
        self, name: str, *, help: str, description: str | None = None, epilog: str | None = None
    ) -> argparse.ArgumentParser: ...


class _TakesOptions(Protocol):
    """A parser, or a group of options in it."""

    def add_argument(self, name: str, /, **settings: Any) -> object: ...


def flag(parser: _TakesOptions, name: str, help: str) -> None:
    parser.add_argument(name, action="store_true", help=help)


def option(parser: _TakesOptions, name: str, metavar: str, help: str, **more: Any) -> None:
    """One that takes a value."""
    parser.add_argument(name, metavar=metavar, help=help, **more)


def add_config(parser: _TakesOptions) -> None:
    option(parser, "--config", "FILE", "the configuration (default: the one `wireglot serve` would find)")


def positive(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected an integer from 1 up, got {text[:40]!r}")
    return int(text)
