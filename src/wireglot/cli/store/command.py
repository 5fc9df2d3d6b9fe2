"""Options of `wireglot store`, and what reads them."""

from __future__ import annotations

import argparse

from wireglot.cli.options import Commands, add_config


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "store",
        help="look after what the gateway remembers",
        description="Look after the store of the gateway that runs here, or else of a configuration. All of "
        "it may be done while the gateway runs.",
    )
    add_config(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, help="what to do with it")
    stats = actions.add_parser("stats", help="what is in it, and how much")
    stats.add_argument("--json", action="store_true", help="as JSON")
    actions.add_parser(
        "prune",
        help="remove what is past its time or too much, now",
        description="Remove what is past its time or too much of its kind, as [store.keep] says. The gateway "
        "does the same every few minutes.",
    )
    export = actions.add_parser(
        "export",
        help="write everything to a file",
        description="Write everything as JSON lines. What callers said stays sealed: only a gateway with the "
        "same secret can read it.",
    )
    export.add_argument("file", nargs="?", metavar="FILE", help="where to (default: standard output)")
    load = actions.add_parser(
        "import",
        help="read what `export` wrote",
        description="Read what `export` wrote, from this store or another. What is there already stays.",
    )
    load.add_argument("file", nargs="?", metavar="FILE", help="where from (default: standard input)")
    wipe = actions.add_parser(
        "wipe",
        help="remove all data of one caller",
        description="Remove every stored response, conversation and reasoning value of one caller. Its usage "
        "stays in the books, without the names of its sessions.",
    )
    wipe.add_argument(
        "caller", metavar="CALLER", help='the name of its key ("local" where there are no keys)'
    )
    for action in (stats, wipe):
        action.add_argument(
            "--url",
            metavar="URL",
            help="use the admin API of the gateway there; its secret is in WIREGLOT_ADMIN_SECRET",
        )
    parser.set_defaults(run=run, url=None)


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.store import actions

    return actions.run(arguments)
