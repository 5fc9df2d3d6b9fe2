"""`wireglot demo` on the command line: it has no options."""

from __future__ import annotations

import argparse

from wireglot.cli.options import Commands


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "demo",
        help="see a gateway answer a real request in every dialect",
        description="Start a gateway on a free port with the model that lives inside it, ask it over HTTP in "
        "every dialect, stream a tool call, and show what went over the wire.",
    )
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    from wireglot.cli.demo.show import demonstrate

    return demonstrate()
