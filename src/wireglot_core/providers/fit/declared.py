"""Tools that messages declare (Kimi), add or withdraw (Anthropic) in the middle of a conversation: the list
in effect at the end, for endpoints with one place for tools."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from wireglot_core.dialects.capabilities import HostedForm
from wireglot_core.ir.content import Extra, Foreign, Message, Part, ToolCall, ToolResult
from wireglot_core.ir.request import (
    MIDWAY,
    TOOLS_PART,
    AnyTool,
    HostedTool,
    Request,
    Tool,
    ToolChange,
    tool_name,
)
from wireglot_core.ir.trail import Trail
from wireglot_core.providers.fit.fitting import Fitting

_FOUND: Final = "sent from now on: the client has found it"
_HELD_BACK: Final = "not sent before the client has found it"
_AT_THE_FRONT: Final = "declared with all other tools, at the front"


def join_declared_tools(request: Request, fitting: Fitting) -> Request:
    """Removes the messages that declare tools: the tools are in the list already. A declaration that cannot
    be parsed stays, and renderers report it."""
    trail = fitting.trail
    messages: list[Message] = []
    said = False
    for message in request.messages:
        kept = message
        if message.role != "system":
            said = True
        elif any(_declares(part) for part in message.content):
            content = tuple(part for part in message.content if not _declares(part))
            for part in message.content if said else ():
                if _declares(part):
                    fitting.lose(trail.of(part), "tool.position", "approximated", _AT_THE_FRONT)
            if not content:
                continue
            kept = Message(message.role, content, message.name, message.extra)
            trail.follow(message, kept)
        messages.append(kept)
    if len(messages) == len(request.messages) and all(map(operator.is_, messages, request.messages)):
        return request
    tools = tuple(_at_the_front(tool, trail) for tool in request.tools)
    return msgspec.structs.replace(request, messages=tuple(messages), tools=tools)


def apply_tool_changes(request: Request, fitting: Fitting) -> Request:
    """The tools in effect after the last message, without the parts that changed them. A part whose change
    cannot be applied stays, and renderers report it as a loss."""
    client, trail = fitting.target.client, fitting.trail
    changes_of = client.client.tool_changes if client is not None else None
    assert changes_of is not None, "its row of the list says so"
    tools, known = list(request.tools), list(request.tools)
    found = False

    def kept(part: Part) -> Part | None:
        nonlocal found
        changes = changes_of(part) if type(part) is Foreign else ()
        if type(part) is not Foreign or not changes:
            return part
        found = True
        # All changes are attempted, even if an earlier one failed.
        made = False not in [_make(change, tools, known, trail) for change in changes]
        if made and not part.text:
            detail = "removed: not declared" if changes[0].removes else _AT_THE_FRONT
            fitting.lose(trail.of(part), "tool.position", "approximated", detail)
            return None
        if not made and part.text:
            detail = "a tool was added or removed that is not declared"
            fitting.lose(f"{trail.of(part)}.tool_changes", "foreign_part", "dropped", detail)
        return part

    messages = trail.changed_parts(request.messages, kept)
    if not found:
        return request
    return msgspec.structs.replace(request, messages=messages, tools=tuple(tools))


def hold_back_deferred(request: Request, fitting: Fitting) -> Request:
    """Leaves out deferred tools that no search has found yet, if the client searches for them itself and the
    endpoint cannot defer them. A search that the provider runs is not affected."""
    tools, client = request.tools, fitting.target.client
    if client is None or not any(type(tool) is Tool and tool.deferred for tool in tools):
        return request
    form = client.client.hosted
    found = {*_found(request.messages, form)}
    if not found and not any(type(tool) is Tool and form.is_search(tool) for tool in tools):
        return request  # nothing searches for them
    if any(type(tool) is HostedTool and tool.kind == "tool_search" for tool in tools):
        return request
    called = {part.name for each in request.messages for part in each.content if type(part) is ToolCall}
    loaded = {*found, *called, *(request.tool_choice.only if request.tool_choice else ())}
    kept: list[AnyTool] = []
    for tool in tools:
        if type(tool) is not Tool or not tool.deferred:
            kept.append(tool)
        elif tool.name in loaded:
            offered = msgspec.structs.replace(tool, deferred=False)
            fitting.trail.follow(tool, offered)
            kept.append(offered)
            fitting.lose(f"{fitting.trail.of(tool)}.deferred", "tool.deferred", "emulated", _FOUND)
        else:
            fitting.lose(f"{fitting.trail.of(tool)}.deferred", "tool.deferred", "emulated", _HELD_BACK)
    return msgspec.structs.replace(request, tools=tuple(kept))


def _found(messages: Iterable[Message], form: HostedForm) -> Iterator[str]:
    """Names of tools that the client's searches have found."""
    for message in messages:
        for part in message.content:
            for each in part.content if type(part) is ToolResult else (part,):
                ran = form.read(each) if type(each) is Foreign else None
                if ran is not None and ran.result is not None:
                    yield from (tool.name for tool in ran.result.tools)


def _make(change: ToolChange, tools: list[AnyTool], known: list[AnyTool], trail: Trail) -> bool:
    """Make one change in the list of tools; False if it refers to a tool that was not declared."""
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
    """Change one tool of a server that the provider connects to: in the server's allowed tools, if they are
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
