"""Options of `wireglot translate`, and what reads them."""

from __future__ import annotations

import argparse
import re
from typing import Final

from wireglot.cli.options import Commands, positive

_DESCRIPTION: Final = """\
Translate one document from standard input to standard output, or, with --jsonl, a whole file of them.

What could not cross as it was (the losses) is told on standard error, or written to --losses FILE as JSON.
"""

_EXAMPLES: Final = """\
examples:
  wireglot translate request  --from anthropic --to gemini --model gemini-2.5-pro < in.json > out.json
  wireglot translate response --from gemini --to openai-chat --request asked.json < in.json > out.json
  wireglot translate stream   --from gemini --to anthropic < in.sse > out.sse
  wireglot translate --jsonl --jobs 4 < cases.jsonl > results.jsonl

exit status:
  0  translated (with --jsonl: every line)
  1  the stream broke off or reported an error (with --jsonl: at least one line failed)
  2  bad input or an unusable command line; one line on standard error says where and what was expected
"""


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "translate",
        help="translate a request, a response, a stream, or a file of them",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "kind",
        nargs="?",
        choices=("request", "response", "stream"),
        help="what the one document is (not with --jsonl)",
    )
    parser.add_argument(
        "--from", dest="source", metavar="DIALECT", help="the dialect the input is written in"
    )
    parser.add_argument("--to", dest="target", metavar="DIALECT", help="the dialect to write")
    parser.add_argument(
        "--model", metavar="NAME", help="the model the request is for; it replaces the one in the body"
    )
    parser.add_argument(
        "--provider", metavar="NAME", help="the provider whose limits apply (see `wireglot providers`)"
    )
    parser.add_argument("--strict", action="store_true", help="a loss is an error: all or nothing")
    parser.add_argument("--in", dest="input", metavar="FILE", help="read this file instead of standard input")
    parser.add_argument(
        "--out", dest="output", metavar="FILE", help="write this file instead of standard output"
    )

    single = parser.add_argument_group("one document")
    single.add_argument(
        "--request",
        metavar="FILE",
        help="the client's original request, in the dialect of --to (response and stream only)",
    )
    single.add_argument(
        "--status",
        type=_status,
        metavar="CODE",
        help="the HTTP status the response came with (response only)",
    )
    single.add_argument(
        "--framing",
        choices=("sse", "json-array"),
        help="how to write a Gemini stream (stream only; default: sse)",
    )
    single.add_argument(
        "--losses", metavar="FILE", help="write the losses there as a JSON array instead of telling them"
    )
    single.add_argument("--pretty", action="store_true", help="indent the JSON written")

    lines = parser.add_argument_group("many documents")
    lines.add_argument(
        "--jsonl",
        action="store_true",
        help="read one case a line and write one result a line; --from, --to, --model and --provider "
        "stand in where a line has none of its own",
    )
    lines.add_argument(
        "--jobs",
        type=positive,
        default=1,
        metavar="N",
        help="work in N processes; the order stays (default: 1)",
    )
    lines.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show progress on standard error (default: if it is a terminal)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.translate.document import translate

    return translate(arguments)


def _status(text: str) -> int:
    if not re.fullmatch("[1-5][0-9]{2}", text):
        raise argparse.ArgumentTypeError(f"expected an HTTP status like 429, got {text[:40]!r}")
    return int(text)
