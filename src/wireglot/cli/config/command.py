"""Options of `wireglot config`, and what reads them."""

from __future__ import annotations

import argparse

from wireglot.cli.exit_status import UNUSABLE
from wireglot.cli.options import Commands
from wireglot.cli.paint import one_line
from wireglot.cli.telling import complain


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "config",
        help="check a configuration, or approve it",
        description="check: report every problem with its place and what was expected there, or print the "
        "effective configuration. The exit status is 1 if there are problems. trust: approve a wireglot.toml "
        "that commands find in the current folder and that `wireglot init` did not write; it says where your "
        "keys and prompts go. A file whose content changes has to be approved again.",
    )
    parser.add_argument("action", choices=("check", "trust"), help="what to do with it")
    parser.add_argument("--config", metavar="FILE", help="the same as PATH, as `wireglot serve` spells it")
    parser.add_argument(
        "path", nargs="?", metavar="PATH", help="the file (default: the one `wireglot serve` would find)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.config.check import approve, check

    if arguments.path and arguments.config:
        complain(f"both {one_line(arguments.path)} and --config name a file: say one of them")
        return UNUSABLE
    named = arguments.path or arguments.config
    return check(named) if arguments.action == "check" else approve(named)
