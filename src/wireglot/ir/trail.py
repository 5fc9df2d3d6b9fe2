"""Where every message, part and tool of a request stood before it was bent.

Fitting moves, merges, drops and replaces things; a loss must still point to where the client put them. Values
are known by identity, and whoever replaces one says so.
"""

from __future__ import annotations

import re

from wireglot.ir.content import Message, Part, ToolResult
from wireglot.ir.loss import Loss
from wireglot.ir.request import AnyTool, Request

_PLACE = re.compile(r"\$\.(messages|tools)\[(\d+)\](?:\.content\[(\d+)\])?")


_Value = Message | Part | AnyTool


class Trail:
    """Drawn when somebody first asks: most requests lose nothing on the way."""

    __slots__ = ("_drawn", "_followed", "_request")

    def __init__(self, request: Request) -> None:
        self._request = request
        self._drawn: dict[int, tuple[object, str]] | None = None
        self._followed: list[tuple[_Value, _Value]] = []

    def _paths(self) -> dict[int, tuple[object, str]]:
        if self._drawn is not None:
            return self._drawn
        request = self._request
        # The value is held beside its path, so that no other can take its identity.
        paths: dict[int, tuple[object, str]] = {}
        self._drawn = paths
        for number, message in enumerate(request.messages):
            place = f"$.messages[{number}]"
            paths[id(message)] = (message, place)
            for position, part in enumerate(message.content):
                paths[id(part)] = (part, f"{place}.content[{position}]")
                if type(part) is ToolResult:  # what stands in it may be moved out
                    for index, item in enumerate(part.content):
                        paths[id(item)] = (item, f"{place}.content[{position}].content[{index}]")
        for number, tool in enumerate(request.tools):
            paths[id(tool)] = (tool, f"$.tools[{number}]")
        for old, new in self._followed:
            self.follow(old, new)
        return paths

    def of(self, value: _Value) -> str:
        """Where the client put it; what nobody put anywhere belongs to the conversation as a whole."""
        known = self._paths().get(id(value))
        return known[1] if known is not None else "$.messages"

    def follow(self, old: _Value, new: _Value) -> None:
        """`new` stands for what was `old`."""
        if new is old:
            return
        paths = self._drawn
        if paths is None:
            self._followed.append((old, new))
            return
        known = paths.get(id(old))
        if known is not None:
            paths[id(new)] = (new, known[1])

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
