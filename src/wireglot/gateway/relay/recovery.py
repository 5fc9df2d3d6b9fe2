"""After an upstream has refused the reasoning state of old turns: which refusals those are, and the request
without that state. What the model is then missing costs quality, not the conversation."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from wireglot.ir.content import Extra, Message, Part, Reasoning, Text, ToolCall
from wireglot.ir.errors import ApiError
from wireglot.ir.loss import Loss
from wireglot.ir.request import Request
from wireglot.providers.fit.thinking import stop_thinking_in_loop

_CODES: Final = frozenset({"invalid_encrypted_content", "invalid_thinking_signature"})
_SAID: Final = re.compile(
    r"thought.?signature"  # Gemini: missing, corrupted, not base64
    r"|invalid `?(?:signature|data)`? in `?(?:redacted_)?thinking"  # Anthropic, from here on
    r"|thinking.{0,80}(?:cannot be modified|bound to a different)"
    r"|bound to a different (?:conversation|account|model|organi[sz]ation)"
    r"|expected `?thinking`? or `?redacted_thinking`?"
    r"|cannot contain `?(?:redacted_)?thinking"
    r"|thinking\.(?:signature|data)\b|redacted_thinking\.data\b"
    r"|encrypted.?content.{0,60}(?:could not be|cannot be|invalid|verif|decrypt|did not match)"  # OpenAI, too
    r"|invalid_encrypted_content"
    r"|without its required '?(?:reasoning'? item|following item)"
    r"|item (?:with id )?'rs_[^']*' .{0,40}not found",
    re.IGNORECASE | re.DOTALL,
)
_GEMINI: Final = frozenset({"gemini", "code-assist"})
_DETAIL: Final = "the provider refused the reasoning of earlier turns: asked again without it"


class Stripped(msgspec.Struct, frozen=True):
    request: Request
    losses: tuple[Loss, ...]


def is_about_state(error: ApiError) -> bool:
    """Whether the upstream complains of a signature or blob that it did not mint, or no longer knows."""
    return error.code in _CODES or _SAID.search(error.message) is not None


def helps(request: Request, dialect: str, passed_raw: bool) -> bool:
    """Whether asking again without state can end otherwise. Where the request has none, only for Anthropic,
    which can be asked not to think, and for Gemini, which takes a bypass for the signature it misses (but a
    request that was fitted had it)."""
    if without_opaque_state(request, dialect).request != request:
        return True
    return (
        passed_raw
        and dialect in _GEMINI
        and any(type(part) is ToolCall for message in request.messages for part in message.content)
    )


def without_opaque_state(request: Request, dialect: str) -> Stripped:
    """No thinking that carries state, no signature on anything. Text without state (Kimi's) stays."""
    losses: list[Loss] = []
    messages = tuple(
        kept
        for index, message in enumerate(request.messages)
        if (kept := _message(message, f"$.messages[{index}]", losses)).content
        or kept.content == message.content
    )
    stripped = msgspec.structs.replace(request, messages=messages)
    if dialect == "anthropic" and request.thinking.budget is not None:
        stripped = stop_thinking_in_loop(stripped, losses)
    return Stripped(stripped, tuple(losses))


def _message(message: Message, path: str, losses: list[Loss]) -> Message:
    if message.role != "assistant":
        return message
    content: list[Part] = []
    for index, part in enumerate(message.content):
        kept = _part(part, f"{path}.content[{index}]", losses)
        if kept is not None:
            content.append(kept)
    return Message(message.role, tuple(content), message.name, _nameless(message.extra))


def _part(part: Part, path: str, losses: list[Loss]) -> Part | None:
    if type(part) is Reasoning:
        if part.signature is None and not part.redacted:
            return part
        feature: Any = "reasoning.redacted" if part.redacted else "reasoning.text"
        losses.append(Loss(path, feature, "dropped", _DETAIL))
        return None
    if getattr(part, "signature", None) is not None:
        losses.append(Loss(f"{path}.signature", "reasoning.signature", "dropped", _DETAIL))
        part = msgspec.structs.replace(part, signature=None)
    if type(part) is ToolCall or type(part) is Text:
        extra = _nameless(part.extra)
        if extra is not part.extra:
            return msgspec.structs.replace(part, extra=extra)
    return part


def _nameless(extra: Extra | None) -> Extra | None:
    """OpenAI demands the reasoning that an item was made with, by the item's id: without one it is text."""
    if extra is None or extra.dialect != "openai-responses":
        return extra
    form = {key: value for key, value in extra.form.items() if key != "id"}
    item = form.get("item")
    if type(item) is dict and "id" in item:
        form["item"] = {key: value for key, value in item.items() if key != "id"}
    return extra if form == extra.form else Extra(extra.dialect, extra.fields, form)
