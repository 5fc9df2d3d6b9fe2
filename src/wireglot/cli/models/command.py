"""Options of `wireglot models`, and what reads them."""

from __future__ import annotations

import argparse

from wireglot.cli.options import Commands, add_config


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "models",
        help="list the models that can be asked now",
        description="List the models that a gateway with this configuration and environment serves: context "
        "and output in tokens, what else they take, and their price for a million tokens in and out. Then "
        "the providers that are off, and why.",
    )
    parser.add_argument(
        "pattern", nargs="?", metavar="NAME", default="", help="only those whose name holds this text"
    )
    parser.add_argument("--all", action="store_true", help="also the models of providers that are off")
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    add_config(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.models.table import show_models

    return show_models(
        arguments.pattern, named=arguments.config, everything=arguments.all, as_json=arguments.json
    )
