"""After an upstream has refused the reasoning state of old turns: which refusals those are, and the request
without that state. What the model is then missing costs quality, not the conversation."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from wireglot.dialects.registry import UnknownDialect, surface, surfaces
from wireglot.ir.content import Extra, Message, Part, Reasoning, Text, ToolCall
from wireglot.ir.errors import ApiError
from wireglot.ir.loss import Loss
from wireglot.ir.request import Request
from wireglot.providers.fit.thinking import stop_thinking_in_loop

_DETAIL: Final = "the provider refused the reasoning of earlier turns: asked again without it"


class Stripped(msgspec.Struct, frozen=True):
    request: Request
    losses: tuple[Loss, ...]


def is_about_state(error: ApiError) -> bool:
    """Whether the upstream complains of a signature or blob that it did not mint, or no longer knows."""
    return any(
        known.reasoning.is_refusal(error) for known in surfaces() if known.reasoning.is_refusal is not None
    )


def helps(request: Request, dialect: str, passed_raw: bool) -> bool:
    """Whether asking again without state can end otherwise. Where the request has none, only for an upstream
    that can be asked not to think, and for one that takes a bypass for the signature it misses (but a request
    that was fitted had it)."""
    if without_opaque_state(request, dialect).request != request:
        return True
    return (
        passed_raw
        and surface(dialect).reasoning.takes_bypass
        and any(type(part) is ToolCall for message in request.messages for part in message.content)
    )


def without_opaque_state(request: Request, dialect: str) -> Stripped:
    """No thinking that carries state, no signature on anything. Text without state (Kimi's) stays, unless it
    was put back or carried here and only its minter would take it."""
    losses: list[Loss] = []
    messages = tuple(
        kept
        for index, message in enumerate(request.messages)
        if (kept := _message(message, f"$.messages[{index}]", losses)).content
        or kept.content == message.content
    )
    stripped = msgspec.structs.replace(request, messages=messages)
    if surface(dialect).reasoning.thinks_only_with_state and request.thinking.budget is not None:
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
    return Message(message.role, tuple(content), message.name, _stateless(message.extra))


def _part(part: Part, path: str, losses: list[Loss]) -> Part | None:
    if type(part) is Reasoning:
        if part.signature is None and not part.redacted and part.minter is None:
            return part
        feature: Any = "reasoning.redacted" if part.redacted else "reasoning.text"
        losses.append(Loss(path, feature, "dropped", _DETAIL))
        return None
    if getattr(part, "signature", None) is not None:
        losses.append(Loss(f"{path}.signature", "reasoning.signature", "dropped", _DETAIL))
        part = msgspec.structs.replace(part, signature=None)
    if type(part) is ToolCall or type(part) is Text:
        extra = _stateless(part.extra)
        if extra is not part.extra:
            return msgspec.structs.replace(part, extra=extra)
    return part


def _stateless(extra: Extra | None) -> Extra | None:
    """Without what ties a part to state, in the terms of the dialect that it came in."""
    if extra is None:
        return None
    try:
        strip = surface(extra.dialect).reasoning.without_state
    except UnknownDialect:  # kept while somebody had registered it
        return extra
    return strip(extra) if strip is not None else extra


def minters(request: Request) -> set[str]:
    """The accounts whose reasoning state a conversation carries."""
    accounts = set()
    for message in request.messages:
        for part in message.content:
            if isinstance(part, Reasoning | ToolCall | Text) and part.signature is not None:
                accounts.add(part.signature.origin.account)
    return accounts
