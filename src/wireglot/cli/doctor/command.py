"""Options of `wireglot doctor`, and what reads them."""

from __future__ import annotations

import argparse

from wireglot.cli.options import Commands, add_config


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "doctor",
        help="find what is wrong, and how to mend it",
        description="Look at the configuration, keys, the way to each provider, the clock, the store, the "
        "port, versions, prices, unsafe settings and the clients on this machine. Each finding comes with "
        "what mends it. Providers are asked once and no tokens are spent. The exit status is 1 if there are "
        "problems.",
    )
    parser.add_argument(
        "--fix",
        action="store_true",
        help="mend what can be mended safely: modes of files, what was left over",
    )
    parser.add_argument("--offline", action="store_true", help="ask nobody: nothing is sent")
    parser.add_argument("--json", action="store_true", help="print JSON lines, one a finding")
    add_config(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.doctor.examination import examine

    return examine(arguments.config, fix=arguments.fix, offline=arguments.offline, as_json=arguments.json)
