"""Options of `wireglot inspect`, and what reads them."""

from __future__ import annotations

import argparse
from typing import Final

from wireglot.cli.options import Commands, add_config

_EXAMPLES: Final = """\
examples:
  wireglot inspect                          the gateway of this configuration
  wireglot inspect --url http://gateway:8484
  wireglot inspect report.wgtrace.json      an exported exchange, without any gateway
"""


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "inspect",
        help="open the inspector's page: what passes through, both sides of it",
        description="Open the inspector's page in a browser, and print its address: that of a gateway that "
        "runs, or, for the file of an exported exchange, a page of its own on this machine alone, until "
        "it is interrupted.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="an exported exchange (`wireglot trace export`)"
    )
    where = parser.add_mutually_exclusive_group()
    add_config(where)
    where.add_argument("--url", metavar="URL", help="the gateway that listens there")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.inspect import opening

    return opening.run(arguments)
