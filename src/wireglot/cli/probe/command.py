"""Options of `wireglot probe`, and what reads them."""

from __future__ import annotations

import argparse
from typing import Final

from wireglot.cli.options import Commands, positive

_DIALECTS: Final = ("anthropic", "openai-chat", "openai-responses", "gemini")


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "probe",
        help="test an endpoint that claims to speak a dialect",
        description="Put a provider, another gateway or this one to the test with a published list of cases: "
        "streams, tool calls, ids, stop reasons, usage, reasoning over turns, errors, schemas, fields. What "
        "it may cost is told before anything is sent. The exit status is 1 if a case failed that must hold.",
    )
    parser.add_argument(
        "base_url",
        metavar="BASE_URL",
        nargs="?",
        default="",
        help="as a client has it: http://127.0.0.1:8484",
    )
    parser.add_argument(
        "--dialect", metavar="DIALECT", choices=_DIALECTS, help=f"one of {', '.join(_DIALECTS)}"
    )
    parser.add_argument(
        "--model", metavar="NAME", help="which model is asked (default: the first that is listed)"
    )
    parser.add_argument("--key", metavar="KEY", help="the key for it; better: --key-env")
    parser.add_argument("--key-env", metavar="NAME", help="the variable that holds the key")
    parser.add_argument(
        "--only",
        metavar="CASES",
        action="append",
        default=[],
        help="these cases: ids, themes or patterns, with commas",
    )
    parser.add_argument("--large", action="store_true", help="also the cases that send very much")
    parser.add_argument(
        "--budget",
        metavar="AMOUNT",
        help="end before more could be spent: tokens (200000), or money of a model that is priced (0.50USD)",
    )
    parser.add_argument(
        "--timeout",
        type=positive,
        metavar="SECONDS",
        help="how long an answer may keep silent (default: 120; two and a half times that for all of it)",
    )
    parser.add_argument("--list", action="store_true", help="list the cases, and ask nobody")
    parser.add_argument("--dry-run", action="store_true", help="print what would be sent, and ask nobody")
    parser.add_argument("--yes", action="store_true", help="do not ask before a host elsewhere is asked")
    parser.add_argument("--all", action="store_true", help="print the cases that passed, too")
    parser.add_argument("--json", metavar="FILE", help="write the report with all evidence as JSON")
    parser.add_argument("--html", metavar="FILE", help="write it as a page")
    parser.add_argument("--catalog", metavar="FILE", help="write what was learned as a file for the catalog")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.probe.probing import probe

    return probe(arguments)
