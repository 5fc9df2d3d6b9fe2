"""`wireglot dialects`, `providers` and `losses`: what the options and the results can name."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

_DIALECTS = {
    "anthropic": "Anthropic Messages, and what imitates it (Kimi)",
    "openai-chat": "OpenAI Chat Completions, and what imitates it (Kimi and many more)",
    "openai-responses": "OpenAI Responses",
    "gemini": "Gemini generateContent and streamGenerateContent",
    "code-assist": "Gemini inside the envelope of Code Assist (v1internal)",
    "gemini-simple": "the simplified form of the /v1/gemini endpoint",
}


def run(arguments: argparse.Namespace) -> int:
    match arguments.command:
        case "dialects":
            from wireglot.dialects.registry import NAMES

            _print((name, _DIALECTS.get(name, "")) for name in NAMES)
        case "providers":
            from wireglot.providers.spec import names, provider

            specs = [provider(name) for name in names()]
            _print((spec.name, f"{spec.title} ({', '.join(spec.dialects)})") for spec in specs)
        case _:
            from wireglot.ir.loss import FEATURES

            _print(sorted(FEATURES.items()))
    return 0


def _print(rows: Iterable[tuple[str, str]]) -> None:
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0)
    for name, about in rows:
        print(f"{name.ljust(width)}  {about}".rstrip())
