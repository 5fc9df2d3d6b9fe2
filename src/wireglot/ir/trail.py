"""Where every message, part and tool of a request stood before it was bent.

Fitting moves, merges, drops and replaces things; a loss must still point to where the client put them. Values
are known by identity, and anyone who replaces one says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from wireglot.ir.content import Message, Part, ToolResult
from wireglot.ir.loss import Loss
from wireglot.ir.request import AnyTool, Request

_PLACE = re.compile(r"\$\.(messages|tools)\[(\d+)\](?:\.content\[(\d+)\])?")


_Value = Message | Part | AnyTool
_Place = tuple[Any, ...]
"""Who holds a value (messages or tools), its number there, and its places inside: a path is made of them
when it is requested, since most values of a conversation lose nothing."""
_MESSAGES = "$.messages"
_TOOLS = "$.tools"


class Trail(msgspec.Struct, eq=False):
    """Drawn as far as needed: most requests lose nothing on the way, or what they begin with. Values
    are known by their identities, so anyone who knows one holds the value, too."""

    _request: Request
    _places: dict[int, _Place] = {}
    _drawn: int = -1
    """Of how many messages the places are known; -1: of the tools neither."""
    _inner: dict[int, _Place] | None = None
    _followed: dict[int, tuple[_Value, _Value]] = {}

    def of(self, value: _Value) -> str:
        """Where the client put it; what has no place belongs to the conversation as a whole."""
        followed = self._followed.get(id(value))
        known = self._find(followed[1]) if followed is not None else None
        if known is None:
            known = self._find(value)
        if known is None:
            return _MESSAGES
        path = f"{known[0]}[{known[1]}]"
        for place in known[2:]:
            path += f".content[{place}]"
        return path

    def follow(self, old: _Value, new: _Value) -> None:
        """`new` stands for what was `old`."""
        if new is not old:
            before = self._followed.get(id(old))
            self._followed[id(new)] = (new, old if before is None else before[1])

    def _find(self, value: _Value) -> _Place | None:
        known = self._places.get(id(value))
        if known is None:
            known = self._draw(id(value))
        if known is not None:
            return known
        if self._inner is None:
            self._inner = _inner_places(self._request)
        return self._inner.get(id(value))

    def _draw(self, wanted: int) -> _Place | None:
        """Go on up to the message that has it. What is there twice is where it is first."""
        places, messages = self._places, self._request.messages
        if self._drawn < 0:
            for number, tool in enumerate(self._request.tools):
                places.setdefault(id(tool), (_TOOLS, number))
            self._drawn = 0
        keep = places.setdefault
        while wanted not in places and self._drawn < len(messages):
            number = self._drawn
            keep(id(messages[number]), (_MESSAGES, number))
            for position, part in enumerate(messages[number].content):
                keep(id(part), (_MESSAGES, number, position))
            self._drawn = number + 1
        return places.get(wanted)

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


def _inner_places(request: Request) -> dict[int, _Place]:
    """Of what is in results: it may be moved out."""
    places: dict[int, _Place] = {}
    for number, message in enumerate(request.messages):
        for position, part in enumerate(message.content):
            if type(part) is ToolResult:
                for index, item in enumerate(part.content):
                    places.setdefault(id(item), (_MESSAGES, number, position, index))
    return places
