"""Fits call ids to an endpoint: rewritten consistently for a call and its result."""

from __future__ import annotations

import hashlib

import msgspec

from wireglot_core.ir.content import Message, Part, ToolCall, ToolResult
from wireglot_core.ir.request import Request
from wireglot_core.providers.fit.fitting import Fitting


def fit_call_ids(request: Request, fitting: Fitting) -> Request:
    """Makes call ids acceptable to the endpoint. A positional one is minted, and minted ids are never sent to
    Gemini."""
    limits, rules, context = fitting.limits, fitting.target.rules, fitting.context
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
                wanted = _hashed_id(part.id, rules.id_max) if rules.refuses_id(part.id) else part.id
            counter += 1
            if wanted != part.id:
                renames[part.id] = wanted
    if not renames:
        return request
    if limits.call_ids == "positional":
        detail = "this model pairs calls and results by order; ids are not sent"
    else:
        detail = "rewritten to the form this provider takes"
    fitting.lose("$.messages", "tool_call.id", "emulated", detail)
    return msgspec.structs.replace(
        request, messages=tuple([_renamed(message, renames, fitting) for message in request.messages])
    )


def _renamed(message: Message, renames: dict[str, str], fitting: Fitting) -> Message:
    named = [
        (identifier, renames[identifier])
        for part in message.content
        if (identifier := _id_of(part)) in renames
    ]
    if not named:
        return message
    return fitting.changed(
        message,
        ("renamed", *named),
        lambda before: tuple([_with_id(part, renames) for part in before.content]),
    )


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
