"""The demo model's signatures on its reasoning: who signs where, and whether they came back unchanged."""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, Final

from wireglot.ir.content import Message, Reasoning, Text, ToolCall
from wireglot.ir.errors import ApiError
from wireglot.ir.request import Request
from wireglot.providers.fit.parts import SKIP_SIGNATURE

SIGNERS: Final = {
    "anthropic": "anthropic",
    "openai-responses": "openai-responses",
    "gemini": "gemini",
    "code-assist": "gemini",
}
"""Dialects that sign reasoning, and under whose name. Chat does not."""
_MARK: Final = "wireglot-demo-1"
_DIGEST_BYTES: Final = 12
_DIGEST_LETTERS: Final = 2 * _DIGEST_BYTES


def wants_state(request: Request) -> bool:
    """Whether a Responses client asked for the encrypted reasoning."""
    extra = request.extra
    include: Any = None
    if extra is not None:
        include = extra.fields.get("include", extra.form.get("include"))
    return isinstance(include, list) and "reasoning.encrypted_content" in include


def digest(*material: str) -> str:
    return hashlib.blake2b(
        "\x1f".join(material).encode("utf-8", "replace"), digest_size=_DIGEST_BYTES
    ).hexdigest()


def seal(text: str, salt: str = "") -> str:
    """The signature of a text: whoever changes one of both is found out by `[[demo:strict]]`.

    Base64 of hexadecimal digits in whole groups: clients that decode it and encode it again, in whichever
    alphabet and padding, send back the same. The salt, in whole groups too, tells equal texts of two answers
    apart; what was signed before there was one has none.
    """
    return b64encode(f"{_MARK}{salt}{digest('signature', text, *filter(None, (salt,)))}".encode()).decode()


def salt_of(seed: str) -> str:
    return digest("salt", seed)[:6]


def _is_seal_of(text: str, signature: str) -> bool:
    try:
        inside = b64decode(signature, validate=True).decode()
    except ValueError:
        return False
    return signature == seal(text, inside[len(_MARK) : -_DIGEST_LETTERS])


def signed_text(part: ToolCall | Text) -> str:
    return part.name if isinstance(part, ToolCall) else part.text


def changed_signature(messages: Sequence[Message]) -> ApiError | None:
    for number, message in enumerate(messages):
        for position, part in enumerate(message.content):
            if message.role != "assistant" or not isinstance(part, Reasoning | ToolCall | Text):
                continue
            if part.signature is None or part.signature.data == SKIP_SIGNATURE:
                continue  # Google's documented way around a signature that was lost
            signed = part.text if isinstance(part, Reasoning) else signed_text(part)
            if not _is_seal_of(signed, part.signature.data):
                place = f"messages.{number}.content.{position}"
                return ApiError("invalid_request", f"{place}: Invalid `signature` in `thinking` block", 400)
    return None
