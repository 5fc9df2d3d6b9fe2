"""Options of `wireglot import`, and what reads them."""

from __future__ import annotations

import argparse
from typing import Final

from wireglot.cli.options import Commands

_EXAMPLES: Final = """\
examples:
  wireglot import litellm config.yaml -o wireglot.toml
  wireglot import ccr ~/.claude-code-router/config.json -o wireglot.toml
  wireglot import litellm - < config.yaml | less

No key is written into the new file. One in clear text becomes env:NAME, with a
name to set; --keep-keys keeps it where `wireglot run` keeps keys.
"""
_PROGRAMS: Final = {
    "litellm": ("LiteLLM's proxy", "config.yaml"),
    "ccr": ("claude-code-router", "config.json"),
}


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "import",
        help="turn the configuration of another gateway into one of this",
        description="Turn the configuration of another gateway into a commented wireglot.toml. Every setting "
        "of the source is carried over, or told why not and what there is instead: at the end of the file.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    programs = parser.add_subparsers(dest="program", metavar="PROGRAM", required=True, help="whose it is")
    for name, (title, file) in _PROGRAMS.items():
        each = programs.add_parser(name, help=f"{file} of {title}", description=f"Import {file} of {title}.")
        each.add_argument("source", metavar="FILE", help=f"the {file}; - for standard input")
        each.add_argument(
            "-o", "--output", metavar="FILE", default="-", help="the new file (default: standard output)"
        )
        each.add_argument("--force", action="store_true", help="write over a file that is there")
        each.add_argument(
            "--keep-keys",
            action="store_true",
            help="keep the source's keys for the gateway, in a file for you alone",
        )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.import_.importing import Wanted, import_file

    return import_file(
        Wanted(
            arguments.program,
            arguments.source,
            output=arguments.output,
            force=arguments.force,
            keep_keys=arguments.keep_keys,
        )
    )
