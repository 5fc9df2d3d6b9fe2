"""Options of `wireglot init`, and what reads them."""

from __future__ import annotations

import argparse

from wireglot.cli.options import Commands


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "init",
        help="find providers and write a configuration",
        description="Find the keys of providers in the environment and among those kept by `wireglot run`, "
        "and model servers on this machine; ask each one once for its list of models, which costs nothing; "
        "and write a commented wireglot.toml. It holds the names of keys, and never a key.",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="where to write it (default: $WIREGLOT_CONFIG, or wireglot.toml here; - for standard output)",
    )
    parser.add_argument(
        "--user", action="store_true", help="write it where it is found from every folder of yours"
    )
    parser.add_argument("--force", action="store_true", help="write over a file that is there")
    parser.add_argument("--offline", action="store_true", help="ask nobody: nothing is sent")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.init.setup import Wanted, set_up

    return set_up(
        Wanted(
            output=arguments.output or "",
            user=arguments.user,
            force=arguments.force,
            offline=arguments.offline,
            json=arguments.json,
        )
    )
