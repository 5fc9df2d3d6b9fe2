"""Call ids toward an endpoint: rewritten alike for a call and its result."""

from __future__ import annotations

import hashlib
import re
from typing import Final

import msgspec

from wireglot.dialects.base import Context
from wireglot.ir.content import Message, Part, ToolCall, ToolResult
from wireglot.ir.loss import Loss
from wireglot.ir.request import Request
from wireglot.ir.trail import Trail
from wireglot.providers.fit.known import Settled
from wireglot.providers.limits import Limits
from wireglot.wire.memory import Memory

_PART_BYTES: Final = 256
"""Of a part with another id: the same words, held once more."""


def fit_call_ids(
    request: Request, limits: Limits, losses: list[Loss], context: Context, trail: Trail, *, settled: Settled
) -> Request:
    """Call ids the endpoint accepts. A positional one is minted, and minted ids are never sent to Gemini."""
    longest, by_place = limits.call_id_max, limits.call_ids != "keep"
    if not (by_place or longest or limits.call_id):
        return request
    rule = re.compile(limits.call_id) if limits.call_id else None

    def is_refused(identifier: str) -> bool:
        return bool(longest and len(identifier) > longest) or (
            rule is not None and not rule.fullmatch(identifier)
        )

    def refuses(messages: tuple[Message, ...]) -> bool:
        for message in messages:
            for part in message.content:
                if type(part) is ToolCall and is_refused(part.id):
                    return True
        return False

    key = ("ids", longest, limits.call_id)
    if not by_place and not settled.holds(request.messages, key, refuses):
        return request
    renames: dict[str, str] = {}
    counter = 0
    for message in request.messages:
        for part in message.content:
            if type(part) is not ToolCall:
                continue
            if limits.call_ids == "kimi":
                wanted = f"functions.{part.name}:{counter}"
            elif limits.call_ids == "positional":
                wanted = context.lasting_id(context.call_prefix, str(counter), part.name)
            else:
                wanted = _hashed_id(part.id, longest) if is_refused(part.id) else part.id
            counter += 1
            if wanted != part.id:
                renames[part.id] = wanted
    if not renames:
        return request
    if limits.call_ids == "positional":
        detail = "this model pairs calls and results by order; ids are not sent"
    else:
        detail = "rewritten to the form this provider takes"
    losses.append(Loss("$.messages", "tool_call.id", "emulated", detail))
    return msgspec.structs.replace(
        request, messages=tuple([_renamed(m, renames, trail, settled.memory) for m in request.messages])
    )


def _renamed(message: Message, renames: dict[str, str], trail: Trail, memory: Memory | None) -> Message:
    """What comes again is renamed as it was before: then what was written of it is found, too."""
    named = [
        (identifier, renames[identifier])
        for part in message.content
        if (identifier := _id_of(part)) in renames
    ]
    if not named:
        return message
    key = ("renamed", *named)
    renamed: Message | None = memory.find(message, key) if memory is not None else None
    if renamed is None:
        content = tuple([_with_id(part, renames) for part in message.content])
        renamed = Message(message.role, content, message.name, message.extra)
        if memory is not None:
            memory.keep(message, key, renamed, _PART_BYTES * len(content), shared=renamed)
    for part, new in zip(message.content, renamed.content, strict=True):
        trail.follow(part, new)
    trail.follow(message, renamed)
    return renamed


def _id_of(part: Part) -> str | None:
    if type(part) is ToolCall:
        return part.id
    return part.call_id if type(part) is ToolResult else None


def _with_id(part: Part, renames: dict[str, str]) -> Part:
    if type(part) is ToolCall and part.id in renames:
        return msgspec.structs.replace(part, id=renames[part.id])
    if type(part) is ToolResult and part.call_id in renames:
        return msgspec.structs.replace(part, call_id=renames[part.call_id])
    return part


def _hashed_id(identifier: str, longest: int) -> str:
    digest = hashlib.sha256(identifier.encode("utf-8", "replace")).hexdigest()
    if longest and longest < 20:
        return digest[:longest]
    return f"call_{digest[:32]}"
