"""Options of `wireglot run`, and what reads them."""

from __future__ import annotations

import argparse
from typing import Final

from wireglot.cli.argument_parser import ArgumentParser
from wireglot.cli.exit_status import UNUSABLE
from wireglot.cli.options import Commands, add_config
from wireglot.cli.telling import complain

_CLIENTS: Final = ("aider", "claude", "codex", "gemini", "kimi", "llm", "opencode", "qwen")
_EXAMPLES: Final = """\
examples:
  wireglot run claude
  wireglot run claude --model kimi/kimi-k3
  wireglot run codex --model demo/demo -- exec "Say hello"
  wireglot run --env openai -- python my_agent.py
  eval "$(wireglot run claude --print-env)"

CLIENT is one of aider, claude, codex, gemini, kimi, llm, opencode, qwen. It keeps
its own home, history, login and project settings: all that differs is in variables
and options that end with it. Its exit status is the command's.
"""


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "run",
        help="start a client with a gateway: claude, codex, gemini and others",
        description="Start a client on the gateway that runs on this machine, or else on one of its own, "
        "which ends with it. Without a key of any provider, a demo model answers.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    assert isinstance(parser, ArgumentParser)
    parser.takes_rest = True
    parser.usage = "wireglot run [CLIENT] [options] [-- ARGUMENTS OF THE CLIENT]"
    client = parser.add_argument("client", nargs="?", metavar="CLIENT", help="the client to start")
    setattr(client, "completes", _CLIENTS)  # noqa: B010 - for shells; other names are refused with a hint
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="PROVIDER/MODEL to ask (default: what the client asks for)",
    )
    parser.add_argument(
        "--env",
        action="append",
        choices=("anthropic", "openai", "gemini"),
        default=[],
        help="set the variables of this vendor's SDKs for the command behind --; can be repeated",
    )
    add_config(parser)
    parser.add_argument(
        "--url", metavar="URL", help="use the gateway there; its client key is in WIREGLOT_KEY"
    )
    parser.add_argument("--private", action="store_true", help="start a gateway of its own in any case")
    parser.add_argument("--log", metavar="FILE", help="append what a gateway of its own logs")
    parser.add_argument(
        "--print-env", action="store_true", help="only print the variables, for eval in a shell"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.run.launch import Launch, launch

    task = Launch(
        client=arguments.client or "",
        families=tuple(dict.fromkeys(arguments.env)),
        arguments=tuple(arguments.rest),
        model=arguments.model or "",
        config=arguments.config,
        url=arguments.url or "",
        private=arguments.private,
        log=arguments.log,
        print_env=arguments.print_env,
    )
    problem = task.problem()
    if problem:
        complain(f"{problem} (see wireglot run --help)")
        return UNUSABLE
    return launch(task)
