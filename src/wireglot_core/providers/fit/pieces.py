"""Joins texts and thoughts that a stream has split: Gemini's clients send an answer back as received, one
content for each chunk, with a signature in an empty part after what it signs. Other upstreams are sent the
joined parts."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator

import msgspec

from wireglot_core.ir.content import Extra, Message, Part, Reasoning, Signature, Text
from wireglot_core.ir.loss import Loss, is_blank, losses_of_extra
from wireglot_core.ir.request import Request
from wireglot_core.ir.trail import Trail
from wireglot_core.providers.fit.fitting import Fitting

Taken = Callable[[Signature | None], bool]


def join_pieces(request: Request, fitting: Fitting) -> Request:
    """Pieces of thoughts that are not sent anyway stay unchanged: each is reported at its own place."""
    messages, kind = request.messages, fitting.limits.reasoning

    def is_taken(signature: Signature | None) -> bool:
        if kind == "signed":
            return signature is not None and fitting.context.may_replay(signature, fitting.dialect)
        return kind == "text"

    joined = tuple(
        _message(message, is_taken, fitting.losses, fitting.trail) if message.role == "assistant" else message
        for message in messages
    )
    if all(map(operator.is_, joined, messages)):
        return request
    return msgspec.structs.replace(request, messages=joined)


def _message(message: Message, is_taken: Taken, losses: list[Loss], trail: Trail) -> Message:
    content: list[Part] = []
    for pieces in _wholes(message.content):
        first, last = pieces[0], pieces[-1]
        if len(pieces) == 1 or (type(first) is Reasoning and not is_taken(_signature(last))):
            content += pieces
            continue
        assert isinstance(first, Text | Reasoning)
        for piece in pieces[1:]:
            losses_of_extra(getattr(piece, "extra", None), "", trail.of(piece), losses)
        text = "".join(piece.text for piece in pieces if isinstance(piece, Text | Reasoning))
        whole = msgspec.structs.replace(first, text=text, signature=_signature(last))
        trail.follow(first, whole)
        content.append(whole)
    if len(content) == len(message.content):
        return message
    joined = Message(message.role, tuple(content), message.name, message.extra)
    trail.follow(message, joined)
    return joined


def _wholes(content: tuple[Part, ...]) -> Iterator[list[Part]]:
    """The parts, grouped by text or thought. A signature ends a group."""
    pieces: list[Part] = []
    for part in content:
        if not pieces or not _goes_on(pieces[-1], part):
            if pieces:
                yield pieces
            pieces = []
        pieces.append(part)
    if pieces:
        yield pieces


def _goes_on(before: Part, part: Part) -> bool:
    if type(before) is not type(part) or _signature(before) is not None:
        return False
    match part:
        case Text():
            return _is_prose(before) and _is_prose(part)
        case Reasoning():
            return not part.redacted and not (type(before) is Reasoning and before.redacted)
        case _:
            return False


def _is_prose(part: Part) -> bool:
    """Whether a text has nothing but its characters."""
    return (
        type(part) is Text
        and not part.refusal
        and not part.citations
        and not part.logprobs
        and part.cache is None
        and not _tells(part.extra)
    )


def _tells(extra: Extra | None) -> bool:
    return extra is not None and not all(map(is_blank, extra.fields.values()))


def _signature(part: Part) -> Signature | None:
    return part.signature if isinstance(part, Text | Reasoning) else None
