"""Options of `wireglot trace`, and what reads them."""

from __future__ import annotations

import argparse
from typing import Final

from wireglot.cli.options import Commands, add_config, positive

_EXAMPLES: Final = """\
examples:
  wireglot trace list
  wireglot trace show last
  wireglot trace diff ID                       both requests, part by part
  wireglot trace diff ID OTHER                 two answers
  wireglot trace export ID -o report.wgtrace.json
  wireglot trace replay report.wgtrace.json --offline
  wireglot trace replay ID --to kimi/kimi-k3
  wireglot trace replay ID --raw                what went upstream, once more

An ID may be the file of an exported trace, or `last`: the newest that was recorded. Bodies are recorded as
[trace] in the configuration says, or for some minutes by `wireglot serve --trace`.
"""


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "trace",
        help="look at recorded exchanges, both sides of each",
        description="Look at recorded exchanges: what the client asked, what went upstream, what came back, "
        "what the client got, and what was lost between them. They are read from the gateway that "
        "runs on this machine or the one at --url; if none runs, from the store of the configuration; or "
        "from a file.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, help="what to do")
    listed = actions.add_parser("list", help="the latest exchanges")
    _where(listed)
    listed.add_argument(
        "--limit", type=positive, default=20, metavar="NUMBER", help="at most so many (default: 20)"
    )
    for name, about in (
        ("model", "only this model, as it was asked for or as the provider names it"),
        ("provider", "only this provider"),
        ("client", "only this program (claude-code, codex)"),
        ("status", "only this status: 200, 4xx, running, failed, left"),
        ("loss", "only with such a loss: a grade (serious) or a feature (cache_marker)"),
        ("session", "only this conversation"),
        ("key", "only the client key of this name"),
    ):
        listed.add_argument(f"--{name}", metavar=name.upper(), help=about)
    listed.add_argument("--search", metavar="TEXT", help="only what has this text, in its row or its bodies")
    listed.add_argument("--json", action="store_true", help="as JSON")
    show = actions.add_parser("show", help="one exchange: all four bodies, losses, times")
    _one(show)
    show.add_argument("--full", action="store_true", help="unfold everything, and each event of streams")
    diff = actions.add_parser(
        "diff",
        help="both requests of an exchange, part by part; or two answers",
        description="Both requests of an exchange, part by part: what was kept (=), written otherwise (~), "
        "lost (-), put in (+). With another ID: how the two answers differ.",
    )
    _one(diff)
    diff.add_argument(
        "other", nargs="?", metavar="OTHER", help="another ID, or file, to compare answers with"
    )
    diff.add_argument("--full", action="store_true", help="with the values of both sides")
    export = actions.add_parser(
        "export",
        help="write an exchange to one file, for a report or a test",
        description="Write an exchange to one file that can be attached to a report, shown by `trace show`, "
        "and replayed by a test (wireglot.testing.replay). Keys are not in it; what was said is.",
    )
    _one(export, json=False)
    export.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="where to (default: standard output, unless it is a terminal; -: also then)",
    )
    export.add_argument("--gzip", action="store_true", help="packed")
    replay = actions.add_parser(
        "replay",
        help="translate it again and compare; or send it again",
        description="With --offline: translate both ways again and compare with what was recorded; nothing "
        "is sent. Without: have the gateway send the request again, after saying who pays and what it may "
        "cost.",
    )
    _one(replay)
    replay.add_argument("--offline", action="store_true", help="send nothing")
    replay.add_argument("--to", metavar="PROVIDER/MODEL", help="send it there instead")
    replay.add_argument(
        "--raw",
        action="store_true",
        help="send what went upstream, in the dialect it went in: nothing is translated",
    )
    replay.add_argument("--yes", action="store_true", help="do not ask before it is sent")
    parser.set_defaults(run=run)


def _one(parser: argparse.ArgumentParser, *, json: bool = True) -> None:
    parser.add_argument("id", metavar="ID", help="the exchange, `last`, or the file of an exported one")
    _where(parser)
    if json:
        parser.add_argument("--json", action="store_true", help="as JSON")


def _where(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    add_config(where)
    where.add_argument(
        "--url",
        metavar="URL",
        help="ask the gateway that listens there; its admin secret, or a client key for its own exchanges, "
        "is read from $WIREGLOT_ADMIN_SECRET or $WIREGLOT_KEY",
    )


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.trace import actions

    return actions.run(arguments)
