"""Thoughts that a stream has cut: Gemini's clients send its parts back as they came, a thought's signature in
an empty part behind them. Whoever takes thoughts and is not Gemini is told the whole one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from wireglot.dialects.base import Context
from wireglot.ir.content import Message, Part, Reasoning, Signature
from wireglot.ir.loss import Loss, losses_of_extra
from wireglot.ir.request import Request
from wireglot.ir.trail import Trail
from wireglot.providers.limits import Limits

Taken = Callable[[Signature | None], bool]


def join_thoughts(
    request: Request, limits: Limits, context: Context, dialect: str, losses: list[Loss], trail: Trail
) -> Request:
    """Pieces of what is not sent anyway stay as they are: each is declared in its own place."""

    def is_taken(signature: Signature | None) -> bool:
        if limits.reasoning == "signed":
            return signature is not None and context.may_replay(signature, dialect)
        return limits.reasoning == "text"

    messages = tuple(_message(message, is_taken, losses, trail) for message in request.messages)
    if all(new is old for new, old in zip(messages, request.messages, strict=True)):
        return request
    return msgspec.structs.replace(request, messages=messages)


def _message(message: Message, is_taken: Taken, losses: list[Loss], trail: Trail) -> Message:
    content: list[Part] = []
    for pieces in _thoughts(message.content):
        first, last = pieces[0], pieces[-1]
        if len(pieces) == 1 or type(first) is not Reasoning or not is_taken(_signature(last)):
            content += pieces
            continue
        for piece in pieces[1:]:
            assert type(piece) is Reasoning
            losses_of_extra(piece.extra, "", trail.of(piece), losses)
        text = "".join(piece.text for piece in pieces if type(piece) is Reasoning)
        whole = msgspec.structs.replace(first, text=text, signature=_signature(last))
        trail.follow(first, whole)
        content.append(whole)
    if len(content) == len(message.content):
        return message
    joined = Message(message.role, tuple(content), message.name, message.extra)
    trail.follow(message, joined)
    return joined


def _thoughts(content: tuple[Part, ...]) -> Iterator[list[Part]]:
    """The parts, those of one thought together. A signature ends it; what is redacted is one by itself."""
    pieces: list[Part] = []
    for part in content:
        before = pieces[-1] if pieces else None
        if (
            type(part) is not Reasoning
            or type(before) is not Reasoning
            or part.redacted
            or before.redacted
            or before.signature is not None
        ):
            if pieces:
                yield pieces
            pieces = []
        pieces.append(part)
    if pieces:
        yield pieces


def _signature(part: Part) -> Signature | None:
    return part.signature if type(part) is Reasoning else None
