"""Options of `wireglot pairs`, and what reads them."""

from __future__ import annotations

import argparse

from wireglot.cli.options import Commands


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "pairs",
        help="translate a bundled conversation between all dialects and show it",
        description="Translate a bundled coding-agent conversation between all ordered pairs of the four "
        "main dialects, and show one request beside its translation.",
    )
    parser.add_argument(
        "--from", dest="source", metavar="DIALECT", default="anthropic", help="the request shown on the left"
    )
    parser.add_argument(
        "--to", dest="target", metavar="DIALECT", default="gemini", help="and its translation"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.pairs.table import show_pairs

    return show_pairs(arguments.source, arguments.target)
