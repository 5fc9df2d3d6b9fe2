"""The bundled conversation: its documents in each dialect, and the models they name.

The request has a system text, an image, tools, thinking, parallel calls and their results (one of them an
error); the answer, whole and as a stream, has thinking, text and a call.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Literal

from wireglot_core.wire.json import decode

MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai-chat": "gpt-5.1",
    "openai-responses": "gpt-5.1-codex",
    "gemini": "gemini-2.5-pro",
}
"""The dialects with examples, each with the model its example names."""


def document(dialect: str, kind: Literal["request", "response"]) -> dict[str, Any]:
    value: dict[str, Any] = decode(_read(dialect, f"{kind}.json"))
    return value


def stream(dialect: str) -> bytes:
    return _read(dialect, "stream.sse")


def _read(dialect: str, name: str) -> bytes:
    return (files(__package__) / dialect / name).read_bytes()
