"""Where every message, part and tool of a request stood before it was bent.

Fitting moves, merges, drops and replaces things; a loss must still point to where the client put them. Values
are known by identity, and whoever replaces one says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from wireglot.ir.content import Message, Part, ToolResult
from wireglot.ir.loss import Loss
from wireglot.ir.request import AnyTool, Request

_PLACE = re.compile(r"\$\.(messages|tools)\[(\d+)\](?:\.content\[(\d+)\])?")


_Value = Message | Part | AnyTool
_MESSAGES = "$.messages"
_TOOLS = "$.tools"


class Trail:
    """Drawn when somebody asks: most requests lose nothing on the way."""

    __slots__ = ("_followed", "_inner", "_numbers", "_request")

    def __init__(self, request: Request) -> None:
        # Values are known by their identities, so whoever knows one holds the value, too.
        self._request = request
        self._numbers: dict[int, int] | None = None
        self._inner: dict[int, str] | None = None
        self._followed: dict[int, tuple[_Value, _Value]] = {}

    def of(self, value: _Value) -> str:
        """Where the client put it; what nobody put anywhere belongs to the conversation as a whole."""
        followed = self._followed.get(id(value))
        path = self._path(followed[1]) if followed is not None else ""
        return path or self._path(value) or _MESSAGES

    def follow(self, old: _Value, new: _Value) -> None:
        """`new` stands for what was `old`."""
        if new is not old:
            before = self._followed.get(id(old))
            self._followed[id(new)] = (new, old if before is None else before[1])

    def _path(self, value: _Value) -> str:
        if self._numbers is None:
            self._numbers = _numbers(self._request)
        number = self._numbers.get(id(value))
        if number is None:
            if self._inner is None:
                self._inner = _inner_paths(self._request.messages)
            return self._inner.get(id(value), "")
        if isinstance(value, AnyTool):
            return f"{_TOOLS}[{number}]"
        if type(value) is Message:
            return f"{_MESSAGES}[{number}]"
        content = self._request.messages[number].content
        position = next(place for place, part in enumerate(content) if part is value)
        return f"{_MESSAGES}[{number}].content[{position}]"

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


def _numbers(request: Request) -> dict[int, int]:
    """Of tools and messages, and for each part that of its message: what is there twice is where it is
    first."""
    numbers = {id(tool): number for number, tool in enumerate(request.tools)}
    for number, message in reversed(list(enumerate(request.messages))):
        numbers.update(dict.fromkeys(map(id, message.content), number))
        numbers[id(message)] = number
    return numbers


def _inner_paths(messages: tuple[Message, ...]) -> dict[int, str]:
    """Of what is in results: it may be moved out."""
    return {
        id(item): f"{_MESSAGES}[{number}].content[{position}].content[{index}]"
        for number, message in enumerate(messages)
        for position, part in enumerate(message.content)
        if type(part) is ToolResult
        for index, item in enumerate(part.content)
    }
