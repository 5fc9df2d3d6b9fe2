"""Where every message, part and tool of a request stood before it was bent.

Fitting moves, merges, drops and replaces things; a loss must still point to where the client put them. Values
are known by identity, and whoever replaces one says so.
"""

from __future__ import annotations

import re
from typing import Any

from wireglot.ir.content import Message, Part, ToolResult
from wireglot.ir.loss import Loss
from wireglot.ir.request import AnyTool, Request

_PLACE = re.compile(r"\$\.(messages|tools)\[(\d+)\](?:\.content\[(\d+)\])?")


_Value = Message | Part | AnyTool
_Place = tuple[Any, ...]
"""A value, who holds it (messages or tools), its number there, and its places inside: a path is made of them
when somebody asks for it, since most values of a conversation lose nothing."""
_MESSAGES = "$.messages"
_TOOLS = "$.tools"


class Trail:
    """Drawn when somebody first asks: most requests lose nothing on the way."""

    __slots__ = ("_drawn", "_followed", "_request")

    def __init__(self, request: Request) -> None:
        self._request = request
        self._drawn: dict[int, _Place] | None = None
        self._followed: list[tuple[_Value, _Value]] = []

    def _places(self) -> dict[int, _Place]:
        if self._drawn is not None:
            return self._drawn
        request = self._request
        # The value is held beside its place, so that no other can take its identity.
        places: dict[int, _Place] = {}
        self._drawn = places
        for number, message in enumerate(request.messages):
            places[id(message)] = (message, _MESSAGES, number)
            for position, part in enumerate(message.content):
                places[id(part)] = (part, _MESSAGES, number, position)
                if type(part) is ToolResult:  # what stands in it may be moved out
                    for index, item in enumerate(part.content):
                        places[id(item)] = (item, _MESSAGES, number, position, index)
        for number, tool in enumerate(request.tools):
            places[id(tool)] = (tool, _TOOLS, number)
        for old, new in self._followed:
            self.follow(old, new)
        return places

    def of(self, value: _Value) -> str:
        """Where the client put it; what nobody put anywhere belongs to the conversation as a whole."""
        known = self._places().get(id(value))
        if known is None:
            return _MESSAGES
        _, holder, number, *inside = known
        return f"{holder}[{number}]" + "".join([f".content[{place}]" for place in inside])

    def follow(self, old: _Value, new: _Value) -> None:
        """`new` stands for what was `old`."""
        if new is old:
            return
        places = self._drawn
        if places is None:
            self._followed.append((old, new))
            return
        known = places.get(id(old))
        if known is not None:
            places[id(new)] = (new, *known[1:])

    def retrace(self, loss: Loss, fitted: Request) -> Loss:
        """A loss a renderer reported about the fitted request, at its place in the client's."""
        found = _PLACE.match(loss.path)
        if found is None:
            return loss
        kind, number, position = found[1], int(found[2]), found[3]
        values: tuple[Message | AnyTool, ...] = fitted.messages if kind == "messages" else fitted.tools
        if number >= len(values):
            return loss
        value: _Value = values[number]
        if position is not None and isinstance(value, Message) and int(position) < len(value.content):
            value = value.content[int(position)]
        path = self.of(value) + loss.path[found.end() :]
        return loss if path == loss.path else Loss(path, loss.feature, loss.action, loss.detail)
