"""Options of `wireglot smoke`, and what reads them."""

from __future__ import annotations

import argparse

from wireglot.cli.options import Commands


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "smoke",
        help="ask a gateway everything once",
        description="Exercise whole answers, streams, tools, model lists and token counts on every endpoint "
        "of a gateway, and print what passed, how long it took and what was lost. The exit status is the "
        "number of failures.",
    )
    parser.add_argument(
        "--url",
        metavar="URL",
        help="where a gateway listens (default: start one here, configured as `wireglot serve` would be)",
    )
    parser.add_argument("--key", metavar="KEY", help="a client key, where the gateway asks for one")
    parser.add_argument("--provider", metavar="NAME", help="test the first model listed for this provider")
    parser.add_argument("--model", metavar="NAME", help="test this model (with --provider: of that provider)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.smoke.gateways import smoke_other, smoke_own

    key = arguments.key or ""
    if arguments.url is None:
        return smoke_own(key, arguments.provider, arguments.model)
    return smoke_other(arguments.url, key, arguments.provider, arguments.model)
