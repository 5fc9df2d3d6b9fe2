"""The parser of the command line: a list of commands, each with its options and what runs it.

No command imports at its top what it needs only to do its work: `--help` answers at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, Final

from wireglot import __version__
from wireglot.cli import listing
from wireglot.cli.argument_parser import ArgumentParser
from wireglot.cli.completion import command as completion
from wireglot.cli.config import command as config
from wireglot.cli.demo import command as demo
from wireglot.cli.doctor import command as doctor
from wireglot.cli.import_ import command as import_
from wireglot.cli.init import command as init
from wireglot.cli.inspect import command as inspect
from wireglot.cli.keys import command as keys
from wireglot.cli.models import command as models
from wireglot.cli.options import Commands
from wireglot.cli.pairs import command as pairs
from wireglot.cli.probe import command as probe
from wireglot.cli.run import command as run
from wireglot.cli.serve import command as serve
from wireglot.cli.smoke import command as smoke
from wireglot.cli.store import command as store
from wireglot.cli.trace import command as trace
from wireglot.cli.translate import command as translate
from wireglot.cli.usage import command as usage

_COMMANDS: Final[tuple[Callable[[Commands], None], ...]] = (
    init.add_command,
    run.add_command,
    serve.add_command,
    models.add_command,
    doctor.add_command,
    config.add_command,
    import_.add_command,
    translate.add_command,
    demo.add_command,
    pairs.add_command,
    smoke.add_command,
    probe.add_command,
    inspect.add_command,
    trace.add_command,
    usage.add_command,
    store.add_command,
    keys.add_command,
    listing.add_commands,
    completion.add_command,
)
"""In the order of the help."""

_EXAMPLES: Final = """\
examples:
  wireglot init
  wireglot demo
  wireglot run claude
  wireglot run codex --model kimi/kimi-k3 -- exec "What does this project do?"
  wireglot serve
  wireglot translate request --from anthropic --to gemini < in.json > out.json
  wireglot translate --jsonl < cases.jsonl > results.jsonl
  wireglot dialects
"""


class _Version(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **rest: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **rest)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"wireglot {__version__}")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """What it parses has the name of the `command`, if there was one, then the function to `run`, and this
    parser as the `root`."""
    parser = ArgumentParser(
        prog="wireglot",
        description="Translate between the API dialects of language models, and say what could not cross.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action=_Version, default=argparse.SUPPRESS, help="show the version and exit"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=ArgumentParser)
    for add in _COMMANDS:
        add(commands)
    parser.set_defaults(root=parser)
    return parser
