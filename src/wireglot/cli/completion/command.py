"""`wireglot completion` on the command line."""

from __future__ import annotations

import argparse
from typing import Final

from wireglot.cli.exit_status import OK
from wireglot.cli.options import Commands

_EXAMPLES: Final = """\
examples:
  wireglot completion bash > ~/.local/share/bash-completion/completions/wireglot
  wireglot completion zsh > ~/.zfunc/_wireglot      # a folder of your fpath
  wireglot completion fish > ~/.config/fish/completions/wireglot.fish
  eval "$(wireglot completion bash)"                # this shell only
"""


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "completion",
        help="print what lets a shell complete the command line",
        description="Print a script that lets a shell complete commands, options and their values.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.completion.scripts import script

    print(script(arguments.shell, arguments.root), end="")
    return OK
