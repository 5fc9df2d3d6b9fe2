"""Where every message, part and tool of a request stood before it was bent.

Fitting moves, merges, drops and replaces things; a loss must still point to where the client put them. Values
are known by identity, and whoever replaces one says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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
    """Drawn as far as somebody asks: most requests lose nothing on the way, or what they begin with."""

    __slots__ = ("_drawn", "_followed", "_places")

    def __init__(self, request: Request) -> None:
        self._places = _places(request)
        # A value is held beside what is known of it, so that no other can take its identity.
        self._drawn: dict[int, _Place] = {}
        self._followed: dict[int, tuple[_Value, _Value]] = {}

    def of(self, value: _Value) -> str:
        """Where the client put it; what nobody put anywhere belongs to the conversation as a whole."""
        followed = self._followed.get(id(value))
        known = self._find(followed[1]) if followed is not None else None
        if known is None:
            known = self._find(value)
        if known is None:
            return _MESSAGES
        path = f"{known[1]}[{known[2]}]"
        for place in known[3:]:
            path += f".content[{place}]"
        return path

    def follow(self, old: _Value, new: _Value) -> None:
        """`new` stands for what was `old`."""
        if new is not old:
            before = self._followed.get(id(old))
            self._followed[id(new)] = (new, old if before is None else before[1])

    def _find(self, value: _Value) -> _Place | None:
        drawn = self._drawn
        known = drawn.get(id(value))
        if known is not None:
            return known
        for place in self._places:
            drawn.setdefault(id(place[0]), place)
            if place[0] is value:
                return place
        return None

    def changed_parts(
        self, messages: tuple[Message, ...], change: Callable[[Part], Part | None]
    ) -> tuple[Message, ...]:
        """The messages with a change made to each part; None takes it out, and a message that has no other
        part goes with it. What does not change stays the same object, be it a message or all of them."""
        changed: list[Message] | None = None
        for number, message in enumerate(messages):
            new = self._changed(message, change)
            if new is not message and changed is None:
                changed = list(messages[:number])
            if changed is not None and new is not None:
                changed.append(new)
        return messages if changed is None else tuple(changed)

    def _changed(self, message: Message, change: Callable[[Part], Part | None]) -> Message | None:
        content: list[Part] = []
        same = True
        for part in message.content:
            new = change(part)
            if new is not part:
                same = False
            if new is not None:
                self.follow(part, new)
                content.append(new)
        if same:
            return message
        if not content:
            return None
        changed = Message(message.role, tuple(content), message.name, message.extra)
        self.follow(message, changed)
        return changed

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


def _places(request: Request) -> Iterator[_Place]:
    for number, tool in enumerate(request.tools):
        yield (tool, _TOOLS, number)
    for number, message in enumerate(request.messages):
        yield (message, _MESSAGES, number)
        for position, part in enumerate(message.content):
            yield (part, _MESSAGES, number, position)
            if type(part) is ToolResult:  # what stands in it may be moved out
                for index, item in enumerate(part.content):
                    yield (item, _MESSAGES, number, position, index)
