"""Tools that messages declare (Kimi), add or withdraw (Anthropic) on the way: the list that holds at the end,
where there is one place for tools."""

from __future__ import annotations

import operator
from collections.abc import Callable

import msgspec

from wireglot.ir.content import Extra, Foreign, Message, Part
from wireglot.ir.loss import Loss
from wireglot.ir.request import (
    MIDWAY,
    TOOLS_PART,
    AnyTool,
    HostedTool,
    Request,
    Tool,
    ToolChange,
    tool_name,
)
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


def apply_tool_changes(
    request: Request,
    changes_of: Callable[[Foreign], tuple[ToolChange, ...]],
    losses: list[Loss],
    trail: Trail,
) -> Request:
    """The tools as they are behind the last message, without the parts that changed them. A part whose change
    cannot be made stays, for the renderers to declare."""
    tools, known = list(request.tools), list(request.tools)
    messages: list[Message] = []
    changed = False
    for message in request.messages:
        content: list[Part] = []
        for part in message.content:
            changes = changes_of(part) if type(part) is Foreign else ()
            made = [_make(change, tools, known, trail) for change in changes]
            if changes:
                changed = True
            if type(part) is Foreign and changes and all(made) and not part.text:
                removes = changes[0].removes
                detail = (
                    "withdrawn: not declared" if removes else "declared with all other tools, at the front"
                )
                losses.append(Loss(trail.of(part), "tool.position", "approximated", detail))
                continue
            if type(part) is Foreign and part.text and not all(made):
                detail = "a tool was added or withdrawn that is not declared"
                losses.append(Loss(f"{trail.of(part)}.tool_changes", "foreign_part", "dropped", detail))
            content.append(part)
        if len(content) == len(message.content):
            messages.append(message)
        elif content:
            kept = Message(message.role, tuple(content), message.name, message.extra)
            trail.follow(message, kept)
            messages.append(kept)
    if not changed:
        return request
    return msgspec.structs.replace(request, messages=tuple(messages), tools=tuple(tools))


def _make(change: ToolChange, tools: list[AnyTool], known: list[AnyTool], trail: Trail) -> bool:
    """Make one change in the list of tools; False where it is about one that was not declared."""
    if change.tools:
        named = {tool_name(tool) for tool in change.tools} - {""}
        tools[:] = [tool for tool in tools if tool_name(tool) not in named]
        known[:] = [tool for tool in known if tool_name(tool) not in named]
        tools += change.tools
        known += change.tools
        return True
    if change.server and change.name:
        return _make_of_server(change, tools, trail)
    if change.removes:
        tools[:] = [tool for tool in tools if not change.names(tool)]
        return any(map(change.names, known))
    found = [tool for tool in known if change.names(tool)]
    for tool in found:
        offered = msgspec.structs.replace(tool, deferred=False) if type(tool) is Tool else tool
        trail.follow(tool, offered)
        place = next((at for at, other in enumerate(tools) if change.names(other)), len(tools))
        tools[place : place + 1] = [offered]
    return bool(found)


def _make_of_server(change: ToolChange, tools: list[AnyTool], trail: Trail) -> bool:
    """One tool of a server that the provider connects to: among those that are allowed of it, where they are
    listed."""
    for place, tool in enumerate(tools):
        if type(tool) is not HostedTool or tool.server is None or not change.names(tool):
            continue
        allowed = tool.server.allowed
        if allowed is None:
            return not change.removes
        rest = tuple(name for name in allowed if name != change.name)
        server = msgspec.structs.replace(
            tool.server, allowed=rest if change.removes else (*rest, change.name)
        )
        tools[place] = msgspec.structs.replace(tool, server=server)
        trail.follow(tool, tools[place])
        return True
    return False


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
