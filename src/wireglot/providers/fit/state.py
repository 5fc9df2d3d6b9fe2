"""Turns that only the source's own provider holds: another one must be told that they are missing.

Whoever keeps conversations (a gateway with a store) puts the turns back before it comes here.
"""

from __future__ import annotations

import operator

import msgspec

from wireglot.ir.content import Extra, Foreign, Message, Part, Text
from wireglot.ir.errors import Unsupported
from wireglot.ir.loss import Loss
from wireglot.ir.request import Request
from wireglot.ir.trail import Trail

_FIELDS = ("previous_response_id", "conversation", "prompt", "cachedContent", "thread", "continuationToken")
_PARTS = ("item_reference",)
_DETAIL = "the earlier turns are held by the provider that minted this id"


def without_state(request: Request, losses: list[Loss], trail: Trail, among_parts: bool) -> Request:
    """The request without its references to turns held elsewhere, each declared.

    `among_parts`: whether a part of the conversation can be one.
    """
    extra = request.extra
    held = [] if extra is None or not extra.fields else [name for name in _FIELDS if extra.fields.get(name)]
    if extra is not None and held:
        losses.extend(Loss(f"$.{name}", "conversation_state", "dropped", _DETAIL) for name in held)
        fields = {name: value for name, value in extra.fields.items() if name not in held}
        request = msgspec.structs.replace(request, extra=Extra(extra.dialect, fields, extra.form))
    if not among_parts:
        return request
    messages = tuple(
        kept
        for message in request.messages
        if (kept := _without_references(message, losses, trail)) is not None
    )
    if len(messages) == len(request.messages) and all(map(operator.is_, messages, request.messages)):
        return request
    return msgspec.structs.replace(request, messages=messages)


_EMPTYING = ("conversation_state", "tool_result.pairing")
"""What leaves a request without anything to answer: turns kept elsewhere, results whose calls are."""


def refuse_nothing(request: Request, losses: list[Loss]) -> None:
    """A request of which only its references remain cannot be asked of anyone else."""
    if not losses or any(
        message.role != "system" and any(map(_says, message.content)) for message in request.messages
    ):
        return
    first = next((loss for loss in losses if loss.feature in _EMPTYING), None)
    if first is not None:
        raise Unsupported(f"nothing of the conversation is in the request: {first.detail}", first.path)


def _says(part: Part) -> bool:
    return type(part) is not Text or bool(part.text)


def _without_references(message: Message, losses: list[Loss], trail: Trail) -> Message | None:
    if not any(type(part) is Foreign and part.type in _PARTS for part in message.content):
        return message
    content = []
    for part in message.content:
        if type(part) is Foreign and part.type in _PARTS:
            losses.append(Loss(trail.of(part), "conversation_state", "dropped", _DETAIL))
        else:
            content.append(part)
    if not content:
        return None
    kept = Message(message.role, tuple(content), message.name, message.extra)
    trail.follow(message, kept)
    return kept
