"""Switches that only the client's dialect knows, set to off: nobody else can be told, so it is declared.

Renderers declare what says something, in requests as in answers. In an answer `false`, `0` and "" say nothing
(servers print their whole schema); in a request somebody wrote them down.
"""

from __future__ import annotations

from collections.abc import Iterator

from wireglot.ir.content import Extra, Foreign, ToolResult
from wireglot.ir.loss import Loss
from wireglot.ir.request import Request
from wireglot.ir.trail import Trail

_NOTHING = frozenset({"content", "thought"})
"""Fields everybody knows, kept where they are empty only to be written again as they were: the empty text
beside a Chat message's calls, Gemini's mark that a part is no thought."""


def declare_switches(
    request: Request, dialect: str, losses: list[Loss], trail: Trail, in_messages: bool = True
) -> None:
    """`dialect` is that of the upstream; it gets its own fields as they are. `in_messages`: whether there can
    be any among the parts of the conversation."""
    for path, extra in _extras(request, trail, in_messages):
        if extra.dialect == dialect:
            continue
        for key, value in extra.fields.items():
            if value is None or value or isinstance(value, list | dict) or key in _NOTHING:
                continue
            losses.append(Loss(f"{path}.{key}", "unknown_field", "dropped", f"{extra.dialect} only"))


def _extras(request: Request, trail: Trail, in_messages: bool) -> Iterator[tuple[str, Extra]]:
    """Those that have fields."""
    if request.extra is not None and request.extra.fields:
        yield "$", request.extra
    for path, setting in (
        ("$.thinking", request.thinking),
        ("$.output", request.output),
        ("$.tool_choice", request.tool_choice),
    ):
        if setting is not None and setting.extra is not None and setting.extra.fields:
            yield path, setting.extra
    for tool in request.tools:
        extra: Extra | None = getattr(tool, "extra", None)
        if extra is not None and extra.fields:
            yield trail.of(tool), extra
    for message in request.messages if in_messages else ():
        if message.extra is not None and message.extra.fields:
            yield trail.of(message), message.extra
        for part in message.content:
            if type(part) is Foreign:
                continue
            if part.extra is not None and part.extra.fields:
                yield trail.of(part), part.extra
            if type(part) is ToolResult:
                for number, item in enumerate(part.content):
                    if type(item) is not Foreign and item.extra is not None and item.extra.fields:
                        yield f"{trail.of(part)}.content[{number}]", item.extra
