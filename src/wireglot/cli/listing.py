"""`wireglot dialects`, `providers` and `losses`: the names that options and results use."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Final

from wireglot.cli.terminal import OK, fitted

DIALECTS: Final = {
    "anthropic": "Anthropic Messages, and compatible APIs (Kimi)",
    "openai-chat": "OpenAI Chat Completions, and compatible APIs (Kimi and many more)",
    "openai-responses": "OpenAI Responses",
    "gemini": "Gemini generateContent and streamGenerateContent",
    "gemini-interactions": "Gemini Interactions",
    "code-assist": "Gemini in the Code Assist envelope (v1internal)",
    "gemini-simple": "the simplified form of the /v1/gemini endpoint",
    "anthropic-vertex": "Anthropic Messages as clients of Vertex AI send it (rawPredict)",
    "anthropic-bedrock": "Anthropic Messages as clients of Amazon Bedrock send it (InvokeModel)",
    "ollama": "Ollama's native API (/api/chat)",
    "ollama-generate": "Ollama's native API for one prompt (/api/generate)",
}


def run(arguments: argparse.Namespace) -> int:
    rows = {"dialects": _dialects, "providers": _providers, "losses": _losses}[arguments.command]()
    if arguments.json:
        print(json.dumps([{"name": name, "about": about} for name, about in rows], indent=2))
        return OK
    width = max(len(name) for name, _ in rows)
    for name, about in rows:
        print(fitted(f"{name.ljust(width)}  {about}".rstrip(), sys.stdout, " " * (width + 2)))
    return OK


def _dialects() -> list[tuple[str, str]]:
    from wireglot_core.dialects import registry
    from wireglot_core.plugins import load_dialects

    load_dialects()
    return [(name, DIALECTS.get(name, "from an installed package")) for name in registry.names()]


def _providers() -> list[tuple[str, str]]:
    from wireglot_core.providers.spec import names, provider

    specs = [provider(name) for name in names()]
    return [(spec.name, f"{spec.title} ({', '.join(spec.dialects)})") for spec in specs]


def _losses() -> list[tuple[str, str]]:
    from wireglot_core.ir.loss import FEATURES

    return sorted(FEATURES.items())
