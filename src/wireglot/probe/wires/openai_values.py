"""What both of OpenAI's dialects share: errors and the list of models."""

from __future__ import annotations

from typing import Any

from wireglot.probe.reply import At


def openai_error(document: Any) -> tuple[str, str]:
    error = At(document).get("error")
    kind = error.text("type", filled=True)
    for name in ("param", "code"):
        if error.has(name):
            error.text(name)
    return kind, error.text("message", filled=True)


def openai_models(document: Any) -> list[str]:
    at = At(document)
    at.is_("object", "list")
    names = []
    for entry in at.get("data").each():
        entry.is_("object", "model")
        entry.number("created")
        entry.text("owned_by")
        names.append(entry.text("id", filled=True))
    return names
