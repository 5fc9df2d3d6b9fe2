"""Options of `wireglot usage`, and what reads them."""

from __future__ import annotations

import argparse

from wireglot.cli.options import Commands, add_config

_EXAMPLES = """\
examples:
  wireglot usage                              the last 30 days, by day and model
  wireglot usage --by key,model --since 7d    who used what this week
  wireglot usage --by day --chart             one bar a day
  wireglot usage --url http://gateway:8484 --admin --by provider --json
"""


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "usage",
        help="tell what was used, and what it cost",
        description="Report what was used, and what it cost: from the gateway that runs on this machine or "
        "the one at --url; if none runs, from the store of the configuration.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    where = parser.add_mutually_exclusive_group()
    add_config(where)
    where.add_argument("--url", metavar="URL", help="ask the gateway that listens there")
    parser.add_argument(
        "--api-key", metavar="KEY", help="with --url: the client key whose usage is meant (or $WIREGLOT_KEY)"
    )
    parser.add_argument(
        "--admin",
        action="store_true",
        help="with --url: everybody's usage; the admin secret is read from $WIREGLOT_ADMIN_SECRET",
    )
    parser.add_argument(
        "--by",
        default="day,model",
        metavar="NAMES",
        help="what to add up by: key, model, provider, day, session, outcome, operation (default: day,model)",
    )
    parser.add_argument(
        "--since",
        default="30d",
        metavar="TIME",
        help="from when on: 12h, 7d, 4w ago, YYYY-MM-DD or unix seconds (default: 30d)",
    )
    parser.add_argument("--until", metavar="TIME", help="and until when; a day is meant to its end")
    parser.add_argument("--key", metavar="NAME", help="only the client key of this name")
    parser.add_argument("--model", metavar="NAME", help="only this model (as the provider names it)")
    parser.add_argument("--provider", metavar="NAME", help="only this provider")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument(
        "--chart",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show a bar for each day (default: on a terminal)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.usage import report

    return report.run(arguments)
