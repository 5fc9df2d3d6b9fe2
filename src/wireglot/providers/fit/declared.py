"""Tools that messages declare on the way (Kimi): among all others, where there is one place for tools."""

from __future__ import annotations

import operator

import msgspec

from wireglot.ir.content import Extra, Foreign, Message
from wireglot.ir.loss import Loss
from wireglot.ir.request import MIDWAY, TOOLS_PART, AnyTool, Request, Tool
from wireglot.ir.trail import Trail


def join_declared_tools(request: Request, losses: list[Loss], trail: Trail) -> Request:
    """They stand among the tools already: only the messages that declare them go. A declaration that nobody
    can read stays, for the renderers to tell."""
    messages: list[Message] = []
    said = False
    for message in request.messages:
        kept = message
        if message.role != "system":
            said = True
        elif any(_declares(part) for part in message.content):
            content = tuple(part for part in message.content if not _declares(part))
            if said:
                detail = "declared with all other tools, at the front"
                losses.extend(
                    Loss(trail.of(part), "tool.position", "approximated", detail)
                    for part in message.content
                    if _declares(part)
                )
            if not content:
                continue
            kept = Message(message.role, content, message.name, message.extra)
            trail.follow(message, kept)
        messages.append(kept)
    if len(messages) == len(request.messages) and all(map(operator.is_, messages, request.messages)):
        return request
    tools = tuple(_at_the_front(tool, trail) for tool in request.tools)
    return msgspec.structs.replace(request, messages=tuple(messages), tools=tools)


def _declares(part: object) -> bool:
    return type(part) is Foreign and part.type == TOOLS_PART and MIDWAY in part.value


def _at_the_front(tool: AnyTool, trail: Trail) -> AnyTool:
    if type(tool) is not Tool or tool.extra is None or MIDWAY not in tool.extra.form:
        return tool
    form = {name: value for name, value in tool.extra.form.items() if name != MIDWAY}
    extra = Extra(tool.extra.dialect, tool.extra.fields, form) if form or tool.extra.fields else None
    moved = msgspec.structs.replace(tool, extra=extra)
    trail.follow(tool, moved)
    return moved
