"""`wireglot dialects`, `providers` and `losses`: what the options and the results can name."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from wireglot.cli.argument_parser import Commands
from wireglot.cli.terminal import OK

_DIALECTS = {
    "anthropic": "Anthropic Messages, and what imitates it (Kimi)",
    "openai-chat": "OpenAI Chat Completions, and what imitates it (Kimi and many more)",
    "openai-responses": "OpenAI Responses",
    "gemini": "Gemini generateContent and streamGenerateContent",
    "code-assist": "Gemini inside the envelope of Code Assist (v1internal)",
    "gemini-simple": "the simplified form of the /v1/gemini endpoint",
}


def add_commands(commands: Commands) -> None:
    parser = commands.add_parser(
        "dialects", help="list the dialects", description="List the dialects that --from and --to take."
    )
    parser.set_defaults(run=list_dialects)
    parser = commands.add_parser(
        "providers", help="list the providers", description="List the providers that --provider takes."
    )
    parser.set_defaults(run=list_providers)
    parser = commands.add_parser(
        "losses",
        help="list the names of what can be lost",
        description="List every feature name that a loss can carry, and what it means.",
    )
    parser.set_defaults(run=list_losses)


def list_dialects(_: argparse.Namespace) -> int:
    from wireglot.dialects import registry
    from wireglot.plugins import load_dialects

    load_dialects()
    _print((name, _DIALECTS.get(name, "brought by an installed package")) for name in registry.names())
    return OK


def list_providers(_: argparse.Namespace) -> int:
    from wireglot.providers.spec import names, provider

    specs = [provider(name) for name in names()]
    _print((spec.name, f"{spec.title} ({', '.join(spec.dialects)})") for spec in specs)
    return OK


def list_losses(_: argparse.Namespace) -> int:
    from wireglot.ir.loss import FEATURES

    _print(sorted(FEATURES.items()))
    return OK


def _print(rows: Iterable[tuple[str, str]]) -> None:
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0)
    for name, about in rows:
        print(f"{name.ljust(width)}  {about}".rstrip())
